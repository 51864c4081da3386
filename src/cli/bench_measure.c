/* The sessions of a bench, and the rates of its rows. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/bench.h"
#include "cli/say.h"
#include "cli/verbs.h"

/* ---- Opening ---- */

static int set_options(hth_bench *b) {
    int64_t rows = b->sweep.count ? b->sweep.values[b->sweep.count - 1] : 0;
    int64_t outputs = hth_int_option(&b->args, "outputs", NULL);
    int64_t asked = hth_int_option(&b->args, "ctx", NULL), model = hth_model_context(b->path);
    int status = HTH_EXIT_OK;
    if (b->longest > model && model > 0) {
        hth_complain("a measurement needs %lld token%s, but the model's context holds %lld", (long long)b->longest,
                     hth_plural(b->longest), (long long)model);
        return HTH_EXIT_USAGE;
    }
    if (asked == 0) status = hth_set_int(&b->args, "ctx", b->longest);
    if (status == HTH_EXIT_OK) status = hth_set_default(&b->args, "mark-slots", b->flags.marks + b->n_sessions);
    if (status == HTH_EXIT_OK) status = hth_set_default(&b->args, "sessions", b->n_sessions);
    if (status == HTH_EXIT_OK && outputs < b->n_sessions) status = hth_set_default(&b->args, "outputs", b->n_sessions);
    if (status == HTH_EXIT_OK && hth_int_option(&b->args, "rows", NULL) < rows)
        status = hth_set_default(&b->args, "rows", rows);
    return status;
}

/* What was asked for against what the engine was opened with. */
static int check_engine(const hth_bench *b) {
    int64_t rows = b->sweep.count ? b->sweep.values[b->sweep.count - 1] : 0;
    if (b->longest > b->info.context) {
        hth_complain("a measurement needs %lld token%s, but the context asked for holds %lld", (long long)b->longest,
                     hth_plural(b->longest), (long long)b->info.context);
    } else if (b->n_sessions > b->info.sessions || b->n_sessions > b->info.outputs) {
        hth_complain("--batch %lld: the options ask for %lld session%s and %lld output%s", (long long)b->n_sessions,
                     (long long)b->info.sessions, hth_plural(b->info.sessions), (long long)b->info.outputs,
                     hth_plural(b->info.outputs));
    } else if (rows > b->info.rows) {
        hth_complain("--sweep: a pass of %lld row%s is wanted, and the options ask for passes of %lld", (long long)rows,
                     hth_plural(rows), (long long)b->info.rows);
    } else return HTH_EXIT_OK;
    return HTH_EXIT_USAGE;
}

static int make_tokens(hth_bench *b) {
    int64_t count = b->longest + b->n_sessions;
    b->tokens = malloc((size_t)count * sizeof *b->tokens);
    if (!b->tokens) return hth_out_of_memory();
    for (int64_t i = 0; i < count; i++) {
        uint64_t x = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        b->tokens[i] = (hearth_token)((x >> 33) % (uint64_t)b->info.vocab);
    }
    return HTH_EXIT_OK;
}

