/* The functions that every template has. */
#include <stdio.h>
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_operate.h"

enum { MAX_RANGE = 100000 }; /* numbers, as in Jinja's sandbox */

static bool apply_range(hth_env *env, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    int64_t n[3] = {0, 0, 1};
    if (call->n_named > 0 || call->count < 1 || call->count > 3)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "range takes 1 to 3 integers");
    for (uint32_t i = 0; i < call->count; i++) {
        hth_value v = call->values[i];
        if (v.kind != HTH_INT && v.kind != HTH_BOOL)
            return hth_use(w, v) &&
                   hth_work_fail(w, HEARTH_BAD_ARGUMENT, "range takes integers, not a %s", hth_kind_name(v));
        n[call->count == 1 ? 1 : i] = v.kind == HTH_INT ? v.integer : v.truth;
    }
    if (n[2] == 0) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "range: the step is 0");
    hth_range *r = HTH_WORK_NEW(w, hth_range);
    if (r == NULL) return false;
    uint64_t distance = n[2] > 0 ? (uint64_t)n[1] - (uint64_t)n[0] : (uint64_t)n[0] - (uint64_t)n[1];
    uint64_t stride = n[2] > 0 ? (uint64_t)n[2] : 0 - (uint64_t)n[2];
    uint64_t count = (n[2] > 0 ? n[0] >= n[1] : n[0] <= n[1]) ? 0 : (distance - 1) / stride + 1;
    if (count > MAX_RANGE)
        return hth_work_fail(w, HEARTH_OVER_BUDGET, "range: more than the limit of %d numbers", MAX_RANGE);
    *r = (hth_range){.start = n[0], .stop = n[1], .step = n[2], .count = (int64_t)count};
    *out = (hth_value){.kind = HTH_RANGE, .range = r};
    return true;
}

/* The members of dict(...) and namespace(...): those of a dict, then those with names. */
static bool make_dict(hth_env *env, const hth_call *call, hth_dict **out) {
    hth_work *w = env->work;
    hth_dict *d = hth_dict_new(w);
    if (d == NULL) return false;
    if (call->count > 1 || (call->count == 1 && call->values[0].kind != HTH_DICT))
        return hth_work_fail(w, HEARTH_UNSUPPORTED, "%s takes a dict, and arguments with names", call->what);
    for (uint32_t i = 0; call->count == 1 && i < call->values[0].dict->count; i++) {
        const hth_entry *e = &call->values[0].dict->entries[i];
        if (!hth_work_charge(w, 1) || !hth_dict_put(w, d, e->key, e->value)) return false;
    }
    for (uint32_t i = 0; i < call->n_named; i++)
        if (!hth_dict_put(w, d, call->named[2 * i], call->named[2 * i + 1])) return false;
    *out = d;
    return true;
}

static bool apply_dict(hth_env *env, const hth_call *call, hth_value *out) {
    out->kind = HTH_DICT;
    return make_dict(env, call, &out->dict);
}

static bool apply_namespace(hth_env *env, const hth_call *call, hth_value *out) {
    out->kind = HTH_NAMESPACE;
    return make_dict(env, call, &out->dict);
}

static bool apply_raise(hth_env *env, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    if (!hth_arguments(w, call, "message", 1, out)) return false;
    const hth_str *s = hth_text_of(w, *out);
    if (s == NULL) return false;
    return hth_work_fail(w, HEARTH_REFUSED, "%.*s", (int)s->size, s->data);
}

/* ---- strftime_now ---- */

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

static int hour12(const struct tm *t) {
    return t->tm_hour % 12 == 0 ? 12 : t->tm_hour % 12;
}

