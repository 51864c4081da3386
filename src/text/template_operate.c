#include "text/template_operate.h"

#include <math.h>
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_lexer.h"
#include "text/template_loop.h"
#include "text/template_text.h"

hth_value hth_missing(const hth_str *name) {
    return (hth_value){.kind = HTH_UNDEFINED, .str = name};
}

bool hth_use(hth_work *w, hth_value v) {
    if (v.kind != HTH_UNDEFINED) return true;
    if (v.str == NULL) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "an undefined value is used");
    return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "'%.*s' is undefined", (int)(v.str->size < 100 ? v.str->size : 100),
                         v.str->data);
}

const hth_str *hth_text_of(hth_work *w, hth_value v) {
    if (v.kind == HTH_STRING) return v.str;
    hth_build b = {.work = w};
    return hth_value_print(&b, v) ? hth_build_end(&b) : NULL;
}

int64_t hth_range_at(const hth_range *r, int64_t i) {
    return r->start + i * r->step; /* within the range, which fits */
}

/* ---- attributes and items ---- */

static bool find_key(hth_value v, hth_value key, hth_value *out) {
    if (v.kind != HTH_DICT && v.kind != HTH_NAMESPACE) return false;
    hth_value *found = hth_dict_find(v.dict, key);
    if (found != NULL) *out = *found;
    return found != NULL;
}

static bool find_method(hth_work *w, hth_value v, const hth_str *name, hth_value *out) {
    const char *known;
    int id = hth_method_id(v, name, &known);
    if (id < 0) return false;
    hth_method *m = HTH_WORK_NEW(w, hth_method);
    if (m == NULL) return false;
    *m = (hth_method){.self = v, .name = known, .id = id};
    *out = (hth_value){.kind = HTH_METHOD, .method = m};
    return true;
}

bool hth_attribute(hth_work *w, hth_value v, const hth_str *name, hth_value *out) {
    if (!hth_use(w, v)) return false;
    if (v.kind == HTH_LOOP && hth_loop_attribute(w, v.loop, name, out)) return w->status == HEARTH_OK;
    if (find_method(w, v, name, out) || find_key(v, hth_string_value(name), out)) return w->status == HEARTH_OK;
    *out = hth_missing(name);
    return w->status == HEARTH_OK;
}

static bool index_of(hth_value key, int64_t count, int64_t *at) {
    if (key.kind != HTH_INT && key.kind != HTH_BOOL) return false;
    *at = key.kind == HTH_INT ? key.integer : key.truth;
    if (*at < 0) *at += count;
    return *at >= 0 && *at < count;
}

static bool has_index(hth_value v) {
    return v.kind == HTH_LIST && v.list->kind != HTH_A_KEYS && v.list->kind != HTH_A_VALUES &&
           v.list->kind != HTH_AN_ITEMS;
}

bool hth_item(hth_work *w, hth_value v, hth_value key, hth_value *out) {
    int64_t at;
    if (!hth_use(w, v)) return false;
    if (find_key(v, key, out)) return true;
    if (key.kind == HTH_STRING) return hth_attribute(w, v, key.str, out);
    *out = hth_nothing();
    if (has_index(v)) {
        if (index_of(key, v.list->count, &at)) *out = v.list->items[at];
    } else if (v.kind == HTH_RANGE) {
        if (index_of(key, v.range->count, &at)) *out = hth_int(hth_range_at(v.range, at));
    } else if (v.kind == HTH_STRING) {
        if (!index_of(key, v.str->chars, &at)) return true;
        if (v.str->chars != v.str->size && !hth_work_charge(w, v.str->size / 64)) return false;
        size_t from = hth_str_offset(v.str, (size_t)at), to = from + 1;
        while (to < v.str->size && ((unsigned char)v.str->data[to] & 0xC0) == 0x80) to++;
        const hth_str *s = hth_str_cut(w, v.str, from, to);
        if (s == NULL) return false;
        *out = hth_string_value(s);
    }
    return true;
}

