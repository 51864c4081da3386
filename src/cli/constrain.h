/* The constraint that --grammar or --json-schema names, ready to be followed. */
#ifndef HTH_CLI_CONSTRAIN_H
#define HTH_CLI_CONSTRAIN_H

#include "base/jsonout.h"
#include "hearth/constraint.h"

/* Nothing in it: no constraint. */
typedef struct hth_constrained {
    hearth_token_index *index;
    hearth_constraint *constraint;
    hearth_matcher *matcher;
    double compile_ms;
} hth_constrained;

/* Read and compile the file; one of the two names is given. The tokenizer must outlive the constraint. The answer is an
 * exit status: HTH_EXIT_USAGE for a grammar or schema that is refused; why is printed. Free it also after a failure. */
int hth_constrain(const char *grammar, const char *schema, const hearth_tokenizer *tokenizer, hth_constrained *out);
void hth_constrained_free(hth_constrained *constrained);

/* "constraint": what it took. */
void hth_constrained_report(const hth_constrained *constrained, hth_json *json);

#endif
