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

/* Weights may still be arriving when open returns (option early): the end and what comes with it are not known yet. */
static bool is_going_on(const hearth_ledger_row *row) {
    return row->end_ms < row->start_ms;
}

void hth_ledger_table(FILE *out, const hearth_ledger_row *rows, size_t count) {
    bool arriving = false; /* weights: before they begin to, nothing is said of how much is left of them */
    fprintf(out, "%-14s %9s %9s %10s %13s %7s %7s %13s  %s\n", "open", "start ms", "end ms", "exposed ms", "bytes",
            "minor", "major", "outstanding", "chosen");
    for (size_t i = 0; i < count; i++) {
        const hearth_ledger_row *r = &rows[i];
        arriving |= strcmp(r->what, "residency") == 0;
        fprintf(out, "%-14s %9.2f ", r->what, r->start_ms);
        if (is_going_on(r)) {
            fprintf(out, "%9s %10.2f %13s %7s %7s %13s", "-", r->exposed_ms, "-", "-", "-", "-");
        } else {
            fprintf(out, "%9.2f %10.2f %13llu %7llu %7llu ", r->end_ms, r->exposed_ms, (unsigned long long)r->bytes,
                    (unsigned long long)r->minor_faults, (unsigned long long)r->major_faults);
            if (arriving) fprintf(out, "%13llu", (unsigned long long)r->outstanding);
            else fprintf(out, "%13s", "-");
        }
        fprintf(out, "%s%s%s\n", *r->how || is_going_on(r) ? "  " : "", r->how, is_going_on(r) ? ", going on" : "");
    }
    fprintf(out, "%-14s %9s %9s %10.2f\n", "total", "", "", total_ms(rows, count));
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
    LEFT = 290, /* where time begins: names and choices have room */
    TIME = 390, /* the width of all of it: figures have room behind */
    TOP = 92,
    ROW = 34, /* from one bar to the next */
    BAR = 16
};

static const char style[] =
    ".name{text-anchor:end}\n.how{text-anchor:end;fill:#57606a;font-size:10px}\n"
    ".value{font-size:11px;paint-order:stroke;stroke:#fff;stroke-width:3px}\n"
    ".beside{fill:#b6d4f5}\n.exposed{fill:#0969da}\n.open{stroke:#bf5b04;stroke-dasharray:4 3}\n";

static double last_end(const hearth_ledger_row *rows, size_t count) {
    double end = total_ms(rows, count);
    for (size_t i = 0; i < count; i++) end = rows[i].end_ms > end ? rows[i].end_ms : end;
    return end > 0 ? end : 1;
}

static int digits(double ms) {
    return ms >= 1000 ? 0 : ms >= 100 ? 1 : 2;
}

static void put_legend(FILE *out) {
    fputs("<rect x='24' y='36' width='10' height='10' fill='#0969da'/>\n"
          "<text x='40' y='45' class='sub'>exposed: what open waited for this row alone</text>\n"
          "<rect x='320' y='36' width='10' height='10' fill='#b6d4f5'/>\n"
          "<text x='336' y='45' class='sub'>beside other rows</text>\n",
          out);
}

static void put_grid(FILE *out, double end, double opened, int bottom) {
    const double scale = TIME / end, step = hth_svg_step(end), returns = LEFT + opened * scale;
    for (double at = 0; at <= end * 1.0001; at += step) {
        const double x = LEFT + at * scale;
        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='grid'/>\n", x, TOP - 10, x, bottom);
        fprintf(out, "<text x='%.1f' y='%d' class='tick'>%.9g ms</text>\n", x, bottom + 14, at);
    }
    fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='open'/>\n", returns, TOP - 14, returns, bottom);
    fprintf(out, "<text x='%.1f' y='%d' class='tick'>open returns</text>\n", returns, TOP - 18);
}

/* What open waited for lies at the end of the row: the rest went on beside other rows. A row that is still going on
 * reaches to the end of the picture. */
static void put_row(FILE *out, const hearth_ledger_row *row, double end, int y) {
    const bool going_on = is_going_on(row);
    const double ms = (going_on ? end : row->end_ms) - row->start_ms, scale = TIME / end;
    const double from = LEFT + row->start_ms * scale, width = ms * scale < 1 ? 1 : ms * scale;
    const double exposed = ms > row->exposed_ms ? width * row->exposed_ms / ms : width;
    fprintf(out, "<text x='%d' y='%d' class='name'>%s</text>\n", LEFT - 10, y + 13, row->what);
    if (*row->how) {
        fprintf(out, "<text x='%d' y='%d' class='how'>", LEFT - 10, y + 25);
        hth_svg_text(out, row->how);
        fputs("</text>\n", out);
    }
    fprintf(out, "<rect x='%.1f' y='%d' width='%.1f' height='%d' class='beside'/>\n", from, y, width, BAR);
    fprintf(out, "<rect x='%.1f' y='%d' width='%.1f' height='%d' class='exposed'/>\n", from + width - exposed, y,
            exposed, BAR);
    fprintf(out, "<text x='%.1f' y='%d' class='value'>", from + width + 6, y + 13);
    if (going_on) {
        fputs("going on", out);
    } else {
        fprintf(out, "%.*f ms", digits(ms), ms);
        if (ms - row->exposed_ms > 0.005) fprintf(out, ", exposed %.*f", digits(row->exposed_ms), row->exposed_ms);
    }
    fputs("</text>\n", out);
}

bool hth_ledger_svg(FILE *out, const char *model, const hearth_ledger_row *rows, size_t count) {
    const int bottom = TOP + (int)count * ROW;
    const double opened = total_ms(rows, count), end = last_end(rows, count);
    char title[400];
    snprintf(title, sizeof title, "Opening %s took %.*f ms", model, digits(opened), opened);
    hth_svg_begin(out, WIDTH, bottom + 26, style, title, "");
    put_legend(out);
    put_grid(out, end, opened, bottom);
    for (size_t i = 0; i < count; i++) put_row(out, &rows[i], end, TOP + (int)i * ROW);
    return hth_svg_end(out);
}

int hth_ledger_draw(const char *path, const char *model, const hearth_engine *engine) {
    const hearth_ledger_row *rows;
    size_t count = hearth_engine_ledger(engine, &rows);
    const char *slash = strrchr(model, '/');
    FILE *out = fopen(path, "we");
    bool good = out && hth_ledger_svg(out, slash ? slash + 1 : model, rows, count);
    int error = errno;
    if (out && fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good) return HTH_EXIT_OK;
    hth_complain("cannot write %s: %s", path, strerror(error));
    return HTH_EXIT_FAILED;
}
