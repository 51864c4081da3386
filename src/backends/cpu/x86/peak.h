/* The loops of a tier's peaks (hth_peak, hth_read_fn). Every chain is carried from round to round, so that no compiler
 * can take anything out of a loop. */
#ifndef HTH_BACKENDS_CPU_X86_PEAK_H
#define HTH_BACKENDS_CPU_X86_PEAK_H

#include <stdint.h>

#include "backends/cpu/x86/intrin.h"

/* Two multiplying units of a latency up to six cycles; with their operands they fit sixteen registers. */
#define HTH_PEAK_CHAINS 12

/* Three chains stay in registers: GCC would keep them in memory as well. */
#ifdef HTH_EMULATED
#define HTH_PEAK_KEEP(a, b, c) ((void)0)
#else
#define HTH_PEAK_KEEP(a, b, c) __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c))
#endif

/* Define a peak NAME on registers of TYPE: FIRST(c) is what chain c starts with, STEP(x) its next value, ADD(x, y) adds
 * two of them up, FOLD(x) is 32 bits of one. At least one round is run. */
#define HTH_PEAK_LOOP(NAME, TYPE, FIRST, STEP, ADD, FOLD)                                                              \
    static uint32_t NAME(int64_t rounds) {                                                                             \
        TYPE a = FIRST(0), b = FIRST(1), c = FIRST(2), d = FIRST(3), e = FIRST(4), f = FIRST(5);                       \
        TYPE g = FIRST(6), h = FIRST(7), i = FIRST(8), j = FIRST(9), k = FIRST(10), l = FIRST(11);                     \
        do {                                                                                                           \
            a = STEP(a), b = STEP(b), c = STEP(c);                                                                     \
            d = STEP(d), e = STEP(e), f = STEP(f);                                                                     \
            g = STEP(g), h = STEP(h), i = STEP(i);                                                                     \
            j = STEP(j), k = STEP(k), l = STEP(l);                                                                     \
            HTH_PEAK_KEEP(a, b, c);                                                                                    \
            HTH_PEAK_KEEP(d, e, f);                                                                                    \
            HTH_PEAK_KEEP(g, h, i);                                                                                    \
            HTH_PEAK_KEEP(j, k, l);                                                                                    \
        } while (--rounds > 0);                                                                                        \
        a = ADD(ADD(ADD(a, b), ADD(c, d)), ADD(e, f));                                                                 \
        return FOLD(ADD(a, ADD(ADD(ADD(g, h), ADD(i, j)), ADD(k, l))));                                                \
    }

/* Define a reader NAME in registers of TYPE: LOAD(p), XOR(a, b). */
#define HTH_READ_LOOP(NAME, TYPE, ZERO, LOAD, XOR, FOLD)                                                               \
    static uint64_t NAME(const void *at, size_t bytes) {                                                               \
        const size_t step = sizeof(TYPE);                                                                              \
        const unsigned char *p = at, *end = p + bytes;                                                                 \
        TYPE a = ZERO, b = ZERO, c = ZERO, d = ZERO;                                                                   \
        for (; p < end; p += 4 * step) {                                                                               \
            a = XOR(a, LOAD((const void *)p)), b = XOR(b, LOAD((const void *)(p + step)));                             \
            c = XOR(c, LOAD((const void *)(p + 2 * step))), d = XOR(d, LOAD((const void *)(p + 3 * step)));            \
        }                                                                                                              \
        return FOLD(XOR(XOR(a, b), XOR(c, d)));                                                                        \
    }

#endif