bool hth_path(hth_work *w, hth_value v, hth_value path, hth_value *out) {
    if (path.kind == HTH_INT) return hth_item(w, v, path, out);
    if (path.kind != HTH_STRING)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "an attribute's name is a %s", hth_kind_name(path));
    const hth_str *s = path.str;
    for (size_t at = 0;;) {
        const char *dot = memchr(s->data + at, '.', s->size - at);
        size_t end = dot == NULL ? s->size : (size_t)(dot - s->data);
        bool digits = end > at && end - at < 10;
        int64_t n = 0;
        for (size_t i = at; i < end && digits; i++) {
            digits = s->data[i] >= '0' && s->data[i] <= '9';
            n = n * 10 + (s->data[i] - '0');
        }
        const hth_str *part = hth_str_cut(w, s, at, end);
        if (part == NULL || !hth_item(w, v, digits ? hth_int(n) : hth_string_value(part), &v)) return false;
        if (dot == NULL) break;
        at = end + 1;
    }
    *out = v;
    return true;
}

/* ---- slices ---- */

static bool bound_of(hth_work *w, hth_value v, int64_t none, int64_t *out) {
    *out = v.kind == HTH_INT ? v.integer : v.kind == HTH_BOOL ? v.truth : none;
    if (v.kind == HTH_INT || v.kind == HTH_BOOL || v.kind == HTH_NONE) return true;
    return hth_use(w, v) && hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a slice's bound is a %s", hth_kind_name(v));
}

static int64_t clamp(int64_t v, int64_t count, int64_t low, int64_t high) {
    if (v < 0) v = v < -count ? low : v + count;
    return v < low ? low : v > high ? high : v;
}

/* Python's slice of `count` items as start, step and number of items. */
static bool slice_range(hth_work *w, const hth_value bounds[3], int64_t count, hth_range *out) {
    int64_t step, start, stop;
    if (!bound_of(w, bounds[2], 1, &step)) return false;
    if (step == 0) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a slice's step is 0");
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? count - 1 : count;
    if (!bound_of(w, bounds[0], 0, &start) || !bound_of(w, bounds[1], 0, &stop)) return false;
    start = bounds[0].kind == HTH_NONE ? (step < 0 ? high : low) : clamp(start, count, low, high);
    stop = bounds[1].kind == HTH_NONE ? (step < 0 ? low : high) : clamp(stop, count, low, high);
    int64_t distance = step < 0 ? start - stop : stop - start;
    uint64_t stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    int64_t n = distance <= 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / stride) + 1;
    /* A step larger than the whole takes one item at most, so that its multiples are not needed. */
    *out = (hth_range){.start = start, .step = n <= 1 ? 1 : step, .count = n};
    return true;
}

static bool slice_string(hth_work *w, const hth_str *s, const hth_range *r, hth_value *out) {
    const hth_str *result;
    if (!hth_work_charge(w, 1 + s->size / 64)) return false;
    if (r->step == 1) {
        size_t from = hth_str_offset(s, (size_t)r->start), to = hth_str_offset(s, (size_t)(r->start + r->count));
        result = hth_str_cut(w, s, from, r->count == 0 ? from : to);
    } else {
        size_t *offsets = hth_work_take_array(w, (size_t)s->chars + 1, sizeof *offsets), n = 0;
        hth_build b = {.work = w};
        if (offsets == NULL) return false;
        for (size_t i = 0; i < s->size; i++)
            if (((unsigned char)s->data[i] & 0xC0) != 0x80) offsets[n++] = i;
        offsets[n] = s->size;
        for (int64_t i = 0; i < r->count; i++) {
            int64_t at = hth_range_at(r, i);
            if (!hth_build_cut(&b, s, offsets[at], offsets[at + 1])) return false;
        }
        result = hth_build_end(&b);
    }
    if (result == NULL) return false;
    *out = hth_string_value(result);
    return true;
}

bool hth_slice(hth_work *w, hth_value v, const hth_value bounds[3], hth_value *out) {
    hth_range r;
    if (!hth_use(w, v)) return false;
    if (v.kind == HTH_STRING) return slice_range(w, bounds, v.str->chars, &r) && slice_string(w, v.str, &r, out);
    if (!has_index(v) && v.kind != HTH_RANGE)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s cannot be sliced", hth_kind_name(v));
    int64_t count = v.kind == HTH_RANGE ? v.range->count : v.list->count;
    if (!slice_range(w, bounds, count, &r) || !hth_work_charge(w, 1 + (uint64_t)r.count)) return false;
    hth_items *l = hth_items_new(w, v.kind == HTH_LIST ? v.list->kind : HTH_A_LIST, (size_t)r.count);
    if (l == NULL) return false;
    for (int64_t i = 0; i < r.count; i++) {
        int64_t at = hth_range_at(&r, i);
        hth_items_put(w, l, v.kind == HTH_RANGE ? hth_int(hth_range_at(v.range, at)) : v.list->items[at]);
    }
    *out = hth_list_value(l);
    return true;
}

