/* Tests: what stands behind `is`. */
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_code.h"
#include "text/template_lexer.h"
#include "text/template_operate.h"
#include "text/template_text.h"

typedef enum test_id {
    BOOLEAN,
    CALLABLE,
    DEFINED,
    DIVISIBLEBY,
    EQ,
    ESCAPED,
    EVEN,
    FALSE_TEST,
    FILTER,
    FLOAT,
    GE,
    GT,
    IN,
    INTEGER,
    ITERABLE,
    LE,
    LOWER,
    LT,
    MAPPING,
    NE,
    NONE,
    NUMBER,
    ODD,
    SAMEAS,
    SEQUENCE,
    STRING,
    TEST,
    TRUE_TEST,
    UNDEFINED,
    UPPER
} test_id;

static const struct {
    const char *name;
    test_id id;
    unsigned arguments;
} tests[] = {
    {"!=", NE, 1},
    {"<", LT, 1},
    {"<=", LE, 1},
    {"==", EQ, 1},
    {">", GT, 1},
    {">=", GE, 1},
    {"boolean", BOOLEAN, 0},
    {"callable", CALLABLE, 0},
    {"defined", DEFINED, 0},
    {"divisibleby", DIVISIBLEBY, 1},
    {"eq", EQ, 1},
    {"equalto", EQ, 1},
    {"escaped", ESCAPED, 0},
    {"even", EVEN, 0},
    {"false", FALSE_TEST, 0},
    {"filter", FILTER, 0},
    {"float", FLOAT, 0},
    {"ge", GE, 1},
    {"greaterthan", GT, 1},
    {"gt", GT, 1},
    {"in", IN, 1},
    {"integer", INTEGER, 0},
    {"iterable", ITERABLE, 0},
    {"le", LE, 1},
    {"lessthan", LT, 1},
    {"lower", LOWER, 0},
    {"lt", LT, 1},
    {"mapping", MAPPING, 0},
    {"ne", NE, 1},
    {"none", NONE, 0},
    {"number", NUMBER, 0},
    {"odd", ODD, 0},
    {"sameas", SAMEAS, 1},
    {"sequence", SEQUENCE, 0},
    {"string", STRING, 0},
    {"test", TEST, 0},
    {"true", TRUE_TEST, 0},
    {"undefined", UNDEFINED, 0},
    {"upper", UPPER, 0},
};

int hth_test_id(const char *name, size_t size) {
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strlen(tests[i].name) == size && memcmp(tests[i].name, name, size) == 0) return (int)i;
    return -1;
}

const char *hth_test_name(int id) {
    return tests[id].name;
}

static bool remainder_of(hth_work *w, hth_value v, hth_value by, int64_t *out) {
    hth_value rest;
    if (!hth_binary(w, HTH_S_MOD, v, by, &rest)) return false;
    if (rest.kind == HTH_FLOAT) {
        *out = rest.real == 0 ? 0 : rest.real == 1 ? 1 : 2; /* a rest that is neither is as good as any */
        return true;
    }
    if (rest.kind != HTH_INT) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "a %s is not a number", hth_kind_name(v));
    *out = rest.integer;
    return true;
}

static bool same(hth_value a, hth_value b) {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case HTH_NONE: return true;
    case HTH_BOOL: return a.truth == b.truth;
    case HTH_INT: return a.integer == b.integer;
    case HTH_STRING: return hth_str_equal(a.str, b.str);
    case HTH_LIST: return a.list == b.list;
    case HTH_DICT:
    case HTH_NAMESPACE: return a.dict == b.dict;
    default: return false;
    }
}

static bool has_case(hth_work *w, hth_value v, const char *name, bool *out) {
    const hth_str *s = hth_text_of(w, v);
    if (s == NULL) return false;
    *out = hth_str_is_class(s, name) == 1;
    return true;
}

