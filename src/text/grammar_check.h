/* What holds of a grammar's rules, and the refusals that follow from it. */
#ifndef HTH_TEXT_GRAMMAR_CHECK_H
#define HTH_TEXT_GRAMMAR_CHECK_H

#include "text/grammar.h"

typedef struct hth_rule_facts {
    bool nullable;   /* matches the empty text */
    bool productive; /* matches a text at all */
    bool recursive;  /* reaches itself through calls */
    bool reachable;  /* from the root */
    uint32_t uses;   /* calls of it in reachable rules */
} hth_rule_facts;

typedef struct hth_grammar_facts {
    hth_rule_facts *rules; /* [n_rules] */
    uint32_t *order;       /* all rules; one that is called without recursion stands before its caller */
} hth_grammar_facts;

/* Find the facts, and refuse by name: rules that are used and not defined, left recursion (direct, or through other
 * rules and what can be empty), repetition without limit of what can be empty, and a root that matches no text. Free
 * them also after a failure. */
hearth_status hth_grammar_check(hth_grammar *g, hth_grammar_facts *facts, hearth_error *err);
void hth_grammar_facts_free(hth_grammar_facts *facts);

#endif
