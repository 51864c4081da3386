/* The plan of every byte, and what it is checked against. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/sysmem.h"
#include "engine/engine.h"
#include "text/tokenizer.h"

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
    assert(e->n_terms < HTH_PLAN_TERMS);
    if (bytes > 0) e->terms[e->n_terms++] = (hearth_plan_term){what, bytes, mapped};
}

uint64_t hth_engine_weight_bytes(const hearth_engine *e) {
    uint64_t bytes = 0;
    for (int i = 0; i < e->program->n_tensors; i++)
        if (e->program->tensors[i].class == HTH_WEIGHT) bytes += hth_weight_bytes(&e->program->tensors[i]);
    return bytes;
}

/* The heads of the files, which are read when they are opened and whose texts the tokenizer points into. */
static uint64_t metadata_bytes(const hearth_engine *e) {
    uint64_t bytes = 0;
    for (int i = 0; i < hth_gguf_file_count(e->gguf); i++) bytes += hth_gguf_file_at(e->gguf, i)->data_offset;
    return bytes;
}

static uint64_t program_bytes(const hearth_engine *e) {
    return (uint64_t)e->program->n_tensors * sizeof *e->program->tensors +
           (uint64_t)e->program->n_ops * sizeof *e->program->ops;
}

uint64_t hth_engine_plan_bytes(const hearth_engine *e) {
    uint64_t sum = 0;
    for (size_t i = 0; i < e->n_terms; i++)
        sum = sum > UINT64_MAX - e->terms[i].bytes ? UINT64_MAX : sum + e->terms[i].bytes;
    return sum;
}

/* Terms for the limits in force; the sum, saturating. */
static uint64_t state_terms(hearth_engine *e) {
    hth_memory_term backend[HTH_PLAN_TERMS];
    hth_arena counting = hth_arena_counting();
    e->n_terms = 0;
    if (e->residency.copy) add_term(e, "weights (copied)", hth_engine_weight_bytes(e), 0);
    else add_term(e, "weights (mapped)", hth_engine_weight_bytes(e), 1);
    add_term(e, "metadata (mapped)", metadata_bytes(e), 1);
    add_term(e, "directory, program", hth_gguf_directory_bytes(e->gguf) + program_bytes(e), 0);
    add_term(e, "tokenizer", hth_tokenizer_bytes(e->gguf), 0);
    size_t n = e->type->terms(e->exe, backend, HTH_PLAN_TERMS);
    for (size_t i = 0; i < n; i++) add_term(e, backend[i].what, backend[i].bytes, 0);
    hth_engine_carve(e, &counting);
    add_term(e, "session tables", counting.overflow ? UINT64_MAX : counting.used, 0);
    return hth_engine_plan_bytes(e);
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

/* ---- What would fit ---- */

/* Whether a plan with these limits would fit. */
static bool fits(hearth_engine *e, const hth_limits *limits) {
    hth_limits before = e->limits;
    e->limits = *limits;
    int64_t *outs = &e->limits.extents.value[HTH_OUTS], rows = e->limits.extents.value[HTH_ROWS];
    if (*outs > rows) *outs = rows;
    bool good = lower(e, limits->context, NULL) == HEARTH_OK && state_terms(e) <= e->budget;
    e->limits = before;
    return good;
}

/* The largest value below the one in force, in steps of `step`, with which the plan fits if nothing else changes; 0:
 * none. `value` is one of the limits, and is changed. Plans grow with each of these. */
static int64_t largest_fitting(hearth_engine *e, const hth_limits *limits, int64_t *value, int64_t step) {
    int64_t low = 0, high = (*value - 1) / step; /* low fits, high + 1 does not */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        *value = middle * step;
        if (fits(e, limits)) low = middle;
        else high = middle - 1;
    }
    return low * step;
}

typedef struct advice {
    char text[112];
    size_t size;
} advice;

static void advise(advice *a, const char *option, const char *value) {
    int n = snprintf(a->text + a->size, sizeof a->text - a->size, "%s %s %s", a->size ? " or" : "; it would fit with",
                     option, value);
    if (n > 0 && (size_t)n < sizeof a->text - a->size) a->size += (size_t)n;
}

static void advise_number(advice *a, hearth_engine *e, const char *option, hth_limits *limits, int64_t *value,
                          int64_t step) {
    char number[24];
    int64_t before = *value, most = largest_fitting(e, limits, value, step);
    *value = before;
    if (most == 0) return;
    snprintf(number, sizeof number, "%lld", (long long)most);
    advise(a, option, number);
}

