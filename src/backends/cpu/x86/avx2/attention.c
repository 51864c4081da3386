/* KV cache and attention of the avx2 tier; see attention_tile.h for the shape of it. Six queries times two vectors of
 * sums, the two vectors and a broadcast fill the sixteen registers.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/x86/attention_tile.h"
#include "backends/cpu/x86/avx2/avx2.h"
#include "backends/cpu/x86/avx2/lanes.h"
#include "backends/cpu/x86/avx2/math_avx2.h"

enum { LANES = 8 };

/* Eight elements of a KV type from element i on. */
HTH_INLINE __m256 kv_load(const void *p, int64_t i, int type) {
    if (type == HTH_KV_F16) return _mm256_cvtph_ps(load128((const uint16_t *)p + i));
    return _mm256_loadu_ps((const float *)p + i);
}

HTH_INLINE float kv_load_one(const void *p, int64_t i, int type) {
    return type == HTH_KV_F16 ? _cvtsh_ss(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

/* ---- Scores ---- */

/* group_scores for G queries with V vectors of keys from slot j0 on. */
HTH_INLINE void dot_block(int type, int G, int V, const float *const *q, const void *k, int64_t i0, int64_t i1, int j0,
                          float *s, uintptr_t ahead) {
    __m256 acc[GROUP][LANES];
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int v = 0; v < V; v++) {
            acc[g][v] = i0 ? _mm256_loadu_ps(s + g * HTH_KV_BLOCK + j0 + v * LANES) : _mm256_setzero_ps();
        }
    }
    for (int64_t i = i0; i < i1; i++) {
        __m256 e[GROUP], key[LANES];
        if (ahead) kv_prefetch(ahead, (i - i0) * HTH_KV_BLOCK, HTH_KV_BLOCK, type);
        if (V > G) { /* the fewer stay in registers */
            HTH_UNROLL for (int g = 0; g < G; g++) e[g] = _mm256_broadcast_ss(q[g] + i);
            HTH_UNROLL for (int v = 0; v < V; v++) {
                key[v] = kv_load(k, i * HTH_KV_BLOCK + j0 + v * LANES, type);
                HTH_UNROLL for (int g = 0; g < G; g++) acc[g][v] = _mm256_fmadd_ps(e[g], key[v], acc[g][v]);
            }
        } else {
            HTH_UNROLL for (int v = 0; v < V; v++) key[v] = kv_load(k, i * HTH_KV_BLOCK + j0 + v * LANES, type);
            HTH_UNROLL for (int g = 0; g < G; g++) {
                e[g] = _mm256_broadcast_ss(q[g] + i);
                HTH_UNROLL for (int v = 0; v < V; v++) acc[g][v] = _mm256_fmadd_ps(e[g], key[v], acc[g][v]);
            }
        }
    }
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int v = 0; v < V; v++) _mm256_storeu_ps(s + g * HTH_KV_BLOCK + j0 + v * LANES, acc[g][v]);
    }
}

HTH_INLINE void dot_blocks(int type, int G, int V, const float *const *q, const void *k, int64_t i0, int64_t i1, int j0,
                           int j1, float *s, uintptr_t ahead) {
    for (int j = j0 & -(V * LANES); j < j1; j += V * LANES, ahead = 0) dot_block(type, G, V, q, k, i0, i1, j, s, ahead);
}

/* Four queries: eight vectors of keys are three, three and two, since two alone keep too few sums under way. */
HTH_INLINE void dot_four(int type, const float *const *q, const void *k, int64_t i0, int64_t i1, int j0, int j1,
                         float *s, uintptr_t ahead) {
    if (j0 < 24) dot_block(type, 4, 3, q, k, i0, i1, 0, s, ahead);
    if (j0 < 48 && j1 > 24) dot_block(type, 4, 3, q, k, i0, i1, 24, s, j0 < 24 ? 0 : ahead);
    if (j1 > 48) dot_block(type, 4, 2, q, k, i0, i1, 48, s, j0 < 48 ? 0 : ahead);
}

