/* Row kernels of the avx2 tier. Embedding stays with ref: it touches one row a token. */
#include <math.h>

#include "backends/cpu/x86/avx2/avx2.h"
#include "backends/cpu/x86/avx2/lanes.h"
#include "backends/cpu/x86/avx2/math_avx2.h"

/* ---- Norms ---- */

static void rms_norm(const float *x, const float *w, float *y, int64_t n, float eps) {
    __m256 p0 = _mm256_setzero_ps(), p1 = p0;
    for (int64_t i = 0; i < n; i += 16) {
        __m256 a, b;
        hth_load16_avx2(x + i, n - i, &a, &b);
        p0 = _mm256_fmadd_ps(a, a, p0);
        p1 = _mm256_fmadd_ps(b, b, p1);
    }
    __m256 r = _mm256_set1_ps(1 / sqrtf(hth_tree_sum_avx2(p0, p1) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 8) {
        __m256 e = _mm256_mul_ps(hth_load_avx2(x + i, n - i), r);
        if (w) e = _mm256_mul_ps(e, hth_load_avx2(w + i, n - i));
        hth_store_avx2(y + i, n - i, e);
    }
}

/* The striped sum of (x - mean)^2. Lanes past the end hold 0, not x - mean. */
static float squares_about(const float *x, int64_t n, float mean) {
    const __m256 m = _mm256_set1_ps(mean);
    __m256 p0 = _mm256_setzero_ps(), p1 = p0, a, b;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        a = _mm256_sub_ps(_mm256_loadu_ps(x + i), m);
        b = _mm256_sub_ps(_mm256_loadu_ps(x + i + 8), m);
        p0 = _mm256_fmadd_ps(a, a, p0);
        p1 = _mm256_fmadd_ps(b, b, p1);
    }
    if (i < n) {
        float c[16] = {0};
        for (int64_t j = i; j < n; j++) c[j - i] = x[j] - mean;
        a = _mm256_loadu_ps(c);
        b = _mm256_loadu_ps(c + 8);
        p0 = _mm256_fmadd_ps(a, a, p0);
        p1 = _mm256_fmadd_ps(b, b, p1);
    }
    return hth_tree_sum_avx2(p0, p1);
}

static void layer_norm(const float *x, const float *w, const float *b, float *y, int64_t n, float eps) {
    __m256 p0 = _mm256_setzero_ps(), p1 = p0;
    for (int64_t i = 0; i < n; i += 16) {
        __m256 lo, hi;
        hth_load16_avx2(x + i, n - i, &lo, &hi);
        p0 = _mm256_add_ps(p0, lo);
        p1 = _mm256_add_ps(p1, hi);
    }
    float mean = hth_tree_sum_avx2(p0, p1) / (float)n;
    const __m256 m = _mm256_set1_ps(mean);
    const __m256 r = _mm256_set1_ps(1 / sqrtf(squares_about(x, n, mean) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 8) {
        __m256 c = _mm256_mul_ps(_mm256_sub_ps(hth_load_avx2(x + i, n - i), m), r);
        __m256 weight = hth_load_avx2(w + i, n - i);
        c = b ? _mm256_fmadd_ps(c, weight, hth_load_avx2(b + i, n - i)) : _mm256_mul_ps(c, weight);
        hth_store_avx2(y + i, n - i, c);
    }
}

/* ---- Rope ---- */

static inline void rotate(__m256 *a, __m256 *b, __m256 cosine, __m256 sine) {
    __m256 x = *a, y = *b;
    *a = _mm256_fmsub_ps(x, cosine, _mm256_mul_ps(y, sine));
    *b = _mm256_fmadd_ps(x, sine, _mm256_mul_ps(y, cosine));
}

static void rope_halves(float *x, int64_t pairs, const float *cosine, const float *sine) {
    for (int64_t i = 0; i < pairs; i += 8) {
        __m256 a = hth_load_avx2(x + i, pairs - i), b = hth_load_avx2(x + pairs + i, pairs - i);
        rotate(&a, &b, hth_load_avx2(cosine + i, pairs - i), hth_load_avx2(sine + i, pairs - i));
        hth_store_avx2(x + i, pairs - i, a);
        hth_store_avx2(x + pairs + i, pairs - i, b);
    }
}

/* Pairs 0 1 4 5 2 3 6 7: the order in which the lane-wise shuffles below leave eight pairs. */
static inline __m256 pair_order(__m256 v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), _MM_SHUFFLE(3, 1, 2, 0)));
}

