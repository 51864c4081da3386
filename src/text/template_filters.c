/* Filters of text and numbers, and the table of all. */
#include "text/template_filters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_lexer.h"
#include "text/template_number.h"
#include "text/template_text.h"
#include "text/unicode.h"

/* ---- numbers ---- */

static bool filter_abs(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    double x;
    (void)a;
    if (!hth_value_number(v, &x))
        return hth_use(env->work, v) && hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "%s takes a number, not a %s",
                                                      call->what, hth_kind_name(v));
    *out = v.kind == HTH_BOOL ? hth_int(v.truth) : v;
    return x >= 0 || hth_negate(env->work, v, true, out);
}

/* Text of a number in Python's way: blanks around it, underscores between digits. */
static bool number_text(const hth_str *s, char out[64], bool real) {
    size_t from = 0, to = s->size, n = 0;
    while (from < to && strchr(" \t\n\r\f\v", s->data[from]) != NULL) from++;
    while (to > from && strchr(" \t\n\r\f\v", s->data[to - 1]) != NULL) to--;
    if (to - from >= 64 || to == from) return false;
    bool digit = false;
    for (size_t i = from; i < to; i++) {
        char c = s->data[i];
        bool sign = c == '+' || c == '-', is_digit = c >= '0' && c <= '9';
        bool after_e = i > from && (s->data[i - 1] | 0x20) == 'e';
        if (c == '_' && digit && i + 1 < to && s->data[i + 1] >= '0' && s->data[i + 1] <= '9') continue;
        if (!is_digit && !(sign && (i == from || (real && after_e))) && !(real && (c == '.' || (c | 0x20) == 'e')))
            return false;
        digit = is_digit;
        out[n++] = c;
    }
    out[n] = 0;
    return true;
}

static bool text_real(const hth_str *s, double *out) {
    char text[64];
    if (!number_text(s, text, true)) return false;
    /* One point, digits, one exponent with digits behind it. */
    const char *p = text + strspn(text, "+-");
    size_t whole = strspn(p, "0123456789"), part = 0;
    p += whole;
    if (*p == '.') {
        part = strspn(p + 1, "0123456789");
        p += 1 + part;
    }
    if (whole + part == 0) return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + strspn(p + 1, "+-");
        if (*p == 0) return false;
        p += strspn(p, "0123456789");
    }
    return *p == 0 && hth_read_real(text, strlen(text), out);
}

static bool real_to_int(hth_work *w, double x, hth_value *out) {
    if (!(fabs(x) < 0x1p63)) return hth_work_fail(w, HEARTH_UNSUPPORTED, "a number is too large for an integer");
    *out = hth_int((int64_t)x);
    return true;
}

static bool text_int(hth_work *w, const hth_str *s, int64_t base, hth_value *out, bool *ok) {
    char text[64];
    int64_t n = 0;
    *ok = false;
    if (base == 10) {
        if (!number_text(s, text, false)) return true;
        const char *p = text + (text[0] == '-' || text[0] == '+');
        if (*p == 0) return true;
        for (; *p != 0; p++) {
            if (__builtin_mul_overflow(n, (int64_t)10, &n) || __builtin_sub_overflow(n, (int64_t)(*p - '0'), &n))
                return hth_work_fail(w, HEARTH_UNSUPPORTED, "an integer of more than 64 bits");
        }
        if (text[0] != '-' && __builtin_sub_overflow((int64_t)0, n, &n))
            return hth_work_fail(w, HEARTH_UNSUPPORTED, "an integer of more than 64 bits");
    } else {
        if (base < 2 || base > 36 || s->size == 0 || s->size > 20) return true;
        memcpy(text, s->data, s->size);
        text[s->size] = 0;
        char *end;
        n = (int64_t)strtoll(text, &end, (int)base);
        if (*end != 0 || end == text) return true;
    }
    *ok = true;
    *out = hth_int(n);
    return true;
}

