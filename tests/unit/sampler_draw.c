/* Draws: their frequencies, and what they may and may not depend on. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unit/sampler_help.h"

enum { VOCAB = 64, DRAWS = 100000 };

static void some_logits(uint64_t seed, float *logits) {
    for (int i = 0; i < VOCAB; i++) logits[i] = (float)(random_unit(&seed) * 5);
}

static hearth_token draw(hearth_sampler *sampler, const float *logits) {
    hearth_token token = -1;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_sampler_sample(sampler, logits, &token, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return token;
}

/* Pearson's statistic of DRAWS draws against the distribution that the sampler states, with its degrees of freedom. */
static void check_frequencies(const char *const *settings, const float *logits) {
    hearth_sampler *sampler = sampler_of(VOCAB, settings, NULL, 0);
    hearth_candidate want[VOCAB];
    size_t n = 0;
    assert_int_equal(hearth_sampler_distribution(sampler, logits, want, VOCAB, &n, NULL), HEARTH_OK);
    int counts[VOCAB] = {0};
    for (int i = 0; i < DRAWS; i++) counts[draw(sampler, logits)]++;
    double statistic = 0, rest_want = 0, rest_got = 0;
    int cells = 0;
    for (size_t i = 0; i < n; i++) {
        double expected = want[i].probability * DRAWS, got = counts[want[i].token];
        counts[want[i].token] = 0;
        if (expected < 10) rest_want += expected, rest_got += got;
        else statistic += (got - expected) * (got - expected) / expected, cells++;
    }
    if (rest_want >= 10) statistic += (rest_got - rest_want) * (rest_got - rest_want) / rest_want, cells++;
    for (int i = 0; i < VOCAB; i++) assert_int_equal(counts[i], 0); /* nothing outside the distribution was drawn */
    /* Mean cells - 1, deviation sqrt(2 (cells - 1)): five deviations are never reached by chance, and the seed is
     * fixed. */
    if (statistic > cells - 1 + 5 * sqrt(2.0 * cells)) fail_msg("chi-square %.1f over %d cells", statistic, cells);
    hearth_sampler_free(&sampler);
}

static void frequencies_follow_the_distribution(void **state) {
    (void)state;
    float logits[VOCAB];
    some_logits(1, logits);
    check_frequencies(NULL, logits);
    check_frequencies(SETTINGS("temp=0.5"), logits);
    check_frequencies(SETTINGS("temp=3"), logits);
    check_frequencies(SETTINGS("top-k=5"), logits);
    check_frequencies(SETTINGS("top-p=0.7", "seed=99"), logits);
    check_frequencies(SETTINGS("min-p=0.2", "temp=1.5"), logits);
    check_frequencies(SETTINGS("typical=0.5"), logits);
    check_frequencies(SETTINGS("top-k=40", "top-p=0.95", "min-p=0.05", "temp=0.8", "seed=9223372036854775807"), logits);
}

/* Neighbouring draws and neighbouring seeds are independent: the table of pairs is uniform. */
static void draws_and_seeds_are_independent(void **state) {
    (void)state;
    enum { SIDE = 8, ROUNDS = 64000 };
    float flat[SIDE] = {0};
    for (int by_seed = 0; by_seed < 2; by_seed++) {
        int pairs[SIDE * SIDE] = {0};
        hearth_sampler *sampler = sampler_of(SIDE, NULL, NULL, 0);
        hearth_token last = 0;
        for (int i = 0; i <= ROUNDS; i++) {
            if (by_seed) {
                char setting[32];
                snprintf(setting, sizeof setting, "seed=%d", i);
                hearth_sampler_free(&sampler);
                sampler = sampler_of(SIDE, SETTINGS(setting), NULL, 0);
            }
            hearth_token token = draw(sampler, flat);
            if (i > 0) pairs[last * SIDE + token]++;
            last = token;
        }
        double statistic = 0, expected = (double)ROUNDS / (SIDE * SIDE);
        for (int i = 0; i < SIDE * SIDE; i++) statistic += (pairs[i] - expected) * (pairs[i] - expected) / expected;
        if (statistic > 63 + 5 * sqrt(126)) fail_msg("chi-square %.1f over 64 cells", statistic);
        hearth_sampler_free(&sampler);
    }
}

