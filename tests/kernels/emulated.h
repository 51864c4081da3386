/* The AVX-512 and AVX-VNNI intrinsics out of AVX2 ones, so that every machine runs the tests of those tiers: SIMDe's,
 * and here those that Debian 12's SIMDe lacks, computes in another way than the instruction, or slowly. */
#ifndef HEARTH_TESTS_KERNELS_EMULATED_H
#define HEARTH_TESTS_KERNELS_EMULATED_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#include <string.h>

#include "base/half.h"

static inline simde__m512 emulated_join(__m256 lo, __m256 hi) {
    float f[16];
    _mm256_storeu_ps(f, lo);
    _mm256_storeu_ps(f + 8, hi);
    return simde_mm512_loadu_ps(f);
}

static inline simde__m512 emulated_mm512_cvtph_ps(__m256i h) {
    return emulated_join(_mm256_cvtph_ps(_mm256_castsi256_si128(h)), _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)));
}

static inline simde__m512i emulated_mm512_cvtepu16_epi32(__m256i x) {
    __m256i v[2] = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)),
                    _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1))};
    simde__m512i y;
    memcpy(&y, v, sizeof y);
    return y;
}

static inline simde__m512 emulated_mm512_shuffle_f32x4(simde__m512 a, simde__m512 b, int quarters) {
    float x[16], y[16], z[16];
    simde_mm512_storeu_ps(x, a);
    simde_mm512_storeu_ps(y, b);
    for (int i = 0; i < 4; i++) memcpy(z + 4 * i, (i < 2 ? x : y) + 4 * (quarters >> 2 * i & 3), 4 * sizeof *z);
    return simde_mm512_loadu_ps(z);
}

static inline simde__m512 emulated_mm512_maskz_loadu_ps(simde__mmask16 mask, const void *p) {
    float f[16] = {0};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) memcpy(&f[i], (const float *)p + i, sizeof f[i]);
    return simde_mm512_loadu_ps(f);
}

static inline void emulated_mm512_mask_storeu_ps(void *p, simde__mmask16 mask, simde__m512 x) {
    float f[16];
    simde_mm512_storeu_ps(f, x);
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) memcpy((float *)p + i, &f[i], sizeof f[i]);
}

static inline __m256i emulated_mm256_maskz_loadu_epi16(simde__mmask16 mask, const void *p) {
    uint16_t h[16] = {0};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) memcpy(&h[i], (const uint16_t *)p + i, sizeof h[i]);
    return _mm256_loadu_si256((const __m256i *)h);
}

static inline __m256 emulated_mm512_extractf32x8_ps(simde__m512 x, int half) {
    float f[16];
    simde_mm512_storeu_ps(f, x);
    return _mm256_loadu_ps(f + 8 * half);
}

/* a * 2^b rounded once, for a normal a and an integer b of at most three digits, as the instruction does. */
static inline simde__m512 emulated_mm512_scalef_ps(simde__m512 a, simde__m512 b) {
    float x[16], y[16];
    simde_mm512_storeu_ps(x, a);
    simde_mm512_storeu_ps(y, b);
    for (int i = 0; i < 16; i++) {
        double power = y[i] != y[i] ? (double)y[i] : 0;
        if (y[i] == y[i]) {
            uint64_t bits = (uint64_t)((int64_t)y[i] + 1023) << 52;
            memcpy(&power, &bits, sizeof power);
        }
        x[i] = (float)((double)x[i] * power); /* exact, then rounded */
    }
    return simde_mm512_loadu_ps(x);
}

static inline simde__m512 emulated_mm512_cvtepi32_ps(simde__m512i x) {
    __m256i v[2];
    memcpy(v, &x, sizeof v);
    return emulated_join(_mm256_cvtepi32_ps(v[0]), _mm256_cvtepi32_ps(v[1]));
}

static inline simde__m512i emulated_mm512_cvtps_epi32(simde__m512 x) {
    __m256 v[2];
    memcpy(v, &x, sizeof v);
    const __m256i rounded[2] = {_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])};
    simde__m512i y;
    memcpy(&y, rounded, sizeof y);
    return y;
}

/* acc + the four products of unsigned bytes of w with signed ones of q in each lane. Bytes are widened first: the sums
 * of `maddubs` would saturate. */
