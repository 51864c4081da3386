#include "backends/backend.h"

#include <string.h>

#include "backends/cpu/backend_cpu.h"

hearth_status hth_backend_find(const char *name, const hth_backend_type **out, hearth_error *err) {
    static const hth_backend_type *const types[] = {&hth_backend_cpu};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i]->name, name) == 0) {
            *out = types[i];
            return HEARTH_OK;
        }
    *out = NULL;
    return hth_fail(err, HEARTH_UNSUPPORTED, "backend '%s' is not known; there is: cpu", name);
}
