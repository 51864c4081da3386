/* base/math.h: accuracy against the C library in long double, every special case, and the vector forms as the kernels
 * of every tier use them, to the bit. Floats are sampled; --long takes all 2^32. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "kernels/check.h"

static bool every_float; /* --long */

/* ---- Accuracy ---- */

/* Distance in units of the last place of a type with `digits` bits and least exponent `least`. */
static double ulps(long double got, long double want, int digits, int least) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (got == want) return 0;
    int e;
    frexpl(want, &e);
    if (isinf(got)) { /* overflow is right when rounding would overflow too */
        long double limit = ldexpl(1, digits == FLT_MANT_DIG ? FLT_MAX_EXP : DBL_MAX_EXP);
        return fabsl(want) >= limit * (1 - ldexpl(1, -digits - 1)) ? 0 : INFINITY;
    }
    if (e < least) e = least;
    return (double)(fabsl(got - want) / ldexpl(1, e - digits));
}

static double ulps_f32(float got, long double want) {
    return ulps(got, want, FLT_MANT_DIG, FLT_MIN_EXP);
}

static double ulps_f64(double got, long double want) {
    return ulps(got, want, DBL_MANT_DIG, DBL_MIN_EXP);
}

typedef struct worst {
    const char *name;
    double bound, ulps, at;
} worst;

static void note(worst *w, double error, double x) {
    if (error <= w->ulps) return;
    w->ulps = error;
    w->at = x;
}

static void judge(check *c, const worst *w) {
    printf("  %-6s %.4f ulp at %a (bound %g)\n", w->name, w->ulps, w->at, w->bound);
    if (!(w->ulps <= w->bound)) check_fail(c, "%s: %g ulp at %a", w->name, w->ulps, w->at);
}

static void accuracy_f32(check *c) {
    worst e = {"expf", 1, 0, 0}, t = {"tanhf", 2, 0, 0}, s = {"sin", 0.51, 0, 0}, k = {"cos", 0.51, 0, 0};
    uint64_t step = every_float ? 1 : 2003;
    for (uint64_t i = every_float ? 0 : check_u32(c) % 2003; i <= UINT32_MAX; i += step) {
        float x = hth_f32_from_bits((uint32_t)i), sine, cosine;
        if (x != x) continue;
        note(&e, ulps_f32(hth_expf(x), expl((long double)x)), (double)x);
        note(&t, ulps_f32(hth_tanhf(x), tanhl((long double)x)), (double)x);
        hth_sincos(x, &sine, &cosine);
        if (fabsf(x) > HTH_ANGLE_MAX) {
            if (!isnan(sine) || !isnan(cosine)) check_fail(c, "sincos(%a) is not NaN", (double)x);
            continue;
        }
        note(&s, ulps_f32(sine, sinl((long double)x)), (double)x);
        note(&k, ulps_f32(cosine, cosl((long double)x)), (double)x);
    }
    judge(c, &e);
    judge(c, &t);
    judge(c, &s);
    judge(c, &k);
}

static double uniform(check *c, double lo, double hi) {
    return lo + (hi - lo) * ((double)(((uint64_t)check_u32(c) << 20) ^ check_u32(c)) * 0x1p-52);
}

static void accuracy_f64(check *c) {
    worst e = {"exp", 1, 0, 0}, l = {"log", 2, 0, 0}, p = {"pow", 1, 0, 0};
    int64_t n = every_float ? 100000000 : 1000000;
    for (int64_t i = 0; i < n; i++) {
        double x = i % 2 ? uniform(c, -746, 710) : uniform(c, -1, 1);
        note(&e, ulps_f64(hth_exp(x), expl((long double)x)), x);
        double y = hth_f64_from_bits((uint64_t)check_u32(c) << 32 | check_u32(c));
        if (i % 2) y = uniform(c, 0.5, 2);
        if (y > 0 && y < INFINITY) note(&l, ulps_f64(hth_log(y), logl((long double)y)), y);
        /* What rope asks for: base^-(2i/n). The bound is (2 + |y ln x|) * 2^-51. */
        double base = exp(uniform(c, 0, 18)), power = uniform(c, -1, 1);
        long double want = powl((long double)base, (long double)power);
        double error = (double)(fabsl((long double)hth_pow(base, power) - want) / want);
        note(&p, error / ((2 + fabs(power * log(base))) * 0x1p-51), base);
    }
    judge(c, &e);
    judge(c, &l);
    judge(c, &p);
}

/* ---- Special cases ---- */

static void is_f32(check *c, const char *what, float got, float want) {
    if (hth_f32_bits(got) != hth_f32_bits(want) && !(isnan(got) && isnan(want)))
        check_fail(c, "%s is %a, not %a", what, (double)got, (double)want);
}

static void is_f64(check *c, const char *what, double got, double want) {
    if (hth_f64_bits(got) != hth_f64_bits(want) && !(isnan(got) && isnan(want)))
        check_fail(c, "%s is %a, not %a", what, got, want);
}

