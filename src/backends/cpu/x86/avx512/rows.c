/* Row kernels of the avx512 tier. A vector's lanes are the sixteen stripes of a sum. */
#include <math.h>

#include "backends/cpu/x86/avx512/avx512.h"
#include "backends/cpu/x86/avx512/lanes.h"
#include "backends/cpu/x86/avx512/math_avx512.h"

enum { LANES = 16 };

/* ---- Norms ---- */

static void rms_norm(const float *x, const float *w, float *y, int64_t n, float eps) {
    __m512 p = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 e = hth_load_avx512(x + i, n - i);
        p = _mm512_fmadd_ps(e, e, p);
    }
    const __m512 r = _mm512_set1_ps(1 / sqrtf(hth_tree_sum_avx512(p) / (float)n + eps));
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 e = _mm512_mul_ps(hth_load_avx512(x + i, n - i), r);
        if (w) e = _mm512_mul_ps(e, hth_load_avx512(w + i, n - i));
        hth_store_avx512(y + i, n - i, e);
    }
}

static void layer_norm(const float *x, const float *w, const float *b, float *y, int64_t n, float eps) {
    __m512 p = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += LANES) p = _mm512_add_ps(p, hth_load_avx512(x + i, n - i));
    const __m512 mean = _mm512_set1_ps(hth_tree_sum_avx512(p) / (float)n);
    p = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += LANES) {
        /* Lanes past the end hold 0, not 0 - mean. */
        __m512 c = _mm512_maskz_mov_ps(hth_mask_avx512(n - i), _mm512_sub_ps(hth_load_avx512(x + i, n - i), mean));
        p = _mm512_fmadd_ps(c, c, p);
    }
    const __m512 r = _mm512_set1_ps(1 / sqrtf(hth_tree_sum_avx512(p) / (float)n + eps));
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 c = _mm512_mul_ps(_mm512_sub_ps(hth_load_avx512(x + i, n - i), mean), r);
        __m512 weight = hth_load_avx512(w + i, n - i);
        c = b ? _mm512_fmadd_ps(c, weight, hth_load_avx512(b + i, n - i)) : _mm512_mul_ps(c, weight);
        hth_store_avx512(y + i, n - i, c);
    }
}

/* ---- Rope ---- */

HTH_INLINE void rotate(__m512 *a, __m512 *b, __m512 cosine, __m512 sine) {
    __m512 x = *a, y = *b;
    *a = _mm512_fmsub_ps(x, cosine, _mm512_mul_ps(y, sine));
    *b = _mm512_fmadd_ps(x, sine, _mm512_mul_ps(y, cosine));
}

static void rope_halves(float *x, int64_t pairs, const float *cosine, const float *sine) {
    for (int64_t i = 0; i < pairs; i += LANES) {
        int64_t left = pairs - i;
        __m512 a = hth_load_avx512(x + i, left), b = hth_load_avx512(x + pairs + i, left);
        rotate(&a, &b, hth_load_avx512(cosine + i, left), hth_load_avx512(sine + i, left));
        hth_store_avx512(x + i, left, a);
        hth_store_avx512(x + pairs + i, left, b);
    }
}

static void rope_neighbours(float *x, int64_t pairs, const float *cosine, const float *sine) {
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i last = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    for (int64_t i = 0; i < pairs; i += LANES) {
        int64_t left = pairs - i;
        float *at = x + 2 * i;
        __m512 lo = hth_load_avx512(at, 2 * left), hi = hth_load_avx512(at + LANES, 2 * left - LANES);
        __m512 a = _mm512_permutex2var_ps(lo, evens, hi), b = _mm512_permutex2var_ps(lo, odds, hi);
        rotate(&a, &b, hth_load_avx512(cosine + i, left), hth_load_avx512(sine + i, left));
        hth_store_avx512(at, 2 * left, _mm512_permutex2var_ps(a, first, b));
        hth_store_avx512(at + LANES, 2 * left - LANES, _mm512_permutex2var_ps(a, last, b));
    }
}

