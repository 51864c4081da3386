/* What the machine can do, in the engine's own threads and instructions, and what passes cost. */
#include <stdlib.h>

#include "base/sysmem.h"
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
    hearth_status status = e->type->peaks(e->backend, hth_memory_allowed_at("") / 4, rows, count, err);
    for (size_t i = 0; i < count && status == HEARTH_OK; i++)
        limits[i] = (hearth_limits){.threads = rows[i].threads,
                                    .read_bytes_per_s = rows[i].read_bytes_per_s,
                                    .int8_ops_per_s = rows[i].int8_ops_per_s,
                                    .float_ops_per_s = rows[i].float_ops_per_s,
                                    .read_bytes = rows[i].read_bytes,
                                    .read_cached = rows[i].read_cached,
                                    .cache_bytes = rows[i].cache_bytes};
    free(rows);
    return status;
}

enum { KINDS = 256 }; /* far more than there are */

void hth_count_work(const hearth_engine *e, hearth_counters *counters) {
    hth_work work[KINDS];
    size_t count = e->type->work(e->exe, false, work, KINDS);
    for (size_t i = 0; i < count && i < KINDS; i++) switch (work[i].class) {
        case HTH_WORK_LINEAR_INT8:
            counters->weight_bytes += work[i].bytes;
            counters->linear_int8_ops += work[i].ops;
            break;
        case HTH_WORK_LINEAR_FLOAT:
            counters->weight_bytes += work[i].bytes;
            counters->linear_float_ops += work[i].ops;
            break;
        case HTH_WORK_ATTENTION:
            counters->kv_bytes += work[i].bytes;
            counters->attention_ops += work[i].ops;
            break;
        case HTH_WORK_OTHER:
        case HTH_WORK_SCAN:
        case HTH_WORK_WAITING: break;
        }
}

hearth_status hearth_engine_clock(hearth_engine *e, int run, hearth_error *err) {
    return e->type->clock(e->exe, run != 0, err);
}

size_t hearth_engine_work(const hearth_engine *e, hearth_work *out, size_t capacity) {
    static const hearth_work_limit limits[] = {
        [HTH_WORK_OTHER] = HEARTH_WORK_NO_LIMIT,     [HTH_WORK_LINEAR_INT8] = HEARTH_WORK_INT8,
        [HTH_WORK_LINEAR_FLOAT] = HEARTH_WORK_FLOAT, [HTH_WORK_ATTENTION] = HEARTH_WORK_FLOAT,
        [HTH_WORK_SCAN] = HEARTH_WORK_FLOAT,         [HTH_WORK_WAITING] = HEARTH_WORK_WAITING};
    hth_work work[KINDS];
    size_t count = e->type->work(e->exe, true, work, KINDS);
    for (size_t i = 0; i < count && i < capacity && i < KINDS; i++)
        out[i] = (hearth_work){.what = work[i].what,
                               .limit = limits[work[i].class],
                               .ms = (double)work[i].ns * 1e-6,
                               .bytes = work[i].bytes,
                               .ops = work[i].ops};
    return count;
}
