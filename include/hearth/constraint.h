/* Constrained output: a grammar or a JSON schema that says which texts a model may write.
 *
 *   hearth_token_index_create    once for a tokenizer: its tokens in an order that constraints can be compiled against
 *   hearth_constraint_grammar    compiles a GBNF grammar; everything that costs once is paid here
 *   hearth_constraint_schema     compiles a JSON schema
 *   hearth_matcher_create        a text's way through a constraint
 *   hearth_sampler_set_matcher   lets a sampler choose only what the matcher allows (hearth/sampler.h)
 *   hearth_matcher_accept        tells the matcher which token was chosen
 *
 * A token is allowed when the text so far, with it, can still become a text of the constraint; one that ends a
 * generation, when the text so far is one. Tokens are matched by their bytes, so one may end inside a character.
 * Control tokens (but those that end a generation), unused ones and those without bytes are never allowed.
 *
 * Fail closed: a grammar or schema that cannot be honoured in full is refused by name. What a constraint accepts is
 * never more than what it says.
 *
 * Threads: an index and a constraint are read-only once made, and any number of threads may share them. A matcher
 * belongs to one thread at a time; its calls allocate nothing.
 */
#ifndef HEARTH_CONSTRAINT_H
#define HEARTH_CONSTRAINT_H

#include <stddef.h>
#include <stdint.h>

#include "hearth/status.h"
#include "hearth/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_token_index hearth_token_index;
typedef struct hearth_constraint hearth_constraint;
typedef struct hearth_matcher hearth_matcher;

/* ---- Index ---- */

/* Put the tokens of a tokenizer, which must outlive the index, in order. */
HEARTH_API hearth_status hearth_token_index_create(const hearth_tokenizer *tokenizer, hearth_token_index **out,
                                                   hearth_error *err);
HEARTH_API void hearth_token_index_free(hearth_token_index **index); /* NULL is ignored; *index becomes NULL */

/* ---- Constraint ---- */

/* What compiling may take; 0 stands for the default. More is HEARTH_OVER_BUDGET, with both numbers. */
typedef struct hearth_constraint_limits {
    size_t bytes;   /* of the finished constraint (256 MiB) */
    uint64_t steps; /* bytes of tokens matched while compiling (2^31); some ten million take a second */
} hearth_constraint_limits;

/* Compile a GBNF grammar (docs/constraints.md), `size` bytes of UTF-8. The index must outlive the constraint. limits
 * may be NULL. HEARTH_BAD_ARGUMENT for what is wrong with the text and HEARTH_UNSUPPORTED for what is not supported,
 * both with line and column; HEARTH_TOO_LONG when it is too large to compile. */
HEARTH_API hearth_status hearth_constraint_grammar(const hearth_token_index *index, const char *text, size_t size,
                                                   const hearth_constraint_limits *limits, hearth_constraint **out,
                                                   hearth_error *err);

/* Compile a JSON schema (docs/constraints.md says which keywords), `size` bytes of JSON. As above, but the text names
 * the place as a JSON pointer ("#/properties/name"). */
HEARTH_API hearth_status hearth_constraint_schema(const hearth_token_index *index, const char *text, size_t size,
                                                  const hearth_constraint_limits *limits, hearth_constraint **out,
                                                  hearth_error *err);
HEARTH_API void hearth_constraint_free(hearth_constraint **constraint); /* NULL is ignored; *constraint becomes NULL */

/* What a constraint is made of. */
typedef struct hearth_constraint_info {
    uint32_t states;        /* of the automata over bytes */
    uint32_t rules;         /* that need a stack */
    uint32_t masks;         /* different sets of tokens that are kept */
    uint64_t bytes;         /* all it takes */
    uint64_t matcher_bytes; /* what each matcher takes */
    uint64_t steps;         /* bytes of tokens matched while compiling */
} hearth_constraint_info;

/* Copy the facts. */
HEARTH_API void hearth_constraint_get_info(const hearth_constraint *constraint, hearth_constraint_info *out);

/* ---- Matcher ---- */

/* A matcher of the empty text. The constraint must outlive it. */
HEARTH_API hearth_status hearth_matcher_create(const hearth_constraint *constraint, hearth_matcher **out,
                                               hearth_error *err);
HEARTH_API void hearth_matcher_free(hearth_matcher **matcher); /* NULL is ignored; *matcher becomes NULL */

/* How many tokens a mask speaks of: hearth_tokenizer_size of the constraint's tokenizer. */
HEARTH_API int32_t hearth_matcher_vocab(const hearth_matcher *matcher);

/* Back to the empty text. */
HEARTH_API void hearth_matcher_reset(hearth_matcher *matcher);

/* Make a matcher stand where another of the same constraint does (else HEARTH_BAD_ARGUMENT): to come back to a place,
 * keep a matcher there. */
HEARTH_API hearth_status hearth_matcher_copy(hearth_matcher *to, const hearth_matcher *from, hearth_error *err);

typedef enum hearth_match {
    HEARTH_MATCH_OPEN,     /* tokens are allowed */
    HEARTH_MATCH_COMPLETE, /* the text is complete, and nothing can follow: stop */
    HEARTH_MATCH_STUCK     /* the text is not complete, and the vocabulary has no token that goes on: stop */
} hearth_match;

/* The tokens that may come next: bit id % 64 of (*mask)[id / 64], for ids below hearth_tokenizer_size; valid until the
 * matcher changes. *match (may be NULL) says how the text stands; the ending tokens are allowed whenever it is
 * complete. HEARTH_TOO_LONG when the ways in which the text can be read are too many to follow. */
HEARTH_API hearth_status hearth_matcher_mask(hearth_matcher *matcher, const uint64_t **mask, hearth_match *match,
                                             hearth_error *err);

/* 1: the text so far is a text of the constraint. */
HEARTH_API int hearth_matcher_is_complete(const hearth_matcher *matcher);

/* Append a token. One that ends the generation changes nothing. HEARTH_BAD_ARGUMENT when it is not allowed,
 * HEARTH_TOO_LONG as above; then the matcher stands where it stood. */
HEARTH_API hearth_status hearth_matcher_accept(hearth_matcher *matcher, hearth_token token, hearth_error *err);

#ifdef __cplusplus
}
#endif
#endif
