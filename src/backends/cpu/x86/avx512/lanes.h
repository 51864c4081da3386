/* Loads and stores of up to sixteen floats, and the tree at the end of a striped sum. */
#ifndef HTH_BACKENDS_CPU_X86_AVX512_LANES_H
#define HTH_BACKENDS_CPU_X86_AVX512_LANES_H

#include <stdint.h>

#include "backends/cpu/x86/intrin.h"

/* The first `left` of sixteen lanes; none when left <= 0, all from 16 on. */
HTH_INLINE __mmask16 hth_mask_avx512(int64_t left) {
    return left >= 16 ? (__mmask16)0xFFFF : left > 0 ? (__mmask16)((1u << left) - 1) : (__mmask16)0;
}

/* The next sixteen of `left` floats; lanes past the last are +0 and their memory is not touched. */
HTH_INLINE __m512 hth_load_avx512(const float *p, int64_t left) {
    return _mm512_maskz_loadu_ps(hth_mask_avx512(left), p);
}

HTH_INLINE void hth_store_avx512(float *p, int64_t left, __m512 x) {
    _mm512_mask_storeu_ps(p, hth_mask_avx512(left), x);
}

/* The tree over sixteen stripes. */
HTH_INLINE float hth_tree_sum_avx512(__m512 p16) {
    __m256 p8 = _mm256_add_ps(_mm512_castps512_ps256(p16), _mm512_extractf32x8_ps(p16, 1));
    __m128 p4 = _mm_add_ps(_mm256_castps256_ps128(p8), _mm256_extractf128_ps(p8, 1));
    __m128 p2 = _mm_add_ps(p4, _mm_movehl_ps(p4, p4));
    return _mm_cvtss_f32(_mm_add_ss(p2, _mm_movehdup_ps(p2)));
}

#endif
