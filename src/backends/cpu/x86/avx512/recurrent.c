/* The recurrences and the gate of the avx512 tier. */
#include "backends/cpu/x86/avx512/avx512.h"
#include "backends/cpu/x86/avx512/lanes.h"
#include "backends/cpu/x86/avx512/math_avx512.h"

enum { LANES = 16 };
typedef __m512 floats;

#include "backends/cpu/x86/recurrent.h"

HTH_INLINE floats every(float x) {
    return _mm512_set1_ps(x);
}

HTH_INLINE floats load(const float *p) {
    return _mm512_loadu_ps(p);
}

HTH_INLINE void store(float *p, floats v) {
    _mm512_storeu_ps(p, v);
}

HTH_INLINE floats load_some(const float *p, int64_t left) {
    return hth_load_avx512(p, left);
}

HTH_INLINE void store_some(float *p, int64_t left, floats v) {
    hth_store_avx512(p, left, v);
}

HTH_INLINE floats multiply(floats a, floats b) {
    return _mm512_mul_ps(a, b);
}

HTH_INLINE floats subtract(floats a, floats b) {
    return _mm512_sub_ps(a, b);
}

HTH_INLINE floats multiply_add(floats a, floats b, floats c) {
    return _mm512_fmadd_ps(a, b, c);
}

HTH_INLINE floats sigmoid(floats z) {
    const floats one = _mm512_set1_ps(1.0f);
    return _mm512_div_ps(one, _mm512_add_ps(one, hth_expf_avx512(hth_negate_avx512(z))));
}

HTH_INLINE floats silu(floats z) {
    return hth_silu_avx512(z);
}

HTH_INLINE float sum_of_squares(const float *x, int64_t n) {
    floats p = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += LANES) {
        floats e = hth_load_avx512(x + i, n - i);
        p = _mm512_fmadd_ps(e, e, p);
    }
    return hth_tree_sum_avx512(p);
}

void hth_avx512_init_recurrent(hth_kernels *t) {
    init_recurrent(t);
}
