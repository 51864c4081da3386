/* Where the time goes: each row once more, with the engine's clock running. */
#include <math.h>
#include <stdlib.h>

#include "cli/bench.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"

enum { KINDS = 256 };

/* ---- Measuring ---- */

static hearth_status measure(hth_bench *b, hth_bench_row *row, hearth_error *err) {
    hearth_work work[KINDS];
    double ms = 0;
    hearth_status status = hth_bench_go_to(b, row->sessions, row->depth, err);
    if (status == HEARTH_OK) status = hearth_engine_clock(b->engine, 1, err);
    if (status == HEARTH_OK) status = hth_bench_once(b, row, &ms, err);
    row->ops.count = hearth_engine_work(b->engine, work, KINDS);
    row->ops.wall_ms += ms;
    for (size_t i = 0; i < row->ops.count && i < KINDS; i++) {
        hearth_work *sum = &row->ops.work[i];
        sum->what = work[i].what;
        sum->limit = work[i].limit;
        sum->ms += work[i].ms;
        sum->bytes += work[i].bytes;
        sum->ops += work[i].ops;
    }
    hearth_engine_clock(b->engine, 0, NULL);
    return status;
}

static int by_ms(const void *a, const void *b) {
    const hearth_work *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

int hth_bench_ops_measure(hth_bench *b) {
    hearth_error err = {HEARTH_OK, ""};
    for (size_t i = 0; i < b->n_rows; i++) {
        hth_bench_row *row = &b->rows[i];
        row->ops.work = calloc(KINDS, sizeof *row->ops.work);
        if (!row->ops.work) return hth_out_of_memory();
        for (int64_t rep = 0; rep < b->flags.reps; rep++) {
            if (measure(b, row, &err) != HEARTH_OK) return hth_complain_error(&err);
            hth_progress("measurement", ++b->done, b->total);
        }
        qsort(row->ops.work, row->ops.count, sizeof *row->ops.work, by_ms);
    }
    return HTH_EXIT_OK;
}

/* ---- Figures ---- */

/* What all threads had: the time of the measurement times their number. */
static double thread_ms(const hth_bench *b, const hth_bench_row *row) {
    return row->ops.wall_ms * b->info.threads;
}

/* Time of no kind: between the passes, where the calling thread hands out logits and makes up the next pass. */
static double other_ms(const hth_bench *b, const hth_bench_row *row) {
    double ms = thread_ms(b, row);
    for (size_t i = 0; i < row->ops.count; i++) ms -= row->ops.work[i].ms;
    return ms;
}

/* Seconds as if all threads had done nothing else. */
static double seconds_of(const hth_bench *b, const hearth_work *w) {
    return w->ms / b->info.threads * 1e-3;
}

/* The time that a kind takes at least, by the limit that it comes closest to, over the time that it took. Negative
 * where no limit is known; what a cache holds is read at no known rate. */
static double of_limit(const hth_bench *b, const hth_bench_row *row, const hearth_work *w) {
    const hearth_limits *l = &b->limits.mean;
    if (!hth_bench_has_limits(b) || w->ms <= 0) return -1;
    if (w->limit != HEARTH_WORK_INT8 && w->limit != HEARTH_WORK_FLOAT) return -1;
    double peak = w->limit == HEARTH_WORK_INT8 ? l->int8_ops_per_s : l->float_ops_per_s;
    double reading = hth_bench_is_cached(b, &row->cost) ? 0 : (double)w->bytes / l->read_bytes_per_s;
    return fmax(reading, (double)w->ops / peak) / seconds_of(b, w);
}

double hth_bench_ops_most(const hth_bench *b, const hth_bench_row *row) {
    double most = 0;
    for (size_t i = 0; i < row->ops.count; i++) most = fmax(most, of_limit(b, row, &row->ops.work[i]));
    return most;
}

static bool is_shown(const hearth_work *w) {
    return w->ms > 0 || w->bytes > 0;
}

/* ---- Report ---- */

void hth_bench_ops_json(hth_json *json, const hth_bench *b, const hth_bench_row *row) {
    if (!row->ops.work) return;
    double all = thread_ms(b, row);
    hth_json_open(json, "ops", '{');
    hth_report_measure(json, "wall_ms", row->ops.wall_ms);
    hth_report_measure(json, "thread_ms", all);
    hth_report_measure(json, "outside_ms", other_ms(b, row));
    hth_json_open(json, "kinds", '[');
    for (size_t i = 0; i < row->ops.count; i++) {
        const hearth_work *w = &row->ops.work[i];
        if (!is_shown(w)) continue;
        double fraction = of_limit(b, row, w);
        hth_json_open(json, NULL, '{');
        hth_json_text(json, "what", w->what);
        hth_report_measure(json, "ms", w->ms);
        hth_report_measure(json, "share", all > 0 ? w->ms / all : 0);
        hth_json_uint(json, "bytes", w->bytes);
        hth_json_uint(json, "ops", w->ops);
        if (fraction >= 0) hth_report_measure(json, "fraction_of_limit", fraction);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
    hth_json_close(json, '}');
}

static void put_line(const char *what, double ms, double all) {
    hth_outf("  %-24s %12.2f %6.1f%%", what, ms, all > 0 ? 100 * ms / all : 0);
}

static void put_rate(double amount, double seconds) {
    if (amount > 0 && seconds > 0) hth_outf(" %10.2f %9.1f", amount * 1e-9, amount * 1e-9 / seconds);
    else hth_outf(" %10s %9s", "", "");
}

static void put_row(const hth_bench *b, const hth_bench_row *row) {
    double all = thread_ms(b, row), sum = 0;
    hth_outf("\n%s %lld", row->decode ? "decode" : "prefill", (long long)row->tokens);
    if (row->sessions > 1) hth_outf(", %lld sessions", (long long)row->sessions);
    if (row->depth > 0) hth_outf(", depth %lld", (long long)row->depth);
    if (row->marks > 0) hth_outf(", marks %lld", (long long)row->marks);
    hth_outf(", %lld time%s: %.2f ms on %d thread%s\n", (long long)b->flags.reps, hth_plural(b->flags.reps),
             row->ops.wall_ms, b->info.threads, hth_plural(b->info.threads));
    hth_outf("  %-24s %12s %7s %10s %9s %10s %9s %9s\n", "kind of work", "thread ms", "share", "GB", "GB/s", "GOP",
             "GOP/s", "of limit");
    for (size_t i = 0; i < row->ops.count; i++) {
        const hearth_work *w = &row->ops.work[i];
        sum += w->ms;
        if (!is_shown(w)) continue;
        double fraction = of_limit(b, row, w);
        put_line(w->what, w->ms, all);
        put_rate((double)w->bytes, seconds_of(b, w));
        put_rate((double)w->ops, seconds_of(b, w));
        if (fraction >= 0) hth_outf(" %8.1f%%", 100 * fraction);
        hth_outf("\n");
    }
    put_line("in passes", sum, all);
    hth_outf("\n");
    put_line("outside passes", other_ms(b, row), all);
    hth_outf("\n");
    put_line("threads x wall time", all, all);
    hth_outf("\n");
}

void hth_bench_ops_table(const hth_bench *b) {
    for (size_t i = 0; i < b->n_rows; i++)
        if (b->rows[i].ops.work) put_row(b, &b->rows[i]);
}
