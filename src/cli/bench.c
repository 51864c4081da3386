/* `hearth bench`: rates of prefill and decode over token counts and depths. */
#include "cli/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/jsonout.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/engine.h"

enum { MAX_TOKENS = 1 << 24, MAX_ROWS = 10000, MAX_MARKS = 1024 };

typedef struct bench_flags {
    const char *prompt, *gen, *depth, *svg;
    int64_t reps, marks;
} bench_flags;

typedef struct numbers {
    int64_t *values;
    size_t count;
} numbers;

/* Everything a bench holds; bench_free copes with any part of it missing. */
typedef struct bench_state {
    hth_args args;
    bench_flags flags;
    char path[HTH_MAX_PATH];
    numbers prompts, gens, depths;
    hth_bench_row *rows;
    double *rates; /* those of all rows */
    size_t n_rows;
    hearth_token *tokens; /* some text of as many tokens as the deepest row needs */
    hearth_engine *engine;
    hearth_session *session;
    hearth_mark base;   /* where the depth that is measured begins */
    hearth_mark *marks; /* [flags.marks] */
    hearth_model_info info;
} bench_state;

static bool parse_flags(int argc, char **argv, bench_state *s, int *status) {
    bench_flags *f = &s->flags;
    *f = (bench_flags){.prompt = "512", .gen = "128", .depth = "0", .reps = 3};
    const hth_flag flags[] = {
        {'p', "prompt", "n-prompt", HTH_FLAG_TEXT, &f->prompt, "N,...", "prefill N tokens; 0: none (512)", 0, 0},
        {'n', "gen", "n-gen", HTH_FLAG_TEXT, &f->gen, "N,...", "decode N tokens; 0: none (128)", 0, 0},
        {'d', "depth", "n-depth", HTH_FLAG_TEXT, &f->depth, "N,...", "after N tokens of the session (0)", 0, 0},
        {'r', "reps", "repetitions", HTH_FLAG_INT, &f->reps, "N", "measure each N times, give the median (3)", 1, 1000},
        {0, "marks", NULL, HTH_FLAG_INT, &f->marks, "N", "prefill again, leaving N marks on the way (0)", 0, MAX_MARKS},
        {0, "svg", NULL, HTH_FLAG_TEXT, &f->svg, "FILE", "draw a picture", 0, 0},
        {0, "cold", NULL, HTH_FLAG_LATER, NULL, NULL, "cold against warm starts", 0, 0},
        {0, "reuse", NULL, HTH_FLAG_LATER, NULL, NULL, "reuse against none", 0, 0},
        {0, "ops", NULL, HTH_FLAG_LATER, NULL, NULL, "time by op", 0, 0},
        {0, "limits", NULL, HTH_FLAG_LATER, NULL, NULL, "shares of the machine's limits", 0, 0},
        {0, "batch", NULL, HTH_FLAG_LATER, NULL, NULL, "several sessions at once", 0, 0},
    };
    const hth_command command = {
        .verb = "bench",
        .summary = "Measure the rates of prefill (N tokens in one call) and decode (one after the other).",
        .notes = "Several values are separated by commas: every prompt and gen is measured at every depth, on tokens\n"
                 "without meaning. The repetitions of different measurements alternate. With --json,\n"
                 "prefill_tokens_per_s and decode_tokens_per_s are the medians of the first prompt and gen at the "
                 "first\ndepth.",
        .scopes = HTH_SCOPES_ENGINE,
        .flags = flags,
        .n_flags = sizeof flags / sizeof *flags};
    return hth_args_parse(&command, argc, argv, &s->args, status);
}

/* ---- Preparation ---- */

static int parse_lists(bench_state *s) {
    const bench_flags *f = &s->flags;
    int status = hth_parse_numbers("--prompt", f->prompt, 0, MAX_TOKENS, &s->prompts.values, &s->prompts.count);
    if (status == HTH_EXIT_OK)
        status = hth_parse_numbers("--gen", f->gen, 0, MAX_TOKENS, &s->gens.values, &s->gens.count);
    if (status == HTH_EXIT_OK)
        status = hth_parse_numbers("--depth", f->depth, 0, MAX_TOKENS, &s->depths.values, &s->depths.count);
    return status;
}

static void add_rows(bench_state *s, const numbers *counts, bool decode, int64_t depth) {
    for (size_t i = 0; i < counts->count; i++) {
        hth_bench_row row = {.decode = decode, .tokens = counts->values[i], .depth = depth};
        if (row.tokens == 0) continue;
        s->rows[s->n_rows++] = row;
        row.marks = s->flags.marks < row.tokens ? s->flags.marks : row.tokens;
        if (!decode && row.marks > 0) s->rows[s->n_rows++] = row;
    }
}