static bool iterable(hth_value v) {
    return v.kind == HTH_UNDEFINED || v.kind == HTH_STRING || v.kind == HTH_LIST || v.kind == HTH_DICT ||
           v.kind == HTH_RANGE || v.kind == HTH_LOOP;
}

/* Tests with an argument. */
static bool apply_binary(hth_work *w, test_id id, hth_value v, hth_value other, bool *out) {
    int64_t rest;
    switch (id) {
    case EQ: return hth_compare_values(w, HTH_C_EQ, v, other, out);
    case NE: return hth_compare_values(w, HTH_C_NE, v, other, out);
    case LT: return hth_compare_values(w, HTH_C_LT, v, other, out);
    case LE: return hth_compare_values(w, HTH_C_LE, v, other, out);
    case GT: return hth_compare_values(w, HTH_C_GT, v, other, out);
    case GE: return hth_compare_values(w, HTH_C_GE, v, other, out);
    case IN: return hth_compare_values(w, HTH_C_IN, v, other, out);
    case SAMEAS: *out = same(v, other); return true;
    default: /* DIVISIBLEBY */
        if (!remainder_of(w, v, other, &rest)) return false;
        *out = rest == 0;
        return true;
    }
}

static bool apply_unary(hth_work *w, test_id id, hth_value v, bool *out) {
    int64_t rest;
    bool list = v.kind == HTH_LIST;
    switch (id) {
    case BOOLEAN: *out = v.kind == HTH_BOOL; return true;
    case CALLABLE: *out = v.kind >= HTH_MACRO || v.kind == HTH_UNDEFINED; return true;
    case DEFINED: *out = v.kind != HTH_UNDEFINED; return true;
    case ESCAPED: *out = false; return true;
    case FALSE_TEST: *out = v.kind == HTH_BOOL && !v.truth; return true;
    case TRUE_TEST: *out = v.kind == HTH_BOOL && v.truth; return true;
    case FLOAT: *out = v.kind == HTH_FLOAT; return true;
    case INTEGER: *out = v.kind == HTH_INT; return true;
    case ITERABLE: *out = iterable(v); return true;
    case MAPPING: *out = v.kind == HTH_DICT; return true;
    case NONE: *out = v.kind == HTH_NONE; return true;
    case NUMBER: *out = v.kind == HTH_BOOL || v.kind == HTH_INT || v.kind == HTH_FLOAT; return true;
    case SEQUENCE:
        *out = v.kind == HTH_UNDEFINED || v.kind == HTH_STRING || v.kind == HTH_DICT || v.kind == HTH_RANGE ||
               (list && v.list->kind != HTH_A_KEYS && v.list->kind != HTH_A_VALUES && v.list->kind != HTH_AN_ITEMS);
        return true;
    case STRING: *out = v.kind == HTH_STRING; return true;
    case UNDEFINED: *out = v.kind == HTH_UNDEFINED; return true;
    case LOWER: return has_case(w, v, "islower", out);
    case UPPER: return has_case(w, v, "isupper", out);
    case FILTER: *out = v.kind == HTH_STRING && hth_filter_id(v.str->data, v.str->size) >= 0; return true;
    case TEST: *out = v.kind == HTH_STRING && hth_test_id(v.str->data, v.str->size) >= 0; return true;
    default: /* EVEN, ODD */
        if (!remainder_of(w, v, hth_int(2), &rest)) return false;
        *out = rest == (id == ODD);
        return true;
    }
}

bool hth_test_apply(hth_env *env, int id, hth_value v, const hth_call *call, bool *out) {
    hth_work *w = env->work;
    if (!hth_work_charge(w, 1)) return false;
    if (call->n_named > 0) return hth_work_fail(w, HEARTH_UNSUPPORTED, "%s: arguments with names", call->what);
    if (call->count != tests[id].arguments)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "the test %s takes %u arguments, not %u", call->what,
                             tests[id].arguments, call->count);
    if (tests[id].arguments == 1) return apply_binary(w, tests[id].id, v, call->values[0], out);
    return apply_unary(w, tests[id].id, v, out);
}
