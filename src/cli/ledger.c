#include "cli/ledger.h"

#include <errno.h>
#include <string.h>

#include "cli/report.h"
#include "cli/say.h"
#include "cli/svg.h"
#include "cli/verbs.h"

static double total_ms(const hearth_ledger_row *rows, size_t count) {
    double total = 0;
    for (size_t i = 0; i < count; i++) total += rows[i].exposed_ms;
    return total;
}

void hth_ledger_table(FILE *out, const hearth_ledger_row *rows, size_t count) {
    fprintf(out, "%-14s %9s %9s %9s %13s %7s %7s %13s  %s\n", "open", "start ms", "end ms", "exposed", "bytes", "minor",
            "major", "outstanding", "chosen");
    for (size_t i = 0; i < count; i++) {
        const hearth_ledger_row *r = &rows[i];
        fprintf(out, "%-14s %9.2f %9.2f %9.2f %13llu %7llu %7llu %13llu%s%s\n", r->what, r->start_ms, r->end_ms,
                r->exposed_ms, (unsigned long long)r->bytes, (unsigned long long)r->minor_faults,
                (unsigned long long)r->major_faults, (unsigned long long)r->outstanding, *r->how ? "  " : "", r->how);
    }
    fprintf(out, "%-14s %9s %9s %9.2f\n", "total", "", "", total_ms(rows, count));
}

void hth_ledger_json(hth_json *json, const hearth_ledger_row *rows, size_t count) {
    hth_json_open(json, "ledger", '[');
    for (size_t i = 0; i < count; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_text(json, "what", rows[i].what);
        hth_json_text(json, "how", rows[i].how);
        hth_report_measure(json, "start_ms", rows[i].start_ms);
        hth_report_measure(json, "end_ms", rows[i].end_ms);
        hth_report_measure(json, "exposed_ms", rows[i].exposed_ms);
        hth_json_uint(json, "bytes", rows[i].bytes);
        hth_json_uint(json, "minor_faults", rows[i].minor_faults);
        hth_json_uint(json, "major_faults", rows[i].major_faults);
        hth_json_uint(json, "outstanding", rows[i].outstanding);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
    hth_report_measure(json, "open_total_ms", total_ms(rows, count));
}

/* ---- Picture ---- */

enum {
    WIDTH = 850,
    LEFT = 170, /* where time begins */
    TIME = 520, /* the width of all of it */
    TOP = 84,
    ROW = 28, /* from one bar to the next */
    BAR = 16
};

static double last_end(const hearth_ledger_row *rows, size_t count) {
    double end = total_ms(rows, count);
    for (size_t i = 0; i < count; i++) end = rows[i].end_ms > end ? rows[i].end_ms : end;
    return end > 0 ? end : 1;
}

/* What open waited for lies at the end of the row: the rest went on beside other rows. */
static void put_row(FILE *out, const hearth_ledger_row *row, double scale, int y) {
    double from = LEFT + row->start_ms * scale, width = (row->end_ms - row->start_ms) * scale;
    double exposed = row->exposed_ms * scale;
    if (width < 1) width = 1;
    if (exposed > width) exposed = width;
    fprintf(out, "<text x='%d' y='%d' class='name'>%s</text>\n", LEFT - 10, y + 13, row->what);
    fprintf(out, "<rect x='%.1f' y='%d' width='%.1f' height='%d' class='beside'/>\n", from, y, width, BAR);
    fprintf(out, "<rect x='%.1f' y='%d' width='%.1f' height='%d' class='exposed'/>\n", from + width - exposed, y,
            exposed, BAR);
    fprintf(out, "<text x='%.1f' y='%d' class='value'>%.2f ms", from + width + 6, y + 13, row->end_ms - row->start_ms);
    if (row->exposed_ms < row->end_ms - row->start_ms) fprintf(out, ", waited %.2f", row->exposed_ms);
    if (*row->how) fprintf(out, " · %s", row->how);
    fputs("</text>\n", out);
}

bool hth_ledger_svg(FILE *out, const char *title, const char *subtitle, const hearth_ledger_row *rows, size_t count) {
    int height = TOP + (int)count * ROW;
    double end = last_end(rows, count), scale = TIME / end, step = hth_svg_step(end);
    hth_svg_begin(out, WIDTH, height + 40,
                  ".name{text-anchor:end}\n.value{font-size:11px}\n.beside{fill:#b6d4f5}\n.exposed{fill:#0969da}\n",
                  title, subtitle);
    for (double at = 0; at <= end * 1.0001; at += step) {
        double x = LEFT + at * scale;
        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='grid'/>\n", x, TOP - 10, x, height);
        fprintf(out, "<text x='%.1f' y='%d' class='tick'>%.9g ms</text>\n", x, height + 14, at);
    }
    for (size_t i = 0; i < count; i++) put_row(out, &rows[i], scale, TOP + (int)i * ROW);
    return hth_svg_end(out);
}

int hth_ledger_draw(const char *path, const char *model, const hearth_engine *engine) {
    const hearth_ledger_row *rows;
    size_t count = hearth_engine_ledger(engine, &rows);
    FILE *out = fopen(path, "we");
    bool good = out && hth_ledger_svg(out, "What opening the model cost", model, rows, count);
    int error = errno;
    if (out && fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good) return HTH_EXIT_OK;
    hth_complain("cannot write %s: %s", path, strerror(error));
    return HTH_EXIT_FAILED;
}
