/* The candidates of one draw, and the steps that narrow them down. Memory is the caller's: nothing here allocates.
 *
 * Order is always: higher key first, lower id on a tie; so every step, and every sum over an ordered part, has one
 * defined result. A set is ordered only as far as a step needs: `all[count - sorted .. count)` holds the first `sorted`
 * candidates, last one first, and the rest before it is a heap (once `heaped`) or in no order.
 */
#ifndef HTH_ENGINE_SAMPLER_SET_H
#define HTH_ENGINE_SAMPLER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hth_candidate {
    float logit;
    float key; /* what it is ordered by: the logit, or for typical its distance from the entropy, negated */
    int32_t id;
} hth_candidate;

typedef struct hth_candidate_set {
    hth_candidate *all;
    size_t count;
    size_t sorted;
    bool heaped;
    float max;   /* the largest logit */
    float worst; /* while full and being collected: the least logit that stays */
} hth_candidate_set;

/* Collect candidates, finite logits in increasing id, into `all`; of more than `most` (>= 1) the best stay. `all` has
 * room for the smaller of `most` and their number. At least one is added before the set is ended and used. */
hth_candidate_set hth_set_begin(hth_candidate *all);
static inline void hth_set_add(hth_candidate_set *set, size_t most, float logit, int32_t id);
void hth_set_end(hth_candidate_set *set);

void hth_set_typical(hth_candidate_set *set, double p);
/* Top-p, then min-p, whose order cannot be seen from outside: both keep a head of the ordered set. */
void hth_set_top_p_min_p(hth_candidate_set *set, double top_p, double min_p);

/* Candidate i of the order (0: the likeliest). Ordering the head costs count + (i + 1) log count over all calls. */
const hth_candidate *hth_set_at(hth_candidate_set *set, size_t i);

/* A candidate's weight at a temperature (> 0), 1 for the largest logit; and the sum over the set. */
double hth_set_weight(const hth_candidate_set *set, const hth_candidate *candidate, double temperature);
double hth_set_total(const hth_candidate_set *set, double temperature);

/* The candidate at which the running sum of weights exceeds u * total; 0 <= u < 1. */
int32_t hth_set_draw(hth_candidate_set *set, double temperature, double u);

/* While collecting, a full set is a heap with the worst candidate on top. */
void hth_set_fill(hth_candidate_set *set, size_t most, float logit, int32_t id);

static inline void hth_set_add(hth_candidate_set *set, size_t most, float logit, int32_t id) {
    /* Later ids lose a tie, so most candidates of a vocabulary end at this comparison. */
    if (set->count < most || logit > set->worst) hth_set_fill(set, most, logit, id);
}

#endif
