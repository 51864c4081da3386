/* Shared by the tests of templates. */
#ifndef HTH_TESTS_UNIT_TEMPLATE_HELP_H
#define HTH_TESTS_UNIT_TEMPLATE_HELP_H

#include "hearth/template.h"
#include "text/template_value.h"

/* A file of tests/data/templates (or, with a slash in it, of tests) as a value, in w; the test fails when it is none.
 */
hth_value template_data(hth_work *w, const char *name);
char *template_file(const char *name, size_t *size); /* the caller frees it */

/* A value as JSON, NUL-terminated, in w. */
const char *template_json(hth_work *w, hth_value v);

/* Create and render; the text, NUL-terminated and the caller's to free, or NULL and the error. */
char *template_render(const char *source, size_t size, const char *request, const hearth_template_options *options,
                      hearth_error *err);

#endif
