/* Methods of strings, lists and dicts. Those that change a list or dict do so, though Jinja's sandbox forbids it:
 * templates that call them mean it. */
#include <string.h>

#include "text/template_filters.h"
#include "text/template_loop.h"
#include "text/template_text.h"

/* ---- strings ---- */

/* An optional string: None is the same as none given. */
static bool optional_str(hth_env *env, const hth_call *call, hth_value v, const hth_str **out) {
    *out = NULL;
    return !hth_given(v) || v.kind == HTH_NONE || hth_take_str(env->work, call, v, out);
}

static bool strip(hth_env *env, const hth_str *s, const hth_value *a, const hth_call *call, int sides, hth_value *out) {
    const hth_str *chars;
    return optional_str(env, call, a[0], &chars) && hth_out_str(hth_str_strip(env->work, s, chars, sides), out);
}

static bool str_strip(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return strip(env, v.str, a, call, HTH_LEFT | HTH_RIGHT, out);
}

static bool str_lstrip(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return strip(env, v.str, a, call, HTH_LEFT, out);
}

static bool str_rstrip(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return strip(env, v.str, a, call, HTH_RIGHT, out);
}

static bool split(hth_env *env, const hth_str *s, const hth_value *a, const hth_call *call, bool right,
                  hth_value *out) {
    const hth_str *sep;
    int64_t max;
    if (!optional_str(env, call, a[0], &sep) || !hth_take_int(env->work, call, a[1], -1, &max)) return false;
    return hth_out_list(hth_str_split(env->work, s, sep, max, right), out);
}

static bool str_split(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return split(env, v.str, a, call, false, out);
}

static bool str_rsplit(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return split(env, v.str, a, call, true, out);
}

static bool str_splitlines(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    if (hth_value_true(a[0])) return hth_work_fail(env->work, HEARTH_UNSUPPORTED, "splitlines: keeping the ends");
    return hth_out_list(hth_str_lines(env->work, v.str), out);
}

/* The bytes of [start, end) in code points, as Python clamps them. */
static bool window(hth_env *env, const hth_str *s, hth_value start, hth_value end, const hth_call *call, size_t *from,
                   size_t *to) {
    int64_t a, b;
    if (!hth_take_int(env->work, call, start, 0, &a) || !hth_take_int(env->work, call, end, s->chars, &b)) return false;
    if (a < 0) a = a + s->chars < 0 ? 0 : a + s->chars;
    if (b < 0) b = b + s->chars < 0 ? 0 : b + s->chars;
    *from = a > s->chars ? s->size + 1 : hth_str_offset(s, (size_t)a);
    *to = hth_str_offset(s, b > s->chars ? s->chars : (size_t)b);
    return hth_work_charge(env->work, 1 + s->size / 16);
}

static bool has_affix(const hth_str *s, const hth_str *affix, size_t from, size_t to, bool end) {
    if (from > to || to - from < affix->size) return false;
    return memcmp(s->data + (end ? to - affix->size : from), affix->data, affix->size) == 0;
}

static bool affixed(hth_env *env, const hth_str *s, const hth_value *a, const hth_call *call, bool end,
                    hth_value *out) {
    size_t from, to;
    const hth_str *affix;
    if (!window(env, s, a[1], a[2], call, &from, &to)) return false;
    *out = hth_truth(false);
    if (a[0].kind == HTH_LIST && a[0].list->kind == HTH_A_TUPLE) {
        for (uint32_t i = 0; i < a[0].list->count && !out->truth; i++) {
            if (!hth_work_charge(env->work, 1) || !hth_take_str(env->work, call, a[0].list->items[i], &affix))
                return false;
            out->truth = has_affix(s, affix, from, to, end);
        }
        return true;
    }
    if (!hth_take_str(env->work, call, a[0], &affix)) return false;
    out->truth = has_affix(s, affix, from, to, end);
    return true;
}

static bool str_startswith(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return affixed(env, v.str, a, call, false, out);
}