/* Each change that would do by itself. */
static void find_advice(hearth_engine *e, advice *a) {
    hth_limits limits = e->limits;
    advise_number(a, e, "ctx", &limits, &limits.context, HTH_BLOCK_POSITIONS);
    if (limits.kv == HTH_F32) {
        limits.kv = HTH_F16;
        if (fits(e, &limits)) advise(a, "kv", "f16");
        limits.kv = HTH_F32;
    }
    advise_number(a, e, "rows", &limits, &limits.extents.value[HTH_ROWS], 1);
    advise_number(a, e, "sessions", &limits, &limits.extents.value[HTH_SEQS], 1);
    limits.extents.value[HTH_MARKS] = 0;
    if (e->limits.extents.value[HTH_MARKS] > 0 && fits(e, &limits)) advise(a, "mark-slots", "0");
    if (a->size) return;
    limits.context = HTH_BLOCK_POSITIONS;
    limits.kv = HTH_F16;
    limits.extents.value[HTH_ROWS] = limits.extents.value[HTH_OUTS] = limits.extents.value[HTH_SEQS] = 1;
    limits.outputs = 1;
    snprintf(a->text, sizeof a->text, "%s",
             fits(e, &limits) ? "; no option alone makes it fit, all of ctx, kv, rows, outputs and sessions do"
             : hth_engine_weight_bytes(e) > e->budget ? "; the weights alone are more, and no option makes them less"
                                                      : "; no context, KV type and rows make it fit");
}

static hearth_status over_budget(hearth_engine *e, uint64_t sum, hearth_error *err) {
    char terms[320] = "";
    const int64_t context = e->limits.context;
    advice found = {.size = 0};
    size_t n = 0;
    for (size_t i = 0; i < e->n_terms && n < sizeof terms - 1; i++)
        n += (size_t)snprintf(terms + n, sizeof terms - n, "%s%s %.1f", i ? ", " : "", e->terms[i].what,
                              (double)e->terms[i].bytes / 1048576.0);
    find_advice(e, &found);
    return hth_fail(err, HEARTH_OVER_BUDGET,
                    "the plan for ctx %lld needs %.1f MiB and may use %.1f (option memory)%s; in MiB: %s",
                    (long long)context, (double)sum / 1048576.0, (double)e->budget / 1048576.0, found.text, terms);
}

/* ---- The plan ---- */

enum { DEFAULT_CONTEXT = 8192, LEAST_DEFAULT_CONTEXT = 256 };

hearth_status hth_engine_bind(hearth_engine *e, const hearth_options *options, hearth_error *err) {
    int64_t context = hth_option_int(options, HTH_OPTION_CTX);
    int64_t rows = hth_option_int(options, HTH_OPTION_ROWS), outputs = hth_option_int(options, HTH_OPTION_OUTPUTS);
    if (context > e->program->context)
        return hth_fail(err, HEARTH_BAD_OPTION, "ctx %lld is more than the model's context of %lld", (long long)context,
                        (long long)e->program->context);
    if (context == 0) context = e->program->context < DEFAULT_CONTEXT ? e->program->context : DEFAULT_CONTEXT;
    e->limits.outputs = outputs;
    e->limits.kv = strcmp(hth_option_text(options, HTH_OPTION_KV), "f32") == 0 ? HTH_F32 : HTH_F16;
    e->limits.extents = (hth_extents){.value = {[HTH_ONE] = 1,
                                                [HTH_ROWS] = rows,
                                                [HTH_OUTS] = rows < outputs ? rows : outputs,
                                                [HTH_SEQS] = hth_option_int(options, HTH_OPTION_SESSIONS),
                                                [HTH_MARKS] = hth_option_int(options, HTH_OPTION_MARK_SLOTS)}};
    return lower(e, context, err);
}

hearth_status hth_engine_plan_memory(hearth_engine *e, const hearth_options *options, hearth_error *err) {
    uint64_t memory = (uint64_t)hth_option_int(options, HTH_OPTION_MEMORY);
    bool chosen = hth_option_int(options, HTH_OPTION_CTX) > 0;
    e->budget = memory ? memory : hth_memory_allowed_at("");
    for (;;) {
        int64_t context = e->limits.context;
        uint64_t sum = state_terms(e);
        if (sum <= e->budget) return HEARTH_OK;
        if (chosen || context <= LEAST_DEFAULT_CONTEXT) return over_budget(e, sum, err);
        HTH_TRY(lower(e, context / 2 > LEAST_DEFAULT_CONTEXT ? context / 2 : LEAST_DEFAULT_CONTEXT, err));
    }
}
