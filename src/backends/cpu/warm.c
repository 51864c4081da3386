/* The warm pass: each bound kernel once in each of its ways, on one tile, by the calling thread. What it writes lies in
 * activations, scratch, the first logits, and state that is put back to zeros: no call reads any of it before it has
 * written it.
 *
 * Weights are zeros of its own: those of the model may still be on their way. Layers repeat each other's kernels, so a
 * kernel that was run for one is not run for the next: the pass costs the same for two layers and for eighty.
 */
#include <string.h>

#include "backends/cpu/executable.h"

/* Row counts that lead through every way of a linear: those for few rows, and tiles of each height (12, 8, 6, 4, 2, 1,
 * largest first). */
static const int64_t row_counts[] = {1, 2, 7, 11, 15};

enum { COLUMNS = 16 }; /* of a linear */

static bool same_unit(const hth_unit *a, const hth_unit *b) {
    return a->run == b->run && a->kernel.act == b->kernel.act &&
           (a->op ? a->op->opcode : HTH_OPCODES) == (b->op ? b->op->opcode : HTH_OPCODES);
}

/* The KV of sequences is not written to: the key and value go into a block of scratch. */
static void warm_append(const hth_executable *exe, const hth_unit *u, hth_worker *w) {
    const hth_kv_pool *kv = &exe->kv[u->kv];
    u->kernel.kv_append(u->in[0].base, u->in[1].base, kv->shape.dk, kv->shape.dv, w->attention,
                        (float *)w->attention + kv->shape.dk * HTH_KV_BLOCK, 0);
}

static void warm_unit(hth_executable *exe, int i, const void *zeros, hth_worker *w) {
    const hth_unit *u = &exe->units[i];
    for (int k = 0; k < i; k++)
        if (same_unit(&exe->units[k], u)) return;
    if (u->op && u->op->opcode == HTH_OP_KV_APPEND) {
        warm_append(exe, u, w);
        return;
    }
    hth_unit warm = *u;
    warm.table = zeros;
    for (int k = 0; k < 2; k++)
        if (warm.w[k]) warm.w[k] = zeros;
    warm.run(exe, &warm, 0, 1, w);
}

static void warm_linear(hth_executable *exe, int i, int64_t most_rows, const void *zeros, hth_worker *w) {
    const hth_linear_step *s = &exe->linears[i];
    for (int k = 0; k < i; k++)
        if (exe->linears[k].run == s->run && exe->linears[k].args.k == s->args.k) return;
    hth_linear args = s->args;
    args.w = zeros;
    if (args.bias) args.bias = zeros;
    for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts && row_counts[r] <= most_rows; r++)
        s->run(&args, 0, hth_min(COLUMNS, s->columns), 0, row_counts[r], w->linear);
}

static void warm_attention(hth_executable *exe, int i, hth_worker *w) {
    const hth_attention_step *s = &exe->attentions[i];
    const hth_attention_imm *imm = &s->op->imm.attention;
    const hth_kv_pool *kv = &exe->kv[s->kv];
    const hth_kernels *kernels = &exe->backend->kernels;
    for (int k = 0; k < i; k++)
        if (exe->attentions[k].tile == s->tile && exe->attentions[k].op->imm.attention.dk == imm->dk) return;
    hth_attention a = {.k = kv->base,
                       .v = kv->base + kv->value_offset,
                       .dk = imm->dk,
                       .dv = imm->dv,
                       .q = s->q.base,
                       .ldq = s->q.ld,
                       .heads = imm->heads / imm->kv_heads,
                       .lo = w->lo,
                       .hi = w->hi,
                       .scale = imm->scale,
                       .softcap = imm->softcap,
                       .m = w->pm,
                       .l = w->pl,
                       .o = w->po};
    int64_t most_rows = hth_min(exe->chunk_rows, exe->plan.extents.value[HTH_ROWS]);
    for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts && row_counts[r] <= most_rows; r++) {
        a.rows = row_counts[r];
        for (int64_t k = 0; k < a.rows; k++) {
            w->lo[k] = 0;
            w->hi[k] = (int32_t)hth_min(k + 1, HTH_KV_BLOCK);
        }
        s->tile(&a, w->attention);
        kernels->attention_merge(w->m, w->l, w->o, w->pm, w->pl, w->po, a.rows * a.heads, imm->dv);
        kernels->attention_finish(w->l, w->o, w->po, a.rows * a.heads, imm->dv);
    }
}