static bool str_endswith(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return affixed(env, v.str, a, call, true, out);
}

static bool without_affix(hth_env *env, const hth_str *s, hth_value a, const hth_call *call, bool end, hth_value *out) {
    const hth_str *affix;
    if (!hth_take_str(env->work, call, a, &affix)) return false;
    if (!has_affix(s, affix, 0, s->size, end)) return hth_out_str(s, out);
    size_t from = end ? 0 : affix->size, to = end ? s->size - affix->size : s->size;
    return hth_out_str(hth_str_cut(env->work, s, from, to), out);
}

static bool str_removeprefix(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return without_affix(env, v.str, a[0], call, false, out);
}

static bool str_removesuffix(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return without_affix(env, v.str, a[0], call, true, out);
}

static bool str_replace(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    const hth_str *from, *to;
    int64_t max;
    if (!hth_take_str(env->work, call, a[0], &from) || !hth_take_str(env->work, call, a[1], &to) ||
        !hth_take_int(env->work, call, a[2], -1, &max) ||
        (v.str->markup && (to = hth_str_escape(env->work, to)) == NULL))
        return false;
    return hth_out_str(hth_str_replace(env->work, v.str, from, to, max), out);
}

static bool find(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, bool last, bool must,
                 hth_value *out) {
    const hth_str *what;
    size_t from, to;
    if (!hth_take_str(env->work, call, a[0], &what) || !window(env, v.str, a[1], a[2], call, &from, &to)) return false;
    size_t at = hth_str_find(v.str, what, from, to, last);
    if (at == SIZE_MAX && must)
        return hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "%s: it is not in the string", call->what);
    *out = hth_int(at == SIZE_MAX ? -1 : (int64_t)hth_str_chars_before(v.str, at));
    return true;
}

static bool str_find(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return find(env, v, a, call, false, false, out);
}

static bool str_rfind(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return find(env, v, a, call, true, false, out);
}

static bool str_index(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return find(env, v, a, call, false, true, out);
}

static bool str_count(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    const hth_str *what;
    size_t from, to;
    int64_t n = 0;
    if (!hth_take_str(env->work, call, a[0], &what) || !window(env, v.str, a[1], a[2], call, &from, &to)) return false;
    if (what->size == 0) {
        for (size_t i = from; i < to; i++) n += ((unsigned char)v.str->data[i] & 0xC0) != 0x80;
        *out = hth_int(from > to ? 0 : n + 1);
        return true;
    }
    for (size_t at; (at = hth_str_find(v.str, what, from, to, false)) != SIZE_MAX; from = at + what->size) n++;
    *out = hth_int(n);
    return true;
}

static bool str_upper(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_str_case(env->work, v.str, HTH_UPPER), out);
}

static bool str_lower(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_str_case(env->work, v.str, HTH_LOWER), out);
}

static bool str_title(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_str_case(env->work, v.str, HTH_TITLE), out);
}

static bool str_capitalize(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_str_case(env->work, v.str, HTH_CAPITALIZE), out);
}

static bool str_swapcase(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_str(hth_str_case(env->work, v.str, HTH_SWAP), out);
}

static bool str_join(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_items *l;
    hth_build b = {.work = env->work};
    const hth_str *s;
    if (!hth_use(env->work, a[0]) || !hth_iterate(env->work, a[0], &l)) return false;
    for (uint32_t i = 0; i < l->count; i++) {
        if (i > 0) hth_build_str(&b, v.str);
        if (!hth_take_str(env->work, call, l->items[i], &s)) return false;
        if (v.str->markup && (s = hth_str_escape(env->work, s)) == NULL) return false;
        if (!hth_build_str(&b, s)) return false;
    }
    return hth_out_str(hth_build_end(&b), out);
}

static bool str_format(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    if (v.str->markup) return hth_work_fail(env->work, HEARTH_UNSUPPORTED, "format: of markup is not supported");
    return hth_out_str(hth_str_format(env->work, v.str, call->values, call->count, call->named, call->n_named), out);
}