/* The rows, and the longest session that they need. */
static int plan_rows(bench_state *s, int64_t *longest) {
    size_t most = s->depths.count * ((s->flags.marks ? 2 : 1) * s->prompts.count + s->gens.count);
    if (most > MAX_ROWS) {
        hth_complain("%zu measurements are more than %d", most, MAX_ROWS);
        return HTH_EXIT_USAGE;
    }
    s->rows = calloc(most, sizeof *s->rows);
    s->rates = calloc(most, (size_t)s->flags.reps * sizeof *s->rates);
    if (!s->rows || !s->rates) return hth_out_of_memory();
    for (size_t d = 0; d < s->depths.count; d++) {
        add_rows(s, &s->prompts, false, s->depths.values[d]);
        add_rows(s, &s->gens, true, s->depths.values[d]);
    }
    *longest = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        s->rows[i].rates = s->rates + i * (size_t)s->flags.reps;
        int64_t end = s->rows[i].depth + s->rows[i].tokens;
        if (end > *longest) *longest = end;
    }
    if (s->n_rows > 0) return HTH_EXIT_OK;
    hth_complain("--prompt and --gen are 0: nothing to measure");
    return HTH_EXIT_USAGE;
}

static int open_all(bench_state *s, int64_t longest) {
    hearth_error err = {HEARTH_OK, ""};
    int status = HTH_EXIT_OK;
    if (hth_int_option(&s->args, "ctx", NULL) == 0) status = hth_set_int(&s->args, "ctx", longest);
    if (status == HTH_EXIT_OK) status = hth_set_default(&s->args, "mark-slots", s->flags.marks + 1);
    if (status == HTH_EXIT_OK) status = hth_open_engine(&s->args, s->path, &s->engine);
    if (status != HTH_EXIT_OK) return status;
    hearth_engine_info(s->engine, &s->info);
    if (longest > s->info.context) {
        hth_complain("%lld tokens are needed, but the context asked for holds %lld", (long long)longest,
                     (long long)s->info.context);
        return HTH_EXIT_USAGE;
    }
    s->tokens = malloc((size_t)longest * sizeof *s->tokens);
    s->marks = calloc((size_t)s->flags.marks + 1, sizeof *s->marks);
    if (!s->tokens || !s->marks) return hth_out_of_memory();
    for (int64_t i = 0; i < longest; i++) {
        uint64_t x = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        s->tokens[i] = (hearth_token)((x >> 33) % (uint64_t)s->info.vocab);
    }
    if (hearth_session_create(s->engine, &s->session, &err) != HEARTH_OK) return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

/* ---- Measuring ---- */

static hearth_status append(bench_state *s, int64_t count, hearth_outputs outputs, hearth_mark *marks, int64_t n_marks,
                            hearth_error *err) {
    hearth_item item = {.session = s->session,
                        .tokens = s->tokens + hearth_session_position(s->session),
                        .count = count,
                        .outputs = outputs,
                        .marks = marks,
                        .mark_count = (size_t)n_marks};
    return hearth_engine_run(s->engine, &item, 1, err);
}

/* Bring the session to a depth, computing only what it does not have yet: a mark stands there to come back to. */
static hearth_status go_to(bench_state *s, int64_t depth, hearth_error *err) {
    int64_t position = hearth_session_position(s->session);
    if (depth == 0) return hearth_session_truncate(s->session, 0, err);
    if (s->base.id && s->base.position == depth) return hearth_session_restore(s->session, s->base.id, err);
    if (s->base.id) hearth_mark_drop(s->engine, s->base.id, NULL);
    s->base = (hearth_mark){.position = depth};
    if (position >= depth) {
        hearth_status status = hearth_session_truncate(s->session, 0, err);
        if (status != HEARTH_OK) return status;
        position = 0;
    }
    return append(s, depth - position, HEARTH_OUTPUT_NONE, &s->base, 1, err);
}

static hearth_status measure(bench_state *s, hth_bench_row *row, int64_t rep, hearth_error *err) {
    hearth_status status = go_to(s, row->depth, err);
    for (int64_t i = 0; i < row->marks; i++) s->marks[i].position = row->depth + (i + 1) * row->tokens / row->marks;
    uint64_t start = hth_now_ns();
    if (status == HEARTH_OK && !row->decode)
        status = append(s, row->tokens, HEARTH_OUTPUT_LAST, s->marks, row->marks, err);
    for (int64_t i = 0; row->decode && i < row->tokens && status == HEARTH_OK; i++)
        status = append(s, 1, HEARTH_OUTPUT_LAST, NULL, 0, err);
    double ms = hth_ms_since(start);
    for (int64_t i = 0; i < row->marks; i++)
        if (s->marks[i].id) hearth_mark_drop(s->engine, s->marks[i].id, NULL);
    row->rates[rep] = ms > 0 ? (double)row->tokens * 1000 / ms : 0;
    return status;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(hth_bench_row *row, double *sorted, size_t reps) {
    memcpy(sorted, row->rates, reps * sizeof *sorted);
    qsort(sorted, reps, sizeof *sorted, by_value);
    row->median = reps % 2 ? sorted[reps / 2] : (sorted[reps / 2 - 1] + sorted[reps / 2]) / 2;
    row->least = sorted[0];
    row->most = sorted[reps - 1];
}

static int measure_all(bench_state *s) {
    size_t per_depth = s->n_rows / s->depths.count;
    int64_t done = 0, total = (int64_t)s->n_rows * s->flags.reps;
    hearth_error err = {HEARTH_OK, ""};
    for (size_t d = 0; d < s->depths.count; d++)
        for (int64_t rep = 0; rep < s->flags.reps; rep++)
            for (size_t i = 0; i < per_depth; i++) {
                if (measure(s, &s->rows[d * per_depth + i], rep, &err) != HEARTH_OK) return hth_complain_error(&err);
                hth_progress("measurement", ++done, total);
            }
    hth_progress_end();
    double *sorted = malloc((size_t)s->flags.reps * sizeof *sorted);
    if (!sorted) return hth_out_of_memory();
    for (size_t i = 0; i < s->n_rows; i++) summarize(&s->rows[i], sorted, (size_t)s->flags.reps);
    free(sorted);
    return HTH_EXIT_OK;
}

/* ---- Report ---- */

static void report_first(hth_json *json, const bench_state *s, bool decode, const char *key) {
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].decode == decode) {
            hth_report_measure(json, key, s->rows[i].median);
            return;
        }
}

