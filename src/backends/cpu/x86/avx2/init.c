#include "backends/cpu/x86/avx2/avx2.h"

void hth_kernels_avx2(hth_kernels *t) {
    t->name = "avx2";
    hth_avx2_init_quantize(t);
    hth_avx2_init_linear(t);
    hth_avx2_init_linear_float(t);
    hth_avx2_init_rows(t);
    hth_avx2_init_attention(t);
    hth_avx2_init_recurrent(t);
    hth_avx2_init_peak(t);
}
