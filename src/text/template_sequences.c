/* Filters of sequences. What Jinja makes lazily is a list here. */
#include <string.h>

#include "text/template_filters.h"
#include "text/template_lexer.h"
#include "text/template_text.h"

/* ---- keys and order ---- */

/* What an item is sorted by: itself or an attribute, and strings in small letters unless case counts. */
static bool key_of(hth_work *w, hth_value item, hth_value attribute, bool case_sensitive, hth_value *out) {
    *out = item;
    if (hth_given(attribute) && attribute.kind != HTH_NONE && !hth_path(w, item, attribute, out)) return false;
    if (out->kind != HTH_STRING || case_sensitive) return true;
    return hth_out_str(hth_str_case(w, out->str, HTH_LOWER), out);
}

static hth_value *keys_of(hth_work *w, const hth_items *l, hth_value attribute, bool case_sensitive) {
    hth_value *keys = hth_work_take_array(w, l->count, sizeof *keys);
    for (uint32_t i = 0; keys != NULL && i < l->count; i++)
        if (!key_of(w, l->items[i], attribute, case_sensitive, &keys[i])) return NULL;
    return keys;
}

/* One pass of the merge: runs of `width` in `from` become runs twice as wide in `to`. */
static bool merge_runs(hth_work *w, const hth_value *keys, const uint32_t *from, uint32_t *to, uint32_t n,
                       uint64_t width, bool reverse) {
    for (uint64_t base = 0; base < n; base += 2 * width) {
        uint64_t left = base, middle = base + width < n ? base + width : n;
        uint64_t right = middle, end = middle + width < n ? middle + width : n;
        for (uint64_t k = base; k < end; k++) {
            int order = 0;
            if (left < middle && right < end) {
                hth_value a = keys[from[left]], b = keys[from[right]];
                if (!hth_use(w, a) || !hth_use(w, b) || !hth_value_order(w, a, b, &order)) return false;
                if (order == 2) order = 0;
                if (reverse) order = -order;
            }
            bool take_left = right == end || (left < middle && order <= 0);
            to[k] = take_left ? from[left++] : from[right++];
        }
    }
    return hth_work_charge(w, n);
}

/* Stable, also in reverse, as Python's. */
bool hth_sorted(hth_work *w, hth_items *l, const hth_value *keys, bool reverse) {
    uint32_t n = l->count, *a = hth_work_take_array(w, n, sizeof *a), *b = hth_work_take_array(w, n, sizeof *b);
    hth_value *items = hth_work_take_array(w, n, sizeof *items);
    if (a == NULL || b == NULL || items == NULL) return false;
    for (uint32_t i = 0; i < n; i++) a[i] = i;
    for (uint64_t width = 1; width < n; width *= 2) {
        if (!merge_runs(w, keys, a, b, n, width, reverse)) return false;
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
    for (uint32_t i = 0; i < n; i++) items[i] = l->items[a[i]];
    if (n > 0) memcpy(l->items, items, n * sizeof *items);
    return true;
}

static hth_items *copy_list(hth_work *w, hth_value v) {
    hth_items *from, *l;
    if (!hth_iterate(w, v, &from) || !hth_work_charge(w, from->count)) return NULL;
    l = hth_items_new(w, HTH_A_LIST, from->count);
    if (l == NULL) return NULL;
    if (from->count > 0) memcpy(l->items, from->items, from->count * sizeof *l->items);
    l->count = from->count;
    return l;
}

bool hth_filter_sort(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    hth_work *w = env->work;
    hth_items *l = copy_list(w, v);
    if (l == NULL) return false;
    if (a[2].kind == HTH_STRING && memchr(a[2].str->data, ',', a[2].str->size) != NULL)
        return hth_work_fail(w, HEARTH_UNSUPPORTED, "sort: several attributes are not supported");
    hth_value *keys = keys_of(w, l, a[2], hth_value_true(a[1]));
    return keys != NULL && hth_sorted(w, l, keys, hth_value_true(a[0])) && hth_out_list(l, out);
}

bool hth_filter_dictsort(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    hth_work *w = env->work;
    bool by_value = a[1].kind == HTH_STRING && hth_str_is(a[1].str, "value");
    if (hth_given(a[1]) && !by_value && !(a[1].kind == HTH_STRING && hth_str_is(a[1].str, "key")))
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "dictsort: by is \"key\" or \"value\"");
    if (v.kind != HTH_DICT)
        return hth_use(w, v) &&
               hth_work_fail(w, HEARTH_BAD_ARGUMENT, "dictsort takes a dict, not a %s", hth_kind_name(v));
    if (!hth_filter_items(env, v, NULL, call, out)) return false;
    hth_items *l = out->list;
    l->kind = HTH_A_LIST;
    hth_value *keys = keys_of(w, l, hth_int(by_value ? 1 : 0), hth_value_true(a[0]));
    return keys != NULL && hth_sorted(w, l, keys, hth_value_true(a[2]));
}