/* ---- iteration ---- */

static bool chars_of(hth_work *w, const hth_str *s, hth_items **out) {
    s = hth_str_as_markup(w, s, false);
    if (s == NULL) return false;
    *out = hth_items_new(w, HTH_A_LIST, s->chars);
    if (*out == NULL || !hth_work_charge(w, s->chars)) return false;
    for (size_t at = 0, end; at < s->size; at = end) {
        end = at + 1;
        while (end < s->size && ((unsigned char)s->data[end] & 0xC0) == 0x80) end++;
        const hth_str *c = hth_str_cut(w, s, at, end);
        if (c == NULL || !hth_items_put(w, *out, hth_string_value(c))) return false;
    }
    return true;
}

bool hth_iterate(hth_work *w, hth_value v, hth_items **out) {
    switch (v.kind) {
    case HTH_LIST: *out = v.list; return true;
    case HTH_STRING: return chars_of(w, v.str, out);
    case HTH_UNDEFINED: *out = hth_items_new(w, HTH_A_LIST, 0); return *out != NULL;
    case HTH_DICT:
        *out = hth_items_new(w, HTH_A_KEYS, v.dict->count);
        if (*out == NULL || !hth_work_charge(w, v.dict->count)) return false;
        for (uint32_t i = 0; i < v.dict->count; i++) hth_items_put(w, *out, v.dict->entries[i].key);
        return true;
    case HTH_RANGE:
        *out = hth_items_new(w, HTH_A_LIST, (size_t)v.range->count);
        if (*out == NULL || !hth_work_charge(w, (uint64_t)v.range->count)) return false;
        for (int64_t i = 0; i < v.range->count; i++) hth_items_put(w, *out, hth_int(hth_range_at(v.range, i)));
        return true;
    default: return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s cannot be iterated over", hth_kind_name(v));
    }
}

bool hth_length(hth_work *w, hth_value v, int64_t *out) {
    switch (v.kind) {
    case HTH_UNDEFINED: *out = 0; return true;
    case HTH_STRING: *out = v.str->chars; return true;
    case HTH_LIST: *out = v.list->count; return true;
    case HTH_DICT: *out = v.dict->count; return true;
    case HTH_RANGE: *out = v.range->count; return true;
    case HTH_LOOP: *out = v.loop->items->count; return true;
    default: return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s has no length", hth_kind_name(v));
    }
}

/* ---- operators ---- */

static bool no_operator(hth_work *w, int sign, hth_value a, hth_value b) {
    static const char *const names[] = {
        [HTH_S_ADD] = "+",       [HTH_S_SUB] = "-", [HTH_S_MUL] = "*",  [HTH_S_DIV] = "/",
        [HTH_S_FLOORDIV] = "//", [HTH_S_MOD] = "%", [HTH_S_POW] = "**", [HTH_S_TILDE] = "~"};
    if (!hth_use(w, a) || !hth_use(w, b)) return false;
    return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s between '%s' and '%s' is not defined", names[sign],
                         hth_kind_name(a), hth_kind_name(b));
}

static bool whole(hth_value v, int64_t *out) {
    if (v.kind != HTH_INT && v.kind != HTH_BOOL) return false;
    *out = v.kind == HTH_INT ? v.integer : v.truth;
    return true;
}

static bool too_large(hth_work *w) {
    return hth_work_fail(w, HEARTH_UNSUPPORTED, "a result is an integer of more than 64 bits");
}

/* base to the power of n; false when it does not fit. */
static bool int_power(int64_t base, int64_t n, int64_t *out) {
    *out = 1;
    while (n > 0) {
        if ((n & 1) != 0 && __builtin_mul_overflow(*out, base, out)) return false;
        n >>= 1;
        if (n > 0 && __builtin_mul_overflow(base, base, &base)) return false;
    }
    return true;
}

static bool by_zero(hth_work *w) {
    return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "division by zero");
}

