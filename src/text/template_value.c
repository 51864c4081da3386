#include "text/template_value.h"

#include <math.h>
#include <string.h>

enum { FEW = 8 /* entries that are looked through one by one */ };

/* ---- lists ---- */

hth_items *hth_items_new(hth_work *w, hth_list_kind kind, size_t capacity) {
    hth_items *l = HTH_WORK_NEW(w, hth_items);
    if (l == NULL) return NULL;
    *l = (hth_items){.kind = kind};
    if (capacity == 0) return l;
    if (capacity > UINT32_MAX / 2) {
        hth_work_fail(w, HEARTH_OVER_BUDGET, "it makes a list of %zu items", capacity);
        return NULL;
    }
    l->items = hth_work_take_array(w, capacity, sizeof *l->items);
    l->capacity = (uint32_t)capacity;
    return l->items != NULL ? l : NULL;
}

bool hth_items_put(hth_work *w, hth_items *l, hth_value v) {
    if (!HTH_WORK_ROOM(w, l->items, l->count, l->capacity)) return false;
    l->items[l->count++] = v;
    return true;
}

/* ---- dicts ---- */

hth_dict *hth_dict_new(hth_work *w) {
    hth_dict *d = HTH_WORK_NEW(w, hth_dict);
    if (d != NULL) *d = (hth_dict){.count = 0};
    return d;
}

static bool is_key(hth_value v) {
    return v.kind == HTH_NONE || v.kind == HTH_BOOL || v.kind == HTH_INT || v.kind == HTH_FLOAT || v.kind == HTH_STRING;
}

/* Numbers that are equal have the same key, whatever their kind. */
static bool whole_number(hth_value v, int64_t *out) {
    if (v.kind == HTH_BOOL) *out = v.truth;
    else if (v.kind == HTH_INT) *out = v.integer;
    else if (v.kind == HTH_FLOAT && v.real == floor(v.real) && fabs(v.real) < 0x1p62) *out = (int64_t)v.real;
    else return false;
    return true;
}

static bool same_key(hth_value a, hth_value b) {
    int64_t x = 0, y = 0;
    if (a.kind == HTH_STRING || b.kind == HTH_STRING) return a.kind == b.kind && hth_str_equal(a.str, b.str);
    if (a.kind == HTH_NONE || b.kind == HTH_NONE) return a.kind == b.kind;
    bool whole_a = whole_number(a, &x), whole_b = whole_number(b, &y);
    if (whole_a || whole_b) return whole_a && whole_b && x == y;
    return a.real == b.real;
}

static uint64_t hash_of(const hth_dict *d, hth_value key) {
    int64_t n;
    if (key.kind == HTH_STRING) return hth_hash(d->key, key.str->data, key.str->size);
    if (key.kind == HTH_NONE) return 1;
    if (whole_number(key, &n)) return hth_hash(d->key, &n, sizeof n);
    return hth_hash(d->key, &key.real, sizeof key.real);
}

static hth_value *find(const hth_dict *d, hth_value key) {
    if (d->slots == NULL) {
        for (uint32_t i = 0; i < d->count; i++)
            if (same_key(d->entries[i].key, key)) return &d->entries[i].value;
        return NULL;
    }
    uint64_t hash = hash_of(d, key);
    for (uint32_t at = (uint32_t)hash & (d->slot_count - 1);; at = (at + 1) & (d->slot_count - 1)) {
        if (d->slots[at] == 0) return NULL;
        hth_entry *e = &d->entries[d->slots[at] - 1];
        if (e->hash == hash && same_key(e->key, key)) return &e->value;
    }
}

hth_value *hth_dict_find(const hth_dict *d, hth_value key) {
    return is_key(key) ? find(d, key) : NULL;
}

hth_value *hth_dict_find_text(const hth_dict *d, const char *key) {
    hth_str s = {.data = key, .size = (uint32_t)strlen(key)};
    return find(d, hth_string_value(&s));
}

static void fill_slot(hth_dict *d, uint32_t entry) {
    uint32_t at = (uint32_t)d->entries[entry].hash & (d->slot_count - 1);
    while (d->slots[at] != 0) at = (at + 1) & (d->slot_count - 1);
    d->slots[at] = entry + 1;
}

/* Slots for twice the entries there is room for. */
static bool make_slots(hth_work *w, hth_dict *d) {
    uint32_t count = 1;
    while (count < d->capacity * 2) count *= 2;
    uint32_t *slots = hth_work_take_array(w, count, sizeof *slots);
    if (slots == NULL || !hth_work_charge(w, d->count)) return false;
    if (d->slots == NULL) d->key = hth_hash_new_key();
    memset(slots, 0, count * sizeof *slots);
    d->slots = slots;
    d->slot_count = count;
    for (uint32_t i = 0; i < d->count; i++) {
        d->entries[i].hash = hash_of(d, d->entries[i].key);
        fill_slot(d, i);
    }
    return true;
}

