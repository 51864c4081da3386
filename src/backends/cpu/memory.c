/* Where everything lies: the same carving code counts for the plan and then carves, and both must agree. */
#include <assert.h>
#include <stdlib.h>

#include "backends/cpu/executable.h"

static void carve_activations(hth_executable *exe, hth_arena *a) {
    exe->activation_base = hth_arena_take(a, exe->plan.bytes, 0);
    for (int i = 0; i < 2; i++)
        exe->qact_base[i] = exe->max_k[i]
                                ? hth_arena_take(a, hth_qact_bytes(exe->plan.extents.value[HTH_ROWS], exe->max_k[i]), 0)
                                : NULL;
    hth_experts_carve(exe, a);
}

static void carve_kv(hth_executable *exe, hth_arena *a) {
    for (int i = 0; i < exe->n_kv; i++) {
        unsigned char *base = hth_arena_take_array(a, (size_t)exe->limits.blocks, exe->kv[i].block_bytes, 4096);
        if (base) exe->kv[i].base = base;
    }
}

static void carve_states(hth_executable *exe, hth_arena *a) {
    exe->state_base =
        exe->slot_bytes ? hth_arena_take_array(a, (size_t)exe->plan.extents.value[HTH_SEQS], exe->slot_bytes, 0) : NULL;
}

static void carve_marks(hth_executable *exe, hth_arena *a) {
    exe->mark_base = exe->slot_bytes
                         ? hth_arena_take_array(a, (size_t)exe->plan.extents.value[HTH_MARKS], exe->slot_bytes, 0)
                         : NULL;
}

static void carve_logits(hth_executable *exe, hth_arena *a) {
    int64_t vocab = exe->program->tensors[exe->program->logits].dims[0].n;
    exe->logits = hth_arena_take_array(a, (size_t)exe->limits.outputs, (size_t)vocab * sizeof(float), 0);
}

static void carve_worker(const hth_executable *exe, hth_worker *w, hth_arena *a) {
    size_t queries = (size_t)(exe->chunk_rows * exe->max_group), values = queries * (size_t)exe->max_dv;
    w->linear = hth_arena_take(a, HTH_LINEAR_SCRATCH, 0);
    w->attention = hth_arena_take(a, HTH_ATTENTION_SCRATCH(exe->max_dk, exe->max_dv), 0);
    w->m = HTH_ARENA_NEW(a, float, queries);
    w->l = HTH_ARENA_NEW(a, float, queries);
    w->o = HTH_ARENA_NEW(a, float, values);
    w->pm = HTH_ARENA_NEW(a, float, queries);
    w->pl = HTH_ARENA_NEW(a, float, queries);
    w->po = HTH_ARENA_NEW(a, float, values);
    w->lo = HTH_ARENA_NEW(a, int32_t, (size_t)exe->chunk_rows);
    w->hi = HTH_ARENA_NEW(a, int32_t, (size_t)exe->chunk_rows);
    w->scan = exe->n_scans ? hth_arena_take(a, hth_scan_scratch(exe), 0) : NULL;
    w->router = HTH_ARENA_NEW(a, float, (size_t)exe->max_experts);
    w->experts = exe->n_experts ? hth_arena_take(a, hth_experts_scratch(exe), 0) : NULL;
}

static void carve_scratch(hth_executable *exe, hth_arena *a) {
    size_t rows = (size_t)exe->plan.extents.value[HTH_ROWS], seqs = (size_t)exe->plan.extents.value[HTH_SEQS];
    exe->frame.row_seq = HTH_ARENA_NEW(a, int32_t, rows);
    exe->frame.faults = HTH_ARENA_NEW(a, _Atomic uint64_t, seqs);
    exe->frame.chunks = HTH_ARENA_NEW(a, hth_row_chunk, rows + seqs);
    exe->partials = hth_arena_take_array(a, exe->partial_floats, sizeof(float), 0);
    hth_worker unused;
    for (int i = 0; i < exe->backend->threads; i++) carve_worker(exe, exe->workers ? &exe->workers[i] : &unused, a);
}

typedef void carve_fn(hth_executable *exe, hth_arena *a);

static const struct {
    const char *what;
    carve_fn *carve;
} parts[] = {
    {"KV blocks", carve_kv},  {"recurrent state", carve_states},
    {"marks", carve_marks},   {"activations", carve_activations},
    {"logits", carve_logits}, {"thread scratch", carve_scratch},
};
enum { PARTS = sizeof parts / sizeof *parts };

static hth_arena *part_arena(hth_executable *exe, int i) {
    hth_arena *arenas[PARTS] = {&exe->kv_arena,    &exe->state_arena,  &exe->mark_arena,
                                &exe->activations, &exe->logits_arena, &exe->scratch};
    return arenas[i];
}

/* Counting sets pointers to NULL, so it works on a copy that has no workers. */
static hth_arena count(const hth_executable *exe, int i) {
    hth_executable copy = *exe;
    copy.workers = NULL;
    hth_arena counting = hth_arena_counting();
    parts[i].carve(&copy, &counting);
    return counting;
}

