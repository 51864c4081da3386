/* Every allocation of reading and rendering a template fails once: each time a named error, nothing leaked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hearth/template.h"
#include "support/alloc_guard.h"

static const char source[] =
    "{% macro m(a) %}{{ a | upper }}{% endmacro %}{% set ns = namespace(x='') %}"
    "{% for m in messages %}{% set ns.x = ns.x + m.content * 3000 %}{{ m.role }}{% endfor %}"
    "{{ m('a') }}{{ ns.x }}{{ messages | tojson }}{{ messages | map(attribute='role') | join }}";
static const char request[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", "
                              "\"content\": \"Ho\"}], \"add_generation_prompt\": true}";

/* HEARTH_OK when nothing failed. */
static hearth_status create_and_render(hearth_error *err) {
    hearth_template *t = NULL;
    hearth_rendering *r = NULL;
    hearth_status status = hearth_template_create(source, sizeof source - 1, &t, err);
    if (status == HEARTH_OK) status = hearth_template_render(t, request, sizeof request - 1, NULL, &r, err);
    assert_true((status == HEARTH_OK) == (r != NULL));
    if (r != NULL) assert_int_equal(r->n_marks, 3);
    hearth_rendering_free(&r);
    hearth_template_free(&t);
    return status;
}

static void each_allocation_fails_once(void **state) {
    hearth_error err;
    (void)state;
    assert_int_equal(create_and_render(&err), HEARTH_OK); /* what the C library keeps is there from now on */
    alloc_guard_reset();
    size_t live = alloc_guard_live();
    assert_int_equal(create_and_render(&err), HEARTH_OK);
    long calls = alloc_guard_calls();
    assert_true(calls > 10);
    for (long n = 1; n <= calls; n++) {
        memset(&err, 0, sizeof err);
        alloc_guard_fail_at(n);
        assert_int_equal(create_and_render(&err), HEARTH_NO_MEMORY);
        assert_int_equal(err.status, HEARTH_NO_MEMORY);
        assert_non_null(strstr(err.text, "no memory"));
        assert_int_equal(alloc_guard_live(), live);
    }
    alloc_guard_fail_at(0);
    assert_int_equal(create_and_render(&err), HEARTH_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