/* One conversion, in English whatever the process's locale; false when it is not known. pad: 0 for '-'. */
static bool write_time(hth_build *b, const struct tm *t, char c, bool pad) {
    char text[64];
    int n = -1, width = 2;
    const char *whole = NULL, *name = NULL;
    size_t size = 3;
    switch (c) {
    case 'd': n = t->tm_mday; break;
    case 'm': n = t->tm_mon + 1; break;
    case 'y': n = (t->tm_year % 100 + 100) % 100; break;
    case 'H': n = t->tm_hour; break;
    case 'I': n = hour12(t); break;
    case 'M': n = t->tm_min; break;
    case 'S': n = t->tm_sec; break;
    case 'j': n = t->tm_yday + 1, width = 3; break;
    case 'Y': n = t->tm_year + 1900, width = 1; break;
    case 'w': n = t->tm_wday, width = 1; break;
    case 'u': n = t->tm_wday == 0 ? 7 : t->tm_wday, width = 1; break;
    case 'f': n = 0, width = 6; break;
    case 'B': name = months[t->tm_mon], size = SIZE_MAX; break;
    case 'b':
    case 'h': name = months[t->tm_mon]; break;
    case 'A': name = days[t->tm_wday], size = SIZE_MAX; break;
    case 'a': name = days[t->tm_wday]; break;
    case 'p': name = t->tm_hour < 12 ? "AM" : "PM", size = 2; break;
    case '%': name = "%", size = 1; break;
    case 'n': name = "\n", size = 1; break;
    case 't': name = "\t", size = 1; break;
    case 'e': snprintf(text, sizeof text, "%2d", t->tm_mday), whole = text; break;
    case 'F':
        snprintf(text, sizeof text, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday), whole = text;
        break;
    case 'T': snprintf(text, sizeof text, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec), whole = text; break;
    case 'R': snprintf(text, sizeof text, "%02d:%02d", t->tm_hour, t->tm_min), whole = text; break;
    case 'D':
    case 'x':
        snprintf(text, sizeof text, "%02d/%02d/%02d", t->tm_mon + 1, t->tm_mday, (t->tm_year % 100 + 100) % 100);
        whole = text;
        break;
    case 'X': return write_time(b, t, 'T', true);
    default: return false;
    }
    if (name != NULL) return hth_build_bytes(b, name, strlen(name) < size ? strlen(name) : size, false);
    if (whole == NULL) snprintf(text, sizeof text, "%0*d", pad ? width : 1, n);
    return hth_build_text(b, text);
}

static bool apply_strftime(hth_env *env, const hth_call *call, hth_value *out) {
    hth_work *w = env->work;
    const hth_str *s;
    hth_value a;
    hth_build b = {.work = w};
    if (!hth_arguments(w, call, "format", 1, &a) || !hth_take_str(w, call, a, &s)) return false;
    for (size_t at = 0; at < s->size; at++) {
        if (s->data[at] != '%' || at + 1 == s->size) {
            hth_build_cut(&b, s, at, at + 1);
            continue;
        }
        bool pad = s->data[at + 1] != '-' || at + 2 == s->size;
        at += pad ? 1 : 2;
        if (!write_time(&b, &env->now, s->data[at], pad))
            return hth_work_fail(w, HEARTH_UNSUPPORTED, "strftime_now: %%%c is not supported",
                                 s->data[at] >= ' ' && s->data[at] < 0x7F ? s->data[at] : '?');
    }
    const hth_str *text = hth_build_end(&b);
    *out = hth_string_value(text);
    return text != NULL;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    bool (*apply)(hth_env *env, const hth_call *call, hth_value *out);
} globals[] = {
    {"range", apply_range},           {"dict", apply_dict},
    {"namespace", apply_namespace},   {"raise_exception", apply_raise},
    {"strftime_now", apply_strftime},
};

int hth_global_id(const hth_str *name) {
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (hth_str_is(name, globals[i].name)) return (int)i;
    return -1;
}

bool hth_global_apply(hth_env *env, int id, const hth_call *call, hth_value *out) {
    hth_call named = *call;
    named.what = globals[id].name;
    return globals[id].apply(env, &named, out);
}
