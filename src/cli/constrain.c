#include "cli/constrain.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"

/* A constraint that is refused is the request's fault. */
static int complain(const char *file, const hearth_error *err) {
    bool world = err->status == HEARTH_NO_MEMORY || err->status == HEARTH_IO;
    hth_complain("%s: %s", file, err->text);
    return world ? HTH_EXIT_FAILED : HTH_EXIT_USAGE;
}

static hearth_status compile(const hearth_tokenizer *tokenizer, bool is_schema, hth_text text, hth_constrained *c,
                             hearth_error *err) {
    const char *data = text.data ? text.data : "";
    hearth_status status = hearth_token_index_create(tokenizer, &c->index, err);
    if (status != HEARTH_OK) return status;
    status = is_schema ? hearth_constraint_schema(c->index, data, text.size, NULL, &c->constraint, err)
                       : hearth_constraint_grammar(c->index, data, text.size, NULL, &c->constraint, err);
    return status == HEARTH_OK ? hearth_matcher_create(c->constraint, &c->matcher, err) : status;
}

int hth_constrain(const char *grammar, const char *schema, const hearth_tokenizer *tokenizer, hth_constrained *out) {
    const char *file = grammar ? grammar : schema;
    hth_text text = {NULL, 0};
    hearth_error err = {HEARTH_OK, ""};
    *out = (hth_constrained){.index = NULL};
    int status = hth_read_text(NULL, file, HTH_MOST_BY_HAND, &text);
    if (status != HTH_EXIT_OK) return status;
    uint64_t start = hth_now_ns();
    if (compile(tokenizer, schema != NULL, text, out, &err) != HEARTH_OK) status = complain(file, &err);
    out->compile_ms = hth_ms_since(start);
    free(text.data);
    return status;
}

void hth_constrained_free(hth_constrained *c) {
    hearth_matcher_free(&c->matcher);
    hearth_constraint_free(&c->constraint);
    hearth_token_index_free(&c->index);
}

void hth_constrained_report(const hth_constrained *c, hth_json *json) {
    hearth_constraint_info info;
    hearth_constraint_get_info(c->constraint, &info);
    hth_json_open(json, "constraint", '{');
    hth_report_measure(json, "compile_ms", c->compile_ms);
    hth_json_int(json, "states", info.states);
    hth_json_int(json, "rules", info.rules);
    hth_json_int(json, "masks", info.masks);
    hth_json_int(json, "bytes", (int64_t)info.bytes);
    hth_json_int(json, "matcher_bytes", (int64_t)info.matcher_bytes);
    hth_json_close(json, '}');
}
