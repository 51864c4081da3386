/* A constraint of any bytes: refused by name, or compiled within its limits and then followed. Shared by the fuzz
 * targets of what constraints are made of. */
#ifndef HTH_TESTS_FUZZ_CONSTRAINT_TARGET_H
#define HTH_TESTS_FUZZ_CONSTRAINT_TARGET_H

#include <stdio.h>
#include <stdlib.h>

#include "support/constraint_walk.h"

/* hearth_constraint_grammar or hearth_constraint_schema. */
typedef hearth_status constraint_compile_fn(const hearth_token_index *index, const char *text, size_t size,
                                            const hearth_constraint_limits *limits, hearth_constraint **out,
                                            hearth_error *err);

static void die(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static void constraint_target(constraint_compile_fn *compile, const uint8_t *data, size_t size) {
    static hearth_tokenizer *tokenizer;
    static hearth_token_index *index;
    const hearth_constraint_limits limits = {.bytes = 4 << 20, .steps = 1 << 20};
    hearth_constraint *constraint;
    hearth_error err = {HEARTH_OK, ""};
    if (index == NULL &&
        (hearth_tokenizer_open(HEARTH_TEST_DATA "/tokenizer/spm.gguf", NULL, &tokenizer, &err) != HEARTH_OK ||
         hearth_token_index_create(tokenizer, &index, &err) != HEARTH_OK))
        die(err.text);
    hearth_status status = compile(index, (const char *)data, size, &limits, &constraint, &err);
    if ((status == HEARTH_OK) != (constraint != NULL)) die("a refused constraint was handed out");
    if (status != HEARTH_OK && (err.status != status || err.text[0] == '\0')) die("a refusal without words");
    if (status == HEARTH_OK) constraint_walk(constraint, tokenizer, size, 24, 8);
    hearth_constraint_free(&constraint);
}

#endif
