#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/bench.h"

enum {
    WIDTH = 850,
    LEFT = 280, /* where bars begin: room for "65536 tokens after 65536, 65536 marks" */
    BARS = 460, /* the longest bar */
    ROW = 30,   /* from one bar to the next */
    BAR = 18,
    TOP = 84,
    GROUP = 56 /* between prefill and decode */
};

/* Text as XML holds it; what it cannot hold becomes '?'. */
static void put_text(FILE *out, const char *text) {
    for (size_t i = 0, size = strlen(text); i < size;) {
        uint32_t c = 0;
        int n = hth_utf8_decode(text + i, size - i, &c);
        if (n == 0 || c < 0x20 || c == 0xFFFE || c == 0xFFFF) fputc('?', out);
        else if (c == '&') fputs("&amp;", out);
        else if (c == '<') fputs("&lt;", out);
        else if (c == '>') fputs("&gt;", out);
        else fwrite(text + i, 1, (size_t)n, out);
        i += n ? (size_t)n : 1;
    }
}

/* A round number of about a quarter of the scale, for the grid. */
static double grid_step(double top) {
    double step = pow(10, floor(log10(top / 4)));
    double times = top / 4 / step;
    return step * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void put_grid(FILE *out, double top, int y, int height) {
    double step = grid_step(top);
    for (double at = 0; at <= top * 1.0001; at += step) {
        double x = LEFT + BARS * at / top;
        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='grid'/>\n", x, y - 6, x, y + height);
        fprintf(out, "<text x='%.1f' y='%d' class='tick'>%.9g</text>\n", x, y + height + 14, at);
    }
}

static void put_bar(FILE *out, const hth_bench_row *row, double top, int y) {
    double scale = BARS / top, middle = y + BAR / 2.0;
    fprintf(out, "<text x='%d' y='%.1f' class='name'>%lld token%s", LEFT - 10, middle + 4, (long long)row->tokens,
            row->tokens == 1 ? "" : "s");
    if (row->depth > 0) fprintf(out, " after %lld", (long long)row->depth);
    if (row->marks > 0) fprintf(out, ", %lld mark%s", (long long)row->marks, row->marks == 1 ? "" : "s");
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
    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d'>\n", WIDTH, height,
            WIDTH, height);
    fputs("<style>\ntext{font:13px sans-serif;fill:#24292f}\n.title{font-size:16px;font-weight:600}\n"
          ".sub,.tick{fill:#57606a;font-size:11px}\n.tick{text-anchor:middle}\n.group{font-weight:600}\n"
          ".name{text-anchor:end}\n.prefill{fill:#0969da}\n.decode{fill:#bf5b04}\n.grid{stroke:#d0d7de}\n"
          ".whisker{stroke:#24292f;fill:none}\n</style>\n<rect width='100%' height='100%' fill='#fff'/>\n",
          out);
    fputs("<text x='24' y='26' class='title'>", out);
    put_text(out, title);
    fputs("</text>\n<text x='24' y='44' class='sub'>", out);
    put_text(out, subtitle);
    fputs("</text>\n", out);
    int y = put_group(out, rows, count, false, TOP);
    put_group(out, rows, count, true, y);
    fputs("</svg>\n", out);
    return fflush(out) == 0 && !ferror(out);
}