static void rope(float *x, int64_t heads, int64_t head_dim, int64_t n_rot, int neox, const float *angles) {
    for (int64_t h = 0; h < heads; h++, x += head_dim) {
        if (neox) rope_halves(x, n_rot / 2, angles, angles + n_rot / 2);
        else rope_neighbours(x, n_rot / 2, angles, angles + n_rot / 2);
    }
}

/* ---- Element by element ---- */

HTH_INLINE __m512 gelu_tanh(__m512 z) {
    __m512 inner = _mm512_fmadd_ps(_mm512_set1_ps(HTH_GELU_AB), _mm512_mul_ps(z, z), _mm512_set1_ps(HTH_GELU_A));
    __m512 t = hth_tanhf_avx512(_mm512_mul_ps(z, inner));
    return _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(0.5f), z), _mm512_add_ps(_mm512_set1_ps(1.0f), t));
}

static void glu_silu(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 u = hth_load_avx512(up + i, n - i);
        hth_store_avx512(y + i, n - i, _mm512_mul_ps(hth_silu_avx512(hth_load_avx512(gate + i, n - i)), u));
    }
}

static void glu_gelu_tanh(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 u = hth_load_avx512(up + i, n - i);
        hth_store_avx512(y + i, n - i, _mm512_mul_ps(gelu_tanh(hth_load_avx512(gate + i, n - i)), u));
    }
}

static void glu_swiglu_clamped(const float *gate, const float *up, float *y, int64_t n) {
    const __m512 limit = _mm512_set1_ps(7.0f), one = _mm512_set1_ps(1.0f), slope = _mm512_set1_ps(1.702f);
    for (int64_t i = 0; i < n; i += LANES) {
        /* min and max give their second operand when one is NaN. */
        __m512 g = _mm512_min_ps(limit, hth_load_avx512(gate + i, n - i));
        __m512 u = _mm512_min_ps(limit, hth_load_avx512(up + i, n - i));
        u = _mm512_max_ps(hth_negate_avx512(limit), u);
        g = _mm512_div_ps(g, _mm512_add_ps(one, hth_expf_avx512(hth_negate_avx512(_mm512_mul_ps(slope, g)))));
        hth_store_avx512(y + i, n - i, _mm512_mul_ps(g, _mm512_add_ps(u, one)));
    }
}

static void act_silu(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES)
        hth_store_avx512(y + i, n - i, hth_silu_avx512(hth_load_avx512(x + i, n - i)));
}

static void act_gelu_tanh(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) hth_store_avx512(y + i, n - i, gelu_tanh(hth_load_avx512(x + i, n - i)));
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 sum = _mm512_add_ps(hth_load_avx512(a + i, n - i), hth_load_avx512(b + i, n - i));
        hth_store_avx512(y + i, n - i, sum);
    }
}

static void add_scaled(const float *x, float s, float *y, int64_t n) {
    const __m512 factor = _mm512_set1_ps(s);
    for (int64_t i = 0; i < n; i += LANES)
        hth_store_avx512(y + i, n - i,
                         _mm512_fmadd_ps(hth_load_avx512(x + i, n - i), factor, hth_load_avx512(y + i, n - i)));
}

static void scale(const float *x, float s, float *y, int64_t n) {
    const __m512 factor = _mm512_set1_ps(s);
    for (int64_t i = 0; i < n; i += LANES)
        hth_store_avx512(y + i, n - i, _mm512_mul_ps(hth_load_avx512(x + i, n - i), factor));
}

static void softcap(const float *x, float c, float *y, int64_t n) {
    const __m512 cap = _mm512_set1_ps(c);
    for (int64_t i = 0; i < n; i += LANES) {
        __m512 t = hth_tanhf_avx512(_mm512_div_ps(hth_load_avx512(x + i, n - i), cap));
        hth_store_avx512(y + i, n - i, _mm512_mul_ps(cap, t));
    }
}

void hth_avx512_init_rows(hth_kernels *t) {
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
