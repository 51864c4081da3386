/* Quantized weights of every format as 64 unsigned bytes in natural order, in one 512-bit register.
 *
 * What a byte is too large by (`bias`) is taken off through the sums of the activations. */
#ifndef HTH_BACKENDS_CPU_X86_AVX512_UNPACK512_H
#define HTH_BACKENDS_CPU_X86_AVX512_UNPACK512_H

#include <string.h>

#include "backends/cpu/x86/unpack256.h"

/* Two vectors of 128 or 256 bits side by side. */
HTH_INLINE __m512i join256(__m256i lo, __m256i hi) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

/* 128-bit lanes i, j of a, then k, l of b (constants): SHUFFLE of lanes as _mm512_shuffle_i32x4 wants it. */
#define HTH_LANES(i, j, k, l) ((i) | (j) << 2 | (k) << 4 | (l) << 6)

/* 32-bit words at p, p + stride, p + 2 stride and p + 3 stride, one in each 128-bit lane: there in all its words. */
HTH_INLINE __m512i in_lanes(__m128i a, __m128i b, __m128i c, __m128i d) {
    __m512i v = _mm512_castsi128_si512(a);
    v = _mm512_mask_broadcast_i32x4(v, 0x00F0, b);
    v = _mm512_mask_broadcast_i32x4(v, 0x0F00, c);
    return _mm512_mask_broadcast_i32x4(v, 0xF000, d);
}

/* The pairs of columns that share a vector before columns_to_words. */
HTH_INLINE int first_of_pair(int i) {
    return i < 4 ? i : i + 4;
}

HTH_INLINE int second_of_pair(int i) {
    return first_of_pair(i) + 4;
}

/* Columns to words: v[i] holds eight words of column first_of_pair(i), then eight of second_of_pair(i); becomes word i
 * of all columns in order. */
HTH_INLINE void columns_to_words(__m512i v[8]) {
    __m512i a[8], b[8];
    HTH_UNROLL for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    HTH_UNROLL for (int i = 0; i < 8; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    HTH_UNROLL for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_i32x4(b[i], b[i + 4], HTH_LANES(0, 2, 0, 2));
        v[i + 4] = _mm512_shuffle_i32x4(b[i], b[i + 4], HTH_LANES(1, 3, 1, 3));
    }
}

/* hth_mxfp4_scale_bits of sixteen exponents. */
HTH_INLINE __m512 e8m0_scales_512(__m512i e) {
    __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __m512i large = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(large, _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(2), e), small));
}

/* ---- Blocks of 32 ---- */

typedef struct wide32 {
    const format32 *format;
    int bias;                                               /* weight = byte - bias */
    __m512i (*weights)(const uint8_t *a, const uint8_t *b); /* those of block a, then those of block b */
} wide32;

/* The nibbles of sixteen bytes at a, low ones first, then of those at b. */
HTH_INLINE __m512i nibbles_of_two(const void *a, const void *b) {
    __m512i x = _mm512_broadcast_i32x4(load128(a));
    x = _mm512_mask_broadcast_i32x4(x, 0xFF00, load128(b));
    x = _mm512_srlv_epi32(x, _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4));
    return _mm512_and_si512(x, _mm512_set1_epi8(15));
}

/* x, and 16 more where the bit of a byte is set: those of the first 32 at a, of the others at b. */
HTH_INLINE __m512i with_fifth_bits(__m512i x, const uint8_t *a, const uint8_t *b) {
    uint32_t lo, hi;
    memcpy(&lo, a, sizeof lo);
    memcpy(&hi, b, sizeof hi);
    return _mm512_mask_add_epi8(x, (uint64_t)hi << 32 | lo, x, _mm512_set1_epi8(16));
}

HTH_INLINE __m512i lookup_of_two(__m128i table, __m512i index) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index);
}

/* The values of IQ4 as unsigned bytes: 128 more. */
HTH_INLINE __m128i iq4_table(void) {
    return _mm_xor_si128(_mm_setr_epi8(HTH_IQ4_VALUES), _mm_set1_epi8(-128));
}

/* Those of MXFP4: 12 more. */
HTH_INLINE __m128i mxfp4_table(void) {
    return _mm_add_epi8(_mm_setr_epi8(HTH_MXFP4_VALUES), _mm_set1_epi8(12));
}

HTH_INLINE __m512i q4_0_two(const uint8_t *a, const uint8_t *b) {
    return nibbles_of_two(a + 2, b + 2);
}

HTH_INLINE __m512i q4_1_two(const uint8_t *a, const uint8_t *b) {
    return nibbles_of_two(a + 4, b + 4);
}

HTH_INLINE __m512i q5_0_two(const uint8_t *a, const uint8_t *b) {
    return with_fifth_bits(nibbles_of_two(a + 6, b + 6), a + 2, b + 2);
}

