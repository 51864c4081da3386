#include "support/alloc_guard.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *block);

static long calls, fail_at;
static size_t live, peak, base;

void alloc_guard_reset(void) {
    calls = fail_at = 0;
    peak = base = live;
}

void alloc_guard_fail_at(long n) {
    fail_at = n ? calls + n : 0;
}
long alloc_guard_calls(void) {
    return calls;
}
size_t alloc_guard_live(void) {
    return live;
}
size_t alloc_guard_peak(void) {
    return peak - base;
}

/* Counts a call; true when it is the one that fails. */
static int fails(void) {
    calls++;
    if (fail_at == 0 || calls != fail_at) return 0;
    errno = ENOMEM;
    return 1;
}

static void *grown(void *block) {
    if (block) live += malloc_usable_size(block);
    if (live > peak) peak = live;
    return block;
}

/* Zeros: a descriptor in memory that nobody has set is then standard input, and a test sees it closed. */
void *__wrap_malloc(size_t size) {
    void *block = fails() ? NULL : grown(__real_malloc(size));
    return block ? memset(block, 0, size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : grown(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size) {
    if (fails()) return NULL;
    size_t before = old ? malloc_usable_size(old) : 0;
    void *block = __real_realloc(old, size);
    if (block) live -= before;
    return grown(block);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    return __wrap_realloc(old, count * size);
}

char *__wrap_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void *__wrap_aligned_alloc(size_t align, size_t size) {
    return fails() ? NULL : grown(__real_aligned_alloc(align, size));
}

char *__wrap_strndup(const char *text, size_t most) {
    size_t size = strnlen(text, most);
    char *copy = __wrap_malloc(size + 1);
    if (!copy) return NULL;
    copy[size] = '\0';
    return memcpy(copy, text, size);
}

void __wrap_free(void *block) {
    if (block) live -= malloc_usable_size(block);
    __real_free(block);
}
