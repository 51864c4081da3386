#include "backends/cpu/x86/avx2/avx2.h"

void hth_avx2_init_rows(hth_kernels *t) {
    (void)t;
}
