/* Small 256-bit idioms shared by the x86 tiers. */
#ifndef HTH_BACKENDS_CPU_X86_VEC256_H
#define HTH_BACKENDS_CPU_X86_VEC256_H

#include <stdint.h>

#include "backends/cpu/x86/intrin.h"

HTH_INLINE __m256i load256(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

HTH_INLINE __m128i load128(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

/* Four bytes at any address in every 32-bit lane. */
HTH_INLINE __m256i broadcast32(const void *p) {
    return _mm256_castps_si256(_mm256_broadcast_ss((const float *)p));
}

/* Keeps a running sum a running sum: without it compilers turn chains of integer additions into trees, which need more
 * registers than there are. */
HTH_INLINE __m256i in_order(__m256i v) {
    __asm__("" : "+x"(v));
    return v;
}

HTH_INLINE __m256 negative(__m256 x) {
    return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

HTH_INLINE __m256i add_halves16(__m256i a, __m256i b) {
    return _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

HTH_INLINE __m256i add_halves32(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* Lanes 0, 2 of a, then of b, in each half (even), and lanes 1, 3 (odd). */
HTH_INLINE __m256i evens32(__m256i a, __m256i b) {
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

HTH_INLINE __m256i odds32(__m256i a, __m256i b) {
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
}

/* Both halves hold the partial sums of vectors 0..3 in lo and 4..7 in hi: the eight sums. */
HTH_INLINE __m256i join_halves(__m256i lo, __m256i hi) {
    return _mm256_add_epi32(_mm256_permute2x128_si256(lo, hi, 0x20), _mm256_permute2x128_si256(lo, hi, 0x31));
}

/* Lane i of the result is the sum of the eight 32-bit lanes of v[i]. */
HTH_INLINE __m256i sums32(const __m256i v[8]) {
    __m256i a = add_halves32(v[0], v[1]), b = add_halves32(v[2], v[3]);
    __m256i c = add_halves32(v[4], v[5]), d = add_halves32(v[6], v[7]);
    __m256i lo = _mm256_add_epi32(evens32(a, b), odds32(a, b)), hi = _mm256_add_epi32(evens32(c, d), odds32(c, d));
    return join_halves(lo, hi);
}

/* Lane i of the result is the sum of the sixteen 16-bit lanes of v[i]; sums of four lanes must fit in 16 bits. */
HTH_INLINE __m256i sums16(const __m256i v[8]) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256i a = add_halves16(v[0], v[1]), b = add_halves16(v[2], v[3]);
    __m256i c = add_halves16(v[4], v[5]), d = add_halves16(v[6], v[7]);
    __m256i lo = _mm256_add_epi16(evens32(a, b), odds32(a, b)), hi = _mm256_add_epi16(evens32(c, d), odds32(c, d));
    return join_halves(_mm256_madd_epi16(lo, one), _mm256_madd_epi16(hi, one));
}

/* Rows to columns: 32-bit lane j of v[i] becomes lane i of v[j]. */
HTH_INLINE void transpose8x8(__m256i v[8]) {
    __m256i a[8], b[8];
    HTH_UNROLL for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    HTH_UNROLL for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    HTH_UNROLL for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

/* The 32-bit words at p, p + stride, …: each load brings one of them to its own lane, so none reaches behind the last.
 */
#define HTH_WORD(i) v = _mm256_blend_epi32(v, load256(p + (i) * (stride - 4)), 1 << (i))
HTH_INLINE __m256i words8(const uint8_t *p, int64_t stride) {
    __m256i v = load256(p);
    HTH_WORD(1);
    HTH_WORD(2);
    HTH_WORD(3);
    HTH_WORD(4);
    HTH_WORD(5);
    HTH_WORD(6);
    HTH_WORD(7);
    return v;
}
#undef HTH_WORD

/* The F16 values at p, p + stride, …, in the same way. */
#define HTH_HALF(i) v = _mm_blend_epi16(v, load128(p + (i) * (stride - 2)), 1 << (i))
HTH_INLINE __m256 halves8(const uint8_t *p, int64_t stride) {
    __m128i v = load128(p);
    HTH_HALF(1);
    HTH_HALF(2);
    HTH_HALF(3);
    HTH_HALF(4);
    HTH_HALF(5);
    HTH_HALF(6);
    HTH_HALF(7);
    return _mm256_cvtph_ps(v);
}
#undef HTH_HALF

/* The F16 values at p[0] + at, p[1] + at, … */
#define HTH_HALF(i) v = _mm_insert_epi16(v, (short)(p[i][at] | p[i][at + 1] << 8), i)
HTH_INLINE __m256 halves_at(const uint8_t *const p[8], int at) {
    __m128i v = _mm_setzero_si128();
    HTH_HALF(0);
    HTH_HALF(1);
    HTH_HALF(2);
    HTH_HALF(3);
    HTH_HALF(4);
    HTH_HALF(5);
    HTH_HALF(6);
    HTH_HALF(7);
    return _mm256_cvtph_ps(v);
}
#undef HTH_HALF

/* hth_mxfp4_scale_bits of eight exponents. */
HTH_INLINE __m256 e8m0_scales(__m256i e) {
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    __m256i large = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(large, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* The first n of 8 lanes. */
HTH_INLINE __m256i lanes_mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

#endif
