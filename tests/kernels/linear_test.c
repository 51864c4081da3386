/* hth_linear_fn: every tier against ref, ref against double arithmetic, and the rates. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/dequant.h"
#include "base/half.h"
#include "kernels/check.h"
#include "kernels/limits.h"

/* ---- A problem: weights, activations, output ---- */

typedef enum weight_mode { W_RANDOM, W_ONES, W_HIGH_BIT, W_LOW, W_ZERO, W_ANY_SCALE, W_MODES } weight_mode;
static const char *const weight_modes[W_MODES] = {"random", "0xFF", "0x80", "0x7F", "zero", "any scale"};

typedef enum input_mode { X_RANDOM, X_MAX, X_MIN, X_ALTERNATING, X_ZERO, X_ANY_SCALE, X_MODES } input_mode;
static const char *const input_modes[X_MODES] = {"random", "127", "-127", "alternating", "zero", "any scale"};

typedef struct problem {
    hth_dtype dtype;
    const hth_dtype_info *info;
    int64_t rows, columns, k;
    check_buffer w, x, scratch, bias, add, y[2];
    hth_qact q;
    hth_linear a;
} problem;

/* Put a half into a block: a plain one, or any bit pattern. */
static void put_half(check *c, uint8_t *at, weight_mode mode) {
    float v = check_float(c, -0.02f, 0.02f);
    uint16_t h = mode == W_ANY_SCALE ? (uint16_t)check_u32(c) : hth_f32_to_f16(v);
    memcpy(at, &h, sizeof h);
}

static void fill_scales(check *c, hth_dtype dtype, uint8_t *b, weight_mode mode) {
    switch (dtype) {
    case HTH_Q4_0:
    case HTH_Q5_0:
    case HTH_Q8_0:
    case HTH_IQ4_NL:
    case HTH_IQ4_XS: put_half(c, b, mode); break;
    case HTH_MXFP4: *b = (uint8_t)(mode == W_ANY_SCALE ? check_u32(c) : 118 + check_below(c, 6)); break;
    case HTH_Q4_1:
    case HTH_Q5_1:
    case HTH_Q4_K:
    case HTH_Q5_K:
        put_half(c, b, mode);
        put_half(c, b + 2, mode);
        break;
    case HTH_Q2_K:
        put_half(c, b + 80, mode);
        put_half(c, b + 82, mode);
        break;
    case HTH_Q3_K: put_half(c, b + 108, mode); break;
    case HTH_Q6_K: put_half(c, b + 208, mode); break;
    default: break;
    }
}

static void fill_float_weights(check *c, problem *p, weight_mode mode) {
    for (int64_t i = 0; i < p->columns * p->k; i++) {
        float v = mode == W_ANY_SCALE ? check_any_float(c) : mode == W_ZERO ? 0 : check_float(c, -1, 1);
        uint16_t h = p->dtype == HTH_F16 ? hth_f32_to_f16(v) : hth_f32_to_bf16(v);
        if (p->dtype == HTH_F32) memcpy(p->w.at + 4 * i, &v, 4);
        else memcpy(p->w.at + 2 * i, &h, 2);
    }
}

static void fill_weights(check *c, problem *p, weight_mode mode) {
    static const uint8_t bytes[W_MODES] = {[W_ONES] = 0xFF, [W_HIGH_BIT] = 0x80, [W_LOW] = 0x7F};
    if (p->info->block == 1) {
        fill_float_weights(c, p, mode);
        return;
    }
    if (mode == W_RANDOM || mode == W_ANY_SCALE) check_bytes(c, p->w.at, p->w.n);
    else memset(p->w.at, bytes[mode], p->w.n);
    for (size_t i = 0; i < p->w.n; i += (size_t)p->info->bytes) fill_scales(c, p->dtype, p->w.at + i, mode);
}

static int8_t input_value(check *c, input_mode mode, int64_t i) {
    switch (mode) {
    case X_MAX: return 127;
    case X_MIN: return -127;
    case X_ALTERNATING: return i & 1 ? 127 : -127;
    case X_ZERO: return 0;
    default: return (int8_t)(check_below(c, 255) - 127);
    }
}

static void fill_quantized_inputs(check *c, problem *p, input_mode mode) {
    const hth_qact *q = &p->q;
    for (int64_t r = 0; r < p->rows; r++) {
        int8_t *x = q->q + r * q->q_stride;
        memset(x, 0, (size_t)q->q_stride);
        for (int64_t i = 0; i < p->k; i++) x[i] = input_value(c, mode, i);
        for (int64_t b = 0; b < q->blocks; b++)
            q->d[r * q->blocks + b] = mode == X_ANY_SCALE ? check_any_float(c)
                                      : mode == X_ZERO    ? 0
                                                          : check_float(c, 1e-3f, 0.1f);
        for (int64_t i = 0; i < p->k; i++) {
            int16_t *s16 = q->sum16 + r * q->sum16_stride + i / 16, *s32 = q->sum32 + r * q->sum32_stride + i / 32;
            if (i % 16 == 0) *s16 = 0;
            if (i % 32 == 0) *s32 = 0;
            *s16 = (int16_t)(*s16 + x[i]);
            *s32 = (int16_t)(*s32 + x[i]);
        }
    }
}