static bool filter_int(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t base;
    bool ok = false;
    double x;
    if (!hth_use(env->work, v) || !hth_take_int(env->work, call, a[1], 10, &base)) return false;
    if (v.kind == HTH_INT || v.kind == HTH_BOOL) {
        *out = hth_int(v.kind == HTH_INT ? v.integer : v.truth);
        return true;
    }
    if (v.kind == HTH_FLOAT && isfinite(v.real)) return real_to_int(env->work, v.real, out);
    if (v.kind == HTH_STRING && !text_int(env->work, v.str, base, out, &ok)) return false;
    if (ok) return true;
    if (v.kind == HTH_STRING && text_real(v.str, &x) && isfinite(x)) return real_to_int(env->work, x, out);
    *out = hth_given(a[0]) ? a[0] : hth_int(0);
    return true;
}

static bool filter_float(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    double x;
    (void)call;
    if (!hth_use(env->work, v)) return false;
    if (hth_value_number(v, &x) || (v.kind == HTH_STRING && text_real(v.str, &x))) *out = hth_real(x);
    else *out = hth_given(a[0]) ? a[0] : hth_real(0);
    return true;
}

static bool filter_round(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    int64_t places;
    double x, scale = 1;
    char text[400];
    if (!hth_take_int(w, call, a[0], 0, &places)) return false;
    bool common = !hth_given(a[1]) || (a[1].kind == HTH_STRING && hth_str_is(a[1].str, "common"));
    bool ceiling = a[1].kind == HTH_STRING && hth_str_is(a[1].str, "ceil");
    bool floored = a[1].kind == HTH_STRING && hth_str_is(a[1].str, "floor");
    if (!hth_value_number(v, &x))
        return hth_use(w, v) &&
               hth_work_fail(w, HEARTH_BAD_ARGUMENT, "round takes a number, not a %s", hth_kind_name(v));
    if (!common && !ceiling && !floored) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "round: unknown method");
    if (places < 0 || places > 30) return hth_work_fail(w, HEARTH_UNSUPPORTED, "round: places must be 0 to 30");
    *out = v;
    if (common && v.kind != HTH_FLOAT) {
        if (v.kind == HTH_BOOL) *out = hth_int(v.truth);
        return true;
    }
    for (int64_t i = 0; i < places; i++) scale *= 10;
    if (!common) {
        x = (ceiling ? ceil(x * scale) : floor(x * scale)) / scale;
    } else if (places == 0) {
        x = nearbyint(x);
    } else if (isfinite(x) && fabs(x) < 1e300) {
        /* The decimal nearest to the double's exact value, and the double nearest to that. */
        int n = snprintf(text, sizeof text, "%.*f", (int)places, x);
        for (int i = 0; i < n; i++)
            if (text[i] == ',') text[i] = '.';
        if (!hth_read_real(text, (size_t)n, &x)) return hth_work_fail(w, HEARTH_NO_MEMORY, "no memory to round");
    }
    *out = hth_real(x);
    return true;
}

/* ---- text ---- */

static bool with_case(hth_env *env, hth_value v, hth_case how, hth_value *out) {
    const hth_str *s = hth_text_of(env->work, v);
    if (s == NULL) return false;
    return hth_out_str(hth_str_as_markup(env->work, hth_str_case(env->work, s, how), s->markup), out);
}

static bool filter_upper(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return with_case(env, v, HTH_UPPER, out);
}

static bool filter_lower(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return with_case(env, v, HTH_LOWER, out);
}

static bool filter_capitalize(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return with_case(env, v, HTH_CAPITALIZE, out);
}

