/* From logits to a token.
 *
 * Order: what a constraint allows (if one is set), logit bias, penalties, then (temperature 0: the largest logit,
 * lowest id on a tie) else top-k, typical, top-p, min-p, temperature, and one draw. typical and top-p look at the
 * probabilities of the tokens that the steps before left, summing to 1; min-p compares with the likeliest token. At
 * least one token is always left.
 *
 * The same seed, parameters, logits and history give the same token on every machine: arithmetic is the library's own,
 * and the generator is counter-based. NaN or +infinity among the logits is refused by name; -infinity forbids a token.
 *
 * Two probabilities, never mixed: hearth_logprob is the model's, before any parameter; hearth_sampler_distribution is
 * the one that the next draw uses, after all of them.
 *
 * The penalty window is the history the caller states, never what happened to be computed: a request gives its prompt
 * with hearth_sampler_accept, token by token or at once, then each token it keeps.
 *
 * Threads: a sampler belongs to one thread at a time. All memory is allocated at create.
 */
#ifndef HEARTH_SAMPLER_H
#define HEARTH_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "hearth/constraint.h"
#include "hearth/options.h"
#include "hearth/status.h"
#include "hearth/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_logit_bias {
    hearth_token token;
    float bias; /* added to the logit; -INFINITY forbids the token */
} hearth_logit_bias;

typedef struct hearth_sampler hearth_sampler;

/* A sampler for logits of `vocab` values with the sampling options in force in `options` (NULL: defaults). bias may be
 * NULL when n_bias is 0; it is copied; several for one token add up. history: the most tokens that a request gives to
 * hearth_sampler_accept, so that a penalty window larger than it takes no more memory; 0: no limit. */
HEARTH_API hearth_status hearth_sampler_create(const hearth_options *options, int32_t vocab, int64_t history,
                                               const hearth_logit_bias *bias, size_t n_bias, hearth_sampler **out,
                                               hearth_error *err);
HEARTH_API void hearth_sampler_free(hearth_sampler **sampler); /* NULL is ignored */

/* The seed in force: the option's, or the one chosen at create when the option is -1. */
HEARTH_API int64_t hearth_sampler_seed(const hearth_sampler *sampler);

/* Forget the history and start the generator from the seed again. */
HEARTH_API void hearth_sampler_reset(hearth_sampler *sampler);

/* From here on choose only tokens that the matcher, which stays the caller's, allows as it stands at each call; NULL:
 * any token. What is chosen is not told to it (hearth_matcher_accept). The logits of tokens that it does not allow, and
 * of those that its vocabulary lacks, are not looked at. HEARTH_BAD_ARGUMENT when its vocabulary is larger than the
 * sampler's. */
HEARTH_API hearth_status hearth_sampler_set_matcher(hearth_sampler *sampler, hearth_matcher *matcher,
                                                    hearth_error *err);

/* Append tokens to the history. HEARTH_BAD_ARGUMENT when an id is out of range, HEARTH_TOO_LONG when it would be more
 * than the window can hold (see create); then nothing is appended. */
HEARTH_API hearth_status hearth_sampler_accept(hearth_sampler *sampler, const hearth_token *tokens, size_t count,
                                               hearth_error *err);

/* Choose a token from `vocab` logits, which stay as they are. The token is not accepted; the next call draws anew.
 * HEARTH_POISONED when a logit is NaN or +infinity, or every token is forbidden; HEARTH_NOT_FOUND when the matcher
 * allows none, and what hearth_matcher_mask fails with. */
HEARTH_API hearth_status hearth_sampler_sample(hearth_sampler *sampler, const float *logits, hearth_token *token,
                                               hearth_error *err);

typedef struct hearth_candidate {
    hearth_token token;
    double probability;
} hearth_candidate;

/* The distribution that sample would draw from, likeliest first (lowest id on a tie), without drawing. Writes at most
 * `capacity` candidates and their full number to *count (HEARTH_TOO_LONG when it is more than capacity). */
HEARTH_API hearth_status hearth_sampler_distribution(hearth_sampler *sampler, const float *logits,
                                                     hearth_candidate *out, size_t capacity, size_t *count,
                                                     hearth_error *err);

/* Natural-log probability of a token (0 <= token < vocab) under the logits, before any sampling parameter: softmax of
 * the raw logits, summed in double. NaN when the logits hold NaN or +infinity, or nothing but -infinity. */
HEARTH_API double hearth_logprob(const float *logits, int32_t vocab, hearth_token token);

#ifdef __cplusplus
}
#endif
#endif
