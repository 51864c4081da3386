/* Quantized weights of every format as 32 bytes in natural order, in one 256-bit register: what the integer kernels of
 * the x86 tiers multiply. A new format is one descriptor here.
 *
 * Unsigned formats keep their nonnegative integers, 0..max; the constant that the format subtracts (`bias`) is taken
 * off through the sums of the activations, so that bytes stay in the range where 16-bit sums of products are exact.
 * Signed formats (8-bit values) are multiplied as |w| times q with w's sign, or get a bias as well (panel.h). All
 * functions dissolve into kernels by inlining. */
#ifndef HTH_BACKENDS_CPU_X86_UNPACK256_H
#define HTH_BACKENDS_CPU_X86_UNPACK256_H

#include <stdbool.h>
#include <string.h>

#include "backends/cpu/x86/vec256.h"
#include "base/block.h"
#include "base/dtype.h"

/* ---- Blocks of 32 ---- */

typedef struct format32 {
    int bytes;      /* a block */
    int max;        /* largest unpacked integer; 128 when signed */
    bool is_signed; /* bytes are -128..127 */
    int bias;       /* weight = byte - bias */
    bool has_min;   /* F16 at byte 2: a minimum */
    bool is_e8m0;   /* the scale is a byte, 2^(e - 128); otherwise an F16 at byte 0 */
    __m256i (*weights)(const uint8_t *b);
} format32;

/* Sixteen bytes: low nibbles, then high nibbles. */
HTH_INLINE __m256i nibbles(const void *p) {
    __m256i x = _mm256_broadcastsi128_si256(load128(p));
    x = _mm256_srlv_epi32(x, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(x, _mm256_set1_epi8(15));
}

/* Bit i of the 32 at p as 16 in byte i. */
HTH_INLINE __m256i fifth_bits(const void *p) {
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(broadcast32(p), spread), bit);
    return _mm256_and_si256(_mm256_cmpeq_epi8(x, bit), _mm256_set1_epi8(16));
}

HTH_INLINE __m256i lookup(__m128i table, __m256i index) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}

HTH_INLINE __m256i q4_0_weights(const uint8_t *b) {
    return nibbles(b + 2);
}

HTH_INLINE __m256i q4_1_weights(const uint8_t *b) {
    return nibbles(b + 4);
}

HTH_INLINE __m256i q5_0_weights(const uint8_t *b) {
    return _mm256_or_si256(nibbles(b + 6), fifth_bits(b + 2));
}

HTH_INLINE __m256i q5_1_weights(const uint8_t *b) {
    return _mm256_or_si256(nibbles(b + 8), fifth_bits(b + 4));
}

HTH_INLINE __m256i q8_0_weights(const uint8_t *b) {
    return load256(b + 2);
}

HTH_INLINE __m256i iq4_nl_weights(const uint8_t *b) {
    return lookup(_mm_setr_epi8(HTH_IQ4_VALUES), nibbles(b + 2));
}

HTH_INLINE __m256i mxfp4_weights(const uint8_t *b) {
    return lookup(_mm_add_epi8(_mm_setr_epi8(HTH_MXFP4_VALUES), _mm_set1_epi8(12)), nibbles(b + 1));
}

static const format32 format_q4_0 = {HTH_Q4_0_BYTES, 15, false, 8, false, false, q4_0_weights};
static const format32 format_q4_1 = {HTH_Q4_1_BYTES, 15, false, 0, true, false, q4_1_weights};
static const format32 format_q5_0 = {HTH_Q5_0_BYTES, 31, false, 16, false, false, q5_0_weights};
static const format32 format_q5_1 = {HTH_Q5_1_BYTES, 31, false, 0, true, false, q5_1_weights};
static const format32 format_q8_0 = {HTH_Q8_0_BYTES, 128, true, 0, false, false, q8_0_weights};
static const format32 format_iq4_nl = {HTH_IQ4_NL_BYTES, 127, true, 0, false, false, iq4_nl_weights};
static const format32 format_mxfp4 = {HTH_MXFP4_BYTES, 24, false, 12, false, true, mxfp4_weights};

/* ---- Blocks of 256 ---- */