bool hth_dict_put(hth_work *w, hth_dict *d, hth_value key, hth_value value) {
    if (!is_key(key)) {
        if (key.kind == HTH_LIST && key.list->kind == HTH_A_TUPLE)
            return hth_work_fail(w, HEARTH_UNSUPPORTED, "tuples as keys of a dict are not supported");
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s cannot be the key of a dict", hth_kind_name(key));
    }
    hth_value *old = find(d, key);
    if (old != NULL) {
        *old = value;
        return true;
    }
    uint32_t capacity = d->capacity;
    if (!HTH_WORK_ROOM(w, d->entries, d->count, d->capacity)) return false;
    d->entries[d->count++] = (hth_entry){.key = key, .value = value};
    if (d->count <= FEW) return true;
    if (d->slots == NULL || d->capacity != capacity) return make_slots(w, d);
    d->entries[d->count - 1].hash = hash_of(d, key);
    fill_slot(d, d->count - 1);
    return true;
}

bool hth_dict_drop(hth_work *w, hth_dict *d, hth_value key) {
    hth_value *found = hth_dict_find(d, key);
    if (found == NULL) return false;
    hth_entry *e = (hth_entry *)(void *)((char *)found - offsetof(hth_entry, value));
    uint32_t behind = (uint32_t)(d->entries + d->count - (e + 1));
    memmove(e, e + 1, behind * sizeof *e);
    d->count--;
    return d->slots == NULL || make_slots(w, d);
}

/* ---- truth, names, numbers ---- */

bool hth_value_true(hth_value v) {
    switch (v.kind) {
    case HTH_UNDEFINED:
    case HTH_NONE: return false;
    case HTH_BOOL: return v.truth;
    case HTH_INT: return v.integer != 0;
    case HTH_FLOAT: return v.real != 0;
    case HTH_STRING: return v.str->size > 0;
    case HTH_LIST: return v.list->count > 0 || v.list->kind == HTH_A_GENERATOR;
    case HTH_DICT: return v.dict->count > 0;
    case HTH_RANGE: return v.range->count > 0;
    default: return true;
    }
}

const char *hth_kind_name(hth_value v) {
    static const char *const lists[] = {"list", "tuple", "dict_keys", "dict_values", "dict_items", "generator"};
    static const char *const kinds[] = {
        [HTH_UNDEFINED] = "Undefined", [HTH_NONE] = "NoneType", [HTH_BOOL] = "bool",   [HTH_INT] = "int",
        [HTH_FLOAT] = "float",         [HTH_STRING] = "str",    [HTH_DICT] = "dict",   [HTH_RANGE] = "range",
        [HTH_NAMESPACE] = "namespace", [HTH_LOOP] = "loop",     [HTH_MACRO] = "macro", [HTH_GLOBAL] = "function",
        [HTH_METHOD] = "method",
    };
    return v.kind == HTH_LIST ? lists[v.list->kind] : kinds[v.kind];
}

bool hth_value_number(hth_value v, double *out) {
    if (v.kind == HTH_BOOL) *out = v.truth;
    else if (v.kind == HTH_INT) *out = (double)v.integer;
    else if (v.kind == HTH_FLOAT) *out = v.real;
    else return false;
    return true;
}

/* ---- comparing ---- */

static int compare_int_real(int64_t n, double x) {
    if (x >= 0x1p63) return -1;
    if (x < -0x1p63) return 1;
    int64_t whole = (int64_t)x; /* towards zero */
    if (n != whole) return n < whole ? -1 : 1;
    double rest = x - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

/* Order of two numbers, exactly; false when either is none, or is not a number. */
static bool compare_numbers(hth_value a, hth_value b, int *order) {
    int64_t x = a.kind == HTH_BOOL ? a.truth : a.integer, y = b.kind == HTH_BOOL ? b.truth : b.integer;
    bool real_a = a.kind == HTH_FLOAT, real_b = b.kind == HTH_FLOAT;
    if (!real_a && a.kind != HTH_INT && a.kind != HTH_BOOL) return false;
    if (!real_b && b.kind != HTH_INT && b.kind != HTH_BOOL) return false;
    if ((real_a && isnan(a.real)) || (real_b && isnan(b.real))) return false;
    if (real_a && real_b) *order = (a.real > b.real) - (a.real < b.real);
    else if (real_a) *order = -compare_int_real(y, a.real);
    else if (real_b) *order = compare_int_real(x, b.real);
    else *order = (x > y) - (x < y);
    return true;
}

static bool is_listed(hth_value v) {
    return v.kind == HTH_LIST && (v.list->kind == HTH_A_LIST || v.list->kind == HTH_A_TUPLE);
}

/* Equality of two values that hold no others; for two lists or two dicts of one shape *inner is set: their items
 * decide. */
static bool equal_outside(hth_value a, hth_value b, bool *inner) {
    int order;
    *inner = false;
    if (compare_numbers(a, b, &order)) return order == 0;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case HTH_UNDEFINED:
    case HTH_NONE: return true;
    case HTH_STRING: return hth_str_equal(a.str, b.str);
    case HTH_RANGE:
        if (a.range->count != b.range->count) return false;
        if (a.range->count == 0) return true;
        return a.range->start == b.range->start && (a.range->count == 1 || a.range->step == b.range->step);
    case HTH_LIST:
        if (a.list == b.list) return true;
        *inner = is_listed(a) && a.list->kind == b.list->kind && a.list->count == b.list->count;
        return *inner;
    case HTH_DICT:
        if (a.dict == b.dict) return true;
        *inner = a.dict->count == b.dict->count;
        return *inner;
    case HTH_NAMESPACE: return a.dict == b.dict;
    case HTH_LOOP: return a.loop == b.loop;
    case HTH_MACRO: return a.macro == b.macro;
    case HTH_GLOBAL: return a.integer == b.integer;
    default: return false;
    }
}

