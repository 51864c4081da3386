/* Activations to int8 (hth_quantize_fn), 128 values at a time: four blocks of 32, or a half of one of 256. */
#include <string.h>

#include "backends/cpu/x86/avx512/avx512.h"
#include "backends/cpu/x86/intrin.h"

enum { TOGETHER = 128, BLOCKS_32 = TOGETHER / 32 };

/* Magnitudes are compared as integers, so that a NaN is above infinity. */
HTH_INLINE __m512i magnitude(const float *x) {
    return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}

/* The largest lane of each vector. */
HTH_INLINE __m128i largest_of_four(const __m512i v[4]) {
    __m512i a = _mm512_max_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
    __m512i b = _mm512_max_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
    a = _mm512_max_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    __m256i half = _mm256_max_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    return _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* The scales of four blocks with these largest magnitudes, and what their values are multiplied by: 0 for both where
 * they are too small. */
HTH_INLINE void scales(__m128i largest, __m128 *d, __m128 *id) {
    const __m128 amax = _mm_castsi128_ps(largest), most = _mm_set1_ps(127);
    const __m128 small = _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_castps_si128(_mm_set1_ps(0x1p-100f)), largest));
    *d = _mm_andnot_ps(small, _mm_div_ps(amax, most));
    *id = _mm_andnot_ps(small, _mm_div_ps(most, amax));
}

/* min and max return their second operand for a NaN, which makes it 127. */
HTH_INLINE __m512i rounded(const float *x, __m512 id) {
    __m512 t = _mm512_mul_ps(_mm512_loadu_ps(x), id);
    t = _mm512_max_ps(_mm512_min_ps(t, _mm512_set1_ps(127)), _mm512_set1_ps(-127));
    return _mm512_cvtps_epi32(t);
}

/* 64 values, of which each half has its own id. Returns their sums over 16, each in two 64-bit lanes, plus 16 * 128. */
HTH_INLINE __m512i quantize64(const float *x, __m512 id0, __m512 id1, int8_t *q) {
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i a = _mm512_packs_epi32(rounded(x, id0), rounded(x + 16, id0));
    __m512i b = _mm512_packs_epi32(rounded(x + 32, id1), rounded(x + 48, id1));
    __m512i v = _mm512_permutexvar_epi32(in_order, _mm512_packs_epi16(a, b));
    _mm512_storeu_si512(q, v);
    /* Bytes plus 128 are unsigned, which `sad` adds up by eights. */
    __m512i s = _mm512_sad_epu8(_mm512_xor_si512(v, _mm512_set1_epi8(-128)), _mm512_setzero_si512());
    return _mm512_add_epi64(s, _mm512_shuffle_epi32(s, 0x4E));
}

