/* Recurrences and the gate: every tier against ref to the bit, in one call and cut at any row; ref against the formulas
 * in double precision. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/check.h"

typedef enum fill { PLAIN, LARGE, TINY, ZEROS, ANY, FILLS } fill;
static const char *const fills[FILLS] = {"plain", "large", "tiny", "zeros", "any"};

static float value(check *c, fill f) {
    switch (f) {
    case LARGE: return check_float(c, -1, 1) * 0x1p70f; /* squares overflow */
    case TINY: return check_float(c, -1, 1) * 0x1p-126f;
    case ZEROS: return check_below(c, 2) ? 0.0f : -0.0f;
    case ANY: return check_any_float(c);
    default: return check_float(c, -2, 2);
    }
}

static check_buffer floats(check *c, int64_t n, fill f, bool front) {
    check_buffer b = check_alloc((size_t)n * sizeof(float), front);
    for (int64_t i = 0; i < n; i++) ((float *)b.at)[i] = value(c, f);
    return b;
}

static check_buffer copy_of(const check_buffer *b, bool front) {
    check_buffer copy = check_alloc(b->n, front);
    memcpy(copy.at, b->at, b->n);
    return copy;
}

static float *at(const check_buffer *b) {
    return (float *)b->at;
}

/* ---- Gate -------------------------------------------------------------------------------------------------------- */

/* in_place: y is that input; -1 for an output of its own. */
static void compare_gate(check *c, int64_t n, fill f, int in_place) {
    if (!check_begin(c, "gate n=%" PRId64 " %s place %d", n, fills[f], in_place)) return;
    check_buffer in[2] = {floats(c, n, f, n & 1), floats(c, n, f, n & 1)}, out[2];
    for (int i = 0; i < 2; i++) {
        out[i] = in_place < 0 ? check_alloc((size_t)n * sizeof(float), !(n & 1)) : copy_of(&in[in_place], !(n & 1));
        const float *x = in_place == 0 ? at(&out[i]) : at(&in[0]), *g = in_place == 1 ? at(&out[i]) : at(&in[1]);
        (i ? c->tier : c->ref)->gate(x, g, at(&out[i]), n);
    }
    check_floats(c, at(&out[0]), at(&out[1]), n, n);
    for (int i = 0; i < 2; i++) {
        check_free(&in[i]);
        check_free(&out[i]);
    }
}

/* ---- Convolution ------------------------------------------------------------------------------------------------- */

typedef struct conv_case {
    int64_t rows, channels, taps, c0, c1, cut;
} conv_case;

/* Rows a..b-1 of *whole. */
static void run_conv(const hth_kernels *t, const hth_conv *whole, const conv_case *k, int64_t a, int64_t b) {
    hth_conv part = *whole;
    part.x += a * whole->ldx;
    part.y += a * whole->ldy;
    part.rows = b - a;
    t->conv(&part, k->c0, k->c1);
}

static void compare_conv(check *c, conv_case k, fill f) {
    if (!check_begin(
            c, "conv rows=%" PRId64 " of %" PRId64 "..%" PRId64 "/%" PRId64 " taps=%" PRId64 " cut %" PRId64 " %s",
            k.rows, k.c0, k.c1, k.channels, k.taps, k.cut, fills[f]))
        return;
    bool front = k.rows & 1;
    int64_t ldx = k.channels + k.rows % 3, ldy = k.channels + k.taps % 2;
    int64_t nx = k.rows ? (k.rows - 1) * ldx + k.channels : 0, ny = k.rows ? (k.rows - 1) * ldy + k.channels : 0;
    check_buffer x = floats(c, nx, f, front), w = floats(c, k.channels * k.taps, PLAIN, front);
    check_buffer ring[2], y[2];
    ring[0] = floats(c, (k.taps - 1) * k.channels, f, front);
    ring[1] = copy_of(&ring[0], front);
    for (int i = 0; i < 2; i++) {
        y[i] = check_alloc((size_t)ny * sizeof(float), front);
        hth_conv a = {at(&x), ldx, k.rows, k.channels, k.taps, at(&w), at(&ring[i]), at(&y[i]), ldy};
        const hth_kernels *t = i ? c->tier : c->ref;
        if (i) run_conv(t, &a, &k, 0, k.cut);
        run_conv(t, &a, &k, i ? k.cut : 0, k.rows);
    }
    check_floats(c, at(&y[0]), at(&y[1]), ny, ldy);
    check_floats(c, at(&ring[0]), at(&ring[1]), (k.taps - 1) * k.channels, k.channels);
    check_free(&x);
    check_free(&w);
    for (int i = 0; i < 2; i++) {
        check_free(&ring[i]);
        check_free(&y[i]);
    }
}

