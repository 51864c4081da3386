/* Shared by the sampler's tests. */
#ifndef TESTS_UNIT_SAMPLER_HELP_H
#define TESTS_UNIT_SAMPLER_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hearth/options.h"
#include "hearth/sampler.h"

static inline uint64_t next_random(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline double random_unit(uint64_t *state) {
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

/* "name=value" settings, ended by NULL, on top of: every step off, temperature 1, seed 1. */
static inline hearth_options *options_of(const char *const *settings) {
    hearth_options *options = NULL;
    hearth_error err;
    assert_int_equal(hearth_options_create(&options, NULL), HEARTH_OK);
    static const char *const off[] = {"temp=1", "top-k=0", "top-p=1", "min-p=0", "seed=1", NULL};
    for (int pass = 0; pass < 2; pass++)
        for (const char *const *s = pass ? settings : off; s && *s; s++) {
            char name[64], value[64];
            assert_int_equal(sscanf(*s, "%63[^=]=%63s", name, value), 2);
            if (hearth_options_set(options, name, value, &err) != HEARTH_OK) fail_msg("%s: %s", *s, err.text);
        }
    return options;
}

static inline hearth_sampler *sampler_of(int32_t vocab, const char *const *settings, const hearth_logit_bias *bias,
                                         size_t n_bias) {
    hearth_options *options = options_of(settings);
    hearth_sampler *sampler = NULL;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_sampler_create(options, vocab, 0, bias, n_bias, &sampler, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    return sampler;
}

static inline void assert_same_candidates(const hearth_candidate *a, const hearth_candidate *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].token, b[i].token);
        assert_true(a[i].probability == b[i].probability);
    }
}

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
