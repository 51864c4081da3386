/* The recurrences and the gate of the ref tier: the definition, spelled out. */
#include <math.h>

#include "backends/cpu/ref/ref.h"
#include "backends/cpu/ref/striped.h"
#include "base/math.h"

static float sigmoid(float g) {
    return 1 / (1 + hth_expf(-g));
}

static void gate(const float *x, const float *g, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * sigmoid(g[i]);
}

/* ---- Convolution ---- */

/* Row t of a channel's inputs; rows before the first are the ring's. */
static float input(const hth_conv *a, int64_t t, int64_t c) {
    return t < 0 ? a->ring[(t + a->taps - 1) * a->channels + c] : a->x[t * a->ldx + c];
}

static void conv(const hth_conv *a, int64_t c0, int64_t c1) {
    int64_t kept = a->taps - 1;
    for (int64_t c = c0; c < c1; c++) {
        for (int64_t t = 0; t < a->rows; t++) {
            float s = 0;
            for (int64_t j = 0; j <= kept; j++) s = fmaf(a->w[c * a->taps + j], input(a, t - kept + j, c), s);
            a->y[t * a->ldy + c] = s / (1 + hth_expf(-s));
        }
        for (int64_t j = 0; j < kept; j++) a->ring[j * a->channels + c] = input(a, a->rows - kept + j, c);
    }
}

/* ---- Gated delta rule ---- */

static void unit_length(const float *x, float *y, int64_t n, float eps) {
    float r = 1 / sqrtf(hth_striped_squares(x, n) + eps);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * r;
}

/* One row in one lane; s is the lane's column of the state. */
static float delta_lane(const hth_delta *a, float *s, const float *q, const float *k, float v, int64_t t) {
    float u = 0, y = 0;
    for (int64_t i = 0; i < a->dk; i++) {
        s[i * a->dv] *= a->decay[t];
        u = fmaf(s[i * a->dv], k[i], u);
    }
    float d = a->beta[t] * (v - u);
    for (int64_t i = 0; i < a->dk; i++) {
        s[i * a->dv] = fmaf(k[i], d, s[i * a->dv]);
        y = fmaf(s[i * a->dv], q[i], y);
    }
    return y;
}

static void delta(const hth_delta *a, void *scratch) {
    float *q = scratch, *k = q + a->dk;
    for (int64_t t = 0; t < a->rows; t++) {
        unit_length(a->q + t * a->ld, q, a->dk, a->eps);
        unit_length(a->k + t * a->ld, k, a->dk, a->eps);
        for (int64_t i = 0; i < a->dk; i++) q[i] *= a->scale;
        for (int64_t j = 0; j < a->dv; j++)
            a->y[t * a->ldy + j] = delta_lane(a, a->state + j, q, k, a->v[t * a->ld + j], t);
    }
}

void hth_ref_init_recurrent(hth_kernels *t) {
    t->gate = gate;
    t->conv = conv;
    t->delta = delta;
}
