/* Strings of code points that know where their bytes came from. */
#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_value.h"

/* A place that strings grow in: what was made by appending shares its front with what it was made from. Only the string
 * that ends where the place is filled can be appended to in it. */
struct hth_tail {
    char *data;
    size_t used, capacity;
    hth_run *runs;
    uint32_t n_runs, run_capacity;
};

enum {
    MAX_STRING = INT32_MAX,
    GROWS = 256 /* bytes: longer results of appending get room to grow */
};

static bool too_long(hth_work *w) {
    return hth_work_fail(w, HEARTH_OVER_BUDGET, "it makes a string of more than %d bytes", MAX_STRING);
}

static size_t count_chars(const char *data, size_t size) {
    size_t chars = 0;
    for (size_t i = 0; i < size; i++) chars += ((unsigned char)data[i] & 0xC0) != 0x80;
    return chars;
}

static hth_str *new_str(hth_work *w, const char *data, size_t size, size_t chars) {
    if (size > MAX_STRING) {
        too_long(w);
        return NULL;
    }
    hth_str *s = HTH_WORK_NEW(w, hth_str);
    if (s != NULL) *s = (hth_str){.data = data, .size = (uint32_t)size, .chars = (uint32_t)chars};
    return s;
}

const hth_str *hth_str_new(hth_work *w, const char *data, size_t size, bool content) {
    char *copy = hth_work_take(w, size);
    if (copy == NULL) return NULL;
    if (size > 0) memcpy(copy, data, size);
    hth_str *s = new_str(w, copy, size, count_chars(data, size));
    if (s != NULL) s->content = content && size > 0;
    return s;
}

const hth_str *hth_str_text(hth_work *w, const char *text) {
    return hth_str_new(w, text, strlen(text), false);
}

const hth_str *hth_str_as_markup(hth_work *w, const hth_str *s, bool markup) {
    if (s == NULL || s->markup == markup) return s;
    hth_str *copy = HTH_WORK_NEW(w, hth_str);
    if (copy == NULL) return NULL;
    *copy = *s;
    copy->markup = markup;
    return copy;
}

/* The runs of one string, put behind others that end at `base`. */
static uint32_t copy_runs(hth_run *out, uint32_t n, const hth_str *s, uint32_t from, uint32_t to, uint32_t base) {
    for (uint32_t i = 0; i < (s->n_runs == 0 ? 1 : s->n_runs); i++) {
        uint32_t end = s->n_runs == 0 || s->runs[i].end > to ? to : s->runs[i].end;
        bool content = s->n_runs == 0 ? s->content : s->runs[i].content;
        if (end <= from) continue;
        if (n > 0 && out[n - 1].content == content) out[n - 1].end = base + end - from;
        else out[n++] = (hth_run){.end = base + end - from, .content = content};
        if (end == to) break;
    }
    return n;
}

static uint32_t run_count(const hth_str *s) {
    return s->n_runs == 0 ? 1 : s->n_runs;
}

/* A place for a string that will grow, with a in it. */
static hth_tail *new_tail(hth_work *w, const hth_str *a, const hth_str *b) {
    hth_tail *tail = HTH_WORK_NEW(w, hth_tail);
    size_t size = (size_t)a->size + b->size;
    uint32_t runs = run_count(a) + run_count(b);
    if (tail == NULL) return NULL;
    *tail = (hth_tail){.capacity = size * 2, .run_capacity = runs * 2, .used = a->size};
    tail->data = hth_work_take(w, tail->capacity);
    tail->runs = hth_work_take_array(w, tail->run_capacity, sizeof *tail->runs);
    if (tail->data == NULL || tail->runs == NULL) return NULL;
    memcpy(tail->data, a->data, a->size);
    tail->n_runs = copy_runs(tail->runs, 0, a, 0, a->size, 0);
    return tail;
}

static bool can_grow(const hth_str *a, const hth_str *b) {
    const hth_tail *t = a->tail;
    return t != NULL && a->data + a->size == t->data + t->used && b->size <= t->capacity - t->used &&
           run_count(b) <= t->run_capacity - t->n_runs;
}

const hth_str *hth_str_join(hth_work *w, const hth_str *a, const hth_str *b) {
    if (b->size == 0) return hth_str_as_markup(w, a, false);
    if (a->size == 0) return hth_str_as_markup(w, b, false);
    size_t size = (size_t)a->size + b->size;
    if (size > MAX_STRING) {
        too_long(w);
        return NULL;
    }
    if (size < GROWS) {
        hth_build build = {.work = w};
        hth_build_str(&build, a);
        hth_build_str(&build, b);
        return hth_build_end(&build);
    }
    hth_tail *tail = can_grow(a, b) ? a->tail : new_tail(w, a, b);
    hth_str *s = new_str(w, NULL, size, (size_t)a->chars + b->chars);
    if (tail == NULL || s == NULL || !hth_work_charge(w, 1 + b->size / 64)) return NULL;
    assert(tail->used == a->size); /* only strings that begin where the place does know it */
    memcpy(tail->data + tail->used, b->data, b->size);
    tail->n_runs = copy_runs(tail->runs, tail->n_runs, b, 0, b->size, (uint32_t)tail->used);
    tail->used += b->size;
    s->data = tail->data;
    s->tail = tail;
    s->content = a->content || b->content;
    s->runs = tail->runs;
    s->n_runs = tail->n_runs;
    return s;
}