HTH_INLINE __m512i q5_1_two(const uint8_t *a, const uint8_t *b) {
    return with_fifth_bits(nibbles_of_two(a + 8, b + 8), a + 4, b + 4);
}

HTH_INLINE __m512i q8_0_two(const uint8_t *a, const uint8_t *b) {
    return _mm512_xor_si512(join256(load256(a + 2), load256(b + 2)), _mm512_set1_epi8(-128));
}

HTH_INLINE __m512i iq4_nl_two(const uint8_t *a, const uint8_t *b) {
    return lookup_of_two(iq4_table(), nibbles_of_two(a + 2, b + 2));
}

HTH_INLINE __m512i mxfp4_two(const uint8_t *a, const uint8_t *b) {
    return lookup_of_two(mxfp4_table(), nibbles_of_two(a + 1, b + 1));
}

static const wide32 wide_q4_0 = {&format_q4_0, 8, q4_0_two};
static const wide32 wide_q4_1 = {&format_q4_1, 0, q4_1_two};
static const wide32 wide_q5_0 = {&format_q5_0, 16, q5_0_two};
static const wide32 wide_q5_1 = {&format_q5_1, 0, q5_1_two};
static const wide32 wide_q8_0 = {&format_q8_0, 128, q8_0_two};
static const wide32 wide_iq4_nl = {&format_iq4_nl, 128, iq4_nl_two};
static const wide32 wide_mxfp4 = {&format_mxfp4, 12, mxfp4_two};

/* ---- Blocks of 256 ---- */

typedef struct wide256 {
    const format256 *format;
    int bias;                                    /* weight = byte - bias: 0 or a power of two */
    int raised;                                  /* bytes 32..63 of weights() are larger by so many bits */
    __m512i (*weights)(const uint8_t *b, int j); /* elements 64j..64j+63 */
    /* The scales of two blocks with sub-blocks of 16, or of four with sub-blocks of 32, as they follow each other at b:
     * 16-bit words in order; with minimums, those in the same way. */
    void (*scales)(const uint8_t *b, __m512i *scale, __m512i *min);
} wide256;

/* Bits i of the bytes of x as bits 0 in the low half, bits j in the high one: rotated within 32-bit words, so that the
 * other bits are anything. Negative: to the left. */
HTH_INLINE __m512i shifted(__m512i x, int i, int j) {
    return _mm512_rorv_epi32(x, join256(_mm256_set1_epi32(i & 31), _mm256_set1_epi32(j & 31)));
}

/* The 32 bytes at p, twice. */
HTH_INLINE __m512i twice(const uint8_t *p) {
    return _mm512_broadcast_i64x4(load256(p));
}

/* x | (bits & mask) */
HTH_INLINE __m512i or_masked(__m512i x, __m512i bits, int mask) {
    return _mm512_ternarylogic_epi32(x, bits, _mm512_set1_epi8((char)mask), 0xF8);
}

/* The same for the low half, and with another mask for the high one. */
HTH_INLINE __m512i both_masks(int low, int high) {
    return join256(_mm256_set1_epi8((char)low), _mm256_set1_epi8((char)high));
}

/* Two bits from bit 4 (j & 1) on for elements 0..31, and from there two bits further for 32..63, which stay where they
 * are: shifts and shuffles share two ports, and are what bounds the rate of few bits. */
HTH_INLINE __m512i two_bits_raised(const uint8_t *qs, int j) {
    __m512i x = twice(qs + 32 * (j >> 1));
    if (j & 1) x = _mm512_srli_epi16(x, 4);
    return _mm512_and_si512(x, both_masks(3, 3 << 2));
}

HTH_INLINE __m512i q2_k_wide(const uint8_t *b, int j) {
    return two_bits_raised(b + 16, j);
}

HTH_INLINE __m512i q3_k_wide(const uint8_t *b, int j) {
    __m512i high = shifted(twice(b), 2 * j - 2, 2 * j + 1 - 4);
    return _mm512_ternarylogic_epi32(two_bits_raised(b + 32, j), high, both_masks(4, 4 << 2), 0xF8);
}

HTH_INLINE __m512i k_nibbles_wide(const uint8_t *qs, int j) {
    return _mm512_and_si512(shifted(twice(qs + 32 * j), 0, 4), _mm512_set1_epi8(15));
}

HTH_INLINE __m512i q4_k_wide(const uint8_t *b, int j) {
    return k_nibbles_wide(b + 16, j);
}

HTH_INLINE __m512i q5_k_wide(const uint8_t *b, int j) {
    return or_masked(k_nibbles_wide(b + 48, j), shifted(twice(b + 16), 2 * j - 4, 2 * j - 3), 16);
}

HTH_INLINE __m512i q6_k_wide(const uint8_t *b, int j) {
    __m512i low = _mm512_loadu_si512(b + 64 * (j >> 1)), high = twice(b + 128 + 32 * (j >> 1));
    if (j & 1) low = _mm512_srli_epi16(low, 4);
    low = _mm512_and_si512(low, _mm512_set1_epi8(15));
    return or_masked(low, j & 1 ? shifted(high, 0, 2) : shifted(high, -4, -2), 48);
}

