/* Mapped files that shrink: with the handler held, reads give zeros and the mapping is marked as lost; everything else
 * that raises SIGBUS goes where it went before. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/map.h"
#include "support/gguf_image.h"
#include "support/gguf_walk.h"
#include "support/temp_folder.h"

#define PAGES 16

static size_t page;

/* A file of PAGES pages of sevens. */
static const char *make_file(const char *name) {
    gguf_image im = {0};
    for (size_t i = 0; i < PAGES * page; i++) gguf_put(&im, "\7", 1);
    const char *path = temp_path(name);
    gguf_image_write(&im, path);
    gguf_image_free(&im);
    return path;
}

static hth_map map_file(const char *path) {
    hth_map map;
    hearth_error err;
    if (hth_map_open(&map, path, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return map;
}

static unsigned read_at(const hth_map *map, size_t at) {
    return *(const volatile unsigned char *)(map->data + at);
}

static void zeros_where_the_file_was(void **state) {
    (void)state;
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    hth_map map = map_file(make_file("a")), other = map_file(make_file("b"));
    assert_int_equal(read_at(&map, 0), 7);
    assert_int_equal(truncate(temp_path("a"), (off_t)(5 * page)), 0);
    assert_false(hth_map_lost(&map));
    assert_int_equal(read_at(&map, 9 * page + 5), 0);
    assert_true(hth_map_lost(&map));
    assert_false(hth_map_lost(&other));
    for (size_t i = 0; i < PAGES; i++) assert_int_equal(read_at(&map, i * page + i), i < 5 ? 7 : 0);
    assert_int_equal(read_at(&map, PAGES * page - 1), 0);
    assert_int_equal(read_at(&other, PAGES * page - 1), 7);
    hth_map_close(&map);
    hth_map again = map_file(make_file("a"));
    assert_false(hth_map_lost(&again));
    hth_map_close(&again);
    hth_map_close(&other);
    hth_sigbus_release();
}

static void a_directory_in_use(void **state) {
    (void)state;
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    gguf_image im = {0};
    const uint64_t n = 4 * page;
    gguf_put_header(&im, 3, 1, 0);
    gguf_put_tensor(&im, "t", 1, &n, HTH_F32, 0);
    gguf_put_padding(&im, 32);
    gguf_put_zeros(&im, 4 * n);
    gguf_image_write(&im, temp_path("model.gguf"));
    gguf_image_free(&im);
    hth_gguf *g;
    hearth_error err;
    assert_int_equal(hth_gguf_open(temp_path("model.gguf"), &g, &err), HEARTH_OK);
    gguf_walk(g);
    assert_null(hth_gguf_lost_file(g));
    assert_int_equal(truncate(temp_path("model.gguf"), (off_t)page), 0);
    gguf_walk(g);
    assert_ptr_equal(hth_gguf_lost_file(g), hth_gguf_file_at(g, 0));
    hth_gguf_close(&g);
    hth_sigbus_release();
}

static void *read_all(void *arg) {
    const hth_map *map = arg;
    uintptr_t sum = 0;
    for (size_t i = 0; i < map->size; i += 64) sum += read_at(map, i);
    return (void *)sum;
}

static void many_threads_and_mappings(void **state) {
    (void)state;
    enum { MAPS = 150, THREADS = 4 };
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    static hth_map maps[MAPS];
    make_file("many");
    for (int i = 0; i < MAPS; i++) maps[i] = map_file(temp_path("many"));
    assert_int_equal(truncate(temp_path("many"), (off_t)page), 0);
    for (int round = 0; round < MAPS; round += 10) {
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, read_all, &maps[round]), 0);
        for (int t = 0; t < THREADS; t++) {
            void *sum;
            assert_int_equal(pthread_join(threads[t], &sum), 0);
            assert_int_equal((uintptr_t)sum, 7 * page / 64);
        }
    }
    for (int i = 0; i < MAPS; i++) {
        assert_int_equal(hth_map_lost(&maps[i]), i % 10 == 0);
        hth_map_close(&maps[i]);
    }
    hth_sigbus_release();
}

