#include "engine/sampler_set.h"

#include <assert.h>

#include "base/math.h"

/* ---- Order ---- */

static bool precedes(const hth_candidate *a, const hth_candidate *b) {
    return a->key > b->key || (a->key == b->key && a->id < b->id);
}

static bool follows(const hth_candidate *a, const hth_candidate *b) {
    return precedes(b, a);
}

/* Let the candidate at i sink until no child has to be above it. */
static inline void sink(hth_candidate *heap, size_t n, size_t i,
                        bool (*above)(const hth_candidate *, const hth_candidate *)) {
    hth_candidate sinking = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && above(&heap[child + 1], &heap[child])) child++;
        if (!above(&heap[child], &sinking)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = sinking;
}

static inline void make_heap(hth_candidate *heap, size_t n,
                             bool (*above)(const hth_candidate *, const hth_candidate *)) {
    for (size_t i = n / 2; i-- > 0;) sink(heap, n, i, above);
}

const hth_candidate *hth_set_at(hth_candidate_set *set, size_t i) {
    assert(i < set->count);
    if (!set->heaped) {
        make_heap(set->all, set->count, precedes);
        set->heaped = true;
    }
    while (set->sorted <= i) {
        size_t last = set->count - set->sorted - 1;
        hth_candidate first = set->all[0];
        set->all[0] = set->all[last];
        set->all[last] = first;
        set->sorted++;
        sink(set->all, last, 0, precedes);
    }
    return &set->all[set->count - 1 - i];
}

/* Keep the first n of the order, which are sorted. */
static void keep_head(hth_candidate_set *set, size_t n) {
    assert(n >= 1 && n <= set->sorted);
    set->all += set->count - n;
    set->count = set->sorted = n;
}

static void order_by_logit(hth_candidate_set *set) {
    set->max = set->all[0].logit;
    for (size_t i = 0; i < set->count; i++) {
        set->all[i].key = set->all[i].logit;
        if (set->all[i].logit > set->max) set->max = set->all[i].logit;
    }
    set->sorted = 0;
    set->heaped = false;
}

/* ---- Collecting ---- */

hth_candidate_set hth_set_begin(hth_candidate *all) {
    return (hth_candidate_set){.all = all};
}

void hth_set_fill(hth_candidate_set *set, size_t most, float logit, int32_t id) {
    hth_candidate added = {.logit = logit, .key = logit, .id = id};
    if (set->count < most) {
        set->all[set->count++] = added;
        if (set->count == most) make_heap(set->all, most, follows);
    } else {
        set->all[0] = added;
        sink(set->all, most, 0, follows);
    }
    set->worst = set->all[0].logit;
}

void hth_set_end(hth_candidate_set *set) {
    assert(set->count >= 1);
    order_by_logit(set);
}

/* ---- Probabilities ---- */

double hth_set_weight(const hth_candidate_set *set, const hth_candidate *candidate, double temperature) {
    return hth_exp(((double)candidate->logit - (double)set->max) / temperature); /* tiny temperatures reach -infinity */
}

double hth_set_total(const hth_candidate_set *set, double temperature) {
    double total = 0;
    for (size_t i = 0; i < set->count; i++) total += hth_set_weight(set, &set->all[i], temperature);
    return total;
}

/* ---- Steps ---- */

void hth_set_typical(hth_candidate_set *set, double p) {
    if (p >= 1 || set->count == 1) return;
    double total = 0, mean = 0; /* mean of (logit - max) */
    for (size_t i = 0; i < set->count; i++) {
        double weight = hth_set_weight(set, &set->all[i], 1);
        total += weight;
        mean += weight * ((double)set->all[i].logit - (double)set->max);
    }
    mean /= total;
    /* The surprise of a token is log(total) - (logit - max), and the entropy is its mean: the logarithm cancels. */
    for (size_t i = 0; i < set->count; i++) {
        double distance = mean - ((double)set->all[i].logit - (double)set->max);
        set->all[i].key = (float)(distance > 0 ? -distance : distance);
    }
    set->sorted = 0;
    set->heaped = false;
    size_t kept = 0;
    for (double sum = 0; kept == 0 || (kept < set->count && sum < p * total); kept++)
        sum += hth_set_weight(set, hth_set_at(set, kept), 1);
    keep_head(set, kept);
    order_by_logit(set);
}

/* Drop what lies below a logit; the largest is never below it. */
static void drop_below(hth_candidate_set *set, double limit) {
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++)
        if ((double)set->all[i].logit >= limit) set->all[kept++] = set->all[i];
    set->count = kept;
    set->sorted = 0;
    set->heaped = false;
}

void hth_set_top_p_min_p(hth_candidate_set *set, double top_p, double min_p) {
    double total = top_p < 1 ? hth_set_total(set, 1) : 0;
    if (min_p > 0) drop_below(set, (double)set->max + hth_log(min_p));
    if (top_p >= 1) return;
    size_t kept = 0;
    for (double sum = 0; kept == 0 || (kept < set->count && sum < top_p * total); kept++)
        sum += hth_set_weight(set, hth_set_at(set, kept), 1);
    keep_head(set, kept);
}

int32_t hth_set_draw(hth_candidate_set *set, double temperature, double u) {
    double target = u * hth_set_total(set, temperature), sum = 0;
    int32_t chosen = hth_set_at(set, 0)->id;
    /* When rounding leaves the ordered sum at or below the target, the last candidate that has a weight is meant. */
    for (size_t i = 0; i < set->count && sum <= target; i++) {
        const hth_candidate *candidate = hth_set_at(set, i);
        double weight = hth_set_weight(set, candidate, temperature);
        if (weight <= 0) break;
        sum += weight;
        chosen = candidate->id;
    }
    return chosen;
}