bool hth_filter_unique(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    hth_work *w = env->work;
    hth_items *from, *l = hth_items_new(w, HTH_A_GENERATOR, 0);
    hth_dict *seen = hth_dict_new(w);
    if (l == NULL || seen == NULL || !hth_iterate(w, v, &from)) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        hth_value key;
        if (!hth_work_charge(w, 1) || !key_of(w, from->items[i], a[1], hth_value_true(a[0]), &key)) return false;
        if (hth_dict_find(seen, key) != NULL) continue;
        if (!hth_dict_put(w, seen, key, hth_none()) || !hth_items_put(w, l, from->items[i])) return false;
    }
    return hth_out_list(l, out);
}

static bool extreme(hth_env *env, hth_value v, const hth_value *a, int wanted, hth_value *out) {
    hth_work *w = env->work;
    hth_items *l;
    if (!hth_iterate(w, v, &l)) return false;
    *out = hth_nothing();
    hth_value *keys = keys_of(w, l, a[1], hth_value_true(a[0]));
    uint32_t best = 0;
    if (keys == NULL) return false;
    for (uint32_t i = 1; i < l->count; i++) {
        int order;
        if (!hth_work_charge(w, 1) || !hth_use(w, keys[i]) || !hth_value_order(w, keys[i], keys[best], &order))
            return false;
        if (order == wanted) best = i;
    }
    if (l->count > 0) *out = l->items[best];
    return true;
}

bool hth_filter_min(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    return extreme(env, v, a, -1, out);
}

bool hth_filter_max(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    return extreme(env, v, a, 1, out);
}

bool hth_filter_groupby(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    hth_work *w = env->work;
    hth_items *l = copy_list(w, v), *groups = hth_items_new(w, HTH_A_LIST, 0), *members = NULL;
    if (l == NULL || groups == NULL) return false;
    hth_value *keys = hth_work_take_array(w, l->count, sizeof *keys);
    if (keys == NULL) return false;
    /* Sorted by the key as it compares, named by the key of the first member. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < l->count; i++) {
            if (!hth_path(w, l->items[i], a[0], &keys[i])) return false;
            if (keys[i].kind == HTH_UNDEFINED && hth_given(a[1])) keys[i] = a[1];
            if (!key_of(w, keys[i], hth_nothing(), hth_value_true(a[2]), &keys[i])) return false;
        }
        if (pass == 0 && !hth_sorted(w, l, keys, false)) return false;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        bool same = false;
        if (i > 0 && !hth_value_equal(w, keys[i - 1], keys[i], &same)) return false;
        if (!same) {
            hth_items *pair = hth_items_new(w, HTH_A_TUPLE, 2);
            hth_value name;
            members = hth_items_new(w, HTH_A_LIST, 0);
            if (pair == NULL || members == NULL || !hth_path(w, l->items[i], a[0], &name)) return false;
            if (name.kind == HTH_UNDEFINED && hth_given(a[1])) name = a[1];
            if (!hth_items_put(w, pair, name) || !hth_items_put(w, pair, hth_list_value(members)) ||
                !hth_items_put(w, groups, hth_list_value(pair)))
                return false;
        }
        if (!hth_items_put(w, members, l->items[i])) return false;
    }
    return hth_out_list(groups, out);
}

/* ---- choosing ---- */

/* What is false, such as None, has no items here. */
static bool iterate_true(hth_work *w, hth_value v, hth_items **out) {
    return hth_iterate(w, hth_value_true(v) ? v : hth_nothing(), out);
}

/* select, reject and their attr forms: [attribute,] [test, arguments]. */
static bool choose(hth_env *env, hth_value v, const hth_call *call, bool by_attribute, bool wanted, hth_value *out) {
    hth_work *w = env->work;
    hth_items *from, *l = hth_items_new(w, HTH_A_GENERATOR, 0);
    uint32_t used = by_attribute;
    int test = -1;
    if (call->count < used) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s needs an attribute", call->what);
    if (call->count > used) {
        const hth_str *name;
        if (!hth_take_str(w, call, call->values[used], &name)) return false;
        test = hth_test_id(name->data, name->size);
        if (test < 0)
            return hth_work_fail(w, HEARTH_UNSUPPORTED, "there is no test '%.*s'",
                                 (int)(name->size < 40 ? name->size : 40), name->data);
        used++;
    }
    hth_call inner = {.what = test < 0 ? call->what : hth_test_name(test),
                      .values = call->values + used,
                      .count = call->count - used,
                      .named = call->named,
                      .n_named = call->n_named};
    if (l == NULL || !iterate_true(w, v, &from)) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        hth_value item = from->items[i];
        bool holds;
        if (!hth_work_charge(w, 1) || (by_attribute && !hth_path(w, item, call->values[0], &item))) return false;
        if (test < 0) holds = hth_value_true(item);
        else if (!hth_test_apply(env, test, item, &inner, &holds)) return false;
        if (holds == wanted && !hth_items_put(w, l, from->items[i])) return false;
    }
    return hth_out_list(l, out);
}

