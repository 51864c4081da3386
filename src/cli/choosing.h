/* How run and chat choose tokens, as far as the sampling options do not say: their common flags, and what is made of
 * them. The functions answer an exit status, and print why when it is not HTH_EXIT_OK. */
#ifndef HTH_CLI_CHOOSING_H
#define HTH_CLI_CHOOSING_H

#include "cli/args.h"
#include "cli/constrain.h"
#include "hearth/engine.h"
#include "hearth/sampler.h"

/* Nothing in it: no flag was given. */
typedef struct hth_choosing {
    const char *grammar, *schema;
    bool greedy, ignore_end;
    hth_list stops, biases;
    /* made of them */
    hth_constrained constrained;
    hearth_logit_bias *bias;
    size_t n_bias;
} hth_choosing;

/* The flags' rows in a verb's table. */
/* clang-format off */
#define HTH_CHOOSING_FLAGS(c)                                                                                         \
    {0, "greedy", NULL, HTH_FLAG_SWITCH, &(c)->greedy, NULL, "the same as --temp 0", 0, 0},                           \
    {0, "stop", NULL, HTH_FLAG_LIST, &(c)->stops, "TEXT", "end before this text; may be given several times", 0, 0},  \
    {0, "logit-bias", NULL, HTH_FLAG_LIST, &(c)->biases, "ID=X",                                                      \
     "add X to a token's logit; -inf forbids it", 0, 0},                                                              \
    {0, "ignore-eos", NULL, HTH_FLAG_SWITCH, &(c)->ignore_end, NULL, "forbid the tokens that end a text", 0, 0},      \
    {0, "grammar", "grammar-file", HTH_FLAG_TEXT, &(c)->grammar, "FILE",                                              \
     "write only what this GBNF grammar allows", 0, 0},                                                               \
    {0, "json-schema", "json-schema-file", HTH_FLAG_TEXT, &(c)->schema, "FILE",                                       \
     "write only JSON of this schema", 0, 0}
/* clang-format on */

/* Whether the flags fit together; --greedy becomes the option temp. */
int hth_choosing_check(hth_choosing *c, hth_args *args);
/* Biases and constraint. The tokenizer must outlive them. */
int hth_choosing_prepare(hth_choosing *c, const hearth_tokenizer *tokenizer);
void hth_choosing_free(hth_choosing *c);

/* A sampler that chooses so, with the sampling options in force; history as in hearth_sampler_create. */
hearth_status hth_choosing_sampler(const hth_choosing *c, const hearth_options *options, int32_t vocab, int64_t history,
                                   hearth_sampler **out, hearth_error *err);
/* NULL when there are no stop strings. */
hearth_status hth_choosing_stops(const hth_choosing *c, hearth_stop_matcher **out, hearth_error *err);

#endif