static void warm_scan(hth_executable *exe, int i, const void *zeros, hth_worker *w) {
    for (int k = 0; k < i; k++)
        if (exe->scans[k].op->opcode == exe->scans[i].op->opcode) return;
    hth_scan_step warm = exe->scans[i];
    for (int k = 0; k < 2; k++)
        if (warm.w[k]) warm.w[k] = zeros;
    hth_scan_warm(exe, &warm, w);
}

static void warm_experts(hth_executable *exe, const hth_stage *stage, int64_t most_rows, const void *zeros,
                         hth_worker *w) {
    for (int k = 0; k < stage->first; k++)
        if (hth_experts_alike(exe, k, stage->first)) return;
    for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts && row_counts[r] <= most_rows; r++)
        hth_experts_warm(exe, stage, row_counts[r], zeros, w);
}

static void warm_stage(hth_executable *exe, const hth_stage *stage, const void *zeros, hth_worker *w) {
    int64_t most_rows = exe->plan.extents.value[stage->domain];
    switch (stage->kind) {
    case HTH_STAGE_ROWS:
        for (int i = 0; i < stage->count; i++) warm_unit(exe, stage->first + i, zeros, w);
        break;
    case HTH_STAGE_LINEAR:
        for (int i = 0; i < stage->count; i++) warm_linear(exe, stage->first + i, most_rows, zeros, w);
        break;
    case HTH_STAGE_ATTENTION: warm_attention(exe, stage->first, w); break;
    case HTH_STAGE_SCAN: warm_scan(exe, stage->first, zeros, w); break;
    case HTH_STAGE_EXPERTS: warm_experts(exe, stage, most_rows, zeros, w); break;
    case HTH_STAGE_MERGE: break; /* its kernels are attention's */
    }
}

/* The most bytes of weights that a kernel reads here: some columns, or a row of a vector or table. */
static size_t zero_bytes(const hth_executable *exe) {
    int64_t bytes = hth_experts_row_bytes(exe) * COLUMNS;
    for (int i = 0; i < exe->n_linears; i++)
        bytes = hth_max(
            bytes, hth_max(exe->linears[i].args.row_bytes * COLUMNS, exe->linears[i].columns * (int64_t)sizeof(float)));
    for (int i = 0; i < exe->n_units; i++)
        bytes = hth_max(bytes, hth_max(exe->units[i].table_row_bytes, exe->units[i].n * (int64_t)sizeof(float)));
    for (int i = 0; i < exe->n_scans; i++)
        for (int k = 0; k < HTH_OP_WEIGHTS; k++) {
            hth_tensor_id id = exe->scans[i].op->weight[k];
            if (id == HTH_NONE) continue;
            int64_t n = hth_tensor_elements(&exe->program->tensors[id], &exe->plan.extents);
            bytes = hth_max(bytes, n * (int64_t)sizeof(float));
        }
    return (size_t)bytes;
}

hearth_status hth_cpu_warm(hth_executable *exe, hearth_error *err) {
    hth_arena zeros;
    HTH_TRY(hth_arena_reserve(&zeros, zero_bytes(exe), "the weights of the warm pass", err));
    static const int32_t token, out_row, block, slot;
    hth_pass_fault fault;
    static const int64_t position, seq_rows[2] = {0, 1};
    const int32_t *table = &block;
    hth_pass pass = {.rows = 1,
                     .outs = 1,
                     .seqs = 1,
                     .tokens = &token,
                     .positions = &position,
                     .seq_rows = seq_rows,
                     .block_table = &table,
                     .state_slots = &slot,
                     .faults = &fault,
                     .out_rows = &out_row};
    exe->frame.pass = &pass;
    hth_faults_begin(exe, &pass);
    hth_attention_prepare(exe, &pass);
    uint32_t state = hth_float_enter();
    for (int s = 0; s < exe->n_stages; s++) warm_stage(exe, &exe->stages[s], zeros.base, &exe->workers[0]);
    hth_float_leave(state);
    if (exe->state_base) memset(exe->state_base, 0, exe->slot_bytes);
    exe->frame.pass = NULL;
    hth_arena_unmap(&zeros);
    return HEARTH_OK;
}