static void report_json(const bench_state *s) {
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_report_model(&json, s->path, s->engine);
    hth_json_int(&json, "reps", s->flags.reps);
    report_first(&json, s, false, "prefill_tokens_per_s");
    report_first(&json, s, true, "decode_tokens_per_s");
    hth_json_open(&json, "rows", '[');
    for (size_t i = 0; i < s->n_rows; i++) {
        const hth_bench_row *row = &s->rows[i];
        hth_json_open(&json, NULL, '{');
        hth_json_text(&json, "test", row->decode ? "decode" : "prefill");
        hth_json_int(&json, "tokens", row->tokens);
        hth_json_int(&json, "depth", row->depth);
        hth_json_int(&json, "marks", row->marks);
        hth_report_measure(&json, "tokens_per_s", row->median);
        hth_report_measure(&json, "least", row->least);
        hth_report_measure(&json, "most", row->most);
        hth_json_open(&json, "samples", '[');
        for (int64_t k = 0; k < s->flags.reps; k++) hth_report_measure(&json, NULL, row->rates[k]);
        hth_json_close(&json, ']');
        hth_json_close(&json, '}');
    }
    hth_json_close(&json, ']');
    hth_report_counters(&json, s->engine);
    hth_json_close(&json, '}');
}

static void report_table(const bench_state *s) {
    hth_outf("%s, %d threads, kernels %s, KV %s\n", s->path, s->info.threads, s->info.kernels, s->info.kv);
    hth_outf("%-8s %8s %8s %6s %12s %12s %12s\n", "test", "tokens", "depth", "marks", "tokens/s", "least", "most");
    for (size_t i = 0; i < s->n_rows; i++) {
        const hth_bench_row *row = &s->rows[i];
        hth_outf("%-8s %8lld %8lld %6lld %12.2f %12.2f %12.2f\n", row->decode ? "decode" : "prefill",
                 (long long)row->tokens, (long long)row->depth, (long long)row->marks, row->median, row->least,
                 row->most);
    }
}

static int draw(const bench_state *s) {
    if (!s->flags.svg) return HTH_EXIT_OK;
    FILE *out = fopen(s->flags.svg, "we");
    const char *slash = strrchr(s->path, '/');
    char subtitle[200];
    snprintf(subtitle, sizeof subtitle, "%d threads, kernels %s, KV %s; median of %lld, whiskers from least to most",
             s->info.threads, s->info.kernels, s->info.kv, (long long)s->flags.reps);
    bool written = out && hth_bench_svg(out, slash ? slash + 1 : s->path, subtitle, s->rows, s->n_rows);
    int error = errno;
    if (out && fclose(out) != 0 && written) {
        error = errno;
        written = false;
    }
    if (written) return HTH_EXIT_OK;
    hth_complain("cannot write %s: %s", s->flags.svg, strerror(error));
    return HTH_EXIT_FAILED;
}

static void bench_free(bench_state *s) {
    hearth_session_free(&s->session);
    hearth_engine_close(&s->engine);
    free(s->tokens);
    free(s->marks);
    free(s->rows);
    free(s->rates);
    free(s->prompts.values);
    free(s->gens.values);
    free(s->depths.values);
    hth_args_free(&s->args);
}

int hth_verb_bench(int argc, char **argv) {
    bench_state s = {.n_rows = 0};
    int64_t longest = 0;
    int status;
    if (parse_flags(argc, argv, &s, &status)) {
        status = hth_find_model(&s.args, s.path);
        if (status == HTH_EXIT_OK) status = parse_lists(&s);
        if (status == HTH_EXIT_OK) status = plan_rows(&s, &longest);
        if (status == HTH_EXIT_OK) status = open_all(&s, longest);
        if (status == HTH_EXIT_OK) status = measure_all(&s);
        if (status == HTH_EXIT_OK && s.args.common.json) report_json(&s);
        else if (status == HTH_EXIT_OK) report_table(&s);
        if (status == HTH_EXIT_OK) status = draw(&s);
    }
    bench_free(&s);
    return status;
}
