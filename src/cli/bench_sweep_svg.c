#include <math.h>

#include "cli/bench.h"
#include "cli/svg.h"

enum { WIDTH = 850, HEIGHT = 470, LEFT = 70, RIGHT = 826, TOP = 70, BOTTOM = 420 };

typedef struct scale {
    double rows, ms; /* at the right and at the top */
} scale;

static double x_of(scale s, double rows) {
    return LEFT + (RIGHT - LEFT) * rows / s.rows;
}

static double y_of(scale s, double ms) {
    return BOTTOM - (BOTTOM - TOP) * ms / s.ms;
}

static void put_grid(FILE *out, scale s) {
    double step = hth_svg_step(s.ms);
    for (double at = 0; at <= s.ms * 1.0001; at += step) {
        fprintf(out, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' class='grid'/>\n", LEFT, y_of(s, at), RIGHT,
                y_of(s, at));
        fprintf(out, "<text x='%d' y='%.1f' class='tick' style='text-anchor:end'>%.9g</text>\n", LEFT - 8,
                y_of(s, at) + 4, at);
    }
    step = fmax(1, hth_svg_step(s.rows));
    for (double at = 0; at <= s.rows * 1.0001; at += step)
        fprintf(out, "<text x='%.1f' y='%d' class='tick'>%.9g</text>\n", x_of(s, at), BOTTOM + 18, at);
    fprintf(out, "<text x='%d' y='%d' class='tick'>rows of a pass</text>\n", (LEFT + RIGHT) / 2, BOTTOM + 38);
}

/* A line through the points, in parts where row counts are left out. */
static void put_line(FILE *out, scale s, const hth_bench_point *points, size_t count) {
    fputs("<path class='line' d='", out);
    for (size_t i = 0; i < count; i++) {
        bool joins = i > 0 && points[i].rows == points[i - 1].rows + 1;
        fprintf(out, "%c%.1f %.1f", joins ? 'L' : 'M', x_of(s, (double)points[i].rows), y_of(s, points[i].median));
    }
    fputs("'/>\n", out);
}

bool hth_bench_sweep_svg(FILE *out, const char *title, const char *subtitle, const hth_bench_point *points,
                         size_t count) {
    static const char style[] = ".line{stroke:#0969da;fill:none;stroke-width:1.5}\n.point{fill:#0969da}\n"
                                ".step{fill:none;stroke:#cf222e;stroke-width:2}\n.bad{fill:#cf222e;font-size:11px}\n";
    scale s = {0, 0};
    size_t steps = 0;
    for (size_t i = 0; i < count; i++) {
        s.rows = fmax(s.rows, (double)points[i].rows);
        s.ms = fmax(s.ms, points[i].median);
        steps += points[i].step;
    }
    hth_svg_begin(out, WIDTH, HEIGHT, style, title, subtitle);
    fprintf(out, "<text x='%d' y='%d' class='tick' style='text-anchor:start'>milliseconds of one pass</text>\n", LEFT,
            TOP - 10);
    fprintf(out,
            "<text x='%d' y='%d' class='%s' style='text-anchor:end'>%zu of %zu above %.2f times the trend</text>\n",
            RIGHT, TOP - 10, steps ? "bad" : "tick", steps, count, HTH_BENCH_STEP);
    if (s.ms > 0) {
        put_grid(out, s);
        put_line(out, s, points, count);
    }
    for (size_t i = 0; i < count && s.ms > 0; i++) {
        double x = x_of(s, (double)points[i].rows), y = y_of(s, points[i].median);
        fprintf(out, "<circle cx='%.1f' cy='%.1f' r='1.8' class='point'/>\n", x, y);
        if (!points[i].step) continue;
        fprintf(out, "<circle cx='%.1f' cy='%.1f' r='5' class='step'/>\n", x, y);
        fprintf(out, "<text x='%.1f' y='%.1f' class='bad'>%lld</text>\n", x + 7, y - 6, (long long)points[i].rows);
    }
    return hth_svg_end(out);
}