/* Each word's first character in capitals, the rest small; words begin behind white space, - and open brackets. */
static bool filter_title(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    hth_work *w = env->work;
    const hth_str *s = hth_text_of(w, v);
    const hth_str *upper = s == NULL ? NULL : hth_str_case(w, s, HTH_UPPER);
    hth_build b = {.work = w};
    if (upper == NULL) return false;
    for (size_t at = 0; at < s->size;) {
        size_t end = at;
        while (end < s->size && strchr(" \t\n\r\f\v-({[<", s->data[end]) != NULL && s->data[end] != 0) end++;
        hth_build_cut(&b, s, at, end);
        size_t first = end;
        if (end < s->size) end++;
        while (end < s->size && ((unsigned char)s->data[end] & 0xC0) == 0x80) end++;
        size_t rest = end;
        while (end < s->size && (strchr(" \t\n\r\f\v-({[<", s->data[end]) == NULL || s->data[end] == 0)) end++;
        const hth_str *one = hth_str_cut(w, s, first, rest), *others = hth_str_cut(w, s, rest, end);
        if (one == NULL || others == NULL) return false;
        one = hth_str_case(w, one, HTH_UPPER);
        others = hth_str_case(w, others, HTH_LOWER);
        if (one == NULL || others == NULL || !hth_build_str(&b, one) || !hth_build_str(&b, others)) return false;
        at = end;
    }
    return hth_out_str(hth_build_end(&b), out);
}

static bool filter_string(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_text_of(env->work, v), out);
}

static bool filter_trim(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    const hth_str *s = hth_text_of(env->work, v), *chars = NULL;
    if (s == NULL) return false;
    if (hth_given(a[0]) && a[0].kind != HTH_NONE && !hth_take_str(env->work, call, a[0], &chars)) return false;
    return hth_out_str(hth_str_strip(env->work, s, chars, HTH_LEFT | HTH_RIGHT), out);
}

static bool filter_replace(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    int64_t max;
    const hth_str *s = hth_text_of(w, v), *from = s == NULL ? NULL : hth_text_of(w, a[0]);
    const hth_str *to = from == NULL ? NULL : hth_text_of(w, a[1]);
    if (to == NULL || !hth_take_int(w, call, a[2], -1, &max)) return false;
    return hth_out_str(hth_str_as_markup(w, hth_str_replace(w, s, from, to, max), false), out);
}

static bool filter_escape(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    const hth_str *s = hth_text_of(env->work, v);
    return s != NULL && hth_out_str(hth_str_escape(env->work, s), out);
}

static bool filter_forceescape(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    const hth_str *s = hth_str_as_markup(env->work, hth_text_of(env->work, v), false);
    return s != NULL && hth_out_str(hth_str_escape(env->work, s), out);
}

static bool filter_indent(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    const hth_str *s, *pad = NULL;
    int64_t width = 4;
    if (!hth_take_str(w, call, v, &s)) return false;
    if (a[0].kind == HTH_STRING) pad = a[0].str;
    else if (!hth_take_int(w, call, a[0], 4, &width)) return false;
    hth_value spaces;
    if (pad == NULL && !hth_binary(w, HTH_S_MUL, hth_string_value(hth_str_text(w, " ")), hth_int(width), &spaces))
        return false;
    if (pad == NULL) pad = spaces.str;
    bool first = hth_value_true(a[1]), blank = hth_value_true(a[2]);
    /* A newline at the end begins one more line, which is empty. */
    hth_build b = {.work = w, .markup = s->markup};
    hth_items *lines = hth_str_lines(w, s);
    if (lines == NULL) return false;
    char last = s->size > 0 ? s->data[s->size - 1] : 'x';
    if ((s->size == 0 || last == '\n' || last == '\r') &&
        !hth_items_put(w, lines, hth_string_value(hth_str_text(w, ""))))
        return false;
    if (w->status != HEARTH_OK) return false;
    for (uint32_t i = 0; i < lines->count; i++) {
        const hth_str *line = lines->items[i].str;
        if (i > 0) hth_build_bytes(&b, "\n", 1, s->content);
        if (i == 0 ? first : blank || line->size > 0) hth_build_str(&b, pad);
        if (!hth_build_str(&b, line)) return false;
    }
    return hth_out_str(hth_build_end(&b), out);
}

static bool filter_center(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t width;
    const hth_str *s = hth_text_of(env->work, v);
    if (s == NULL || !hth_take_int(env->work, call, a[0], 80, &width)) return false;
    return hth_out_str(hth_str_pad(env->work, s, width, ' ', HTH_LEFT | HTH_RIGHT), out);
}

