/* The AVX-512 intrinsics out of AVX2 ones, so that every machine runs the tests of the avx512 tier: SIMDe's, and here
 * those that Debian 12's SIMDe lacks, or computes in another way than the instruction. */
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

#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps emulated_mm512_cvtph_ps
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

#endif
