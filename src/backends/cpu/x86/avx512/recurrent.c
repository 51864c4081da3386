/* The recurrences and the gate of the avx512 tier. */
#include <math.h>
#include <string.h>

#include "backends/cpu/x86/avx512/avx512.h"
#include "backends/cpu/x86/avx512/lanes.h"
#include "backends/cpu/x86/avx512/math_avx512.h"

enum { LANES = 16 };

static void gate(const float *x, const float *g, float *y, int64_t n) {
    const __m512 one = _mm512_set1_ps(1.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 e = hth_expf_avx512(hth_negate_avx512(hth_load_avx512(g + i, n - i)));
        __m512 s = _mm512_div_ps(one, _mm512_add_ps(one, e));
        hth_store_avx512(y + i, n - i, _mm512_mul_ps(hth_load_avx512(x + i, n - i), s));
    }
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
            __m512 s = _mm512_setzero_ps();
            for (int64_t j = 0; j < taps; j++)
                s = _mm512_fmadd_ps(_mm512_loadu_ps(w[j] + i), hth_load_avx512(in[j] + i, n - i), s);
            hth_store_avx512(a->y + t * a->ldy + c + i, n - i, hth_silu_avx512(s));
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
    __m512 p = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 e = hth_load_avx512(x + i, n - i);
        p = _mm512_fmadd_ps(e, e, p);
    }
    const __m512 r = _mm512_set1_ps(1 / sqrtf(hth_tree_sum_avx512(p) + eps));
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 e = _mm512_mul_ps(_mm512_mul_ps(hth_load_avx512(x + i, n - i), r), _mm512_set1_ps(scale));
        hth_store_avx512(y + i, n - i, e);
    }
}

/* The decay of a row, its prediction u, from `from` into the block. */
static void predict(const float *from, int64_t ld, float *block, const float *k, int64_t dk, float decay,
                    __m512 u[VECTORS]) {
    const __m512 factor = _mm512_set1_ps(decay);
    __m512 sum[VECTORS];
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) sum[n] = _mm512_setzero_ps();
    for (int64_t i = 0; i < dk; i++) {
        const __m512 ki = _mm512_set1_ps(k[i]);
        HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
            __m512 s = _mm512_mul_ps(_mm512_loadu_ps(from + i * ld + LANES * n), factor);
            sum[n] = _mm512_fmadd_ps(s, ki, sum[n]);
            _mm512_storeu_ps(block + i * HTH_DELTA_LANES + LANES * n, s);
        }
    }
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) u[n] = sum[n];
}

/* The update by d and the read-out y, from the block into `to`. */
static void update(const float *block, float *to, int64_t ld, const float *q, const float *k, int64_t dk,
                   const __m512 d[VECTORS], __m512 y[VECTORS]) {
    __m512 sum[VECTORS], by[VECTORS];
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
        sum[n] = _mm512_setzero_ps();
        by[n] = d[n];
    }
    for (int64_t i = 0; i < dk; i++) {
        const __m512 ki = _mm512_set1_ps(k[i]), qi = _mm512_set1_ps(q[i]);
        HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
            __m512 s = _mm512_fmadd_ps(ki, by[n], _mm512_loadu_ps(block + i * HTH_DELTA_LANES + LANES * n));
            sum[n] = _mm512_fmadd_ps(s, qi, sum[n]);
            _mm512_storeu_ps(to + i * ld + LANES * n, s);
        }
    }
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) y[n] = sum[n];
}

/* Both for two rows that follow each other: update by d and read-out y of the first, decay and prediction u of the
 * second, whose key is k[dk ..]. */
static void advance(float *block, const float *q, const float *k, int64_t dk, float decay, const __m512 d[VECTORS],
                    __m512 y[VECTORS], __m512 u[VECTORS]) {
    const __m512 factor = _mm512_set1_ps(decay);
    __m512 out[VECTORS], next[VECTORS], by[VECTORS];
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
        out[n] = next[n] = _mm512_setzero_ps();
        by[n] = d[n];
    }
    for (int64_t i = 0; i < dk; i++) {
        const __m512 ki = _mm512_set1_ps(k[i]), qi = _mm512_set1_ps(q[i]), after = _mm512_set1_ps(k[dk + i]);
        HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
            float *at = block + i * HTH_DELTA_LANES + LANES * n;
            __m512 s = _mm512_fmadd_ps(ki, by[n], _mm512_loadu_ps(at));
            out[n] = _mm512_fmadd_ps(s, qi, out[n]);
            s = _mm512_mul_ps(s, factor);
            next[n] = _mm512_fmadd_ps(s, after, next[n]);
            _mm512_storeu_ps(at, s);
        }
    }
    HTH_UNROLL for (int n = 0; n < VECTORS; n++) {
        y[n] = out[n];
        u[n] = next[n];
    }
}

/* d = beta * (v - u) of row t in lanes from j on. */
static void differ(const hth_delta *a, int64_t t, int64_t j, const __m512 u[VECTORS], __m512 d[VECTORS]) {
    const __m512 beta = _mm512_set1_ps(a->beta[t]);
    for (int n = 0; n < VECTORS; n++) {
        __m512 v = hth_load_avx512(a->v + t * a->ld + j + LANES * n, a->dv - j - LANES * n);
        d[n] = _mm512_mul_ps(beta, _mm512_sub_ps(v, u[n]));
    }
}

static void store_row(float *y, int64_t left, const __m512 v[VECTORS]) {
    for (int n = 0; n < VECTORS; n++) hth_store_avx512(y + LANES * n, left - LANES * n, v[n]);
}

/* `rows` rows from t0 on in the lanes from j on. q and k: of unit length. */
static void walk(const hth_delta *a, int64_t t0, int64_t rows, int64_t j, const float *q, const float *k,
                 float *block) {
    float *state = a->state + j;
    int64_t dk = a->dk, left = a->dv - j, ld = a->dv;
    __m512 u[VECTORS], d[VECTORS], y[VECTORS];
    if (left < HTH_DELTA_LANES) {
        for (int64_t i = 0; i < dk; i++)
            for (int n = 0; n < VECTORS; n++)
                _mm512_storeu_ps(block + i * HTH_DELTA_LANES + LANES * n,
                                 hth_load_avx512(a->state + i * a->dv + j + LANES * n, left - LANES * n));
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
                hth_store_avx512(a->state + i * a->dv + j + LANES * n, left - LANES * n,
                                 _mm512_loadu_ps(block + i * HTH_DELTA_LANES + LANES * n));
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

void hth_avx512_init_recurrent(hth_kernels *t) {
    t->gate = gate;
    t->conv = conv;
    t->delta = delta;
}