bool hth_filter_select(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    return choose(env, v, call, false, true, out);
}

bool hth_filter_reject(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    return choose(env, v, call, false, false, out);
}

bool hth_filter_selectattr(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    return choose(env, v, call, true, true, out);
}

bool hth_filter_rejectattr(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    return choose(env, v, call, true, false, out);
}

/* map(attribute=..., default=...), or map('filter', arguments). */
bool hth_filter_map(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    hth_work *w = env->work;
    hth_items *from, *l = hth_items_new(w, HTH_A_GENERATOR, 0);
    hth_value by[2] = {hth_nothing(), hth_nothing()};
    int filter = -1;
    if (call->count == 0) {
        if (!hth_arguments(w, call, "attribute default", 1, by)) return false;
    } else {
        const hth_str *name;
        if (!hth_take_str(w, call, call->values[0], &name)) return false;
        filter = hth_filter_id(name->data, name->size);
        if (filter < 0)
            return hth_work_fail(w, HEARTH_UNSUPPORTED, "there is no filter '%.*s'",
                                 (int)(name->size < 40 ? name->size : 40), name->data);
        /* A map inside a map would be a chain that the stack has to follow. */
        if (strcmp(hth_filter_name(filter), "map") == 0)
            return hth_work_fail(w, HEARTH_UNSUPPORTED, "map: mapping 'map' is not supported");
    }
    hth_call inner = *call;
    if (filter >= 0) {
        inner.what = hth_filter_name(filter);
        inner.values++;
        inner.count--;
    }
    if (l == NULL || !iterate_true(w, v, &from)) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        hth_value item = from->items[i];
        if (!hth_work_charge(w, 1)) return false;
        if (filter >= 0 ? !hth_filter_apply(env, filter, item, &inner, &item) : !hth_path(w, item, by[0], &item))
            return false;
        if (item.kind == HTH_UNDEFINED && filter < 0 && hth_given(by[1])) item = by[1];
        if (!hth_items_put(w, l, item)) return false;
    }
    return hth_out_list(l, out);
}

/* ---- the rest ---- */

bool hth_filter_items(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a;
    hth_work *w = env->work;
    hth_items *l = hth_items_new(w, HTH_A_GENERATOR, 0);
    if (l == NULL) return false;
    *out = hth_list_value(l);
    if (v.kind == HTH_UNDEFINED) return true;
    if (v.kind != HTH_DICT)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s takes a dict, not a %s", call->what, hth_kind_name(v));
    for (uint32_t i = 0; i < v.dict->count; i++) {
        hth_items *pair = hth_items_new(w, HTH_A_TUPLE, 2);
        if (pair == NULL || !hth_work_charge(w, 1) || !hth_items_put(w, pair, v.dict->entries[i].key) ||
            !hth_items_put(w, pair, v.dict->entries[i].value) || !hth_items_put(w, l, hth_list_value(pair)))
            return false;
    }
    return true;
}