static bool pad(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, int sides, hth_value *out) {
    int64_t width;
    const hth_str *fill;
    if (!hth_take_int(env->work, call, a[0], 0, &width) || !optional_str(env, call, a[1], &fill)) return false;
    if (fill != NULL && (fill->chars != 1 || fill->size != 1))
        return hth_work_fail(env->work, HEARTH_UNSUPPORTED, "%s fills with one ASCII character", call->what);
    uint32_t with = fill == NULL ? ' ' : (unsigned char)fill->data[0];
    return hth_out_str(hth_str_pad(env->work, v.str, width, with, sides), out);
}

static bool str_ljust(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return pad(env, v, a, call, HTH_RIGHT, out);
}

static bool str_rjust(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return pad(env, v, a, call, HTH_LEFT, out);
}

static bool str_center(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return pad(env, v, a, call, HTH_LEFT | HTH_RIGHT, out);
}

static bool str_is_class(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    *out = hth_truth(hth_str_is_class(v.str, call->what) == 1);
    return hth_work_charge(env->work, 1 + v.str->size / 16);
}

/* (before, sep, behind) */
static bool part(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, bool last, hth_value *out) {
    hth_work *w = env->work;
    const hth_str *sep, *s = v.str, *piece[3];
    hth_items *l = hth_items_new(w, HTH_A_TUPLE, 3);
    if (l == NULL || !hth_take_str(w, call, a[0], &sep)) return false;
    if (sep->size == 0) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "an empty separator");
    size_t at = hth_str_find(s, sep, 0, s->size, last);
    bool found = at != SIZE_MAX;
    size_t from = found ? at : last ? 0 : s->size, to = found ? at + sep->size : from;
    piece[0] = hth_str_cut(w, s, 0, from);
    piece[1] = hth_str_cut(w, s, from, to);
    piece[2] = hth_str_cut(w, s, to, s->size);
    for (int i = 0; i < 3; i++)
        if (piece[i] == NULL || !hth_items_put(w, l, hth_string_value(piece[i]))) return false;
    return hth_out_list(l, out);
}

static bool str_partition(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return part(env, v, a, call, false, out);
}

static bool str_rpartition(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return part(env, v, a, call, true, out);
}

/* ---- lists ---- */

static bool list_append(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    *out = hth_none();
    return hth_items_put(env->work, v.list, a[0]);
}

static bool list_extend(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_items *from;
    (void)call;
    *out = hth_none();
    if (!hth_use(env->work, a[0]) || !hth_iterate(env->work, a[0], &from)) return false;
    for (uint32_t i = 0, n = from->count; i < n; i++)
        if (!hth_work_charge(env->work, 1) || !hth_items_put(env->work, v.list, from->items[i])) return false;
    return true;
}

static bool list_pop(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t at;
    hth_items *l = v.list;
    if (!hth_take_int(env->work, call, a[0], -1, &at)) return false;
    if (at < 0) at += l->count;
    if (at < 0 || at >= l->count) return hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "pop: there is no such item");
    *out = l->items[at];
    memmove(l->items + at, l->items + at + 1, (size_t)(l->count - at - 1) * sizeof *l->items);
    l->count--;
    return hth_work_charge(env->work, 1 + (uint64_t)(l->count - at) / 16);
}

static bool list_insert(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t at;
    hth_items *l = v.list;
    *out = hth_none();
    if (!hth_take_int(env->work, call, a[0], 0, &at) || !hth_items_put(env->work, l, a[1])) return false;
    int64_t count = l->count - 1;
    if (at < 0) at = at + count < 0 ? 0 : at + count;
    if (at > count) at = count;
    memmove(l->items + at + 1, l->items + at, (size_t)(count - at) * sizeof *l->items);
    l->items[at] = a[1];
    return hth_work_charge(env->work, 1 + (uint64_t)(count - at) / 16);
}

