/* What attention tiles of all x86 tiers share: how queries are grouped and in which order a tile is walked. The vector
 * code is the including file's.
 *
 * Both products of a tile walk memory in the order the sums are defined in, with no sum across lanes: scores have keys
 * in their lanes and add up over dimensions, outputs have dimensions in their lanes and add up over keys. Up to GROUP
 * queries pass together, so that a vector of keys or values, converted from F16 on its way into a register, is used
 * GROUP times.
 */
#ifndef HTH_BACKENDS_CPU_X86_ATTENTION_TILE_H
#define HTH_BACKENDS_CPU_X86_ATTENTION_TILE_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/intrin.h"

enum {
    GROUP = 6,  /* queries that share a vector of keys or values */
    CHUNK = 48, /* queries whose scores are kept before values are read */

    /* When few queries meet a tile, it streams from memory: all groups take this many dimensions of the keys (then keys
     * of the values) in turn, nearly in the order of addresses, and ask for what comes this many bytes later. */
    STREAM_QUERIES = 2 * GROUP,
    STREAM_ROWS = 16,
    STREAM_AHEAD = 8192
};

/* ---- Defined by the including file ---- */

/* Add dimensions i0..i1-1 to the dot products s[n * HTH_KV_BLOCK + j] of g <= GROUP queries with slots j0..j1-1 at
 * least; i0 = 0 starts them. `ahead`, if not 0, is the address to ask for at i0; the rows behind it follow. */
HTH_INLINE void group_scores(int type, int g, const float *const *q, const void *k, int64_t i0, int64_t i1, int j0,
                             int j1, float *s, uintptr_t ahead);

/* One query's dot products to scores, in place; returns the greatest visible one. Slots lo..hi-1 are visible, and if
 * `full`, which is a constant, all are. */
HTH_INLINE float scale_scores(bool full, float *s, int lo, int hi, float scale, float cap);

/* One query's scores to weights, in place (+0 for slots that share a vector with visible ones); returns their sum. */
HTH_INLINE float weights(bool full, float *s, int lo, int hi, float max);

/* Add slots j0..j1-1, visible to all g queries, to their outputs o[n * dv + d]. j0 >= j1 adds none. */
HTH_INLINE void group_weigh(int type, int g, const float *w, int j0, int j1, const void *v, int64_t dv, float *o,
                            uintptr_t ahead);

/* ---- Memory ---- */

HTH_INLINE int64_t kv_bytes(int64_t n, int type) {
    return n * (type == HTH_KV_F16 ? 2 : 4);
}

/* Ask for n elements at p + offset. Nothing is read, so p may be anything. */
HTH_INLINE void kv_prefetch(uintptr_t p, int64_t offset, int64_t n, int type) {
    for (int64_t b = 0; b < kv_bytes(n, type); b += 64)
        _mm_prefetch((const char *)(p + (uintptr_t)(kv_bytes(offset, type) + b)), _MM_HINT_T0);
}

/* The address to ask for while the bytes from `offset` on of an area of `size` bytes are read: in the area, or in what
 * is read after it; 0 for nothing. */
static uintptr_t stream_ahead(const void *area, int64_t offset, int64_t size, const void *after) {
    int64_t at = offset + STREAM_AHEAD;
    if (at < size) return (uintptr_t)area + (uintptr_t)at;
    return after ? (uintptr_t)after + (uintptr_t)(at - size) : 0;
}

/* ---- Queries ---- */

typedef struct queries {
    int count, groups, size; /* `groups` groups of `size`, the last may be smaller */
    const float *q[CHUNK];
    int32_t lo[CHUNK], hi[CHUNK];
} queries;

/* Queries n0 .. n0+count-1 of the tile, in groups of about the same size. */
static void gather(queries *x, const hth_attention *a, int64_t n0, int count) {
    int64_t r = n0 / a->heads, h = n0 % a->heads;
    for (int n = 0; n < count; n++) {
        x->q[n] = a->q + r * a->ldq + h * a->dk;
        x->lo[n] = a->lo[r];
        x->hi[n] = a->hi[r];
        if (++h == a->heads) {
            h = 0;
            r++;
        }
    }
    x->count = count;
    x->groups = (count + GROUP - 1) / GROUP;
    x->size = (count + x->groups - 1) / x->groups;
}

/* ---- Softmax ---- */