/* Fewer queries take more keys at once, to keep enough sums under way. */
HTH_INLINE void group_scores(int type, int g, const float *const *q, const void *k, int64_t i0, int64_t i1, int j0,
                             int j1, float *s, uintptr_t ahead) {
    switch (g) {
    case 1: dot_blocks(type, 1, 8, q, k, i0, i1, j0, j1, s, ahead); break;
    case 2: dot_blocks(type, 2, 4, q, k, i0, i1, j0, j1, s, ahead); break;
    case 3: dot_blocks(type, 3, 4, q, k, i0, i1, j0, j1, s, ahead); break;
    case 4: dot_four(type, q, k, i0, i1, j0, j1, s, ahead); break;
    case 5: dot_blocks(type, 5, 2, q, k, i0, i1, j0, j1, s, ahead); break;
    default: dot_blocks(type, 6, 2, q, k, i0, i1, j0, j1, s, ahead); break;
    }
}

/* ---- Softmax ---- */

/* All ones in the lanes of vector v whose slot is visible. */
HTH_INLINE __m256 visible(int v, __m256i lo, __m256i hi) {
    __m256i slot = _mm256_add_epi32(_mm256_set1_epi32(v * LANES), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(lo, slot), _mm256_cmpgt_epi32(hi, slot)));
}

HTH_INLINE float max_of_lanes(__m256 x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* Vectors go in pairs, whose lanes are the stripes of the sum. */
HTH_INLINE float scale_scores(bool full, float *s, int lo, int hi, float scale, float cap) {
    const __m256 none = _mm256_set1_ps(-INFINITY), c = _mm256_set1_ps(cap);
    const __m256i low = _mm256_set1_epi32(lo), high = _mm256_set1_epi32(hi);
    const int v0 = full ? 0 : lo / 16 * 2, v1 = full ? 8 : (hi + 15) / 16 * 2;
    __m256 m[2] = {none, none};
    for (int v = v0; v < v1; v += 2) {
        HTH_UNROLL for (int i = 0; i < 2; i++) {
            __m256 x = _mm256_mul_ps(_mm256_loadu_ps(s + (v + i) * LANES), _mm256_set1_ps(scale));
            if (cap != 0) x = _mm256_mul_ps(c, hth_tanhf_avx2(_mm256_div_ps(x, c)));
            _mm256_storeu_ps(s + (v + i) * LANES, x);
            m[i] = _mm256_max_ps(m[i], full ? x : _mm256_blendv_ps(none, x, visible(v + i, low, high)));
        }
    }
    return max_of_lanes(_mm256_max_ps(m[0], m[1])) + 0.0f;
}

HTH_INLINE float weights(bool full, float *s, int lo, int hi, float max) {
    const __m256 m = _mm256_set1_ps(max);
    const __m256i low = _mm256_set1_epi32(lo), high = _mm256_set1_epi32(hi);
    const int v0 = full ? 0 : lo / 16 * 2, v1 = full ? 8 : (hi + 15) / 16 * 2;
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int v = v0; v < v1; v += 2) {
        HTH_UNROLL for (int i = 0; i < 2; i++) {
            __m256 w = hth_expf_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + (v + i) * LANES), m));
            if (!full) w = _mm256_and_ps(w, visible(v + i, low, high));
            _mm256_storeu_ps(s + (v + i) * LANES, w);
            sum[i] = _mm256_add_ps(sum[i], w);
        }
    }
    return hth_tree_sum_avx2(sum[0], sum[1]);
}

/* ---- Outputs ---- */

/* out[g] = in[g] + sum over slots j0..j1-1 of w[g][j] * v[j], for V vectors of dimensions from dimension d on; `out` is
 * where dimension d goes. */