static inline __m256i emulated_mm256_dpbusd_epi32(__m256i acc, __m256i w, __m256i q) {
    __m256i even =
        _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(q, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}

static inline __m256i emulated_mm256_dpwssd_epi32(__m256i acc, __m256i a, __m256i b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

static inline simde__m512i emulated_mm512_dpbusd_epi32(simde__m512i acc, simde__m512i w, simde__m512i q) {
    __m256i s[2], a[2], b[2];
    memcpy(s, &acc, sizeof s);
    memcpy(a, &w, sizeof a);
    memcpy(b, &q, sizeof b);
    for (int i = 0; i < 2; i++) s[i] = emulated_mm256_dpbusd_epi32(s[i], a[i], b[i]);
    memcpy(&acc, s, sizeof s);
    return acc;
}

static inline simde__m512i emulated_mm512_dpwssd_epi32(simde__m512i acc, simde__m512i x, simde__m512i y) {
    __m256i s[2], a[2], b[2];
    memcpy(s, &acc, sizeof s);
    memcpy(a, &x, sizeof a);
    memcpy(b, &y, sizeof b);
    for (int i = 0; i < 2; i++) s[i] = emulated_mm256_dpwssd_epi32(s[i], a[i], b[i]);
    memcpy(&acc, s, sizeof s);
    return acc;
}

static inline __m256i emulated_mm512_cvtepi32_epi16(simde__m512i x) {
    int32_t from[16];
    int16_t to[16];
    memcpy(from, &x, sizeof from);
    for (int i = 0; i < 16; i++) to[i] = (int16_t)from[i];
    return _mm256_loadu_si256((const __m256i *)to);
}

static inline __m128i emulated_mm512_cvtepi64_epi16(simde__m512i x) {
    int64_t from[8];
    int16_t to[8];
    memcpy(from, &x, sizeof from);
    for (int i = 0; i < 8; i++) to[i] = (int16_t)from[i];
    return _mm_loadu_si128((const __m128i *)to);
}

static inline simde__m512i emulated_mm512_cvtepi16_epi32(__m256i x) {
    int16_t from[16];
    int32_t to[16];
    memcpy(from, &x, sizeof from);
    for (int i = 0; i < 16; i++) to[i] = from[i];
    simde__m512i y;
    memcpy(&y, to, sizeof y);
    return y;
}

/* By a number that is a constant only after inlining. */
#define EMULATED_SHIFT(name, half)                                                                                     \
    static inline simde__m512i emulated_mm512_##name(simde__m512i x, unsigned n) {                                     \
        __m256i v[2];                                                                                                  \
        memcpy(v, &x, sizeof v);                                                                                       \
        for (int i = 0; i < 2; i++) v[i] = _mm256_##half(v[i], _mm_cvtsi32_si128((int)n));                             \
        memcpy(&x, v, sizeof x);                                                                                       \
        return x;                                                                                                      \
    }
EMULATED_SHIFT(slli_epi16, sll_epi16)
EMULATED_SHIFT(srli_epi16, srl_epi16)
EMULATED_SHIFT(srai_epi16, sra_epi16)
EMULATED_SHIFT(slli_epi32, sll_epi32)
EMULATED_SHIFT(srli_epi32, srl_epi32)
EMULATED_SHIFT(srai_epi32, sra_epi32)

/* Words of each 128-bit lane, two bits of `order` for each. */
static inline simde__m512i emulated_mm512_shuffle_epi32(simde__m512i x, int order) {
    int32_t from[16], to[16];
    memcpy(from, &x, sizeof from);
    for (int i = 0; i < 16; i++) to[i] = from[i / 4 * 4 + (order >> 2 * (i % 4) & 3)];
    memcpy(&x, to, sizeof to);
    return x;
}

#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps emulated_mm512_cvtph_ps
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 emulated_mm512_cvtepu16_epi32
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 emulated_mm512_shuffle_f32x4
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps emulated_mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps emulated_mm512_mask_storeu_ps
#undef _mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16 emulated_mm256_maskz_loadu_epi16
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps emulated_mm512_extractf32x8_ps
#undef _mm512_scalef_ps
#define _mm512_scalef_ps emulated_mm512_scalef_ps
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps emulated_mm512_cvtepi32_ps
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 emulated_mm512_cvtps_epi32
#undef _mm256_dpbusd_epi32
#define _mm256_dpbusd_epi32 emulated_mm256_dpbusd_epi32
#undef _mm256_dpwssd_epi32
#define _mm256_dpwssd_epi32     emulated_mm256_dpwssd_epi32
#define _mm256_dpbusd_avx_epi32 emulated_mm256_dpbusd_epi32
#define _mm256_dpwssd_avx_epi32 emulated_mm256_dpwssd_epi32
#undef _mm512_dpbusd_epi32
#define _mm512_dpbusd_epi32 emulated_mm512_dpbusd_epi32
#undef _mm512_dpwssd_epi32
#define _mm512_dpwssd_epi32 emulated_mm512_dpwssd_epi32
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 emulated_mm512_cvtepi32_epi16
#undef _mm512_cvtepi64_epi16
#define _mm512_cvtepi64_epi16 emulated_mm512_cvtepi64_epi16
#undef _mm512_cvtepi16_epi32
#define _mm512_cvtepi16_epi32 emulated_mm512_cvtepi16_epi32
#undef _mm512_slli_epi16
#define _mm512_slli_epi16 emulated_mm512_slli_epi16
#undef _mm512_srli_epi16
#define _mm512_srli_epi16 emulated_mm512_srli_epi16
#undef _mm512_srai_epi16
#define _mm512_srai_epi16 emulated_mm512_srai_epi16
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 emulated_mm512_slli_epi32
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 emulated_mm512_srli_epi32
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 emulated_mm512_srai_epi32
#undef _mm512_shuffle_epi32
#define _mm512_shuffle_epi32 emulated_mm512_shuffle_epi32

#endif