size_t hth_cpu_terms(const hth_executable *exe, hth_memory_term *out, size_t capacity) {
    size_t n = 0;
    for (int i = 0; i < PARTS; i++) {
        hth_arena counted = count(exe, i);
        if (counted.used == 0 && !counted.overflow) continue;
        if (n < capacity) out[n] = (hth_memory_term){parts[i].what, counted.overflow ? UINT64_MAX : counted.used};
        n++;
    }
    if (n < capacity)
        out[n] = (hth_memory_term){"thread stacks", (uint64_t)exe->backend->threads * HTH_POOL_STACK_TOUCHED};
    return n + 1;
}

/* ---- Pointers ---- */

hth_rows hth_rows_of(const hth_executable *exe, hth_tensor_id id) {
    if (id == HTH_NONE) return (hth_rows){NULL, 0};
    const hth_tensor *t = &exe->program->tensors[id];
    hth_rows rows = {NULL, t->dims[0].n};
    if (hth_in_logits(exe, id)) rows.base = exe->logits;
    else if (exe->plan.offset[id] != UINT64_MAX) rows.base = (float *)(exe->activation_base + exe->plan.offset[id]);
    return rows;
}

static void resolve_units(hth_executable *exe) {
    for (int i = 0; i < exe->n_units; i++) {
        hth_unit *u = &exe->units[i];
        if (!u->op) {
            u->in[0] = hth_rows_of(exe, u->input);
            hth_qact_carve(&u->q, exe->plan.extents.value[HTH_ROWS], u->n, u->q.block,
                           exe->qact_base[u->q.block == 32 ? 0 : 1]);
            continue;
        }
        for (int k = 0; k < 2; k++) u->in[k] = hth_rows_of(exe, u->op->in[k]);
        u->out = hth_rows_of(exe, u->op->out);
    }
}

static void resolve_linears(hth_executable *exe) {
    for (int i = 0; i < exe->n_linears; i++) {
        hth_linear_step *s = &exe->linears[i];
        const hth_op *op = s->op, *add = s->add;
        hth_rows x = hth_rows_of(exe, op->in[0]), y = hth_rows_of(exe, add ? add->out : op->out);
        s->args.f = x.base;
        s->args.ldf = x.ld;
        s->args.q = s->unit >= 0 ? &exe->units[s->unit].q : NULL;
        s->args.y = y.base;
        s->args.ldy = y.ld;
        if (add) {
            hth_rows other = hth_rows_of(exe, add->in[0] == op->out ? add->in[1] : add->in[0]);
            s->args.add = other.base;
            s->args.ldadd = other.ld;
        }
    }
}

/* The ops of the program up to and with `op`; 0 for a step that belongs to none. */
static int64_t ops_with(const hth_executable *exe, const hth_op *op) {
    return op ? op - exe->program->ops + 1 : 0;
}

/* The ops whose weights step `i` of a stage reads, and those before them. */
static int64_t ops_of_step(const hth_executable *exe, const hth_stage *stage, int i) {
    switch (stage->kind) {
    case HTH_STAGE_ROWS: return ops_with(exe, exe->units[i].op);
    case HTH_STAGE_LINEAR: return hth_max(ops_with(exe, exe->linears[i].op), ops_with(exe, exe->linears[i].add));
    case HTH_STAGE_ATTENTION:
    case HTH_STAGE_MERGE: return ops_with(exe, exe->attentions[i].op);
    case HTH_STAGE_SCAN: return ops_with(exe, exe->scans[i].op);
    case HTH_STAGE_EXPERTS: break;
    }
    return ops_with(exe, hth_experts_op(exe, i));
}

static void resolve_stages(hth_executable *exe) {
    for (int s = 0; s < exe->n_stages; s++) {
        hth_stage *stage = &exe->stages[s];
        int steps = stage->kind == HTH_STAGE_ROWS || stage->kind == HTH_STAGE_LINEAR ? stage->count : 1;
        for (int i = 0; i < steps; i++) stage->ops = hth_max(stage->ops, ops_of_step(exe, stage, stage->first + i));
    }
}

hearth_status hth_cpu_link(hth_executable *exe, hearth_error *err) {
    resolve_stages(exe);
    resolve_units(exe);
    resolve_linears(exe);
    hth_scan_resolve(exe);
    for (int i = 0; i < exe->n_attentions; i++) {
        hth_attention_step *s = &exe->attentions[i];
        s->q = hth_rows_of(exe, s->op->in[0]);
        s->out = hth_rows_of(exe, s->op->out);
    }
    return hth_experts_resolve(exe, err);
}

hearth_status hth_cpu_commit(hth_executable *exe, const atomic_bool *stop, hearth_error *err) {
    exe->workers = calloc((size_t)exe->backend->threads, sizeof *exe->workers);
    if (!exe->workers) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %d workers", exe->backend->threads);
    for (int i = 0; i < PARTS; i++) {
        hth_arena counted = count(exe, i);
        if (counted.overflow)
            return hth_fail(err, HEARTH_NO_MEMORY, "the %s do not fit an address space", parts[i].what);
        if (counted.used == 0) continue;
        hth_arena *arena = part_arena(exe, i);
        const hth_arena_help help = {.pool = exe->backend->pool, .stop = stop};
        HTH_TRY(hth_arena_map_with(arena, counted.used, help, parts[i].what, err));
        parts[i].carve(exe, arena);
        assert(!arena->overflow && arena->used == counted.used);
    }
    return HEARTH_OK;
}