HTH_INLINE void weigh_block(int type, int G, int V, const float *w, int j0, int j1, const void *v, int64_t dv,
                            int64_t d, const float *in, float *out, int64_t ldout, uintptr_t ahead) {
    __m256 acc[GROUP][LANES];
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int i = 0; i < V; i++) acc[g][i] = _mm256_loadu_ps(in + g * dv + d + i * LANES);
    }
    for (int j = j0; j < j1; j++) {
        __m256 e[GROUP], value[LANES];
        if (ahead) kv_prefetch(ahead, (j - j0) * dv, dv, type);
        if (V > G) {
            HTH_UNROLL for (int g = 0; g < G; g++) e[g] = _mm256_broadcast_ss(w + g * HTH_KV_BLOCK + j);
            HTH_UNROLL for (int i = 0; i < V; i++) {
                value[i] = kv_load(v, j * dv + d + i * LANES, type);
                HTH_UNROLL for (int g = 0; g < G; g++) acc[g][i] = _mm256_fmadd_ps(e[g], value[i], acc[g][i]);
            }
        } else {
            HTH_UNROLL for (int i = 0; i < V; i++) value[i] = kv_load(v, j * dv + d + i * LANES, type);
            HTH_UNROLL for (int g = 0; g < G; g++) {
                e[g] = _mm256_broadcast_ss(w + g * HTH_KV_BLOCK + j);
                HTH_UNROLL for (int i = 0; i < V; i++) acc[g][i] = _mm256_fmadd_ps(e[g], value[i], acc[g][i]);
            }
        }
    }
    HTH_UNROLL for (int g = 0; g < G; g++) {
        HTH_UNROLL for (int i = 0; i < V; i++) _mm256_storeu_ps(out + g * ldout + i * LANES, acc[g][i]);
    }
}

/* Add slots j0..j1-1, visible to all G queries, to their outputs. When dv is not a multiple of eight, the last vector
 * overlaps the one before it: it is computed first, from the outputs as they were, and stored last. */
HTH_INLINE void weigh(int type, int G, int V, const float *w, int j0, int j1, const void *v, int64_t dv, float *o,
                      uintptr_t ahead) {
    float last[GROUP * LANES];
    const bool ragged = dv % LANES != 0;
    if (ragged) weigh_block(type, G, 1, w, j0, j1, v, dv, dv - LANES, o, last, LANES, 0);
    int64_t d = 0;
#define WEIGH_BLOCKS(N, condition)                                                                                     \
    for (; (condition) && d + (N)*LANES <= dv; d += (N)*LANES, ahead = 0)                                              \
    weigh_block(type, G, N, w, j0, j1, v, dv, d, o, o + d, dv, ahead)
    WEIGH_BLOCKS(8, V == 8);
    WEIGH_BLOCKS(4, V >= 4);
    WEIGH_BLOCKS(3, V == 3 && (dv - d) / LANES != 4); /* four are better two and two than three and one */
    WEIGH_BLOCKS(2, true);
    WEIGH_BLOCKS(1, true);
#undef WEIGH_BLOCKS
    if (ragged)
        for (int g = 0; g < G; g++) memcpy(o + g * dv + dv - LANES, last + g * LANES, LANES * sizeof *o);
}

/* Heads of less than one vector: no model has them. */
static void weigh_narrow(int type, int g, const float *w, int j0, int j1, const void *v, int64_t dv, float *o) {
    for (int n = 0; n < g; n++)
        for (int64_t i = 0; i < dv; i++)
            for (int j = j0; j < j1; j++)
                o[n * dv + i] = fmaf(w[n * HTH_KV_BLOCK + j], kv_load_one(v, j * dv + i, type), o[n * dv + i]);
}