static bool list_search(hth_env *env, hth_value v, hth_value wanted, int64_t *first, int64_t *count) {
    *first = -1;
    *count = 0;
    for (uint32_t i = 0; i < v.list->count; i++) {
        bool equal;
        if (!hth_work_charge(env->work, 1) || !hth_value_equal(env->work, v.list->items[i], wanted, &equal))
            return false;
        if (equal && *first < 0) *first = i;
        *count += equal;
    }
    return true;
}

static bool list_index(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t first, count;
    (void)call;
    if (!list_search(env, v, a[0], &first, &count)) return false;
    *out = hth_int(first);
    return first >= 0 || hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "index: it is not in the list");
}

static bool list_count(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    int64_t first, count;
    (void)call;
    if (!list_search(env, v, a[0], &first, &count)) return false;
    *out = hth_int(count);
    return true;
}

static bool list_reverse(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    hth_items *l = v.list;
    for (uint32_t i = 0; i < l->count / 2; i++) {
        hth_value item = l->items[i];
        l->items[i] = l->items[l->count - 1 - i];
        l->items[l->count - 1 - i] = item;
    }
    *out = hth_none();
    return hth_work_charge(env->work, 1 + l->count);
}

static bool list_clear(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call, (void)env;
    v.list->count = 0;
    *out = hth_none();
    return true;
}

static bool list_copy(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    return hth_filter_list(env, v, a, call, out);
}

/* ---- dicts ---- */

static bool dict_get(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    if (a[0].kind == HTH_LIST || a[0].kind == HTH_DICT)
        return hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "a %s cannot be the key of a dict", hth_kind_name(a[0]));
    hth_value *found = hth_dict_find(v.dict, a[0]);
    *out = found != NULL ? *found : call->count > 1 || call->n_named > 0 ? a[1] : hth_none();
    return true;
}

static bool dict_list(hth_env *env, hth_value v, hth_list_kind kind, hth_value *out) {
    hth_items *l = hth_items_new(env->work, kind, v.dict->count);
    if (l == NULL || !hth_work_charge(env->work, 1 + v.dict->count)) return false;
    for (uint32_t i = 0; i < v.dict->count; i++)
        hth_items_put(env->work, l, kind == HTH_A_KEYS ? v.dict->entries[i].key : v.dict->entries[i].value);
    return hth_out_list(l, out);
}

static bool dict_keys(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return dict_list(env, v, HTH_A_KEYS, out);
}

static bool dict_values(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return dict_list(env, v, HTH_A_VALUES, out);
}

static bool dict_items(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    if (!hth_filter_items(env, v, a, call, out)) return false;
    out->list->kind = HTH_AN_ITEMS;
    return true;
}

static bool dict_update(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    *out = hth_none();
    if (call->count > 1 || (call->count == 1 && call->values[0].kind != HTH_DICT))
        return hth_work_fail(env->work, HEARTH_UNSUPPORTED, "update takes a dict, and arguments with names");
    const hth_dict *from = call->count == 1 ? call->values[0].dict : NULL;
    for (uint32_t i = 0; from != NULL && from != v.dict && i < from->count; i++)
        if (!hth_work_charge(env->work, 1) ||
            !hth_dict_put(env->work, v.dict, from->entries[i].key, from->entries[i].value))
            return false;
    for (uint32_t i = 0; i < call->n_named; i++)
        if (!hth_dict_put(env->work, v.dict, call->named[2 * i], call->named[2 * i + 1])) return false;
    return true;
}

static bool dict_pop(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_value *found = hth_dict_find(v.dict, a[0]);
    if (found == NULL) {
        *out = a[1];
        return call->count > 1 || hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "pop: there is no such key");
    }
    *out = *found;
    return hth_work_charge(env->work, 1 + v.dict->count) &&
           (hth_dict_drop(env->work, v.dict, a[0]) || env->work->status == HEARTH_OK);
}

