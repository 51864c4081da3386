/* The plan of every byte, and what it is checked against. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"

void hth_engine_carve(hearth_engine *e, hth_arena *arena) {
    size_t rows = (size_t)e->limits.extents.value[HTH_ROWS], sessions = (size_t)e->limits.extents.value[HTH_SEQS];
    size_t context = (size_t)e->limits.context;
    e->blocks.free_list = HTH_ARENA_NEW(arena, int32_t, (size_t)e->limits.blocks);
    e->blocks.references = HTH_ARENA_NEW(arena, int32_t, (size_t)e->limits.blocks);
    e->blocks.fill = HTH_ARENA_NEW(arena, int32_t, (size_t)e->limits.blocks);
    e->schedule.tokens = HTH_ARENA_NEW(arena, int32_t, rows);
    e->schedule.positions = HTH_ARENA_NEW(arena, int64_t, rows);
    e->schedule.out_rows = HTH_ARENA_NEW(arena, int32_t, rows);
    e->schedule.seq_rows = HTH_ARENA_NEW(arena, int64_t, sessions + 1);
    e->schedule.tables = HTH_ARENA_NEW(arena, const int32_t *, sessions);
    e->schedule.state_slots = HTH_ARENA_NEW(arena, int32_t, sessions);
    e->schedule.faults = HTH_ARENA_NEW(arena, hth_pass_fault, sessions);
    size_t slots = (size_t)e->limits.extents.value[HTH_MARKS];
    e->schedule.marks = HTH_ARENA_NEW(arena, hth_pass_mark, slots);
    e->schedule.wanted = HTH_ARENA_NEW(arena, hearth_mark *, slots);
    e->marks.marks = HTH_ARENA_NEW(arena, hth_mark, slots);
    for (size_t i = 0; i < slots; i++) {
        hearth_token *tokens = HTH_ARENA_NEW(arena, hearth_token, context);
        int32_t *blocks = HTH_ARENA_NEW(arena, int32_t, (size_t)hth_blocks_for((int64_t)context));
        if (e->marks.marks) e->marks.marks[i] = (hth_mark){.tokens = tokens, .blocks = blocks};
    }
    e->sessions = HTH_ARENA_NEW(arena, hearth_session, sessions);
    for (size_t i = 0; i < sessions; i++) {
        hearth_token *tokens = HTH_ARENA_NEW(arena, hearth_token, context);
        int32_t *blocks = HTH_ARENA_NEW(arena, int32_t, (size_t)hth_blocks_for((int64_t)context));
        if (e->sessions) e->sessions[i] = (hearth_session){.engine = e, .tokens = tokens, .blocks = blocks};
    }
}

static void add_term(hearth_engine *e, const char *what, uint64_t bytes, int mapped) {
    if (e->n_terms < HTH_PLAN_TERMS) e->terms[e->n_terms++] = (hearth_plan_term){what, bytes, mapped};
}

static uint64_t weight_bytes(const hearth_engine *e) {
    uint64_t bytes = 0;
    for (int i = 0; i < e->program->n_tensors; i++)
        if (e->program->tensors[i].class == HTH_WEIGHT) bytes += hth_weight_bytes(&e->program->tensors[i]);
    return bytes;
}

/* Terms for the limits in force; the sum, saturating. */
static uint64_t state_terms(hearth_engine *e) {
    hth_memory_term backend[10];
    e->n_terms = 0;
    if (e->residency.copy) add_term(e, "weights (copied)", weight_bytes(e), 0);
    else add_term(e, "weights (mapped)", weight_bytes(e), 1);
    size_t n = e->type->terms(e->exe, backend, sizeof backend / sizeof *backend);
    for (size_t i = 0; i < n; i++) add_term(e, backend[i].what, backend[i].bytes, 0);
    hth_arena counting = hth_arena_counting();
    hth_engine_carve(e, &counting);
    add_term(e, "session tables", counting.overflow ? UINT64_MAX : counting.used, 0);
    uint64_t sum = 0;
    for (size_t i = 0; i < e->n_terms; i++)
        sum = sum > UINT64_MAX - e->terms[i].bytes ? UINT64_MAX : sum + e->terms[i].bytes;
    return sum;
}

