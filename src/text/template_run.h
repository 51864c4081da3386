/* Running a template's code. */
#ifndef HTH_TEXT_TEMPLATE_RUN_H
#define HTH_TEXT_TEMPLATE_RUN_H

#include <time.h>

#include "text/template_code.h"

typedef struct hth_run_inputs {
    const hth_dict *variables; /* name -> value */
    struct tm now;
    size_t max_output; /* bytes */
} hth_run_inputs;

/* The text, made in w. False has failed the work, with line and column; HEARTH_REFUSED with the template's own words.
 */
bool hth_template_run(hth_work *w, const hth_code *code, const hth_run_inputs *inputs, const hth_str **out);

#endif
