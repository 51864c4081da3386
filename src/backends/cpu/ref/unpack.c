/* One function a format, each with the bounds of its S and M (activations are -127..127): all far inside int32, so the
 * sums are exact in any order. */
#include "backends/cpu/ref/unpack.h"

#include <stddef.h>
#include <string.h>

#include "base/block.h"
#include "base/half.h"

static const int8_t iq4_values[16] = {HTH_IQ4_VALUES};
static const int8_t mxfp4_values[16] = {HTH_MXFP4_VALUES};

/* ---- Blocks of 32: one sub-block with scale 1 ---- */

static void plain32(ref_block *out, uint16_t d) {
    out->n = out->sub = 32;
    out->scale[0] = 1;
    out->d = hth_f16_to_f32(d);
}

static void minimum32(ref_block *out, uint16_t m) {
    out->has_min = true;
    out->min[0] = 1;
    out->m = hth_f16_to_f32(m);
}

static int nibble(const uint8_t *qs, int i) {
    return qs[i & 15] >> 4 * (i >> 4) & 15;
}

static int five_bits(const uint8_t *qs, uint32_t qh, int i) {
    return nibble(qs, i) | (int)(qh >> i & 1) << 4;
}

/* |S| <= 32 * 8 * 127 = 32,512 */
static void unpack_q4_0(const void *block, ref_block *out) {
    const hth_block_q4_0 *b = block;
    plain32(out, b->d);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)(nibble(b->qs, i) - 8);
}

/* |S| <= 32 * 15 * 127 = 60,960; |M| <= 4,064 */
static void unpack_q4_1(const void *block, ref_block *out) {
    const hth_block_q4_1 *b = block;
    plain32(out, b->d);
    minimum32(out, b->m);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)nibble(b->qs, i);
}

/* |S| <= 32 * 16 * 127 = 65,024 */
static void unpack_q5_0(const void *block, ref_block *out) {
    const hth_block_q5_0 *b = block;
    plain32(out, b->d);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)(five_bits(b->qs, b->qh, i) - 16);
}

/* |S| <= 32 * 31 * 127 = 125,984; |M| <= 4,064 */
static void unpack_q5_1(const void *block, ref_block *out) {
    const hth_block_q5_1 *b = block;
    plain32(out, b->d);
    minimum32(out, b->m);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)five_bits(b->qs, b->qh, i);
}

/* |S| <= 32 * 128 * 127 = 520,192: a file may hold -128 */
static void unpack_q8_0(const void *block, ref_block *out) {
    const hth_block_q8_0 *b = block;
    plain32(out, b->d);
    memcpy(out->w, b->qs, 32);
}

/* |S| <= 32 * 127 * 127 = 516,128 */
static void unpack_iq4_nl(const void *block, ref_block *out) {
    const hth_block_iq4_nl *b = block;
    plain32(out, b->d);
    for (int i = 0; i < 32; i++) out->w[i] = iq4_values[nibble(b->qs, i)];
}

/* |S| <= 32 * 12 * 127 = 48,768 */
static void unpack_mxfp4(const void *block, ref_block *out) {
    const hth_block_mxfp4 *b = block;
    plain32(out, 0);
    out->d = hth_f32_from_bits(hth_mxfp4_scale_bits(b->e));
    for (int i = 0; i < 32; i++) out->w[i] = mxfp4_values[nibble(b->qs, i)];
}

/* ---- Blocks of 256 ---- */

static void plain256(ref_block *out, int sub, uint16_t d) {
    out->n = 256;
    out->sub = sub;
    out->d = hth_f16_to_f32(d);
}

static void minimum256(ref_block *out, uint16_t dmin) {
    out->has_min = true;
    out->m = -hth_f16_to_f32(dmin);
}

/* Four elements a byte, 32 bytes apart. */
static int two_bits(const uint8_t *qs, int i) {
    return qs[32 * (i >> 7) + (i & 31)] >> 2 * (i >> 5 & 3) & 3;
}

/* The nibbles of 32 elements and then of the next 32. */
static int k_nibble(const uint8_t *qs, int i) {
    return qs[32 * (i >> 6) + (i & 31)] >> 4 * (i >> 5 & 1) & 15;
}

