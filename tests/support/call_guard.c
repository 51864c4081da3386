#include "support/call_guard.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The C library's own names for what is defined here over it. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *block);

/* The C library calls them too, which takes them out of what the compiler is told to hide. */
#define SEEN __attribute__((visibility("default")))

static atomic_bool armed;
static atomic_long allocations, frees, mappings, threads, live;
static long faults_before;

static long faults_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

void call_guard_arm(void) {
    allocations = frees = mappings = threads = 0;
    faults_before = faults_now();
    atomic_store(&armed, true);
}

call_counts call_guard_disarm(void) {
    call_counts counts = {.faults = faults_now() - faults_before};
    atomic_store(&armed, false);
    counts.allocations = allocations;
    counts.frees = frees;
    counts.mappings = mappings;
    counts.threads = threads;
    return counts;
}

long call_guard_live(void) {
    return atomic_load(&live);
}

static void note(atomic_long *count) {
    if (atomic_load_explicit(&armed, memory_order_relaxed)) atomic_fetch_add(count, 1);
}

static void *taken(void *block) {
    note(&allocations);
    if (block) atomic_fetch_add(&live, (long)malloc_usable_size(block));
    return block;
}

static void dropped(void *block) {
    if (block) atomic_fetch_sub(&live, (long)malloc_usable_size(block));
}

SEEN void *malloc(size_t size) {
    return taken(__libc_malloc(size));
}

SEEN void *calloc(size_t count, size_t size) {
    return taken(__libc_calloc(count, size));
}

SEEN void *realloc(void *old, size_t size) {
    dropped(old);
    return taken(__libc_realloc(old, size));
}

SEEN void *reallocarray(void *old, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, count * size);
}

SEEN void *memalign(size_t align, size_t size) {
    return taken(__libc_memalign(align, size));
}

SEEN void *aligned_alloc(size_t align, size_t size) {
    return taken(__libc_memalign(align, size));
}

SEEN int posix_memalign(void **out, size_t align, size_t size) {
    *out = taken(__libc_memalign(align, size));
    return *out ? 0 : ENOMEM;
}

SEEN void free(void *block) {
    if (block) note(&frees);
    dropped(block);
    __libc_free(block);
}

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __real_mprotect(void *at, size_t size, int protection);
int __wrap_mprotect(void *at, size_t size, int protection);
int __real_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    note(&mappings);
    return __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size) {
    note(&mappings);
    return __real_munmap(at, size);
}

int __wrap_mprotect(void *at, size_t size, int protection) {
    note(&mappings);
    return __real_mprotect(at, size, protection);
}

int __wrap_madvise(void *at, size_t size, int advice) {
    note(&mappings);
    return __real_madvise(at, size, advice);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg) {
    note(&threads);
    return __real_pthread_create(thread, attr, start, arg);
}
