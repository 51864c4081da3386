/* The bench: what its parts share.
 *
 *   bench.c           the verb: flags, what is measured, in which order the parts run
 *   bench_measure.c   sessions, and the rows of rates
 *   bench_limits.c    the machine's limits, and rates as fractions of them
 *   bench_ops.c       time by kind of work
 *   bench_sweep.c     time of a pass over row counts
 *   bench_trend.c     which of them stand out
 *   bench_cold.c      cold against warm, in processes of their own
 *   bench_report.c    table and JSON
 *   bench_svg.c, bench_sweep_svg.c   pictures
 */
#ifndef HTH_CLI_BENCH_H
#define HTH_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/jsonout.h"
#include "cli/args.h"
#include "cli/model.h"
#include "hearth/engine.h"

/* What one measurement costs, as the counters say. */
typedef struct hth_bench_cost {
    uint64_t passes, weight_bytes, kv_bytes, int8_ops, float_ops, attention_ops;
} hth_bench_cost;

/* The time of a measurement by kind of work, of all its repetitions together. */
typedef struct hth_bench_ops {
    hearth_work *work; /* [count]; NULL: not asked for */
    size_t count;
    double wall_ms;
} hth_bench_ops;

/* One measurement: `tokens` tokens after `depth` tokens of each session. */
typedef struct hth_bench_row {
    bool decode;      /* one by one; else in one call */
    int64_t sessions; /* that decode together, each its own tokens */
    int64_t tokens, depth;
    int64_t marks; /* left on the way, evenly spaced; a measurement with them comes after the same one without */
    double *rates; /* [reps]: tokens per second of all sessions, in the order they were measured */
    double median, least, most;
    hth_bench_cost cost;
    hth_bench_ops ops;
} hth_bench_row;

/* A pass of so many rows. */
typedef struct hth_bench_point {
    int64_t rows;
    double *ms; /* [reps] */
    double median, least, most;
    double trend; /* what its neighbours let expect; 0 for the first */
    bool step;    /* more than HTH_BENCH_STEP times that */
    hth_bench_cost cost;
} hth_bench_point;

#define HTH_BENCH_STEP 1.15

/* Limits before and after the measurements, and the mean of both. */
typedef struct hth_bench_limits {
    hearth_limits before, after, mean;
    hearth_limits *each; /* [n_each]: of fewer threads as well; NULL unless asked for */
    size_t n_each;
} hth_bench_limits;

typedef struct hth_bench_flags {
    const char *prompt, *gen, *depth, *batch, *sweep, *svg;
    int64_t reps, marks, idle;
    int64_t child; /* a cold start, begun at so many ns; 0: none */
    bool limits, no_limits, ops, cold;
} hth_bench_flags;

typedef struct hth_numbers {
    int64_t *values;
    size_t count;
} hth_numbers;

/* Everything a bench holds; what is not there yet is NULL or 0. */
typedef struct hth_bench {
    int argc;
    char **argv; /* the command line, from the verb on */
    hth_args args;
    hth_bench_flags flags;
    char path[HTH_MAX_PATH];
    FILE *picture; /* open before anything is measured */
    hth_numbers prompts, gens, depths, batches, sweep;
    hth_bench_row *rows; /* those of one depth side by side */
    size_t n_rows;
    hth_bench_point *points; /* [sweep.count] */
    double *samples;         /* those of all rows and points */
    int64_t longest;         /* tokens that the longest session needs */
    int64_t n_sessions;
    hearth_token *tokens; /* some text that is long enough for all; session s starts s tokens into it */
    hearth_engine *engine;
    hearth_session **sessions; /* [n_sessions] */
    hearth_mark *bases;        /* [n_sessions]: where the depth that is measured begins */
    hearth_item *items;        /* [n_sessions] */
    hearth_mark *marks;        /* [flags.marks] */
    hearth_model_info info;
    hth_bench_limits limits;
    int64_t done, total; /* measurements, for the progress line */
} hth_bench;

/* The functions below that answer an int answer an exit status, and print why when it is not HTH_EXIT_OK. */

