/* The store of expert weights: addresses, and leases given back exactly once. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "experts/experts.h"

static unsigned char memory[4096];

/* Layer 0: eight experts whose gate and up lie in one stack; layer 1: three. */
static hth_expert_store *make(void) {
    const hth_expert_layer layers[2] = {
        {.base = {memory, memory + 16, memory + 1024}, .stride = {32, 32, 64}, .experts = 8},
        {.base = {memory + 2048, memory + 2304, memory + 2560}, .stride = {8, 16, 24}, .experts = 3},
    };
    hth_expert_store *store;
    assert_int_equal(hth_expert_store_create(layers, 2, &store, NULL), HEARTH_OK);
    return store;
}

static void addresses(void **state) {
    (void)state;
    hth_expert_store *store = make();
    hth_expert_lease leases[3];
    hth_expert_acquire(store, 0, (const int32_t[]){0, 3, 7}, 3, leases);
    assert_int_equal(hth_expert_leases(store), 3);
    assert_int_equal(leases[1].expert, 3);
    assert_ptr_equal(leases[0].matrix[HTH_EXPERT_GATE], memory);
    assert_ptr_equal(leases[1].matrix[HTH_EXPERT_GATE], memory + 96);
    assert_ptr_equal(leases[1].matrix[HTH_EXPERT_UP], memory + 112);
    assert_ptr_equal(leases[2].matrix[HTH_EXPERT_DOWN], memory + 1024 + 7 * 64);
    hth_expert_release(store, leases, 3);
    assert_int_equal(hth_expert_leases(store), 0);
    for (int m = 0; m < HTH_EXPERT_MATRICES; m++) assert_null(leases[1].matrix[m]);
    hth_expert_store_free(&store);
    assert_null(store);
    hth_expert_store_free(&store);
}

/* One expert leased twice, layers leased side by side, given back in another order and grouping. */
static void many_leases(void **state) {
    (void)state;
    hth_expert_store *store = make();
    hth_expert_lease a[2], b[2], c[1];
    hth_expert_acquire(store, 0, (const int32_t[]){2, 5}, 2, a);
    hth_expert_acquire(store, 0, (const int32_t[]){1, 5}, 2, b);
    hth_expert_acquire(store, 1, (const int32_t[]){2}, 1, c);
    hth_expert_acquire(store, 1, NULL, 0, NULL);
    assert_int_equal(hth_expert_leases(store), 5);
    assert_ptr_equal(a[1].matrix[0], b[1].matrix[0]);
    assert_ptr_equal(c[0].matrix[HTH_EXPERT_DOWN], memory + 2560 + 48);
    hth_expert_release(store, c, 1);
    hth_expert_release(store, &b[1], 1);
    hth_expert_release(store, &b[0], 1);
    hth_expert_release(store, a, 2);
    assert_int_equal(hth_expert_leases(store), 0);
    hth_expert_store_free(&store);
}

/* ---- What is our own fault is asserted --------------------------------------------------------------------------- */

static void release_twice(hth_expert_store *store, hth_expert_lease *leases) {
    hth_expert_acquire(store, 0, (const int32_t[]){2, 5}, 2, leases);
    hth_expert_release(store, leases, 2);
    hth_expert_release(store, leases, 1);
}
/* A copy of a lease does not give it back again. */
static void release_a_copy(hth_expert_store *store, hth_expert_lease *leases) {
    hth_expert_acquire(store, 0, (const int32_t[]){2}, 1, leases);
    leases[1] = leases[0];
    hth_expert_release(store, leases, 2);
}
static void keep_one(hth_expert_store *store, hth_expert_lease *leases) {
    hth_expert_acquire(store, 1, (const int32_t[]){1, 2}, 2, leases);
    hth_expert_release(store, leases, 1);
    hth_expert_store_free(&store);
}
static void beyond_the_end(hth_expert_store *store, hth_expert_lease *leases) {
    hth_expert_acquire(store, 1, (const int32_t[]){3}, 1, leases);
}
static void out_of_order(hth_expert_store *store, hth_expert_lease *leases) {
    hth_expert_acquire(store, 1, (const int32_t[]){1, 1}, 2, leases);
}
static void no_such_layer(hth_expert_store *store, hth_expert_lease *leases) {
    hth_expert_acquire(store, 2, (const int32_t[]){0}, 1, leases);
}

static void misuse_is_fatal(void **state) {
    (void)state;
    void (*const misuses[])(hth_expert_store * store, hth_expert_lease * leases) = {
        release_twice, release_a_copy, keep_one, beyond_the_end, out_of_order, no_such_layer};
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            hth_expert_lease leases[2];
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO); /* the assert's text */
            misuses[i](make(), leases);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) fail_msg("misuse %zu went through", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(many_leases),
        cmocka_unit_test(misuse_is_fatal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
