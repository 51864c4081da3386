#include "base/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#endif

#ifdef POISONS
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE_PAGE ((size_t)2 << 20)
#define MAX_ALIGN 4096
#define STRIDE    ((size_t)16 << 20) /* bytes made present before it is asked whether to stop */

hth_arena hth_arena_counting(void) {
    return (hth_arena){.capacity = SIZE_MAX};
}

hth_arena hth_arena_over(void *base, size_t bytes) {
    assert(base && (uintptr_t)base % HTH_ARENA_ALIGN == 0);
    POISON(base, bytes);
    return (hth_arena){.base = base, .capacity = bytes};
}

void hth_arena_over_end(hth_arena *arena) {
    UNPOISON(arena->base, arena->capacity);
    memset(arena, 0, sizeof *arena);
}

void *hth_arena_take(hth_arena *arena, size_t bytes, size_t align) {
    if (align < HTH_ARENA_ALIGN) align = HTH_ARENA_ALIGN;
    assert((align & (align - 1)) == 0 && align <= MAX_ALIGN);
    size_t start, end;
    if (arena->overflow || __builtin_add_overflow(arena->used, align - 1, &start) ||
        __builtin_add_overflow(start & ~(align - 1), bytes, &end) ||
        __builtin_add_overflow(end, (size_t)HTH_ARENA_GAP, &end) || end > arena->capacity) {
        arena->overflow = true;
        return NULL;
    }
    start &= ~(align - 1);
    arena->used = end;
    if (!arena->base) return NULL;
    UNPOISON(arena->base + start, bytes);
    return arena->base + start;
}

void *hth_arena_take_array(hth_arena *arena, size_t count, size_t size, size_t align) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->overflow = true;
        return NULL;
    }
    return hth_arena_take(arena, bytes, align);
}

/* Make every page of the range present and writable. False when the system has no memory for it. */
static bool populate(unsigned char *base, size_t bytes, size_t page) {
    if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return true;
    if (errno != EINVAL) return false;
    /* A kernel older than 5.14 does not know the advice. */
    for (size_t i = 0; i < bytes; i += page) ((volatile unsigned char *)base)[i] = 0;
    return true;
}

/* Map `bytes` (whole pages) at a multiple of `align`: the kernel backs only aligned ranges with huge pages. */
static unsigned char *map_aligned(size_t bytes, size_t align) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned char *p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t head = (align - (uintptr_t)p % align) % align;
    if (head) munmap(p, head);
    munmap(p + head + bytes, align - head);
    return p + head;
}

hearth_status hth_arena_reserve(hth_arena *arena, size_t bytes, const char *what, hearth_error *err) {
    memset(arena, 0, sizeof *arena);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > SIZE_MAX / 4) return hth_fail(err, HEARTH_NO_MEMORY, "%s: %zu bytes cannot be mapped", what, bytes);
    size_t mapped = bytes ? (bytes + page - 1) & ~(page - 1) : page;
    bool huge = bytes >= HUGE_PAGE;
    unsigned char *base = map_aligned(mapped, huge ? HUGE_PAGE : page);
    if (!base) return hth_fail(err, HEARTH_NO_MEMORY, "%s: cannot map %zu bytes: %s", what, bytes, strerror(errno));
    /* The last part of a huge page stays on small ones: rounding up would take memory that the plan does not list. */
    if (huge) (void)madvise(base, mapped & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    *arena = (hth_arena){.base = base, .capacity = bytes, .mapped = mapped};
    return HEARTH_OK;
}

/* Making an arena present, a stride after the other, by one thread or several. */
typedef struct presence {
    const hth_arena *arena;
    hth_arena_help help;
    _Atomic int error; /* errno of the first stride that failed */
    atomic_bool stopped;
} presence;

/* Whether there is more to do. */
static bool populate_stride(presence *p, size_t at) {
    const size_t left = p->arena->mapped - at;
    if (p->help.stop && atomic_load(p->help.stop)) atomic_store(&p->stopped, true);
    if (atomic_load(&p->stopped) || atomic_load(&p->error)) return false;
    if (populate(p->arena->base + at, left < STRIDE ? left : STRIDE, (size_t)sysconf(_SC_PAGESIZE))) return true;
    atomic_store(&p->error, errno);
    return false;
}

static void populate_share(void *arg, int worker) {
    presence *p = arg;
    (void)worker;
    for (size_t at; (at = (size_t)hth_pool_claim(p->help.pool, 1) * STRIDE) < p->arena->mapped;)
        if (!populate_stride(p, at)) return;
}

hearth_status hth_arena_map_with(hth_arena *arena, size_t bytes, hth_arena_help help, const char *what,
                                 hearth_error *err) {
    HTH_TRY(hth_arena_reserve(arena, bytes, what, err));
    presence p = {.arena = arena, .help = help};
    size_t at = 0;
    if (help.pool && arena->mapped > STRIDE) hth_pool_run(help.pool, populate_share, &p);
    else
        while (at < arena->mapped && populate_stride(&p, at)) at += STRIDE;
    const int error = atomic_load(&p.error);
    if (!error && !atomic_load(&p.stopped)) {
        POISON(arena->base, arena->mapped);
        return HEARTH_OK;
    }
    hth_arena_unmap(arena);
    if (!error) return hth_fail(err, HEARTH_CANCELLED, "%s: stopped", what);
    return hth_fail(err, HEARTH_NO_MEMORY, "%s: no memory behind %zu bytes: %s", what, bytes, strerror(error));
}

hearth_status hth_arena_map(hth_arena *arena, size_t bytes, const char *what, hearth_error *err) {
    return hth_arena_map_with(arena, bytes, (hth_arena_help){NULL, NULL}, what, err);
}

void hth_arena_unmap(hth_arena *arena) {
    if (arena->mapped) {
        UNPOISON(arena->base, arena->mapped);
        munmap(arena->base, arena->mapped);
    }
    memset(arena, 0, sizeof *arena);
}
