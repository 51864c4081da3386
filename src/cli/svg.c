#include "cli/svg.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

void hth_svg_text(FILE *out, const char *text) {
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

void hth_svg_begin(FILE *out, int width, int height, const char *style, const char *title, const char *subtitle) {
    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d'>\n", width, height,
            width, height);
    fputs("<style>\ntext{font:13px sans-serif;fill:#24292f}\n.title{font-size:16px;font-weight:600}\n"
          ".sub,.tick{fill:#57606a;font-size:11px}\n.tick{text-anchor:middle}\n.group{font-weight:600}\n"
          ".grid{stroke:#d0d7de}\n",
          out);
    fprintf(out, "%s</style>\n<rect width='100%%' height='100%%' fill='#fff'/>\n", style);
    fputs("<text x='24' y='26' class='title'>", out);
    hth_svg_text(out, title);
    fputs("</text>\n<text x='24' y='44' class='sub'>", out);
    hth_svg_text(out, subtitle);
    fputs("</text>\n", out);
}

bool hth_svg_end(FILE *out) {
    fputs("</svg>\n", out);
    return fflush(out) == 0 && !ferror(out);
}

double hth_svg_step(double top) {
    double step = pow(10, floor(log10(top / 4)));
    double times = top / 4 / step;
    return step * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}
