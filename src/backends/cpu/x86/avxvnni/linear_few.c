#include "backends/cpu/x86/avxvnni/linear.h"
#include "backends/cpu/x86/unpack256.h"

enum {
    MAX_ROWS = HTH_AVXVNNI_FEW_ROWS,
    GROUP_32 = HTH_AVXVNNI_GROUP_32,
    GROUP_256 = HTH_AVXVNNI_GROUP_256,
    SIDE_SUB_32 = 32,
    PREFETCH = 8192
};
#define FEW_ROWS(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2)
#define FEW_FORMAT(name) format_##name
typedef format32 few_format32;
typedef format256 few_format256;

#include "backends/cpu/x86/linear_few.h"

#include "backends/cpu/x86/few256.h"

HTH_INLINE __m256i products(__m256i w, __m256i q, int max) {
    (void)max;
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), w, q);
}

HTH_INLINE __m256i sum_products(const __m256i v[8], int max) {
    (void)max;
    return sums32(v);
}

HTH_INLINE __m256i add_pairs(__m256i acc, __m256i a, __m256i b) {
    return _mm256_dpwssd_avx_epi32(acc, a, b);
}

#define DEFINE(name, dtype, block) FEW(hth_avxvnni, name, block)
HTH_QUANTIZED_FORMATS(DEFINE)
