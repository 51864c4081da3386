/* Templates and renderings as the public header has them. */
#include "hearth/template.h"

#include <stdlib.h>
#include <string.h>

#include "text/template_marks.h"

enum {
    PARSE_MS = 5000,
    PARSE_STEPS = 200 * 1000 * 1000,
    PARSE_BYTES = 256 * 1024 * 1024,
    RENDER_STEPS = 50 * 1000 * 1000,
    RENDER_MS = 10000,
    RENDER_BYTES = 512 * 1024 * 1024,
    RENDER_OUTPUT = 64 * 1024 * 1024,
    RENDER_MARKS = 32
};

struct hearth_template {
    hth_work work; /* what the code lies in */
    hth_code code;
};

int hearth_template_names(const hearth_template *t, const char *name) {
    return hth_dict_find_text(t->code.name_index, name) != NULL;
}

hearth_status hearth_template_create(const char *text, size_t size, hearth_template **out, hearth_error *err) {
    *out = NULL;
    hearth_template *t = calloc(1, sizeof *t);
    if (t == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a chat template");
    hth_work_begin(&t->work, PARSE_BYTES, PARSE_STEPS, PARSE_MS);
    if (!hth_template_parse(&t->work, text, size, &t->code)) {
        hearth_status status = hth_work_report(&t->work, err);
        hearth_template_free(&t);
        return status;
    }
    *out = t;
    return HEARTH_OK;
}

void hearth_template_free(hearth_template **t) {
    if (*t == NULL) return;
    hth_work_end(&(*t)->work);
    free(*t);
    *t = NULL;
}

/* ---- rendering ---- */

/* "2024-07-26T12:30:00", seconds or the whole time left out. */
static bool read_time(const char *text, struct tm *out) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int n[6] = {0}, count = 0;
    static const char behind[] = "--T::";
    for (; count < 6; count++) {
        int digits = count == 0 ? 4 : 2;
        for (int i = 0; i < digits; i++, text++) {
            if (*text < '0' || *text > '9') return false;
            n[count] = n[count] * 10 + (*text - '0');
        }
        if (*text == 0) break;
        if (count == 5 || (*text != behind[count] && !(count == 2 && *text == ' '))) return false;
        text++;
    }
    if (count < 2 || n[1] < 1 || n[1] > 12 || n[3] > 23 || n[4] > 59 || n[5] > 60) return false;
    bool leap = (n[0] % 4 == 0 && n[0] % 100 != 0) || n[0] % 400 == 0;
    if (n[2] < 1 || n[2] > days[n[1] - 1] + (leap && n[1] == 2)) return false;
    int yday = n[2] - 1;
    for (int i = 0; i < n[1] - 1; i++) yday += days[i] + (leap && i == 1);
    int before = n[0] + 399,
        whole = before * 365 + before / 4 - before / 100 + before / 400; /* days since -400-01-01 */
    *out = (struct tm){.tm_year = n[0] - 1900,
                       .tm_mon = n[1] - 1,
                       .tm_mday = n[2],
                       .tm_hour = n[3],
                       .tm_min = n[4],
                       .tm_sec = n[5],
                       .tm_yday = yday,
                       .tm_wday = (whole + yday + 1) % 7};
    return true;
}

static bool set_time(hth_work *w, const char *now, struct tm *out) {
    time_t t = time(NULL);
    if (now == NULL && localtime_r(&t, out) != NULL) return true;
    if (now == NULL) return hth_work_fail(w, HEARTH_IO, "the system has no local time");
    return read_time(now, out) ||
           hth_work_fail(w, HEARTH_BAD_ARGUMENT, "'%.40s' is no time: 2024-07-26T12:30:00 is one", now);
}

typedef struct owned {
    hearth_rendering rendering;
    hth_work work;
} owned;

/* The runs of the text, which may be none. */
static bool make_segments(hth_work *w, const hth_str *s, hearth_rendering *r) {
    size_t n = s->n_runs == 0 ? s->size > 0 : s->n_runs;
    hearth_template_segment *segments = hth_work_take_array(w, n, sizeof *segments);
    if (segments == NULL) return false;
    for (size_t i = 0; i < n; i++)
        segments[i] = (hearth_template_segment){
            .begin = i == 0 ? 0 : segments[i - 1].end,
            .end = s->n_runs == 0 ? s->size : s->runs[i].end,
            .content = s->n_runs == 0 ? s->content : s->runs[i].content,
        };
    r->segments = segments;
    r->n_segments = n;
    return true;
}

static bool render(owned *o, const hth_code *code, const char *json, size_t size,
                   const hearth_template_options *options) {
    hth_work *w = &o->work;
    hth_run_inputs inputs = {.max_output = options->max_output != 0 ? options->max_output : RENDER_OUTPUT};
    hth_request request;
    const hth_str *text;
    if (!set_time(w, options->now, &inputs.now) || !hth_request_read(w, code, json, size, options, &request))
        return false;
    uint32_t marks = options->marks < 0 ? 0 : options->marks == 0 ? RENDER_MARKS : (uint32_t)options->marks;
    hearth_rendering *r = &o->rendering;
    if (!hth_render_marked(w, code, &request, &inputs, marks, &text, r)) return false;
    r->text = text->data;
    r->size = text->size;
    r->n_messages = request.messages->count;
    return make_segments(w, text, r);
}

hearth_status hearth_template_render(const hearth_template *t, const char *json, size_t size,
                                     const hearth_template_options *options, hearth_rendering **out,
                                     hearth_error *err) {
    static const hearth_template_options defaults;
    if (options == NULL) options = &defaults;
    *out = NULL;
    owned *o = calloc(1, sizeof *o);
    if (o == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a rendering");
    uint64_t bytes = options->max_memory != 0 ? options->max_memory : RENDER_BYTES;
    hth_work_begin(&o->work, bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX,
                   options->max_steps != 0 ? options->max_steps : RENDER_STEPS,
                   options->max_ms != 0 ? options->max_ms : RENDER_MS);
    hearth_rendering *r = &o->rendering;
    if (render(o, &t->code, json, size, options)) {
        *out = r;
        return HEARTH_OK;
    }
    hearth_status status = hth_work_report(&o->work, err);
    hearth_rendering_free(&r);
    return status;
}

void hearth_rendering_free(hearth_rendering **rendering) {
    if (*rendering == NULL) return;
    owned *o = (owned *)(void *)*rendering; /* its first member */
    hth_work_end(&o->work);
    free(o);
    *rendering = NULL;
}