static void fill_inputs(check *c, problem *p, input_mode mode) {
    if (p->info->block > 1) {
        fill_quantized_inputs(c, p, mode);
        return;
    }
    float *x = (float *)p->x.at;
    for (int64_t i = 0; i < p->rows * p->k; i++)
        x[i] = mode == X_ANY_SCALE ? check_any_float(c) : mode == X_ZERO ? 0 : check_float(c, -1, 1);
}

static void fill_floats(check *c, check_buffer *b) {
    for (size_t i = 0; i < b->n / sizeof(float); i++) ((float *)b->at)[i] = check_float(c, -10, 10);
}

static void problem_init(check *c, problem *p, hth_dtype dtype, int64_t rows, int64_t columns, int64_t k, bool front) {
    *p = (problem){.dtype = dtype, .info = hth_dtype_find(dtype), .rows = rows, .columns = columns, .k = k};
    int64_t row_bytes = (int64_t)hth_row_bytes(p->info, (uint64_t)k), ldy = columns + check_below(c, 3);
    p->w = check_alloc((size_t)(columns * row_bytes), front);
    p->scratch = check_alloc(HTH_LINEAR_SCRATCH, front);
    p->bias = check_alloc((size_t)columns * sizeof(float), front);
    p->add = check_alloc((size_t)(rows * ldy) * sizeof(float), front);
    for (int i = 0; i < 2; i++) p->y[i] = check_alloc((size_t)(rows * ldy) * sizeof(float), front);
    p->a = (hth_linear){.w = p->w.at, .row_bytes = row_bytes, .k = k, .ldy = ldy, .ldadd = ldy};
    /* Where nothing may be read, like what is behind the last column when `front` is false. Planted: the fetches of
     * linear_many.h and of linear_few.h as loads. */
    if (front) p->a.next = p->w.at - 64;
    if (p->info->block > 1) {
        p->x = check_alloc(hth_qact_bytes(rows, k), front);
        hth_qact_carve(&p->q, rows, k, hth_activation_block(dtype), p->x.at);
        p->a.q = &p->q;
    } else {
        p->x = check_alloc((size_t)(rows * k) * sizeof(float), front);
        p->a.f = (const float *)p->x.at;
        p->a.ldf = k;
    }
}