static sigjmp_buf caught;

static void jump(int signal_number) {
    (void)signal_number;
    siglongjmp(caught, 1);
}

/* A mapping that nobody watches, and whose file is gone. */
static volatile unsigned char *stranger(const char *name) {
    FILE *f = fopen(make_file(name), "rb+");
    assert_non_null(f);
    volatile unsigned char *data = mmap(NULL, page, PROT_READ, MAP_SHARED, fileno(f), 0);
    assert_true(data != MAP_FAILED);
    assert_int_equal(ftruncate(fileno(f), 0), 0);
    fclose(f);
    return data;
}

static void others_faults_go_to_their_handler(void **state) {
    (void)state;
    struct sigaction own = {.sa_handler = jump}, before, now;
    sigaction(SIGBUS, &own, &before);
    volatile unsigned char *data = stranger("stranger");
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    volatile int jumps = 0;
    if (sigsetjmp(caught, 1)) jumps++;
    else (void)*data;
    assert_int_equal(jumps, 1);
    if (sigsetjmp(caught, 1)) jumps++;
    else raise(SIGBUS);
    assert_int_equal(jumps, 2);
    hth_sigbus_release();
    sigaction(SIGBUS, NULL, &now);
    assert_true(now.sa_handler != jump);
    hth_sigbus_release();
    sigaction(SIGBUS, NULL, &now);
    assert_ptr_equal(now.sa_handler, jump);
    sigaction(SIGBUS, &before, NULL);
    munmap((void *)(uintptr_t)data, page);
}

enum death { UNWATCHED, SENT, NOT_HELD };

/* The signal that ends a child which has the default action and does the one thing; 0: none does. */
static int signal_of_child(enum death how) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(SIGBUS, &standard, NULL);
        if (how != NOT_HELD) hth_sigbus_hold(NULL);
        if (how == UNWATCHED) {
            (void)*stranger("child");
        } else if (how == SENT) {
            raise(SIGBUS);
        } else {
            hth_map map = map_file(make_file("child"));
            if (truncate(temp_path("child"), 0) == 0) read_at(&map, 0);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void without_us_it_ends_the_process(void **state) {
    (void)state;
    assert_int_equal(signal_of_child(UNWATCHED), SIGBUS);
    assert_int_equal(signal_of_child(SENT), SIGBUS);
    assert_int_equal(signal_of_child(NOT_HELD), SIGBUS);
}

static void a_handler_over_ours_stays(void **state) {
    (void)state;
    struct sigaction own = {.sa_handler = jump}, before, now;
    sigaction(SIGBUS, NULL, &before);
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    struct sigaction ours;
    sigaction(SIGBUS, &own, &ours);
    hth_sigbus_release();
    sigaction(SIGBUS, NULL, &now);
    assert_ptr_equal(now.sa_handler, jump);
    sigaction(SIGBUS, &ours, NULL); /* it leaves, and restores what it found */
    assert_int_equal(hth_sigbus_hold(NULL), HEARTH_OK);
    hth_map map = map_file(make_file("c"));
    assert_int_equal(truncate(temp_path("c"), 0), 0);
    assert_int_equal(read_at(&map, 0), 0);
    hth_map_close(&map);
    hth_sigbus_release();
    sigaction(SIGBUS, NULL, &now);
    assert_ptr_equal(now.sa_handler, before.sa_handler);
}

static int set_up(void **state) {
    (void)state;
    page = (size_t)sysconf(_SC_PAGESIZE);
    temp_folder_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    temp_folder_remove();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_where_the_file_was),       cmocka_unit_test(a_directory_in_use),
        cmocka_unit_test(many_threads_and_mappings),      cmocka_unit_test(others_faults_go_to_their_handler),
        cmocka_unit_test(without_us_it_ends_the_process), cmocka_unit_test(a_handler_over_ours_stays),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