static bool int_operator(hth_work *w, int sign, int64_t x, int64_t y, hth_value *out) {
    int64_t n = 0;
    switch (sign) {
    case HTH_S_ADD:
        if (__builtin_add_overflow(x, y, &n)) return too_large(w);
        break;
    case HTH_S_SUB:
        if (__builtin_sub_overflow(x, y, &n)) return too_large(w);
        break;
    case HTH_S_MUL:
        if (__builtin_mul_overflow(x, y, &n)) return too_large(w);
        break;
    case HTH_S_DIV:
        if (y == 0) return by_zero(w);
        *out = hth_real((double)x / (double)y);
        return true;
    case HTH_S_FLOORDIV:
    case HTH_S_MOD:
        if (y == 0) return by_zero(w);
        if (y == -1) {
            if (sign == HTH_S_FLOORDIV && x == INT64_MIN) return too_large(w);
            n = sign == HTH_S_MOD ? 0 : -x;
            break;
        }
        n = sign == HTH_S_MOD ? x % y : x / y;
        if (x % y != 0 && (x < 0) != (y < 0)) n += sign == HTH_S_MOD ? y : -1;
        break;
    default: /* HTH_S_POW */
        if (y < 0) return hth_work_fail(w, HEARTH_UNSUPPORTED, "powers with a negative exponent are not supported");
        if (!int_power(x, y, &n)) return too_large(w);
        break;
    }
    *out = hth_int(n);
    return true;
}

static bool real_operator(hth_work *w, int sign, double x, double y, hth_value *out) {
    double r;
    switch (sign) {
    case HTH_S_ADD: r = x + y; break;
    case HTH_S_SUB: r = x - y; break;
    case HTH_S_MUL: r = x * y; break;
    case HTH_S_DIV:
        if (y == 0) return by_zero(w);
        r = x / y;
        break;
    case HTH_S_FLOORDIV:
    case HTH_S_MOD:
        if (y == 0) return by_zero(w);
        r = fmod(x, y);
        if (r != 0 && (r < 0) != (y < 0)) r += y;
        if (sign == HTH_S_FLOORDIV) r = nearbyint((x - r) / y);
        else if (r == 0) r = copysign(0, y);
        break;
    default: return hth_work_fail(w, HEARTH_UNSUPPORTED, "powers of floats are not supported");
    }
    *out = hth_real(r);
    return true;
}

static bool join_lists(hth_work *w, hth_items *a, hth_items *b, hth_value *out) {
    hth_items *l = hth_items_new(w, a->kind, (size_t)a->count + b->count);
    if (l == NULL || !hth_work_charge(w, 1 + (uint64_t)a->count + b->count)) return false;
    for (uint32_t i = 0; i < a->count; i++) hth_items_put(w, l, a->items[i]);
    for (uint32_t i = 0; i < b->count; i++) hth_items_put(w, l, b->items[i]);
    *out = hth_list_value(l);
    return true;
}

static bool repeat(hth_work *w, hth_value v, int64_t times, hth_value *out) {
    if (times < 0) times = 0;
    if (v.kind == HTH_STRING) {
        hth_build b = {.work = w, .markup = v.str->markup};
        for (int64_t i = 0; i < times && v.str->size > 0; i++)
            if (!hth_build_str(&b, v.str)) return false;
        const hth_str *s = hth_build_end(&b);
        if (s == NULL) return false;
        *out = hth_string_value(s);
        return true;
    }
    hth_items *l = hth_items_new(w, v.list->kind, 0);
    if (l == NULL) return false;
    for (int64_t i = 0; i < times && v.list->count > 0; i++) {
        if (!hth_work_charge(w, v.list->count)) return false;
        for (uint32_t k = 0; k < v.list->count; k++)
            if (!hth_items_put(w, l, v.list->items[k])) return false;
    }
    *out = hth_list_value(l);
    return true;
}

static bool is_sequence(hth_value v) {
    return v.kind == HTH_STRING || (v.kind == HTH_LIST && v.list->kind <= HTH_A_TUPLE);
}

/* Markup escapes what it meets. */
static const hth_str *add_strings(hth_work *w, const hth_str *a, const hth_str *b) {
    bool markup = a->markup || b->markup;
    if (markup) {
        a = hth_str_escape(w, a);
        b = a == NULL ? NULL : hth_str_escape(w, b);
        if (b == NULL) return NULL;
    }
    const hth_str *joined = hth_str_join(w, a, b);
    return joined == NULL ? NULL : hth_str_as_markup(w, joined, markup);
}

