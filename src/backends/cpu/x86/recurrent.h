/* The recurrences and the gate, in vectors of LANES floats.
 *
 * Included once by each tier that has it, after
 *   enum { LANES }, floats  the floats of a vector and its type, and the primitives that are declared below. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels.h"

/* ---- Defined by the including file ---- */

HTH_INLINE floats every(float x);
HTH_INLINE floats load(const float *p);
HTH_INLINE void store(float *p, floats v);
/* The next LANES of `left` floats, which may be none: lanes past the last are +0, and their memory is not touched. */
HTH_INLINE floats load_some(const float *p, int64_t left);
HTH_INLINE void store_some(float *p, int64_t left, floats v);
HTH_INLINE floats multiply(floats a, floats b);
HTH_INLINE floats subtract(floats a, floats b);
HTH_INLINE floats multiply_add(floats a, floats b, floats c);
HTH_INLINE floats sigmoid(floats z);
HTH_INLINE floats silu(floats z);
/* A striped sum. */
HTH_INLINE float sum_of_squares(const float *x, int64_t n);

/* ---- Gate ---- */

static void gate(const float *x, const float *g, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES)
        store_some(y + i, n - i, multiply(load_some(x + i, n - i), sigmoid(load_some(g + i, n - i))));
}

/* ---- Convolution: lanes are channels ---- */

/* Channels taken along the rows together: what lies between two of them in memory is read by one pass over the rows. */
enum { CHANNELS = 64 };

/* The taps of n channels from c on, those of one age side by side. */
HTH_INLINE void load_taps(const hth_conv *a, int64_t c, int64_t n, int64_t taps, float to[][CHANNELS]) {
    if (n < CHANNELS) memset(to, 0, (size_t)taps * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < taps; j++) to[j][i] = a->w[(c + i) * taps + j];
}

/* The inputs of row t, from channel c on; rows before the first are the ring's. */
HTH_INLINE const float *inputs(const hth_conv *a, int64_t t, int64_t c) {
    return t < 0 ? a->ring + (t + a->taps - 1) * a->channels + c : a->x + t * a->ldx + c;
}

HTH_INLINE void conv_channels(const hth_conv *a, int64_t c, int64_t n, int64_t taps) {
    float w[HTH_CONV_TAPS][CHANNELS];
    load_taps(a, c, n, taps, w);
    for (int64_t t = 0; t < a->rows; t++) {
        const float *in[HTH_CONV_TAPS];
        for (int64_t j = 0; j < taps; j++) in[j] = inputs(a, t - (taps - 1) + j, c);
        for (int64_t i = 0; i < n; i += LANES) {
            floats s = every(0);
            for (int64_t j = 0; j < taps; j++) s = multiply_add(load(w[j] + i), load_some(in[j] + i, n - i), s);
            store_some(a->y + t * a->ldy + c + i, n - i, silu(s));
        }
    }
    for (int64_t j = 0; j < taps - 1; j++)
        memmove(a->ring + j * a->channels + c, inputs(a, a->rows - (taps - 1) + j, c), (size_t)n * sizeof(float));
}

/* Four taps are what models have. */
static void conv(const hth_conv *a, int64_t c0, int64_t c1) {
    for (int64_t c = c0; c < c1; c += CHANNELS) {
        int64_t n = c1 - c < CHANNELS ? c1 - c : CHANNELS;
        if (a->taps == 4 && n == CHANNELS) conv_channels(a, c, CHANNELS, 4);
        else conv_channels(a, c, n, a->taps);
    }
}

/* ---- Gated delta rule: lanes are values ---- */

/* A block of HTH_DELTA_LANES columns of the state, packed, stays in the nearest cache while some rows walk over it. The
 * sweep that updates it for one row and reads it out also predicts the next row. */
enum { VECTORS = HTH_DELTA_LANES / LANES };

/* y = (x / sqrt(sum of squares + eps)) * scale */
static void unit_length(const float *x, float *y, int64_t n, float eps, float scale) {
    const floats r = every(1 / sqrtf(sum_of_squares(x, n) + eps)), by = every(scale);
    for (int64_t i = 0; i < n; i += LANES) {
        store_some(y + i, n - i, multiply(multiply(load_some(x + i, n - i), r), by));
    }
}

/* The decay of a row, its prediction u, from `from` into the block. */
static void predict(const float *from, int64_t ld, float *block, const float *k, int64_t dk, float decay,
                    floats u[VECTORS]) {
    const floats factor = every(decay);
    floats sum[VECTORS];
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) sum[n] = every(0);
    for (int64_t i = 0; i < dk; i++) {
        const floats ki = every(k[i]);
        HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
            floats s = multiply(load(from + i * ld + LANES * n), factor);
            sum[n] = multiply_add(s, ki, sum[n]);
            store(block + i * HTH_DELTA_LANES + LANES * n, s);
        }
    }
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) u[n] = sum[n];
}

