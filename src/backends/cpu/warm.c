/* The warm pass: every bound kernel once, on scratch, leaving no trace in KV or logits that anyone reads. */
#include "backends/cpu/executable.h"

static void warm_attention(hth_executable *exe, const hth_attention_step *step, hth_worker *w) {
    const hth_attention_imm *imm = &step->op->imm.attention;
    const hth_kv_pool *kv = &exe->kv[step->kv];
    w->lo[0] = 0;
    w->hi[0] = 1;
    hth_attention a = {.k = kv->base,
                       .v = kv->base + kv->value_offset,
                       .dk = imm->dk,
                       .dv = imm->dv,
                       .q = step->q.base,
                       .ldq = step->q.ld,
                       .rows = 1,
                       .heads = imm->heads / imm->kv_heads,
                       .lo = w->lo,
                       .hi = w->hi,
                       .scale = imm->scale,
                       .softcap = imm->softcap,
                       .m = w->pm,
                       .l = w->pl,
                       .o = w->po};
    step->tile(&a, w->attention);
}

static void work_warm(void *arg, int worker) {
    hth_executable *exe = arg;
    hth_worker *w = &exe->workers[worker];
    for (int s = 0; s < exe->n_stages; s++) {
        const hth_stage *stage = &exe->stages[s];
        if (stage->kind == HTH_STAGE_ROWS && worker == 0)
            for (int u = stage->first; u < stage->first + stage->count; u++)
                if (!exe->units[u].op || exe->units[u].op->opcode != HTH_OP_KV_APPEND)
                    exe->units[u].run(exe, &exe->units[u], 0, 1, w);
        hth_pool_barrier(exe->backend->pool);
        if (stage->kind == HTH_STAGE_LINEAR && worker == 0)
            for (int i = stage->first; i < stage->first + stage->count; i++)
                exe->linears[i].run(&exe->linears[i].args, 0, hth_min(16, exe->linears[i].columns), 0, 1, w->linear);
        if (stage->kind == HTH_STAGE_ATTENTION && worker == 0) warm_attention(exe, &exe->attentions[stage->first], w);
        if (stage->kind == HTH_STAGE_SCAN && worker == 0) hth_scan_warm(exe, &exe->scans[stage->first], w);
        if (stage->kind == HTH_STAGE_EXPERTS && worker == 0) hth_experts_warm(exe, stage, w);
        hth_pool_barrier(exe->backend->pool);
    }
}

hearth_status hth_cpu_warm(hth_executable *exe, hearth_error *err) {
    (void)err;
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
    hth_pool_run(exe->backend->pool, work_warm, exe);
    exe->frame.pass = NULL;
    return HEARTH_OK;
}
