/* KV cache and attention kernels: every tier against ref to the bit, ref against the formulas in double precision, and
 * whole sequences cut in every way against each other. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/half.h"
#include "kernels/check.h"
#include "kernels/limits.h"

static const char *const kv_names[HTH_KV_TYPES] = {"f16", "f32"};
static const size_t kv_sizes[HTH_KV_TYPES] = {2, 4};

static void kv_set(void *p, int64_t i, int type, float f) {
    if (type == HTH_KV_F16) ((uint16_t *)p)[i] = hth_f32_to_f16(f);
    else ((float *)p)[i] = f;
}

static float kv_get(const void *p, int64_t i, int type) {
    return type == HTH_KV_F16 ? hth_f16_to_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

/* ---- One tile ---- */

typedef enum fill { PLAIN, LARGE, TINY, ZEROS, INFINITE, ANY, FILLS } fill;
static const char *const fills[FILLS] = {"plain", "large", "tiny", "zeros", "infinite", "any"};

static float value(check *c, fill f) {
    switch (f) {
    case LARGE: return check_float(c, -60000, 60000) * (check_below(c, 4) ? 1 : 0x1p100f);
    case TINY: return check_float(c, -1, 1) * (check_below(c, 2) ? 0x1p-20f : 0x1p-130f);
    case ZEROS: return check_below(c, 2) ? 0.0f : -0.0f;
    case INFINITE: return check_below(c, 200) ? check_float(c, -2, 2) : check_below(c, 2) ? INFINITY : -INFINITY;
    case ANY: return check_any_float(c);
    default: return check_float(c, -2, 2);
    }
}

typedef enum range { FULL, CAUSAL, WINDOW, SINGLE, SCATTERED, RANGES } range;
static const char *const ranges[RANGES] = {"full", "causal", "window", "single", "scattered"};

static void set_ranges(check *c, range kind, int64_t rows, int32_t *lo, int32_t *hi) {
    int base = 1 + (int)check_below(c, HTH_KV_BLOCK), width = 1 + (int)check_below(c, HTH_KV_BLOCK);
    for (int64_t r = 0; r < rows; r++) {
        lo[r] = 0;
        hi[r] = HTH_KV_BLOCK;
        if (kind == CAUSAL || kind == WINDOW) {
            hi[r] = base + (int)r < HTH_KV_BLOCK ? base + (int)r : HTH_KV_BLOCK;
            if (kind == WINDOW && base + (int)r > width) lo[r] = base + (int)r - width;
            if (lo[r] >= hi[r]) lo[r] = hi[r] - 1;
        } else if (kind != FULL) {
            lo[r] = (int)check_below(c, HTH_KV_BLOCK);
            hi[r] = lo[r] + 1 + (kind == SINGLE ? 0 : (int)check_below(c, HTH_KV_BLOCK - lo[r]));
        }
    }
}

typedef struct problem {
    hth_attention a;
    check_buffer k, v, q, lo, hi, m[2], l[2], o[2], scratch;
} problem;

static void problem_init(check *c, problem *p, int type, int64_t dk, int64_t dv, int64_t rows, int64_t heads, fill f,
                         range kind, bool front) {
    size_t size = kv_sizes[type], n = (size_t)(rows * heads);
    int64_t ldq = heads * dk + check_below(c, 5);
    p->k = check_alloc((size_t)dk * HTH_KV_BLOCK * size, front);
    p->v = check_alloc((size_t)dv * HTH_KV_BLOCK * size, front);
    p->q = check_alloc((size_t)(ldq * (rows - 1) + heads * dk) * sizeof(float), front);
    p->lo = check_alloc((size_t)rows * sizeof(int32_t), front);
    p->hi = check_alloc((size_t)rows * sizeof(int32_t), front);
    for (int i = 0; i < 2; i++) {
        p->m[i] = check_alloc(n * sizeof(float), front);
        p->l[i] = check_alloc(n * sizeof(float), front);
        p->o[i] = check_alloc(n * (size_t)dv * sizeof(float), front);
    }
    p->scratch = check_alloc((HTH_ATTENTION_SCRATCH(dk, dv) + 63) / 64 * 64, false);
    int32_t *lo = (int32_t *)p->lo.at, *hi = (int32_t *)p->hi.at;
    set_ranges(c, kind, rows, lo, hi);
    bool seen[HTH_KV_BLOCK] = {false};
    for (int64_t r = 0; r < rows; r++)
        for (int j = lo[r]; j < hi[r]; j++) seen[j] = true;
    for (int j = 0; j < HTH_KV_BLOCK; j++) {
        for (int64_t i = 0; i < dk; i++) kv_set(p->k.at, i * HTH_KV_BLOCK + j, type, seen[j] ? value(c, f) : NAN);
        for (int64_t i = 0; i < dv; i++) kv_set(p->v.at, j * dv + i, type, seen[j] ? value(c, f) : NAN);
    }
    for (size_t i = 0; i < p->q.n / sizeof(float); i++) ((float *)p->q.at)[i] = value(c, f);
    static const float caps[] = {0, 0, 50, 0.5f};
    p->a = (hth_attention){.k = p->k.at,
                           .v = p->v.at,
                           .dk = dk,
                           .dv = dv,
                           .q = (float *)p->q.at,
                           .ldq = ldq,
                           .rows = rows,
                           .heads = heads,
                           .lo = lo,
                           .hi = hi,
                           .scale = 1 / sqrtf((float)dk),
                           .softcap = caps[check_below(c, 4)]};
}

