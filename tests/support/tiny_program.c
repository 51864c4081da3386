#include "support/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/models.h"

hearth_status tiny_read(const tiny_model *m, hth_program **p, hearth_error *err) {
    gguf_image im;
    hth_gguf *g;
    const hth_recipe *recipe;
    *p = NULL;
    *err = (hearth_error){0};
    tiny_image(m, &im);
    hearth_status status = hth_gguf_open_memory(im.data, im.size, &g, err);
    if (status == HEARTH_OK) status = hth_recipe_find(g, &recipe, err);
    if (status == HEARTH_OK) status = recipe->emit(g, p, err);
    assert_int_equal(status == HEARTH_OK, *p != NULL);
    hth_gguf_close(&g);
    gguf_image_free(&im);
    return status;
}

void tiny_expect(const tiny_model *m, hearth_status status, const char *text) {
    hearth_error err;
    hth_program *p;
    hearth_status got = tiny_read(m, &p, &err);
    hth_program_free(&p);
    if (got != status || (text && !strstr(err.text, text)))
        fail_msg("%s: %s \"%s\", wanted %s \"%s\"", m->architecture, hearth_status_name(got), err.text,
                 hearth_status_name(status), text ? text : "");
}

hth_program *tiny_program(const tiny_model *m) {
    hearth_error err;
    hth_program *p;
    if (tiny_read(m, &p, &err) != HEARTH_OK) fail_msg("%s: %s", m->architecture, err.text);
    return p;
}

const hth_op *tiny_find_op(const hth_program *p, const char *site) {
    for (int i = 0; i < p->n_ops; i++)
        if (strcmp(p->ops[i].site, site) == 0) return &p->ops[i];
    return NULL;
}

const hth_op *tiny_op_at(const hth_program *p, const char *site) {
    const hth_op *op = tiny_find_op(p, site);
    if (!op) fail_msg("no op %s", site);
    return op;
}
