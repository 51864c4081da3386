/* Templates and requests that mean harm: a named error, in bounded time, memory and C stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/template_help.h"
#include "unit/text_help.h"

enum {
    DEEP = 100000,
    STACK = 96 * 1024 /* bytes; a frame for each of DEEP levels would need more */
};

static const char REQUEST[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}";
static const hearth_template_options few = {
    .now = "2025-02-01T09:05:00", .max_steps = 2000000, .max_memory = 64 << 20, .max_output = 1 << 20, .marks = -1};

static void fails(const char *source, size_t size, const char *request, hearth_status status, const char *words) {
    hearth_error err = {HEARTH_OK, ""};
    char *text = template_render(source, size, request, &few, &err);
    if (text != NULL || err.status != status || strstr(err.text, words) == NULL)
        fail_msg("%.60s: %s: %s, not %s: %s", source, hearth_status_name(err.status), text != NULL ? text : err.text,
                 hearth_status_name(status), words);
    free(text);
}

static void template_fails(const char *source, hearth_status status, const char *words) {
    fails(source, strlen(source), REQUEST, status, words);
}

static void request_fails(const char *request, const char *words) {
    static const char source[] = "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}";
    fails(source, sizeof source - 1, request, HEARTH_BAD_ARGUMENT, words);
}

/* before, `times` times part, after; the caller frees it. */
static char *repeated(const char *before, const char *part, size_t times, const char *after) {
    size_t n = strlen(part), size = strlen(before) + n * times + strlen(after) + 1, at = strlen(before);
    char *text = malloc(size);
    assert_non_null(text);
    memcpy(text, before, at);
    for (size_t i = 0; i < times; i++, at += n) memcpy(text + at, part, n);
    memcpy(text + at, after, strlen(after) + 1);
    return text;
}

static void loops_end(void **state) {
    (void)state;
    template_fails("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
                   HEARTH_OVER_BUDGET, "template, line 1");
    template_fails("{% set l = [1] %}{% for a in l %}{% set _ = l.append(a) %}{% endfor %}", HEARTH_OVER_BUDGET,
                   "limit");
    template_fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", HEARTH_OVER_BUDGET, "macros call each other");
    template_fails("{% macro m(n) %}{{ m(n) ~ m(n) }}{% endmacro %}{{ m(1) }}", HEARTH_OVER_BUDGET, "macros");
    template_fails("{{ range(10**9) }}", HEARTH_OVER_BUDGET, "range");
    template_fails("{{ range(-9223372036854775807, 9223372036854775807) }}", HEARTH_OVER_BUDGET, "range");
}

static void time_has_a_limit(void **state) {
    static const char source[] = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    const hearth_template_options options = {.max_steps = UINT64_MAX, .max_ms = 1, .marks = -1};
    hearth_error err;
    (void)state;
    assert_null(template_render(source, sizeof source - 1, REQUEST, &options, &err));
    assert_int_equal(err.status, HEARTH_OVER_BUDGET);
    assert_non_null(strstr(err.text, "limit of time"));
}

static void sizes_end(void **state) {
    (void)state;
    template_fails("{{ 'a' * 10**9 }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ ['a'] * 10**9 }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ 'a' * 10**18 }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
                   HEARTH_OVER_BUDGET, "limit");
    template_fails("{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
                   HEARTH_OVER_BUDGET, "limit");
    template_fails("{% set x = 'a' * 100000 %}{% for i in range(100) %}{{ x }}{% endfor %}", HEARTH_OVER_BUDGET,
                   "limit of 1048576 bytes");
    template_fails("{{ '%1000000000s' % 1 }}", HEARTH_UNSUPPORTED, "width");
    template_fails("{{ 'a' | center(10**12) }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ 'a\nb' | indent(10**12) }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ [1] | batch(10**12, 1) | list }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ [1] | slice(10**12) | list }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ [[1]] | tojson(indent=10**12) }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ 'aaaa'.replace('', 'b' * 1000000) }}", HEARTH_OVER_BUDGET, "limit");
    template_fails("{{ 9223372036854775807 + 1 }}", HEARTH_UNSUPPORTED, "64 bits");
    template_fails("{{ 99999999999999999999 }}", HEARTH_UNSUPPORTED, "64 bits");
    template_fails("{{ -9223372036854775807 - 2 }}{{ 1 }}", HEARTH_UNSUPPORTED, "64 bits");
    template_fails("{{ (-9223372036854775807 - 1) // -1 }}", HEARTH_UNSUPPORTED, "64 bits");
    template_fails("{{ '99999999999999999999' | int }}", HEARTH_UNSUPPORTED, "64 bits");
    template_fails("{{ 10 ** 19 }}", HEARTH_UNSUPPORTED, "64 bits");
}

