/* The distribution that a sampler draws from, against a plain implementation in double that sorts everything. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unit/sampler_help.h"

enum { VOCAB = 300, CASES = 3000 };

typedef struct plain {
    double temp, top_p, min_p, typical, repeat, presence, frequency;
    int top_k, window;
} plain;

typedef struct entry {
    int32_t id;
    double logit, p, key;
} entry;

static int by_key(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void softmax(entry *e, int n, double temperature) {
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) max = fmax(max, e[i].logit);
    for (int i = 0; i < n; i++) sum += e[i].p = exp((e[i].logit - max) / temperature);
    for (int i = 0; i < n; i++) e[i].p /= sum;
}

/* Sort by what `key` was set to and keep the head whose probabilities reach `mass`. */
static int keep_mass(entry *e, int n, double mass) {
    qsort(e, (size_t)n, sizeof *e, by_key);
    double sum = 0;
    for (int i = 0; i < n; i++)
        if ((sum += e[i].p) >= mass) return i + 1;
    return n;
}

static int plain_distribution(const plain *p, const float *logits, const hearth_logit_bias *bias, size_t n_bias,
                              const int32_t *history, int n_history, entry *e) {
    int n = 0, seen[VOCAB] = {0};
    int from = p->window < 0 || p->window > n_history ? 0 : n_history - p->window;
    for (int i = from; i < n_history; i++) seen[history[i]]++;
    for (int32_t id = 0; id < VOCAB; id++) {
        double logit = logits[id];
        for (size_t k = 0; k < n_bias; k++)
            if (bias[k].token == id) logit += bias[k].bias;
        if (seen[id]) {
            logit = logit > 0 ? logit / p->repeat : logit * p->repeat;
            logit -= seen[id] * p->frequency + p->presence;
        }
        if (logit > -INFINITY) e[n++] = (entry){.id = id, .logit = logit};
    }
    for (int i = 0; i < n; i++) e[i].key = e[i].logit;
    qsort(e, (size_t)n, sizeof *e, by_key);
    if (p->temp == 0) {
        e[0].p = 1;
        return 1;
    }
    if (p->top_k > 0 && p->top_k < n) n = p->top_k;
    softmax(e, n, 1);
    if (p->typical < 1) {
        double entropy = 0;
        for (int i = 0; i < n; i++) entropy -= e[i].p > 0 ? e[i].p * log(e[i].p) : 0;
        for (int i = 0; i < n; i++) e[i].key = -fabs(-log(e[i].p) - entropy);
        n = keep_mass(e, n, p->typical);
        for (int i = 0; i < n; i++) e[i].key = e[i].logit;
        softmax(e, n, 1);
    }
    if (p->top_p < 1) n = keep_mass(e, n, p->top_p);
    else qsort(e, (size_t)n, sizeof *e, by_key);
    int kept = 1;
    while (kept < n && e[kept].p >= p->min_p * e[0].p) kept++;
    softmax(e, kept, p->temp);
    return kept;
}

static double pick(uint64_t *seed, const double *values, int n) {
    return values[next_random(seed) % (uint64_t)n];
}
#define PICK(...) pick(&seed, (const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

static void set_number(hearth_options *options, const char *name, double value) {
    char text[64];
    snprintf(text, sizeof text, "%.17g", value);
    assert_int_equal(hearth_options_set(options, name, text, NULL), HEARTH_OK);
}

static hearth_sampler *make(const plain *p, const hearth_logit_bias *bias, size_t n_bias) {
    hearth_options *options = NULL;
    hearth_sampler *sampler = NULL;
    assert_int_equal(hearth_options_create(&options, NULL), HEARTH_OK);
    set_number(options, "temp", p->temp);
    set_number(options, "top-k", p->top_k);
    set_number(options, "top-p", p->top_p);
    set_number(options, "min-p", p->min_p);
    set_number(options, "typical", p->typical);
    set_number(options, "repeat-penalty", p->repeat);
    set_number(options, "presence-penalty", p->presence);
    set_number(options, "frequency-penalty", p->frequency);
    set_number(options, "penalty-window", p->window);
    assert_int_equal(hearth_sampler_create(options, VOCAB, 0, bias, n_bias, &sampler, NULL), HEARTH_OK);
    hearth_options_free(&options);
    return sampler;
}

static void compare(const hearth_candidate *got, size_t n_got, const entry *want, int n_want, int round) {
    if ((int)n_got != n_want) fail_msg("case %d: %zu candidates, %d expected", round, n_got, n_want);
    for (int i = 0; i < n_want; i++) {
        if (got[i].token != want[i].id)
            fail_msg("case %d, place %d: token %d, %d expected", round, i, got[i].token, want[i].id);
        if (!(fabs(got[i].probability - want[i].p) <= 1e-5 * want[i].p + 1e-12))
            fail_msg("case %d, token %d: %.9g, %.9g expected", round, got[i].token, got[i].probability, want[i].p);
    }
}

