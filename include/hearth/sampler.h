/* From logits to a token.
 *
 * Order: logit bias, penalties, then (temperature 0: the largest logit, lowest id on a tie) else top-k, typical, top-p,
 * min-p, temperature, and one draw. The same seed, parameters, logits and history give the same token on every machine:
 * arithmetic is the library's own, and the generator is counter-based. NaN among the logits is refused by name.
 *
 * The penalty window is the history the caller states, never what happened to be computed: a request gives its prompt with
 * hearth_sampler_accept, token by token or at once, then each token it keeps.
 *
 * Threads: a sampler belongs to one thread at a time. All memory is allocated at create.
 */
#ifndef HEARTH_SAMPLER_H
#define HEARTH_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

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

/* A sampler for logits of `vocab` values and histories of at most `history` tokens inside the penalty window, with the
 * sampling options in force in `options` (NULL: defaults). bias may be NULL when n_bias is 0; it is copied. */
HEARTH_API hearth_status hearth_sampler_create(const hearth_options *options, int32_t vocab, int64_t history,
                                               const hearth_logit_bias *bias, size_t n_bias, hearth_sampler **out,
                                               hearth_error *err);
HEARTH_API void hearth_sampler_free(hearth_sampler **sampler);

/* Forget the history and start the generator from the seed again. */
HEARTH_API void hearth_sampler_reset(hearth_sampler *sampler);

/* Append tokens to the history. HEARTH_BAD_ARGUMENT when an id is out of range. */
HEARTH_API hearth_status hearth_sampler_accept(hearth_sampler *sampler, const hearth_token *tokens, size_t count,
                                               hearth_error *err);

/* Choose a token from `vocab` logits, which stay as they are. The token is not accepted. HEARTH_POISONED when a logit is
 * NaN or every token is forbidden. */
HEARTH_API hearth_status hearth_sampler_sample(hearth_sampler *sampler, const float *logits, hearth_token *token,
                                               hearth_error *err);

/* Natural-log probability of a token under the logits, before any sampling parameter (softmax of the raw logits). */
HEARTH_API double hearth_logprob(const float *logits, int32_t vocab, hearth_token token);

#ifdef __cplusplus
}
#endif
#endif
