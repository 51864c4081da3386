#include <math.h>
#include <string.h>

#include "backends/cpu/ref/ref.h"

/* Magnitudes compare like their bit patterns, and a NaN is above every number. */
static float larger_magnitude(float a, float b) {
    uint32_t ua, ub;
    memcpy(&ua, &a, sizeof ua);
    memcpy(&ub, &b, sizeof ub);
    return (ub & 0x7fffffff) > (ua & 0x7fffffff) ? fabsf(b) : fabsf(a);
}

static void quantize_block(const float *x, int n, int8_t *q, float *d) {
    float amax = 0;
    for (int i = 0; i < n; i++) amax = larger_magnitude(amax, x[i]);
    if (amax < 0x1p-100f) {
        memset(q, 0, (size_t)n);
        *d = 0;
        return;
    }
    *d = amax / 127;
    float id = 127 / amax;
    for (int i = 0; i < n; i++) {
        float t = x[i] * id;
        t = t < 127 ? t : 127;
        t = t > -127 ? t : -127;
        q[i] = (int8_t)nearbyintf(t);
    }
}

static int16_t sum(const int8_t *q, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += q[i];
    return (int16_t)s;
}

static void quantize(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out) {
    for (int64_t r = row0; r < row1; r++) {
        int8_t *q = out->q + r * out->q_stride;
        for (int64_t b = 0; b < out->blocks; b++)
            quantize_block(x + r * ldx + b * out->block, out->block, q + b * out->block, &out->d[r * out->blocks + b]);
        memset(q + out->k, 0, (size_t)(out->q_stride - out->k));
        for (int64_t j = 0; j < out->k / 16; j++) out->sum16[r * out->sum16_stride + j] = sum(q + 16 * j, 16);
        for (int64_t j = 0; j < out->k / 32; j++) out->sum32[r * out->sum32_stride + j] = sum(q + 32 * j, 32);
    }
}

void hth_ref_init_quantize(hth_kernels *t) {
    t->quantize32 = t->quantize256 = quantize;
}