/* bench_measure.c */
int hth_bench_open(hth_bench *b); /* engine, sessions, tokens */
int hth_bench_rates(hth_bench *b);
/* Bring the first n sessions to a depth, computing only what they do not have yet. */
hearth_status hth_bench_go_to(hth_bench *b, int64_t n, int64_t depth, hearth_error *err);
/* Measure a row once; the sessions it needs are at its depth. *ms: how long it took. */
hearth_status hth_bench_once(hth_bench *b, const hth_bench_row *row, double *ms, hearth_error *err);
/* Append tokens of its text to session 0. */
hearth_status hth_bench_append(hth_bench *b, int64_t count, hearth_outputs outputs, hearth_mark *marks, int64_t n_marks,
                               hearth_error *err);
void hth_bench_summarize(const double *samples, int64_t reps, double *sorted, double *median, double *least,
                         double *most);
void hth_bench_free(hth_bench *b);

/* bench_limits.c */
int hth_bench_limits_measure(hth_bench *b, hearth_limits *out); /* of all the engine's threads */
int hth_bench_limits_finish(hth_bench *b);                      /* after the measurements: the mean, and each count */
bool hth_bench_has_limits(const hth_bench *b);
bool hth_bench_limits_differ(const hth_bench *b); /* before and after: by more than a fifth */
hth_bench_cost hth_bench_cost_now(const hearth_engine *engine);
hth_bench_cost hth_bench_cost_since(const hearth_engine *engine, hth_bench_cost before);
/* Whether the last cache holds all that a pass reads, so that the rate of memory does not limit it. */
bool hth_bench_is_cached(const hth_bench *b, const hth_bench_cost *cost);
/* Bytes of weights, keys and values a second over what can be read a second. */
double hth_bench_of_read(const hth_bench *b, const hth_bench_cost *cost, double seconds);
/* The time that the linears' operations take at the peaks over the time that all took. */
double hth_bench_of_peak(const hth_bench *b, const hth_bench_cost *cost, double seconds);
double hth_bench_seconds(const hth_bench_row *row); /* of a measurement, at its median rate */
void hth_bench_limits_json(hth_json *json, const hth_bench *b);
void hth_bench_limits_table(const hth_bench *b);
void hth_bench_fractions_json(hth_json *json, const hth_bench *b, const hth_bench_cost *cost, double seconds);
void hth_bench_fractions_columns(const hth_bench *b, const hth_bench_cost *cost, double seconds);
void hth_bench_fractions_notes(const hth_bench *b); /* what fractions of the tables above mean, where they need it */

/* bench_ops.c */
int hth_bench_ops_measure(hth_bench *b);
void hth_bench_ops_json(hth_json *json, const hth_bench *b, const hth_bench_row *row);
void hth_bench_ops_table(const hth_bench *b);
double hth_bench_ops_most(const hth_bench *b, const hth_bench_row *row); /* the largest fraction of a limit */

/* bench_sweep.c */
int hth_bench_sweep_parse(const char *text, hth_numbers *out); /* "1-130,500-520": increasing, none twice */
int hth_bench_sweep_measure(hth_bench *b);
void hth_bench_sweep_json(hth_json *json, const hth_bench *b);
void hth_bench_sweep_table(const hth_bench *b);

/* bench_cold.c: the parent, which measures and reports; and what it starts. */
int hth_bench_cold(hth_bench *b);
int hth_bench_cold_child(hth_bench *b);

/* bench_trend.c: trends and steps of points whose medians are there. */
void hth_bench_sweep_judge(hth_bench_point *points, size_t count);

/* bench_report.c */
void hth_bench_report(const hth_bench *b);

/* Pictures; title and subtitle need not be UTF-8. False when one cannot be written (errno). */
/* A bar a row, prefill and decode each on their own scale, with a whisker from the least rate to the most. */
bool hth_bench_svg(FILE *out, const char *title, const char *subtitle, const hth_bench_row *rows, size_t count);
/* Milliseconds of a pass over its rows; steps are marked. */
bool hth_bench_sweep_svg(FILE *out, const char *title, const char *subtitle, const hth_bench_point *points,
                         size_t count);

#endif
