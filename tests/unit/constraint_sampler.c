/* A sampler that follows a matcher: what it allows, and nothing else changes; and calls that allocate nothing. */
#include <math.h>
#include <string.h>

#include "support/alloc_guard.h"
#include "unit/constraint_help.h"
#include "unit/sampler_help.h"

static const char *const tokens[] = {"a", "b", "c", "ab", "ba", "abc", "d", "e"};
enum { TOKENS = sizeof tokens / sizeof *tokens, VOCAB = TOKENS + 4, ROOM = VOCAB + 60 }; /* logits may be more */

static constraint_vocab vocab;

static int open_vocab(void **unused) {
    (void)unused;
    constraint_vocab_open(&vocab, tokens, TOKENS);
    return 0;
}

static int close_vocab(void **unused) {
    (void)unused;
    constraint_vocab_close(&vocab);
    return 0;
}

static hearth_matcher *matcher_of(const char *grammar, hearth_constraint **c) {
    hearth_matcher *m;
    *c = constraint_of(vocab.index, grammar);
    assert_int_equal(hearth_matcher_create(*c, &m, NULL), HEARTH_OK);
    return m;
}

/* Constrained sampling is sampling with all other tokens forbidden by a bias, to the bit. */
static void test_the_same_as_a_bias(void **unused) {
    (void)unused;
    const char *const *const sets[] = {SETTINGS("temp=1"), SETTINGS("temp=0"), SETTINGS("temp=0.7", "top-k=3"),
                                       SETTINGS("top-p=0.6", "repeat-penalty=1.3"),
                                       SETTINGS("min-p=0.2", "typical=0.8")};
    hearth_constraint *c;
    hearth_matcher *m = matcher_of("root ::= (\"ab\" | \"d\" | \"c\")*", &c);
    const hearth_token history[] = {3, 5, 8}, own[] = {3, 5, 6, 8, 9}; /* a c abc; a, c, ab, abc, d */
    uint64_t state = 1;
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        hearth_logit_bias bias[ROOM + 2] = {{5, 0.5f}, {4, 2}};
        size_t n_bias = 2;
        for (int id = 0; id < ROOM; id++) {
            bool allowed = id == CONSTRAINT_END;
            for (size_t i = 0; i < sizeof own / sizeof *own; i++) allowed |= id == own[i];
            if (!allowed) bias[n_bias++] = (hearth_logit_bias){id, -INFINITY};
        }
        hearth_sampler *constrained = sampler_of(ROOM, sets[k], bias, 2);
        hearth_sampler *biased = sampler_of(ROOM, sets[k], bias, n_bias);
        assert_int_equal(hearth_sampler_set_matcher(constrained, m, NULL), HEARTH_OK);
        assert_int_equal(hearth_sampler_accept(constrained, history, 3, NULL), HEARTH_OK);
        assert_int_equal(hearth_sampler_accept(biased, history, 3, NULL), HEARTH_OK);
        for (int round = 0; round < 50; round++) {
            float logits[ROOM];
            hearth_candidate x[ROOM], y[ROOM];
            hearth_token drawn[2];
            size_t counts[2];
            for (int i = 0; i < ROOM; i++) logits[i] = (float)(6 * random_unit(&state) - 3);
            assert_int_equal(hearth_sampler_distribution(constrained, logits, x, ROOM, &counts[0], NULL), HEARTH_OK);
            assert_int_equal(hearth_sampler_distribution(biased, logits, y, ROOM, &counts[1], NULL), HEARTH_OK);
            assert_int_equal(counts[0], counts[1]);
            assert_same_candidates(x, y, counts[0]);
            assert_int_equal(hearth_sampler_sample(constrained, logits, &drawn[0], NULL), HEARTH_OK);
            assert_int_equal(hearth_sampler_sample(biased, logits, &drawn[1], NULL), HEARTH_OK);
            assert_int_equal(drawn[0], drawn[1]);
        }
        hearth_sampler_free(&constrained);
        hearth_sampler_free(&biased);
    }
    hearth_matcher_free(&m);
    hearth_constraint_free(&c);
}

