/* The time of one pass over its rows, to show that no number of rows has a cliff. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/bench.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"

enum { MAX_PASS = 65536, MAX_POINTS = 4096 };

/* ---- The list ---- */

static bool parse_count(const char **s, int64_t *out) {
    char *end;
    if (**s < '0' || **s > '9') return false;
    errno = 0;
    long long value = strtoll(*s, &end, 10);
    if (errno != 0 || value < 1 || value > MAX_PASS) return false;
    *s = end;
    *out = value;
    return true;
}

int hth_bench_sweep_parse(const char *text, hth_numbers *out) {
    int64_t first, last;
    *out = (hth_numbers){.values = malloc(MAX_POINTS * sizeof *out->values)};
    if (!out->values) return hth_out_of_memory();
    for (const char *s = text;; s++) {
        bool good = parse_count(&s, &first);
        last = first;
        if (good && *s == '-') {
            s++;
            good = parse_count(&s, &last);
        }
        if (!good || (*s != ',' && *s != '\0')) {
            hth_complain("--sweep: '%s' is no list of rows such as 1-130,500-520, each from 1 to %d", text, MAX_PASS);
            return HTH_EXIT_USAGE;
        }
        if (last < first || (out->count > 0 && first <= out->values[out->count - 1])) {
            hth_complain("--sweep: rows increase, and in '%s' %lld comes too late", text,
                         (long long)(last < first ? last : first));
            return HTH_EXIT_USAGE;
        }
        if (last - first >= MAX_POINTS - (int64_t)out->count) {
            hth_complain("--sweep: at most %d numbers of rows are measured", MAX_POINTS);
            return HTH_EXIT_USAGE;
        }
        for (; first <= last; first++) out->values[out->count++] = first;
        if (*s == '\0') return HTH_EXIT_OK;
    }
}

/* ---- Measuring ---- */

static hearth_status measure(hth_bench *b, hth_bench_point *point, int64_t rep, hearth_error *err) {
    hearth_status status = hth_bench_go_to(b, 1, b->depths.values[0], err);
    hth_bench_cost before = hth_bench_cost_now(b->engine);
    uint64_t start = hth_now_ns();
    if (status == HEARTH_OK) status = hth_bench_append(b, point->rows, HEARTH_OUTPUT_LAST, NULL, 0, err);
    point->ms[rep] = hth_ms_since(start);
    point->cost = hth_bench_cost_since(b->engine, before);
    return status;
}

/* All rows once, then all again, forwards and backwards in turn: what disturbs the machine for a while, or wears off,
 * falls on neighbours alike and makes no step. */
int hth_bench_sweep_measure(hth_bench *b) {
    hearth_error err = {HEARTH_OK, ""};
    size_t count = b->sweep.count;
    double warm;
    hth_bench_point first = {.rows = b->sweep.values[0], .ms = &warm};
    if (count == 0) return HTH_EXIT_OK;
    if (measure(b, &first, 0, &err) != HEARTH_OK) return hth_complain_error(&err);
    for (int64_t rep = 0; rep < b->flags.reps; rep++)
        for (size_t i = 0; i < count; i++) {
            hth_bench_point *point = &b->points[rep % 2 ? count - 1 - i : i];
            if (measure(b, point, rep, &err) != HEARTH_OK) return hth_complain_error(&err);
            hth_progress("measurement", ++b->done, b->total);
        }
    double *sorted = malloc((size_t)b->flags.reps * sizeof *sorted);
    if (!sorted) return hth_out_of_memory();
    for (size_t i = 0; i < count; i++)
        hth_bench_summarize(b->points[i].ms, b->flags.reps, sorted, &b->points[i].median, &b->points[i].least,
                            &b->points[i].most);
    free(sorted);
    hth_bench_sweep_judge(b->points, count);
    return HTH_EXIT_OK;
}

/* ---- Report ---- */

static size_t steps_in(const hth_bench *b) {
    size_t steps = 0;
    for (size_t i = 0; i < b->sweep.count; i++) steps += b->points[i].step;
    return steps;
}

void hth_bench_sweep_json(hth_json *json, const hth_bench *b) {
    if (b->sweep.count == 0) return;
    hth_json_open(json, "sweep", '{');
    hth_json_int(json, "depth", b->depths.values[0]);
    hth_json_uint(json, "steps", steps_in(b));
    hth_json_open(json, "points", '[');
    for (size_t i = 0; i < b->sweep.count; i++) {
        const hth_bench_point *p = &b->points[i];
        hth_json_open(json, NULL, '{');
        hth_json_int(json, "rows", p->rows);
        hth_report_measure(json, "ms", p->median);
        hth_report_measure(json, "ms_per_row", p->median / (double)p->rows);
        hth_report_measure(json, "least", p->least);
        hth_report_measure(json, "most", p->most);
        if (p->trend > 0) hth_report_measure(json, "of_trend", p->median / p->trend);
        hth_json_bool(json, "step", p->step);
        hth_bench_fractions_json(json, b, &p->cost, p->median * 1e-3);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
    hth_json_close(json, '}');
}

void hth_bench_sweep_table(const hth_bench *b) {
    bool limits = hth_bench_has_limits(b);
    if (b->sweep.count == 0) return;
    hth_outf("\none pass after %lld token%s\n%8s %12s %12s %12s %12s", (long long)b->depths.values[0],
             hth_plural(b->depths.values[0]), "rows", "ms", "ms a row", "least", "most");
    hth_outf("%s %9s\n", limits ? "  of read  of peak" : "", "of trend");
    for (size_t i = 0; i < b->sweep.count; i++) {
        const hth_bench_point *p = &b->points[i];
        hth_outf("%8lld %12.3f %12.4f %12.3f %12.3f", (long long)p->rows, p->median, p->median / (double)p->rows,
                 p->least, p->most);
        hth_bench_fractions_columns(b, &p->cost, p->median * 1e-3);
        if (p->trend > 0) hth_outf(" %9.3f%s", p->median / p->trend, p->step ? "  step" : "");
        hth_outf("\n");
    }
    hth_outf("%zu of %zu are more than %.2f times the trend of their neighbours\n", steps_in(b), b->sweep.count,
             HTH_BENCH_STEP);
}
