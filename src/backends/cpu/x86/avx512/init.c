#include "backends/cpu/x86/avx512/avx512.h"

void hth_kernels_avx512(hth_kernels *t) {
    t->name = "avx512";
    hth_avx512_init_linear(t);
    hth_avx512_init_linear_float(t);
    hth_avx512_init_rows(t);
    hth_avx512_init_quantize(t);
    hth_avx512_init_attention(t);
    hth_avx512_init_recurrent(t);
    hth_avx512_init_peak(t);
}