static bool filter_truncate(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    int64_t length, leeway;
    const hth_str *s, *end = hth_str_text(w, "...");
    if (!hth_take_str(w, call, v, &s) || end == NULL || !hth_take_int(w, call, a[0], 255, &length) ||
        !hth_take_int(w, call, a[3], 5, &leeway) || (hth_given(a[2]) && !hth_take_str(w, call, a[2], &end)))
        return false;
    if (length < end->chars || leeway < 0)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "truncate: a length shorter than its end");
    if (leeway > INT32_MAX || length > INT32_MAX || s->chars <= length + leeway) return hth_out_str(s, out);
    const hth_str *cut = hth_str_cut(w, s, 0, hth_str_offset(s, (size_t)(length - end->chars)));
    if (cut == NULL) return false;
    if (!hth_value_true(a[1])) {
        hth_str space = {.data = " ", .size = 1, .chars = 1};
        size_t at = hth_str_find(cut, &space, 0, cut->size, true);
        if (at != SIZE_MAX && (cut = hth_str_cut(w, cut, 0, at)) == NULL) return false;
    }
    return hth_out_str(hth_str_join(w, cut, end), out);
}

static bool filter_wordcount(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    const hth_str *s = hth_text_of(env->work, v);
    int64_t n = 0;
    bool in_word = false;
    if (s == NULL || !hth_work_charge(env->work, 1 + s->size / 16)) return false;
    for (size_t at = 0; at < s->size;) {
        uint32_t c = 0;
        at += (size_t)hth_utf8_decode(s->data + at, s->size - at, &c);
        hth_category k = hth_category_of(c);
        bool word = c == '_' || (k >= HTH_LU && k <= HTH_LO) || (k >= HTH_ND && k <= HTH_NO);
        n += word && !in_word;
        in_word = word;
    }
    *out = hth_int(n);
    return true;
}

static bool filter_format(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    const hth_str *s = hth_text_of(env->work, v);
    hth_items values = {.kind = HTH_A_TUPLE, .count = call->count, .items = (hth_value *)(uintptr_t)call->values};
    if (call->n_named > 0) return hth_work_fail(env->work, HEARTH_UNSUPPORTED, "format: values with names");
    return s != NULL && hth_format_percent(env->work, s, hth_list_value(&values), out);
}

/* ---- the rest ---- */

static bool filter_default(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    bool replace = v.kind == HTH_UNDEFINED || (hth_value_true(a[1]) && !hth_value_true(v));
    *out = !replace ? v : hth_given(a[0]) ? a[0] : hth_string_value(hth_str_text(env->work, ""));
    return env->work->status == HEARTH_OK;
}

static bool filter_length(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t n;
    (void)a, (void)call;
    if (!hth_length(env->work, v, &n)) return false;
    *out = hth_int(n);
    return true;
}

static bool filter_safe(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_str_as_markup(env->work, hth_text_of(env->work, v), true), out);
}

static bool filter_attr(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    const hth_str *name;
    return hth_take_str(env->work, call, a[0], &name) && hth_attribute(env->work, v, name, out);
}

static bool filter_tojson(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    hth_json_style style = {.ascii = hth_value_true(a[0]), .sort = hth_value_true(a[3])};
    int64_t width;
    if (a[1].kind == HTH_STRING) {
        style.indent = a[1].str;
    } else if (hth_given(a[1]) && a[1].kind != HTH_NONE) {
        hth_value spaces;
        const hth_str *space = hth_str_text(w, " ");
        if (space == NULL || !hth_take_int(w, call, a[1], 0, &width) ||
            !hth_binary(w, HTH_S_MUL, hth_string_value(space), hth_int(width), &spaces))
            return false;
        style.indent = spaces.str;
    }
    if (a[2].kind == HTH_LIST && a[2].list->count == 2) {
        if (!hth_take_str(w, call, a[2].list->items[0], &style.comma) ||
            !hth_take_str(w, call, a[2].list->items[1], &style.colon))
            return false;
    } else if (hth_given(a[2]) && a[2].kind != HTH_NONE) {
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "tojson: separators are two strings");
    }
    hth_build b = {.work = w};
    if (!hth_json_write(&b, v, &style)) return false;
    /* With any content in it, all of it is: punctuation too says what the request says. */
    if (b.n_runs > 1) b.runs[0] = (hth_run){.end = (uint32_t)b.size, .content = true}, b.n_runs = 1;
    return hth_out_str(hth_build_end(&b), out);
}

