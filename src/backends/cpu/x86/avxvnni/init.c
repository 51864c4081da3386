#include "backends/cpu/x86/avxvnni/avxvnni.h"

void hth_kernels_avxvnni(hth_kernels *t) {
    t->name = "avxvnni";
    hth_avxvnni_init_linear(t);
    hth_avxvnni_init_peak(t);
}
