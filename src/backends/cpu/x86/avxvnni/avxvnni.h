/* The parts of the avxvnni tier: each fills in the kernels of one source family. hth_kernels_avxvnni calls them all. */
#ifndef HTH_BACKENDS_CPU_X86_AVXVNNI_H
#define HTH_BACKENDS_CPU_X86_AVXVNNI_H

#include "backends/cpu/kernels.h"

void hth_avxvnni_init_linear(hth_kernels *t);
void hth_avxvnni_init_peak(hth_kernels *t);

#endif
