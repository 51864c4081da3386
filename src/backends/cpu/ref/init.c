#include "backends/cpu/ref/ref.h"

void hth_kernels_ref(hth_kernels *t) {
    t->name = "ref";
    hth_ref_init_quantize(t);
    hth_ref_init_linear(t);
    hth_ref_init_rows(t);
    hth_ref_init_attention(t);
    hth_ref_init_recurrent(t);
    hth_ref_init_peak(t);
}
