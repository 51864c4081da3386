/* hth_route: one definition for all tiers, here beside the reference for its FMA. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "base/math.h"
#include "program/ops.h"

enum { STRIPES = 16 };

static float striped_sum(const float *p, int64_t n) {
    float s[STRIPES] = {0};
    for (int64_t i = 0; i < (n + STRIPES - 1) / STRIPES * STRIPES; i++) s[i % STRIPES] += i < n ? p[i] : 0;
    for (int step = STRIPES / 2; step > 0; step /= 2)
        for (int j = 0; j < step; j++) s[j] += s[j + step];
    return s[0];
}

static bool all_finite(const float *z, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(z[i])) return false;
    return true;
}

/* The `used` largest of z, largest first, equal ones by lower index: values to top, indices to ids. */
static void choose(const float *z, int64_t n, int64_t used, float *ids, float *top) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (count == used && !(z[i] > top[count - 1])) continue;
        int64_t at = count < used ? count++ : count - 1;
        for (; at > 0 && z[i] > top[at - 1]; at--) {
            top[at] = top[at - 1];
            ids[at] = ids[at - 1];
        }
        top[at] = z[i];
        ids[at] = (float)i;
    }
}

static void sort_increasing(float *ids, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        float id = ids[i];
        int64_t at = i;
        for (; at > 0 && ids[at - 1] > id; at--) ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

/* Divide by the sum, which counts as `least` at least. */
static void divide_by_sum(float *w, int64_t n, float least) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += w[i];
    if (sum < least) sum = least;
    for (int64_t i = 0; i < n; i++) w[i] /= sum;
}

bool hth_route(const float *z, int64_t n, int64_t used, int kind, float *out, float *scratch) {
    float *ids = out, *w = out + used;
    if (!all_finite(z, n)) {
        for (int64_t i = 0; i < used; i++) {
            ids[i] = (float)i;
            w[i] = NAN;
        }
        return false;
    }
    choose(z, n, used, ids, w);
    float m = w[0];
    sort_increasing(ids, used);
    if (kind == HTH_ROUTER_OVER_CHOSEN) {
        for (int64_t i = 0; i < used; i++) w[i] = hth_expf(z[(int64_t)ids[i]] - m);
        divide_by_sum(w, used, 0);
        return true;
    }
    for (int64_t i = 0; i < n; i++) scratch[i] = hth_expf(z[i] - m);
    float sum = striped_sum(scratch, n);
    for (int64_t i = 0; i < used; i++) w[i] = scratch[(int64_t)ids[i]] / sum;
    if (kind == HTH_ROUTER_NORMALIZED) divide_by_sum(w, used, 0x1p-14f);
    return true;
}
