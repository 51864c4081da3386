/* Peak of the avxvnni tier: dpbusd on eight lanes. Floats and reading are those of avx2. */
#include "backends/cpu/x86/peak.h"

#include "backends/cpu/x86/avxvnni/avxvnni.h"

#define INT8_FIRST(c)  _mm256_set1_epi32(c)
#define INT8_STEP(sum) _mm256_dpbusd_avx_epi32(sum, _mm256_set1_epi8(3), _mm256_set1_epi8(5))
#define FOLD(x)        ((uint32_t)_mm256_cvtsi256_si32(x))

HTH_PEAK_LOOP(multiply_int8, __m256i, INT8_FIRST, INT8_STEP, _mm256_add_epi32, FOLD)

void hth_avxvnni_init_peak(hth_kernels *t) {
    t->peak_int8 = (hth_peak){multiply_int8, HTH_PEAK_CHAINS * 32 * 2};
}
