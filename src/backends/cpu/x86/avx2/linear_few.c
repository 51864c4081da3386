#include "backends/cpu/x86/avx2/linear.h"
#include "backends/cpu/x86/unpack256.h"

enum {
    MAX_ROWS = HTH_AVX2_FEW_ROWS,
    GROUP_32 = HTH_AVX2_GROUP_32,
    GROUP_256 = HTH_AVX2_GROUP_256,
    SIDE_SUB_32 = 32,
    PREFETCH = 8192
};
#define FEW_ROWS(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2)
#define FEW_FORMAT(name) format_##name
typedef format32 few_format32;
typedef format256 few_format256;

#include "backends/cpu/x86/linear_few.h"

#include "backends/cpu/x86/few256.h"

/* Sums of four products of up to 2 * 31 * 127 each fit in 16 bits; larger ones are widened at once. */
HTH_INLINE __m256i products(__m256i w, __m256i q, int max) {
    __m256i p = _mm256_maddubs_epi16(w, q);
    return max > 31 ? _mm256_madd_epi16(p, _mm256_set1_epi16(1)) : p;
}

HTH_INLINE __m256i sum_products(const __m256i v[8], int max) {
    return max > 31 ? sums32(v) : sums16(v);
}

HTH_INLINE __m256i add_pairs(__m256i acc, __m256i a, __m256i b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

#define DEFINE(name, dtype, block) FEW(hth_avx2, name, block)
HTH_QUANTIZED_FORMATS(DEFINE)
