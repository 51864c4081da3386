#include "backends/cpu/x86/avx512/avx512.h"

/* The rows and the attention of this tier are written (rows.c, attention.c) but no test has yet held them to ref on a
 * processor that has the instructions, so the table keeps those of avx2. */
void hth_kernels_avx512(hth_kernels *t) {
    t->name = "avx512";
    hth_avx512_init_quantize(t);
    hth_avx512_init_linear(t);
}
