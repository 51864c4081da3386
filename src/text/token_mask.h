/* For each state of a grammar's automata, which tokens may come next: all that can be said without knowing the stack.
 *
 * A token that the state's own rule, and the rules it calls, can take is allowed, whatever called the rule. One that
 * takes the rule to its end and goes on behind it depends on the caller: it is unsure, unless no caller at all can take
 * it. Most states have few unsure tokens, so that a mask is one or two copies and a short walk over those.
 */
#ifndef HTH_TEXT_TOKEN_MASK_H
#define HTH_TEXT_TOKEN_MASK_H

#include "hearth/constraint.h"
#include "text/grammar_run.h"
#include "text/token_index.h"

/* A mask or a list of 32-bit numbers; equal ones are kept once. */
typedef struct hth_token_set {
    size_t at;      /* in 64-bit words */
    uint32_t count; /* of the numbers; a mask has as many words as the index says */
    bool is_mask;
} hth_token_set;

typedef struct hth_state_tokens {
    uint32_t allowed; /* sets: of ids, or a mask */
    uint32_t unsure;  /* of ranks, in increasing order */
} hth_state_tokens;

typedef struct hth_token_masks {
    const hearth_token_index *index;
    hth_state_tokens *states; /* [n_states]; those that no text stops in have empty sets */
    hth_token_set *sets;      /* set 0 is the empty list */
    uint64_t *words;
    size_t n_sets, n_words, set_capacity, word_capacity;
    uint64_t steps; /* taken to find all this */
} hth_token_masks;

/* HEARTH_OVER_BUDGET beyond the limits; TOO_LONG when a token can be read in too many ways. */
hearth_status hth_token_masks_build(const hth_automaton *automaton, const hearth_token_index *index,
                                    hearth_constraint_limits limits, hth_token_masks *out, hearth_error *err);
void hth_token_masks_free(hth_token_masks *masks); /* a zeroed one is valid to free */
size_t hth_token_masks_bytes(const hth_token_masks *masks, const hth_automaton *automaton);

static inline const uint32_t *hth_token_set_list(const hth_token_masks *m, const hth_token_set *set) {
    return (const uint32_t *)(m->words + set->at);
}

#endif
