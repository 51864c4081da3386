#include "backends/cpu/x86/linear_few.h"

#include "backends/cpu/x86/avx512/linear.h"

HTH_INLINE __m256i products(__m256i w, __m256i q, int max) {
    (void)max;
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), w, q);
}

HTH_INLINE __m256i sum_products(const __m256i v[8], int max) {
    (void)max;
    return sums32(v);
}

HTH_INLINE __m256i add_pairs(__m256i acc, __m256i a, __m256i b) {
    return _mm256_dpwssd_epi32(acc, a, b);
}

#define DEFINE(name, dtype, block) FEW(hth_avx512, name, block)
HTH_QUANTIZED_FORMATS(DEFINE)
