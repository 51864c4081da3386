/* The integer linears of the avx512 tier: name is a format's, in lower case. */
#ifndef HTH_BACKENDS_CPU_X86_AVX512_LINEAR_H
#define HTH_BACKENDS_CPU_X86_AVX512_LINEAR_H

#include "backends/cpu/x86/linear.h"

/* Of linear_few.c: the most rows that it takes, and the blocks that it reduces together. */
enum { HTH_AVX512_FEW_ROWS = 4, HTH_AVX512_GROUP_32 = 16, HTH_AVX512_GROUP_256 = 8 };

#define DECLARE(name, dtype, block) hth_linear_fn hth_avx512_few_##name, hth_avx512_many_##name;
HTH_QUANTIZED_FORMATS(DECLARE)
#undef DECLARE

#endif
