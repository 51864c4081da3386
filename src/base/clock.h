/* Monotonic time. */
#ifndef HTH_BASE_CLOCK_H
#define HTH_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since a fixed point of this boot. */
static inline uint64_t hth_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double hth_ms_since(uint64_t start_ns) {
    return (double)(hth_now_ns() - start_ns) * 1e-6;
}

#endif
