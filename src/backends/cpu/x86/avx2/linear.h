/* The integer linears of the avx2 tier: name is a format's, in lower case. */
#ifndef HTH_BACKENDS_CPU_X86_AVX2_LINEAR_H
#define HTH_BACKENDS_CPU_X86_AVX2_LINEAR_H

#include "backends/cpu/x86/linear.h"

/* Of linear_few.c: the most rows that it takes, and the blocks that it reduces together. */
enum { HTH_AVX2_FEW_ROWS = 2, HTH_AVX2_GROUP_32 = 8, HTH_AVX2_GROUP_256 = 8 };

#define DECLARE(name, dtype, block) hth_linear_fn hth_avx2_few_##name, hth_avx2_many_##name;
HTH_QUANTIZED_FORMATS(DECLARE)
#undef DECLARE

#endif
