/* What the machine can do at most, measured beside the rates, and rates as fractions of it. Some machines change their
 * mode of memory meanwhile, so the limits are measured before and after, and rates are compared with the mean. */
#include <math.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "cli/bench.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"

#define DIFFERENT 0.2

int hth_bench_limits_measure(hth_bench *b, hearth_limits *out) {
    hearth_error err = {HEARTH_OK, ""};
    if (b->flags.no_limits) return HTH_EXIT_OK;
    hth_progress("measuring the machine's limits", 0, 0);
    *out = (hearth_limits){.threads = b->info.threads};
    hearth_status status = hearth_engine_limits(b->engine, out, 1, &err);
    hth_progress_end();
    if (status == HEARTH_OK) return HTH_EXIT_OK;
    if (status != HEARTH_NO_MEMORY) return hth_complain_error(&err);
    hth_note("No limits: %s", err.text);
    b->flags.no_limits = true;
    return HTH_EXIT_OK;
}

/* All thread counts of a small machine, powers of two and the last of a large one. */
static int measure_each(hth_bench *b) {
    enum { ALL = 8 };
    hth_bench_limits *l = &b->limits;
    hearth_error err = {HEARTH_OK, ""};
    l->each = calloc(ALL + 32, sizeof *l->each);
    if (!l->each) return hth_out_of_memory();
    for (int n = 1; n <= b->info.threads; n += n < ALL ? 1 : n) l->each[l->n_each++].threads = n;
    if (l->each[l->n_each - 1].threads != b->info.threads) l->each[l->n_each++].threads = b->info.threads;
    if (hearth_engine_limits(b->engine, l->each, l->n_each, &err) == HEARTH_OK) return HTH_EXIT_OK;
    return hth_complain_error(&err);
}

int hth_bench_limits_finish(hth_bench *b) {
    hth_bench_limits *l = &b->limits;
    int status = hth_bench_limits_measure(b, &l->after);
    if (status != HTH_EXIT_OK || b->flags.no_limits) return status;
    l->mean = l->before;
    l->mean.read_bytes_per_s = (l->before.read_bytes_per_s + l->after.read_bytes_per_s) / 2;
    l->mean.int8_ops_per_s = (l->before.int8_ops_per_s + l->after.int8_ops_per_s) / 2;
    l->mean.float_ops_per_s = (l->before.float_ops_per_s + l->after.float_ops_per_s) / 2;
    return b->flags.limits ? measure_each(b) : HTH_EXIT_OK;
}

bool hth_bench_has_limits(const hth_bench *b) {
    return b->limits.mean.threads > 0;
}

static bool differ(double before, double after) {
    return fabs(after - before) > DIFFERENT * fmin(before, after);
}

bool hth_bench_limits_differ(const hth_bench *b) {
    const hearth_limits *before = &b->limits.before, *after = &b->limits.after;
    return differ(before->read_bytes_per_s, after->read_bytes_per_s) ||
           differ(before->int8_ops_per_s, after->int8_ops_per_s) ||
           differ(before->float_ops_per_s, after->float_ops_per_s);
}

/* ---- Fractions ---- */

hth_bench_cost hth_bench_cost_now(const hearth_engine *engine) {
    hearth_counters c;
    hearth_engine_counters(engine, &c);
    return (hth_bench_cost){c.passes,          c.weight_bytes,     c.kv_bytes,
                            c.linear_int8_ops, c.linear_float_ops, c.attention_ops};
}

hth_bench_cost hth_bench_cost_since(const hearth_engine *engine, hth_bench_cost before) {
    hth_bench_cost now = hth_bench_cost_now(engine);
    return (hth_bench_cost){.passes = now.passes - before.passes,
                            .weight_bytes = now.weight_bytes - before.weight_bytes,
                            .kv_bytes = now.kv_bytes - before.kv_bytes,
                            .int8_ops = now.int8_ops - before.int8_ops,
                            .float_ops = now.float_ops - before.float_ops,
                            .attention_ops = now.attention_ops - before.attention_ops};
}

double hth_bench_seconds(const hth_bench_row *row) {
    return row->median > 0 ? (double)(row->tokens * row->sessions) / row->median : INFINITY;
}

bool hth_bench_is_cached(const hth_bench *b, const hth_bench_cost *cost) {
    uint64_t cache = b->limits.before.cache_bytes;
    return hth_bench_has_limits(b) && cost->passes > 0 && (cost->weight_bytes + cost->kv_bytes) / cost->passes <= cache;
}

double hth_bench_of_read(const hth_bench *b, const hth_bench_cost *cost, double seconds) {
    return ((double)cost->weight_bytes + (double)cost->kv_bytes) / b->limits.mean.read_bytes_per_s / seconds;
}

double hth_bench_of_peak(const hth_bench *b, const hth_bench_cost *cost, double seconds) {
    const hearth_limits *l = &b->limits.mean;
    double least = (double)cost->int8_ops / l->int8_ops_per_s + (double)cost->float_ops / l->float_ops_per_s;
    return least / seconds;
}

/* ---- Report ---- */