typedef struct format256 {
    int bytes;
    int max;
    bool is_signed;
    int sub;                                     /* elements with a scale of their own: 16 or 32 */
    int bias;                                    /* weight = byte - bias */
    bool has_min;                                /* K-quant minimums; never together with a bias */
    int d_at, dmin_at;                           /* bytes into the block */
    __m256i (*weights)(const uint8_t *b, int j); /* elements 32j..32j+31 */
    /* 16-bit lanes. *scale: lane j of the low half belongs to the first 16 elements of weights(j), of the high half to
     * the last 16. *term: what the sums of q are multiplied by, in their order (16 of sub 16, or 8 of sub 32 and
     * zeros): the minimums, or with a bias -bias * scale. */
    void (*scales)(const uint8_t *b, __m256i *scale, __m256i *term);
} format256;

HTH_INLINE __m256i q2_k_weights(const uint8_t *b, int j) {
    __m256i x = load256(b + 16 + 32 * (j >> 2));
    return _mm256_and_si256(_mm256_srli_epi16(x, 2 * (j & 3)), _mm256_set1_epi8(3));
}

HTH_INLINE __m256i q3_k_weights(const uint8_t *b, int j) {
    __m256i high = load256(b), low = load256(b + 32 + 32 * (j >> 2));
    low = _mm256_and_si256(_mm256_srli_epi16(low, 2 * (j & 3)), _mm256_set1_epi8(3));
    high = j < 2 ? _mm256_slli_epi16(high, 2 - j) : _mm256_srli_epi16(high, j - 2);
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(4)));
}

HTH_INLINE __m256i k_nibbles(const uint8_t *qs, int j) {
    __m256i x = load256(qs + 32 * (j >> 1));
    return _mm256_and_si256(j & 1 ? _mm256_srli_epi16(x, 4) : x, _mm256_set1_epi8(15));
}

HTH_INLINE __m256i q4_k_weights(const uint8_t *b, int j) {
    return k_nibbles(b + 16, j);
}

HTH_INLINE __m256i q5_k_weights(const uint8_t *b, int j) {
    __m256i high = load256(b + 16);
    high = j < 4 ? _mm256_slli_epi16(high, 4 - j) : _mm256_srli_epi16(high, j - 4);
    return _mm256_or_si256(k_nibbles(b + 48, j), _mm256_and_si256(high, _mm256_set1_epi8(16)));
}

HTH_INLINE __m256i q6_k_weights(const uint8_t *b, int j) {
    int h = j >> 2, s = j & 3;
    __m256i low = load256(b + 64 * h + 32 * (s & 1)), high = load256(b + 128 + 32 * h);
    low = _mm256_and_si256(s >> 1 ? _mm256_srli_epi16(low, 4) : low, _mm256_set1_epi8(15));
    high = s < 2 ? _mm256_slli_epi16(high, 4 - 2 * s) : _mm256_srli_epi16(high, 2 * s - 4);
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(48)));
}

HTH_INLINE __m256i iq4_xs_weights(const uint8_t *b, int j) {
    return lookup(_mm_setr_epi8(HTH_IQ4_VALUES), nibbles(b + 8 + 16 * j));
}

