/* The two shapes of the quantized linear, for one format each, and what they share. */
#ifndef HTH_BACKENDS_CPU_X86_AVX2_LINEAR_H
#define HTH_BACKENDS_CPU_X86_AVX2_LINEAR_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/vec256.h"

/* Formats with an integer kernel, as X(lower-case name, dtype, block family). */
#define HTH_QUANTIZED_FORMATS(X)                                                                                       \
    X(q4_0, HTH_Q4_0, 32)                                                                                              \
    X(q4_1, HTH_Q4_1, 32)                                                                                              \
    X(q5_0, HTH_Q5_0, 32)                                                                                              \
    X(q5_1, HTH_Q5_1, 32)                                                                                              \
    X(q8_0, HTH_Q8_0, 32)                                                                                              \
    X(iq4_nl, HTH_IQ4_NL, 32)                                                                                          \
    X(mxfp4, HTH_MXFP4, 32)                                                                                            \
    X(q2_k, HTH_Q2_K, 256)                                                                                             \
    X(q3_k, HTH_Q3_K, 256)                                                                                             \
    X(q4_k, HTH_Q4_K, 256)                                                                                             \
    X(q5_k, HTH_Q5_K, 256)                                                                                             \
    X(q6_k, HTH_Q6_K, 256)                                                                                             \
    X(iq4_xs, HTH_IQ4_XS, 256)

/* Few rows: weights are unpacked in registers, straight from the stream. At most hth_avx2_few_rows rows of k elements
 * (0: k is too long for the scratch). */
int64_t hth_avx2_few_rows(int64_t k, int block);
#define DECLARE(name, dtype, family) hth_linear_fn hth_avx2_few_##name;
HTH_QUANTIZED_FORMATS(DECLARE)
#undef DECLARE

/* Many rows: weights are unpacked into a panel of columns, once for all rows. */
#define DECLARE(name, dtype, family) hth_linear_fn hth_avx2_many_##name;
HTH_QUANTIZED_FORMATS(DECLARE)
#undef DECLARE

/* The epilogue for n (1..8) columns from c of row r. */
HTH_INLINE void finish8(const hth_linear *a, int64_t r, int64_t c, int64_t n, __m256 acc) {
    float *y = a->y + r * a->ldy + c;
    if (n >= 8) {
        if (a->bias) acc = _mm256_add_ps(acc, _mm256_loadu_ps(a->bias + c));
        if (a->add) acc = _mm256_add_ps(acc, _mm256_loadu_ps(a->add + r * a->ldadd + c));
        _mm256_storeu_ps(y, acc);
        return;
    }
    __m256i mask = lanes_mask(n);
    if (a->bias) acc = _mm256_add_ps(acc, _mm256_maskload_ps(a->bias + c, mask));
    if (a->add) acc = _mm256_add_ps(acc, _mm256_maskload_ps(a->add + r * a->ldadd + c, mask));
    _mm256_maskstore_ps(y, mask, acc);
}

#endif
