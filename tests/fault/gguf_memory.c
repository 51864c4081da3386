/* Every allocation and every system call of opening a split set fails once: each time a named error, nothing leaked,
 * nothing half-open. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "hearth/file.h"
#include "support/alloc_guard.h"
#include "support/gguf_image.h"
#include "support/temp_folder.h"

static void write_shard(const char *path, unsigned no) {
    gguf_image im = {0};
    char name[32];
    gguf_put_header(&im, 3, 2, 4);
    gguf_put_kv_u32(&im, "split.no", no);
    gguf_put_kv_u32(&im, "split.count", 2);
    gguf_put_kv_u32(&im, "split.tensors.count", 4);
    gguf_put_kv_array(&im, "strings", HTH_GGUF_STRING, 1);
    gguf_put_string(&im, NULL, "one");
    for (unsigned t = 0; t < 2; t++) {
        snprintf(name, sizeof name, "shard%u.%u", no, t);
        gguf_put_tensor(&im, name, 1, (const uint64_t[]){8}, HTH_F32, 32 * t);
    }
    gguf_put_padding(&im, 32);
    gguf_put_zeros(&im, 64);
    gguf_image_write(&im, path);
    gguf_image_free(&im);
}

/* The nth of these calls fails; 0: none. */
static int failing_map, failing_stat;
static int maps_live;

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (failing_map > 0 && --failing_map == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *map = __real_mmap(at, size, protection, flags, fd, offset);
    maps_live += map != MAP_FAILED;
    return map;
}

int __wrap_munmap(void *at, size_t size) {
    maps_live--;
    return __real_munmap(at, size);
}

int __wrap_fstat(int fd, struct stat *st) {
    if (failing_stat > 0 && --failing_stat == 0) {
        errno = EIO;
        return -1;
    }
    return __real_fstat(fd, st);
}

static const char *write_set(void) {
    temp_folder_make();
    write_shard(temp_path("s-00001-of-00002.gguf"), 0);
    write_shard(temp_path("s-00002-of-00002.gguf"), 1);
    return temp_path("s-00001-of-00002.gguf");
}

static void each_system_call_fails(void **state) {
    (void)state;
    const char *path = write_set();
    hearth_file *file;
    hearth_error err;
    for (int n = 1; n <= 2; n++) {
        failing_map = n;
        assert_int_equal(hearth_file_open(path, &file, &err), HEARTH_NO_MEMORY);
        assert_non_null(strstr(err.text, n == 1 ? "s-00001" : "s-00002"));
        assert_null(file);
        assert_int_equal(maps_live, 0);
        failing_stat = n;
        assert_int_equal(hearth_file_open(path, &file, &err), HEARTH_IO);
        assert_non_null(strstr(err.text, n == 1 ? "s-00001" : "s-00002"));
        assert_int_equal(maps_live, 0);
    }
    temp_folder_remove();
}

static void each_allocation_fails(void **state) {
    (void)state;
    const char *path = write_set();
    hearth_file *file;
    hearth_error err;
    size_t before = alloc_guard_live();
    alloc_guard_reset();
    assert_int_equal(hearth_file_open(path, &file, &err), HEARTH_OK);
    long calls = alloc_guard_calls();
    hearth_file_close(&file);
    assert_int_equal(alloc_guard_live(), before);
    assert_true(calls >= 15);
    for (long n = 1; n <= calls; n++) {
        alloc_guard_reset();
        alloc_guard_fail_at(n);
        err = (hearth_error){HEARTH_OK, ""};
        hearth_status status = hearth_file_open(path, &file, &err);
        if (status != HEARTH_NO_MEMORY || err.status != HEARTH_NO_MEMORY || !err.text[0])
            fail_msg("allocation %ld of %ld: %s \"%s\"", n, calls, hearth_status_name(status), err.text);
        assert_null(file);
        assert_int_equal(alloc_guard_live(), before);
        assert_int_equal(maps_live, 0);
    }
    alloc_guard_reset();
    temp_folder_remove();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails),
                                       cmocka_unit_test(each_system_call_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
