/* A grammar as programs over bytes, one a rule: nondeterministic, like those of regular expressions, with calls.
 *
 * Offsets are relative, so that a piece of a program can be copied: repeated pieces are written out, and rules that are
 * not recursive are copied into their callers where that is cheap. What is left of the calls is what needs a stack.
 */
#ifndef HTH_TEXT_GRAMMAR_PROGRAM_H
#define HTH_TEXT_GRAMMAR_PROGRAM_H

#include "text/grammar_check.h"

enum { HTH_GRAMMAR_MAX_CODE = 1 << 18 };

typedef enum hth_grammar_step_kind {
    HTH_STEP_BYTE, /* a byte from `low` to `high`: go on behind it */
    HTH_STEP_CALL, /* a text of rule `to`: go on behind it */
    HTH_STEP_FORK, /* go to the next step, and `to` steps on */
    HTH_STEP_JUMP, /* go `to` steps on */
    HTH_STEP_FAIL, /* nothing matches */
    HTH_STEP_END   /* of the rule */
} hth_grammar_step_kind;

typedef struct hth_grammar_step {
    uint8_t kind, low, high;
    int32_t to;
} hth_grammar_step;

typedef struct hth_grammar_program {
    hth_grammar_step *code;
    size_t size, capacity;
    uint32_t *begin; /* [n_rules + 1]: where a rule's program begins; the rules that are not reachable have none */
} hth_grammar_program;

/* TOO_LONG names the rule whose program, with what is repeated written out, has no room. */
hearth_status hth_grammar_compile(hth_grammar *g, const hth_grammar_facts *facts, hth_grammar_program *out,
                                  hearth_error *err);
void hth_grammar_program_free(hth_grammar_program *program); /* a zeroed one is valid to free */

#endif