#define RAW "*" /* the filter looks at the call itself */

static const struct {
    const char *name, *arguments;
    unsigned required;
    hth_filter *apply;
} filters[] = {
    {"abs", "", 0, filter_abs},
    {"attr", "name", 1, filter_attr},
    {"batch", "linecount fill_with", 1, hth_filter_batch},
    {"capitalize", "", 0, filter_capitalize},
    {"center", "width", 0, filter_center},
    {"count", "", 0, filter_length},
    {"d", "default_value boolean", 0, filter_default},
    {"default", "default_value boolean", 0, filter_default},
    {"dictsort", "case_sensitive by reverse", 0, hth_filter_dictsort},
    {"e", "", 0, filter_escape},
    {"escape", "", 0, filter_escape},
    {"first", "", 0, hth_filter_first},
    {"float", "default", 0, filter_float},
    {"forceescape", "", 0, filter_forceescape},
    {"format", RAW, 0, filter_format},
    {"groupby", "attribute default case_sensitive", 1, hth_filter_groupby},
    {"indent", "width first blank", 0, filter_indent},
    {"int", "default base", 0, filter_int},
    {"items", "", 0, hth_filter_items},
    {"join", "d attribute", 0, hth_filter_join},
    {"last", "", 0, hth_filter_last},
    {"length", "", 0, filter_length},
    {"list", "", 0, hth_filter_list},
    {"lower", "", 0, filter_lower},
    {"map", RAW, 0, hth_filter_map},
    {"max", "case_sensitive attribute", 0, hth_filter_max},
    {"min", "case_sensitive attribute", 0, hth_filter_min},
    {"reject", RAW, 0, hth_filter_reject},
    {"rejectattr", RAW, 0, hth_filter_rejectattr},
    {"replace", "old new count", 2, filter_replace},
    {"reverse", "", 0, hth_filter_reverse},
    {"round", "precision method", 0, filter_round},
    {"safe", "", 0, filter_safe},
    {"select", RAW, 0, hth_filter_select},
    {"selectattr", RAW, 0, hth_filter_selectattr},
    {"slice", "slices fill_with", 1, hth_filter_slice},
    {"sort", "reverse case_sensitive attribute", 0, hth_filter_sort},
    {"string", "", 0, filter_string},
    {"sum", "attribute start", 0, hth_filter_sum},
    {"title", "", 0, filter_title},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, filter_tojson},
    {"trim", "chars", 0, filter_trim},
    {"truncate", "length killwords end leeway", 0, filter_truncate},
    {"unique", "case_sensitive attribute", 0, hth_filter_unique},
    {"upper", "", 0, filter_upper},
    {"wordcount", "", 0, filter_wordcount},
};

enum { MAX_ARGUMENTS = 4 };

int hth_filter_id(const char *name, size_t size) {
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strlen(filters[i].name) == size && memcmp(filters[i].name, name, size) == 0) return (int)i;
    return -1;
}

const char *hth_filter_name(int id) {
    return filters[id].name;
}

bool hth_filter_apply(hth_env *env, int id, hth_value v, const hth_call *call, hth_value *out) {
    hth_value a[MAX_ARGUMENTS];
    bool raw = strcmp(filters[id].arguments, RAW) == 0;
    if (!hth_work_charge(env->work, 1)) return false;
    if (!raw && !hth_arguments(env->work, call, filters[id].arguments, filters[id].required, a)) return false;
    return filters[id].apply(env, v, a, call, out);
}
