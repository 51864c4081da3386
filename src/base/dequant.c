#include "base/dequant.h"

#include <assert.h>
#include <string.h>

#include "base/block.h"
#include "base/half.h"

static const int8_t iq4_values[16] = {HTH_IQ4_VALUES};
static const int8_t mxfp4_values[16] = {HTH_MXFP4_VALUES};

/* Element i of 32 in sixteen bytes of nibbles. */
static int nibble(const uint8_t *qs, int i) {
    return qs[i & 15] >> 4 * (i >> 4) & 15;
}

/* Element i of a K block whose bytes hold the nibbles of 32 elements and then of the next 32. */
static int k_nibble(const uint8_t *qs, int i) {
    return qs[i / 64 * 32 + i % 32] >> 4 * (i / 32 % 2) & 15;
}

/* Element i of a K block with two bits an element, four elements a byte, 32 bytes apart. */
static int k_pair(const uint8_t *qs, int i) {
    return qs[i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3;
}

static void f32(const void *src, float *dst, uint64_t n) {
    memcpy(dst, src, n * sizeof *dst);
}

static void f16(const void *src, float *dst, uint64_t n) {
    const unsigned char *p = src;
    for (uint64_t i = 0; i < n; i++) dst[i] = hth_f16_to_f32((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
}

static void bf16(const void *src, float *dst, uint64_t n) {
    const unsigned char *p = src;
    for (uint64_t i = 0; i < n; i++) dst[i] = hth_bf16_to_f32((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
}

/* A function over rows from one over blocks. */
#define ROWS(name, type, block)                                                                                        \
    static void name(const void *src, float *dst, uint64_t n) {                                                        \
        assert(n % block == 0);                                                                                        \
        const type *b = src;                                                                                           \
        for (uint64_t i = 0; i < n / block; i++) name##_block(&b[i], dst + i * block);                                 \
    }

static void q4_0_block(const hth_block_q4_0 *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(nibble(b->qs, i) - 8);
}
ROWS(q4_0, hth_block_q4_0, 32)

static void q4_1_block(const hth_block_q4_1 *b, float *dst) {
    float d = hth_f16_to_f32(b->d), m = hth_f16_to_f32(b->m);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)nibble(b->qs, i) + m;
}
ROWS(q4_1, hth_block_q4_1, 32)

static void q5_0_block(const hth_block_q5_0 *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 32; i++) {
        int q = nibble(b->qs, i) | (int)(b->qh >> i & 1) << 4;
        dst[i] = d * (float)(q - 16);
    }
}
ROWS(q5_0, hth_block_q5_0, 32)

static void q5_1_block(const hth_block_q5_1 *b, float *dst) {
    float d = hth_f16_to_f32(b->d), m = hth_f16_to_f32(b->m);
    for (int i = 0; i < 32; i++) {
        int q = nibble(b->qs, i) | (int)(b->qh >> i & 1) << 4;
        dst[i] = d * (float)q + m;
    }
}
ROWS(q5_1, hth_block_q5_1, 32)

static void q8_0_block(const hth_block_q8_0 *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)b->qs[i];
}
ROWS(q8_0, hth_block_q8_0, 32)

static void iq4_nl_block(const hth_block_iq4_nl *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)iq4_values[nibble(b->qs, i)];
}
ROWS(iq4_nl, hth_block_iq4_nl, 32)

static void mxfp4_block(const hth_block_mxfp4 *b, float *dst) {
    float d = hth_f32_from_bits(hth_mxfp4_scale_bits(b->e));
    for (int i = 0; i < 32; i++) dst[i] = d * (float)mxfp4_values[nibble(b->qs, i)];
}
ROWS(mxfp4, hth_block_mxfp4, 32)

static void q2_k_block(const hth_block_q2_k *b, float *dst) {
    float d = hth_f16_to_f32(b->d), dmin = hth_f16_to_f32(b->dmin);
    for (int i = 0; i < 256; i++) {
        int scale = b->scales[i / 16] & 15, min = b->scales[i / 16] >> 4;
        dst[i] = d * (float)scale * (float)k_pair(b->qs, i) - dmin * (float)min;
    }
}
ROWS(q2_k, hth_block_q2_k, 256)

static void q3_k_block(const hth_block_q3_k *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 256; i++) {
        int q = k_pair(b->qs, i) | (b->hmask[i % 32] >> i / 32 & 1) << 2;
        dst[i] = d * (float)hth_q3_k_scale(b->scales, i / 16) * (float)(q - 4);
    }
}
ROWS(q3_k, hth_block_q3_k, 256)

static void q4_k_block(const hth_block_q4_k *b, float *dst) {
    float d = hth_f16_to_f32(b->d), dmin = hth_f16_to_f32(b->dmin);
    for (int i = 0; i < 256; i++) {
        int scale = hth_k4_scale(b->scales, i / 32), min = hth_k4_min(b->scales, i / 32);
        dst[i] = d * (float)scale * (float)k_nibble(b->qs, i) - dmin * (float)min;
    }
}
ROWS(q4_k, hth_block_q4_k, 256)

static void q5_k_block(const hth_block_q5_k *b, float *dst) {
    float d = hth_f16_to_f32(b->d), dmin = hth_f16_to_f32(b->dmin);
    for (int i = 0; i < 256; i++) {
        int scale = hth_k4_scale(b->scales, i / 32), min = hth_k4_min(b->scales, i / 32);
        int q = k_nibble(b->qs, i) | (b->qh[i % 32] >> i / 32 & 1) << 4;
        dst[i] = d * (float)scale * (float)q - dmin * (float)min;
    }
}
ROWS(q5_k, hth_block_q5_k, 256)

static void q6_k_block(const hth_block_q6_k *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 256; i++) {
        int low = b->ql[i / 128 * 64 + i % 64] >> 4 * (i / 64 % 2) & 15;
        int q = low | k_pair(b->qh, i) << 4;
        dst[i] = d * (float)b->scales[i / 16] * (float)(q - 32);
    }
}
ROWS(q6_k, hth_block_q6_k, 256)

static void iq4_xs_block(const hth_block_iq4_xs *b, float *dst) {
    float d = hth_f16_to_f32(b->d);
    for (int i = 0; i < 256; i++) {
        int value = iq4_values[nibble(b->qs + i / 32 * 16, i % 32)];
        dst[i] = d * (float)hth_iq4_xs_scale(b, i / 32) * (float)value;
    }
}
ROWS(iq4_xs, hth_block_iq4_xs, 256)

hth_dequant *hth_dequant_find(hth_dtype dtype) {
    static hth_dequant *const table[HTH_DTYPE_MAX] = {
        [HTH_F32] = f32,   [HTH_F16] = f16,       [HTH_BF16] = bf16,     [HTH_Q4_0] = q4_0,
        [HTH_Q4_1] = q4_1, [HTH_Q5_0] = q5_0,     [HTH_Q5_1] = q5_1,     [HTH_Q8_0] = q8_0,
        [HTH_Q2_K] = q2_k, [HTH_Q3_K] = q3_k,     [HTH_Q4_K] = q4_k,     [HTH_Q5_K] = q5_k,
        [HTH_Q6_K] = q6_k, [HTH_IQ4_NL] = iq4_nl, [HTH_IQ4_XS] = iq4_xs, [HTH_MXFP4] = mxfp4,
    };
    return (unsigned)dtype < HTH_DTYPE_MAX ? table[dtype] : NULL;
}

void hth_dequant_row(hth_dtype dtype, const void *src, float *dst, uint64_t n) {
    hth_dequant *dequant = hth_dequant_find(dtype);
    assert(dequant);
    dequant(src, dst, n);
}
