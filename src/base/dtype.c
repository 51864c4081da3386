#include "base/dtype.h"

#include <stddef.h>

const hth_dtype_info *hth_dtype_find(uint32_t id) {
    static const hth_dtype_info table[HTH_DTYPE_MAX] = {
#define X(name, id, block, bytes, computed) [id] = {#name, block, bytes, computed},
        HTH_DTYPE_LIST(X)
#undef X
    };
    return id < HTH_DTYPE_MAX && table[id].name ? &table[id] : NULL;
}

const char *hth_dtype_name(hth_dtype dtype) {
    const hth_dtype_info *info = hth_dtype_find((uint32_t)dtype);
    return info ? info->name : "?";
}

#define COMPUTED_0(name)
#define COMPUTED_1(name) " " #name

const char *hth_dtype_computed_names(void) {
    static const char names[] = ""
#define X(name, id, block, bytes, computed) COMPUTED_##computed(name)
        HTH_DTYPE_LIST(X)
#undef X
        ;
    return names + 1;
}