static void problem_free(problem *p) {
    check_buffer *all[] = {&p->k, &p->v, &p->q, &p->lo, &p->hi, &p->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_free(all[i]);
    for (int i = 0; i < 2; i++) {
        check_free(&p->m[i]);
        check_free(&p->l[i]);
        check_free(&p->o[i]);
    }
}

static void problem_run(problem *p, const hth_kernels *t, int type, int which) {
    p->a.m = (float *)p->m[which].at;
    p->a.l = (float *)p->l[which].at;
    p->a.o = (float *)p->o[which].at;
    t->attention_tile[type](&p->a, p->scratch.at);
}

static void compare_tile(check *c, int type, int64_t dk, int64_t dv, int64_t rows, int64_t heads, fill f, range kind) {
    if (!check_begin(c, "tile %s dk=%" PRId64 " dv=%" PRId64 " rows=%" PRId64 " heads=%" PRId64 " %s %s",
                     kv_names[type], dk, dv, rows, heads, fills[f], ranges[kind]))
        return;
    problem p;
    problem_init(c, &p, type, dk, dv, rows, heads, f, kind, check_below(c, 2));
    problem_run(&p, c->ref, type, 0);
    problem_run(&p, c->tier, type, 1);
    int64_t n = rows * heads;
    if (check_floats(c, (float *)p.m[0].at, (float *)p.m[1].at, n, heads) &&
        check_floats(c, (float *)p.l[0].at, (float *)p.l[1].at, n, heads))
        check_floats(c, (float *)p.o[0].at, (float *)p.o[1].at, n * dv, dv);
    problem_free(&p);
}

static void compare_tiles(check *c, int type) {
    static const int64_t dims[] = {1, 7, 8, 20, 32, 33, 64, 80, 96, 100, 112, 128, 192, 256};
    static const int64_t shapes[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4},  {1, 5},  {1, 6},  {1, 7},
                                        {1, 8}, {5, 1}, {7, 3}, {48, 1}, {50, 1}, {13, 4}, {64, 2}};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            fill f = (fill)((d + s) % FILLS);
            for (int kind = 0; kind < RANGES; kind++) {
                int64_t rows = shapes[s][0], heads = shapes[s][1];
                compare_tile(c, type, dims[d], dims[d], rows, heads, PLAIN, (range)kind);
                if (f != PLAIN) compare_tile(c, type, dims[d], dims[d], rows, heads, f, (range)kind);
            }
        }
    for (int f = 0; f < FILLS; f++) {
        compare_tile(c, type, 192, 128, 9, 2, (fill)f, SCATTERED);
        compare_tile(c, type, 576, 512, 3, 3, (fill)f, CAUSAL);
        compare_tile(c, type, 72, 36, 20, 1, (fill)f, WINDOW);
    }
}

/* ---- Append, merge, finish ---- */

