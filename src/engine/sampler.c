/* A sampler: parameters, the request's history, and a generator. The narrowing of candidates is in sampler_set.c.
 *
 * Invariants: seen[id] is how often id is among the window's tokens; with a bounded window, ring holds them, the oldest
 * at `oldest`. Both are kept only when a penalty is on.
 */
#include "hearth/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/math.h"
#include "base/options.h"
#include "base/status.h"
#include "engine/sampler_set.h"

typedef struct parameters {
    double temperature, top_p, min_p, typical;
    size_t top_k;
    float repeat, presence, frequency;
    int64_t window; /* -1: all */
} parameters;

struct hearth_sampler {
    parameters parameters;
    int32_t vocab;
    hearth_logit_bias *bias; /* [n_bias], in order of token */
    size_t n_bias;

    bool penalizes;
    int32_t *seen;      /* [vocab] */
    hearth_token *ring; /* [ring_size] */
    int64_t ring_size, ring_count, oldest;

    hearth_matcher *matcher; /* the caller's, or NULL */

    int64_t seed;
    uint64_t draws;           /* the generator's counter */
    hth_candidate *candidate; /* [vocab], the work space of a call */
};

/* ---- Create ---- */

static parameters read_parameters(const hearth_options *options) {
    return (parameters){
        .temperature = hth_option_float(options, HTH_OPTION_TEMP),
        .top_p = hth_option_float(options, HTH_OPTION_TOP_P),
        .min_p = hth_option_float(options, HTH_OPTION_MIN_P),
        .typical = hth_option_float(options, HTH_OPTION_TYPICAL),
        .top_k = (size_t)hth_option_int(options, HTH_OPTION_TOP_K),
        .repeat = (float)hth_option_float(options, HTH_OPTION_REPEAT_PENALTY),
        .presence = (float)hth_option_float(options, HTH_OPTION_PRESENCE_PENALTY),
        .frequency = (float)hth_option_float(options, HTH_OPTION_FREQUENCY_PENALTY),
        .window = hth_option_int(options, HTH_OPTION_PENALTY_WINDOW),
    };
}

static bool has_penalty(const parameters *p) {
    return p->window != 0 && (p->repeat != 1 || p->presence != 0 || p->frequency != 0);
}

static hearth_status choose_seed(const hearth_options *options, int64_t *seed, hearth_error *err) {
    *seed = hth_option_int(options, HTH_OPTION_SEED);
    if (*seed >= 0) return HEARTH_OK;
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return hth_fail(err, HEARTH_IO, "the system gave no random seed");
    *seed = (int64_t)(bits >> 1);
    return HEARTH_OK;
}

static hearth_status check_bias(const hearth_logit_bias *bias, size_t n_bias, int32_t vocab, hearth_error *err) {
    for (size_t i = 0; i < n_bias; i++) {
        if (bias[i].token < 0 || bias[i].token >= vocab)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "logit bias for token %d: ids go from 0 to %d",
                            (int)bias[i].token, (int)vocab - 1);
        if (!(bias[i].bias < INFINITY))
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "logit bias for token %d is neither finite nor -infinity",
                            (int)bias[i].token);
    }
    return HEARTH_OK;
}

/* By token; those of one token by value, so that their sum does not depend on the order they were given in. */
static int by_token(const void *a, const void *b) {
    const hearth_logit_bias *x = a, *y = b;
    if (x->token != y->token) return x->token < y->token ? -1 : 1;
    return (x->bias > y->bias) - (x->bias < y->bias);
}

/* calloc of at least one element, so that NULL always means no memory. */
static void *allocate(size_t count, size_t size) {
    return calloc(count ? count : 1, size);
}

static hearth_status allocate_all(hearth_sampler *s, int64_t history, hearth_error *err) {
    s->candidate = allocate((size_t)s->vocab, sizeof *s->candidate);
    s->bias = allocate(s->n_bias, sizeof *s->bias);
    if (s->penalizes) {
        int64_t window = s->parameters.window;
        s->ring_size = window < 0 ? 0 : history > 0 && history < window ? history : window;
        s->ring = allocate((size_t)s->ring_size, sizeof *s->ring);
        s->seen = allocate((size_t)s->vocab, sizeof *s->seen);
    }
    if (!s->candidate || !s->bias || (s->penalizes && (!s->ring || !s->seen)))
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a sampler of %d tokens", (int)s->vocab);
    return HEARTH_OK;
}

