/* base/math.h in sixteen lanes: the same operations, hence the same bits. */
#ifndef HTH_BACKENDS_CPU_X86_AVX512_MATH_AVX512_H
#define HTH_BACKENDS_CPU_X86_AVX512_MATH_AVX512_H

#include "backends/cpu/x86/intrin.h"
#include "base/math.h"

HTH_INLINE __m512 hth_expf_avx512(__m512 x) {
    /* min and max give their second operand when one is NaN. */
    x = _mm512_min_ps(_mm512_set1_ps(HTH_EXP_MAX_F32), x);
    x = _mm512_max_ps(_mm512_set1_ps(HTH_EXP_MIN_F32), x);
    const __m512 round = _mm512_set1_ps(HTH_ROUND_F32), one = _mm512_set1_ps(1.0f);
    __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(HTH_LOG2E_F32), round);
    __m512 n = _mm512_sub_ps(shifted, round);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-HTH_LN2_HI_F32), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-HTH_LN2_LO_F32), r);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(HTH_EXP_E6), r, _mm512_set1_ps(HTH_EXP_E5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(HTH_EXP_E4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(HTH_EXP_E3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(HTH_EXP_E2));
    p = _mm512_fmadd_ps(p, r, one);
    p = _mm512_fmadd_ps(p, r, one);
    return _mm512_scalef_ps(p, n); /* rounds once, as the last of two exact-but-one products does */
}

HTH_INLINE __m512 hth_tanhf_avx512(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    __m512 a = _mm512_castsi512_ps(_mm512_andnot_si512(sign, _mm512_castps_si512(x))), z = _mm512_mul_ps(a, a);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(HTH_TANH_T4), z, _mm512_set1_ps(HTH_TANH_T3));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(HTH_TANH_T2));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(HTH_TANH_T1));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(HTH_TANH_T0));
    __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(a, z), p, a);
    __m512 e = hth_expf_avx512(_mm512_add_ps(a, a));
    __m512 large = _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0f), _mm512_add_ps(e, one)));
    __m512 t = _mm512_mask_mov_ps(large, _mm512_cmp_ps_mask(a, _mm512_set1_ps(HTH_TANH_LIMIT), _CMP_LT_OQ), small);
    __m512i s = _mm512_and_si512(sign, _mm512_castps_si512(x));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(t), s));
}

HTH_INLINE __m512 hth_negate_avx512(__m512 x) {
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)));
}

/* z / (1 + exp(-z)) */
HTH_INLINE __m512 hth_silu_avx512(__m512 z) {
    return _mm512_div_ps(z, _mm512_add_ps(_mm512_set1_ps(1.0f), hth_expf_avx512(hth_negate_avx512(z))));
}

#endif
