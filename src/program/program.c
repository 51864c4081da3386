#include "program/program.h"

#include <stdlib.h>

int64_t hth_tensor_elements(const hth_tensor *t, const hth_extents *extents) {
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= t->dims[i].n * extents->value[t->dims[i].symbol];
    return n;
}

uint64_t hth_weight_bytes(const hth_tensor *weight) {
    if (weight->weight.slab_stride == 0) return weight->weight.bytes;
    const hth_dtype_info *info = hth_dtype_find((uint32_t)weight->dtype);
    return (uint64_t)(weight->dims[1].n * weight->dims[2].n) * hth_row_bytes(info, (uint64_t)weight->dims[0].n);
}

void hth_program_free(hth_program **program) {
    hth_program *p = *program;
    if (!p) return;
    for (int i = 0; i < p->n_tensors; i++)
        if (p->tensors[i].class == HTH_CONSTANT) free((void *)(uintptr_t)p->tensors[i].constant);
    free(p->tensors);
    free(p->ops);
    free(p->notes);
    free(p);
    *program = NULL;
}