static void same_seed_same_tokens(void **state) {
    (void)state;
    float logits[VOCAB];
    hearth_token first[50], again[50], other[50];
    hearth_sampler *a = sampler_of(VOCAB, SETTINGS("seed=42"), NULL, 0);
    hearth_sampler *b = sampler_of(VOCAB, SETTINGS("seed=42"), NULL, 0);
    hearth_sampler *c = sampler_of(VOCAB, SETTINGS("seed=43"), NULL, 0);
    for (int i = 0; i < 50; i++) {
        some_logits((uint64_t)i, logits);
        first[i] = draw(a, logits);
        again[i] = draw(b, logits);
        other[i] = draw(c, logits);
    }
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    hearth_sampler_reset(a);
    for (int i = 0; i < 50; i++) {
        some_logits((uint64_t)i, logits);
        hearth_candidate unused[VOCAB];
        size_t n;
        hearth_sampler_distribution(a, logits, unused, VOCAB, &n, NULL); /* looking does not draw */
        assert_int_equal(draw(a, logits), first[i]);
    }
    assert_int_equal(hearth_sampler_seed(a), 42);
    hearth_sampler_free(&a);
    hearth_sampler_free(&b);
    hearth_sampler_free(&c);
}

/* The tokens of one seed, for ever: another machine, compiler or version must give these. */
static void known_tokens(void **state) {
    (void)state;
    static const hearth_token known[12] = {19, 32, 29, 52, 59, 15, 37, 43, 52, 23, 60, 48};
    hearth_sampler *sampler = sampler_of(VOCAB, SETTINGS("seed=2024", "temp=0.9", "top-k=40", "top-p=0.95"), NULL, 0);
    for (int i = 0; i < 12; i++) {
        float logits[VOCAB];
        some_logits(1000 + (uint64_t)i, logits);
        hearth_token token = draw(sampler, logits);
        if (token != known[i]) fail_msg("draw %d: token %d, %d expected", i, token, known[i]);
    }
    hearth_sampler_free(&sampler);
}

static void minus_one_is_a_new_seed(void **state) {
    (void)state;
    hearth_sampler *a = sampler_of(VOCAB, SETTINGS("seed=-1"), NULL, 0);
    hearth_sampler *b = sampler_of(VOCAB, SETTINGS("seed=-1"), NULL, 0);
    assert_true(hearth_sampler_seed(a) >= 0);
    assert_true(hearth_sampler_seed(a) != hearth_sampler_seed(b));
    hearth_sampler_free(&a);
    hearth_sampler_free(&b);
}

static void top_k_0_is_off(void **state) {
    (void)state;
    float logits[VOCAB];
    some_logits(3, logits);
    hearth_sampler *sampler = sampler_of(VOCAB, SETTINGS("top-k=0", "temp=5"), NULL, 0);
    bool seen[VOCAB] = {false};
    int distinct = 0;
    for (int i = 0; i < 20000; i++) {
        hearth_token token = draw(sampler, logits);
        distinct += !seen[token];
        seen[token] = true;
    }
    assert_int_equal(distinct, VOCAB);
    hearth_sampler_free(&sampler);
}

static void temperature_0_is_the_largest_logit(void **state) {
    (void)state;
    float logits[VOCAB];
    some_logits(4, logits);
    logits[17] = logits[40] = 9; /* the lowest id wins a tie */
    const char *const *const sets[] = {SETTINGS("temp=0"), SETTINGS("temp=0", "seed=5", "top-p=0.1"),
                                       SETTINGS("temp=0", "typical=0.01", "top-k=3"), SETTINGS("top-k=1")};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        hearth_sampler *sampler = sampler_of(VOCAB, sets[k], NULL, 0);
        for (int i = 0; i < 10; i++) assert_int_equal(draw(sampler, logits), 17);
        hearth_sampler_free(&sampler);
    }
}

