/* A request as a template sees it: checked, with what the user wrote told from what the model's makers did. */
#ifndef HTH_TEXT_TEMPLATE_REQUEST_H
#define HTH_TEXT_TEMPLATE_REQUEST_H

#include "hearth/template.h"
#include "text/template_code.h"

typedef struct hth_request {
    hth_dict *variables;
    hth_items *messages;
} hth_request;

/* False has failed the work. */
bool hth_request_read(hth_work *w, const hth_code *code, const char *json, size_t size,
                      const hearth_template_options *options, hth_request *out);

#endif
