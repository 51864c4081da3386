#include "unit/template_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/json_reader.h"
#include "text/template_builtins.h"

char *template_file(const char *name, size_t *size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", HEARTH_TEST_DATA, name);
    FILE *f = fopen(path, "rb");
    if (f == NULL) fail_msg("%s is not there", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long end = ftell(f);
    assert_true(end >= 0);
    rewind(f);
    char *text = malloc((size_t)end + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)end, f), end);
    fclose(f);
    text[end] = 0;
    *size = (size_t)end;
    return text;
}

hth_value template_data(hth_work *w, const char *name) {
    size_t size;
    hth_value v;
    char *text = template_file(name, &size);
    if (!hth_json_read(w, text, size, &v)) fail_msg("%s: %s", name, w->text);
    free(text);
    return v;
}

const char *template_json(hth_work *w, hth_value v) {
    hth_build b = {.work = w};
    const hth_json_style style = {.ascii = false};
    assert_true(hth_json_write(&b, v, &style));
    assert_true(hth_build_bytes(&b, "", 1, false));
    return b.data;
}

char *template_render(const char *source, size_t size, const char *request, const hearth_template_options *options,
                      hearth_error *err) {
    hearth_template *t;
    hearth_rendering *r = NULL;
    char *text = NULL;
    if (hearth_template_create(source, size, &t, err) != HEARTH_OK) return NULL;
    if (hearth_template_render(t, request, strlen(request), options, &r, err) == HEARTH_OK) {
        text = malloc(r->size + 1);
        assert_non_null(text);
        memcpy(text, r->text, r->size);
        text[r->size] = 0;
    }
    hearth_rendering_free(&r);
    hearth_template_free(&t);
    return text;
}
