/* The vector intrinsics of the x86 tiers: the compiler's own, or for tests SIMDe's (tests/kernels/emulated.h), which
 * let every tier run on any machine. */
#ifndef HTH_BACKENDS_CPU_X86_INTRIN_H
#define HTH_BACKENDS_CPU_X86_INTRIN_H

#ifdef HTH_EMULATED
#include "kernels/emulated.h"
#else
#include <immintrin.h>
#endif

/* For functions that take a format or a tile size as a constant and must dissolve into their caller. */
#define HTH_INLINE static inline __attribute__((always_inline))
#define HTH_UNROLL _Pragma("GCC unroll 16")

#endif
