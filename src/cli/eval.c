/* `hearth eval`: perplexity of a text, counted as llama-perplexity counts it, so that figures can be compared.
 *
 * The whole text is tokenized, cut into chunks of --ctx tokens that do not overlap (a rest is left out), and each chunk
 * is read from an empty session. When the model adds a begin token, it takes the place of the chunk's first token. Only
 * the second half of a chunk is scored: tokens ctx/2 + 1 to ctx - 1, each from the logits before it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonout.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/engine.h"
#include "hearth/sampler.h"

enum { DEFAULT_CTX = 512, OUTPUT_BYTES = 64 << 20 };

typedef struct eval_flags {
    const char *prompt, *file;
    int64_t chunks;
    bool verbose;
} eval_flags;

typedef struct eval_state {
    hth_args args;
    eval_flags flags;
    char path[HTH_MAX_PATH];
    hth_tokens tokens;
    int64_t ctx, chunks;
    hearth_token bos;            /* -1: chunks keep their first token */
    hearth_tokenizer *tokenizer; /* until the engine has it */
    hearth_engine *engine;
    hearth_session *session;
    hearth_model_info info;
    double sum, squares; /* of the negative log-probabilities */
    int64_t scored;
    double ms;
} eval_state;

static bool parse_flags(int argc, char **argv, eval_state *s, int *status) {
    eval_flags *f = &s->flags;
    const hth_flag flags[] = {
        {'f', "file", NULL, HTH_FLAG_TEXT, &f->file, "FILE", "the text; default: standard input", 0, 0},
        {'p', "prompt", NULL, HTH_FLAG_TEXT, &f->prompt, "TEXT", "the text itself", 0, 0},
        {0, "chunks", NULL, HTH_FLAG_INT, &f->chunks, "N", "score the first N chunks only; 0: all (0)", 0, INT64_MAX},
        {'v', "verbose", NULL, HTH_FLAG_SWITCH, &f->verbose, NULL, "give the perplexity after each chunk", 0, 0},
    };
    static const hth_default defaults[] = {{"ctx", NULL, "512, at most the model's"},
                                           {"outputs", NULL, "half a chunk's, at most 64 MiB of logits"},
                                           {"mark-slots", "0", NULL}};
    const hth_command command = {
        .verb = "eval",
        .summary = "Compute the perplexity of a text.",
        .notes = "Counted as llama-perplexity does: chunks of --ctx tokens (512) that do not overlap, the second half "
                 "of each\nscored, a last newline of the text left out.",
        .scopes = HTH_SCOPES_ENGINE,
        .flags = flags,
        .n_flags = sizeof flags / sizeof *flags,
        .defaults = defaults,
        .n_defaults = sizeof defaults / sizeof *defaults};
    return hth_args_parse(&command, argc, argv, &s->args, status);
}

/* ---- Preparation ---- */

static int choose_ctx(eval_state *s) {
    s->ctx = hth_int_option(&s->args, "ctx", NULL);
    if (s->ctx == 0) {
        int64_t model = hth_model_context(s->path);
        s->ctx = model > 0 && model < DEFAULT_CTX ? model : DEFAULT_CTX;
    }
    if (s->ctx < 4) {
        hth_complain("--ctx: chunks of %lld token%s leave nothing to score", (long long)s->ctx, hth_plural(s->ctx));
        return HTH_EXIT_USAGE;
    }
    return hth_set_int(&s->args, "ctx", s->ctx);
}

/* Tokens, begin token, and how many rows of logits a call should keep. */
static int prepare_text(eval_state *s) {
    hth_text text = {NULL, 0};
    int status = hth_read_text(s->flags.prompt, s->flags.file, HTH_MOST_TEXT, &text);
    if (status == HTH_EXIT_OK && text.size > 0 && text.data[text.size - 1] == '\n') text.size--;
    if (status == HTH_EXIT_OK) status = hth_open_tokenizer(&s->args, s->path, &s->tokenizer);
    if (status == HTH_EXIT_OK) status = hth_encode(s->tokenizer, text, HEARTH_ENCODE_ADD, &s->tokens);
    free(text.data);
    if (status != HTH_EXIT_OK) return status;
    s->bos = hearth_tokenizer_adds_bos(s->tokenizer) ? hearth_tokenizer_bos(s->tokenizer) : -1;
    int64_t rows = OUTPUT_BYTES / ((int64_t)sizeof(float) * hearth_tokenizer_size(s->tokenizer)), half = s->ctx / 2;
    s->chunks = (int64_t)s->tokens.count / s->ctx;
    if (s->flags.chunks > 0 && s->flags.chunks < s->chunks) s->chunks = s->flags.chunks;
    if (s->chunks == 0) {
        hth_complain("the text has %zu token%s, less than one chunk of %lld", s->tokens.count,
                     hth_plural((int64_t)s->tokens.count), (long long)s->ctx);
        return HTH_EXIT_FAILED;
    }
    return hth_set_default(&s->args, "outputs", rows < 16 ? 16 : rows > half ? half : rows);
}