size_t hth_str_offset(const hth_str *s, size_t at) {
    if (at >= s->chars) return s->size;
    if (s->chars == s->size) return at;
    size_t i = 0;
    for (; at > 0; at--) {
        i++;
        while (i < s->size && ((unsigned char)s->data[i] & 0xC0) == 0x80) i++;
    }
    return i;
}

const hth_str *hth_str_cut(hth_work *w, const hth_str *s, size_t from, size_t to) {
    if (from == 0 && to == s->size) return s;
    if (s->n_runs != 0) {
        hth_build build = {.work = w, .markup = s->markup};
        hth_build_cut(&build, s, from, to);
        return hth_build_end(&build);
    }
    if (!hth_work_charge(w, 1 + (to - from) / 64)) return NULL;
    size_t chars = s->chars == s->size ? to - from : count_chars(s->data + from, to - from);
    hth_str *cut = new_str(w, s->data + from, to - from, chars);
    if (cut == NULL) return NULL;
    cut->content = s->content && to > from;
    cut->markup = s->markup;
    return cut;
}

bool hth_str_equal(const hth_str *a, const hth_str *b) {
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

bool hth_str_is(const hth_str *s, const char *text) {
    return strlen(text) == s->size && memcmp(s->data, text, s->size) == 0;
}

int hth_str_compare(const hth_str *a, const hth_str *b) {
    int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    if (order != 0) return order < 0 ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

bool hth_str_content_at(const hth_str *s, size_t at) {
    if (s->n_runs == 0) return s->content;
    uint32_t low = 0, high = s->n_runs - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->runs[middle].end <= at) low = middle + 1;
        else high = middle;
    }
    return s->runs[low].content;
}

/* ---- building ---- */

static bool make_room(hth_build *b, size_t size) {
    size_t limit = b->max_size != 0 ? b->max_size : MAX_STRING;
    if (b->work->status != HEARTH_OK) return false;
    if (size > limit - b->size)
        return hth_work_fail(b->work, HEARTH_OVER_BUDGET, "it makes a text of more than the limit of %zu bytes", limit);
    if (size <= b->capacity - b->size) return true;
    size_t capacity = b->capacity < 32 ? 64 : b->capacity * 2;
    while (capacity - b->size < size) capacity *= 2;
    char *data = hth_work_grow(b->work, b->data, b->capacity, capacity);
    if (data == NULL) return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

static bool add_run(hth_build *b, size_t size, bool content) {
    if (b->n_runs > 0 && b->runs[b->n_runs - 1].content == content) {
        b->runs[b->n_runs - 1].end += (uint32_t)size;
        return true;
    }
    if (!HTH_WORK_ROOM(b->work, b->runs, b->n_runs, b->run_capacity)) return false;
    b->runs[b->n_runs++] = (hth_run){.end = (uint32_t)(b->size + size), .content = content};
    return true;
}

bool hth_build_bytes(hth_build *b, const char *data, size_t size, bool content) {
    if (size == 0) return b->work->status == HEARTH_OK;
    if (!hth_work_charge(b->work, 1 + size / 64) || !make_room(b, size) || !add_run(b, size, content)) return false;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    b->chars += count_chars(data, size);
    return true;
}

bool hth_build_text(hth_build *b, const char *text) {
    return hth_build_bytes(b, text, strlen(text), false);
}

bool hth_build_cut(hth_build *b, const hth_str *s, size_t from, size_t to) {
    if (s->n_runs == 0) return hth_build_bytes(b, s->data + from, to - from, s->content);
    for (uint32_t i = 0; i < s->n_runs && from < to; i++) {
        size_t end = s->runs[i].end < to ? s->runs[i].end : to;
        if (end <= from) continue;
        if (!hth_build_bytes(b, s->data + from, end - from, s->runs[i].content)) return false;
        from = end;
    }
    return b->work->status == HEARTH_OK;
}

bool hth_build_str(hth_build *b, const hth_str *s) {
    return hth_build_cut(b, s, 0, s->size);
}

bool hth_build_char(hth_build *b, uint32_t c, bool content) {
    char utf8[4];
    size_t n = 0;
    if (c < 0x80) {
        utf8[n++] = (char)c;
    } else {
        if (c < 0x800) {
            utf8[n++] = (char)(0xC0 | c >> 6);
        } else {
            if (c < 0x10000) {
                utf8[n++] = (char)(0xE0 | c >> 12);
            } else {
                utf8[n++] = (char)(0xF0 | c >> 18);
                utf8[n++] = (char)(0x80 | (c >> 12 & 0x3F));
            }
            utf8[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        }
        utf8[n++] = (char)(0x80 | (c & 0x3F));
    }
    return hth_build_bytes(b, utf8, n, content);
}

const hth_str *hth_build_end(hth_build *b) {
    if (b->work->status != HEARTH_OK) return NULL;
    hth_str *s = new_str(b->work, b->data != NULL ? b->data : "", b->size, b->chars);
    if (s == NULL) return NULL;
    s->markup = b->markup;
    if (b->n_runs > 1) {
        s->runs = b->runs;
        s->n_runs = b->n_runs;
        s->content = true;
    } else {
        s->content = b->n_runs == 1 && b->runs[0].content;
    }
    return s;
}
