/* Row kernels: every tier against ref to the bit, ref against the formulas in double precision. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dequant.h"
#include "base/half.h"
#include "kernels/check.h"

static const int64_t lengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 100, 255, 576, 1000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

typedef enum fill { PLAIN, LARGE, TINY, ZEROS, ANY, FILLS } fill;
static const char *const fills[FILLS] = {"plain", "large", "tiny", "zeros", "any"};

static float value(check *c, fill f) {
    switch (f) {
    case LARGE: return check_float(c, -1, 1) * 0x1p70f; /* squares overflow */
    case TINY: return check_float(c, -1, 1) * 0x1p-126f;
    case ZEROS: return check_below(c, 2) ? 0.0f : -0.0f;
    case ANY: return check_any_float(c);
    default: return check_float(c, -5, 5);
    }
}

/* One call of each kernel behind one shape: up to three inputs of n floats and one output. */
typedef enum op {
    RMS_NORM,
    RMS_NORM_PLAIN,
    LAYER_NORM,
    LAYER_NORM_PLAIN,
    GLU_SILU,
    GLU_GELU,
    GLU_CLAMPED,
    ACT_SILU,
    ACT_GELU,
    ADD,
    ADD_SCALED,
    SCALE,
    SOFTCAP,
    OPS
} op;
static const char *const ops[OPS] = {"rms_norm",    "rms_norm without weight",
                                     "layer_norm",  "layer_norm without bias",
                                     "glu silu",    "glu gelu",
                                     "glu clamped", "act silu",
                                     "act gelu",    "add",
                                     "add_scaled",  "scale",
                                     "softcap"};

static void call(const hth_kernels *t, op what, float *const in[3], float *y, int64_t n) {
    switch (what) {
    case RMS_NORM: t->rms_norm(in[0], in[1], y, n, 1e-5f); break;
    case RMS_NORM_PLAIN: t->rms_norm(in[0], NULL, y, n, 1e-6f); break;
    case LAYER_NORM: t->layer_norm(in[0], in[1], in[2], y, n, 1e-5f); break;
    case LAYER_NORM_PLAIN: t->layer_norm(in[0], in[1], NULL, y, n, 1e-5f); break;
    case GLU_SILU: t->glu[HTH_SILU](in[0], in[1], y, n); break;
    case GLU_GELU: t->glu[HTH_GELU_TANH](in[0], in[1], y, n); break;
    case GLU_CLAMPED: t->glu[HTH_SWIGLU_CLAMPED](in[0], in[1], y, n); break;
    case ACT_SILU: t->act[HTH_SILU](in[0], y, n); break;
    case ACT_GELU: t->act[HTH_GELU_TANH](in[0], y, n); break;
    case ADD: t->add(in[0], in[1], y, n); break;
    case ADD_SCALED: t->add_scaled(in[0], 0.7f, y, n); break;
    case SCALE: t->scale(in[0], 0.3f, y, n); break;
    case SOFTCAP: t->softcap(in[0], 30, y, n); break;
    case OPS: break;
    }
}

/* in_place: y is the input of that index; -1 for an output of its own. */
static void compare(check *c, op what, int64_t n, fill f, int in_place) {
    if (!check_begin(c, "%s n=%" PRId64 " %s place %d", ops[what], n, fills[f], in_place)) return;
    check_buffer in[3], out[2];
    float *p[3];
    for (int i = 0; i < 3; i++) {
        in[i] = check_alloc((size_t)n * 4, n & 1);
        p[i] = (float *)in[i].at;
        for (int64_t j = 0; j < n; j++) p[i][j] = value(c, i ? PLAIN : f);
        for (int64_t j = 0; i > 0 && f == ANY && j < n; j += 5) p[i][j] = check_any_float(c);
    }
    for (int i = 0; i < 2; i++) {
        out[i] = check_alloc((size_t)n * 4, !(n & 1));
        float *y = (float *)out[i].at;
        float *const saved = in_place < 0 ? NULL : p[in_place];
        if (what == ADD_SCALED) memcpy(y, p[1], (size_t)n * 4); /* it reads y */
        if (saved) {
            memcpy(y, saved, (size_t)n * 4);
            p[in_place] = y;
        }
        call(i ? c->tier : c->ref, what, p, y, n);
        if (saved) p[in_place] = saved;
    }
    check_floats(c, (float *)out[0].at, (float *)out[1].at, n, n);
    for (int i = 0; i < 3; i++) check_free(&in[i]);
    for (int i = 0; i < 2; i++) check_free(&out[i]);
}

