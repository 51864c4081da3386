/* base/math.h in eight lanes: the same operations, hence the same bits. */
#ifndef HTH_BACKENDS_CPU_X86_AVX2_MATH_AVX2_H
#define HTH_BACKENDS_CPU_X86_AVX2_MATH_AVX2_H

#include "backends/cpu/x86/intrin.h"
#include "base/math.h"

HTH_INLINE __m256 hth_expf_avx2(__m256 x) {
    /* min and max give their second operand when one is NaN. */
    x = _mm256_min_ps(_mm256_set1_ps(HTH_EXP_MAX_F32), x);
    x = _mm256_max_ps(_mm256_set1_ps(HTH_EXP_MIN_F32), x);
    const __m256 round = _mm256_set1_ps(HTH_ROUND_F32), one = _mm256_set1_ps(1.0f);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(HTH_LOG2E_F32), round);
    __m256 n = _mm256_sub_ps(shifted, round);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-HTH_LN2_HI_F32), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-HTH_LN2_LO_F32), r);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(HTH_EXP_E6), r, _mm256_set1_ps(HTH_EXP_E5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(HTH_EXP_E4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(HTH_EXP_E3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(HTH_EXP_E2));
    p = _mm256_fmadd_ps(p, r, one);
    p = _mm256_fmadd_ps(p, r, one);
    __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 10);
    __m256i half = _mm256_srai_epi32(bits, 11), rest = _mm256_sub_epi32(_mm256_srai_epi32(bits, 10), half);
    const __m256i bias = _mm256_set1_epi32(127);
    __m256 scale1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    __m256 scale2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(p, scale1), scale2);
}

HTH_INLINE __m256 hth_tanhf_avx2(__m256 x) {
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f);
    __m256 a = _mm256_andnot_ps(sign, x), z = _mm256_mul_ps(a, a);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(HTH_TANH_T4), z, _mm256_set1_ps(HTH_TANH_T3));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(HTH_TANH_T2));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(HTH_TANH_T1));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(HTH_TANH_T0));
    __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(a, z), p, a);
    __m256 e = hth_expf_avx2(_mm256_add_ps(a, a));
    __m256 large = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), _mm256_add_ps(e, one)));
    __m256 is_small = _mm256_cmp_ps(a, _mm256_set1_ps(HTH_TANH_LIMIT), _CMP_LT_OQ);
    return _mm256_or_ps(_mm256_blendv_ps(large, small, is_small), _mm256_and_ps(sign, x));
}

/* z / (1 + exp(-z)) */
HTH_INLINE __m256 hth_silu_avx2(__m256 z) {
    __m256 e = hth_expf_avx2(_mm256_xor_ps(z, _mm256_set1_ps(-0.0f)));
    return _mm256_div_ps(z, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

#endif
