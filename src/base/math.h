/* The elementary functions of every backend and of the sampler: one definition each, so that results are the same on
 * every machine, compiler and instruction set. The C library's own differ between versions and are not called.
 *
 * A scalar function here IS the definition; vector forms (backends/cpu/x86/.../math_*.h) do the same operations in
 * lanes and equal it bit for bit. Float functions fuse where they say fmaf. Double functions only multiply, add,
 * subtract and divide, each rounded on its own: they are inlined anywhere and need no FMA to be fast. All assume round
 * to nearest even and subnormals kept. Accuracies are bounds over all arguments that tests/kernels/math_test.c
 * measures; an ulp is that of the exact result. Polynomials are minimax fits (Remez), their coefficients rounded to the
 * type.
 */
#ifndef HTH_BASE_MATH_H
#define HTH_BASE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

static inline uint64_t hth_f64_bits(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static inline double hth_f64_from_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* ---- float ---- */

/* Adding this rounds a float below 2^22 in magnitude to an integer, which then stands in the low bits of the sum. */
#define HTH_ROUND_F32 0x1.8p23f

#define HTH_LOG2E_F32  0x1.715476p+0f
#define HTH_LN2_HI_F32 0x1.62e43p-1f   /* ln 2 rounded */
#define HTH_LN2_LO_F32 -0x1.05c61p-29f /* what is left */

/* Outside of these exp is +inf and +0. */
#define HTH_EXP_MAX_F32 89.0f
#define HTH_EXP_MIN_F32 -104.0f

/* exp(r) = 1 + r + r^2 * (E2 + E3 r + ... + E6 r^4), |r| <= ln(2)/2. */
#define HTH_EXP_E2 0x1.fffffcp-2f
#define HTH_EXP_E3 0x1.55549p-3f
#define HTH_EXP_E4 0x1.5558f4p-5f
#define HTH_EXP_E5 0x1.123a6ap-7f
#define HTH_EXP_E6 0x1.6a2368p-10f

/* e^x within 1 ulp. exp(-inf) = +0, exp(+inf) = overflow = +inf, NaN gives NaN; underflow is gradual. */
static inline float hth_expf(float x) {
    x = x > HTH_EXP_MAX_F32 ? HTH_EXP_MAX_F32 : x; /* NaN stays */
    x = x < HTH_EXP_MIN_F32 ? HTH_EXP_MIN_F32 : x;
    float shifted = fmaf(x, HTH_LOG2E_F32, HTH_ROUND_F32);
    float n = shifted - HTH_ROUND_F32;
    float r = fmaf(n, -HTH_LN2_LO_F32, fmaf(n, -HTH_LN2_HI_F32, x));
    float p = fmaf(HTH_EXP_E6, r, HTH_EXP_E5);
    p = fmaf(p, r, HTH_EXP_E4);
    p = fmaf(p, r, HTH_EXP_E3);
    p = fmaf(p, r, HTH_EXP_E2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* 2^n in two factors: n runs from -150 to 128, and only the last product may round or overflow. The upper bits of
     * `shifted` are constant, so shifting them out leaves n; a NaN's bits make some factors, and NaN times them is NaN.
     */
    uint32_t bits = hth_f32_bits(shifted);
    uint32_t half = (uint32_t)((int32_t)(bits << 10) >> 11);
    uint32_t rest = (uint32_t)((int32_t)(bits << 10) >> 10) - half;
    return p * hth_f32_from_bits((half + 127) << 23) * hth_f32_from_bits((rest + 127) << 23);
}

/* tanh(a) = a + a^3 * (T0 + T1 a^2 + ... + T4 a^8) below the limit, 1 - 2 / (exp(2a) + 1) from it on. */
#define HTH_TANH_LIMIT 0.625f
#define HTH_TANH_T0    -0x1.555532p-2f
#define HTH_TANH_T1    0x1.110726p-3f
#define HTH_TANH_T2    -0x1.b83c5cp-5f
#define HTH_TANH_T3    0x1.5226a2p-6f
#define HTH_TANH_T4    -0x1.75e1e4p-8f

/* tanh(x) within 2 ulp, odd to the bit. tanh(+-inf) = +-1, tanh(-0) = -0, NaN gives NaN. */
static inline float hth_tanhf(float x) {
    float a = fabsf(x), z = a * a;
    float p = fmaf(HTH_TANH_T4, z, HTH_TANH_T3);
    p = fmaf(p, z, HTH_TANH_T2);
    p = fmaf(p, z, HTH_TANH_T1);
    p = fmaf(p, z, HTH_TANH_T0);
    float small = fmaf(a * z, p, a);
    float large = 1.0f - 2.0f / (hth_expf(a + a) + 1.0f);
    return copysignf(a < HTH_TANH_LIMIT ? small : large, x);
}

/* ---- double ---- */

#define HTH_ROUND_F64 0x1.8p52

/* e^x within 1 ulp. exp(-inf) = +0, exp(+inf) = overflow = +inf, NaN gives NaN; underflow is gradual. */
static inline double hth_exp(double x) {
    x = x > 710 ? 710 : x; /* NaN stays */
    x = x < -746 ? -746 : x;
    double shifted = x * 0x1.71547652b82fep+0 + HTH_ROUND_F64;
    double n = shifted - HTH_ROUND_F64;
    double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33; /* the first product is exact */
    /* The Taylor series: its rest is below 2^-57 for |r| <= ln(2)/2. */
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r * r + r + 1.0;
    int64_t k = (int64_t)(hth_f64_bits(shifted) << 13) >> 13;
    int64_t half = k >> 1;
    return p * hth_f64_from_bits((uint64_t)(half + 1023) << 52) * hth_f64_from_bits((uint64_t)(k - half + 1023) << 52);
}

/* ln x within 2 ulp. log(+-0) = -inf, log(x < 0) = NaN, log(+inf) = +inf, NaN gives NaN. */
static inline double hth_log(double x) {
    if (!(x > 0)) return x == 0 ? -HUGE_VAL : (double)NAN;
    if (x > 0x1.fffffffffffffp+1023) return x;
    int64_t k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    /* x = 2^k m with m in [sqrt(1/2), sqrt(2)). */
    uint64_t bits = hth_f64_bits(x);
    int64_t e = (int64_t)(bits - UINT64_C(0x3FE6A09E667F3BCD)) >> 52;
    double f = hth_f64_from_bits(bits - ((uint64_t)e << 52)) - 1.0, n = (double)(k + e);
    /* ln(1 + f) = 2 artanh(s), s = f / (2 + f), |s| < 0.1716; written as f - s f + s R so that the first term is exact.
     */
    double s = f / (2.0 + f), z = s * s;
    double r = 2.0 / 23;
    r = r * z + 2.0 / 21;
    r = r * z + 2.0 / 19;
    r = r * z + 2.0 / 17;
    r = r * z + 2.0 / 15;
    r = r * z + 2.0 / 13;
    r = r * z + 2.0 / 11;
    r = r * z + 2.0 / 9;
    r = r * z + 2.0 / 7;
    r = r * z + 2.0 / 5;
    r = r * z + 2.0 / 3;
    double tail = s * (r * z - f) + n * 0x1.a39ef35793c76p-33;
    return n * 0x1.62e42feep-1 + (f + tail); /* the first product is exact */
}

/* x^y as exp(y ln x): relative error below (2 + |y ln x|) * 2^-51. x^0 = 1 for every x, also NaN; otherwise x < 0, NaN
 * in x or y, and 1^(+-inf) give NaN; 0^y is 0 or +inf by the sign of y, and overflow and underflow go as in hth_exp. */
static inline double hth_pow(double x, double y) {
    return y == 0 ? 1.0 : hth_exp(y * hth_log(x));
}

/* Sine and cosine of a float angle, each within 0.51 ulp of float, for |x| <= HTH_ANGLE_MAX. Beyond that, for
 * infinities and for NaN both are NaN: no position and no frequency reach it, and it shows instead of turning into
 * noise. */
#define HTH_ANGLE_MAX 0x1p32f

static inline void hth_sincos(float x, float *sine, float *cosine) {
    if (!(fabsf(x) <= HTH_ANGLE_MAX)) {
        *sine = *cosine = NAN;
        return;
    }
    /* r = x - n pi/2 in [-pi/4, pi/4]. n has 32 bits, and the first two parts of pi/2 have 21, so their products and
     * the first two differences are exact; the third part carries pi/2 to 2^-97. */
    double d = x, shifted = d * 0x1.45f306dc9c883p-1 + HTH_ROUND_F64, n = shifted - HTH_ROUND_F64;
    double r = ((d - n * 0x1.921fbp+0) - n * 0x1.5110bp-22) - n * 0x1.18469898cc517p-44;
    double z = r * r;
    double s = 0x1.6cd1b085982e1p-19;
    s = s * z - 0x1.a00f7e144accep-13;
    s = s * z + 0x1.111108690af89p-7;
    s = s * z - 0x1.5555554c6ffacp-3;
    s = s * z * r + r;
    double c = -0x1.241e69ce68684p-22;
    c = c * z + 0x1.a010dddb5770fp-16;
    c = c * z - 0x1.6c16b8289e3fcp-10;
    c = c * z + 0x1.5555554ed822fp-5;
    c = c * z * z - 0.5 * z + 1.0;
    /* The quadrant stands in the low bits: (sin, cos) = (s, c), (c, -s), (-s, -c), (-c, s). */
    uint64_t quadrant = hth_f64_bits(shifted);
    double sin_r = quadrant & 1 ? c : s, cos_r = quadrant & 1 ? s : c;
    *sine = (float)(quadrant & 2 ? -sin_r : sin_r);
    *cosine = (float)((quadrant + 1) & 2 ? -cos_r : cos_r);
}

#endif
