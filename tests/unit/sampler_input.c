/* What a sampler refuses. */
#include <math.h>
#include <string.h>

#include "unit/sampler_help.h"

enum { VOCAB = 8 };

static void refuse_logits(hearth_sampler *sampler, const float *logits, const char *needle) {
    hearth_token token = -7;
    hearth_error err = {HEARTH_OK, ""};
    assert_int_equal(hearth_sampler_sample(sampler, logits, &token, &err), HEARTH_POISONED);
    if (!strstr(err.text, needle)) fail_msg("'%s' lacks '%s'", err.text, needle);
    assert_int_equal(token, -7);
}

static void logits_that_are_no_numbers(void **state) {
    (void)state;
    const char *const *const sets[] = {SETTINGS("temp=0"), SETTINGS("temp=1"), SETTINGS("top-k=2", "top-p=0.5")};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        hearth_sampler *sampler = sampler_of(VOCAB, sets[k], NULL, 0);
        for (int i = 0; i < VOCAB; i++) {
            float logits[VOCAB] = {0};
            char needle[32];
            snprintf(needle, sizeof needle, "token %d", i);
            logits[i] = NAN;
            refuse_logits(sampler, logits, needle);
            logits[i] = INFINITY;
            refuse_logits(sampler, logits, needle);
            logits[i] = -INFINITY;
            hearth_token token;
            assert_int_equal(hearth_sampler_sample(sampler, logits, &token, NULL), HEARTH_OK);
            assert_true(token != i);
        }
        hearth_sampler_free(&sampler);
    }
}

static void forbidden_tokens(void **state) {
    (void)state;
    float none[VOCAB], flat[VOCAB] = {0};
    for (int i = 0; i < VOCAB; i++) none[i] = -INFINITY;
    hearth_logit_bias all[VOCAB];
    for (int i = 0; i < VOCAB; i++) all[i] = (hearth_logit_bias){i, -INFINITY};
    hearth_sampler *sampler = sampler_of(VOCAB, SETTINGS("temp=1"), all, VOCAB);
    refuse_logits(sampler, flat, "every token is forbidden");
    hearth_sampler_free(&sampler);
    sampler = sampler_of(VOCAB, SETTINGS("temp=1"), all, VOCAB - 1);
    hearth_token token;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hearth_sampler_sample(sampler, flat, &token, NULL), HEARTH_OK);
        assert_int_equal(token, VOCAB - 1);
    }
    refuse_logits(sampler, none, "every token is forbidden");
    hearth_sampler_free(&sampler);
    hearth_logit_bias large = {2, 3e38f};
    float high[VOCAB] = {0, 0, 3e38f};
    sampler = sampler_of(VOCAB, NULL, &large, 1);
    refuse_logits(sampler, high, "token 2");
    hearth_sampler_free(&sampler);
}

static void refuse_create(int32_t vocab, int64_t history, hearth_logit_bias bias) {
    hearth_sampler *sampler = (hearth_sampler *)&vocab;
    hearth_error err = {HEARTH_OK, ""};
    assert_int_equal(hearth_sampler_create(NULL, vocab, history, &bias, 1, &sampler, &err), HEARTH_BAD_ARGUMENT);
    assert_null(sampler);
    assert_true(err.text[0]);
}

static void arguments(void **state) {
    (void)state;
    refuse_create(0, 0, (hearth_logit_bias){0, 0});
    refuse_create(-1, 0, (hearth_logit_bias){0, 0});
    refuse_create(VOCAB, -1, (hearth_logit_bias){0, 0});
    refuse_create(VOCAB, 0, (hearth_logit_bias){VOCAB, 0});
    refuse_create(VOCAB, 0, (hearth_logit_bias){-1, 0});
    refuse_create(VOCAB, 0, (hearth_logit_bias){0, NAN});
    refuse_create(VOCAB, 0, (hearth_logit_bias){0, INFINITY});

    hearth_sampler *sampler = NULL;
    assert_int_equal(hearth_sampler_create(NULL, VOCAB, 0, NULL, 0, &sampler, NULL), HEARTH_OK); /* defaults */
    hearth_error err;
    hearth_token outside[] = {0, VOCAB, 1};
    assert_int_equal(hearth_sampler_accept(sampler, outside, 3, &err), HEARTH_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "token id 8"));
    hearth_sampler_free(&sampler);
    assert_null(sampler);
    hearth_sampler_free(&sampler);
    hearth_sampler_free(NULL);
}

/* A window larger than the history it was made for would forget what it still has to see: refused instead. */
static void histories_longer_than_planned(void **state) {
    (void)state;
    hearth_options *options = options_of(SETTINGS("repeat-penalty=2", "penalty-window=100"));
    hearth_sampler *sampler = NULL;
    assert_int_equal(hearth_sampler_create(options, VOCAB, 5, NULL, 0, &sampler, NULL), HEARTH_OK);
    hearth_token tokens[6] = {0, 1, 2, 3, 4, 5};
    hearth_error err;
    assert_int_equal(hearth_sampler_accept(sampler, tokens, 4, &err), HEARTH_OK);
    assert_int_equal(hearth_sampler_accept(sampler, tokens, 2, &err), HEARTH_TOO_LONG);
    assert_int_equal(hearth_sampler_accept(sampler, tokens, 1, &err), HEARTH_OK);
    assert_int_equal(hearth_sampler_accept(sampler, tokens, 1, &err), HEARTH_TOO_LONG);
    hearth_sampler_reset(sampler);
    assert_int_equal(hearth_sampler_accept(sampler, tokens, 5, &err), HEARTH_OK);
    hearth_sampler_free(&sampler);

    hearth_options_set(options, "penalty-window", "3", NULL);
    assert_int_equal(hearth_sampler_create(options, VOCAB, 5, NULL, 0, &sampler, NULL), HEARTH_OK);
    for (int i = 0; i < 10; i++) assert_int_equal(hearth_sampler_accept(sampler, tokens, 6, &err), HEARTH_OK);
    hearth_sampler_free(&sampler);
    hearth_options_free(&options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_that_are_no_numbers),
        cmocka_unit_test(forbidden_tokens),
        cmocka_unit_test(arguments),
        cmocka_unit_test(histories_longer_than_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