/* Nesting in the text: of brackets, signs, tags. */
static void deep_templates(void *context) {
    static const struct {
        const char *before, *part, *after, *words;
    } cases[] = {
        {"{{ ", "[", "", "nested"},
        {"{{ ", "(", "", "nested"},
        {"{{ ", "{'a': ", "", "nested"},
        {"{{ ", "-", "1 }}", "nested"},
        {"{{ ", "not ", "1 }}", "nested"},
        {"{{ x", "[x", "", "nested"},
        {"{{ ", "f(", "", "nested"},
        {"{{ x", "|f(x", "", "nested"},
        {"{{ x", " if x else (x", "", "nested"},
        {"", "{% if x %}", "", "nested"},
        {"", "{% for x in y %}", "", "nested"},
        {"{{ x", " is in [", "", "nested"},
        {"", "{% macro m() %}", "", "nested"},
        {"", "{% set x %}", "", "nested"},
        {"", "{% filter upper %}", "", "nested"},
        {"", "{% call m() %}", "", "nested"},
        {"{% for ", "(", "", "this deeply"},
    };
    (void)context;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeated(cases[i].before, cases[i].part, DEEP, cases[i].after);
        hearth_error err = {HEARTH_OK, ""};
        hearth_template *t;
        hearth_status status = hearth_template_create(text, strlen(text), &t, &err);
        if (status == HEARTH_OK || strstr(err.text, cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].part, err.text);
        free(text);
    }
}

/* Long but flat: fine, in linear time. */
static void long_templates(void *context) {
    static const struct {
        const char *before, *part, *after;
    } cases[] = {
        {"{{ 1", " + 1", " }}"},
        {"{{ x", "|upper", " }}"},
        {"{{ 1", " and 1", " }}"},
        {"{{ 1", " < 2", " }}"},
        {"{{ 'a'", " ~ 'a'", " }}"},
        {"{{ [", "1, ", "] }}"},
        {"", "{{ 1 }}", ""},
        {"", "{% if x %}a{% endif %}", ""},
        {"{% if x %}", "{% elif x %}", "{% endif %}"},
        {"{{ 'a'", " 'a'", " }}"},
        {"", "{# a #}", ""},
    };
    (void)context;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeated(cases[i].before, cases[i].part, 20000, cases[i].after);
        hearth_error err = {HEARTH_OK, ""};
        hearth_template *t;
        if (hearth_template_create(text, strlen(text), &t, &err) != HEARTH_OK)
            fail_msg("%s: %s", cases[i].part, err.text);
        hearth_template_free(&t);
        char *out = template_render(text, strlen(text), REQUEST, &few, &err);
        if (out == NULL && strstr(err.text, "order") == NULL) fail_msg("%s: %s", cases[i].part, err.text);
        free(out);
        free(text);
    }
}

/* Nesting of values, made while rendering. */
static void deep_values(void *context) {
    static const char *const uses[] = {"{{ n.x }}",       "{{ n.x | tojson }}", "{{ n.x == n.y }}",
                                       "{{ n.x < n.y }}", "{{ n.x | string }}", "{{ n.x in [n.y] }}"};
    char text[400];
    (void)context;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        snprintf(text, sizeof text,
                 "{%% set n = namespace(x=[], y=[]) %%}{%% for i in range(100000) %%}"
                 "{%% set n.x = [n.x] %%}{%% set n.y = [n.y] %%}{%% endfor %%}%s",
                 uses[i]);
        template_fails(text, HEARTH_OVER_BUDGET, "nested");
    }
    template_fails("{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}", HEARTH_OVER_BUDGET, "nested");
    template_fails("{% set l = [1] %}{% set _ = l.append(l) %}{{ l | tojson }}", HEARTH_OVER_BUDGET, "nested");
}