/* Two passes over the queries, so that none waits for the maximum across its own lanes. */
static void softmax(float *s, const queries *x, const hth_attention *a, float *m, float *l) {
    for (int n = 0; n < x->count; n++) {
        bool plain = x->lo[n] == 0 && x->hi[n] == HTH_KV_BLOCK && a->softcap == 0;
        m[n] = plain ? scale_scores(true, s + n * HTH_KV_BLOCK, 0, HTH_KV_BLOCK, a->scale, 0)
                     : scale_scores(false, s + n * HTH_KV_BLOCK, x->lo[n], x->hi[n], a->scale, a->softcap);
    }
    for (int n = 0; n < x->count; n++) {
        bool full = x->lo[n] == 0 && x->hi[n] == HTH_KV_BLOCK;
        l[n] = full ? weights(true, s + n * HTH_KV_BLOCK, 0, HTH_KV_BLOCK, m[n])
                    : weights(false, s + n * HTH_KV_BLOCK, x->lo[n], x->hi[n], m[n]);
        if (isnan(l[n])) m[n] = l[n];
    }
}

/* ---- Outputs ---- */

static int least(const int32_t *x, int n) {
    int m = x[0];
    for (int i = 1; i < n; i++) m = x[i] < m ? x[i] : m;
    return m;
}

static int greatest(const int32_t *x, int n) {
    int m = x[0];
    for (int i = 1; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

static int clamp(int x, int lo, int hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

/* Add slots j0..j1-1 to the outputs of a group whose queries see lo..hi-1 each: what all see together, and what only
 * some see one by one, before and after it, so that every query meets its keys in increasing order. */
HTH_INLINE void group_output(int type, int g, const float *w, const int32_t *lo, const int32_t *hi, int j0, int j1,
                             const void *v, int64_t dv, float *o, uintptr_t ahead) {
    int all0 = clamp(greatest(lo, g), j0, j1), all1 = clamp(least(hi, g), j0, j1);
    if (all1 < all0) all1 = all0;
    for (int n = 0; n < g; n++)
        group_weigh(type, 1, w + n * HTH_KV_BLOCK, clamp(lo[n], j0, all0), clamp(hi[n], j0, all0), v, dv, o + n * dv,
                    0);
    group_weigh(type, g, w, all0, all1, v, dv, o, ahead);
    for (int n = 0; n < g; n++)
        group_weigh(type, 1, w + n * HTH_KV_BLOCK, clamp(lo[n], all1, j1), clamp(hi[n], all1, j1), v, dv, o + n * dv,
                    0);
}

/* ---- The tile ---- */

HTH_INLINE void chunk_scores(int type, const hth_attention *a, const queries *x, float *s, bool stream) {
    const int64_t step = stream ? STREAM_ROWS : a->dk, row = kv_bytes(HTH_KV_BLOCK, type);
    for (int64_t i = 0; i < a->dk; i += step) {
        int64_t end = a->dk - i < step ? a->dk : i + step;
        uintptr_t ahead = stream ? stream_ahead(a->k, i * row, a->dk * row, a->v) : 0;
        for (int n = 0; n < x->count; n += x->size, ahead = 0) {
            int g = x->count - n < x->size ? x->count - n : x->size;
            int j0 = least(x->lo + n, g), j1 = greatest(x->hi + n, g);
            group_scores(type, g, x->q + n, a->k, i, end, j0, j1, s + n * HTH_KV_BLOCK, ahead);
        }
    }
}

HTH_INLINE void chunk_output(int type, const hth_attention *a, const queries *x, const float *w, float *o,
                             bool stream) {
    const int step = stream ? STREAM_ROWS : HTH_KV_BLOCK;
    const int64_t row = kv_bytes(a->dv, type);
    memset(o, 0, (size_t)(x->count * a->dv) * sizeof *o);
    for (int j = 0; j < HTH_KV_BLOCK; j += step) {
        uintptr_t ahead = stream ? stream_ahead(a->v, j * row, HTH_KV_BLOCK * row, a->next) : 0;
        for (int n = 0; n < x->count; n += x->size, ahead = 0) {
            int g = x->count - n < x->size ? x->count - n : x->size;
            group_output(type, g, w + n * HTH_KV_BLOCK, x->lo + n, x->hi + n, j, j + step, a->v, a->dv, o + n * a->dv,
                         ahead);
        }
    }
}

HTH_INLINE void tile(int type, const hth_attention *a, float *s) {
    const int64_t count = a->rows * a->heads;
    const bool stream = count <= STREAM_QUERIES;
    for (int64_t n = 0; n < count; n += CHUNK) {
        queries x;
        gather(&x, a, n, count - n < CHUNK ? (int)(count - n) : CHUNK);
        chunk_scores(type, a, &x, s, stream);
        softmax(s, &x, a, a->m + n, a->l + n);
        chunk_output(type, a, &x, s, a->o + n * a->dv, stream);
    }
}

_Static_assert(CHUNK *HTH_KV_BLOCK * sizeof(float) <= HTH_ATTENTION_SCRATCH(1, 1), "scores fit in the scratch");

#endif
