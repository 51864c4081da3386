/* What open would do, as text or as JSON. */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "program/print.h"
#include "text/tokenizer.h"

/* ---- Options ---- */

/* An option as it was set or is by default, and what became of it. */
typedef struct option_text {
    char set[512], used[512];
} option_text;

static void format_set(const hearth_options *options, const hearth_option_info *info, option_text *out) {
    const char *text = info->fallback;
    int64_t integer = 0;
    double real = 0;
    switch (info->type) {
    case HEARTH_OPTION_INT:
        hearth_options_get_int(options, info->name, &integer, NULL, NULL);
        snprintf(out->set, sizeof out->set, "%" PRId64, integer);
        break;
    case HEARTH_OPTION_BOOL:
        hearth_options_get_int(options, info->name, &integer, NULL, NULL);
        snprintf(out->set, sizeof out->set, "%s", integer ? "on" : "off");
        break;
    case HEARTH_OPTION_FLOAT:
        hearth_options_get_float(options, info->name, &real, NULL, NULL);
        snprintf(out->set, sizeof out->set, "%g", real);
        break;
    case HEARTH_OPTION_TEXT:
    case HEARTH_OPTION_CHOICE:
        hearth_options_get_text(options, info->name, &text, NULL, NULL);
        snprintf(out->set, sizeof out->set, "%s", text);
    }
}

static void use_number(option_text *out, uint64_t value) {
    snprintf(out->used, sizeof out->used, "%" PRIu64, value);
}

/* The options that leave the choice to open are shown as it has chosen. */
static void format_option(const hearth_engine *e, const hearth_options *options, hth_option id, option_text *out) {
    format_set(options, hearth_option_at(id), out);
    memcpy(out->used, out->set, sizeof out->used);
    switch (id) {
    case HTH_OPTION_CTX: use_number(out, (uint64_t)e->limits.context); break;
    case HTH_OPTION_THREADS: use_number(out, (uint64_t)e->type->threads(e->backend)); break;
    case HTH_OPTION_MEMORY: use_number(out, e->budget); break;
    case HTH_OPTION_CPU_MASK: snprintf(out->used, sizeof out->used, "%s", e->type->kernels(e->backend)); break;
    case HTH_OPTION_PRE:
        if (e->tokenizer) snprintf(out->used, sizeof out->used, "%s", hearth_tokenizer_pre(e->tokenizer));
        break;
    case HTH_OPTION_NFC:
        if (e->tokenizer) snprintf(out->used, sizeof out->used, "%s", hth_tokenizer_nfc(e->tokenizer) ? "on" : "off");
        break;
    default: break;
    }
}

/* Those that open and the tokenizer look at. */
static bool is_explained(hth_option id) {
    const hearth_option_info *info = hearth_option_at(id);
    return info->scope == HEARTH_SCOPE_ENGINE || info->scope == HEARTH_SCOPE_TEXT;
}

/* ---- Text ---- */

/* Bytes of weights of which only rows are read. */
static uint64_t bytes_by_rows(const hearth_engine *e) {
    return e->residency.table.arrives || e->residency.copy || e->residency.lock ? 0 : e->residency.table.bytes;
}

static void print_facts(const hearth_engine *e, FILE *out) {
    hearth_model_info info;
    hearth_engine_info(e, &info);
    fprintf(out, "model     %s, architecture %s, %" PRId64 " layer%s, embedding %" PRId64 ", vocabulary %d\n",
            *info.name ? info.name : "(no name)", info.architecture, info.layers, hth_plural(info.layers),
            info.embedding, info.vocab);
    fprintf(out,
            "context   %" PRId64 " of the model's %" PRId64 "; rows a pass %" PRId64 "; outputs a call %" PRId64
            "; sessions %" PRId64 "\n",
            info.context, info.model_context, info.rows, info.outputs, info.sessions);
    fprintf(out, "backend   %s, kernels %s, %d thread%s, KV %s\n", e->type->name, info.kernels, info.threads,
            hth_plural(info.threads), info.kv);
    fprintf(out, "placement %s; %" PRIu64 " bytes of weights become resident", hth_residency_place_name(&e->residency),
            e->residency.arrival.bytes);
    if (bytes_by_rows(e)) fprintf(out, ", %" PRIu64 " (embeddings) are read by rows", bytes_by_rows(e));
    fprintf(out, "\n");
    if (e->tokenizer)
        fprintf(out, "tokenizer %s, pre-tokenizer %s, %d tokens\n", hearth_tokenizer_kind(e->tokenizer),
                *hearth_tokenizer_pre(e->tokenizer) ? hearth_tokenizer_pre(e->tokenizer) : "none",
                hearth_tokenizer_size(e->tokenizer));
}

