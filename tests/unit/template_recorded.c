/* Renderings equal to what transformers recorded, byte for byte (scripts/oracle/template_vectors.py). */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/template_help.h"

static const char NOW[] = "2025-02-01T09:05:00"; /* as in scripts/oracle/template_oracle.py */

/* Whether a rendering is what was recorded: a text, {"refused": words}, or null for any other failure. */
static bool check(hth_work *w, const char *name, const hth_str *source, const char *request, hth_value wanted) {
    hearth_error err = {HEARTH_OK, ""};
    const hearth_template_options options = {.now = NOW, .marks = -1};
    char *text = template_render(source->data, source->size, request, &options, &err);
    bool ok;
    if (wanted.kind == HTH_NONE) {
        ok = text == NULL && err.status != HEARTH_REFUSED;
    } else if (wanted.kind == HTH_DICT) {
        const hth_str *words = hth_dict_find_text(wanted.dict, "refused")->str;
        ok = text == NULL && err.status == HEARTH_REFUSED && hth_str_is(words, err.text);
    } else {
        ok = text != NULL && hth_str_is(wanted.str, text);
    }
    if (!ok)
        print_error("%s: %.*s\n  is     %s%s\n  not    %s\n", name, (int)(source->size < 200 ? source->size : 200),
                    source->data, text != NULL ? "" : "error: ", text != NULL ? text : err.text,
                    template_json(w, wanted));
    free(text);
    return ok;
}

static void snippets_render_as_recorded(void **state) {
    hth_work w;
    (void)state;
    hth_work_begin(&w, SIZE_MAX, UINT64_MAX, 0);
    hth_items *rows = template_data(&w, "templates/snippets.json").list;
    const char *request = template_json(&w, *hth_dict_find_text(rows->items[0].dict, "variables"));
    uint32_t wrong = 0;
    assert_true(rows->count > 400);
    for (uint32_t i = 1; i < rows->count; i++) {
        const hth_dict *row = rows->items[i].dict;
        wrong += !check(&w, "snippet", hth_dict_find_text(row, "template")->str, request,
                        *hth_dict_find_text(row, "output"));
    }
    hth_work_end(&w);
    assert_int_equal(wrong, 0);
}

static uint32_t check_family(hth_work *w, const hth_dict *requests, const char *name) {
    char path[300];
    size_t size;
    uint32_t wrong = 0;
    snprintf(path, sizeof path, "../golden/templates/%s.jinja", name);
    char *text = template_file(path, &size);
    const hth_str *source = hth_str_new(w, text, size, false);
    snprintf(path, sizeof path, "templates/%s.json", name);
    const hth_dict *recorded = template_data(w, path).dict;
    assert_int_equal(recorded->count, requests->count);
    for (uint32_t i = 0; i < recorded->count; i++) {
        hth_value kind = recorded->entries[i].key;
        const char *request = template_json(w, *hth_dict_find(requests, kind));
        snprintf(path, sizeof path, "%s %.*s", name, (int)kind.str->size, kind.str->data);
        wrong += !check(w, path, source, request, recorded->entries[i].value);
    }
    free(text);
    return wrong;
}

static void families_render_as_recorded(void **state) {
    hth_work w;
    uint32_t wrong = 0, families = 0;
    (void)state;
    hth_work_begin(&w, SIZE_MAX, UINT64_MAX, 0);
    const hth_dict *requests = template_data(&w, "templates/requests.json").dict;
    DIR *folder = opendir(HEARTH_TEST_DATA "/../golden/templates");
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        char name[200];
        const char *dot = strrchr(e->d_name, '.');
        if (dot == NULL || strcmp(dot, ".jinja") != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(dot - e->d_name), e->d_name);
        wrong += check_family(&w, requests, name);
        families++;
    }
    closedir(folder);
    hth_work_end(&w);
    assert_true(families >= 12);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snippets_render_as_recorded),
        cmocka_unit_test(families_render_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