int hth_bench_open(hth_bench *b) {
    hearth_error err = {HEARTH_OK, ""};
    int status = set_options(b);
    if (status == HTH_EXIT_OK) status = hth_open_engine(&b->args, b->path, &b->engine);
    if (status != HTH_EXIT_OK) return status;
    hearth_engine_info(b->engine, &b->info);
    status = check_engine(b);
    if (status == HTH_EXIT_OK) status = make_tokens(b);
    if (status != HTH_EXIT_OK) return status;
    b->sessions = calloc((size_t)b->n_sessions, sizeof *b->sessions);
    b->bases = calloc((size_t)b->n_sessions, sizeof *b->bases);
    b->items = calloc((size_t)b->n_sessions, sizeof *b->items);
    b->marks = calloc((size_t)b->flags.marks + 1, sizeof *b->marks);
    if (!b->sessions || !b->bases || !b->items || !b->marks) return hth_out_of_memory();
    for (int64_t i = 0; i < b->n_sessions; i++)
        if (hearth_session_create(b->engine, &b->sessions[i], &err) != HEARTH_OK) return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

void hth_bench_free(hth_bench *b) {
    for (int64_t i = 0; b->sessions && i < b->n_sessions; i++) hearth_session_free(&b->sessions[i]);
    hearth_engine_close(&b->engine);
    if (b->picture) fclose(b->picture);
    for (size_t i = 0; b->rows && i < b->n_rows; i++) free(b->rows[i].ops.work);
    free(b->rows);
    free(b->points);
    free(b->samples);
    free(b->tokens);
    free(b->sessions);
    free(b->bases);
    free(b->items);
    free(b->marks);
    free(b->limits.each);
    hth_numbers *lists[] = {&b->prompts, &b->gens, &b->depths, &b->batches, &b->sweep};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free(lists[i]->values);
    hth_args_free(&b->args);
}

/* ---- Sessions ---- */

/* The next `count` tokens of session s. */
static hearth_item next_tokens(const hth_bench *b, int64_t s, int64_t count, hearth_outputs outputs) {
    return (hearth_item){.session = b->sessions[s],
                         .tokens = b->tokens + s + hearth_session_position(b->sessions[s]),
                         .count = count,
                         .outputs = outputs};
}

static hearth_status append_to(hth_bench *b, int64_t s, int64_t count, hearth_outputs outputs, hearth_mark *marks,
                               int64_t n_marks, hearth_error *err) {
    hearth_item item = next_tokens(b, s, count, outputs);
    item.marks = marks;
    item.mark_count = (size_t)n_marks;
    return hearth_engine_run(b->engine, &item, 1, err);
}

hearth_status hth_bench_append(hth_bench *b, int64_t count, hearth_outputs outputs, hearth_mark *marks, int64_t n_marks,
                               hearth_error *err) {
    return append_to(b, 0, count, outputs, marks, n_marks, err);
}

/* A mark stands at the depth to come back to. */
static hearth_status go_to(hth_bench *b, int64_t s, int64_t depth, hearth_error *err) {
    hearth_session *session = b->sessions[s];
    hearth_mark *base = &b->bases[s];
    int64_t position = hearth_session_position(session);
    if (depth == 0) return hearth_session_truncate(session, 0, err);
    if (base->id && base->position == depth) return hearth_session_restore(session, base->id, err);
    if (base->id) hearth_mark_drop(b->engine, base->id, NULL);
    *base = (hearth_mark){.position = depth};
    if (position >= depth) {
        hearth_status status = hearth_session_truncate(session, 0, err);
        if (status != HEARTH_OK) return status;
        position = 0;
    }
    return append_to(b, s, depth - position, HEARTH_OUTPUT_NONE, base, 1, err);
}

hearth_status hth_bench_go_to(hth_bench *b, int64_t n, int64_t depth, hearth_error *err) {
    hearth_status status = HEARTH_OK;
    for (int64_t s = 0; s < n && status == HEARTH_OK; s++) status = go_to(b, s, depth, err);
    return status;
}

/* ---- Rates ---- */

static hearth_status decode(hth_bench *b, const hth_bench_row *row, hearth_error *err) {
    hearth_status status = HEARTH_OK;
    for (int64_t i = 0; i < row->tokens && status == HEARTH_OK; i++) {
        for (int64_t s = 0; s < row->sessions; s++) b->items[s] = next_tokens(b, s, 1, HEARTH_OUTPUT_LAST);
        status = hearth_engine_run(b->engine, b->items, (size_t)row->sessions, err);
    }
    return status;
}

hearth_status hth_bench_once(hth_bench *b, const hth_bench_row *row, double *ms, hearth_error *err) {
    hearth_status status;
    for (int64_t i = 0; i < row->marks; i++) b->marks[i].position = row->depth + (i + 1) * row->tokens / row->marks;
    uint64_t start = hth_now_ns();
    if (row->decode) status = decode(b, row, err);
    else status = hth_bench_append(b, row->tokens, HEARTH_OUTPUT_LAST, b->marks, row->marks, err);
    *ms = hth_ms_since(start);
    for (int64_t i = 0; i < row->marks; i++)
        if (b->marks[i].id) hearth_mark_drop(b->engine, b->marks[i].id, NULL);
    return status;
}

static hearth_status measure(hth_bench *b, hth_bench_row *row, int64_t rep, hearth_error *err) {
    double ms = 0;
    hearth_status status = hth_bench_go_to(b, row->sessions, row->depth, err);
    hth_bench_cost before = hth_bench_cost_now(b->engine);
    if (status == HEARTH_OK) status = hth_bench_once(b, row, &ms, err);
    row->cost = hth_bench_cost_since(b->engine, before);
    row->rates[rep] = ms > 0 ? (double)(row->tokens * row->sessions) * 1000 / ms : 0;
    return status;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void hth_bench_summarize(const double *samples, int64_t reps, double *sorted, double *median, double *least,
                         double *most) {
    memcpy(sorted, samples, (size_t)reps * sizeof *sorted);
    qsort(sorted, (size_t)reps, sizeof *sorted, by_value);
    *median = reps % 2 ? sorted[reps / 2] : (sorted[reps / 2 - 1] + sorted[reps / 2]) / 2;
    *least = sorted[0];
    *most = sorted[reps - 1];
}

int hth_bench_rates(hth_bench *b) {
    size_t per_depth = b->n_rows / b->depths.count;
    hearth_error err = {HEARTH_OK, ""};
    for (size_t d = 0; d < b->depths.count; d++)
        for (int64_t rep = 0; rep < b->flags.reps; rep++)
            for (size_t i = 0; i < per_depth; i++) {
                if (measure(b, &b->rows[d * per_depth + i], rep, &err) != HEARTH_OK) return hth_complain_error(&err);
                hth_progress("measurement", ++b->done, b->total);
            }
    double *sorted = malloc((size_t)b->flags.reps * sizeof *sorted);
    if (!sorted) return hth_out_of_memory();
    for (size_t i = 0; i < b->n_rows; i++)
        hth_bench_summarize(b->rows[i].rates, b->flags.reps, sorted, &b->rows[i].median, &b->rows[i].least,
                            &b->rows[i].most);
    free(sorted);
    return HTH_EXIT_OK;
}