hearth_status hearth_sampler_create(const hearth_options *options, int32_t vocab, int64_t history,
                                    const hearth_logit_bias *bias, size_t n_bias, hearth_sampler **out,
                                    hearth_error *err) {
    *out = NULL;
    if (vocab < 1 || history < 0)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "a sampler of %d tokens and a history of %lld", (int)vocab,
                        (long long)history);
    HTH_TRY(check_bias(bias, n_bias, vocab, err));
    hearth_sampler *s = calloc(1, sizeof *s);
    if (!s) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a sampler");
    s->parameters = read_parameters(options);
    s->vocab = vocab;
    s->n_bias = n_bias;
    s->penalizes = has_penalty(&s->parameters);
    hearth_status status = choose_seed(options, &s->seed, err);
    if (status == HEARTH_OK) status = allocate_all(s, history, err);
    if (status != HEARTH_OK) {
        hearth_sampler_free(&s);
        return status;
    }
    if (n_bias) {
        memcpy(s->bias, bias, n_bias * sizeof *bias);
        qsort(s->bias, n_bias, sizeof *s->bias, by_token);
    }
    *out = s;
    return HEARTH_OK;
}

void hearth_sampler_free(hearth_sampler **sampler) {
    if (!sampler || !*sampler) return;
    hearth_sampler *s = *sampler;
    free(s->candidate);
    free(s->bias);
    free(s->ring);
    free(s->seen);
    free(s);
    *sampler = NULL;
}

int64_t hearth_sampler_seed(const hearth_sampler *sampler) {
    return sampler->seed;
}

hearth_status hearth_sampler_set_matcher(hearth_sampler *s, hearth_matcher *matcher, hearth_error *err) {
    if (matcher && hearth_matcher_vocab(matcher) > s->vocab)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "a matcher of %d tokens for a sampler of %d",
                        (int)hearth_matcher_vocab(matcher), (int)s->vocab);
    s->matcher = matcher;
    return HEARTH_OK;
}

/* ---- History ---- */

void hearth_sampler_reset(hearth_sampler *s) {
    if (s->penalizes) memset(s->seen, 0, (size_t)s->vocab * sizeof *s->seen);
    s->ring_count = s->oldest = 0;
    s->draws = 0;
}

static void remember(hearth_sampler *s, hearth_token token) {
    s->seen[token]++;
    if (s->parameters.window < 0) return;
    if (s->ring_count < s->ring_size) {
        s->ring[s->ring_count++] = token;
        return;
    }
    s->seen[s->ring[s->oldest]]--;
    s->ring[s->oldest] = token;
    s->oldest = s->oldest + 1 == s->ring_size ? 0 : s->oldest + 1;
}

hearth_status hearth_sampler_accept(hearth_sampler *s, const hearth_token *tokens, size_t count, hearth_error *err) {
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= s->vocab)
            return hth_fail(err, HEARTH_BAD_ARGUMENT, "token id %d: ids go from 0 to %d", (int)tokens[i],
                            (int)s->vocab - 1);
    if (!s->penalizes) return HEARTH_OK;
    bool smaller_than_window = s->parameters.window > s->ring_size;
    if (smaller_than_window && count > (size_t)(s->ring_size - s->ring_count))
        return hth_fail(err, HEARTH_TOO_LONG, "%lld tokens and %zu more: the sampler was made for a history of %lld",
                        (long long)s->ring_count, count, (long long)s->ring_size);
    for (size_t i = 0; i < count; i++) remember(s, tokens[i]);
    return HEARTH_OK;
}

/* ---- Choice ---- */

static float penalized(const hearth_sampler *s, float logit, int32_t seen) {
    const parameters *p = &s->parameters;
    logit = logit > 0 ? logit / p->repeat : logit * p->repeat;
    return logit - ((float)seen * p->frequency + p->presence);
}

/* Bias and penalties; *bias is the first entry of the (ordered) bias that is not for an id before. */
static inline float adjusted(const hearth_sampler *s, float logit, int32_t id, size_t *bias) {
    while (*bias < s->n_bias && s->bias[*bias].token < id) ++*bias;
    for (; *bias < s->n_bias && s->bias[*bias].token == id; ++*bias) logit += s->bias[*bias].bias;
    if (s->penalizes && s->seen[id]) logit = penalized(s, logit, s->seen[id]);
    return logit;
}

/* Add a token unless it is forbidden, its logit biased and penalized. */
static inline hearth_status consider(hearth_sampler *s, const float *logits, int32_t id, size_t *bias, size_t most,
                                     hth_candidate_set *set, hearth_error *err) {
    if (!(logits[id] < INFINITY))
        return hth_fail(err, HEARTH_POISONED, "the logit of token %d is %s", (int)id,
                        isnan(logits[id]) ? "not a number" : "infinite");
    float logit = adjusted(s, logits[id], id, bias);
    if (logit == -INFINITY) return HEARTH_OK;
    if (!(logit < INFINITY))
        return hth_fail(err, HEARTH_POISONED, "the logit of token %d overflows after bias and penalties", (int)id);
    hth_set_add(set, most, logit, id);
    return HEARTH_OK;
}

