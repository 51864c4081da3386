/* What an engine says about itself: facts, bill, plan, counters, and `explain`. */
#include <inttypes.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "program/print.h"

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

static void print_facts(const hearth_engine *e, FILE *out) {
    hearth_model_info info;
    hearth_engine_info(e, &info);
    fprintf(out, "model     %s, architecture %s, %" PRId64 " layers, embedding %" PRId64 ", vocabulary %d\n",
            *info.name ? info.name : "(no name)", info.architecture, info.layers, info.embedding, info.vocab);
    fprintf(out,
            "context   %" PRId64 " of the model's %" PRId64 "; rows a pass %" PRId64 "; outputs a call %" PRId64
            "; sessions %" PRId64 "\n",
            info.context, info.model_context, info.rows, info.outputs, info.sessions);
    fprintf(out, "backend   %s, kernels %s, %d threads, KV %s\n", e->type->name, info.kernels, info.threads, info.kv);
    if (e->tokenizer)
        fprintf(out, "tokenizer %s, pre-tokenizer %s, %d tokens\n", hearth_tokenizer_kind(e->tokenizer),
                *hearth_tokenizer_pre(e->tokenizer) ? hearth_tokenizer_pre(e->tokenizer) : "none",
                hearth_tokenizer_size(e->tokenizer));
}

static void print_plan(const hearth_engine *e, FILE *out) {
    uint64_t sum = 0;
    fprintf(out, "\nmemory plan\n");
    for (size_t i = 0; i < e->n_terms; i++) {
        fprintf(out, "  %-20s %14" PRIu64 " bytes\n", e->terms[i].what, e->terms[i].bytes);
        sum += e->terms[i].bytes;
    }
    fprintf(out, "  %-20s %14" PRIu64 " bytes of %" PRIu64 " allowed\n", "total", sum, e->budget);
}

static void print_options(const hearth_options *options, FILE *out) {
    fprintf(out, "\noptions in force\n");
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *info = hearth_option_at(i);
        if (info->scope != HEARTH_SCOPE_ENGINE && info->scope != HEARTH_SCOPE_TEXT) continue;
        const char *text = info->fallback;
        char number[48];
        int64_t integer;
        double real;
        if (options && info->type == HEARTH_OPTION_FLOAT &&
            hearth_options_get_float(options, info->name, &real, NULL, NULL) == HEARTH_OK) {
            snprintf(number, sizeof number, "%g", real);
            text = number;
        } else if (options && (info->type == HEARTH_OPTION_TEXT || info->type == HEARTH_OPTION_CHOICE)) {
            hearth_options_get_text(options, info->name, &text, NULL, NULL);
        } else if (options && hearth_options_get_int(options, info->name, &integer, NULL, NULL) == HEARTH_OK) {
            snprintf(number, sizeof number, info->type == HEARTH_OPTION_BOOL ? (integer ? "on" : "off") : "%" PRId64,
                     integer);
            text = number;
        }
        fprintf(out, "  %-20s %s\n", info->name, text);
    }
}

hearth_status hearth_explain(const char *path, const hearth_options *options, FILE *out, hearth_error *err) {
    const hearth_open_request request = {.path = path, .options = options};
    hearth_engine *e = calloc(1, sizeof *e);
    if (!e) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an engine");
    hearth_status status = hth_engine_prepare(e, &request, err);
    if (status == HEARTH_OK) status = hth_engine_make_tokenizer(e, err);
    if (status == HEARTH_OK) {
        print_facts(e, out);
        print_plan(e, out);
        print_options(options, out);
        fprintf(out, "\nprogram\n");
        hth_program_print(e->program, e->type->plan(e->exe), e->type->kernel_name, e->exe, out);
    }
    hth_engine_release(e);
    free(e);
    return status;
}