static bool dict_setdefault(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_value *found = hth_dict_find(v.dict, a[0]);
    *out = found != NULL ? *found : call->count > 1 ? a[1] : hth_none();
    return found != NULL || hth_dict_put(env->work, v.dict, a[0], *out);
}

static bool dict_copy(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_dict *d = hth_dict_new(env->work);
    (void)a, (void)call;
    if (d == NULL || !hth_work_charge(env->work, 1 + v.dict->count)) return false;
    for (uint32_t i = 0; i < v.dict->count; i++)
        if (!hth_dict_put(env->work, d, v.dict->entries[i].key, v.dict->entries[i].value)) return false;
    *out = hth_dict_value(d);
    return true;
}

/* ---- loops ---- */

static bool loop_cycle(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    if (call->count == 0) return hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "cycle needs values");
    *out = call->values[v.loop->index < 0 ? 0 : v.loop->index % call->count];
    return true;
}

static bool loop_changed(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_items *now = hth_items_new(env->work, HTH_A_TUPLE, call->count);
    bool equal = false;
    (void)a;
    if (now == NULL) return false;
    for (uint32_t i = 0; i < call->count; i++) hth_items_put(env->work, now, call->values[i]);
    if (v.loop->seen && !hth_value_equal(env->work, v.loop->last, hth_list_value(now), &equal)) return false;
    v.loop->seen = true;
    v.loop->last = hth_list_value(now);
    *out = hth_truth(!equal);
    return true;
}

/* ---- the table ---- */

#define RAW "*"

typedef struct method {
    const char *name, *arguments; /* NULL: known, and not supported */
    unsigned required;
    hth_filter *apply;
    bool changes; /* the list or dict itself */
} method;

static const method methods[] = {
#define STRINGS 0
    {"strip", "chars", 0, str_strip, false},
    {"lstrip", "chars", 0, str_lstrip, false},
    {"rstrip", "chars", 0, str_rstrip, false},
    {"split", "sep maxsplit", 0, str_split, false},
    {"rsplit", "sep maxsplit", 0, str_rsplit, false},
    {"splitlines", "keepends", 0, str_splitlines, false},
    {"startswith", "prefix start end", 1, str_startswith, false},
    {"endswith", "suffix start end", 1, str_endswith, false},
    {"removeprefix", "prefix", 1, str_removeprefix, false},
    {"removesuffix", "suffix", 1, str_removesuffix, false},
    {"replace", "old new count", 2, str_replace, false},
    {"find", "sub start end", 1, str_find, false},
    {"rfind", "sub start end", 1, str_rfind, false},
    {"index", "sub start end", 1, str_index, false},
    {"count", "sub start end", 1, str_count, false},
    {"upper", "", 0, str_upper, false},
    {"lower", "", 0, str_lower, false},
    {"title", "", 0, str_title, false},
    {"capitalize", "", 0, str_capitalize, false},
    {"swapcase", "", 0, str_swapcase, false},
    {"join", "iterable", 1, str_join, false},
    {"format", RAW, 0, str_format, false},
    {"ljust", "width fillchar", 1, str_ljust, false},
    {"rjust", "width fillchar", 1, str_rjust, false},
    {"center", "width fillchar", 1, str_center, false},
    {"partition", "sep", 1, str_partition, false},
    {"rpartition", "sep", 1, str_rpartition, false},
    {"isdigit", "", 0, str_is_class, false},
    {"isalpha", "", 0, str_is_class, false},
    {"isalnum", "", 0, str_is_class, false},
    {"isspace", "", 0, str_is_class, false},
    {"isupper", "", 0, str_is_class, false},
    {"islower", "", 0, str_is_class, false},
    {"isnumeric", "", 0, str_is_class, false},
    {"isdecimal", "", 0, str_is_class, false},
    {"isascii", "", 0, str_is_class, false},
    {"casefold", NULL, 0, NULL, false},
    {"encode", NULL, 0, NULL, false},
    {"expandtabs", NULL, 0, NULL, false},
    {"format_map", NULL, 0, NULL, false},
    {"isidentifier", NULL, 0, NULL, false},
    {"isprintable", NULL, 0, NULL, false},
    {"istitle", NULL, 0, NULL, false},
    {"maketrans", NULL, 0, NULL, false},
    {"rindex", NULL, 0, NULL, false},
    {"translate", NULL, 0, NULL, false},
    {"zfill", NULL, 0, NULL, false},
#define LISTS 47
    {"append", "object", 1, list_append, true},
    {"extend", "iterable", 1, list_extend, true},
    {"pop", "index", 0, list_pop, true},
    {"insert", "index object", 2, list_insert, true},
    {"index", "value", 1, list_index, false},
    {"count", "value", 1, list_count, false},
    {"reverse", "", 0, list_reverse, true},
    {"clear", "", 0, list_clear, true},
    {"copy", "", 0, list_copy, false},
    {"remove", NULL, 0, NULL, false},
    {"sort", NULL, 0, NULL, false},
#define DICTS 58
    {"get", "key default", 1, dict_get, false},
    {"keys", "", 0, dict_keys, false},
    {"values", "", 0, dict_values, false},
    {"items", "", 0, dict_items, false},
    {"update", RAW, 0, dict_update, true},
    {"pop", "key default", 1, dict_pop, true},
    {"setdefault", "key default", 1, dict_setdefault, true},
    {"copy", "", 0, dict_copy, false},
    {"clear", NULL, 0, NULL, false},
    {"fromkeys", NULL, 0, NULL, false},
    {"popitem", NULL, 0, NULL, false},
#define LOOPS 69
    {"cycle", RAW, 0, loop_cycle, false},
    {"changed", RAW, 0, loop_changed, false},
#define METHODS 71
};
_Static_assert(sizeof methods / sizeof *methods == METHODS, "the numbers above are those of the rows");

