/* The harness of the kernel tests: every tier's table against ref's, to the bit, on data that a seed repeats; and a
 * clock over the same calls (--bench).
 *
 *   int main(int argc, char **argv) { return check_main(argc, argv, "linear", run); }
 *
 * `run` is called once for each tier that the machine (or the emulator) has. Options: --seed N, --filter TEXT (cases
 * whose label contains TEXT), --tier NAME, --bench, --threads N. A tier the machine lacks is reported, and is a failure
 * when the environment's HEARTH_REQUIRE_TIER names it.
 */
#ifndef HEARTH_TESTS_KERNELS_CHECK_H
#define HEARTH_TESTS_KERNELS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels.h"

typedef struct check {
    const hth_kernels *ref;  /* the oracle */
    const hth_kernels *base; /* the tier below: what equals it was tested there */
    const hth_kernels *tier; /* under test; equal to ref when ref itself is run (benches, accuracy) */
    const char *filter;
    uint64_t seed;
    bool bench;
    int threads;
    uint64_t random; /* state, reset from the seed before every case */
    int failures;
    char label[160]; /* of the case under way */
} check;

int check_main(int argc, char **argv, const char *family, void run(check *c));

/* Begin a case; false when the filter leaves it out. The random state depends on the seed and the label alone. */
bool check_begin(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Report a failure of the case under way. */
void check_fail(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint32_t check_u32(check *c);
/* Uniform in 0..n-1. */
int64_t check_below(check *c, int64_t n);
/* Uniform in lo..hi. */
float check_float(check *c, float lo, float hi);
/* Any bit pattern: subnormals, infinities and NaNs come up. */
float check_any_float(check *c);
void check_bytes(check *c, void *p, size_t n);

/* n bytes whose last one (or first, when `front`) lies against a page that cannot be read; filled with 0xA5. */
typedef struct check_buffer {
    void *map;
    size_t map_bytes;
    uint8_t *at;
    size_t n;
} check_buffer;
check_buffer check_alloc(size_t n, bool front);
void check_free(check_buffer *b);

/* Compare floats by bits, all NaNs equal; the first difference is reported as (row, column) of `columns`. */
bool check_floats(check *c, const float *want, const float *got, int64_t n, int64_t columns);
bool check_same(check *c, const char *what, const void *want, const void *got, size_t n);

/* Time of one call in seconds: that of the call which one in twenty beat, over about a quarter second of calls.
 * Processor time with one thread, so that a shared machine disturbs less; with --threads N, N threads call work(arg,
 * thread) together and it is wall time. */
double check_time(check *c, void work(void *arg, int thread), void *arg);

#endif
