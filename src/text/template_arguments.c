/* A call's arguments, by position and by name. */
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_operate.h"

/* The place of a name in a list of names; -1: not in it. *count: of names. */
static int place_of(const char *names, const hth_str *name, unsigned *count) {
    int at = 0, found = -1;
    while (*names != 0) {
        size_t n = strcspn(names, " ");
        if (name != NULL && n == name->size && memcmp(names, name->data, n) == 0) found = at;
        at++;
        names += n + (names[n] == ' ');
    }
    *count = (unsigned)at;
    return found;
}

bool hth_arguments(hth_work *w, const hth_call *call, const char *names, unsigned required, hth_value *out) {
    unsigned count;
    place_of(names, NULL, &count);
    if (call->count > count)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s takes %u arguments, not %u", call->what, count, call->count);
    for (unsigned i = 0; i < count; i++) out[i] = i < call->count ? call->values[i] : hth_nothing();
    uint64_t given = call->count == 0 ? 0 : ((uint64_t)1 << call->count) - 1;
    for (uint32_t i = 0; i < call->n_named; i++) {
        const hth_str *name = call->named[2 * i].str;
        int at = place_of(names, name, &count);
        if (at < 0)
            return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s has no argument '%.*s'", call->what,
                                 (int)(name->size < 40 ? name->size : 40), name->data);
        if ((given >> at & 1) != 0)
            return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s got an argument twice", call->what);
        given |= (uint64_t)1 << at;
        out[at] = call->named[2 * i + 1];
    }
    for (unsigned i = 0; i < required; i++)
        if ((given >> i & 1) == 0)
            return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s needs %u arguments", call->what, required);
    return true;
}

bool hth_take_int(hth_work *w, const hth_call *call, hth_value v, int64_t otherwise, int64_t *out) {
    *out = v.kind == HTH_INT ? v.integer : v.kind == HTH_BOOL ? v.truth : otherwise;
    if (v.kind == HTH_INT || v.kind == HTH_BOOL || v.kind == HTH_NONE || !hth_given(v)) return true;
    return hth_use(w, v) &&
           hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s takes an integer, not a %s", call->what, hth_kind_name(v));
}

bool hth_take_str(hth_work *w, const hth_call *call, hth_value v, const hth_str **out) {
    *out = v.kind == HTH_STRING ? v.str : NULL;
    if (v.kind == HTH_STRING) return true;
    return hth_use(w, v) &&
           hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%s takes a string, not a %s", call->what, hth_kind_name(v));
}