/* |S| <= 256 * 15 * 3 * 127 = 1,463,040; |M| <= 256 * 15 * 127 = 487,680 */
static void unpack_q2_k(const void *block, ref_block *out) {
    const hth_block_q2_k *b = block;
    plain256(out, 16, b->d);
    minimum256(out, b->dmin);
    for (int j = 0; j < 16; j++) {
        out->scale[j] = b->scales[j] & 15;
        out->min[j] = b->scales[j] >> 4;
    }
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)two_bits(b->qs, i);
}

/* |S| <= 256 * 32 * 4 * 127 = 4,161,536 */
static void unpack_q3_k(const void *block, ref_block *out) {
    const hth_block_q3_k *b = block;
    plain256(out, 16, b->d);
    for (int j = 0; j < 16; j++) out->scale[j] = (int16_t)hth_q3_k_scale(b->scales, j);
    for (int i = 0; i < 256; i++)
        out->w[i] = (int8_t)((two_bits(b->qs, i) | (b->hmask[i & 31] >> (i >> 5) & 1) << 2) - 4);
}

static void k4_scales(const uint8_t scales[12], ref_block *out) {
    for (int j = 0; j < 8; j++) {
        out->scale[j] = (int16_t)hth_k4_scale(scales, j);
        out->min[j] = (int16_t)hth_k4_min(scales, j);
    }
}

/* |S| <= 256 * 63 * 15 * 127 = 30,723,840; |M| <= 256 * 63 * 127 = 2,048,256 */
static void unpack_q4_k(const void *block, ref_block *out) {
    const hth_block_q4_k *b = block;
    plain256(out, 32, b->d);
    minimum256(out, b->dmin);
    k4_scales(b->scales, out);
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)k_nibble(b->qs, i);
}

/* |S| <= 256 * 63 * 31 * 127 = 63,495,936; |M| <= 256 * 63 * 127 = 2,048,256 */
static void unpack_q5_k(const void *block, ref_block *out) {
    const hth_block_q5_k *b = block;
    plain256(out, 32, b->d);
    minimum256(out, b->dmin);
    k4_scales(b->scales, out);
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)(k_nibble(b->qs, i) | (b->qh[i & 31] >> (i >> 5) & 1) << 4);
}

/* |S| <= 256 * 128 * 32 * 127 = 133,169,152 */
static void unpack_q6_k(const void *block, ref_block *out) {
    const hth_block_q6_k *b = block;
    plain256(out, 16, b->d);
    for (int j = 0; j < 16; j++) out->scale[j] = b->scales[j];
    for (int i = 0; i < 256; i++) {
        int low = b->ql[64 * (i >> 7) + (i & 63)] >> 4 * (i >> 6 & 1) & 15;
        out->w[i] = (int8_t)((low | two_bits(b->qh, i) << 4) - 32);
    }
}

/* |S| <= 256 * 32 * 127 * 127 = 132,128,768 */
static void unpack_iq4_xs(const void *block, ref_block *out) {
    const hth_block_iq4_xs *b = block;
    plain256(out, 32, b->d);
    for (int j = 0; j < 8; j++) out->scale[j] = (int16_t)hth_iq4_xs_scale(b, j);
    for (int i = 0; i < 256; i++) out->w[i] = iq4_values[nibble(b->qs + 16 * (i >> 5), i & 31)];
}

ref_unpack_fn *hth_ref_unpacker(hth_dtype dtype) {
    static ref_unpack_fn *const table[HTH_DTYPE_MAX] = {
        [HTH_Q4_0] = unpack_q4_0,   [HTH_Q4_1] = unpack_q4_1,     [HTH_Q5_0] = unpack_q5_0,
        [HTH_Q5_1] = unpack_q5_1,   [HTH_Q8_0] = unpack_q8_0,     [HTH_Q2_K] = unpack_q2_k,
        [HTH_Q3_K] = unpack_q3_k,   [HTH_Q4_K] = unpack_q4_k,     [HTH_Q5_K] = unpack_q5_k,
        [HTH_Q6_K] = unpack_q6_k,   [HTH_IQ4_NL] = unpack_iq4_nl, [HTH_IQ4_XS] = unpack_iq4_xs,
        [HTH_MXFP4] = unpack_mxfp4,
    };
    return table[dtype];
}