static void compare_convs(check *c) {
    static const int64_t channels[] = {1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130}, rows[] = {0, 1, 2, 3, 4, 7, 18};
    static const int64_t taps[] = {2, 3, 4, 5, HTH_CONV_TAPS};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            for (size_t k = 0; k < sizeof taps / sizeof *taps; k++)
                for (int f = 0; f < FILLS; f++)
                    compare_conv(c, (conv_case){rows[j], channels[i], taps[k], 0, channels[i], rows[j] / 3}, (fill)f);
    for (int64_t cut = 0; cut <= 9; cut++) compare_conv(c, (conv_case){9, 40, 4, 0, 40, cut}, PLAIN);
    for (int64_t c0 = 0; c0 < 130; c0 += 29) compare_conv(c, (conv_case){9, 130, 4, c0, c0 + 14, 4}, ANY);
}

/* ---- Gated delta rule -------------------------------------------------------------------------------------------- */

typedef struct delta_case {
    int64_t rows, dk, dv, cut;
} delta_case;

/* The operands of one head: rows of queries, keys and values side by side, as the op has them. */
typedef struct delta_data {
    delta_case k;
    int64_t ld, ldy;
    check_buffer u, decay, beta, state[2], y[2], scratch;
} delta_data;

static delta_data make_delta(check *c, delta_case k, fill f) {
    bool front = k.rows & 1;
    delta_data d = {.k = k, .ld = 2 * k.dk + k.dv + k.rows % 3, .ldy = k.dv + k.dk % 2};
    d.u = floats(c, (k.rows - 1) * d.ld + 2 * k.dk + k.dv, f, front);
    d.decay = check_alloc((size_t)k.rows * sizeof(float), front);
    d.beta = check_alloc((size_t)k.rows * sizeof(float), front);
    for (int64_t t = 0; t < k.rows; t++) {
        at(&d.decay)[t] = f == ANY ? check_any_float(c) : check_float(c, 0, 1);
        at(&d.beta)[t] = f == ANY ? check_any_float(c) : check_float(c, 0, 1);
    }
    d.state[0] = floats(c, k.dk * k.dv, f == LARGE ? PLAIN : f, front);
    d.state[1] = copy_of(&d.state[0], front);
    for (int i = 0; i < 2; i++) d.y[i] = check_alloc((size_t)((k.rows - 1) * d.ldy + k.dv) * sizeof(float), front);
    d.scratch = check_alloc((HTH_DELTA_SCRATCH(k.dk) + 63) / 64 * 64, false);
    return d;
}