static void compare_rope(check *c, int64_t heads, int64_t head_dim, int64_t n_rot, int neox, fill f) {
    if (!check_begin(c, "rope heads=%" PRId64 " d=%" PRId64 " n=%" PRId64 " neox=%d %s", heads, head_dim, n_rot, neox,
                     fills[f]))
        return;
    size_t n = (size_t)(heads * head_dim);
    check_buffer angles = check_alloc((size_t)n_rot * 4, neox), x[2];
    for (int64_t i = 0; i < n_rot; i++) ((float *)angles.at)[i] = check_float(c, -1, 1);
    for (int i = 0; i < 2; i++) x[i] = check_alloc(n * 4, !neox);
    for (size_t i = 0; i < n; i++) ((float *)x[0].at)[i] = ((float *)x[1].at)[i] = value(c, f);
    for (int i = 0; i < 2; i++)
        (i ? c->tier : c->ref)->rope((float *)x[i].at, heads, head_dim, n_rot, neox, (float *)angles.at);
    check_floats(c, (float *)x[0].at, (float *)x[1].at, (int64_t)n, head_dim);
    for (int i = 0; i < 2; i++) check_free(&x[i]);
    check_free(&angles);
}

static void compare_embed(check *c, hth_dtype dtype) {
    const hth_dtype_info *info = hth_dtype_find(dtype);
    for (int64_t blocks = 1; blocks < 12; blocks += 1 + blocks / 3) {
        if (!check_begin(c, "embed %s blocks=%" PRId64, info->name, blocks)) continue;
        int64_t n = blocks * info->block;
        check_buffer row = check_alloc((size_t)hth_row_bytes(info, (uint64_t)n), blocks & 1), y[2];
        check_bytes(c, row.at, row.n);
        for (int scaled = 0; scaled < 2; scaled++) {
            for (int i = 0; i < 2; i++) {
                y[i] = check_alloc((size_t)n * 4, blocks & 1);
                (i ? c->tier : c->ref)->embed[dtype](row.at, (float *)y[i].at, n, scaled ? 22.627417f : 1);
            }
            check_floats(c, (float *)y[0].at, (float *)y[1].at, n, n);
            for (int i = 0; i < 2; i++) check_free(&y[i]);
        }
        check_free(&row);
    }
}

/* ---- ref against the formulas ---- */

static double formula(op what, float *const in[3], const double stats[3], int64_t i) {
    double x = (double)in[0][i], w = (double)in[1][i], b = (double)in[2][i];
    double g = fmin(x, 7), clamped = g / (1 + exp(-1.702 * g)) * (fmax(-7, fmin(w, 7)) + 1);
    double silu = x / (1 + exp(-x)), gelu = 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    switch (what) {
    case RMS_NORM: return x / sqrt(stats[2] + 1e-5) * w;
    case RMS_NORM_PLAIN: return x / sqrt(stats[2] + 1e-6);
    case LAYER_NORM: return (x - stats[0]) / sqrt(stats[1] + 1e-5) * w + b;
    case LAYER_NORM_PLAIN: return (x - stats[0]) / sqrt(stats[1] + 1e-5) * w;
    case GLU_SILU: return silu * w;
    case GLU_GELU: return gelu * w;
    case GLU_CLAMPED: return clamped;
    case ACT_SILU: return silu;
    case ACT_GELU: return gelu;
    case ADD: return x + w;
    case ADD_SCALED: return w + x * (double)0.7f;
    case SCALE: return x * (double)0.3f;
    case SOFTCAP: return 30 * tanh(x / 30);
    default: return 0;
    }
}

static void accuracy(check *c, op what, int64_t n) {
    if (!check_begin(c, "%s accuracy n=%" PRId64, ops[what], n)) return;
    float *p[3], *y = malloc((size_t)n * 4);
    for (int i = 0; i < 3; i++) {
        p[i] = malloc((size_t)n * 4);
        for (int64_t j = 0; j < n; j++) p[i][j] = check_float(c, -9, 9);
    }
    double stats[3] = {0}; /* mean, variance, mean of squares */
    for (int64_t i = 0; i < n; i++) stats[0] += (double)p[0][i] / (double)n;
    for (int64_t i = 0; i < n; i++) stats[1] += pow((double)p[0][i] - stats[0], 2) / (double)n;
    for (int64_t i = 0; i < n; i++) stats[2] += pow((double)p[0][i], 2) / (double)n;
    memcpy(y, p[1], (size_t)n * 4); /* what ADD_SCALED adds to */
    call(c->tier, what, p, y, n);
    for (int64_t i = 0; i < n; i++) {
        double want = formula(what, p, stats, i), error = fabs((double)y[i] - want);
        if (!(error <= 3e-6 * (1 + fabs(want)))) {
            check_fail(c, "element %" PRId64 ": %g, not %g", i, (double)y[i], want);
            break;
        }
    }
    for (int i = 0; i < 3; i++) free(p[i]);
    free(y);
}