static void problem_free(problem *p) {
    check_buffer *all[] = {&p->w, &p->x, &p->scratch, &p->bias, &p->add, &p->y[0], &p->y[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_free(all[i]);
}

/* ---- Tier against ref ---- */

static void compare(check *c, problem *p, weight_mode wm, input_mode xm, bool in_place) {
    fill_weights(c, p, wm);
    fill_inputs(c, p, xm);
    fill_floats(c, &p->bias);
    fill_floats(c, &p->add);
    int64_t c0 = p->columns > 16 && check_below(c, 4) == 0 ? 16 : 0, c1 = p->columns;
    if (c1 > c0 + 16 && check_below(c, 4) == 0) c1 = c0 + 16;
    int64_t r0 = p->rows > 1 && check_below(c, 4) == 0 ? 1 : 0, r1 = p->rows;
    p->a.bias = check_below(c, 2) ? (const float *)p->bias.at : NULL;
    bool add = in_place || check_below(c, 2);
    for (int i = 0; i < 2; i++) {
        const hth_kernels *t = i ? c->tier : c->ref;
        if (in_place) memcpy(p->y[i].at, p->add.at, p->add.n);
        else memset(p->y[i].at, 0x5A, p->y[i].n);
        p->a.y = (float *)p->y[i].at;
        p->a.add = in_place ? p->a.y : add ? (const float *)p->add.at : NULL;
        t->linear[p->dtype](&p->a, c0, c1, r0, r1, p->scratch.at);
    }
    if (!check_floats(c, (float *)p->y[0].at, (float *)p->y[1].at, p->rows * p->a.ldy, p->a.ldy))
        fprintf(stderr,
                "     rows %" PRId64 " (%" PRId64 "..%" PRId64 "), columns %" PRId64 " (%" PRId64 "..%" PRId64
                "), k %" PRId64 ", weights %s, inputs %s, bias %d, add %d, in place %d\n",
                p->rows, r0, r1, p->columns, c0, c1, p->k, weight_modes[wm], input_modes[xm], p->a.bias != NULL, add,
                in_place);
}

/* Row counts around every tile height, columns around every panel width, block counts around every unrolling; then
 * large ones, where slices of k and chunks of rows begin. */
static void check_dtype(check *c, hth_dtype dtype) {
    static const int64_t row_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 31, 33, 64};
    static const int64_t column_counts[] = {1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 57, 64};
    static const int64_t block_counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 18, 20, 28, 33};
    static const int64_t float_ks[] = {1, 3, 8, 15, 16, 17, 31, 40, 64, 100, 577};
    const hth_dtype_info *info = hth_dtype_find(dtype);
#define PICK(c, list) (list)[check_below(c, sizeof(list) / sizeof *(list))]
    for (int i = 0; i < 200; i++) {
        if (!check_begin(c, "linear %s #%d", info->name, i)) continue;
        int64_t rows = PICK(c, row_counts), columns = PICK(c, column_counts);
        int64_t k = info->block == 1 ? PICK(c, float_ks) : info->block * (PICK(c, block_counts));
        if (info->block == 256 && k > 9 * 256) k = 9 * 256;
        weight_mode wm = check_below(c, 2) ? W_RANDOM : (weight_mode)check_below(c, W_MODES);
        input_mode xm = check_below(c, 2) ? X_RANDOM : (input_mode)check_below(c, X_MODES);
        problem p;
        problem_init(c, &p, dtype, rows, columns, k, i & 1);
        compare(c, &p, wm, xm, check_below(c, 3) == 0);
        problem_free(&p);
    }
    static const struct {
        int64_t rows, columns, k;
    } large[] = {{1, 40, 8960},   {3, 24, 4864},  {6, 33, 2560}, {70, 48, 4864},
                 {512, 17, 1536}, {600, 16, 256}, {9, 16, 29440}};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        if (!check_begin(c, "linear %s large #%zu", info->name, i)) continue;
        int64_t k = large[i].k / 256 * 256;
        problem p;
        problem_init(c, &p, dtype, large[i].rows, large[i].columns, k, i & 1);
        compare(c, &p, W_RANDOM, X_RANDOM, i & 1);
        problem_free(&p);
    }
}

/* ---- Ref against double arithmetic ---- */

/* The result may differ from the exact one by the rounding of the activations, half a step of amax / 127 each, and by
 * float rounding, which is far smaller. */
static void check_accuracy(check *c, hth_dtype dtype) {
    enum { ROWS = 3, COLUMNS = 16, K = 1024 };
    const hth_dtype_info *info = hth_dtype_find(dtype);
    if (!check_begin(c, "accuracy %s", info->name)) return;
    problem p;
    problem_init(c, &p, dtype, ROWS, COLUMNS, K, false);
    fill_weights(c, &p, W_RANDOM);
    float *x = malloc(sizeof *x * ROWS * K), *w = malloc(sizeof *w * K);
    for (int i = 0; i < ROWS * K; i++) x[i] = check_float(c, -1, 1) * check_float(c, 0, 2);
    if (info->block > 1) (p.q.block == 32 ? c->ref->quantize32 : c->ref->quantize256)(x, K, 0, ROWS, &p.q);
    else memcpy(p.x.at, x, sizeof *x * ROWS * K);
    p.a.y = (float *)p.y[0].at;
    c->ref->linear[dtype](&p.a, 0, COLUMNS, 0, ROWS, p.scratch.at);
    for (int col = 0; col < COLUMNS; col++) {
        hth_dequant_row(dtype, p.w.at + col * p.a.row_bytes, w, K);
        for (int r = 0; r < ROWS; r++) {
            double want = 0, bound = 0, size = 0;
            for (int i = 0; i < K; i++) {
                double step = info->block > 1 ? (double)p.q.d[r * p.q.blocks + i / p.q.block] : 0;
                want += (double)w[i] * (double)x[r * K + i];
                size += fabs((double)w[i] * (double)x[r * K + i]);
                bound += fabs((double)w[i]) * step * 0.5;
            }
            double got = (double)p.a.y[r * p.a.ldy + col];
            if (!(fabs(got - want) <= bound * 1.0001 + size * 1e-5))
                check_fail(c, "row %d column %d: want %g, got %g, bound %g", r, col, want, got, bound + size * 1e-5);
        }
    }
    free(x);
    free(w);
    problem_free(&p);
}

/* ---- Rates ---- */

typedef struct bench {
    check *c;
    problem p;
    void *scratch[64];
} bench;

enum { CHUNK = 64 };