static void free_delta(delta_data *d) {
    check_buffer *all[] = {&d->u, &d->decay, &d->beta, &d->state[0], &d->state[1], &d->y[0], &d->y[1], &d->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_free(all[i]);
}

/* Rows a..b-1 with state and output i. */
static void run_delta(const hth_kernels *t, const delta_data *d, int i, int64_t a, int64_t b) {
    if (a == b) return;
    const float *u = at(&d->u) + a * d->ld;
    hth_delta args = {.q = u,
                      .k = u + d->k.dk,
                      .v = u + 2 * d->k.dk,
                      .ld = d->ld,
                      .decay = at(&d->decay) + a,
                      .beta = at(&d->beta) + a,
                      .rows = b - a,
                      .dk = d->k.dk,
                      .dv = d->k.dv,
                      .eps = 1e-6f,
                      .scale = (float)(1 / sqrt((double)d->k.dk)),
                      .state = at(&d->state[i]),
                      .y = at(&d->y[i]) + a * d->ldy,
                      .ldy = d->ldy};
    t->delta(&args, d->scratch.at);
}

static void compare_delta(check *c, delta_case k, fill f) {
    if (!check_begin(c, "delta rows=%" PRId64 " dk=%" PRId64 " dv=%" PRId64 " cut %" PRId64 " %s", k.rows, k.dk, k.dv,
                     k.cut, fills[f]))
        return;
    delta_data d = make_delta(c, k, f);
    run_delta(c->ref, &d, 0, 0, k.rows);
    run_delta(c->tier, &d, 1, 0, k.cut);
    run_delta(c->tier, &d, 1, k.cut, k.rows);
    check_floats(c, at(&d.y[0]), at(&d.y[1]), (k.rows - 1) * d.ldy + k.dv, d.ldy);
    check_floats(c, at(&d.state[0]), at(&d.state[1]), k.dk * k.dv, k.dv);
    free_delta(&d);
}

static void compare_deltas(check *c) {
    static const int64_t dk[] = {1, 3, 8, 16, 33, 128}, dv[] = {1, 7, 8, 16, 31, 32, 33, 64, 100, 128};
    static const int64_t rows[] = {1, 2, 15, 16, 17, 33};
    for (size_t i = 0; i < sizeof dk / sizeof *dk; i++)
        for (size_t j = 0; j < sizeof dv / sizeof *dv; j++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                for (int f = 0; f < FILLS; f++)
                    compare_delta(c, (delta_case){rows[r], dk[i], dv[j], rows[r] / 3}, (fill)f);
    for (int64_t cut = 0; cut <= 20; cut++) compare_delta(c, (delta_case){20, 16, 40, cut}, PLAIN);
}

/* ---- ref against the formulas ------------------------------------------------------------------------------------ */

static void near(check *c, const char *what, int64_t i, double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        check_fail(c, "%s %" PRId64 ": %g, not %g", what, i, got, want);
}

static void gate_accuracy(check *c) {
    enum { N = 100 };
    float x[N], g[N], y[N];
    if (!check_begin(c, "gate accuracy")) return;
    for (int i = 0; i < N; i++) {
        x[i] = check_float(c, -5, 5);
        g[i] = check_float(c, -20, 20);
    }
    c->tier->gate(x, g, y, N);
    for (int i = 0; i < N; i++) near(c, "element", i, (double)y[i], (double)x[i] / (1 + exp(-(double)g[i])), 1e-6);
}

static void conv_accuracy(check *c) {
    enum { ROWS = 6, CHANNELS = 5, TAPS = 4 };
    float x[ROWS][CHANNELS], w[CHANNELS][TAPS], ring[TAPS - 1][CHANNELS], y[ROWS][CHANNELS];
    double in[TAPS - 1 + ROWS][CHANNELS];
    if (!check_begin(c, "conv accuracy")) return;
    for (int ch = 0; ch < CHANNELS; ch++) {
        for (int j = 0; j < TAPS; j++) w[ch][j] = check_float(c, -1, 1);
        for (int j = 0; j < TAPS - 1; j++) in[j][ch] = (double)(ring[j][ch] = check_float(c, -2, 2));
        for (int t = 0; t < ROWS; t++) in[TAPS - 1 + t][ch] = (double)(x[t][ch] = check_float(c, -2, 2));
    }
    hth_conv a = {x[0], CHANNELS, ROWS, CHANNELS, TAPS, w[0], ring[0], y[0], CHANNELS};
    c->tier->conv(&a, 0, CHANNELS);
    for (int ch = 0; ch < CHANNELS; ch++) {
        for (int t = 0; t < ROWS; t++) {
            double s = 0;
            for (int j = 0; j < TAPS; j++) s += (double)w[ch][j] * in[t + j][ch];
            near(c, "output", t * CHANNELS + ch, (double)y[t][ch], s / (1 + exp(-s)), 2e-6);
        }
        for (int j = 0; j < TAPS - 1; j++) near(c, "ring", j, (double)ring[j][ch], in[ROWS + j][ch], 0);
    }
}

/* The rule as its paper has it, in another arrangement: S decays, then is read by k, moved and read by q. */
static void delta_formula(const delta_data *d, double *s, double *y) {
    int64_t dk = d->k.dk, dv = d->k.dv;
    for (int64_t t = 0; t < d->k.rows; t++) {
        const float *q = at(&d->u) + t * d->ld, *k = q + dk, *v = k + dk;
        double qq = 1e-6, kk = 1e-6;
        for (int64_t i = 0; i < dk; i++) {
            qq += (double)q[i] * (double)q[i];
            kk += (double)k[i] * (double)k[i];
        }
        for (int64_t j = 0; j < dv; j++) {
            double told = 0, read = 0;
            for (int64_t i = 0; i < dk; i++) {
                s[i * dv + j] *= (double)at(&d->decay)[t];
                told += s[i * dv + j] * (double)k[i] / sqrt(kk);
            }
            for (int64_t i = 0; i < dk; i++) {
                s[i * dv + j] += (double)at(&d->beta)[t] * ((double)v[j] - told) * (double)k[i] / sqrt(kk);
                read += s[i * dv + j] * (double)q[i] / sqrt(qq * (double)dk);
            }
            y[t * dv + j] = read;
        }
    }
}

static void delta_accuracy(check *c) {
    delta_case k = {40, 24, 10, 0};
    if (!check_begin(c, "delta accuracy")) return;
    delta_data d = make_delta(c, k, PLAIN);
    double *s = malloc((size_t)(k.dk * k.dv) * sizeof *s), *y = malloc((size_t)(k.rows * k.dv) * sizeof *y);
    for (int64_t i = 0; i < k.dk * k.dv; i++) s[i] = (double)at(&d.state[1])[i];
    delta_formula(&d, s, y);
    run_delta(c->tier, &d, 1, 0, k.rows);
    for (int64_t t = 0; t < k.rows; t++)
        for (int64_t j = 0; j < k.dv; j++)
            near(c, "output", t * k.dv + j, (double)at(&d.y[1])[t * d.ldy + j], y[t * k.dv + j], 1e-5);
    for (int64_t i = 0; i < k.dk * k.dv; i++) near(c, "state", i, (double)at(&d.state[1])[i], s[i], 1e-5);
    free(s);
    free(y);
    free_delta(&d);
}

static void gates_accuracy(check *c) {
    if (!check_begin(c, "delta gates")) return;
    for (int n = 0; n < 20000; n++) {
        float alpha = check_float(c, -40, 40), b = check_float(c, -40, 40), a = check_float(c, -20, 0);
        float dt = check_float(c, -5, 5), decay, beta;
        hth_delta_gates(alpha, b, a, dt, &decay, &beta);
        double x = (double)alpha + (double)dt, softplus = x > 20 ? x : log(1 + exp(x));
        /* One rounding to float, and what two tails of binary64 differ by. */
        near(c, "decay", n, (double)decay, (double)(float)exp((double)a * softplus), 0x1p-24);
        near(c, "beta", n, (double)beta, (double)(float)(1 / (1 + exp(-(double)b))), 0x1p-24);
    }
    static const float edges[] = {0.0f, -0.0f, 1e30f, -1e30f, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        float decay, beta;
        hth_delta_gates(edges[i], edges[i], -1, 0, &decay, &beta);
        if (!(decay >= 0 && decay <= 1 && beta >= 0 && beta <= 1)) check_fail(c, "edge %g", (double)edges[i]);
        hth_delta_gates(NAN, edges[i], -1, 0, &decay, &beta);
        if (decay == decay) check_fail(c, "NaN is lost");
    }
}

/* ---- Rates ------------------------------------------------------------------------------------------------------- */

typedef struct bench {
    check *c;
    delta_data d[64];
    hth_conv conv[64];
    int64_t rows, times; /* calls that are timed as one */
} bench;

enum { BENCH_ROWS = 512 };

static void delta_work(void *arg, int thread) {
    bench *b = arg;
    for (int64_t i = 0; i < b->times; i++) run_delta(b->c->tier, &b->d[thread], 1, 0, b->rows);
}

static void bench_delta(check *c, int64_t rows) {
    static bench b;
    if (!check_begin(c, "delta 128x128, rows %" PRId64, rows)) return;
    b = (bench){.c = c, .rows = rows, .times = BENCH_ROWS / rows};
    for (int t = 0; t < c->threads; t++) b.d[t] = make_delta(c, (delta_case){rows, 128, 128, 0}, PLAIN);
    double time = check_time(c, delta_work, &b) / BENCH_ROWS;
    printf("%-8s %-28s %8.0f ns a row of a head, %5.1f GFLOP/s\n", c->tier->name, c->label, time * 1e9,
           128 * 128 * 7 / time * 1e-9 * c->threads);
    for (int t = 0; t < c->threads; t++) free_delta(&b.d[t]);
}

static void conv_work(void *arg, int thread) {
    bench *b = arg;
    for (int64_t i = 0; i < b->times; i++) b->c->tier->conv(&b->conv[thread], 0, 64);
}

/* Some channels of rows that lie far apart, as a task has them. */
static void bench_conv(check *c, int64_t rows) {
    static bench b;
    enum { CHANNELS = 8192, TAPS = 4 };
    if (!check_begin(c, "conv 64 channels, rows %" PRId64, rows)) return;
    b = (bench){.c = c, .rows = rows, .times = BENCH_ROWS / rows};
    for (int t = 0; t < c->threads; t++)
        b.conv[t] = (hth_conv){calloc((size_t)(rows * CHANNELS), 4),
                               CHANNELS,
                               rows,
                               CHANNELS,
                               TAPS,
                               calloc(CHANNELS * TAPS, 4),
                               calloc(CHANNELS * TAPS, 4),
                               calloc((size_t)(rows * CHANNELS), 4),
                               CHANNELS};
    double time = check_time(c, conv_work, &b) / (BENCH_ROWS * 64);
    printf("%-8s %-28s %8.3f ns an element\n", c->tier->name, c->label, time * 1e9);
    for (int t = 0; t < c->threads; t++) {
        free((void *)b.conv[t].x);
        free((void *)b.conv[t].w);
        free(b.conv[t].ring);
        free(b.conv[t].y);
    }
}

static void gate_work(void *arg, int thread) {
    bench *b = arg;
    float *x = at(&b->d[thread].u);
    for (int i = 0; i < 100; i++) b->c->tier->gate(x, x + 2048, x + 4096, 2048);
}

static void bench_gate(check *c) {
    static bench b;
    if (!check_begin(c, "gate n=2048")) return;
    b = (bench){.c = c};
    for (int t = 0; t < c->threads; t++) b.d[t].u = floats(c, 3 * 2048, PLAIN, true);
    double time = check_time(c, gate_work, &b) / 100;
    printf("%-8s %-28s %8.3f ns an element\n", c->tier->name, c->label, time * 1e9 / 2048);
    for (int t = 0; t < c->threads; t++) check_free(&b.d[t].u);
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static void run(check *c) {
    if (c->bench) {
        bench_gate(c);
        for (int64_t rows = 1; rows <= BENCH_ROWS; rows *= 8) bench_conv(c, rows);
        for (int64_t rows = 1; rows <= BENCH_ROWS; rows *= 8) bench_delta(c, rows);
        return;
    }
    gate_accuracy(c);
    conv_accuracy(c);
    delta_accuracy(c);
    gates_accuracy(c);
    if (c->tier == c->ref) return;
    static const int64_t lengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 100, 577};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int f = 0; f < FILLS; f++)
            for (int place = -1; place < 2; place++) compare_gate(c, lengths[i], (fill)f, place);
    compare_convs(c);
    compare_deltas(c);
}

int main(int argc, char **argv) {
    return check_main(argc, argv, "recurrent", run);
}
