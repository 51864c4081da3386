/* Which points of a sweep stand out. */
#include <math.h>

#include "cli/bench.h"

/* A point's trend is the straight line between its neighbours; the last one's, that through the two before it, or flat
 * where they fall. The first has none. */
void hth_bench_sweep_judge(hth_bench_point *points, size_t count) {
    for (size_t i = 0; i < count; i++) {
        hth_bench_point *p = &points[i];
        p->trend = 0;
        if (i == 0 || count < 3) continue;
        const hth_bench_point *a = i + 1 < count ? &points[i - 1] : &points[i - 2];
        const hth_bench_point *c = i + 1 < count ? &points[i + 1] : &points[i - 1];
        double slope = (c->median - a->median) / (double)(c->rows - a->rows);
        if (i + 1 == count) p->trend = c->median + fmax(slope, 0) * (double)(p->rows - c->rows);
        else p->trend = a->median + slope * (double)(p->rows - a->rows);
    }
    for (size_t i = 0; i < count; i++)
        points[i].step = points[i].trend > 0 && points[i].median > HTH_BENCH_STEP * points[i].trend;
}