static void test_refusals(void **unused) {
    (void)unused;
    hearth_constraint *c, *other;
    hearth_matcher *m = matcher_of("root ::= \"a\" \"x\"", &c), *n = matcher_of("root ::= \"b\"", &other);
    float logits[VOCAB] = {[4] = 9, [7] = NAN, [8] = INFINITY};
    hearth_error err = {HEARTH_OK, ""};
    hearth_token token = -7;
    hearth_sampler *small = sampler_of(VOCAB - 1, SETTINGS("temp=0"), NULL, 0);
    hearth_sampler *s = sampler_of(VOCAB, SETTINGS("temp=0"), NULL, 0);
    assert_int_equal(hearth_sampler_set_matcher(small, m, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_sampler_set_matcher(s, m, NULL), HEARTH_OK);
    /* Only allowed logits are looked at. */
    assert_int_equal(hearth_sampler_sample(s, logits, &token, NULL), HEARTH_OK);
    assert_int_equal(token, CONSTRAINT_FIRST);
    logits[CONSTRAINT_FIRST] = NAN;
    assert_int_equal(hearth_sampler_sample(s, logits, &token, NULL), HEARTH_POISONED);
    /* No token is "x". */
    assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST, NULL), HEARTH_OK);
    assert_int_equal(hearth_sampler_sample(s, logits, &token, &err), HEARTH_NOT_FOUND);
    assert_non_null(strstr(err.text, "allows no token"));
    assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST, &err), HEARTH_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "token 3 (\"a\") is not allowed here"));
    assert_int_equal(hearth_matcher_accept(m, -1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_matcher_accept(m, VOCAB, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_END, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_matcher_accept(m, 1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_matcher_copy(m, n, &err), HEARTH_BAD_ARGUMENT);
    /* Without the matcher all tokens count again. */
    assert_int_equal(hearth_sampler_set_matcher(s, NULL, NULL), HEARTH_OK);
    assert_int_equal(hearth_sampler_sample(s, logits, &token, NULL), HEARTH_POISONED);
    hearth_sampler_free(&small);
    hearth_sampler_free(&s);
    hearth_matcher_free(&m);
    hearth_matcher_free(&n);
    hearth_constraint_free(&c);
    hearth_constraint_free(&other);
}

static void test_calls_allocate_nothing(void **unused) {
    (void)unused;
    hearth_constraint *c;
    hearth_matcher *m = matcher_of("root ::= \"a\" root \"b\" | (\"c\" | \"d\")* \"e\" | [a-c]{2,9} root", &c), *kept;
    hearth_sampler *s = sampler_of(VOCAB, SETTINGS("temp=1"), NULL, 0);
    float logits[VOCAB] = {0};
    assert_int_equal(hearth_matcher_create(c, &kept, NULL), HEARTH_OK);
    assert_int_equal(hearth_sampler_set_matcher(s, m, NULL), HEARTH_OK);
    alloc_guard_reset();
    for (int i = 0; i < 5000; i++) {
        hearth_token token;
        assert_int_equal(hearth_sampler_sample(s, logits, &token, NULL), HEARTH_OK);
        if (i % 7 == 0) assert_int_equal(hearth_matcher_copy(kept, m, NULL), HEARTH_OK);
        assert_int_equal(hearth_matcher_accept(m, token, NULL), HEARTH_OK);
        if (token == CONSTRAINT_END || i % 100 == 99) hearth_matcher_reset(m);
        else if (i % 31 == 0) assert_int_equal(hearth_matcher_copy(m, kept, NULL), HEARTH_OK);
    }
    assert_int_equal(alloc_guard_calls(), 0);
    hearth_sampler_free(&s);
    hearth_matcher_free(&m);
    hearth_matcher_free(&kept);
    hearth_constraint_free(&c);
}

/* Every allocation fails once: a named refusal, and nothing is left behind. */
static void test_no_memory(void **unused) {
    (void)unused;
    static const char grammar[] = "root ::= \"a\" root \"b\" | [a-c]{1,3} x\nx ::= \"d\" | \"e\" x \"e\"";
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[1,\"x\"]},\"b\":{\"$ref\":\"#\"}},"
        "\"additionalProperties\":{\"type\":\"string\",\"pattern\":\"a+\"}}";
    for (int kind = 0; kind < 4; kind++) {
        hearth_constraint *base = constraint_of(vocab.index, grammar);
        long failures = 0;
        for (hearth_status status = HEARTH_NO_MEMORY; status != HEARTH_OK && failures < 2000; failures++) {
            hearth_token_index *index = NULL;
            hearth_constraint *c = NULL;
            hearth_matcher *m = NULL;
            size_t before = alloc_guard_live();
            alloc_guard_fail_at(failures + 1);
            if (kind == 0) status = hearth_token_index_create(vocab.tokenizer, &index, NULL);
            if (kind == 1) status = hearth_constraint_grammar(vocab.index, grammar, sizeof grammar - 1, NULL, &c, NULL);
            if (kind == 2) status = hearth_constraint_schema(vocab.index, schema, sizeof schema - 1, NULL, &c, NULL);
            if (kind == 3) status = hearth_matcher_create(base, &m, NULL);
            alloc_guard_fail_at(0);
            assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
            assert_int_equal(status == HEARTH_OK, index || c || m);
            hearth_token_index_free(&index);
            hearth_constraint_free(&c);
            hearth_matcher_free(&m);
            /* The guard does not see what the JSON library allocates and is freed here. */
            if (kind != 2) assert_int_equal(alloc_guard_live(), before);
        }
        assert_in_range(failures, 4, 1999);
        hearth_constraint_free(&base);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_as_a_bias),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_calls_allocate_nothing),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("constraint_sampler", tests, open_vocab, close_vocab);
}