/* Columns go round the threads in chunks, as an executor would deal them. */
static void bench_work(void *arg, int thread) {
    bench *b = arg;
    for (int64_t c0 = (int64_t)thread * CHUNK; c0 < b->p.columns; c0 += (int64_t)CHUNK * b->c->threads) {
        int64_t c1 = c0 + CHUNK < b->p.columns ? c0 + CHUNK : b->p.columns;
        b->c->tier->linear[b->p.dtype](&b->p.a, c0, c1, 0, b->p.rows, b->scratch[thread]);
    }
}

static double bench_shape(check *c, hth_dtype dtype, int64_t rows, int64_t columns, int64_t k) {
    bench b = {.c = c};
    problem_init(c, &b.p, dtype, rows, columns, k, false);
    fill_weights(c, &b.p, W_RANDOM);
    fill_inputs(c, &b.p, X_RANDOM);
    b.p.a.y = (float *)b.p.y[0].at;
    for (int i = 0; i < c->threads; i++) b.scratch[i] = aligned_alloc(64, HTH_LINEAR_SCRATCH);
    double t = check_time(c, bench_work, &b);
    for (int i = 0; i < c->threads; i++) free(b.scratch[i]);
    problem_free(&b.p);
    return t;
}

/* One row over weights that no cache holds, and over weights that the second one holds: the kernel alone. */
static void bench_gemv(check *c, const hth_dtype_info *info, hth_dtype dtype) {
    static const int64_t ks[] = {576, 896, 1536, 2048, 8960};
    for (size_t i = 0; i < 2 * sizeof ks / sizeof *ks; i++) {
        bool cached = i & 1;
        int64_t k = ks[i / 2] / info->block * info->block;
        if (!check_begin(c, "gemv%s %s k=%" PRId64, cached ? "-cached" : "", info->name, k)) continue;
        double bytes = (double)hth_row_bytes(info, (uint64_t)k), read = limit_read_gbs(c);
        int64_t columns = (int64_t)((cached ? 128e3 : 96e6) / bytes) / CHUNK * CHUNK;
        if (columns == 0) columns = CHUNK;
        double t = bench_shape(c, dtype, 1, columns, k), rate = bytes * (double)columns / t * 1e-9;
        printf("%-8s %-26s %7.1f GB/s  %3.0f %% of read %.1f  %7.1f GOP/s\n", c->tier->name, c->label, rate,
               100 * rate / read, read, 2.0 * (double)(columns * k) / t * 1e-9);
        fflush(stdout);
    }
}

/* Few rows are what sessions that decode together and experts have: their weights come from memory. */
static void bench_gemm(check *c, const hth_dtype_info *info, hth_dtype dtype) {
    static const struct {
        int64_t rows, k;
        bool from_memory;
    } shapes[] = {{2, 2048, true},   {3, 2048, true},    {4, 2048, true},   {5, 2048, true},   {6, 2048, true},
                  {7, 2048, true},   {8, 2048, true},    {12, 2048, true},  {16, 2048, true},  {24, 2048, true},
                  {33, 2048, true},  {16, 768, true},    {24, 768, true},   {32, 768, true},   {8, 2048, false},
                  {16, 2048, false}, {24, 2048, false},  {24, 768, false},  {33, 2048, false}, {128, 2048, false},
                  {512, 576, false}, {512, 2048, false}, {512, 8960, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t rows = shapes[i].rows, k = shapes[i].k / info->block * info->block, columns = CHUNK * c->threads;
        if (shapes[i].from_memory) columns = (int64_t)(96e6 / (double)hth_row_bytes(info, (uint64_t)k)) / CHUNK * CHUNK;
        if (!check_begin(c, "gemm%s %s rows=%" PRId64 " k=%" PRId64, shapes[i].from_memory ? "" : "-cached", info->name,
                         rows, k))
            continue;
        double t = bench_shape(c, dtype, rows, columns, k), ops = 2.0 * (double)(rows * columns * k) / t * 1e-9;
        printf("%-8s %-32s %7.1f GOP/s", c->tier->name, c->label, ops);
        double peak = info->block > 1 ? limit_int8_gops(c) : limit_float_gflops(c);
        printf("  %3.0f %% of %s %.0f\n", 100 * ops / peak, info->block > 1 ? "int8" : "FMA", peak);
        fflush(stdout);
    }
}

static void run(check *c) {
    for (int id = 0; id < HTH_DTYPE_MAX; id++) {
        hth_dtype dtype = (hth_dtype)id;
        if (!c->ref->linear[dtype]) continue;
        bool own = c->tier == c->ref || c->tier->linear[dtype] != c->base->linear[dtype];
        if (c->bench && own) {
            bench_gemv(c, hth_dtype_find(dtype), dtype);
            bench_gemm(c, hth_dtype_find(dtype), dtype);
        } else if (c->tier == c->ref) check_accuracy(c, dtype);
        else if (own) check_dtype(c, dtype);
    }
}

int main(int argc, char **argv) {
    return check_main(argc, argv, "linear", run);
}
