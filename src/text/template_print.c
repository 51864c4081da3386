/* How Python prints values: as text, and inside lists. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_value.h"
#include "text/unicode.h"

void hth_real_text(char text[32], double x) {
    if (isnan(x) || isinf(x)) {
        snprintf(text, 32, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    /* As d.ddde±dd with the fewest digits that read back. The process's locale may have another point. */
    char digits[40];
    for (int n = 0; n < 17; n++) {
        snprintf(digits, sizeof digits, "%.*e", n, x);
        if (strtod(digits, NULL) == x) break;
    }
    char plain[24];
    int count = 0, exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    for (const char *p = digits; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') plain[count++] = *p;
    while (count > 1 && plain[count - 1] == '0') count--;
    int at = 0;
    if (digits[0] == '-') text[at++] = '-';
    if (exponent < -4 || exponent >= 16) {
        text[at++] = plain[0];
        if (count > 1) text[at++] = '.';
        for (int i = 1; i < count; i++) text[at++] = plain[i];
        snprintf(text + at, (size_t)(32 - at), "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        text[at++] = '0';
        text[at++] = '.';
        for (int i = -1; i > exponent; i--) text[at++] = '0';
        for (int i = 0; i < count; i++) text[at++] = plain[i];
    } else {
        for (int i = 0; i < count || i <= exponent; i++) {
            if (i == exponent + 1) text[at++] = '.';
            text[at++] = i < count ? plain[i] : '0';
        }
        if (count <= exponent + 1) {
            text[at++] = '.';
            text[at++] = '0';
        }
    }
    text[at] = 0;
}

/* Python writes these as escapes. */
static bool is_printable(uint32_t c) {
    switch (hth_category_of(c)) {
    case HTH_CC:
    case HTH_CF:
    case HTH_CS:
    case HTH_CO:
    case HTH_CN:
    case HTH_ZL:
    case HTH_ZP: return false;
    case HTH_ZS: return c == ' ';
    default: return true;
    }
}

static bool repr_char(hth_build *b, uint32_t c, uint32_t quote, bool content) {
    char text[16];
    if (c == quote || c == '\\') snprintf(text, sizeof text, "\\%c", (int)c);
    else if (c == '\n') snprintf(text, sizeof text, "\\n");
    else if (c == '\r') snprintf(text, sizeof text, "\\r");
    else if (c == '\t') snprintf(text, sizeof text, "\\t");
    else if (is_printable(c)) return hth_build_char(b, c, content);
    else if (c < 0x100) snprintf(text, sizeof text, "\\x%02" PRIx32, c);
    else if (c < 0x10000) snprintf(text, sizeof text, "\\u%04" PRIx32, c);
    else snprintf(text, sizeof text, "\\U%08" PRIx32, c);
    return hth_build_bytes(b, text, strlen(text), content);
}

static bool repr_string(hth_build *b, const hth_str *s) {
    bool single = memchr(s->data, '\'', s->size) != NULL, twice = memchr(s->data, '"', s->size) != NULL;
    uint32_t quote = single && !twice ? '"' : '\'', c;
    if (s->markup) hth_build_text(b, "Markup(");
    hth_build_char(b, quote, s->content);
    for (size_t i = 0; i < s->size;) {
        int n = hth_utf8_decode(s->data + i, s->size - i, &c);
        if (n == 0 || !repr_char(b, c, quote, s->content)) return false;
        i += (size_t)n;
    }
    return hth_build_char(b, quote, s->content) && (!s->markup || hth_build_text(b, ")"));
}

/* One that holds no others. */
static bool repr_plain(hth_build *b, hth_value v) {
    char text[96];
    switch (v.kind) {
    case HTH_UNDEFINED: return hth_build_text(b, "Undefined");
    case HTH_NONE: return hth_build_text(b, "None");
    case HTH_BOOL: return hth_build_text(b, v.truth ? "True" : "False");
    case HTH_INT: snprintf(text, sizeof text, "%" PRId64, v.integer); break;
    case HTH_FLOAT: hth_real_text(text, v.real); break;
    case HTH_STRING: return repr_string(b, v.str);
    case HTH_RANGE: {
        int n = snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64, v.range->start, v.range->stop);
        if (v.range->step != 1) n += snprintf(text + n, sizeof text - (size_t)n, ", %" PRId64, v.range->step);
        snprintf(text + n, sizeof text - (size_t)n, ")");
        break;
    }
    default: return hth_work_fail(b->work, HEARTH_UNSUPPORTED, "printing a %s is not supported", hth_kind_name(v));
    }
    return hth_build_text(b, text);
}

typedef struct level {
    hth_value v;
    uint32_t at;
} level;

static const char *opening(hth_value v) {
    static const char *const lists[] = {"[", "(", "dict_keys([", "dict_values([", "dict_items([", "["};
    return v.kind == HTH_DICT ? "{" : lists[v.list->kind];
}

static const char *closing(hth_value v) {
    static const char *const lists[] = {"]", ")", "])", "])", "])", "]"};
    if (v.kind == HTH_DICT) return "}";
    return v.list->kind == HTH_A_TUPLE && v.list->count == 1 ? ",)" : lists[v.list->kind];
}

static uint32_t count_of(hth_value v) {
    return v.kind == HTH_DICT ? v.dict->count : v.list->count;
}

bool hth_value_repr(hth_build *b, hth_value v) {
    hth_work *w = b->work;
    if (v.kind != HTH_LIST && v.kind != HTH_DICT) return repr_plain(b, v);
    level *stack = NULL;
    uint32_t depth = 0, capacity = 0;
    if (!HTH_WORK_ROOM(w, stack, depth, capacity)) return false;
    stack[depth++] = (level){.v = v};
    hth_build_text(b, opening(v));
    while (depth > 0) {
        level *l = &stack[depth - 1];
        if (!hth_work_charge(w, 1)) return false;
        if (l->at == count_of(l->v)) {
            hth_build_text(b, closing(l->v));
            depth--;
            continue;
        }
        if (l->at > 0) hth_build_text(b, ", ");
        if (l->v.kind == HTH_DICT) {
            repr_plain(b, l->v.dict->entries[l->at].key);
            hth_build_text(b, ": ");
        }
        hth_value inner = l->v.kind == HTH_DICT ? l->v.dict->entries[l->at].value : l->v.list->items[l->at];
        l->at++;
        if (inner.kind != HTH_LIST && inner.kind != HTH_DICT) {
            if (!repr_plain(b, inner)) return false;
            continue;
        }
        if (depth == HTH_MAX_NESTING)
            return hth_work_fail(w, HEARTH_OVER_BUDGET, "values are nested more than %d deep", HTH_MAX_NESTING);
        if (!HTH_WORK_ROOM(w, stack, depth, capacity)) return false;
        hth_build_text(b, opening(inner));
        stack[depth++] = (level){.v = inner};
    }
    return w->status == HEARTH_OK;
}

bool hth_value_print(hth_build *b, hth_value v) {
    if (v.kind == HTH_STRING) return hth_build_str(b, v.str);
    if (v.kind == HTH_UNDEFINED) return b->work->status == HEARTH_OK;
    return hth_value_repr(b, v);
}