/* The update by d and the read-out y, from the block into `to`. */
static void update(const float *block, float *to, int64_t ld, const float *q, const float *k, int64_t dk,
                   const floats d[VECTORS], floats y[VECTORS]) {
    floats sum[VECTORS], by[VECTORS];
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
        sum[n] = every(0);
        by[n] = d[n];
    }
    for (int64_t i = 0; i < dk; i++) {
        const floats ki = every(k[i]), qi = every(q[i]);
        HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
            floats s = multiply_add(ki, by[n], load(block + i * HTH_DELTA_LANES + LANES * n));
            sum[n] = multiply_add(s, qi, sum[n]);
            store(to + i * ld + LANES * n, s);
        }
    }
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) y[n] = sum[n];
}

/* Both for two rows that follow each other: update by d and read-out y of the first, decay and prediction u of the
 * second, whose key is k[dk ..]. */
static void advance(float *block, const float *q, const float *k, int64_t dk, float decay, const floats d[VECTORS],
                    floats y[VECTORS], floats u[VECTORS]) {
    const floats factor = every(decay);
    floats out[VECTORS], next[VECTORS], by[VECTORS];
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
        out[n] = next[n] = every(0);
        by[n] = d[n];
    }
    for (int64_t i = 0; i < dk; i++) {
        const floats ki = every(k[i]), qi = every(q[i]), after = every(k[dk + i]);
        HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
            float *at = block + i * HTH_DELTA_LANES + LANES * n;
            floats s = multiply_add(ki, by[n], load(at));
            out[n] = multiply_add(s, qi, out[n]);
            s = multiply(s, factor);
            next[n] = multiply_add(s, after, next[n]);
            store(at, s);
        }
    }
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
        y[n] = out[n];
        u[n] = next[n];
    }
}

/* d = beta * (v - u) of row t in lanes from j on. */
static void differ(const hth_delta *a, int64_t t, int64_t j, const floats u[VECTORS], floats d[VECTORS]) {
    const floats beta = every(a->beta[t]);
    for (int n = 0; n < VECTORS; n++) {
        floats v = load_some(a->v + t * a->ld + j + LANES * n, a->dv - j - LANES * n);
        d[n] = multiply(beta, subtract(v, u[n]));
    }
}

static void store_row(float *y, int64_t left, const floats v[VECTORS]) {
    for (int n = 0; n < VECTORS; n++) store_some(y + LANES * n, left - LANES * n, v[n]);
}

/* `rows` rows from t0 on in the lanes from j on. q and k: of unit length. */
static void walk(const hth_delta *a, int64_t t0, int64_t rows, int64_t j, const float *q, const float *k,
                 float *block) {
    float *state = a->state + j;
    int64_t dk = a->dk, left = a->dv - j, ld = a->dv;
    floats u[VECTORS], d[VECTORS], y[VECTORS];
    if (left < HTH_DELTA_LANES) {
        for (int64_t i = 0; i < dk; i++)
            for (int n = 0; n < VECTORS; n++)
                store(block + i * HTH_DELTA_LANES + LANES * n,
                      load_some(a->state + i * a->dv + j + LANES * n, left - LANES * n));
        state = block;
        ld = HTH_DELTA_LANES;
    }
    predict(state, ld, block, k, dk, a->decay[t0], u);
    for (int64_t t = t0; t < t0 + rows; t++, q += dk, k += dk) {
        differ(a, t, j, u, d);
        if (t + 1 < t0 + rows) advance(block, q, k, dk, a->decay[t + 1], d, y, u);
        else update(block, state, ld, q, k, dk, d, y);
        store_row(a->y + t * a->ldy + j, left, y);
    }
    if (left < HTH_DELTA_LANES)
        for (int64_t i = 0; i < dk; i++)
            for (int n = 0; n < VECTORS; n++)
                store_some(a->state + i * a->dv + j + LANES * n, left - LANES * n,
                           load(block + i * HTH_DELTA_LANES + LANES * n));
}

static void delta(const hth_delta *a, void *scratch) {
    float *q = scratch, *k = q + HTH_DELTA_ROWS * a->dk, *block = k + HTH_DELTA_ROWS * a->dk;
    for (int64_t t0 = 0; t0 < a->rows; t0 += HTH_DELTA_ROWS) {
        int64_t rows = a->rows - t0 < HTH_DELTA_ROWS ? a->rows - t0 : HTH_DELTA_ROWS;
        for (int64_t t = 0; t < rows; t++) {
            unit_length(a->q + (t0 + t) * a->ld, q + t * a->dk, a->dk, a->eps, a->scale);
            unit_length(a->k + (t0 + t) * a->ld, k + t * a->dk, a->dk, a->eps, 1);
        }
        for (int64_t j = 0; j < a->dv; j += HTH_DELTA_LANES) walk(a, t0, rows, j, q, k, block);
    }
}

static void init_recurrent(hth_kernels *t) {
    t->gate = gate;
    t->conv = conv;
    t->delta = delta;
}
