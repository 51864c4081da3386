/* Attention of the avx512 tier; see attention_tile.h for the shape of it. A tile's 64 slots are four vectors, whose
 * lanes are the stripes of the sum of weights; six queries times four vectors of sums take 24 of the 32 registers.
 * Appending to the KV cache is as in avx2.
 */
#include <math.h>

#include "backends/cpu/x86/attention_tile.h"
#include "backends/cpu/x86/avx512/avx512.h"
#include "backends/cpu/x86/avx512/lanes.h"
#include "backends/cpu/x86/avx512/math_avx512.h"

enum { LANES = 16, VECTORS = HTH_KV_BLOCK / LANES };

/* Sixteen elements of a KV type from element i on. */
HTH_INLINE __m512 kv_load(const void *p, int64_t i, int type) {
    if (type == HTH_KV_F16) return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)((const uint16_t *)p + i)));
    return _mm512_loadu_ps((const float *)p + i);
}

/* The first `left` of them, the rest +0 and not touched. */
HTH_INLINE __m512 kv_load_part(const void *p, int64_t i, int64_t left, int type) {
    if (type == HTH_KV_F16)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(hth_mask_avx512(left), (const uint16_t *)p + i));
    return hth_load_avx512((const float *)p + i, left);
}

/* ---- Scores ---- */

/* group_scores for G queries. All slots are computed: what a tile's few visible ones would save is little. */
HTH_INLINE void dot(int type, int G, const float *const *q, const void *k, int64_t i0, int64_t i1, float *s,
                    uintptr_t ahead) {
    __m512 acc[GROUP][VECTORS];
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
            acc[g][v] = i0 ? _mm512_loadu_ps(s + g * HTH_KV_BLOCK + v * LANES) : _mm512_setzero_ps();
        }
    }
    for (int64_t i = i0; i < i1; i++) {
        __m512 key[VECTORS];
        if (ahead) kv_prefetch(ahead, (i - i0) * HTH_KV_BLOCK, HTH_KV_BLOCK, type);
        HTH_UNROLL for (int v = 0; v < VECTORS; v++) key[v] = kv_load(k, i * HTH_KV_BLOCK + v * LANES, type);
        HTH_UNROLL for (int g = 0; g < G; g++) {
            __m512 e = _mm512_set1_ps(q[g][i]);
            HTH_UNROLL for (int v = 0; v < VECTORS; v++) acc[g][v] = _mm512_fmadd_ps(e, key[v], acc[g][v]);
        }
    }
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int v = 0; v < VECTORS; v++) _mm512_storeu_ps(s + g * HTH_KV_BLOCK + v * LANES, acc[g][v]);
    }
}

HTH_INLINE void group_scores(int type, int g, const float *const *q, const void *k, int64_t i0, int64_t i1, int j0,
                             int j1, float *s, uintptr_t ahead) {
    (void)j0;
    (void)j1;
    switch (g) {
    case 1: dot(type, 1, q, k, i0, i1, s, ahead); break;
    case 2: dot(type, 2, q, k, i0, i1, s, ahead); break;
    case 3: dot(type, 3, q, k, i0, i1, s, ahead); break;
    case 4: dot(type, 4, q, k, i0, i1, s, ahead); break;
    case 5: dot(type, 5, q, k, i0, i1, s, ahead); break;
    default: dot(type, 6, q, k, i0, i1, s, ahead); break;
    }
}

/* ---- Softmax ---- */

/* The visible slots of vector v. */
HTH_INLINE __mmask16 visible(int v, int lo, int hi) {
    return (__mmask16)(hth_mask_avx512(hi - v * LANES) & ~hth_mask_avx512(lo - v * LANES));
}

HTH_INLINE float max_of_lanes(__m512 x) {
    __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

HTH_INLINE float scale_scores(bool full, float *s, int lo, int hi, float scale, float cap) {
    const __m512 none = _mm512_set1_ps(-INFINITY), c = _mm512_set1_ps(cap);
    __m512 m = none;
    HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
        __m512 x = _mm512_mul_ps(_mm512_loadu_ps(s + v * LANES), _mm512_set1_ps(scale));
        if (cap != 0) x = _mm512_mul_ps(c, hth_tanhf_avx512(_mm512_div_ps(x, c)));
        _mm512_storeu_ps(s + v * LANES, x);
        m = _mm512_max_ps(m, full ? x : _mm512_mask_mov_ps(none, visible(v, lo, hi), x));
    }
    return max_of_lanes(m) + 0.0f;
}

HTH_INLINE float weights(bool full, float *s, int lo, int hi, float max) {
    __m512 sum = _mm512_setzero_ps();
    HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
        __m512 w = hth_expf_avx512(_mm512_sub_ps(_mm512_loadu_ps(s + v * LANES), _mm512_set1_ps(max)));
        if (!full) w = _mm512_maskz_mov_ps(visible(v, lo, hi), w);
        _mm512_storeu_ps(s + v * LANES, w);
        sum = _mm512_add_ps(sum, w);
    }
    return hth_tree_sum_avx512(sum);
}

/* ---- Outputs ---- */

/* o[g] += sum over slots j0..j1-1 of w[g][j] * v[j], for V vectors of dimensions from dimension d on. `left` dimensions
 * of the only vector are there, when V is 0. */