/* 100,000 levels of JSON. */
static void deep_requests(void *context) {
    (void)context;
    char *text = repeated("{\"messages\": ", "[", DEEP, "");
    request_fails(text, "nested more than");
    free(text);
    text = repeated("", "{\"a\":", DEEP, "");
    request_fails(text, "nested more than");
    free(text);
}

static void nesting_is_limited(void **state) {
    (void)state;
    text_on_small_stack(deep_templates, NULL, STACK);
    text_on_small_stack(long_templates, NULL, STACK);
    text_on_small_stack(deep_values, NULL, STACK);
    text_on_small_stack(deep_requests, NULL, STACK);
}

static void bad_requests_are_named(void **state) {
    (void)state;
    request_fails("", "the text ends");
    request_fails("[]", "the request is a list, not an object");
    request_fails("{}", "no messages");
    request_fails("{\"messages\": {}}", "messages is a dict, not an array");
    request_fails("{\"messages\": \"x\"}", "messages is a str, not an array");
    request_fails("{\"messages\": [1]}", "messages[0] is a int, not an object");
    request_fails("{\"messages\": [{\"role\": \"user\", \"content\": \"\"}, \"x\"]}", "messages[1] is a str");
    request_fails("{\"messages\": [{\"content\": \"x\"}]}", "messages[0] has no role");
    request_fails("{\"messages\": [{\"role\": 1}]}", "messages[0]: its role is a int");
    request_fails("{\"messages\": [{\"role\": \"wizard\", \"content\": \"x\"}]}", "the role 'wizard' is not known");
    request_fails("{\"messages\": [{\"role\": \"user\", \"content\": \"\\ud800\"}]}", "half of a surrogate pair");
    request_fails("{\"messages\": [{\"role\": \"user\", \"content\": \"\\udc00\\ud800\"}]}",
                  "half of a surrogate pair");
    request_fails("{\"messages\": [{\"role\": \"user\", \"content\": \"\\ud800\\u0041\"}]}",
                  "half of a surrogate pair");
    request_fails("{\"messages\": [{\"role\": \"user\", \"content\": \"\xED\xA0\x80\"}]}", "not UTF-8");
    request_fails("{\"messages\": [{\"role\": \"user\", \"content\": \"a\nb\"}]}",
                  "line 1, column 45: a control character");
    request_fails("{\"messages\": [], \"n\": 9223372036854775808}", "more than 64 bits");
    request_fails("{\"messages\": [], \"n\": -9223372036854775809}", "more than 64 bits");
    request_fails("{\"messages\": [], \"n\": 1e999}", "too large");
    request_fails("{\"messages\": [], \"n\": 01}", "a number");
    request_fails("{\"messages\": [], \"n\": NaN}", "a value");
    request_fails("{\"messages\": [],}", "the name of a member");
    request_fails("{\"messages\": [1,]}", "a value");
    request_fails("{\"messages\": []} x", "the end of the text");
    request_fails("{\"messages\": [], \"a\" 1}", "':'");
}

/* Numbers come out as they went in. */
static void numbers_are_exact(void **state) {
    static const char source[] = "{{ v | tojson }} {{ v }}";
    static const char request[] =
        "{\"messages\": [], \"v\": [9223372036854775807, -9223372036854775808, 0, -0, 1.0, -0.0, "
        "1e5, 1E-7, 0.1, 123456789012345678, 1.7976931348623157e308, 5e-324]}";
    static const char wanted[] = "[9223372036854775807, -9223372036854775808, 0, 0, 1.0, -0.0, 100000.0, 1e-07, 0.1, "
                                 "123456789012345678, 1.7976931348623157e+308, 5e-324]";
    hearth_error err;
    char twice[600];
    (void)state;
    snprintf(twice, sizeof twice, "%s %s", wanted, wanted);
    char *text = template_render(source, sizeof source - 1, request, &few, &err);
    assert_non_null(text);
    assert_string_equal(text, twice);
    free(text);
}

