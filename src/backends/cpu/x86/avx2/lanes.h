/* Loads and stores of up to eight floats, and the tree at the end of a striped sum. */
#ifndef HTH_BACKENDS_CPU_X86_AVX2_LANES_H
#define HTH_BACKENDS_CPU_X86_AVX2_LANES_H

#include <stdint.h>

#include "backends/cpu/x86/vec256.h"

/* The next eight of `left` > 0 floats; lanes past the last are +0 and their memory is not touched. */
HTH_INLINE __m256 hth_load_avx2(const float *p, int64_t left) {
    return left >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, lanes_mask(left));
}

HTH_INLINE void hth_store_avx2(float *p, int64_t left, __m256 x) {
    if (left >= 8) _mm256_storeu_ps(p, x);
    else _mm256_maskstore_ps(p, lanes_mask(left), x);
}

/* The same for the sixteen stripes of a sum: lanes 0-7 in *a, 8-15 in *b. */
HTH_INLINE void hth_load16_avx2(const float *p, int64_t left, __m256 *a, __m256 *b) {
    *a = hth_load_avx2(p, left);
    *b = left > 8 ? hth_load_avx2(p + 8, left - 8) : _mm256_setzero_ps();
}

/* The tree over stripes 0-7 and 8-15. */
HTH_INLINE float hth_tree_sum_avx2(__m256 a, __m256 b) {
    __m256 p8 = _mm256_add_ps(a, b);
    __m128 p4 = _mm_add_ps(_mm256_castps256_ps128(p8), _mm256_extractf128_ps(p8, 1));
    __m128 p2 = _mm_add_ps(p4, _mm_movehl_ps(p4, p4));
    return _mm_cvtss_f32(_mm_add_ss(p2, _mm_movehdup_ps(p2)));
}

#endif