HTH_INLINE void weigh_block(int type, int G, int V, const float *w, int j0, int j1, const void *v, int64_t dv,
                            int64_t d, int64_t left, float *o, uintptr_t ahead) {
    const bool part = V == 0;
    const int n = part ? 1 : V;
    __m512 acc[GROUP][VECTORS];
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int i = 0; i < n; i++) {
            const float *at = o + g * dv + d + i * LANES;
            acc[g][i] = part ? hth_load_avx512(at, left) : _mm512_loadu_ps(at);
        }
    }
    for (int j = j0; j < j1; j++) {
        __m512 value[VECTORS];
        if (ahead) kv_prefetch(ahead, (j - j0) * dv, dv, type);
        HTH_UNROLL for (int i = 0; i < n; i++) {
            int64_t at = j * dv + d + i * LANES;
            value[i] = part ? kv_load_part(v, at, left, type) : kv_load(v, at, type);
        }
        HTH_UNROLL for (int g = 0; g < G; g++) {
            __m512 e = _mm512_set1_ps(w[g * HTH_KV_BLOCK + j]);
            HTH_UNROLL for (int i = 0; i < n; i++) acc[g][i] = _mm512_fmadd_ps(e, value[i], acc[g][i]);
        }
    }
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int i = 0; i < n; i++) {
            float *at = o + g * dv + d + i * LANES;
            if (part) hth_store_avx512(at, left, acc[g][i]);
            else _mm512_storeu_ps(at, acc[g][i]);
        }
    }
}

HTH_INLINE void weigh(int type, int G, const float *w, int j0, int j1, const void *v, int64_t dv, float *o,
                      uintptr_t ahead) {
    int64_t d = 0;
    for (; d + VECTORS * LANES <= dv; d += VECTORS * LANES, ahead = 0)
        weigh_block(type, G, VECTORS, w, j0, j1, v, dv, d, LANES, o, ahead);
    for (; d + LANES <= dv; d += LANES, ahead = 0) weigh_block(type, G, 1, w, j0, j1, v, dv, d, LANES, o, ahead);
    if (d < dv) weigh_block(type, G, 0, w, j0, j1, v, dv, d, dv - d, o, ahead);
}

HTH_INLINE void group_weigh(int type, int g, const float *w, int j0, int j1, const void *v, int64_t dv, float *o,
                            uintptr_t ahead) {
    if (j0 >= j1) return;
    switch (g) {
    case 1: weigh(type, 1, w, j0, j1, v, dv, o, ahead); break;
    case 2: weigh(type, 2, w, j0, j1, v, dv, o, ahead); break;
    case 3: weigh(type, 3, w, j0, j1, v, dv, o, ahead); break;
    case 4: weigh(type, 4, w, j0, j1, v, dv, o, ahead); break;
    case 5: weigh(type, 5, w, j0, j1, v, dv, o, ahead); break;
    default: weigh(type, 6, w, j0, j1, v, dv, o, ahead); break;
    }
}

static void tile_f16(const hth_attention *a, void *scratch) {
    tile(HTH_KV_F16, a, scratch);
}

static void tile_f32(const hth_attention *a, void *scratch) {
    tile(HTH_KV_F32, a, scratch);
}

/* ---- Merging tiles ---- */

static void merge(float *m, float *l, float *o, const float *pm, const float *pl, const float *po, int64_t n,
                  int64_t dv) {
    for (int64_t j = 0; j < n; j += LANES) {
        int64_t left = n - j;
        __m512 mine = hth_load_avx512(m + j, left), other = hth_load_avx512(pm + j, left);
        __m512 max = _mm512_max_ps(mine, other); /* `other` when one is NaN */
        max = _mm512_mask_mov_ps(max, _mm512_cmp_ps_mask(mine, mine, _CMP_UNORD_Q), mine);
        __m512 a = hth_expf_avx512(_mm512_sub_ps(mine, max)), b = hth_expf_avx512(_mm512_sub_ps(other, max));
        hth_store_avx512(m + j, left, max);
        __m512 sum = _mm512_mul_ps(hth_load_avx512(pl + j, left), b);
        hth_store_avx512(l + j, left, _mm512_fmadd_ps(hth_load_avx512(l + j, left), a, sum));
        float as[LANES], bs[LANES];
        _mm512_storeu_ps(as, a);
        _mm512_storeu_ps(bs, b);
        for (int64_t k = 0; k < LANES && k < left; k++, o += dv, po += dv) {
            a = _mm512_set1_ps(as[k]);
            b = _mm512_set1_ps(bs[k]);
            for (int64_t i = 0; i < dv; i += LANES) {
                __m512 y = _mm512_mul_ps(hth_load_avx512(po + i, dv - i), b);
                hth_store_avx512(o + i, dv - i, _mm512_fmadd_ps(hth_load_avx512(o + i, dv - i), a, y));
            }
        }
    }
}

static void finish(const float *l, const float *o, float *y, int64_t n, int64_t dv) {
    for (int64_t j = 0; j < n; j++, o += dv, y += dv) {
        const __m512 r = _mm512_set1_ps(1 / l[j]);
        for (int64_t i = 0; i < dv; i += LANES)
            hth_store_avx512(y + i, dv - i, _mm512_mul_ps(hth_load_avx512(o + i, dv - i), r));
    }
}

void hth_avx512_init_attention(hth_kernels *t) {
    t->attention_tile[HTH_KV_F16] = tile_f16;
    t->attention_tile[HTH_KV_F32] = tile_f32;
    t->attention_merge = merge;
    t->attention_finish = finish;
}