static void compare_append(check *c, int type, int64_t dk, int64_t dv, bool any) {
    if (!check_begin(c, "kv_append %s dk=%" PRId64 " dv=%" PRId64 "%s", kv_names[type], dk, dv, any ? " any" : ""))
        return;
    check_buffer key = check_alloc((size_t)dk * 4, false), v = check_alloc((size_t)dv * 4, false), out[2][2];
    for (int i = 0; i < 2; i++) {
        out[i][0] = check_alloc((size_t)dk * HTH_KV_BLOCK * kv_sizes[type], any);
        out[i][1] = check_alloc((size_t)dv * HTH_KV_BLOCK * kv_sizes[type], any);
    }
    static const int slots[] = {0, 1, 31, 62, 63};
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++) {
        for (int64_t i = 0; i < dk + dv; i++) {
            float f = any ? check_any_float(c) : check_float(c, -70000, 70000) * (check_below(c, 2) ? 1 : 0x1p-30f);
            if (f != f) f = 1; /* NaN payloads are free */
            (i < dk ? (float *)key.at + i : (float *)v.at + i - dk)[0] = f;
        }
        for (int i = 0; i < 2; i++) {
            const hth_kernels *t = i ? c->tier : c->ref;
            t->kv_append[type]((float *)key.at, (float *)v.at, dk, dv, out[i][0].at, out[i][1].at, slots[s]);
        }
    }
    check_same(c, "keys", out[0][0].at, out[1][0].at, out[0][0].n);
    check_same(c, "values", out[0][1].at, out[1][1].at, out[0][1].n);
    for (int i = 0; i < 4; i++) check_free(&out[i / 2][i % 2]);
    check_free(&key);
    check_free(&v);
}

static float merge_max(check *c, bool odd) {
    if (!odd) return check_float(c, -20, 20);
    static const float all[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1, -200, 200};
    return all[check_below(c, 8)];
}