/* 128 values and their sums; id[i] is that of values 32i.. */
HTH_INLINE void quantize128(const float *x, const __m512 id[4], int8_t *q, int16_t *sum16, int16_t *sum32) {
    __m512i first = quantize64(x, id[0], id[1], q), last = quantize64(x + 64, id[2], id[3], q + 64);
    /* Sums 0 and 4, 1 and 5, 2 and 6, 3 and 7 side by side. */
    __m128i sums = _mm512_cvtepi64_epi16(_mm512_mask_mov_epi32(first, 0xCCCC, last));
    sums = _mm_shuffle_epi8(sums, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    sums = _mm_sub_epi16(sums, _mm_set1_epi16(16 * 128));
    _mm_storeu_si128((__m128i *)sum16, sums);
    sums = _mm_madd_epi16(sums, _mm_set1_epi16(1));
    _mm_storel_epi64((__m128i *)sum32, _mm_packs_epi32(sums, sums));
}

/* Four blocks of 32. */
HTH_INLINE void quantize_four(const float *x, int8_t *q, float *d, int16_t *sum16, int16_t *sum32) {
    __m512i m[BLOCKS_32];
    __m512 id[BLOCKS_32];
    HTH_UNROLL for (int i = 0; i < BLOCKS_32; i++) m[i] =
        _mm512_max_epi32(magnitude(x + 32 * i), magnitude(x + 32 * i + 16));
    __m128 scale, inverse;
    scales(largest_of_four(m), &scale, &inverse);
    _mm_storeu_ps(d, scale);
    id[0] = _mm512_broadcastss_ps(inverse);
    id[1] = _mm512_broadcastss_ps(_mm_shuffle_ps(inverse, inverse, 0x55));
    id[2] = _mm512_broadcastss_ps(_mm_shuffle_ps(inverse, inverse, 0xAA));
    id[3] = _mm512_broadcastss_ps(_mm_shuffle_ps(inverse, inverse, 0xFF));
    quantize128(x, id, q, sum16, sum32);
}

/* The last `blocks` blocks of a row, fewer than four: beside blocks of zeros. */
static void quantize_rest(const float *x, int64_t blocks, int8_t *q, float *d, int16_t *sum16, int16_t *sum32) {
    float filled[TOGETHER] = {0}, scale[BLOCKS_32];
    int8_t bytes[TOGETHER];
    int16_t by16[TOGETHER / 16], by32[TOGETHER / 32];
    const size_t n = (size_t)blocks;
    memcpy(filled, x, 32 * n * sizeof *x);
    quantize_four(filled, bytes, scale, by16, by32);
    memcpy(q, bytes, 32 * n);
    memcpy(d, scale, n * sizeof *d);
    memcpy(sum16, by16, 2 * n * sizeof *sum16);
    memcpy(sum32, by32, n * sizeof *sum32);
}

static void quantize_32(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out) {
    for (int64_t r = row0; r < row1; r++) {
        const float *from = x + r * ldx;
        const hth_qact to = hth_qact_from(out, r);
        int64_t b = 0;
        for (; b + BLOCKS_32 <= to.blocks; b += BLOCKS_32)
            quantize_four(from + 32 * b, to.q + 32 * b, to.d + b, to.sum16 + 2 * b, to.sum32 + b);
        if (b < to.blocks)
            quantize_rest(from + 32 * b, to.blocks - b, to.q + 32 * b, to.d + b, to.sum16 + 2 * b, to.sum32 + b);
        memset(to.q + to.k, 0, (size_t)(to.q_stride - to.k));
    }
}

HTH_INLINE void quantize_block256(const float *x, int8_t *q, float *d, int16_t *sum16, int16_t *sum32) {
    __m512i m[4];
    __m512 id[4];
    HTH_UNROLL for (int i = 0; i < 4; i++) m[i] = magnitude(x + 16 * i);
    for (int i = 64; i < 256; i += 64)
        HTH_UNROLL for (int j = 0; j < 4; j++) m[j] = _mm512_max_epi32(m[j], magnitude(x + i + 16 * j));
    __m128i largest = largest_of_four(m);
    largest = _mm_max_epi32(largest, _mm_shuffle_epi32(largest, 0x4E));
    largest = _mm_max_epi32(largest, _mm_shuffle_epi32(largest, 0xB1));
    __m128 scale, inverse;
    scales(largest, &scale, &inverse);
    _mm_store_ss(d, scale);
    HTH_UNROLL for (int i = 0; i < 4; i++) id[i] = _mm512_broadcastss_ps(inverse);
    for (int i = 0; i < 256; i += TOGETHER) quantize128(x + i, id, q + i, sum16 + i / 16, sum32 + i / 32);
}

static void quantize_256(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out) {
    for (int64_t r = row0; r < row1; r++) {
        const hth_qact to = hth_qact_from(out, r);
        for (int64_t b = 0; b < to.blocks; b++)
            quantize_block256(x + r * ldx + 256 * b, to.q + 256 * b, to.d + b, to.sum16 + 16 * b, to.sum32 + 8 * b);
        memset(to.q + to.k, 0, (size_t)(to.q_stride - to.k));
    }
}

void hth_avx512_init_quantize(hth_kernels *t) {
    t->quantize32 = quantize_32;
    t->quantize256 = quantize_256;
}
