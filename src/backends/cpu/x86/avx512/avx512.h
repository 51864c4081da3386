/* The parts of the avx512 tier: each fills in the kernels of one source family. hth_kernels_avx512 calls them all. */
#ifndef HTH_BACKENDS_CPU_X86_AVX512_H
#define HTH_BACKENDS_CPU_X86_AVX512_H

#include "backends/cpu/kernels.h"

void hth_avx512_init_linear(hth_kernels *t);
void hth_avx512_init_linear_float(hth_kernels *t);
void hth_avx512_init_rows(hth_kernels *t);
void hth_avx512_init_quantize(hth_kernels *t);
void hth_avx512_init_attention(hth_kernels *t);
void hth_avx512_init_recurrent(hth_kernels *t);
void hth_avx512_init_peak(hth_kernels *t);

#endif