/* Sixteen bytes, one a group of 16: those with even index to the low half, those with odd index to the high one. */
HTH_INLINE __m128i even_odd(__m128i x) {
    return _mm_shuffle_epi8(x, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
}

/* Eight bytes, one a group of 32: the same in both halves. */
HTH_INLINE __m256i both_halves(uint64_t bytes) {
    return _mm256_cvtepi8_epi16(_mm_set1_epi64x((long long)bytes));
}

HTH_INLINE void q2_k_scales(const uint8_t *b, __m256i *scale, __m256i *term) {
    __m128i x = load128(b), low = _mm_set1_epi8(15);
    *scale = _mm256_cvtepi8_epi16(even_odd(_mm_and_si128(x, low)));
    *term = _mm256_cvtepi8_epi16(_mm_and_si128(_mm_srli_epi16(x, 4), low));
}

/* Sixteen scales, already less 32. */
HTH_INLINE __m128i q3_k_scale_bytes(const uint8_t *b) {
    uint64_t low;
    uint32_t high;
    memcpy(&low, b + 96, sizeof low);
    memcpy(&high, b + 104, sizeof high);
    const uint64_t nib = 0x0F0F0F0F0F0F0F0F, pair = 0x3030303030303030;
    uint64_t high01 = (uint64_t)high << 4 | (uint64_t)high << 34, high23 = (uint64_t)high | (uint64_t)high << 30;
    __m128i x =
        _mm_set_epi64x((long long)((low >> 4 & nib) | (high23 & pair)), (long long)((low & nib) | (high01 & pair)));
    return _mm_sub_epi8(x, _mm_set1_epi8(32));
}

HTH_INLINE void q3_k_scales(const uint8_t *b, __m256i *scale, __m256i *term) {
    __m128i x = q3_k_scale_bytes(b);
    *scale = _mm256_cvtepi8_epi16(even_odd(x));
    *term = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(x), _mm256_set1_epi16(-4));
}

/* The eight pairs of hth_k4_scale and hth_k4_min, in bytes. */
HTH_INLINE void k4_scales(const uint8_t *p, __m256i *scale, __m256i *term) {
    uint64_t first;
    uint32_t last;
    memcpy(&first, p, sizeof first);
    memcpy(&last, p + 8, sizeof last);
    const uint64_t nib = 0x0F0F0F0F0F0F0F0F, pair = 0x3030303030303030;
    uint64_t low = first & 0x3F3F3F3F3F3F3F3F, high = first >> 2 & pair; /* scales in the low halves, mins above */
    uint64_t last_scales = (last & nib) | (high & 0xFFFFFFFF), last_mins = (last >> 4 & nib) | high >> 32;
    *scale = both_halves((low & 0xFFFFFFFF) | last_scales << 32);
    *term = _mm256_cvtepi8_epi16(_mm_cvtsi64_si128((long long)(low >> 32 | last_mins << 32)));
}

HTH_INLINE void q4_k_scales(const uint8_t *b, __m256i *scale, __m256i *term) {
    k4_scales(b + 4, scale, term);
}

HTH_INLINE void q6_k_scales(const uint8_t *b, __m256i *scale, __m256i *term) {
    __m128i x = load128(b + 192);
    *scale = _mm256_cvtepi8_epi16(even_odd(x));
    *term = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(x), _mm256_set1_epi16(-32));
}

/* Eight scales, 32 too large. */
HTH_INLINE uint64_t iq4_xs_scale_bytes(const uint8_t *b) {
    uint16_t high;
    uint32_t low;
    memcpy(&high, b + 2, sizeof high);
    memcpy(&low, b + 4, sizeof low);
    return _pdep_u64(low, 0x0F0F0F0F0F0F0F0F) | _pdep_u64(high, 0x3030303030303030);
}

HTH_INLINE void iq4_xs_scales(const uint8_t *b, __m256i *scale, __m256i *term) {
    *scale = _mm256_sub_epi16(both_halves(iq4_xs_scale_bytes(b)), _mm256_set1_epi16(32));
    *term = _mm256_setzero_si256();
}

static const format256 format_q2_k = {HTH_Q2_K_BYTES, 3, false, 16, 0, true, 80, 82, q2_k_weights, q2_k_scales};
static const format256 format_q3_k = {HTH_Q3_K_BYTES, 7, false, 16, 4, false, 108, 0, q3_k_weights, q3_k_scales};
static const format256 format_q4_k = {HTH_Q4_K_BYTES, 15, false, 32, 0, true, 0, 2, q4_k_weights, q4_k_scales};
static const format256 format_q5_k = {HTH_Q5_K_BYTES, 31, false, 32, 0, true, 0, 2, q5_k_weights, q4_k_scales};
static const format256 format_q6_k = {HTH_Q6_K_BYTES, 63, false, 16, 32, false, 208, 0, q6_k_weights, q6_k_scales};
static const format256 format_iq4_xs = {HTH_IQ4_XS_BYTES, 127, true, 32, 0, false, 0, 0, iq4_xs_weights, iq4_xs_scales};

#endif