typedef struct pair {
    hth_value a, b;
    uint32_t at;
} pair;

/* The next two items of a pair of containers; *missing when the second dict lacks a key of the first. */
static bool next_items(pair *p, hth_value *a, hth_value *b, bool *missing) {
    *missing = false;
    if (p->a.kind == HTH_LIST) {
        /* They may have changed their size meanwhile only if they hold each other; the nesting limit ends that. */
        if (p->at >= p->a.list->count || p->at >= p->b.list->count) return false;
        *a = p->a.list->items[p->at];
        *b = p->b.list->items[p->at++];
        return true;
    }
    if (p->at >= p->a.dict->count) return false;
    hth_entry *e = &p->a.dict->entries[p->at++];
    hth_value *other = hth_dict_find(p->b.dict, e->key);
    *missing = other == NULL;
    *a = e->value;
    if (other != NULL) *b = *other;
    return true;
}

static bool too_deep(hth_work *w) {
    return hth_work_fail(w, HEARTH_OVER_BUDGET, "values are nested more than %d deep", HTH_MAX_NESTING);
}

bool hth_value_equal(hth_work *w, hth_value a, hth_value b, bool *equal) {
    bool inner;
    *equal = equal_outside(a, b, &inner);
    if (!inner) return true;
    pair *stack = NULL;
    uint32_t depth = 0, capacity = 0;
    if (!HTH_WORK_ROOM(w, stack, depth, capacity)) return false;
    stack[depth++] = (pair){.a = a, .b = b};
    while (depth > 0 && *equal) {
        bool missing;
        if (!hth_work_charge(w, 1)) return false;
        if (!next_items(&stack[depth - 1], &a, &b, &missing)) {
            depth--;
            continue;
        }
        *equal = !missing && equal_outside(a, b, &inner);
        if (!*equal || !inner) continue;
        if (depth == HTH_MAX_NESTING) return too_deep(w);
        if (!HTH_WORK_ROOM(w, stack, depth, capacity)) return false;
        stack[depth++] = (pair){.a = a, .b = b};
    }
    return true;
}

static bool no_order(hth_work *w, hth_value a, hth_value b) {
    return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "'%s' and '%s' have no order", hth_kind_name(a), hth_kind_name(b));
}

/* The order of two that hold no others; *inner when they are lists. */
static bool order_outside(hth_work *w, hth_value a, hth_value b, int *order, bool *inner) {
    double number;
    *inner = false;
    if (compare_numbers(a, b, order)) return true;
    if (hth_value_number(a, &number) && hth_value_number(b, &number)) {
        *order = 2; /* not a number: neither less, nor equal, nor greater */
        return true;
    }
    if (a.kind == HTH_STRING && b.kind == HTH_STRING) {
        *order = hth_str_compare(a.str, b.str);
        return true;
    }
    if (is_listed(a) && is_listed(b) && a.list->kind == b.list->kind) {
        *inner = true;
        return true;
    }
    return no_order(w, a, b);
}

bool hth_value_order(hth_work *w, hth_value a, hth_value b, int *order) {
    bool inner, equal;
    for (int depth = 0; depth < HTH_MAX_NESTING; depth++) {
        if (!order_outside(w, a, b, order, &inner)) return false;
        if (!inner) return true;
        /* Lists are ordered by the first items that are not equal, else by length. */
        hth_items *x = a.list, *y = b.list;
        uint32_t at = 0;
        for (equal = true; at < x->count && at < y->count; at++) {
            if (!hth_value_equal(w, x->items[at], y->items[at], &equal)) return false;
            if (!equal) break;
        }
        if (equal) {
            *order = (x->count > y->count) - (x->count < y->count);
            return true;
        }
        a = x->items[at];
        b = y->items[at];
    }
    return too_deep(w);
}
