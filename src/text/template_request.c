#include "text/template_request.h"

#include <string.h>

#include "text/json_reader.h"

static const char *const usual_roles[] = {
    "system", "user", "assistant", "tool", "developer", "function", "model", "ipython", "observation", "tool_response",
};

/* A role is one that is usual, or that the template speaks of. */
static bool known_role(const hth_code *code, const hth_str *role) {
    for (size_t i = 0; i < sizeof usual_roles / sizeof *usual_roles; i++)
        if (hth_str_is(role, usual_roles[i])) return true;
    for (uint32_t i = 0; i < code->n_constants; i++)
        if (code->constants[i].kind == HTH_STRING && hth_str_equal(code->constants[i].str, role)) return true;
    return false;
}

/* The same text as the model's own. */
static bool trust(hth_work *w, hth_value *v) {
    const hth_str *s = hth_str_new(w, v->str->data, v->str->size, false);
    if (s != NULL) *v = hth_string_value(s);
    return s != NULL;
}

static bool check_message(hth_work *w, const hth_code *code, hth_value v, uint32_t i) {
    if (v.kind != HTH_DICT)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "messages[%u] is a %s, not an object", i, hth_kind_name(v));
    hth_value *role = hth_dict_find_text(v.dict, "role"), *calls = hth_dict_find_text(v.dict, "tool_calls");
    if (role == NULL) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "messages[%u] has no role", i);
    if (role->kind != HTH_STRING)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "messages[%u]: its role is a %s, not a string", i,
                             hth_kind_name(*role));
    if (!hth_work_charge(w, 1 + code->n_constants / 16)) return false;
    if (!known_role(code, role->str))
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "messages[%u]: the role '%.*s' is not known", i,
                             (int)(role->str->size < 60 ? role->str->size : 60), role->str->data);
    /* Some templates spell control tokens with it: '<|' + role + '|>'. */
    if (!trust(w, role)) return false;
    if (calls == NULL || calls->kind != HTH_LIST || calls->list->count > 0) return true;
    hth_str name = {.data = "tool_calls", .size = strlen("tool_calls")};
    return hth_dict_drop(w, v.dict, hth_string_value(&name));
}

static bool ends_with_token(const hth_str *name) {
    static const char end[] = "_token";
    size_t n = sizeof end - 1;
    return name->size > n && memcmp(name->data + name->size - n, end, n) == 0;
}

static bool read_variable(hth_work *w, const hearth_template_variable *v, hth_value *out) {
    if (v->is_json) {
        if (hth_json_read(w, v->text, strlen(v->text), out)) return true;
        if (w->status != HEARTH_BAD_ARGUMENT) return false;
        char why[sizeof w->text];
        memcpy(why, w->text, sizeof why);
        w->status = HEARTH_OK; /* so that it fails with the variable's name */
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "the variable %.60s: %.300s", v->name, why);
    }
    const hth_str *text = hth_str_text(w, v->text);
    if (text != NULL) *out = hth_string_value(text);
    return text != NULL;
}

/* bos_token and the like: from the request, which may give its own, and from the model. */
static bool add_variables(hth_work *w, hth_dict *variables, const hearth_template_options *options) {
    for (uint32_t i = 0; i < variables->count; i++) {
        hth_entry *e = &variables->entries[i];
        if (e->value.kind == HTH_STRING && ends_with_token(e->key.str) && !trust(w, &e->value)) return false;
    }
    for (size_t i = 0; options != NULL && i < options->n_variables; i++) {
        const hearth_template_variable *v = &options->variables[i];
        if (hth_dict_find_text(variables, v->name) != NULL) continue;
        const hth_str *name = hth_str_text(w, v->name);
        hth_value value;
        if (name == NULL || !read_variable(w, v, &value)) return false;
        if (!hth_dict_put(w, variables, hth_string_value(name), value)) return false;
    }
    return true;
}

bool hth_request_read(hth_work *w, const hth_code *code, const char *json, size_t size,
                      const hearth_template_options *options, hth_request *out) {
    hth_value v;
    if (!hth_json_read(w, json, size, &v)) return false;
    if (v.kind != HTH_DICT)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "the request is a %s, not an object", hth_kind_name(v));
    const hth_value *messages = hth_dict_find_text(v.dict, "messages");
    if (messages == NULL) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "the request has no messages");
    if (messages->kind != HTH_LIST)
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "messages is a %s, not an array", hth_kind_name(*messages));
    out->variables = v.dict;
    out->messages = messages->list;
    for (uint32_t i = 0; i < out->messages->count; i++)
        if (!check_message(w, code, out->messages->items[i], i)) return false;
    return add_variables(w, v.dict, options);
}