static void print_plan(const hearth_engine *e, FILE *out) {
    fprintf(out, "memory plan\n");
    for (size_t i = 0; i < e->n_terms; i++)
        fprintf(out, "  %-20s %14" PRIu64 " bytes\n", e->terms[i].what, e->terms[i].bytes);
    fprintf(out, "  %-20s %14" PRIu64 " bytes of %" PRIu64 " allowed\n", "total", hth_engine_plan_bytes(e), e->budget);
}

static void print_options(const hearth_engine *e, const hearth_options *options, FILE *out) {
    fprintf(out, "options in force\n");
    for (hth_option id = 0; id < HTH_OPTION_COUNT; id++) {
        option_text text;
        if (!is_explained(id)) continue;
        format_option(e, options, id, &text);
        fprintf(out, "  %-20s %s", hearth_option_at(id)->name, text.used);
        if (strcmp(text.used, text.set) != 0) fprintf(out, "  (chosen; option: %s)", *text.set ? text.set : "none");
        fputc('\n', out);
    }
}

static void print_parts(const hearth_engine *e, const hearth_options *options, unsigned parts, FILE *out) {
    const char *gap = "";
    for (unsigned part = 1; part <= parts; part <<= 1) {
        if (!(parts & part)) continue;
        fputs(gap, out);
        gap = "\n";
        switch (part) {
        case HEARTH_EXPLAIN_FACTS: print_facts(e, out); break;
        case HEARTH_EXPLAIN_PLAN: print_plan(e, out); break;
        case HEARTH_EXPLAIN_OPTIONS: print_options(e, options, out); break;
        case HEARTH_EXPLAIN_PROGRAM:
            fprintf(out, "program\n");
            hth_program_print(e->program, e->type->plan(e->exe), e->type->kernel_name, e->exe, out);
            break;
        default: break;
        }
    }
}

/* ---- JSON ---- */

static void write_facts(const hearth_engine *e, hth_json *json) {
    hearth_model_info info;
    hearth_engine_info(e, &info);
    hth_json_text(json, "name", info.name);
    hth_json_text(json, "architecture", info.architecture);
    hth_json_int(json, "layers", info.layers);
    hth_json_int(json, "embedding", info.embedding);
    hth_json_int(json, "vocabulary", info.vocab);
    hth_json_int(json, "model_context", info.model_context);
    hth_json_int(json, "context", info.context);
    hth_json_int(json, "rows", info.rows);
    hth_json_int(json, "outputs", info.outputs);
    hth_json_int(json, "sessions", info.sessions);
    hth_json_text(json, "backend", e->type->name);
    hth_json_text(json, "kernels", info.kernels);
    hth_json_int(json, "threads", info.threads);
    hth_json_text(json, "kv", info.kv);
    hth_json_open(json, "placement", '{');
    hth_json_text(json, "weights", hth_residency_place_name(&e->residency));
    hth_json_uint(json, "resident_bytes", e->residency.arrival.bytes);
    hth_json_uint(json, "row_bytes", bytes_by_rows(e));
    hth_json_close(json, '}');
    if (!e->tokenizer) return;
    hth_json_open(json, "tokenizer", '{');
    hth_json_text(json, "kind", hearth_tokenizer_kind(e->tokenizer));
    hth_json_text(json, "pre", hearth_tokenizer_pre(e->tokenizer));
    hth_json_int(json, "tokens", hearth_tokenizer_size(e->tokenizer));
    hth_json_close(json, '}');
}

