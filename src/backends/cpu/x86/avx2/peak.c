/* Peaks of the avx2 tier: an int8 dot product is maddubs, madd and add. */
#include "backends/cpu/x86/peak.h"

#include "backends/cpu/x86/avx2/avx2.h"

/* The sum is an operand of its own products: with constant ones the compiler would multiply once, before the loop. */
#define INT8_FIRST(c) _mm256_set1_epi32(0x01020304 * (c))
#define INT8_STEP(sum)                                                                                                 \
    _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(3), sum), _mm256_set1_epi16(1)))
#define FLOAT_FIRST(c)  _mm256_set1_ps((float)(c))
#define FLOAT_STEP(sum) _mm256_fmadd_ps(sum, _mm256_set1_ps(0.75f), _mm256_set1_ps(1.25f))
#define FOLD(x)         ((uint32_t)_mm256_cvtsi256_si32(x))
#define FOLD_FLOAT(x)   FOLD(_mm256_castps_si256(x))
#define FOLD_LONG(x)    ((uint64_t)_mm256_extract_epi64(x, 0))
#define LOAD(p)         _mm256_load_si256(p)

HTH_PEAK_LOOP(multiply_int8, __m256i, INT8_FIRST, INT8_STEP, _mm256_add_epi32, FOLD)
HTH_PEAK_LOOP(multiply_float, __m256, FLOAT_FIRST, FLOAT_STEP, _mm256_add_ps, FOLD_FLOAT)
HTH_READ_LOOP(read_all, __m256i, _mm256_setzero_si256(), LOAD, _mm256_xor_si256, FOLD_LONG)

void hth_avx2_init_peak(hth_kernels *t) {
    t->peak_int8 = (hth_peak){multiply_int8, HTH_PEAK_CHAINS * 32 * 2};
    t->peak_float = (hth_peak){multiply_float, HTH_PEAK_CHAINS * 8 * 2};
    t->read = read_all;
}
