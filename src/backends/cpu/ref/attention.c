/* KV cache and attention of the ref tier: the definition, spelled out. */
#include <math.h>

#include "backends/cpu/ref/ref.h"
#include "base/math.h"

/* Element i of an array of a KV type. */
static float kv_load(const void *p, int64_t i, int type) {
    return type == HTH_KV_F16 ? hth_f16_to_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static void kv_store(void *p, int64_t i, int type, float f) {
    if (type == HTH_KV_F16) ((uint16_t *)p)[i] = hth_f32_to_f16(f);
    else ((float *)p)[i] = f;
}

static void kv_append(const float *key, const float *value, int64_t dk, int64_t dv, void *k, void *v, int slot,
                      int type) {
    for (int64_t i = 0; i < dk; i++) kv_store(k, i * HTH_KV_BLOCK + slot, type, key[i]);
    for (int64_t i = 0; i < dv; i++) kv_store(v, slot * dv + i, type, value[i]);
}

static void kv_append_f16(const float *key, const float *value, int64_t dk, int64_t dv, void *k, void *v, int slot) {
    kv_append(key, value, dk, dv, k, v, slot, HTH_KV_F16);
}

static void kv_append_f32(const float *key, const float *value, int64_t dk, int64_t dv, void *k, void *v, int slot) {
    kv_append(key, value, dk, dv, k, v, slot, HTH_KV_F32);
}

/* Sum of the weights of all 64 slots, striped. */
static float weight_sum(const float w[HTH_KV_BLOCK]) {
    float p[16] = {0};
    for (int j = 0; j < HTH_KV_BLOCK; j++) p[j % 16] += w[j];
    for (int step = 8; step > 0; step /= 2)
        for (int s = 0; s < step; s++) p[s] += p[s + step];
    return p[0];
}

/* One query against its visible slots lo..hi-1. */
static void attend(const hth_attention *a, const float *q, int lo, int hi, int type, float *m, float *l, float *o) {
    float s[HTH_KV_BLOCK], w[HTH_KV_BLOCK] = {0}, max = -INFINITY;
    for (int j = lo; j < hi; j++) {
        float dot = 0;
        for (int64_t i = 0; i < a->dk; i++) dot = fmaf(q[i], kv_load(a->k, i * HTH_KV_BLOCK + j, type), dot);
        s[j] = dot * a->scale;
        if (a->softcap != 0) s[j] = a->softcap * hth_tanhf(s[j] / a->softcap);
        if (s[j] > max) max = s[j];
    }
    max += 0.0f; /* no -0 */
    for (int j = lo; j < hi; j++) w[j] = hth_expf(s[j] - max);
    *l = weight_sum(w);
    *m = isnan(*l) ? *l : max;
    for (int64_t i = 0; i < a->dv; i++) {
        float sum = 0;
        for (int j = lo; j < hi; j++) sum = fmaf(w[j], kv_load(a->v, j * a->dv + i, type), sum);
        o[i] = sum;
    }
}

static void tile(const hth_attention *a, int type) {
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t h = 0; h < a->heads; h++) {
            int64_t n = r * a->heads + h;
            attend(a, a->q + r * a->ldq + h * a->dk, a->lo[r], a->hi[r], type, a->m + n, a->l + n, a->o + n * a->dv);
        }
}

static void tile_f16(const hth_attention *a, void *scratch) {
    (void)scratch;
    tile(a, HTH_KV_F16);
}

static void tile_f32(const hth_attention *a, void *scratch) {
    (void)scratch;
    tile(a, HTH_KV_F32);
}

static void merge(float *m, float *l, float *o, const float *pm, const float *pl, const float *po, int64_t n,
                  int64_t dv) {
    for (int64_t j = 0; j < n; j++, o += dv, po += dv) {
        float max = m[j] > pm[j] || isnan(m[j]) ? m[j] : pm[j];
        float a = hth_expf(m[j] - max), b = hth_expf(pm[j] - max);
        m[j] = max;
        l[j] = fmaf(l[j], a, pl[j] * b);
        for (int64_t i = 0; i < dv; i++) o[i] = fmaf(o[i], a, po[i] * b);
    }
}

static void finish(const float *l, const float *o, float *y, int64_t n, int64_t dv) {
    for (int64_t j = 0; j < n; j++) {
        float r = 1 / l[j];
        for (int64_t i = 0; i < dv; i++) y[j * dv + i] = o[j * dv + i] * r;
    }
}

void hth_ref_init_attention(hth_kernels *t) {
    t->kv_append[HTH_KV_F16] = kv_append_f16;
    t->kv_append[HTH_KV_F32] = kv_append_f32;
    t->attention_tile[HTH_KV_F16] = tile_f16;
    t->attention_tile[HTH_KV_F32] = tile_f32;
    t->attention_merge = merge;
    t->attention_finish = finish;
}