static int open_all(eval_state *s) {
    hearth_error err = {HEARTH_OK, ""};
    int status = hth_open_engine_with(&s->args, s->path, &s->tokenizer, &s->engine);
    if (status != HTH_EXIT_OK) return status;
    hearth_engine_info(s->engine, &s->info);
    if (hearth_session_create(s->engine, &s->session, &err) != HEARTH_OK) return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

/* ---- Scores ---- */

static hearth_status run_part(eval_state *s, const hearth_token *tokens, int64_t count, hearth_outputs outputs,
                              const float **logits, hearth_error *err) {
    hearth_item item = {.session = s->session, .tokens = tokens, .count = count, .outputs = outputs};
    hearth_status status = hearth_engine_run(s->engine, &item, 1, err);
    *logits = item.logits;
    return status;
}

static hearth_status score_chunk(eval_state *s, hearth_token *chunk, hearth_error *err) {
    int64_t first = s->ctx / 2; /* the first position whose logits are scored */
    const float *logits;
    hearth_status status = hearth_session_truncate(s->session, 0, err);
    if (status != HEARTH_OK) return status;
    if (s->bos >= 0) chunk[0] = s->bos;
    status = run_part(s, chunk, first, HEARTH_OUTPUT_NONE, &logits, err);
    for (int64_t from = first, n; status == HEARTH_OK && from < s->ctx - 1; from += n) {
        n = s->ctx - 1 - from < s->info.outputs ? s->ctx - 1 - from : s->info.outputs;
        status = run_part(s, chunk + from, n, HEARTH_OUTPUT_ALL, &logits, err);
        for (int64_t i = 0; status == HEARTH_OK && i < n; i++) {
            double score = -hearth_logprob(logits + i * s->info.vocab, s->info.vocab, chunk[from + i + 1]);
            s->sum += score;
            s->squares += score * score;
            s->scored++;
        }
    }
    return status;
}

static int score(eval_state *s) {
    uint64_t start = hth_now_ns();
    hearth_error err = {HEARTH_OK, ""};
    for (int64_t i = 0; i < s->chunks; i++) {
        if (score_chunk(s, s->tokens.ids + i * s->ctx, &err) != HEARTH_OK) return hth_complain_error(&err);
        hth_progress("chunk", i + 1, s->chunks);
        if (s->flags.verbose)
            hth_note("chunk %lld: perplexity so far %.4f", (long long)i + 1, exp(s->sum / (double)s->scored));
    }
    hth_progress_end();
    s->ms = hth_ms_since(start);
    return HTH_EXIT_OK;
}

static void report(const eval_state *s) {
    double mean = s->sum / (double)s->scored, perplexity = exp(mean);
    double variance = s->squares / (double)s->scored - mean * mean;
    double error = s->scored > 1 && variance > 0 ? perplexity * sqrt(variance / (double)(s->scored - 1)) : 0;
    double rate = s->ms > 0 ? (double)(s->chunks * (s->ctx - 1)) * 1000 / s->ms : 0;
    if (!s->args.common.json) {
        hth_outf("perplexity %.4f +/- %.4f (%lld chunk%s of %lld tokens, %lld scored)\n", perplexity, error,
                 (long long)s->chunks, hth_plural(s->chunks), (long long)s->ctx, (long long)s->scored);
        return;
    }
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_report_model(&json, s->path, s->engine);
    hth_json_double(&json, "perplexity", perplexity);
    hth_json_double(&json, "standard_error", error);
    hth_json_double(&json, "mean_nll", mean);
    hth_json_int(&json, "tokens", (int64_t)s->tokens.count);
    hth_json_int(&json, "scored", s->scored);
    hth_json_int(&json, "chunks", s->chunks);
    hth_json_int(&json, "ctx", s->ctx);
    hth_report_measure(&json, "ms", s->ms);
    hth_report_measure(&json, "tokens_per_s", rate);
    hth_report_counters(&json, s->engine);
    hth_json_close(&json, '}');
}

int hth_verb_eval(int argc, char **argv) {
    eval_state s = {.bos = -1};
    int status;
    if (parse_flags(argc, argv, &s, &status)) {
        status = hth_find_model(&s.args, s.path);
        if (status == HTH_EXIT_OK) status = choose_ctx(&s);
        if (status == HTH_EXIT_OK) status = prepare_text(&s);
        if (status == HTH_EXIT_OK) status = open_all(&s);
        if (status == HTH_EXIT_OK) status = score(&s);
        if (status == HTH_EXIT_OK) report(&s);
    }
    hearth_session_free(&s.session);
    hearth_engine_close(&s.engine);
    hearth_tokenizer_close(&s.tokenizer);
    free(s.tokens.ids);
    hth_args_free(&s.args);
    return status;
}