static void rope_accuracy(check *c, int neox) {
    if (!check_begin(c, "rope accuracy neox=%d", neox)) return;
    enum { D = 20, N = 12 };
    float x[D], y[D], angles[N];
    for (int i = 0; i < D; i++) x[i] = y[i] = check_float(c, -1, 1);
    for (int i = 0; i < N / 2; i++) {
        double angle = 0.3 * i + 0.1;
        angles[i] = (float)cos(angle);
        angles[N / 2 + i] = (float)sin(angle);
    }
    c->tier->rope(y, 1, D, N, neox, angles);
    for (int i = 0; i < N / 2; i++) {
        int a = neox ? i : 2 * i, b = neox ? i + N / 2 : 2 * i + 1;
        double angle = 0.3 * i + 0.1;
        double wa = (double)x[a] * cos(angle) - (double)x[b] * sin(angle);
        double wb = (double)x[a] * sin(angle) + (double)x[b] * cos(angle);
        if (fabs((double)y[a] - wa) > 1e-6 || fabs((double)y[b] - wb) > 1e-6) check_fail(c, "pair %d", i);
    }
    for (int i = N; i < D; i++)
        if (x[i] != y[i]) check_fail(c, "element %d behind the rotated ones changed", i);
}

static void embed_accuracy(check *c, hth_dtype dtype) {
    const hth_dtype_info *info = hth_dtype_find(dtype);
    if (!check_begin(c, "embed %s", info->name)) return;
    enum { N = 512 };
    uint8_t row[N * 4];
    float y[N], want[N];
    check_bytes(c, row, sizeof row);
    hth_dequant_row(dtype, row, want, N);
    c->ref->embed[dtype](row, y, N, 1);
    check_floats(c, want, y, N, N);
    for (int i = 0; i < N; i++) want[i] *= 3;
    c->ref->embed[dtype](row, y, N, 3);
    check_floats(c, want, y, N, N);
}

/* ---- Rates ---- */

typedef struct bench {
    check *c;
    op what;
    float *in[64][3], *out[64];
    int64_t n;
} bench;

static void bench_work(void *arg, int thread) {
    bench *b = arg;
    for (int i = 0; i < 100; i++) call(b->c->tier, b->what, b->in[thread], b->out[thread], b->n);
}

static void bench_op(check *c, op what) {
    if (!check_begin(c, "%s n=2048", ops[what])) return;
    bench b = {.c = c, .what = what, .n = 2048};
    for (int t = 0; t < c->threads; t++) {
        for (int i = 0; i < 3; i++) {
            b.in[t][i] = malloc((size_t)b.n * 4);
            for (int64_t j = 0; j < b.n; j++) b.in[t][i][j] = check_float(c, -5, 5);
        }
        b.out[t] = malloc((size_t)b.n * 4);
    }
    double time = check_time(c, bench_work, &b) / 100;
    printf("%-8s %-28s %7.3f ns an element\n", c->tier->name, c->label, time * 1e9 / (double)b.n);
    for (int t = 0; t < c->threads; t++) {
        for (int i = 0; i < 3; i++) free(b.in[t][i]);
        free(b.out[t]);
    }
}

/* ---- All ---- */

static void compare_all(check *c) {
    for (int what = 0; what < OPS; what++)
        for (int i = 0; i < LENGTHS; i++)
            for (int f = 0; f < FILLS; f++) {
                bool binary = what == GLU_SILU || what == GLU_GELU || what == GLU_CLAMPED || what == ADD;
                compare(c, (op)what, lengths[i], (fill)f, -1);
                compare(c, (op)what, lengths[i], (fill)f, 0);
                if (binary) compare(c, (op)what, lengths[i], (fill)f, 1);
            }
    static const int64_t heads[][3] = {{1, 2, 2},   {3, 20, 10},  {2, 64, 64},   {4, 80, 32},
                                       {1, 96, 96}, {2, 100, 98}, {3, 128, 128}, {2, 256, 64}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (int neox = 0; neox < 2; neox++)
            for (int f = 0; f < FILLS; f++) compare_rope(c, heads[i][0], heads[i][1], heads[i][2], neox, (fill)f);
}

static void run(check *c) {
    if (c->bench) {
        for (int what = 0; what < OPS; what++) bench_op(c, (op)what);
        return;
    }
    for (int what = 0; what < OPS; what++) {
        accuracy(c, (op)what, 1);
        accuracy(c, (op)what, 577);
    }
    rope_accuracy(c, 0);
    rope_accuracy(c, 1);
    if (c->tier != c->ref) compare_all(c);
    for (int id = 0; id < HTH_DTYPE_MAX; id++) {
        hth_dtype dtype = (hth_dtype)id;
        const hth_dtype_info *info = hth_dtype_find((uint32_t)id);
        if ((info && info->computed) != (c->ref->embed[dtype] != NULL)) check_fail(c, "embed of dtype %d", id);
        if (!c->ref->embed[dtype]) continue;
        if (c->tier == c->ref) embed_accuracy(c, dtype);
        else if (c->tier->embed[dtype] != c->base->embed[dtype]) compare_embed(c, dtype);
    }
}

int main(int argc, char **argv) {
    return check_main(argc, argv, "rows", run);
}