static void limits_json(hth_json *json, const char *key, const hearth_limits *l) {
    hth_json_open(json, key, '{');
    hth_json_int(json, "threads", l->threads);
    hth_json_uint(json, "read_bytes_per_s", (uint64_t)llround(l->read_bytes_per_s));
    hth_json_uint(json, "int8_ops_per_s", (uint64_t)llround(l->int8_ops_per_s));
    hth_json_uint(json, "float_ops_per_s", (uint64_t)llround(l->float_ops_per_s));
    hth_json_uint(json, "read_bytes", l->read_bytes);
    hth_json_bool(json, "read_cached", l->read_cached != 0);
    hth_json_uint(json, "cache_bytes", l->cache_bytes);
    hth_json_close(json, '}');
}

void hth_bench_limits_json(hth_json *json, const hth_bench *b) {
    if (!hth_bench_has_limits(b)) return;
    hth_json_open(json, "limits", '{');
    limits_json(json, "before", &b->limits.before);
    limits_json(json, "after", &b->limits.after);
    limits_json(json, "mean", &b->limits.mean);
    hth_json_bool(json, "differ", hth_bench_limits_differ(b));
    if (b->limits.n_each) {
        hth_json_open(json, "each", '[');
        for (size_t i = 0; i < b->limits.n_each; i++) limits_json(json, NULL, &b->limits.each[i]);
        hth_json_close(json, ']');
    }
    hth_json_close(json, '}');
}

static void limits_line(const char *when, const hearth_limits *l) {
    hth_outf("%-18s %8d %12.1f %14.1f %16.1f%s\n", when, l->threads, l->read_bytes_per_s * 1e-9,
             l->int8_ops_per_s * 1e-9, l->float_ops_per_s * 1e-9,
             l->read_cached ? "  (reading: perhaps from a cache)" : "");
}

void hth_bench_limits_table(const hth_bench *b) {
    if (!hth_bench_has_limits(b)) return;
    hth_outf("\n%-18s %8s %12s %14s %16s\n", "limits", "threads", "read GB/s", "int8 GOP/s", "float GFLOP/s");
    for (size_t i = 0; i < b->limits.n_each; i++) limits_line("", &b->limits.each[i]);
    limits_line("before", &b->limits.before);
    limits_line("after", &b->limits.after);
    if (hth_bench_limits_differ(b)) hth_outf("They differ by more than a fifth: the fractions are of their mean.\n");
}

void hth_bench_fractions_json(hth_json *json, const hth_bench *b, const hth_bench_cost *cost, double seconds) {
    if (!hth_bench_has_limits(b)) return;
    hth_report_measure(json, "fraction_of_read", hth_bench_of_read(b, cost, seconds));
    hth_json_bool(json, "read_cached", hth_bench_is_cached(b, cost));
    hth_report_measure(json, "fraction_of_peak", hth_bench_of_peak(b, cost, seconds));
}

void hth_bench_fractions_columns(const hth_bench *b, const hth_bench_cost *cost, double seconds) {
    if (!hth_bench_has_limits(b)) return;
    if (hth_bench_is_cached(b, cost)) hth_outf(" %8s", "cached");
    else hth_outf(" %7.1f%%", 100 * hth_bench_of_read(b, cost, seconds));
    hth_outf(" %7.1f%%", 100 * hth_bench_of_peak(b, cost, seconds));
}

/* ---- What fractions mean ---- */

/* What the tables show of a measurement: the largest fraction, and whether its reading is said to be cached. */
static void look_at(const hth_bench *b, const hth_bench_cost *cost, double seconds, double *most, bool *cached) {
    bool is_cached = hth_bench_is_cached(b, cost);
    *cached = *cached || is_cached;
    if (!is_cached) *most = fmax(*most, hth_bench_of_read(b, cost, seconds));
}

void hth_bench_fractions_notes(const hth_bench *b) {
    double most = 0;
    bool cached = false;
    hth_cpu cpu;
    if (!hth_bench_has_limits(b)) return;
    for (size_t i = 0; i < b->n_rows; i++) {
        look_at(b, &b->rows[i].cost, hth_bench_seconds(&b->rows[i]), &most, &cached);
        most = fmax(most, hth_bench_ops_most(b, &b->rows[i]));
    }
    for (size_t i = 0; i < b->sweep.count; i++)
        look_at(b, &b->points[i].cost, b->points[i].median * 1e-3, &most, &cached);
    if (cached)
        hth_outf(
            "\ncached: the last cache holds all that a pass reads (up to %.1f MB), so no limit of reading is known\n",
            (double)b->limits.before.cache_bytes * 1e-6);
    if (most > 1)
        hth_outf("\nAbove 100%%: limits differ by some percent from one measurement to the next, caches keep a part of "
                 "what\nthe pass before read, and a thread that reads while others wait has more than its share of "
                 "memory's rate.\n");
    hth_cpu_probe(&cpu);
    if (b->info.threads > cpu.cores)
        hth_outf("\n%d threads share %d core%s: they take turns, and neither limits nor fractions mean much.\n",
                 b->info.threads, cpu.cores, hth_plural(cpu.cores));
}