HTH_INLINE __m512i iq4_xs_wide(const uint8_t *b, int j) {
    return lookup_of_two(iq4_table(), nibbles_of_two(b + 8 + 32 * j, b + 24 + 32 * j));
}

/* Sixteen bytes at each of two places. */
HTH_INLINE __m256i two16(const uint8_t *a, const uint8_t *b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(a)), load128(b), 1);
}

HTH_INLINE void q2_k_wide_scales(const uint8_t *b, __m512i *scale, __m512i *min) {
    __m256i x = two16(b, b + HTH_Q2_K_BYTES), low = _mm256_set1_epi8(15);
    *scale = _mm512_cvtepi8_epi16(_mm256_and_si256(x, low));
    *min = _mm512_cvtepi8_epi16(_mm256_and_si256(_mm256_srli_epi16(x, 4), low));
}

HTH_INLINE void q3_k_wide_scales(const uint8_t *b, __m512i *scale, __m512i *min) {
    (void)min;
    *scale = _mm512_cvtepi8_epi16(_mm256_set_m128i(q3_k_scale_bytes(b + HTH_Q3_K_BYTES), q3_k_scale_bytes(b)));
}

/* The twelve bytes of hth_k4_scale and hth_k4_min behind four others, in each 128-bit lane: eight scales, then eight
 * minimums. Words 1 and 2 of a lane hold the first four of each, with the upper bits of the last four on top; word 3
 * the lower bits of the last four scales, and above them those of the minimums. */
HTH_INLINE __m512i k4_bytes(__m512i x) {
    __m512i first = _mm512_shuffle_epi32(x, 0xA5), last = _mm512_shuffle_epi32(x, 0xFF); /* 1 1 2 2, 3 3 3 3 */
    __m512i upper = _mm512_and_si512(_mm512_srli_epi16(first, 2), _mm512_set1_epi8(0x30));
    last = _mm512_srlv_epi32(last, _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0, 4)));
    first = _mm512_and_si512(first, _mm512_set1_epi8(0x3F));
    return _mm512_mask_mov_epi32(first, 0xAAAA, or_masked(upper, last, 15));
}

HTH_INLINE void k4_wide_scales(const uint8_t *b, int n, __m512i *scale, __m512i *min) {
    __m512i x = k4_bytes(in_lanes(load128(b), load128(b + n), load128(b + 2 * n), load128(b + 3 * n)));
    *scale = _mm512_unpacklo_epi8(x, _mm512_setzero_si512());
    *min = _mm512_unpackhi_epi8(x, _mm512_setzero_si512());
}

HTH_INLINE void q4_k_wide_scales(const uint8_t *b, __m512i *scale, __m512i *min) {
    k4_wide_scales(b, HTH_Q4_K_BYTES, scale, min);
}

HTH_INLINE void q5_k_wide_scales(const uint8_t *b, __m512i *scale, __m512i *min) {
    k4_wide_scales(b, HTH_Q5_K_BYTES, scale, min);
}

HTH_INLINE void q6_k_wide_scales(const uint8_t *b, __m512i *scale, __m512i *min) {
    (void)min;
    *scale = _mm512_cvtepi8_epi16(two16(b + 192, b + HTH_Q6_K_BYTES + 192));
}

HTH_INLINE void iq4_xs_wide_scales(const uint8_t *b, __m512i *scale, __m512i *min) {
    (void)min;
    const int n = HTH_IQ4_XS_BYTES;
    __m256i bytes =
        _mm256_set_epi64x((long long)iq4_xs_scale_bytes(b + 3 * n), (long long)iq4_xs_scale_bytes(b + 2 * n),
                          (long long)iq4_xs_scale_bytes(b + n), (long long)iq4_xs_scale_bytes(b));
    *scale = _mm512_cvtepi8_epi16(_mm256_sub_epi8(bytes, _mm256_set1_epi8(32)));
}

static const wide256 wide_q2_k = {&format_q2_k, 0, 2, q2_k_wide, q2_k_wide_scales};
static const wide256 wide_q3_k = {&format_q3_k, 4, 2, q3_k_wide, q3_k_wide_scales};
static const wide256 wide_q4_k = {&format_q4_k, 0, 0, q4_k_wide, q4_k_wide_scales};
static const wide256 wide_q5_k = {&format_q5_k, 0, 0, q5_k_wide, q5_k_wide_scales};
static const wide256 wide_q6_k = {&format_q6_k, 32, 0, q6_k_wide, q6_k_wide_scales};
static const wide256 wide_iq4_xs = {&format_iq4_xs, 128, 0, iq4_xs_wide, iq4_xs_wide_scales};

#endif
