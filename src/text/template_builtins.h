/* Filters, tests, functions and methods that a template may call. False has failed the work. */
#ifndef HTH_TEXT_TEMPLATE_BUILTINS_H
#define HTH_TEXT_TEMPLATE_BUILTINS_H

#include <time.h>

#include "text/template_value.h"

/* What the functions see of the rendering. */
typedef struct hth_env {
    hth_work *work;
    struct tm now; /* what strftime_now prints */
} hth_env;

/* A call's arguments. */
typedef struct hth_call {
    const char *what; /* the name of what is called, for errors */
    const hth_value *values;
    uint32_t count;
    const hth_value *named; /* pairs of name and value */
    uint32_t n_named;
} hth_call;

/* Sort them by name: `names` are separated by blanks, the first `required` must be there. Missing ones become undefined
 * without a name. out has room for all names. */
bool hth_arguments(hth_work *w, const hth_call *call, const char *names, unsigned required, hth_value *out);
static inline bool hth_given(hth_value v) {
    return v.kind != HTH_UNDEFINED || v.str != NULL;
}
/* An argument of a kind; `otherwise` when it is not given. */
bool hth_take_int(hth_work *w, const hth_call *call, hth_value v, int64_t otherwise, int64_t *out);
bool hth_take_str(hth_work *w, const hth_call *call, hth_value v, const hth_str **out); /* required */

int hth_filter_id(const char *name, size_t size); /* -1: not known */
bool hth_filter_apply(hth_env *env, int id, hth_value v, const hth_call *call, hth_value *out);
const char *hth_filter_name(int id);

int hth_test_id(const char *name, size_t size);
bool hth_test_apply(hth_env *env, int id, hth_value v, const hth_call *call, bool *out);
const char *hth_test_name(int id);

int hth_global_id(const hth_str *name);
bool hth_global_apply(hth_env *env, int id, const hth_call *call, hth_value *out);

/* -1: a value of this kind has no such method. *known: the name, static. */
int hth_method_id(hth_value v, const hth_str *name, const char **known);
bool hth_method_apply(hth_env *env, const hth_method *m, const hth_call *call, hth_value *out);

/* "%s" % v. */
bool hth_format_percent(hth_work *w, const hth_str *format, hth_value v, hth_value *out);

/* JSON as Python's json.dumps writes it. */
typedef struct hth_json_style {
    bool ascii;                   /* everything else as \uXXXX */
    bool sort;                    /* keys */
    const hth_str *indent;        /* of a level; NULL: one line */
    const hth_str *comma, *colon; /* NULL: the usual ones */
} hth_json_style;
bool hth_json_write(hth_build *b, hth_value v, const hth_json_style *style);

/* Put a list in the order of its items' keys; equal ones stay as they are, also in reverse. */
bool hth_sorted(hth_work *w, hth_items *l, const hth_value *keys, bool reverse);

#endif
