/* Everything that open asks of the system fails once: each time a named error, nothing leaked, and the next open works.
 *
 * Planted, each seen red: an arena's mapping that is not given back; a descriptor that stays open; a failed thread that
 * nobody joins; a fault of a piece that is not passed on; a descriptor that is closed before it is set. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "hearth/hearth.h"
#include "support/alloc_guard.h"

#define MODEL HEARTH_TEST_DATA "/models/tiny-qwen35moe-bf16.gguf"

typedef enum call { MAP, STAT, POPULATE, LOCK, READ, THREAD, CALLS } call;
static const char *const names[CALLS] = {"mmap", "fstat", "madvise to populate", "mlock2", "pread", "pthread_create"};

/* Calls so far of each kind; the failing[k]th of kind k fails, 0: none. Weights arrive on other threads. */
static atomic_long made[CALLS], failing[CALLS];
static atomic_long mapped; /* bytes */

static bool fails(call kind, int error) {
    long n = atomic_fetch_add(&made[kind], 1) + 1;
    if (n != atomic_load(&failing[kind])) return false;
    errno = error;
    return true;
}

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __real_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice);
int __wrap_mlock2(const void *at, size_t size, unsigned flags);
ssize_t __real_pread(int fd, void *to, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t size, off_t at);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fails(MAP, ENOMEM)) return MAP_FAILED;
    void *map = __real_mmap(at, size, protection, flags, fd, offset);
    if (map != MAP_FAILED) atomic_fetch_add(&mapped, (long)size);
    return map;
}

int __wrap_munmap(void *at, size_t size) {
    atomic_fetch_sub(&mapped, (long)size);
    return __real_munmap(at, size);
}

int __wrap_fstat(int fd, struct stat *st) {
    return fails(STAT, EIO) ? -1 : __real_fstat(fd, st);
}

int __wrap_madvise(void *at, size_t size, int advice) {
    enum { POPULATE_READ = 22, POPULATE_WRITE = 23 };
    if (advice == POPULATE_READ && fails(POPULATE, EFAULT)) return -1;
    if (advice == POPULATE_WRITE && fails(POPULATE, ENOMEM)) return -1;
    return __real_madvise(at, size, advice);
}

/* How much may be locked differs between machines: here, all. */
int __wrap_mlock2(const void *at, size_t size, unsigned flags) {
    (void)at, (void)size, (void)flags;
    return fails(LOCK, ENOMEM) ? -1 : 0;
}

ssize_t __wrap_pread(int fd, void *to, size_t size, off_t at) {
    return fails(READ, EIO) ? -1 : __real_pread(fd, to, size, at);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg) {
    return fails(THREAD, EAGAIN) ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

static size_t entries(const char *folder) {
    DIR *dir = opendir(folder);
    size_t count = 0;
    assert_non_null(dir);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

static hearth_status open_once(const hearth_options *options, hearth_error *err) {
    hearth_engine *engine;
    *err = (hearth_error){HEARTH_OK, ""};
    hearth_status status = hearth_engine_open(MODEL, options, &engine, err);
    assert_true((status == HEARTH_OK) == (engine != NULL));
    hearth_engine_close(&engine);
    return status;
}

static hearth_options *options_for(const char *load) {
    hearth_options *options;
    static const char *const pairs[] = {"ctx", "64", "rows", "8", "threads", "3", "sigbus", "on"};
    assert_int_equal(hearth_options_create(&options, NULL), HEARTH_OK);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i += 2)
        assert_int_equal(hearth_options_set(options, pairs[i], pairs[i + 1], NULL), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "load", load, NULL), HEARTH_OK);
    return options;
}

static void assert_clean(const char *what, long n, size_t live, size_t descriptors) {
    if (alloc_guard_live() != live) fail_msg("%s %ld: %zu bytes leaked", what, n, alloc_guard_live() - live);
    if (entries("/proc/self/fd") != descriptors)
        fail_msg("%s %ld: descriptors leaked, or others' were closed", what, n);
    for (int waited = 0; entries("/proc/self/task") != 3; waited++) { /* ".", "..", ours */
        if (waited == 5000) fail_msg("%s %ld: a thread goes on", what, n);
        usleep(1000); /* a thread that was joined is listed until the system has put it away */
    }
    if (atomic_load(&mapped) != 0) fail_msg("%s %ld: %ld bytes stay mapped", what, n, atomic_load(&mapped));
}

static void each_fails_once(const char *load, const char *lock, const call *kinds, size_t n_kinds) {
    hearth_options *options = options_for(load);
    hearth_error err;
    assert_int_equal(hearth_options_set(options, "lock", lock, NULL), HEARTH_OK);
    assert_int_equal(open_once(options, &err), HEARTH_OK); /* what the process pays once is paid */
    size_t live = alloc_guard_live(), descriptors = entries("/proc/self/fd");
    for (size_t k = 0; k < n_kinds; k++) {
        long calls;
        made[kinds[k]] = 0;
        assert_int_equal(open_once(options, &err), HEARTH_OK);
        calls = made[kinds[k]];
        assert_true(calls > 0);
        for (long n = 1; n <= calls; n++) {
            made[kinds[k]] = 0;
            failing[kinds[k]] = n;
            hearth_status status = open_once(options, &err);
            failing[kinds[k]] = 0;
            if ((status != HEARTH_NO_MEMORY && status != HEARTH_IO) || err.status != status || !err.text[0])
                fail_msg("%s %ld of %ld: %s \"%s\"", names[kinds[k]], n, calls, hearth_status_name(status), err.text);
            assert_clean(names[kinds[k]], n, live, descriptors);
            if (n == 1) assert_int_equal(open_once(options, &err), HEARTH_OK);
        }
    }
    assert_int_equal(open_once(options, &err), HEARTH_OK);
    hearth_options_free(&options);
}

static void each_call_fails_while_weights_are_mapped(void **state) {
    (void)state;
    each_fails_once("map", "off", (const call[]){MAP, STAT, POPULATE, THREAD}, 4);
}

static void each_call_fails_while_weights_are_read(void **state) {
    (void)state;
    each_fails_once("read", "off", (const call[]){MAP, STAT, POPULATE, READ, THREAD}, 5);
}

static void each_lock_fails(void **state) {
    (void)state;
    each_fails_once("map", "on", (const call[]){LOCK, POPULATE}, 2);
    each_fails_once("read", "on", (const call[]){LOCK, READ}, 2);
}

static void each_allocation_fails(void **state) {
    (void)state;
    hearth_options *options = options_for("map");
    hearth_error err;
    assert_int_equal(open_once(options, &err), HEARTH_OK);
    size_t live = alloc_guard_live(), descriptors = entries("/proc/self/fd");
    alloc_guard_reset();
    assert_int_equal(open_once(options, &err), HEARTH_OK);
    long calls = alloc_guard_calls();
    assert_true(calls > 40);
    for (long n = 1; n <= calls; n++) {
        alloc_guard_reset();
        alloc_guard_fail_at(n);
        hearth_status status = open_once(options, &err);
        alloc_guard_reset();
        if (status != HEARTH_NO_MEMORY || err.status != status || !err.text[0])
            fail_msg("allocation %ld of %ld: %s \"%s\"", n, calls, hearth_status_name(status), err.text);
        assert_clean("allocation", n, live, descriptors);
    }
    assert_int_equal(open_once(options, &err), HEARTH_OK);
    hearth_options_free(&options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(each_call_fails_while_weights_are_mapped),
        cmocka_unit_test(each_call_fails_while_weights_are_read),
        cmocka_unit_test(each_lock_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
