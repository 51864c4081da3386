/* What an engine says about itself: facts, bill, plan, counters. */
#include "engine/engine.h"

void hearth_engine_info(const hearth_engine *e, hearth_model_info *out) {
    *out = (hearth_model_info){
        .architecture = e->program->architecture,
        .name = e->name,
        .vocab = (int32_t)e->program->n_vocab,
        .layers = e->program->n_layers,
        .embedding = e->program->n_embd,
        .model_context = e->program->context,
        .context = e->limits.context,
        .rows = e->limits.extents.value[HTH_ROWS],
        .outputs = e->limits.outputs,
        .sessions = e->limits.extents.value[HTH_SEQS],
        .threads = e->type->threads(e->backend),
        .kernels = e->type->kernels(e->backend),
        .kv = e->limits.kv == HTH_F16 ? "f16" : "f32",
    };
}

const hearth_tokenizer *hearth_engine_tokenizer(const hearth_engine *e) {
    return e->tokenizer;
}

size_t hearth_engine_ledger(const hearth_engine *e, const hearth_ledger_row **rows) {
    *rows = e->ledger.rows;
    return e->ledger.count;
}

size_t hearth_engine_plan(const hearth_engine *e, const hearth_plan_term **terms) {
    *terms = e->terms;
    return e->n_terms;
}

void hearth_engine_counters(const hearth_engine *e, hearth_counters *out) {
    *out = e->counters;
    out->kept_warm = atomic_load(&e->residency.keeper.pages);
    out->blocks_total = (uint64_t)e->blocks.total;
    out->blocks_used = (uint64_t)(e->blocks.total - e->blocks.free_count);
    out->marks_used = (uint64_t)e->marks.used;
    out->marks_total = (uint64_t)e->marks.total;
    hth_count_work(e, out);
}
