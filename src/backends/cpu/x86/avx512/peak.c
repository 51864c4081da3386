/* Peaks of the avx512 tier: dpbusd and FMA on sixteen lanes. */
#include "backends/cpu/x86/peak.h"

#include "backends/cpu/x86/avx512/avx512.h"

#define INT8_FIRST(c)   _mm512_set1_epi32(c)
#define INT8_STEP(sum)  _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(3), _mm512_set1_epi8(5))
#define FLOAT_FIRST(c)  _mm512_set1_ps((float)(c))
#define FLOAT_STEP(sum) _mm512_fmadd_ps(sum, _mm512_set1_ps(0.75f), _mm512_set1_ps(1.25f))
#define FOLD(x)         ((uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(x)))
#define FOLD_FLOAT(x)   FOLD(_mm512_castps_si512(x))
#define FOLD_LONG(x)    ((uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(x)))

HTH_PEAK_LOOP(multiply_int8, __m512i, INT8_FIRST, INT8_STEP, _mm512_add_epi32, FOLD)
HTH_PEAK_LOOP(multiply_float, __m512, FLOAT_FIRST, FLOAT_STEP, _mm512_add_ps, FOLD_FLOAT)
HTH_READ_LOOP(read_all, __m512i, _mm512_setzero_si512(), _mm512_load_si512, _mm512_xor_si512, FOLD_LONG)

void hth_avx512_init_peak(hth_kernels *t) {
    t->peak_int8 = (hth_peak){multiply_int8, HTH_PEAK_CHAINS * 64 * 2};
    t->peak_float = (hth_peak){multiply_float, HTH_PEAK_CHAINS * 16 * 2};
    t->read = read_all;
}