static void special_cases(check *c) {
#define F32(call, want) is_f32(c, #call, call, want)
#define F64(call, want) is_f64(c, #call, call, want)
    F32(hth_expf(0.0f), 1.0f);
    F32(hth_expf(-0.0f), 1.0f);
    F32(hth_expf(INFINITY), INFINITY);
    F32(hth_expf(-INFINITY), 0.0f);
    F32(hth_expf(NAN), NAN);
    F32(hth_expf(FLT_MAX), INFINITY);
    F32(hth_expf(-FLT_MAX), 0.0f);
    F32(hth_expf(0x1.62e42ep+6f), 0x1.ffff08p+127f); /* the last argument that does not overflow */
    F32(hth_expf(0x1.62e43p+6f), INFINITY);
    F32(hth_expf(-103.9f), 0x1p-149f); /* underflow is gradual */
    F32(hth_expf(-104.0f), 0.0f);
    F32(hth_tanhf(0.0f), 0.0f);
    F32(hth_tanhf(-0.0f), -0.0f);
    F32(hth_tanhf(INFINITY), 1.0f);
    F32(hth_tanhf(-INFINITY), -1.0f);
    F32(hth_tanhf(NAN), NAN);
    F32(hth_tanhf(0x1p-149f), 0x1p-149f);
    F32(hth_tanhf(-9.1f), -1.0f);
    F64(hth_exp(0), 1);
    F64(hth_exp(INFINITY), INFINITY);
    F64(hth_exp(-INFINITY), 0);
    F64(hth_exp(NAN), NAN);
    F64(hth_exp(709.8), INFINITY);
    F64(hth_exp(-745.1), 0x1p-1074);
    F64(hth_log(1), 0);
    F64(hth_log(0.0), -INFINITY);
    F64(hth_log(-0.0), -INFINITY);
    F64(hth_log(-1), NAN);
    F64(hth_log(-INFINITY), NAN);
    F64(hth_log(INFINITY), INFINITY);
    F64(hth_log(NAN), NAN);
    F64(hth_pow(10000, 0), 1);
    F64(hth_pow(NAN, 0), 1);
    F64(hth_pow(1, -0.7), 1);
    F64(hth_pow(0, 2), 0);
    F64(hth_pow(0, -2), INFINITY);
    F64(hth_pow(-8, 2), NAN);
    F64(hth_pow(NAN, 1), NAN);
    F64(hth_pow(2, NAN), NAN);
    F64(hth_pow(INFINITY, -1), 0);
    F64(hth_pow(10, 400), INFINITY);
#undef F32
#undef F64
    const float angles[] = {INFINITY, -INFINITY, NAN, 0x1.000002p32f};
    for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
        float s, k;
        hth_sincos(angles[i], &s, &k);
        if (!isnan(s) || !isnan(k)) check_fail(c, "sincos(%a) is not NaN", (double)angles[i]);
    }
    float s, k;
    hth_sincos(-0.0f, &s, &k);
    is_f32(c, "sin(-0)", s, 0.0f);
    is_f32(c, "cos(-0)", k, 1.0f);
}

/* ---- Vector forms ---- */

enum { BATCH = 4096 };

/* exp as merging attention uses it: with maxima 0 and x <= 0, and sums 0 and 1, the new sum is exp(x). */
static void merged_exp(const hth_kernels *t, const float *x, float *y) {
    static float m[BATCH], one[BATCH], x0[BATCH], o[BATCH];
    for (int i = 0; i < BATCH; i++) {
        m[i] = y[i] = o[i] = 0;
        one[i] = 1;
        x0[i] = x[i] > 0 ? -x[i] : x[i];
    }
    t->attention_merge(m, y, o, x0, one, o, BATCH, 0);
}

static void vector_forms(check *c) {
    if (!check_begin(c, "vector forms")) return;
    static float x[BATCH], want[BATCH], got[BATCH];
    uint64_t step = every_float ? 1 : 509;
    for (uint64_t i = every_float ? 0 : check_u32(c) % 509; i <= UINT32_MAX && !c->failures;) {
        for (int j = 0; j < BATCH; j++, i += step) x[j] = hth_f32_from_bits((uint32_t)i);
        merged_exp(c->ref, x, want);
        merged_exp(c->tier, x, got);
        if (!check_floats(c, want, got, BATCH, BATCH)) check_fail(c, "exp near %a", (double)x[0]);
        c->ref->softcap(x, 1, want, BATCH);
        c->tier->softcap(x, 1, got, BATCH);
        if (!check_floats(c, want, got, BATCH, BATCH)) check_fail(c, "tanh near %a", (double)x[0]);
        for (int a = 0; a < HTH_ACTIVATION_COUNT; a++) {
            if (!c->ref->act[a]) continue; /* one that exists with a gate only */
            c->ref->act[a](x, want, BATCH);
            c->tier->act[a](x, got, BATCH);
            if (!check_floats(c, want, got, BATCH, BATCH)) check_fail(c, "activation %d near %a", a, (double)x[0]);
        }
    }
}

static void run(check *c) {
    if (c->bench) return;
    if (c->tier != c->ref) {
        if (c->tier->softcap != c->base->softcap) vector_forms(c);
        return;
    }
    if (check_begin(c, "special cases")) special_cases(c);
    if (check_begin(c, "float accuracy")) accuracy_f32(c);
    if (check_begin(c, "double accuracy")) accuracy_f64(c);
}

int main(int argc, char **argv) {
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0) every_float = true;
        else argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    return check_main(kept, argv, "math", run);
}