static void unknown_things_are_named(void **state) {
    (void)state;
    template_fails("a\n  {% nosuch %}", HEARTH_UNSUPPORTED,
                   "template, line 2, column 3: the tag 'nosuch' is not known");
    template_fails("{% include 'x' %}", HEARTH_UNSUPPORTED, "the tag 'include' is not supported");
    template_fails("{% import 'x' as y %}", HEARTH_UNSUPPORTED, "the tag 'import'");
    template_fails("{% extends 'x' %}", HEARTH_UNSUPPORTED, "the tag 'extends'");
    template_fails("{{ 1\n| nosuch }}", HEARTH_UNSUPPORTED, "template, line 2, column 3: there is no filter 'nosuch'");
    template_fails("{{ 1 is nosuch }}", HEARTH_UNSUPPORTED, "there is no test 'nosuch'");
    template_fails("{{ 'a'.encode() }}", HEARTH_UNSUPPORTED, "the method 'encode' of a str is not supported");
    template_fails("{{ f(*x) }}", HEARTH_UNSUPPORTED, "not supported");
    template_fails("{{ x[1, 2] }}", HEARTH_UNSUPPORTED, "several indices");
    template_fails("{% for x in y recursive %}{% endfor %}", HEARTH_UNSUPPORTED, "recursive loops");
    template_fails("{{ x", HEARTH_BAD_FILE, "line 1, column 1: this {{ has no }}");
    template_fails("{% if x", HEARTH_BAD_FILE, "this {% has no %}");
    template_fails("\n{# x", HEARTH_BAD_FILE, "line 2, column 1: this comment has no end");
    template_fails("{% for x in y %}\n{% if x %}{% endfor %}", HEARTH_BAD_FILE, "'endfor' where 'endif' is due");
    template_fails("{{ 'x", HEARTH_BAD_FILE, "this string has no end");
    template_fails("\xFF", HEARTH_BAD_FILE, "not UTF-8");
    template_fails("{{ strftime_now('%Q') }}", HEARTH_UNSUPPORTED, "%Q is not supported");
    template_fails("{{ messages.append(1) }}", HEARTH_BAD_ARGUMENT, "cannot be changed");
    template_fails("{{ x.y }}", HEARTH_BAD_ARGUMENT, "'x' is undefined");
    template_fails("{{ raise_exception('Only \"user\" may speak') }}", HEARTH_REFUSED, "Only \"user\" may speak");
}

/* Values that do not come from the request: text is the model's own, the strings of JSON are content, the request's
 * variable of the same name counts first, and what is no JSON is named. */
static void variables_are_read(void **state) {
    (void)state;
    static const char source[] = "{{ a }}{{ b.c[0] }}{{ d is sameas false }}{{ e }}";
    static const char request[] = "{\"messages\": [], \"e\": \"own\"}";
    hearth_template_variable variables[] = {
        {"a", "<x>", 0}, {"b", "{\"c\": [\"<y>\"]}", 1}, {"d", "false", 1}, {"e", "\"other\"", 1}};
    hearth_template_options options = {.variables = variables, .n_variables = 4, .marks = -1};
    hearth_template *t;
    hearth_rendering *r;
    hearth_error err;
    assert_int_equal(hearth_template_create(source, sizeof source - 1, &t, &err), HEARTH_OK);
    assert_int_equal(hearth_template_render(t, request, sizeof request - 1, &options, &r, &err), HEARTH_OK);
    assert_int_equal(r->size, strlen("<x><y>Trueown"));
    assert_memory_equal(r->text, "<x><y>Trueown", r->size);
    assert_int_equal(r->n_segments, 4); /* <x>, <y>, True, own */
    for (size_t i = 0; i < r->n_segments; i++) assert_int_equal(r->segments[i].content, i % 2);
    hearth_rendering_free(&r);
    static const char *const wrong[] = {"", "{", "1 2", "1], [2", "\"a", "1e999", "\"\\ud800\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        variables[1].text = wrong[i];
        assert_int_equal(hearth_template_render(t, request, sizeof request - 1, &options, &r, &err),
                         HEARTH_BAD_ARGUMENT);
        assert_non_null(strstr(err.text, "the variable b: "));
        assert_null(r);
    }
    assert_int_equal(hearth_template_names(t, "b"), 1);
    assert_int_equal(hearth_template_names(t, "c"), 0);
    assert_int_equal(hearth_template_names(t, "bb"), 0);
    assert_int_equal(hearth_template_names(t, ""), 0);
    hearth_template_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_read), cmocka_unit_test(loops_end),
        cmocka_unit_test(time_has_a_limit),   cmocka_unit_test(sizes_end),
        cmocka_unit_test(nesting_is_limited), cmocka_unit_test(bad_requests_are_named),
        cmocka_unit_test(numbers_are_exact),  cmocka_unit_test(unknown_things_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