static void compare_merge(check *c, int64_t n, int64_t dv, bool odd) {
    if (!check_begin(c, "merge n=%" PRId64 " dv=%" PRId64 "%s", n, dv, odd ? " odd" : "")) return;
    size_t sizes[] = {(size_t)n * 4, (size_t)n * 4, (size_t)(n * dv) * 4};
    check_buffer state[2][3], part[3], y[2];
    for (int b = 0; b < 3; b++) {
        part[b] = check_alloc(sizes[b], odd);
        for (int i = 0; i < 2; i++) state[i][b] = check_alloc(sizes[b], odd);
        for (size_t i = 0; i < sizes[b] / 4; i++) {
            for (int side = 0; side < 2; side++) {
                float f = b == 0   ? merge_max(c, odd)
                          : b == 1 ? check_float(c, 1, 64)
                                   : (odd ? check_any_float(c) : check_float(c, -3, 3));
                if (side) ((float *)part[b].at)[i] = f;
                else ((float *)state[0][b].at)[i] = ((float *)state[1][b].at)[i] = f;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        float *s[3] = {(float *)state[i][0].at, (float *)state[i][1].at, (float *)state[i][2].at};
        const hth_kernels *t = i ? c->tier : c->ref;
        t->attention_merge(s[0], s[1], s[2], (float *)part[0].at, (float *)part[1].at, (float *)part[2].at, n, dv);
        y[i] = check_alloc(sizes[2], !odd);
        t->attention_finish(s[1], s[2], (float *)y[i].at, n, dv);
    }
    for (int b = 0; b < 3; b++)
        check_floats(c, (float *)state[0][b].at, (float *)state[1][b].at, (int64_t)(sizes[b] / 4), b == 2 ? dv : 1);
    check_floats(c, (float *)y[0].at, (float *)y[1].at, n * dv, dv);
    for (int i = 0; i < 2; i++) {
        check_free(&y[i]);
        for (int b = 0; b < 3; b++) check_free(&state[i][b]);
    }
    for (int b = 0; b < 3; b++) check_free(&part[b]);
}

static void compare_others(check *c) {
    static const int64_t dims[] = {1, 8, 20, 64, 100, 128, 192};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        for (int type = 0; type < HTH_KV_TYPES; type++)
            for (int any = 0; any < 2; any++) {
                compare_append(c, type, dims[d], dims[d], any);
                compare_append(c, type, dims[d], dims[d] + 5, any);
            }
        for (int64_t n = 1; n < 20; n += 3) {
            compare_merge(c, n, dims[d], false);
            compare_merge(c, n, dims[d], true);
        }
    }
}

/* ---- Whole sequences ---- */

enum { LENGTH = 150, SEQ_HEADS = 3, SEQ_BLOCKS = (LENGTH + HTH_KV_BLOCK - 1) / HTH_KV_BLOCK };

typedef struct sequence {
    int type, window;
    int64_t dk, dv;
    float scale, softcap;
    float *q, *key, *value; /* [LENGTH][SEQ_HEADS * dk], [LENGTH][dk], [LENGTH][dv] */
    uint8_t *cache;         /* [SEQ_BLOCKS] of K, then V */
    size_t block_bytes, v_offset;
    float *scratch;
} sequence;

static float *random_floats(check *c, int64_t n, float bound) {
    float *p = malloc((size_t)n * sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = check_float(c, -bound, bound);
    return p;
}

static void sequence_init(check *c, sequence *s, int type, int64_t dk, int64_t dv, int window, float softcap) {
    *s = (sequence){
        .type = type, .window = window, .dk = dk, .dv = dv, .scale = 1 / sqrtf((float)dk), .softcap = softcap};
    s->q = random_floats(c, LENGTH * SEQ_HEADS * dk, 3);
    s->key = random_floats(c, LENGTH * dk, 3);
    s->value = random_floats(c, LENGTH * dv, 3);
    s->v_offset = (size_t)dk * HTH_KV_BLOCK * kv_sizes[type];
    s->block_bytes = s->v_offset + (size_t)dv * HTH_KV_BLOCK * kv_sizes[type];
    s->cache = malloc(s->block_bytes * SEQ_BLOCKS);
    memset(s->cache, 0xFF, s->block_bytes * SEQ_BLOCKS); /* NaN of both types */
    s->scratch = aligned_alloc(64, (HTH_ATTENTION_SCRATCH(dk, dv) + 63) / 64 * 64);
    for (int p = 0; p < LENGTH; p++) {
        uint8_t *block = s->cache + (size_t)(p / HTH_KV_BLOCK) * s->block_bytes;
        c->tier->kv_append[type](s->key + p * dk, s->value + p * dv, dk, dv, block, block + s->v_offset,
                                 p % HTH_KV_BLOCK);
    }
}

static void sequence_free(sequence *s) {
    free(s->q);
    free(s->key);
    free(s->value);
    free(s->cache);
    free(s->scratch);
}

static int first_seen(const sequence *s, int p) {
    return s->window && p >= s->window ? p - s->window + 1 : 0;
}

/* Rows p0..p1-1, heads h0..h1-1, all tiles of the rows in increasing order. A row that does not see a tile is left out
 * of it, so rows of one call may start at different tiles. */
static void sequence_rows(check *c, const sequence *s, int p0, int p1, int h0, int h1, float *out) {
    int heads = h1 - h0, n = (p1 - p0) * heads;
    float *m = malloc((size_t)n * 4), *l = calloc((size_t)n, 4), *o = calloc((size_t)n * (size_t)s->dv, 4);
    float *pm = malloc((size_t)n * 4), *pl = malloc((size_t)n * 4), *po = malloc((size_t)n * (size_t)s->dv * 4);
    for (int i = 0; i < n; i++) m[i] = -INFINITY;
    for (int tile = 0; tile < SEQ_BLOCKS; tile++) {
        int32_t lo[LENGTH], hi[LENGTH];
        int first = -1, rows = 0, start = tile * HTH_KV_BLOCK;
        for (int p = p0; p < p1; p++) {
            int low = first_seen(s, p) - start, high = p + 1 - start;
            if (high <= 0 || low >= HTH_KV_BLOCK) continue;
            if (first < 0) first = p - p0;
            lo[rows] = low > 0 ? low : 0;
            hi[rows++] = high < HTH_KV_BLOCK ? high : HTH_KV_BLOCK;
        }
        if (!rows) continue;
        const uint8_t *block = s->cache + (size_t)tile * s->block_bytes;
        hth_attention a = {.k = block,
                           .v = block + s->v_offset,
                           .dk = s->dk,
                           .dv = s->dv,
                           .q = s->q + ((p0 + first) * SEQ_HEADS + h0) * s->dk,
                           .ldq = SEQ_HEADS * s->dk,
                           .rows = rows,
                           .heads = heads,
                           .lo = lo,
                           .hi = hi,
                           .scale = s->scale,
                           .softcap = s->softcap,
                           .m = pm,
                           .l = pl,
                           .o = po};
        c->tier->attention_tile[s->type](&a, s->scratch);
        int at = first * heads;
        c->tier->attention_merge(m + at, l + at, o + at * s->dv, pm, pl, po, rows * heads, s->dv);
    }
    for (int r = 0; r < p1 - p0; r++)
        c->tier->attention_finish(l + r * heads, o + r * heads * s->dv, out + ((p0 + r) * SEQ_HEADS + h0) * s->dv,
                                  heads, s->dv);
    float *all[] = {m, l, o, pm, pl, po};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* Greatest error against softmax attention in double, relative to the greatest value. */
static double sequence_error(const sequence *s, const float *out) {
    double worst = 0;
    for (int p = 0; p < LENGTH; p++)
        for (int h = 0; h < SEQ_HEADS; h++) {
            double score[LENGTH], max = -INFINITY, sum = 0;
            for (int j = first_seen(s, p); j <= p; j++) {
                const uint8_t *k = s->cache + (size_t)(j / HTH_KV_BLOCK) * s->block_bytes;
                double dot = 0;
                for (int64_t i = 0; i < s->dk; i++)
                    dot += (double)s->q[(p * SEQ_HEADS + h) * s->dk + i] *
                           (double)kv_get(k, i * HTH_KV_BLOCK + j % HTH_KV_BLOCK, s->type);
                score[j] = dot * (double)s->scale;
                if (s->softcap != 0) score[j] = (double)s->softcap * tanh(score[j] / (double)s->softcap);
                if (score[j] > max) max = score[j];
            }
            for (int j = first_seen(s, p); j <= p; j++) sum += score[j] = exp(score[j] - max);
            for (int64_t i = 0; i < s->dv; i++) {
                double want = 0;
                for (int j = first_seen(s, p); j <= p; j++) {
                    const uint8_t *v = s->cache + (size_t)(j / HTH_KV_BLOCK) * s->block_bytes + s->v_offset;
                    want += score[j] / sum * (double)kv_get(v, j % HTH_KV_BLOCK * s->dv + i, s->type);
                }
                double error = fabs((double)out[(p * SEQ_HEADS + h) * s->dv + i] - want) / 3;
                if (!(error <= worst)) worst = error;
            }
        }
    return worst;
}

static void check_sequence(check *c, int type, int64_t dk, int64_t dv, int window, float softcap) {
    if (!check_begin(c, "sequence %s dk=%" PRId64 " dv=%" PRId64 " window=%d softcap=%g", kv_names[type], dk, dv,
                     window, (double)softcap))
        return;
    sequence s;
    sequence_init(c, &s, type, dk, dv, window, softcap);
    size_t n = (size_t)(LENGTH * SEQ_HEADS * dv);
    float *whole = malloc(n * 4), *cut = malloc(n * 4);
    sequence_rows(c, &s, 0, LENGTH, 0, SEQ_HEADS, whole);
    double error = sequence_error(&s, whole);
    if (!(error < 2e-6)) check_fail(c, "error %g of the greatest value", error);
    for (int pass = 0; pass < 3; pass++) {
        for (int p = 0; p < LENGTH;) {
            int rows = pass == 0 ? 1 : 1 + (int)check_below(c, pass == 1 ? 9 : 80);
            if (rows > LENGTH - p) rows = LENGTH - p;
            int h = pass == 1 ? 1 : SEQ_HEADS;
            sequence_rows(c, &s, p, p + rows, 0, h, cut);
            if (h < SEQ_HEADS) sequence_rows(c, &s, p, p + rows, h, SEQ_HEADS, cut);
            p += rows;
        }
        check_floats(c, whole, cut, (int64_t)n, dv);
    }
    free(whole);
    free(cut);
    sequence_free(&s);
}

/* ---- Rates ---- */

typedef struct bench {
    check *c;
    int type;
    int tiles;
    size_t tile_bytes;
    uint8_t *cache;
    hth_attention a[64];
    void *scratch[64];
} bench;

static void bench_work(void *arg, int thread) {
    bench *b = arg;
    hth_attention *a = &b->a[thread];
    for (int i = thread; i < b->tiles; i += b->c->threads) {
        a->k = b->cache + (size_t)i * b->tile_bytes;
        a->v = b->cache + (size_t)i * b->tile_bytes + (size_t)a->dk * HTH_KV_BLOCK * kv_sizes[b->type];
        a->next = i + b->c->threads < b->tiles ? b->cache + (size_t)(i + b->c->threads) * b->tile_bytes : NULL;
        b->c->tier->attention_tile[b->type](a, b->scratch[thread]);
    }
}

/* Rows x heads queries against `tiles` tiles, in memory such as the engine's. Returns seconds. */
static double bench_tiles(check *c, int type, int64_t d, int64_t rows, int64_t heads, int tiles) {
    bench b = {.c = c, .type = type, .tiles = tiles, .tile_bytes = (size_t)(2 * d * HTH_KV_BLOCK) * kv_sizes[type]};
    size_t n = (size_t)(rows * heads),
           thread_bytes = (n * (size_t)(2 * d + 2) * 4 + HTH_ATTENTION_SCRATCH(d, d) + 4096);
    hth_arena arena;
    if (hth_arena_map(&arena, b.tile_bytes * (size_t)tiles + 4096 + thread_bytes * (size_t)c->threads, "bench", NULL))
        abort();
    b.cache = hth_arena_take(&arena, b.tile_bytes * (size_t)tiles, 0);
    for (int64_t i = 0; i < 2 * d * HTH_KV_BLOCK; i++) kv_set(b.cache, i, type, (float)(i % 17) * 0.1f - 0.8f);
    for (int i = 1; i < tiles; i++) memcpy(b.cache + (size_t)i * b.tile_bytes, b.cache, b.tile_bytes);
    int32_t lo[1024] = {0}, hi[1024];
    for (int i = 0; i < 1024; i++) hi[i] = HTH_KV_BLOCK;
    for (int i = 0; i < c->threads; i++) {
        float *q = HTH_ARENA_NEW(&arena, float, n *(size_t)d);
        for (size_t j = 0; j < n * (size_t)d; j++) q[j] = check_float(c, -1, 1);
        b.a[i] = (hth_attention){.dk = d,
                                 .dv = d,
                                 .q = q,
                                 .ldq = heads * d,
                                 .rows = rows,
                                 .heads = heads,
                                 .lo = lo,
                                 .hi = hi,
                                 .scale = 0.1f};
        b.a[i].m = HTH_ARENA_NEW(&arena, float, n);
        b.a[i].l = HTH_ARENA_NEW(&arena, float, n);
        b.a[i].o = HTH_ARENA_NEW(&arena, float, n *(size_t)d);
        b.scratch[i] = hth_arena_take(&arena, HTH_ATTENTION_SCRATCH(d, d), 0);
    }
    double t = check_time(c, bench_work, &b);
    hth_arena_unmap(&arena);
    return t;
}

static void bench_attention(check *c) {
    double peak = limit_float_gflops(c), read = limit_read_gbs(c);
    for (int type = 0; type < HTH_KV_TYPES; type++)
        for (int64_t d = 64; d <= 256; d *= 2) {
            for (int64_t heads = 1; heads <= 8; heads++) {
                if (!check_begin(c, "decode %s d=%" PRId64 " heads=%" PRId64, kv_names[type], d, heads)) continue;
                double bytes = (double)(2 * d * HTH_KV_BLOCK) * (double)kv_sizes[type];
                int tiles = (int)(96e6 / bytes);
                double t = bench_tiles(c, type, d, 1, heads, tiles), rate = bytes * tiles / t * 1e-9;
                double flops = 4.0 * HTH_KV_BLOCK * (double)(d * heads) * tiles / t * 1e-9;
                printf("%-8s %-32s %6.1f GB/s %3.0f %% of read, %6.1f GFLOP/s %3.0f %% of peak\n", c->tier->name,
                       c->label, rate, 100 * rate / read, flops, 100 * flops / peak);
                fflush(stdout);
            }
            for (int64_t heads = 1; heads <= 4; heads *= 4) {
                if (!check_begin(c, "prefill %s d=%" PRId64 " rows=64 heads=%" PRId64, kv_names[type], d, heads))
                    continue;
                double t = bench_tiles(c, type, d, 64, heads, 8);
                double flops = 4.0 * HTH_KV_BLOCK * (double)(d * heads * 64) * 8 / t * 1e-9;
                printf("%-8s %-32s %6.1f GFLOP/s %3.0f %% of peak %.0f\n", c->tier->name, c->label, flops,
                       100 * flops / peak, peak);
                fflush(stdout);
            }
        }
}

static void run(check *c) {
    if (c->bench) {
        bench_attention(c);
        return;
    }
    if (c->tier != c->ref) {
        for (int type = 0; type < HTH_KV_TYPES; type++)
            if (c->tier->attention_tile[type] != c->base->attention_tile[type]) compare_tiles(c, type);
        compare_others(c);
    }
    for (int type = 0; type < HTH_KV_TYPES; type++) {
        check_sequence(c, type, 64, 64, 0, 0);
        check_sequence(c, type, 100, 20, 40, 0);
        check_sequence(c, type, 32, 80, 70, 5);
    }
}

int main(int argc, char **argv) {
    return check_main(argc, argv, "attention", run);
}