/* The same for the tokens that the matcher allows, in increasing id. */
static hearth_status consider_allowed(hearth_sampler *s, const float *logits, size_t most, hth_candidate_set *set,
                                      hearth_error *err) {
    const uint64_t *mask;
    size_t bias = 0;
    bool any = false;
    HTH_TRY(hearth_matcher_mask(s->matcher, &mask, NULL, err));
    for (int32_t w = 0; w <= (hearth_matcher_vocab(s->matcher) - 1) / 64; w++)
        for (uint64_t bits = mask[w]; bits; bits &= bits - 1) {
            HTH_TRY(consider(s, logits, w * 64 + __builtin_ctzll(bits), &bias, most, set, err));
            any = true;
        }
    return any ? HEARTH_OK : hth_fail(err, HEARTH_NOT_FOUND, "the constraint allows no token here");
}

/* The `most` best tokens that are not forbidden. */
static hearth_status collect(hearth_sampler *s, const float *logits, size_t most, hth_candidate_set *set,
                             hearth_error *err) {
    size_t bias = 0;
    *set = hth_set_begin(s->candidate);
    if (s->matcher) HTH_TRY(consider_allowed(s, logits, most, set, err));
    else
        for (int32_t id = 0; id < s->vocab; id++) HTH_TRY(consider(s, logits, id, &bias, most, set, err));
    if (set->count == 0) return hth_fail(err, HEARTH_POISONED, "every token is forbidden");
    hth_set_end(set);
    return HEARTH_OK;
}

/* The candidates that a draw is from. Temperature 0 leaves one. */
static hearth_status narrow(hearth_sampler *s, const float *logits, hth_candidate_set *set, hearth_error *err) {
    const parameters *p = &s->parameters;
    size_t most = p->temperature == 0 ? 1 : p->top_k > 0 ? p->top_k : (size_t)s->vocab;
    HTH_TRY(collect(s, logits, most, set, err));
    if (set->count == 1) return HEARTH_OK;
    hth_set_typical(set, p->typical);
    hth_set_top_p_min_p(set, p->top_p, p->min_p);
    return HEARTH_OK;
}

/* One of the 2^53 multiples of 2^-53 in [0, 1), a function of the seed and the counter alone: two rounds of the mixing
 * function of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators"). */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double uniform(int64_t seed, uint64_t counter) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t stream = mix((uint64_t)seed + golden);
    return (double)(mix(stream + (counter + 1) * golden) >> 11) * 0x1p-53;
}

hearth_status hearth_sampler_sample(hearth_sampler *s, const float *logits, hearth_token *token, hearth_error *err) {
    hth_candidate_set set;
    HTH_TRY(narrow(s, logits, &set, err));
    double u = uniform(s->seed, s->draws++);
    *token = set.count == 1 ? set.all[0].id : hth_set_draw(&set, s->parameters.temperature, u);
    return HEARTH_OK;
}

hearth_status hearth_sampler_distribution(hearth_sampler *s, const float *logits, hearth_candidate *out,
                                          size_t capacity, size_t *count, hearth_error *err) {
    hth_candidate_set set;
    HTH_TRY(narrow(s, logits, &set, err));
    double temperature = set.count == 1 ? 1 : s->parameters.temperature;
    double total = hth_set_total(&set, temperature);
    for (size_t i = 0; i < set.count && i < capacity; i++) {
        const hth_candidate *candidate = hth_set_at(&set, i);
        out[i] = (hearth_candidate){candidate->id, hth_set_weight(&set, candidate, temperature) / total};
    }
    *count = set.count;
    if (set.count > capacity)
        return hth_fail(err, HEARTH_TOO_LONG, "%zu candidates, room for %zu", set.count, capacity);
    return HEARTH_OK;
}

/* ---- Log-probabilities ---- */

double hearth_logprob(const float *logits, int32_t vocab, hearth_token token) {
    float max = -INFINITY;
    for (int32_t i = 0; i < vocab; i++) {
        if (!(logits[i] < INFINITY)) return NAN;
        if (logits[i] > max) max = logits[i];
    }
    if (max == -INFINITY) return NAN;
    double sum = 0;
    for (int32_t i = 0; i < vocab; i++) sum += hth_exp((double)logits[i] - (double)max);
    return (double)logits[token] - (double)max - hth_log(sum);
}
