/* Activations to int8 (hth_quantize_fn), a block of 32 or 256 at a time. */
#include <string.h>

#include "backends/cpu/x86/avx2/avx2.h"
#include "backends/cpu/x86/vec256.h"
#include "base/half.h"

/* Largest magnitude of n floats (a multiple of 32). Compared as integers, so that a NaN is above infinity. */
HTH_INLINE float largest(const float *x, int n) {
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i m[4];
    HTH_UNROLL for (int j = 0; j < 4; j++) m[j] = _mm256_and_si256(load256(x + 8 * j), magnitude);
    for (int i = 32; i < n; i += 32)
        HTH_UNROLL for (int j = 0; j < 4; j++) m[j] =
            _mm256_max_epi32(m[j], _mm256_and_si256(load256(x + i + 8 * j), magnitude));
    __m256i a = _mm256_max_epi32(_mm256_max_epi32(m[0], m[1]), _mm256_max_epi32(m[2], m[3]));
    __m128i b = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0x4E));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0xB1));
    return hth_f32_from_bits((uint32_t)_mm_cvtsi128_si32(b));
}

/* min and max return their second operand for a NaN, which makes it 127. */
HTH_INLINE __m256i rounded(const float *x, __m256 id) {
    __m256 t = _mm256_mul_ps(_mm256_loadu_ps(x), id);
    t = _mm256_max_ps(_mm256_min_ps(t, _mm256_set1_ps(127)), _mm256_set1_ps(-127));
    return _mm256_cvtps_epi32(t);
}

/* 32 values, and the sums of each 16. */
HTH_INLINE void quantize32(const float *x, __m256 id, int8_t *q, int16_t *sum16) {
    __m256i a = _mm256_packs_epi32(rounded(x, id), rounded(x + 8, id));
    __m256i b = _mm256_packs_epi32(rounded(x + 16, id), rounded(x + 24, id));
    __m256i v = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)q, v);
    /* Bytes plus 128 are unsigned, which `sad` adds up by eights. */
    __m256i s = _mm256_sad_epu8(_mm256_xor_si256(v, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    s = _mm256_add_epi64(s, _mm256_shuffle_epi32(s, 0x4E));
    sum16[0] = (int16_t)(_mm256_extract_epi16(s, 0) - 16 * 128);
    sum16[1] = (int16_t)(_mm256_extract_epi16(s, 8) - 16 * 128);
}

HTH_INLINE void quantize_block(const float *x, int n, int8_t *q, float *d, int16_t *sum16, int16_t *sum32) {
    float amax = largest(x, n);
    if (amax < 0x1p-100f) {
        memset(q, 0, (size_t)n);
        memset(sum16, 0, (size_t)(n / 16) * sizeof *sum16);
        memset(sum32, 0, (size_t)(n / 32) * sizeof *sum32);
        *d = 0;
        return;
    }
    *d = amax / 127;
    __m256 id = _mm256_set1_ps(127 / amax);
    for (int i = 0; i < n; i += 32) {
        quantize32(x + i, id, q + i, sum16 + i / 16);
        sum32[i / 32] = (int16_t)(sum16[i / 16] + sum16[i / 16 + 1]);
    }
}

HTH_INLINE void quantize(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out, int block) {
    for (int64_t r = row0; r < row1; r++) {
        int8_t *q = out->q + r * out->q_stride;
        int16_t *sum16 = out->sum16 + r * out->sum16_stride, *sum32 = out->sum32 + r * out->sum32_stride;
        for (int64_t b = 0; b < out->blocks; b++)
            quantize_block(x + r * ldx + b * block, block, q + b * block, &out->d[r * out->blocks + b],
                           sum16 + b * block / 16, sum32 + b * block / 32);
        memset(q + out->k, 0, (size_t)(out->q_stride - out->k));
    }
}

static void quantize_32(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out) {
    quantize(x, ldx, row0, row1, out, 32);
}

static void quantize_256(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out) {
    quantize(x, ldx, row0, row1, out, 256);
}

void hth_avx2_init_quantize(hth_kernels *t) {
    t->quantize32 = quantize_32;
    t->quantize256 = quantize_256;
}