int hth_method_id(hth_value v, const hth_str *name, const char **known) {
    int from = 0, to = 0;
    if (v.kind == HTH_STRING) from = STRINGS, to = LISTS;
    else if (v.kind == HTH_LIST && v.list->kind == HTH_A_LIST) from = LISTS, to = DICTS;
    else if (v.kind == HTH_LIST && v.list->kind == HTH_A_TUPLE) from = LISTS + 4, to = LISTS + 6; /* index, count */
    else if (v.kind == HTH_DICT) from = DICTS, to = LOOPS;
    else if (v.kind == HTH_LOOP) from = LOOPS, to = METHODS;
    for (int i = from; i < to; i++)
        if (hth_str_is(name, methods[i].name)) {
            *known = methods[i].name;
            return i;
        }
    return -1;
}

bool hth_method_apply(hth_env *env, const hth_method *m, const hth_call *call, hth_value *out) {
    enum { MAX_ARGUMENTS = 3 };
    const method *row = &methods[m->id];
    hth_value a[MAX_ARGUMENTS] = {hth_nothing(), hth_nothing(), hth_nothing()};
    hth_call named = *call;
    named.what = row->name;
    if (row->apply == NULL)
        return hth_work_fail(env->work, HEARTH_UNSUPPORTED, "the method '%s' of a %s is not supported", row->name,
                             hth_kind_name(m->self));
    bool fixed = (m->self.kind == HTH_LIST && m->self.list->fixed) || (m->self.kind == HTH_DICT && m->self.dict->fixed);
    if (row->changes && fixed)
        return hth_work_fail(env->work, HEARTH_BAD_ARGUMENT, "%s: what the request holds cannot be changed", row->name);
    if (strcmp(row->arguments, RAW) != 0 && !hth_arguments(env->work, &named, row->arguments, row->required, a))
        return false;
    if (!hth_work_charge(env->work, 1) || !row->apply(env, m->self, a, &named, out)) return false;
    if (m->self.kind != HTH_STRING || !m->self.str->markup || out->kind != HTH_STRING) return true;
    return hth_out_str(hth_str_as_markup(env->work, out->str, true), out);
}
