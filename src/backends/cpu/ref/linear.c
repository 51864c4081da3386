/* hth_linear_fn in its defined order, as plainly as it can be said. */
#include <math.h>
#include <string.h>

#include "backends/cpu/ref/ref.h"
#include "backends/cpu/ref/unpack.h"
#include "base/half.h"

enum { ROWS = 64 }; /* rows whose sums are carried while a column's blocks are unpacked once */

static void finish(const hth_linear *a, int64_t r, int64_t c, float acc) {
    if (a->bias) acc = acc + a->bias[c];
    if (a->add) acc = acc + a->add[r * a->ldadd + c];
    a->y[r * a->ldy + c] = acc;
}

/* The exact integer part of block b of row r, then its one float. */
static float block_value(const ref_block *w, const hth_qact *x, int64_t r, int64_t b) {
    const int8_t *q = x->q + r * x->q_stride + b * w->n;
    int32_t s = 0, m = 0;
    for (int j = 0; j < w->n / w->sub; j++) {
        int32_t dot = 0, sum = 0;
        for (int i = j * w->sub; i < (j + 1) * w->sub; i++) {
            dot += w->w[i] * q[i];
            sum += q[i];
        }
        s += w->scale[j] * dot;
        m += w->min[j] * sum;
    }
    return w->has_min ? fmaf((float)s, w->d, w->m * (float)m) : (float)s * w->d;
}

static void linear_quantized(const hth_linear *a, hth_dtype dtype, int64_t c0, int64_t c1, int64_t r0, int64_t r1) {
    ref_unpack_fn *unpack = hth_ref_unpacker(dtype);
    const int bytes = hth_dtype_find(dtype)->bytes;
    const hth_qact *x = a->q;
    for (int64_t c = c0; c < c1; c++)
        for (int64_t r = r0; r < r1; r += ROWS) {
            int64_t rows = r1 - r < ROWS ? r1 - r : ROWS;
            float acc[ROWS] = {0};
            for (int64_t b = 0; b < x->blocks; b++) {
                ref_block w = {.n = 0};
                unpack((const uint8_t *)a->w + c * a->row_bytes + b * bytes, &w);
                for (int64_t i = 0; i < rows; i++)
                    acc[i] = fmaf(block_value(&w, x, r + i, b), x->d[(r + i) * x->blocks + b], acc[i]);
            }
            for (int64_t i = 0; i < rows; i++) finish(a, r + i, c, acc[i]);
        }
}

#define LINEAR_QUANTIZED(name, dtype)                                                                                  \
    static void name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {             \
        (void)scratch;                                                                                                 \
        linear_quantized(a, dtype, c0, c1, r0, r1);                                                                    \
    }
LINEAR_QUANTIZED(linear_q4_0, HTH_Q4_0)
LINEAR_QUANTIZED(linear_q4_1, HTH_Q4_1)
LINEAR_QUANTIZED(linear_q5_0, HTH_Q5_0)
LINEAR_QUANTIZED(linear_q5_1, HTH_Q5_1)
LINEAR_QUANTIZED(linear_q8_0, HTH_Q8_0)
LINEAR_QUANTIZED(linear_q2_k, HTH_Q2_K)
LINEAR_QUANTIZED(linear_q3_k, HTH_Q3_K)
LINEAR_QUANTIZED(linear_q4_k, HTH_Q4_K)
LINEAR_QUANTIZED(linear_q5_k, HTH_Q5_K)
LINEAR_QUANTIZED(linear_q6_k, HTH_Q6_K)
LINEAR_QUANTIZED(linear_iq4_nl, HTH_IQ4_NL)
LINEAR_QUANTIZED(linear_iq4_xs, HTH_IQ4_XS)
LINEAR_QUANTIZED(linear_mxfp4, HTH_MXFP4)

static uint16_t bits16(const uint8_t *w, int64_t i) {
    return (uint16_t)(w[2 * i] | w[2 * i + 1] << 8);
}

static float value_f32(const uint8_t *w, int64_t i) {
    float v;
    memcpy(&v, w + 4 * i, sizeof v);
    return v;
}

static float value_f16(const uint8_t *w, int64_t i) {
    return hth_f16_to_f32(bits16(w, i));
}

static float value_bf16(const uint8_t *w, int64_t i) {
    return hth_bf16_to_f32(bits16(w, i));
}

static float striped_dot(float value(const uint8_t *, int64_t), const uint8_t *w, const float *x, int64_t k) {
    float p[16] = {0};
    int64_t i = 0;
    for (; i < k; i++) p[i % 16] = fmaf(value(w, i), x[i], p[i % 16]);
    for (; i % 16; i++) p[i % 16] = fmaf(0, 0, p[i % 16]);
    for (int step = 8; step; step /= 2)
        for (int s = 0; s < step; s++) p[s] = p[s] + p[s + step];
    return p[0];
}

#define LINEAR_FLOAT(name, value)                                                                                      \
    static void name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {             \
        (void)scratch;                                                                                                 \
        for (int64_t c = c0; c < c1; c++)                                                                              \
            for (int64_t r = r0; r < r1; r++)                                                                          \
                finish(a, r, c,                                                                                        \
                       striped_dot(value, (const uint8_t *)a->w + c * a->row_bytes, a->f + r * a->ldf, a->k));         \
    }
LINEAR_FLOAT(linear_f32, value_f32)
LINEAR_FLOAT(linear_f16, value_f16)
LINEAR_FLOAT(linear_bf16, value_bf16)

void hth_ref_init_linear(hth_kernels *t) {
    t->linear[HTH_F32] = linear_f32;
    t->linear[HTH_F16] = linear_f16;
    t->linear[HTH_BF16] = linear_bf16;
    t->linear[HTH_Q4_0] = linear_q4_0;
    t->linear[HTH_Q4_1] = linear_q4_1;
    t->linear[HTH_Q5_0] = linear_q5_0;
    t->linear[HTH_Q5_1] = linear_q5_1;
    t->linear[HTH_Q8_0] = linear_q8_0;
    t->linear[HTH_Q2_K] = linear_q2_k;
    t->linear[HTH_Q3_K] = linear_q3_k;
    t->linear[HTH_Q4_K] = linear_q4_k;
    t->linear[HTH_Q5_K] = linear_q5_k;
    t->linear[HTH_Q6_K] = linear_q6_k;
    t->linear[HTH_IQ4_NL] = linear_iq4_nl;
    t->linear[HTH_IQ4_XS] = linear_iq4_xs;
    t->linear[HTH_MXFP4] = linear_mxfp4;
}
