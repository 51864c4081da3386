#include <math.h>

#include "base/status.h"
#include "cli/bench.h"
#include "cli/svg.h"

enum {
    WIDTH = 850,
    LEFT = 280, /* where bars begin: room for "65536 tokens after 65536, 65536 marks" */
    BARS = 460, /* the longest bar */
    ROW = 30,   /* from one bar to the next */
    BAR = 18,
    TOP = 84,
    GROUP = 56 /* between prefill and decode */
};

static void put_grid(FILE *out, double top, int y, int height) {
    double step = hth_svg_step(top);
    for (double at = 0; at <= top * 1.0001; at += step) {
        double x = LEFT + BARS * at / top;
        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='grid'/>\n", x, y - 6, x, y + height);
        fprintf(out, "<text x='%.1f' y='%d' class='tick'>%.9g</text>\n", x, y + height + 14, at);
    }
}

static void put_bar(FILE *out, const hth_bench_row *row, double top, int y) {
    double scale = BARS / top, middle = y + BAR / 2.0;
    fprintf(out, "<text x='%d' y='%.1f' class='name'>%lld token%s", LEFT - 10, middle + 4, (long long)row->tokens,
            hth_plural(row->tokens));
    if (row->depth > 0) fprintf(out, " after %lld", (long long)row->depth);
    if (row->marks > 0) fprintf(out, ", %lld mark%s", (long long)row->marks, hth_plural(row->marks));
    if (row->sessions > 1) fprintf(out, ", %lld sessions", (long long)row->sessions);
    fprintf(out, "</text>\n<rect x='%d' y='%d' width='%.1f' height='%d' class='%s'/>\n", LEFT, y, row->median * scale,
            BAR, row->decode ? "decode" : "prefill");
    double from = LEFT + row->least * scale, to = LEFT + row->most * scale;
    fprintf(out, "<path d='M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8' class='whisker'/>\n", from, middle, to, from,
            middle - 4, to, middle - 4);
    int digits = row->median >= 1000 ? 0 : row->median >= 100 ? 1 : row->median >= 10 ? 2 : 3;
    fprintf(out, "<text x='%.1f' y='%.1f' class='value'>%.*f</text>\n", to + 8, middle + 4, digits, row->median);
}

/* The bars of one kind from y on; where the next may begin. */
static int put_group(FILE *out, const hth_bench_row *rows, size_t count, bool decode, int y) {
    double top = 0;
    int bars = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].decode == decode) {
            top = fmax(top, rows[i].most);
            bars++;
        }
    if (bars == 0 || !(top > 0)) return y;
    fprintf(out, "<text x='24' y='%d' class='group'>%s, tokens per second</text>\n", y - 14,
            decode ? "Decode" : "Prefill");
    put_grid(out, top, y, bars * ROW);
    for (size_t i = 0; i < count; i++)
        if (rows[i].decode == decode) {
            put_bar(out, &rows[i], top, y);
            y += ROW;
        }
    return y + GROUP;
}

bool hth_bench_svg(FILE *out, const char *title, const char *subtitle, const hth_bench_row *rows, size_t count) {
    size_t decodes = 0;
    for (size_t i = 0; i < count; i++) decodes += rows[i].decode;
    int groups = (decodes > 0) + (decodes < count), height = TOP + (int)count * ROW + groups * GROUP;
    static const char style[] = ".name{text-anchor:end}\n.prefill{fill:#0969da}\n.decode{fill:#bf5b04}\n"
                                ".whisker{stroke:#24292f;fill:none}\n";
    hth_svg_begin(out, WIDTH, height, style, title, subtitle);
    int y = put_group(out, rows, count, false, TOP);
    put_group(out, rows, count, true, y);
    return hth_svg_end(out);
}
