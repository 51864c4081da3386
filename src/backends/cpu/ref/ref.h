/* The parts of the ref tier: each fills in the kernels of one source family. hth_kernels_ref calls them all. */
#ifndef HTH_BACKENDS_CPU_REF_REF_H
#define HTH_BACKENDS_CPU_REF_REF_H

#include "backends/cpu/kernels.h"

void hth_ref_init_quantize(hth_kernels *t);
void hth_ref_init_linear(hth_kernels *t);
void hth_ref_init_rows(hth_kernels *t);
void hth_ref_init_attention(hth_kernels *t);
void hth_ref_init_recurrent(hth_kernels *t);
void hth_ref_init_peak(hth_kernels *t);

#endif
