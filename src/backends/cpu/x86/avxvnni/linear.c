#include "backends/cpu/x86/avxvnni/linear.h"

#include "backends/cpu/x86/avxvnni/avxvnni.h"

#define DEFINE(name, dtype, block)                                                                                     \
    static void linear_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {    \
        const bool few = few_rows(a, r0, r1, HTH_AVXVNNI_FEW_ROWS, HTH_AVXVNNI_GROUP_##block);                         \
        (few ? hth_avxvnni_few_##name : hth_avxvnni_many_##name)(a, c0, c1, r0, r1, scratch);                          \
    }
HTH_QUANTIZED_FORMATS(DEFINE)
#undef DEFINE

void hth_avxvnni_init_linear(hth_kernels *t) {
#define SET(name, dtype, block) t->linear[dtype] = linear_##name;
    HTH_QUANTIZED_FORMATS(SET)
#undef SET
}
