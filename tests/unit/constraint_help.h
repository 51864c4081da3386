/* Shared by the tests of constraints. */
#ifndef HTH_TESTS_UNIT_CONSTRAINT_HELP_H
#define HTH_TESTS_UNIT_CONSTRAINT_HELP_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf/gguf.h"
#include "hearth/constraint.h"
#include "support/gguf_image.h"

/* A small vocabulary in memory: token 2 ends a generation, 0 and 1 are control tokens, the tokens that were given have
 * the ids from 3 on, and the last one is unused. */
typedef struct constraint_vocab {
    gguf_image image;
    hth_gguf *file;
    hearth_tokenizer *tokenizer;
    hearth_token_index *index;
} constraint_vocab;

enum { CONSTRAINT_END = 2, CONSTRAINT_FIRST = 3 };

void constraint_vocab_open(constraint_vocab *v, const char *const *tokens, size_t count);
void constraint_vocab_close(constraint_vocab *v);

/* A constraint from GBNF or from a schema; the test fails when it is refused. */
hearth_constraint *constraint_of(const hearth_token_index *index, const char *grammar);
hearth_constraint *constraint_of_schema(const hearth_token_index *index, const char *schema);

/* Fails the test unless the text is refused with this status and a message that has `says` in it. */
void constraint_refused(const hearth_token_index *index, bool schema, const char *text, size_t size,
                        hearth_status status, const char *says);

/* A matcher along single bytes needs a vocabulary with all 256 of them as tokens: how the constraint takes a text. */
typedef enum constraint_verdict { CONSTRAINT_REFUSES, CONSTRAINT_PREFIX, CONSTRAINT_MATCHES } constraint_verdict;
void constraint_bytes_open(constraint_vocab *v);
constraint_verdict constraint_judge(const hearth_constraint *c, const char *text, size_t size);
/* The same with a matcher that is there: for many texts. */
constraint_verdict constraint_judge_with(hearth_matcher *m, const char *text, size_t size);

#endif
