/* hth_route: which experts a row goes to and with what weight, against the definition in double precision; ties, and
 * logits that are not finite. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/kernels.h"
#include "program/ops.h"

enum { MOST = 300 };

static uint32_t seed = 12345;

static float draw(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / (float)(1 << 24) * 20 - 10;
}

/* Whether i goes before j: larger, or equal and of lower index. */
static bool is_before(const float *z, int i, int j) {
    return z[i] > z[j] || (z[i] == z[j] && i < j);
}

static void check(const float *z, int n, int used, int kind) {
    float out[2 * MOST], scratch[MOST];
    assert_true(hth_route(z, n, used, kind, out, scratch));
    double all = 0, chosen = 0, largest = -INFINITY;
    bool is_chosen[MOST] = {false};
    for (int i = 0; i < n; i++) largest = fmax(largest, (double)z[i]);
    int count = 0;
    for (int i = 0; i < n; i++) {
        int before = 0;
        for (int j = 0; j < n; j++) before += j != i && is_before(z, j, i);
        is_chosen[i] = before < used;
        all += exp((double)z[i] - largest);
        if (!is_chosen[i]) continue;
        chosen += exp((double)z[i] - largest);
        if (out[count] != (float)i)
            fail_msg("n %d used %d: place %d is %g, not %d", n, used, count, (double)out[count], i);
        count++;
    }
    assert_int_equal(count, used);
    for (int k = 0; k < used; k++) {
        double p = exp((double)z[(int)out[k]] - largest), want = p / all;
        if (kind == HTH_ROUTER_OVER_CHOSEN) want = p / chosen;
        if (kind == HTH_ROUTER_NORMALIZED) want = want / fmax(chosen / all, 0x1p-14);
        if (!(fabs((double)out[used + k] - want) <= 2e-6 * want + 1e-44))
            fail_msg("n %d used %d kind %d: weight %d is %g, not %g", n, used, kind, k, (double)out[used + k], want);
    }
}

static void random_logits(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 3, 8, 15, 16, 17, 32, 33, 60, 128, 256, 300};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int used = 1; used <= counts[c]; used += used < 10 ? 1 : 37)
            for (int kind = 0; kind < HTH_ROUTER_KINDS; kind++) {
                float z[MOST];
                for (int i = 0; i < counts[c]; i++) z[i] = draw();
                check(z, counts[c], used, kind);
            }
}

/* Few different values, so that ties fall across the edge of the choice; both zeros are equal. */
static void ties(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        float z[40];
        for (int i = 0; i < 40; i++) z[i] = floorf(draw() / 5);
        for (int i = 0; i < 40; i += 3) z[i] = z[i] == 0 ? -0.0f : z[i];
        check(z, 40, 1 + round % 40, round % HTH_ROUTER_KINDS);
    }
    float z[16], out[8], scratch[16];
    for (int i = 0; i < 16; i++) z[i] = 1;
    assert_true(hth_route(z, 16, 4, HTH_ROUTER_NORMALIZED, out, scratch));
    for (int k = 0; k < 4; k++) {
        assert_true(out[k] == (float)k);
        assert_true(out[4 + k] == 0.25f);
    }
}

/* Far below the largest a weight is zero, and the smallest sum is not divided by. */
static void extremes(void **state) {
    (void)state;
    float z[4] = {-3e38f, 3e38f, 0, -1}, out[8], scratch[4];
    for (int kind = 0; kind < HTH_ROUTER_KINDS; kind++) {
        assert_true(hth_route(z, 4, 2, kind, out, scratch));
        assert_true(out[0] == 1 && out[1] == 2 && out[2] == 1 && out[3] == 0);
    }
    float many[MOST], one[2], room[MOST];
    for (int i = 0; i < MOST; i++) many[i] = (float)i * 1e-6f;
    assert_true(hth_route(many, MOST, 1, HTH_ROUTER_NORMALIZED, one, room));
    assert_true(one[0] == MOST - 1 && one[1] == 1);
}

static void not_finite(void **state) {
    (void)state;
    static const float bad[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    for (int b = 0; b < 3; b++)
        for (int at = 0; at < 20; at++)
            for (int kind = 0; kind < HTH_ROUTER_KINDS; kind++) {
                float z[20], out[10], scratch[20];
                for (int i = 0; i < 20; i++) z[i] = draw();
                z[at] = bad[b];
                assert_false(hth_route(z, 20, 5, kind, out, scratch));
                for (int k = 0; k < 5; k++) assert_true(out[k] == (float)k && isnan(out[5 + k]));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_logits),
        cmocka_unit_test(ties),
        cmocka_unit_test(extremes),
        cmocka_unit_test(not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
