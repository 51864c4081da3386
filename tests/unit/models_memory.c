/* Reading a model and planning its memory when an allocation fails: each one in turn gives HEARTH_NO_MEMORY and leaves
 * nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/models.h"
#include "program/plan.h"
#include "support/alloc_guard.h"
#include "support/tiny_model.h"

static hearth_status read_and_plan(const hth_gguf *g, hearth_error *err) {
    const hth_recipe *recipe;
    hth_program *p = NULL;
    hth_plan plan = {0};
    const hth_extents extents = {{1, 8, 2, 1, 1}};
    hearth_status status = hth_recipe_find(g, &recipe, err);
    if (status == HEARTH_OK) status = recipe->emit(g, &p, err);
    if (status == HEARTH_OK) status = hth_plan_make(p, &extents, &plan, err);
    hth_plan_free(&plan);
    hth_program_free(&p);
    return status;
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    for (int a = 0; tiny_architectures[a]; a++) {
        tiny_model m;
        gguf_image im;
        hth_gguf *g;
        hearth_error err;
        tiny_make(&m, tiny_architectures[a]);
        tiny_image(&m, &im);
        assert_int_equal(hth_gguf_open_memory(im.data, im.size, &g, &err), HEARTH_OK);
        size_t live = alloc_guard_live();
        alloc_guard_reset();
        assert_int_equal(read_and_plan(g, &err), HEARTH_OK);
        long calls = alloc_guard_calls();
        assert_true(calls > 5);
        for (long n = 1; n <= calls; n++) {
            alloc_guard_reset();
            alloc_guard_fail_at(n);
            hearth_status status = read_and_plan(g, &err);
            if (status != HEARTH_NO_MEMORY)
                fail_msg("%s, call %ld: %s %s", tiny_architectures[a], n, hearth_status_name(status), err.text);
            assert_int_equal(alloc_guard_live(), live);
        }
        hth_gguf_close(&g);
        gguf_image_free(&im);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