HTH_INLINE void group_weigh(int type, int g, const float *w, int j0, int j1, const void *v, int64_t dv, float *o,
                            uintptr_t ahead) {
    if (j0 >= j1) return;
    if (dv < LANES) {
        weigh_narrow(type, g, w, j0, j1, v, dv, o);
        return;
    }
    switch (g) {
    case 1: weigh(type, 1, 8, w, j0, j1, v, dv, o, ahead); break;
    case 2: weigh(type, 2, 4, w, j0, j1, v, dv, o, ahead); break;
    case 3: weigh(type, 3, 4, w, j0, j1, v, dv, o, ahead); break;
    case 4: weigh(type, 4, 3, w, j0, j1, v, dv, o, ahead); break;
    case 5: weigh(type, 5, 2, w, j0, j1, v, dv, o, ahead); break;
    default: weigh(type, 6, 2, w, j0, j1, v, dv, o, ahead); break;
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
        __m256 mine = hth_load_avx2(m + j, left), other = hth_load_avx2(pm + j, left);
        __m256 max = _mm256_max_ps(mine, other); /* `other` when one is NaN */
        max = _mm256_blendv_ps(max, mine, _mm256_cmp_ps(mine, mine, _CMP_UNORD_Q));
        __m256 a = hth_expf_avx2(_mm256_sub_ps(mine, max)), b = hth_expf_avx2(_mm256_sub_ps(other, max));
        hth_store_avx2(m + j, left, max);
        __m256 sum = _mm256_mul_ps(hth_load_avx2(pl + j, left), b);
        hth_store_avx2(l + j, left, _mm256_fmadd_ps(hth_load_avx2(l + j, left), a, sum));
        float as[LANES], bs[LANES];
        _mm256_storeu_ps(as, a);
        _mm256_storeu_ps(bs, b);
        for (int64_t k = 0; k < LANES && k < left; k++, o += dv, po += dv) {
            a = _mm256_set1_ps(as[k]);
            b = _mm256_set1_ps(bs[k]);
            for (int64_t i = 0; i < dv; i += LANES) {
                __m256 y = _mm256_mul_ps(hth_load_avx2(po + i, dv - i), b);
                hth_store_avx2(o + i, dv - i, _mm256_fmadd_ps(hth_load_avx2(o + i, dv - i), a, y));
            }
        }
    }
}

static void finish(const float *l, const float *o, float *y, int64_t n, int64_t dv) {
    for (int64_t j = 0; j < n; j++, o += dv, y += dv) {
        const __m256 r = _mm256_set1_ps(1 / l[j]);
        for (int64_t i = 0; i < dv; i += LANES)
            hth_store_avx2(y + i, dv - i, _mm256_mul_ps(hth_load_avx2(o + i, dv - i), r));
    }
}

/* ---- KV cache ---- */

/* Eight floats (fewer at the end) as F16. */
HTH_INLINE __m128i to_f16(const float *x, int64_t left) {
    return _mm256_cvtps_ph(hth_load_avx2(x, left), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static void kv_append_f16(const float *key, const float *value, int64_t dk, int64_t dv, void *k, void *v, int slot) {
    uint16_t *kt = (uint16_t *)k + slot, *vt = (uint16_t *)v + slot * dv, h[LANES];
    for (int64_t i = 0; i < dk; i += LANES) {
        _mm_storeu_si128((__m128i *)h, to_f16(key + i, dk - i));
        for (int64_t j = 0; j < LANES && j < dk - i; j++) kt[(i + j) * HTH_KV_BLOCK] = h[j];
    }
    for (int64_t i = 0; i < dv; i += LANES) {
        _mm_storeu_si128((__m128i *)h, to_f16(value + i, dv - i));
        memcpy(vt + i, h, (size_t)(dv - i < LANES ? dv - i : LANES) * sizeof *h);
    }
}

void hth_avx2_init_attention(hth_kernels *t) {
    t->kv_append[HTH_KV_F16] = kv_append_f16;
    t->attention_tile[HTH_KV_F16] = tile_f16;
    t->attention_tile[HTH_KV_F32] = tile_f32;
    t->attention_merge = merge;
    t->attention_finish = finish;
}