static void write_plan(const hearth_engine *e, hth_json *json) {
    hth_json_open(json, "plan", '[');
    for (size_t i = 0; i < e->n_terms; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_text(json, "what", e->terms[i].what);
        hth_json_uint(json, "bytes", e->terms[i].bytes);
        hth_json_bool(json, "mapped", e->terms[i].mapped != 0);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
    hth_json_uint(json, "plan_bytes", hth_engine_plan_bytes(e));
    hth_json_uint(json, "allowed_bytes", e->budget);
}

/* A value as its type has it; numbers and switches come out of the texts unchanged. */
static void write_value(hth_json *json, const char *key, const hearth_option_info *info, const char *text) {
    switch (info->type) {
    case HEARTH_OPTION_INT:
    case HEARTH_OPTION_FLOAT: hth_json_value(json, key, text, strlen(text)); break;
    case HEARTH_OPTION_BOOL: hth_json_bool(json, key, strcmp(text, "on") == 0); break;
    case HEARTH_OPTION_TEXT:
    case HEARTH_OPTION_CHOICE: hth_json_text(json, key, text);
    }
}

static void write_options(const hearth_engine *e, const hearth_options *options, hth_json *json) {
    hth_json_open(json, "options", '{');
    for (hth_option id = 0; id < HTH_OPTION_COUNT; id++) {
        const hearth_option_info *info = hearth_option_at(id);
        option_text text;
        if (!is_explained(id)) continue;
        format_option(e, options, id, &text);
        hth_json_open(json, info->name, '{');
        write_value(json, "value", info, text.used);
        write_value(json, "option", info, text.set);
        hth_json_close(json, '}');
    }
    hth_json_close(json, '}');
}

static void write_parts(const hearth_engine *e, const hearth_explain_request *r, FILE *out) {
    hth_json json = {.out = out};
    hth_json_open(&json, NULL, '{');
    hth_json_text(&json, "model", r->path);
    if (r->parts & HEARTH_EXPLAIN_FACTS) write_facts(e, &json);
    if (r->parts & HEARTH_EXPLAIN_PLAN) write_plan(e, &json);
    if (r->parts & HEARTH_EXPLAIN_OPTIONS) write_options(e, r->options, &json);
    if (r->parts & HEARTH_EXPLAIN_PROGRAM)
        hth_program_json(e->program, e->type->plan(e->exe), e->type->kernel_name, e->exe, &json);
    hth_json_close(&json, '}');
}

/* ---- The calls ---- */

/* Numbers have a point, whatever the thread's locale. */
static hearth_status write_explanation(const hearth_engine *e, const hearth_explain_request *r, FILE *out,
                                       hearth_error *err) {
    locale_t point = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!point) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a locale");
    locale_t before = uselocale(point);
    if (r->json) write_parts(e, r, out);
    else print_parts(e, r->options, r->parts, out);
    uselocale(before);
    freelocale(point);
    return HEARTH_OK;
}

hearth_status hearth_explain_to(const hearth_explain_request *r, FILE *out, hearth_error *err) {
    if (!r || !r->path || !out || r->parts == 0 || (r->parts & ~(unsigned)HEARTH_EXPLAIN_ALL))
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "an explanation needs a path, known parts and somewhere to go");
    const hearth_open_request request = {.path = r->path, .options = r->options};
    hearth_engine *e = calloc(1, sizeof *e);
    if (!e) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an engine");
    hearth_status status = hth_engine_prepare(e, &request, err);
    if (status == HEARTH_OK) status = hth_engine_make_tokenizer(e, err);
    if (status == HEARTH_OK) status = write_explanation(e, r, out, err);
    hth_engine_release(e);
    free(e);
    return status;
}

hearth_status hearth_explain(const char *path, const hearth_options *options, FILE *out, hearth_error *err) {
    const hearth_explain_request request = {.path = path, .options = options, .parts = HEARTH_EXPLAIN_ALL};
    return hearth_explain_to(&request, out, err);
}