static uint64_t read_number(const char *path, const char *key) {
    FILE *f = fopen(path, "re");
    char line[256];
    unsigned long long value = 0;
    if (!f) return 0;
    size_t n = strlen(key);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0 && sscanf(line + n, " %llu", &value) == 1) break;
    fclose(f);
    return value;
}

uint64_t hth_free_memory(void) {
    uint64_t available = read_number("/proc/meminfo", "MemAvailable:") * 1024;
    if (available == 0) available = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        uint64_t limit = read_number(limits[i], "");
        if (limit > 0 && limit < available) available = limit;
    }
    return available;
}

static hearth_status over_budget(const hearth_engine *e, uint64_t sum, hearth_error *err) {
    char terms[400] = "";
    size_t n = 0;
    for (size_t i = 0; i < e->n_terms && n < sizeof terms - 1; i++)
        n += (size_t)snprintf(terms + n, sizeof terms - n, "%s%s %.1f", i ? ", " : "", e->terms[i].what,
                              (double)e->terms[i].bytes / 1048576.0);
    return hth_fail(err, HEARTH_OVER_BUDGET, "the plan needs %.1f MiB and may use %.1f (option memory); in MiB: %s",
                    (double)sum / 1048576.0, (double)e->budget / 1048576.0, terms);
}

static hearth_status lower(hearth_engine *e, int64_t context, hearth_error *err) {
    int64_t sessions = e->limits.extents.value[HTH_SEQS], per_session = hth_blocks_for(context);
    int64_t marks = e->limits.extents.value[HTH_MARKS];
    e->limits.context = context;
    if (per_session > (INT32_MAX - marks) / sessions)
        return hth_fail(err, HEARTH_TOO_LONG, "%lld sessions of %lld tokens are more KV blocks than can be numbered",
                        (long long)sessions, (long long)context);
    e->limits.blocks = per_session * sessions + marks; /* a mark costs a block where two timelines part inside one */
    e->type->free(&e->exe);
    return e->type->lower(e->backend, e->program, e->residency.files, &e->limits, &e->exe, err);
}

enum { DEFAULT_CONTEXT = 8192, LEAST_DEFAULT_CONTEXT = 256 };

/* No context asked for: the smallest of the model's, 8192 and what the budget allows. */
static hearth_status plan_default_context(hearth_engine *e, hearth_error *err) {
    int64_t context = e->program->context < DEFAULT_CONTEXT ? e->program->context : DEFAULT_CONTEXT;
    for (;;) {
        HTH_TRY(lower(e, context, err));
        uint64_t sum = state_terms(e);
        if (sum <= e->budget) return HEARTH_OK;
        if (context <= LEAST_DEFAULT_CONTEXT) return over_budget(e, sum, err);
        context = context / 2 > LEAST_DEFAULT_CONTEXT ? context / 2 : LEAST_DEFAULT_CONTEXT;
    }
}

hearth_status hth_engine_plan_memory(hearth_engine *e, const hearth_options *options, hearth_error *err) {
    int64_t context = hth_option_int(options, HTH_OPTION_CTX);
    int64_t rows = hth_option_int(options, HTH_OPTION_ROWS), outputs = hth_option_int(options, HTH_OPTION_OUTPUTS);
    uint64_t memory = (uint64_t)hth_option_int(options, HTH_OPTION_MEMORY);
    e->budget = memory ? memory : hth_free_memory();
    if (context > e->program->context)
        return hth_fail(err, HEARTH_BAD_OPTION, "ctx %lld is more than the model's context of %lld", (long long)context,
                        (long long)e->program->context);
    e->limits.outputs = outputs;
    e->limits.kv = strcmp(hth_option_text(options, HTH_OPTION_KV), "f32") == 0 ? HTH_F32 : HTH_F16;
    e->limits.extents = (hth_extents){.value = {[HTH_ONE] = 1,
                                                [HTH_ROWS] = rows,
                                                [HTH_OUTS] = rows < outputs ? rows : outputs,
                                                [HTH_SEQS] = hth_option_int(options, HTH_OPTION_SESSIONS),
                                                [HTH_MARKS] = hth_option_int(options, HTH_OPTION_MARK_SLOTS)}};
    if (context == 0) return plan_default_context(e, err);
    HTH_TRY(lower(e, context, err));
    uint64_t sum = state_terms(e);
    return sum <= e->budget ? HEARTH_OK : over_budget(e, sum, err);
}
