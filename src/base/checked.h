/* Arithmetic on numbers that come from outside: every function answers false, and leaves *out alone, when the result
 * does not fit. */
#ifndef HTH_BASE_CHECKED_H
#define HTH_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool hth_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

static inline bool hth_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

static inline bool hth_is_power_of_two(uint64_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

/* The least multiple of `align` (a power of two) that is at least n. */
static inline bool hth_round_up_u64(uint64_t n, uint64_t align, uint64_t *out) {
    uint64_t sum;
    if (__builtin_add_overflow(n, align - 1, &sum)) return false;
    *out = sum & ~(align - 1);
    return true;
}

#endif
