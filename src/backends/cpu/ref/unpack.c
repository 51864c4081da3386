/* One function a format, each with the bounds of its S and M (activations are -127..127): all far inside int32, so the
 * sums are exact in any order. Offsets are those of the GGUF block. */
#include "backends/cpu/ref/unpack.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static float half_to_float(const uint8_t *b) {
    int bits = b[0] | b[1] << 8, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float v = exponent == 31 ? (mantissa ? NAN : INFINITY)
                             : ldexpf((float)(exponent ? mantissa | 1024 : mantissa), (exponent ? exponent : 1) - 25);
    return bits & 0x8000 ? -v : v;
}

/* Sixteen bytes hold 32 nibbles: the low halves are elements 0..15, the high halves 16..31. */
static int nibble(const uint8_t *b, int i) {
    return b[i & 15] >> 4 * (i >> 4) & 15;
}

static void plain32(ref_block *out) {
    out->n = out->sub = 32;
    out->scale[0] = 1;
    out->min[0] = 1;
    out->has_min = false;
}

/* |S| <= 32 * 8 * 127 = 32,512 */
static void unpack_q4_0(const uint8_t *b, ref_block *out) {
    plain32(out);
    out->d = half_to_float(b);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)(nibble(b + 2, i) - 8);
}

/* |S| <= 32 * 15 * 127 = 60,960; |M| <= 4,064 */
static void unpack_q4_1(const uint8_t *b, ref_block *out) {
    plain32(out);
    out->has_min = true;
    out->d = half_to_float(b);
    out->m = half_to_float(b + 2);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)nibble(b + 4, i);
}

static int fifth_bit(const uint8_t *qh, int i) {
    return (qh[i >> 3] >> (i & 7) & 1) << 4;
}

/* |S| <= 32 * 16 * 127 = 65,024 */
static void unpack_q5_0(const uint8_t *b, ref_block *out) {
    plain32(out);
    out->d = half_to_float(b);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)((nibble(b + 6, i) | fifth_bit(b + 2, i)) - 16);
}

/* |S| <= 32 * 31 * 127 = 125,984; |M| <= 4,064 */
static void unpack_q5_1(const uint8_t *b, ref_block *out) {
    plain32(out);
    out->has_min = true;
    out->d = half_to_float(b);
    out->m = half_to_float(b + 2);
    for (int i = 0; i < 32; i++) out->w[i] = (int8_t)(nibble(b + 8, i) | fifth_bit(b + 4, i));
}

/* |S| <= 32 * 128 * 127 = 520,192 (a file may hold -128) */
static void unpack_q8_0(const uint8_t *b, ref_block *out) {
    plain32(out);
    out->d = half_to_float(b);
    memcpy(out->w, b + 2, 32);
}

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* |S| <= 32 * 127 * 127 = 516,128 */
static void unpack_iq4_nl(const uint8_t *b, ref_block *out) {
    plain32(out);
    out->d = half_to_float(b);
    for (int i = 0; i < 32; i++) out->w[i] = iq4_values[nibble(b + 2, i)];
}

/* |S| <= 32 * 12 * 127 = 48,768. The values are twice E2M1's, so the scale is 2^(e - 128), a subnormal for e = 0 and 1.
 */
static void unpack_mxfp4(const uint8_t *b, ref_block *out) {
    static const int8_t values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    plain32(out);
    out->d = ldexpf(1, b[0] - 128);
    for (int i = 0; i < 32; i++) out->w[i] = values[nibble(b + 1, i)];
}

static void plain256(ref_block *out, int sub, bool has_min) {
    out->n = 256;
    out->sub = sub;
    out->has_min = has_min;
}

/* Two bits of element i of a 256-element block, packed as in Q2_K, Q3_K and the high bits of Q6_K. */
static int pair(const uint8_t *b, int i) {
    return b[32 * (i >> 7) + (i & 31)] >> 2 * (i >> 5 & 3) & 3;
}

/* |S| <= 256 * 15 * 3 * 127 = 1,463,040; |M| <= 256 * 15 * 127 = 487,680 */
static void unpack_q2_k(const uint8_t *b, ref_block *out) {
    plain256(out, 16, true);
    out->d = half_to_float(b + 80);
    out->m = -half_to_float(b + 82);
    for (int j = 0; j < 16; j++) {
        out->scale[j] = b[j] & 15;
        out->min[j] = b[j] >> 4;
    }
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)pair(b + 16, i);
}

