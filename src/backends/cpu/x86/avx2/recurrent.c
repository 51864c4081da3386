/* The recurrences and the gate of the avx2 tier. */
#include "backends/cpu/x86/avx2/avx2.h"
#include "backends/cpu/x86/avx2/lanes.h"
#include "backends/cpu/x86/avx2/math_avx2.h"

enum { LANES = 8 };
typedef __m256 floats;

#include "backends/cpu/x86/recurrent.h"

HTH_INLINE floats every(float x) {
    return _mm256_set1_ps(x);
}

HTH_INLINE floats load(const float *p) {
    return _mm256_loadu_ps(p);
}

HTH_INLINE void store(float *p, floats v) {
    _mm256_storeu_ps(p, v);
}

HTH_INLINE floats load_some(const float *p, int64_t left) {
    return left > 0 ? hth_load_avx2(p, left) : _mm256_setzero_ps();
}

HTH_INLINE void store_some(float *p, int64_t left, floats v) {
    if (left > 0) hth_store_avx2(p, left, v);
}

HTH_INLINE floats multiply(floats a, floats b) {
    return _mm256_mul_ps(a, b);
}

HTH_INLINE floats subtract(floats a, floats b) {
    return _mm256_sub_ps(a, b);
}

HTH_INLINE floats multiply_add(floats a, floats b, floats c) {
    return _mm256_fmadd_ps(a, b, c);
}

HTH_INLINE floats sigmoid(floats z) {
    const floats one = _mm256_set1_ps(1.0f);
    return _mm256_div_ps(one, _mm256_add_ps(one, hth_expf_avx2(negative(z))));
}

HTH_INLINE floats silu(floats z) {
    return hth_silu_avx2(z);
}

HTH_INLINE float sum_of_squares(const float *x, int64_t n) {
    floats p0 = _mm256_setzero_ps(), p1 = p0;
    for (int64_t i = 0; i < n; i += 16) {
        floats a, b;
        hth_load16_avx2(x + i, n - i, &a, &b);
        p0 = _mm256_fmadd_ps(a, a, p0);
        p1 = _mm256_fmadd_ps(b, b, p1);
    }
    return hth_tree_sum_avx2(p0, p1);
}

void hth_avx2_init_recurrent(hth_kernels *t) {
    init_recurrent(t);
}
