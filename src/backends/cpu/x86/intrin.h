/* The vector intrinsics of the x86 tiers: the compiler's own, or for tests SIMDe's (tests/kernels/emulated.h), which
 * let every tier run on any machine. */
#ifndef HTH_BACKENDS_CPU_X86_INTRIN_H
#define HTH_BACKENDS_CPU_X86_INTRIN_H

#ifdef HTH_EMULATED
#include "kernels/emulated.h"
#else
#include <immintrin.h>
#endif

/* For functions that take a format or a tile size as a constant and must dissolve into their caller. Not so under a
 * sanitizer or emulated: then each of the hundreds of copies would take the compiler seconds. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define HTH_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HTH_SANITIZED
#endif
#if defined(HTH_SANITIZED) || defined(HTH_EMULATED)
#define HTH_INLINE static inline
#else
#define HTH_INLINE static inline __attribute__((always_inline))
#endif

/* Before a loop that must dissolve into its passes. Clang takes GCC's pragma for a partial unrolling, which leaves the
 * sums of a tile in memory. */
#ifndef __clang__
#ifdef HTH_SANITIZED
#define HTH_UNROLL /* a sanitizer splits a loop's condition, and then GCC refuses the annotation */
#elif defined(HTH_EMULATED)
#define HTH_UNROLL _Pragma("GCC unroll 1")
#else
#define HTH_UNROLL _Pragma("GCC unroll 16")
#endif
#elif defined(HTH_SANITIZED) || defined(HTH_EMULATED)
#define HTH_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define HTH_UNROLL _Pragma("clang loop unroll(full)")
#endif

#endif