bool hth_filter_join(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    hth_work *w = env->work;
    hth_items *l;
    const hth_str *between = hth_given(a[0]) ? hth_text_of(w, a[0]) : hth_str_text(w, "");
    hth_build b = {.work = w};
    if (between == NULL || !hth_iterate(w, v, &l)) return false;
    for (uint32_t i = 0; i < l->count; i++) {
        hth_value item = l->items[i];
        if (!hth_work_charge(w, 1)) return false;
        if (hth_given(a[1]) && a[1].kind != HTH_NONE && !hth_path(w, item, a[1], &item)) return false;
        if (i > 0) hth_build_str(&b, between);
        if (!hth_value_print(&b, item)) return false;
    }
    return hth_out_str(hth_build_end(&b), out);
}

bool hth_filter_list(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    return hth_out_list(copy_list(env->work, v), out);
}

bool hth_filter_first(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    hth_items *l;
    if (!hth_iterate(env->work, v, &l)) return false;
    *out = l->count > 0 ? l->items[0] : hth_nothing();
    return true;
}

bool hth_filter_last(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    hth_items *l;
    if (!hth_iterate(env->work, v, &l)) return false;
    *out = l->count > 0 ? l->items[l->count - 1] : hth_nothing();
    return true;
}

bool hth_filter_reverse(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)a, (void)call;
    hth_work *w = env->work;
    if (v.kind == HTH_STRING) return hth_slice(w, v, (hth_value[3]){hth_none(), hth_none(), hth_int(-1)}, out);
    hth_items *l = copy_list(w, v);
    for (uint32_t i = 0; l != NULL && i < l->count / 2; i++) {
        hth_value item = l->items[i];
        l->items[i] = l->items[l->count - 1 - i];
        l->items[l->count - 1 - i] = item;
    }
    if (l != NULL) l->kind = HTH_A_GENERATOR;
    return hth_out_list(l, out);
}

bool hth_filter_sum(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    (void)call;
    hth_work *w = env->work;
    hth_items *l;
    if (!hth_iterate(w, v, &l)) return false;
    *out = hth_given(a[1]) ? a[1] : hth_int(0);
    for (uint32_t i = 0; i < l->count; i++) {
        hth_value item = l->items[i];
        if (hth_given(a[0]) && a[0].kind != HTH_NONE && !hth_path(w, item, a[0], &item)) return false;
        if (!hth_work_charge(w, 1) || !hth_binary(w, HTH_S_ADD, *out, item, out)) return false;
    }
    return true;
}

bool hth_filter_batch(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    hth_items *from, *l = hth_items_new(w, HTH_A_GENERATOR, 0), *row = NULL;
    int64_t size;
    if (l == NULL || !hth_iterate(w, v, &from) || !hth_take_int(w, call, a[0], 1, &size)) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        if (row == NULL || row->count >= size) {
            row = hth_items_new(w, HTH_A_LIST, 0);
            if (row == NULL || !hth_items_put(w, l, hth_list_value(row))) return false;
        }
        if (!hth_work_charge(w, 1) || !hth_items_put(w, row, from->items[i])) return false;
    }
    while (row != NULL && hth_given(a[1]) && a[1].kind != HTH_NONE && row->count < size)
        if (!hth_work_charge(w, 1) || !hth_items_put(w, row, a[1])) return false;
    return hth_out_list(l, out);
}

bool hth_filter_slice(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    hth_items *from, *l = hth_items_new(w, HTH_A_GENERATOR, 0);
    int64_t slices;
    if (l == NULL || !hth_iterate(w, v, &from) || !hth_take_int(w, call, a[0], 0, &slices)) return false;
    if (slices <= 0) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "slice: the number of slices must be positive");
    int64_t each = from->count / slices, longer = from->count % slices, at = 0;
    for (int64_t i = 0; i < slices; i++) {
        hth_items *row = hth_items_new(w, HTH_A_LIST, 0);
        if (row == NULL || !hth_work_charge(w, 1) || !hth_items_put(w, l, hth_list_value(row))) return false;
        for (int64_t end = at + each + (i < longer); at < end; at++)
            if (!hth_work_charge(w, 1) || !hth_items_put(w, row, from->items[at])) return false;
        if (i >= longer && hth_given(a[1]) && a[1].kind != HTH_NONE && !hth_items_put(w, row, a[1])) return false;
    }
    return hth_out_list(l, out);
}
