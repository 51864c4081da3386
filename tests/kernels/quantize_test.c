/* hth_quantize_fn: every tier against ref, and ref's own edges. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "kernels/check.h"

typedef enum mode { RANDOM, TIES, TINY, ANY, ZERO, WITH_NAN, WITH_INFINITY, MODES } mode;
static const char *const modes[MODES] = {"random", "ties", "tiny", "any", "zero", "nan", "infinity"};

static float value(check *c, mode m, int64_t i) {
    switch (m) {
    case TIES: return i % 32 == 0 ? 127 : (float)(check_below(c, 253) - 126) + 0.5f; /* amax 127: q is x, halves tie */
    case TINY: return check_float(c, -1, 1) * 0x1p-99f;                              /* about the smallest amax kept */
    case ANY: return check_any_float(c);
    case ZERO: return check_below(c, 2) ? 0.0f : -0.0f;
    case WITH_NAN: return check_below(c, 50) ? check_float(c, -1, 1) : NAN;
    case WITH_INFINITY: return check_below(c, 50) ? check_float(c, -1, 1) : check_below(c, 2) ? INFINITY : -INFINITY;
    default: return check_float(c, -8, 8);
    }
}

static void compare(check *c, int block, mode m, int index) {
    if (!check_begin(c, "quantize%d %s #%d", block, modes[m], index)) return;
    int64_t rows = 1 + check_below(c, 5), k = block * (1 + check_below(c, 9)), ldx = k + check_below(c, 5);
    int64_t row0 = check_below(c, rows), row1 = row0 + 1 + check_below(c, rows - row0);
    check_buffer x = check_alloc((size_t)(rows * ldx - (ldx - k)) * sizeof(float), index & 1), out[2];
    for (size_t i = 0; i < x.n / sizeof(float); i++) ((float *)x.at)[i] = value(c, m, (int64_t)i % ldx);
    hth_qact a[2];
    for (int i = 0; i < 2; i++) {
        out[i] = check_alloc(hth_qact_bytes(rows, k), index & 1);
        hth_qact_carve(&a[i], rows, k, block, out[i].at);
        const hth_kernels *t = i ? c->tier : c->ref;
        (block == 32 ? t->quantize32 : t->quantize256)((const float *)x.at, ldx, row0, row1, &a[i]);
    }
    if (check_floats(c, a[0].d, a[1].d, rows * a[0].blocks, a[0].blocks)) {
        /* NaN payloads are free; all else, also what lies outside the rows, is the same byte for byte. */
        memcpy(a[1].d, a[0].d, (size_t)(rows * a[0].blocks) * sizeof(float));
        check_same(c, "areas", out[0].at, out[1].at, out[0].n);
    }
    for (int i = 0; i < 2; i++) check_free(&out[i]);
    check_free(&x);
}

static void ref_edges(check *c) {
    if (!check_begin(c, "quantize edges")) return;
    _Alignas(64) uint8_t area[512];
    float x[32] = {[3] = 254, [4] = -254, [5] = 1, [6] = 3, [7] = -1};
    hth_qact a;
    hth_qact_carve(&a, 1, 32, 32, area);
    c->ref->quantize32(x, 32, 0, 1, &a);
    if (a.d[0] != 2 || a.q[3] != 127 || a.q[4] != -127) check_fail(c, "amax maps to 127");
    if (a.q[5] != 0 || a.q[6] != 2 || a.q[7] != 0) check_fail(c, "ties go to even");
    if (a.sum32[0] != 2 || a.sum16[0] != 2 || a.sum16[1] != 0) check_fail(c, "sums");
    x[9] = NAN;
    c->ref->quantize32(x, 32, 0, 1, &a);
    if (!isnan(a.d[0])) check_fail(c, "a NaN poisons the scale");
    x[9] = -INFINITY;
    c->ref->quantize32(x, 32, 0, 1, &a);
    if (a.d[0] != INFINITY) check_fail(c, "an infinity makes the scale infinite");
    for (int i = 0; i < 32; i++) x[i] = i & 1 ? 0x1p-101f : -0x1p-101f;
    c->ref->quantize32(x, 32, 0, 1, &a);
    if (a.d[0] != 0 || a.q[1] != 0) check_fail(c, "a block below 2^-100 is zero");
}

static void run(check *c) {
    if (c->bench) return;
    if (c->tier == c->ref) {
        ref_edges(c);
        return;
    }
    for (int m = 0; m < MODES; m++)
        for (int i = 0; i < 20; i++) {
            if (c->tier->quantize32 != c->base->quantize32) compare(c, 32, (mode)m, i);
            if (c->tier->quantize256 != c->base->quantize256) compare(c, 256, (mode)m, i);
        }
}

int main(int argc, char **argv) {
    return check_main(argc, argv, "quantize", run);
}