bool hth_binary(hth_work *w, int sign, hth_value a, hth_value b, hth_value *out) {
    int64_t x = 0, y = 0;
    double real_a, real_b;
    if (sign == HTH_S_TILDE) {
        const hth_str *left = hth_text_of(w, a); /* markup or not, the result is none */
        const hth_str *right = left == NULL ? NULL : hth_text_of(w, b);
        const hth_str *joined = right == NULL ? NULL : hth_str_join(w, left, right);
        *out = hth_string_value(joined);
        return joined != NULL;
    }
    if (sign == HTH_S_ADD && a.kind == HTH_STRING && b.kind == HTH_STRING) {
        const hth_str *joined = add_strings(w, a.str, b.str);
        *out = hth_string_value(joined);
        return joined != NULL;
    }
    if (whole(a, &x) && whole(b, &y)) return int_operator(w, sign, x, y, out);
    if (hth_value_number(a, &real_a) && hth_value_number(b, &real_b))
        return real_operator(w, sign, real_a, real_b, out);
    if (sign == HTH_S_ADD && a.kind == HTH_LIST && b.kind == HTH_LIST && a.list->kind == b.list->kind)
        return join_lists(w, a.list, b.list, out);
    if (sign == HTH_S_MUL && is_sequence(a) && whole(b, &y)) return repeat(w, a, y, out);
    if (sign == HTH_S_MUL && is_sequence(b) && whole(a, &x)) return repeat(w, b, x, out);
    if (sign == HTH_S_MOD && a.kind == HTH_STRING) return hth_format_percent(w, a.str, b, out);
    return no_operator(w, sign, a, b);
}

static bool contains(hth_work *w, hth_value v, hth_value in, bool *out) {
    *out = false;
    switch (in.kind) {
    case HTH_UNDEFINED: return true;
    case HTH_STRING:
        if (v.kind != HTH_STRING)
            return hth_use(w, v) &&
                   hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s cannot be in a string", hth_kind_name(v));
        *out = memmem(in.str->data, in.str->size, v.str->data, v.str->size) != NULL;
        return hth_work_charge(w, 1 + in.str->size / 64);
    case HTH_DICT:
        if (v.kind == HTH_LIST || v.kind == HTH_DICT)
            return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s cannot be the key of a dict", hth_kind_name(v));
        *out = hth_dict_find(in.dict, v) != NULL;
        return true;
    case HTH_RANGE: {
        double x;
        if (!hth_value_number(v, &x) || x != floor(x) || fabs(x) > 0x1p53) return true;
        int64_t from;
        if (__builtin_sub_overflow((int64_t)x, in.range->start, &from)) return true;
        *out = from % in.range->step == 0 && from / in.range->step >= 0 && from / in.range->step < in.range->count;
        return true;
    }
    case HTH_LIST:
        for (uint32_t i = 0; i < in.list->count && !*out; i++)
            if (!hth_work_charge(w, 1) || !hth_value_equal(w, v, in.list->items[i], out)) return false;
        return true;
    default: return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "nothing can be in a %s", hth_kind_name(in));
    }
}

bool hth_compare_values(hth_work *w, hth_compare how, hth_value a, hth_value b, bool *out) {
    int order;
    switch (how) {
    case HTH_C_EQ: return hth_value_equal(w, a, b, out);
    case HTH_C_IN: return contains(w, a, b, out);
    case HTH_C_NE:
    case HTH_C_NOT_IN:
        if (how == HTH_C_NE ? !hth_value_equal(w, a, b, out) : !contains(w, a, b, out)) return false;
        *out = !*out;
        return true;
    default:
        if (!hth_use(w, a) || !hth_use(w, b) || !hth_value_order(w, a, b, &order)) return false;
        *out = order != 2 && (how == HTH_C_LT   ? order < 0
                              : how == HTH_C_LE ? order <= 0
                              : how == HTH_C_GT ? order > 0
                                                : order >= 0);
        return true;
    }
}

bool hth_negate(hth_work *w, hth_value v, bool minus, hth_value *out) {
    int64_t n;
    if (whole(v, &n)) {
        if (minus && __builtin_sub_overflow((int64_t)0, n, &n)) return too_large(w);
        *out = hth_int(n);
        return true;
    }
    if (v.kind != HTH_FLOAT)
        return hth_use(w, v) && hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s has no sign", hth_kind_name(v));
    *out = hth_real(minus ? -v.real : v.real);
    return true;
}
