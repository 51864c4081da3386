/* Striped sums, spelled out (kernels.h). */
#ifndef HTH_BACKENDS_CPU_REF_STRIPED_H
#define HTH_BACKENDS_CPU_REF_STRIPED_H

#include <math.h>
#include <stdint.h>

#define HTH_STRIPES 16

/* Elements of a striped sum: whole groups of sixteen, those past the end are +0. */
static inline int64_t hth_striped_end(int64_t n) {
    return (n + HTH_STRIPES - 1) / HTH_STRIPES * HTH_STRIPES;
}

static inline float hth_striped_tree(float p[HTH_STRIPES]) {
    for (int step = HTH_STRIPES / 2; step > 0; step /= 2)
        for (int s = 0; s < step; s++) p[s] += p[s + step];
    return p[0];
}

/* The striped sum of fma(x, x, partial). */
static inline float hth_striped_squares(const float *x, int64_t n) {
    float p[HTH_STRIPES] = {0};
    for (int64_t i = 0; i < hth_striped_end(n); i++) {
        float e = i < n ? x[i] : 0;
        p[i % HTH_STRIPES] = fmaf(e, e, p[i % HTH_STRIPES]);
    }
    return hth_striped_tree(p);
}

#endif