/* |S| <= 256 * 32 * 4 * 127 = 4,161,536 */
static void unpack_q3_k(const uint8_t *b, ref_block *out) {
    plain256(out, 16, false);
    const uint8_t *hmask = b, *qs = b + 32, *s = b + 96;
    out->d = half_to_float(b + 108);
    for (int j = 0; j < 16; j++) {
        int low = s[j & 7] >> 4 * (j >> 3) & 15, high = s[8 + (j & 3)] >> 2 * (j >> 2) & 3;
        out->scale[j] = (int16_t)((low | high << 4) - 32);
    }
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)(pair(qs, i) - (hmask[i & 31] >> (i >> 5) & 1 ? 0 : 4));
}

/* Eight 6-bit (scale, min) pairs in the 12 bytes of Q4_K and Q5_K. */
static void scales_and_mins(const uint8_t *p, ref_block *out) {
    for (int j = 0; j < 4; j++) {
        out->scale[j] = p[j] & 63;
        out->min[j] = p[j + 4] & 63;
        out->scale[j + 4] = (int16_t)((p[j + 8] & 15) | p[j] >> 6 << 4);
        out->min[j + 4] = (int16_t)(p[j + 8] >> 4 | p[j + 4] >> 6 << 4);
    }
}

/* |S| <= 256 * 63 * 15 * 127 = 30,723,840; |M| <= 256 * 63 * 127 = 2,048,256 */
static void unpack_q4_k(const uint8_t *b, ref_block *out) {
    plain256(out, 32, true);
    out->d = half_to_float(b);
    out->m = -half_to_float(b + 2);
    scales_and_mins(b + 4, out);
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)(b[16 + 32 * (i >> 6) + (i & 31)] >> 4 * (i >> 5 & 1) & 15);
}

/* |S| <= 256 * 63 * 31 * 127 = 63,495,936; |M| <= 256 * 63 * 127 = 2,048,256 */
static void unpack_q5_k(const uint8_t *b, ref_block *out) {
    plain256(out, 32, true);
    out->d = half_to_float(b);
    out->m = -half_to_float(b + 2);
    scales_and_mins(b + 4, out);
    for (int i = 0; i < 256; i++) {
        int low = b[48 + 32 * (i >> 6) + (i & 31)] >> 4 * (i >> 5 & 1) & 15, high = b[16 + (i & 31)] >> (i >> 5) & 1;
        out->w[i] = (int8_t)(low | high << 4);
    }
}

/* |S| <= 256 * 128 * 32 * 127 = 133,169,152 */
static void unpack_q6_k(const uint8_t *b, ref_block *out) {
    plain256(out, 16, false);
    out->d = half_to_float(b + 208);
    for (int j = 0; j < 16; j++) out->scale[j] = (int8_t)b[192 + j];
    for (int i = 0; i < 256; i++) {
        int low = b[64 * (i >> 7) + (i & 63)] >> 4 * (i >> 6 & 1) & 15;
        out->w[i] = (int8_t)((low | pair(b + 128, i) << 4) - 32);
    }
}

/* |S| <= 256 * 32 * 127 * 127 = 132,128,768 */
static void unpack_iq4_xs(const uint8_t *b, ref_block *out) {
    plain256(out, 32, false);
    int high = b[2] | b[3] << 8;
    out->d = half_to_float(b);
    for (int j = 0; j < 8; j++)
        out->scale[j] = (int16_t)(((b[4 + (j >> 1)] >> 4 * (j & 1) & 15) | (high >> 2 * j & 3) << 4) - 32);
    for (int i = 0; i < 256; i++) out->w[i] = iq4_values[nibble(b + 8 + 16 * (i >> 5), i & 31)];
}

ref_unpack_fn *hth_ref_unpacker(hth_dtype dtype) {
    switch (dtype) {
    case HTH_Q4_0: return unpack_q4_0;
    case HTH_Q4_1: return unpack_q4_1;
    case HTH_Q5_0: return unpack_q5_0;
    case HTH_Q5_1: return unpack_q5_1;
    case HTH_Q8_0: return unpack_q8_0;
    case HTH_Q2_K: return unpack_q2_k;
    case HTH_Q3_K: return unpack_q3_k;
    case HTH_Q4_K: return unpack_q4_k;
    case HTH_Q5_K: return unpack_q5_k;
    case HTH_Q6_K: return unpack_q6_k;
    case HTH_IQ4_NL: return unpack_iq4_nl;
    case HTH_IQ4_XS: return unpack_iq4_xs;
    case HTH_MXFP4: return unpack_mxfp4;
    default: return NULL;
    }
}
