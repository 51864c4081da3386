/* What the machine can do, in the engine's own threads and instructions. */
#include <stdlib.h>

#include "engine/engine.h"

hearth_status hearth_engine_limits(hearth_engine *e, hearth_limits *limits, size_t count, hearth_error *err) {
    int threads = e->type->threads(e->backend);
    for (size_t i = 0; i < count; i++)
        if (limits[i].threads < 1 || limits[i].threads > threads)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "limits of %d threads: the engine has %d", limits[i].threads,
                            threads);
    hth_peaks *rows = calloc(count + 1, sizeof *rows);
    if (!rows) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %zu limits", count);
    for (size_t i = 0; i < count; i++) rows[i].threads = limits[i].threads;
    hearth_status status = e->type->peaks(e->backend, hth_free_memory() / 4, rows, count, err);
    for (size_t i = 0; i < count && status == HEARTH_OK; i++)
        limits[i] = (hearth_limits){.threads = rows[i].threads,
                                    .read_bytes_per_s = rows[i].read_bytes_per_s,
                                    .int8_ops_per_s = rows[i].int8_ops_per_s,
                                    .float_ops_per_s = rows[i].float_ops_per_s,
                                    .read_bytes = rows[i].read_bytes,
                                    .read_cached = rows[i].read_cached};
    free(rows);
    return status;
}
