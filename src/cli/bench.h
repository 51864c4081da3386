/* What a bench measures, between the verb and its picture. */
#ifndef HTH_CLI_BENCH_H
#define HTH_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One measurement: `tokens` tokens after `depth` tokens of the session. */
typedef struct hth_bench_row {
    bool decode; /* one by one; else in one call */
    int64_t tokens, depth;
    int64_t marks; /* left on the way, evenly spaced; a measurement with them comes after the same one without */
    double *rates; /* [reps]: tokens per second, in the order they were measured */
    double median, least, most;
} hth_bench_row;

/* A bar a row, prefill and decode each on their own scale, with a whisker from the least rate to the most. title and
 * subtitle need not be UTF-8. False when it cannot be written (errno). */
bool hth_bench_svg(FILE *out, const char *title, const char *subtitle, const hth_bench_row *rows, size_t count);

#endif
