/* Row kernels of the ref tier: the definition, spelled out. */
#include <math.h>

#include "backends/cpu/ref/ref.h"
#include "backends/cpu/ref/striped.h"
#include "base/dequant.h"
#include "base/math.h"

/* ---- Embedding ---- */

static void embed(hth_dtype dtype, const void *row, float *y, int64_t n, float scale) {
    hth_dequant_row(dtype, row, y, (uint64_t)n);
    for (int64_t i = 0; i < n; i++) y[i] *= scale;
}

#define X(name, id, block, bytes, computed)                                                                            \
    static void embed_##name(const void *row, float *y, int64_t n, float scale) {                                      \
        embed(HTH_##name, row, y, n, scale);                                                                           \
    }
HTH_DTYPE_LIST(X)
#undef X

/* ---- Norms ---- */

static void rms_norm(const float *x, const float *w, float *y, int64_t n, float eps) {
    float r = 1 / sqrtf(hth_striped_squares(x, n) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = w ? x[i] * r * w[i] : x[i] * r;
}

static void layer_norm(const float *x, const float *w, const float *b, float *y, int64_t n, float eps) {
    float p[HTH_STRIPES] = {0};
    for (int64_t i = 0; i < hth_striped_end(n); i++) p[i % HTH_STRIPES] += i < n ? x[i] : 0;
    float mean = hth_striped_tree(p) / (float)n;
    float q[HTH_STRIPES] = {0};
    for (int64_t i = 0; i < hth_striped_end(n); i++) {
        float c = i < n ? x[i] - mean : 0;
        q[i % HTH_STRIPES] = fmaf(c, c, q[i % HTH_STRIPES]);
    }
    float r = 1 / sqrtf(hth_striped_tree(q) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) {
        float c = x[i] - mean;
        y[i] = b ? fmaf(c * r, w[i], b[i]) : c * r * w[i];
    }
}

/* ---- Rope ---- */

static void rope(float *x, int64_t heads, int64_t head_dim, int64_t n_rot, int neox, const float *angles) {
    const float *cosine = angles, *sine = angles + n_rot / 2;
    for (int64_t h = 0; h < heads; h++, x += head_dim)
        for (int64_t i = 0; i < n_rot / 2; i++) {
            float *pa = neox ? x + i : x + 2 * i;
            float *pb = neox ? x + i + n_rot / 2 : x + 2 * i + 1;
            float a = *pa, b = *pb;
            *pa = fmaf(a, cosine[i], -(b * sine[i]));
            *pb = fmaf(a, sine[i], b * cosine[i]);
        }
}

/* ---- Element by element ---- */

static float silu(float z) {
    return z / (1 + hth_expf(-z));
}

static float gelu_tanh(float z) {
    return 0.5f * z * (1 + hth_tanhf(z * fmaf(HTH_GELU_AB, z * z, HTH_GELU_A)));
}

static void glu_silu(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = silu(gate[i]) * up[i];
}

static void glu_gelu_tanh(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = gelu_tanh(gate[i]) * up[i];
}

static void glu_swiglu_clamped(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gate[i] > 7 ? 7 : gate[i];
        float u = up[i] > 7 ? 7 : up[i] < -7 ? -7 : up[i];
        y[i] = g / (1 + hth_expf(-(1.702f * g))) * (u + 1);
    }
}

static void act_silu(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = silu(x[i]);
}

static void act_gelu_tanh(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = gelu_tanh(x[i]);
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void add_scaled(const float *x, float s, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(x[i], s, y[i]);
}

static void scale(const float *x, float s, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * s;
}

static void softcap(const float *x, float c, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = c * hth_tanhf(x[i] / c);
}

void hth_ref_init_rows(hth_kernels *t) {
#define X(name, id, block, bytes, computed) t->embed[id] = computed ? embed_##name : NULL;
    HTH_DTYPE_LIST(X)
#undef X
    t->rms_norm = rms_norm;
    t->layer_norm = layer_norm;
    t->rope = rope;
    t->glu[HTH_SILU] = glu_silu;
    t->glu[HTH_GELU_TANH] = glu_gelu_tanh;
    t->glu[HTH_SWIGLU_CLAMPED] = glu_swiglu_clamped;
    t->act[HTH_SILU] = act_silu;
    t->act[HTH_GELU_TANH] = act_gelu_tanh;
    t->add = add;
    t->add_scaled = add_scaled;
    t->scale = scale;
    t->softcap = softcap;
}