static void rope_neighbours(float *x, int64_t pairs, const float *cosine, const float *sine) {
    int64_t i = 0;
    for (; i + 8 <= pairs; i += 8) {
        __m256 lo = _mm256_loadu_ps(x + 2 * i), hi = _mm256_loadu_ps(x + 2 * i + 8);
        __m256 a = _mm256_shuffle_ps(lo, hi, _MM_SHUFFLE(2, 0, 2, 0));
        __m256 b = _mm256_shuffle_ps(lo, hi, _MM_SHUFFLE(3, 1, 3, 1));
        rotate(&a, &b, pair_order(_mm256_loadu_ps(cosine + i)), pair_order(_mm256_loadu_ps(sine + i)));
        _mm256_storeu_ps(x + 2 * i, _mm256_unpacklo_ps(a, b));
        _mm256_storeu_ps(x + 2 * i + 8, _mm256_unpackhi_ps(a, b));
    }
    for (; i < pairs; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = fmaf(a, cosine[i], -(b * sine[i]));
        x[2 * i + 1] = fmaf(a, sine[i], b * cosine[i]);
    }
}

static void rope(float *x, int64_t heads, int64_t head_dim, int64_t n_rot, int neox, const float *angles) {
    for (int64_t h = 0; h < heads; h++, x += head_dim) {
        if (neox) rope_halves(x, n_rot / 2, angles, angles + n_rot / 2);
        else rope_neighbours(x, n_rot / 2, angles, angles + n_rot / 2);
    }
}

/* ---- Element by element ---- */

static inline __m256 gelu_tanh(__m256 z) {
    __m256 inner = _mm256_fmadd_ps(_mm256_set1_ps(HTH_GELU_AB), _mm256_mul_ps(z, z), _mm256_set1_ps(HTH_GELU_A));
    __m256 t = hth_tanhf_avx2(_mm256_mul_ps(z, inner));
    return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), z), _mm256_add_ps(_mm256_set1_ps(1.0f), t));
}

static void glu_silu(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) {
        __m256 u = hth_load_avx2(up + i, n - i);
        hth_store_avx2(y + i, n - i, _mm256_mul_ps(hth_silu_avx2(hth_load_avx2(gate + i, n - i)), u));
    }
}

static void glu_gelu_tanh(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) {
        __m256 u = hth_load_avx2(up + i, n - i);
        hth_store_avx2(y + i, n - i, _mm256_mul_ps(gelu_tanh(hth_load_avx2(gate + i, n - i)), u));
    }
}

static void glu_swiglu_clamped(const float *gate, const float *up, float *y, int64_t n) {
    const __m256 limit = _mm256_set1_ps(7.0f), one = _mm256_set1_ps(1.0f);
    const __m256 slope = _mm256_set1_ps(1.702f), minus = _mm256_set1_ps(-0.0f);
    for (int64_t i = 0; i < n; i += 8) {
        /* min and max give their second operand when one is NaN. */
        __m256 g = _mm256_min_ps(limit, hth_load_avx2(gate + i, n - i));
        __m256 u = _mm256_min_ps(limit, hth_load_avx2(up + i, n - i));
        u = _mm256_max_ps(_mm256_xor_ps(limit, minus), u);
        __m256 e = hth_expf_avx2(_mm256_xor_ps(_mm256_mul_ps(slope, g), minus));
        g = _mm256_div_ps(g, _mm256_add_ps(one, e));
        hth_store_avx2(y + i, n - i, _mm256_mul_ps(g, _mm256_add_ps(u, one)));
    }
}

static void act_silu(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) hth_store_avx2(y + i, n - i, hth_silu_avx2(hth_load_avx2(x + i, n - i)));
}

static void act_gelu_tanh(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) hth_store_avx2(y + i, n - i, gelu_tanh(hth_load_avx2(x + i, n - i)));
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) {
        __m256 sum = _mm256_add_ps(hth_load_avx2(a + i, n - i), hth_load_avx2(b + i, n - i));
        hth_store_avx2(y + i, n - i, sum);
    }
}

static void add_scaled(const float *x, float s, float *y, int64_t n) {
    const __m256 factor = _mm256_set1_ps(s);
    for (int64_t i = 0; i < n; i += 8)
        hth_store_avx2(y + i, n - i, _mm256_fmadd_ps(hth_load_avx2(x + i, n - i), factor, hth_load_avx2(y + i, n - i)));
}

static void scale(const float *x, float s, float *y, int64_t n) {
    const __m256 factor = _mm256_set1_ps(s);
    for (int64_t i = 0; i < n; i += 8) hth_store_avx2(y + i, n - i, _mm256_mul_ps(hth_load_avx2(x + i, n - i), factor));
}

static void softcap(const float *x, float c, float *y, int64_t n) {
    const __m256 cap = _mm256_set1_ps(c);
    for (int64_t i = 0; i < n; i += 8) {
        __m256 t = hth_tanhf_avx2(_mm256_div_ps(hth_load_avx2(x + i, n - i), cap));
        hth_store_avx2(y + i, n - i, _mm256_mul_ps(cap, t));
    }
}

void hth_avx2_init_rows(hth_kernels *t) {
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