static void extreme_temperatures(void **state) {
    (void)state;
    float logits[VOCAB];
    some_logits(5, logits);
    logits[9] = 5.5f;
    static const char *const tiny[] = {"temp=1e-3", "temp=1e-20", "temp=1e-300", "temp=4.9e-324"};
    for (size_t k = 0; k < 4; k++) {
        hearth_sampler *sampler = sampler_of(VOCAB, SETTINGS(tiny[k]), NULL, 0);
        for (int i = 0; i < 1000; i++) assert_int_equal(draw(sampler, logits), 9);
        hearth_sampler_free(&sampler);
    }
    check_frequencies(SETTINGS("temp=1000"), logits);
    float extreme[VOCAB];
    for (int i = 0; i < VOCAB; i++) extreme[i] = i % 2 ? 3.4e38f : -3.4e38f;
    check_frequencies(SETTINGS("temp=1000"), extreme);
    check_frequencies(SETTINGS("temp=0.01", "typical=0.5", "top-p=0.9", "min-p=0.1"), extreme);
}

/* The window is the request's last tokens, however they were handed in. */
static void penalties_follow_the_request(void **state) {
    (void)state;
    float logits[VOCAB];
    some_logits(6, logits);
    hearth_token history[200];
    uint64_t seed = 8;
    for (int i = 0; i < 200; i++) history[i] = (hearth_token)(next_random(&seed) % VOCAB);
    const char *const *settings = SETTINGS("repeat-penalty=1.3", "frequency-penalty=0.2", "penalty-window=48");
    hearth_candidate want[VOCAB], got[VOCAB];
    size_t n;
    hearth_sampler *sampler = sampler_of(VOCAB, settings, NULL, 0);
    assert_int_equal(hearth_sampler_accept(sampler, history + 152, 48, NULL), HEARTH_OK);
    hearth_sampler_distribution(sampler, logits, want, VOCAB, &n, NULL);
    for (size_t step = 1; step <= 200; step = step * 3 + 1) {
        hearth_sampler_reset(sampler);
        for (size_t i = 0; i < 200; i += step)
            assert_int_equal(hearth_sampler_accept(sampler, history + i, i + step > 200 ? 200 - i : step, NULL),
                             HEARTH_OK);
        hearth_sampler_distribution(sampler, logits, got, VOCAB, &n, NULL);
        assert_same_candidates(got, want, n);
    }
    /* After a reset the window's age starts anew. */
    hearth_sampler_reset(sampler);
    assert_int_equal(hearth_sampler_accept(sampler, history, 60, NULL), HEARTH_OK);
    hearth_sampler_distribution(sampler, logits, got, VOCAB, &n, NULL);
    hearth_sampler *fresh = sampler_of(VOCAB, settings, NULL, 0);
    assert_int_equal(hearth_sampler_accept(fresh, history, 60, NULL), HEARTH_OK);
    hearth_sampler_distribution(fresh, logits, want, VOCAB, &n, NULL);
    assert_same_candidates(got, want, n);
    hearth_sampler_free(&fresh);
    hearth_sampler_free(&sampler);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_follow_the_distribution),
        cmocka_unit_test(draws_and_seeds_are_independent),
        cmocka_unit_test(same_seed_same_tokens),
        cmocka_unit_test(known_tokens),
        cmocka_unit_test(minus_one_is_a_new_seed),
        cmocka_unit_test(top_k_0_is_off),
        cmocka_unit_test(temperature_0_is_the_largest_logit),
        cmocka_unit_test(extreme_temperatures),
        cmocka_unit_test(penalties_follow_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