static void random_parameters_agree(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < CASES; round++) {
        /* Masses are such that no count of equal probabilities meets them to the last bit. */
        plain p = {.temp = PICK(0, 0.1, 0.8, 1, 1, 1.7, 20),
                   .top_k = (int)PICK(0, 0, 1, 2, 40, VOCAB - 1, VOCAB, 100000),
                   .top_p = PICK(0, 0.20317, 0.90171, 0.95231, 1, 1),
                   .min_p = PICK(0, 0, 0.01, 0.3, 1),
                   .typical = PICK(0, 0.30173, 0.90317, 1, 1, 1),
                   .repeat = PICK(1, 1, 1.25, 0.5),
                   .presence = PICK(0, 0, 0.5, -1.5),
                   .frequency = PICK(0, 0, 0.25, -0.5),
                   .window = (int)PICK(-1, 0, 1, 16, 64)};
        float logits[VOCAB];
        double spread = PICK(0.5, 3, 12);
        for (int i = 0; i < VOCAB; i++) {
            logits[i] = (float)((random_unit(&seed) + random_unit(&seed) + random_unit(&seed) - 1.5) * spread);
            if (round % 3 == 0) logits[i] = roundf(logits[i] * 2) / 2; /* many ties */
            if (next_random(&seed) % 17 == 0) logits[i] = -INFINITY;
        }
        hearth_logit_bias bias[4] = {{3, 2.5f}, {7, -INFINITY}, {3, -0.5f}, {VOCAB - 1, -4}};
        size_t n_bias = round % 5 == 0 ? 4 : 0;
        int32_t history[100];
        int n_history = (int)(next_random(&seed) % 100);
        for (int i = 0; i < n_history; i++) history[i] = (int32_t)(next_random(&seed) % 40);

        entry want[VOCAB];
        int n_want = plain_distribution(&p, logits, bias, n_bias, history, n_history, want);
        hearth_sampler *sampler = make(&p, bias, n_bias);
        assert_int_equal(hearth_sampler_accept(sampler, history, (size_t)n_history, NULL), HEARTH_OK);
        hearth_candidate got[VOCAB];
        size_t n_got = 0;
        assert_int_equal(hearth_sampler_distribution(sampler, logits, got, VOCAB, &n_got, NULL), HEARTH_OK);
        compare(got, n_got, want, n_want, round);

        hearth_token token;
        assert_int_equal(hearth_sampler_sample(sampler, logits, &token, NULL), HEARTH_OK);
        bool allowed = false;
        for (size_t i = 0; i < n_got; i++) allowed |= got[i].token == token;
        assert_true(allowed);
        hearth_sampler_free(&sampler);
    }
}

static void log_probabilities_are_the_models(void **state) {
    (void)state;
    uint64_t seed = 11;
    float logits[VOCAB];
    entry e[VOCAB];
    for (int i = 0; i < VOCAB; i++) {
        logits[i] = (float)(random_unit(&seed) * 30 - 10);
        e[i] = (entry){.id = i, .logit = logits[i]};
    }
    softmax(e, VOCAB, 1);
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) {
        double got = hearth_logprob(logits, VOCAB, i);
        assert_true(fabs(got - log(e[i].p)) < 1e-12 * fabs(got) + 1e-13);
        sum += exp(got);
    }
    assert_true(fabs(sum - 1) < 1e-12);

    float one[3] = {-INFINITY, 5, -INFINITY};
    assert_true(hearth_logprob(one, 3, 1) == 0);
    assert_true(hearth_logprob(one, 3, 0) == -INFINITY);
    float nothing[2] = {-INFINITY, -INFINITY}, bad[2] = {NAN, 0}, over[2] = {INFINITY, 0};
    assert_true(isnan(hearth_logprob(nothing, 2, 0)));
    assert_true(isnan(hearth_logprob(bad, 2, 1)));
    assert_true(isnan(hearth_logprob(over, 2, 1)));
}

/* With every step off, the sampler's distribution is the model's; the log-probability never follows the parameters. */
static void the_two_probabilities_agree_when_all_is_off(void **state) {
    (void)state;
    uint64_t seed = 12;
    float logits[VOCAB];
    for (int i = 0; i < VOCAB; i++) logits[i] = (float)(random_unit(&seed) * 8);
    hearth_sampler *sampler = sampler_of(VOCAB, NULL, NULL, 0);
    hearth_candidate got[VOCAB];
    size_t n = 0;
    assert_int_equal(hearth_sampler_distribution(sampler, logits, got, VOCAB, &n, NULL), HEARTH_OK);
    assert_int_equal(n, VOCAB);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(log(got[i].probability) - hearth_logprob(logits, VOCAB, got[i].token)) < 1e-12);
    hearth_candidate few[3];
    assert_int_equal(hearth_sampler_distribution(sampler, logits, few, 3, &n, NULL), HEARTH_TOO_LONG);
    assert_int_equal(n, VOCAB);
    assert_same_candidates(few, got, 3);
    assert_int_equal(hearth_sampler_distribution(sampler, logits, NULL, 0, &n, NULL), HEARTH_TOO_LONG);
    hearth_sampler_free(&sampler);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_parameters_agree),
        cmocka_unit_test(log_probabilities_are_the_models),
        cmocka_unit_test(the_two_probabilities_agree_when_all_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
