/* Writing JSON as Python's json.dumps does, with the settings of transformers' tojson. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_builtins.h"
#include "text/template_operate.h"

typedef struct level {
    hth_value v;
    uint32_t at;
    hth_entry *sorted; /* of a dict whose keys are sorted */
} level;

static bool write_char(hth_build *b, uint32_t c, bool ascii, bool content) {
    static const char from[] = "\"\\\n\r\t\b\f", *const to[] = {"\\\"", "\\\\", "\\n", "\\r", "\\t", "\\b", "\\f"};
    char text[16];
    const char *known = c != 0 && c < 0x80 ? strchr(from, (int)c) : NULL;
    if (known != NULL) return hth_build_bytes(b, to[known - from], 2, content);
    if (c >= 0x20 && !(ascii && c > 0x7E)) return hth_build_char(b, c, content);
    if (c < 0x10000) {
        snprintf(text, sizeof text, "\\u%04" PRIx32, c);
    } else {
        uint32_t high = 0xD800 + ((c - 0x10000) >> 10), low = 0xDC00 + ((c - 0x10000) & 0x3FF);
        snprintf(text, sizeof text, "\\u%04" PRIx32 "\\u%04" PRIx32, high, low);
    }
    return hth_build_bytes(b, text, strlen(text), content);
}

/* Whether a byte stands for itself. */
static bool is_plain(unsigned char c, bool ascii) {
    return c >= 0x20 && c != '"' && c != '\\' && !(ascii && c > 0x7E);
}

static bool write_string(hth_build *b, const hth_str *s, bool ascii) {
    hth_build_bytes(b, "\"", 1, s->content);
    for (size_t at = 0, end; at < s->size; at = end) {
        for (end = at; end < s->size && is_plain((unsigned char)s->data[end], ascii);) end++;
        if (!hth_build_cut(b, s, at, end)) return false;
        if (end == s->size) break;
        uint32_t c = 0;
        int n = hth_utf8_decode(s->data + end, s->size - end, &c);
        if (!write_char(b, c, ascii, hth_str_content_at(s, end))) return false;
        end += n > 0 ? (size_t)n : 1;
    }
    return hth_build_bytes(b, "\"", 1, s->content);
}

static bool write_plain(hth_build *b, hth_value v, const hth_json_style *style) {
    char text[40];
    switch (v.kind) {
    case HTH_NONE: return hth_build_text(b, "null");
    case HTH_BOOL: return hth_build_text(b, v.truth ? "true" : "false");
    case HTH_INT: snprintf(text, sizeof text, "%" PRId64, v.integer); return hth_build_text(b, text);
    case HTH_FLOAT:
        hth_real_text(text, v.real);
        return hth_build_text(b, isnan(v.real) ? "NaN" : !isinf(v.real) ? text : v.real < 0 ? "-Infinity" : "Infinity");
    case HTH_STRING: return write_string(b, v.str, style->ascii);
    default:
        return hth_use(b->work, v) &&
               hth_work_fail(b->work, HEARTH_BAD_ARGUMENT, "tojson: a %s cannot be written as JSON", hth_kind_name(v));
    }
}

static bool write_key(hth_build *b, hth_value key, const hth_json_style *style) {
    if (key.kind == HTH_STRING) return write_string(b, key.str, style->ascii);
    hth_build_text(b, "\"");
    write_plain(b, key, style);
    return hth_build_text(b, "\"");
}

static bool write_between(hth_build *b, const hth_json_style *style, uint32_t depth) {
    if (style->indent == NULL) return b->work->status == HEARTH_OK;
    hth_build_text(b, "\n");
    for (uint32_t i = 0; i < depth; i++)
        if (!hth_build_str(b, style->indent)) return false;
    return b->work->status == HEARTH_OK;
}

static bool is_container(hth_value v) {
    return v.kind == HTH_LIST || v.kind == HTH_DICT;
}

static uint32_t count_of(hth_value v) {
    return v.kind == HTH_DICT ? v.dict->count : v.list->count;
}

/* A dict's entries in the order of their keys. */
static hth_entry *sort_entries(hth_work *w, const hth_dict *d) {
    hth_items order = {.kind = HTH_A_LIST, .count = d->count};
    hth_value *keys = hth_work_take_array(w, d->count, sizeof *keys);
    hth_entry *sorted = hth_work_take_array(w, d->count, sizeof *sorted);
    order.items = hth_work_take_array(w, d->count, sizeof *order.items);
    if (keys == NULL || sorted == NULL || order.items == NULL) return NULL;
    for (uint32_t i = 0; i < d->count; i++) {
        keys[i] = d->entries[i].key;
        order.items[i] = hth_int(i);
    }
    if (!hth_sorted(w, &order, keys, false)) return NULL;
    for (uint32_t i = 0; i < d->count; i++) sorted[i] = d->entries[order.items[i].integer];
    return sorted;
}

static bool begin(hth_build *b, level *l, hth_value v, const hth_json_style *style) {
    *l = (level){.v = v};
    if (v.kind == HTH_DICT && style->sort && (l->sorted = sort_entries(b->work, v.dict)) == NULL) return false;
    return hth_build_text(b, v.kind == HTH_DICT ? "{" : "[");
}

bool hth_json_write(hth_build *b, hth_value v, const hth_json_style *style) {
    hth_work *w = b->work;
    level *stack = NULL;
    uint32_t depth = 0, capacity = 0;
    if (!is_container(v)) return write_plain(b, v, style);
    if (!HTH_WORK_ROOM(w, stack, depth, capacity) || !begin(b, &stack[depth++], v, style)) return false;
    while (depth > 0) {
        level *l = &stack[depth - 1];
        if (!hth_work_charge(w, 1)) return false;
        if (l->at == count_of(l->v)) {
            if (l->at > 0) write_between(b, style, depth - 1);
            hth_build_text(b, l->v.kind == HTH_DICT ? "}" : "]");
            depth--;
            continue;
        }
        if (l->at > 0) {
            if (style->comma != NULL) hth_build_str(b, style->comma);
            else hth_build_text(b, style->indent != NULL ? "," : ", ");
        }
        write_between(b, style, depth);
        hth_value inner;
        if (l->v.kind == HTH_DICT) {
            const hth_entry *e = l->sorted != NULL ? &l->sorted[l->at] : &l->v.dict->entries[l->at];
            inner = e->value;
            write_key(b, e->key, style);
            if (style->colon != NULL) hth_build_str(b, style->colon);
            else hth_build_text(b, ": ");
        } else {
            inner = l->v.list->items[l->at];
        }
        l->at++;
        if (!is_container(inner)) {
            if (!write_plain(b, inner, style)) return false;
            continue;
        }
        if (depth == HTH_MAX_NESTING)
            return hth_work_fail(w, HEARTH_OVER_BUDGET, "values are nested more than %d deep", HTH_MAX_NESTING);
        if (!HTH_WORK_ROOM(w, stack, depth, capacity) || !begin(b, &stack[depth++], inner, style)) return false;
    }
    return w->status == HEARTH_OK;
}
