/* The contract "same bits" through the public API: the logits of a row do not depend on what else is in the call, on how
 * the tokens were cut into calls and passes, or on where the session has been before. All comparisons are of bytes.
 *
 * The command line's half (threads, instruction sets, cuts, KV types) is same_bits.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hearth/hearth.h"

#define MODEL HEARTH_TEST_DATA "/models/llama-bf16.gguf"

/* Longer than three KV blocks, so that block borders lie before, in and after every cut below. */
#define LENGTH 200

static void ok(hearth_status status, const hearth_error *err) {
    if (status != HEARTH_OK) fail_msg("%s: %s", hearth_status_name(status), err->text);
}

typedef struct fixture {
    hearth_engine *engine;
    hearth_model_info info;
} fixture;

/* An engine with the options "name value name value …". */
static fixture open_with(const char *const *settings) {
    fixture f = {0};
    hearth_error err;
    hearth_options *options = NULL;
    ok(hearth_options_create(&options, &err), &err);
    ok(hearth_options_set(options, "ctx", "256", &err), &err);
    ok(hearth_options_set(options, "outputs", "256", &err), &err);
    for (; settings && settings[0]; settings += 2) ok(hearth_options_set(options, settings[0], settings[1], &err), &err);
    ok(hearth_engine_open(MODEL, options, &f.engine, &err), &err);
    hearth_options_free(&options);
    hearth_engine_info(f.engine, &f.info);
    return f;
}

static hearth_session *session_of(const fixture *f) {
    hearth_session *session = NULL;
    hearth_error err;
    ok(hearth_session_create(f->engine, &session, &err), &err);
    return session;
}

/* The n-th test sequence: arbitrary ids, the same on every machine. */
static void make_tokens(const fixture *f, uint32_t n, hearth_token *tokens, int64_t count) {
    uint32_t state = n * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        tokens[i] = (hearth_token)((state >> 8) % (uint32_t)f->info.vocab);
    }
}

/* Append tokens to a session; the logits of every one go to `out`. */
static void run_all(const fixture *f, hearth_session *session, const hearth_token *tokens, int64_t count, float *out) {
    hearth_error err;
    hearth_item item = {.session = session, .tokens = tokens, .count = count, .outputs = HEARTH_OUTPUT_ALL};
    ok(hearth_engine_run(f->engine, &item, 1, &err), &err);
    assert_non_null(item.logits);
    memcpy(out, item.logits, (size_t)count * (size_t)f->info.vocab * sizeof *out);
}

static float *rows_of(const fixture *f, int64_t rows) {
    float *out = calloc((size_t)rows * (size_t)f->info.vocab, sizeof *out);
    assert_non_null(out);
    return out;
}

static void same_rows(const fixture *f, const float *a, const float *b, int64_t rows, const char *what, int64_t at) {
    size_t bytes = (size_t)f->info.vocab * sizeof *a;
    for (int64_t r = 0; r < rows; r++)
        if (memcmp(a + r * f->info.vocab, b + r * f->info.vocab, bytes) != 0)
            fail_msg("%s: other bits at position %lld", what, (long long)(at + r));
}

/* What sequence n gives alone, in one call of one pass. */
static float *alone(const char *const *settings, uint32_t n, hearth_token *tokens) {
    fixture f = open_with(settings);
    make_tokens(&f, n, tokens, LENGTH);
    hearth_session *session = session_of(&f);
    float *out = rows_of(&f, LENGTH);
    run_all(&f, session, tokens, LENGTH, out);
    hearth_session_free(&session);
    hearth_engine_close(&f.engine);
    return out;
}

/* Shown red by letting a pass of several sessions read the first session's block table for all of them, and by
 * quantizing activations with one scale over all rows. */
static void test_beside_others(void **state) {
    (void)state;
    enum { SESSIONS = 3 };
    /* How many tokens each session gets in each call: prefills and decodes in every mixture. */
    static const int64_t calls[][SESSIONS] = {{5, 70, 0},  {1, 1, 130}, {1, 1, 1},  {1, 0, 1},
                                              {60, 1, 1},  {1, 64, 2},  {0, 1, 33}, {65, 1, 1}};
    fixture f = open_with((const char *const[]){"sessions", "3", NULL});
    hearth_session *sessions[SESSIONS];
    hearth_token tokens[SESSIONS][LENGTH];
    float *expected[SESSIONS];
    int64_t position[SESSIONS] = {0};
    for (uint32_t s = 0; s < SESSIONS; s++) {
        expected[s] = alone(NULL, s, tokens[s]);
        sessions[s] = session_of(&f);
    }
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        hearth_item items[SESSIONS];
        int which[SESSIONS];
        size_t count = 0;
        hearth_error err;
        for (int s = 0; s < SESSIONS; s++) {
            if (!calls[c][s]) continue;
            assert_true(position[s] + calls[c][s] <= LENGTH);
            which[count] = s;
            items[count++] = (hearth_item){.session = sessions[s],
                                           .tokens = tokens[s] + position[s],
                                           .count = calls[c][s],
                                           .outputs = HEARTH_OUTPUT_ALL};
        }
        ok(hearth_engine_run(f.engine, items, count, &err), &err);
        for (size_t i = 0; i < count; i++) {
            int s = which[i];
            const float *there = expected[s] + position[s] * f.info.vocab;
            same_rows(&f, items[i].logits, there, items[i].count, "beside others", position[s]);
            position[s] += items[i].count;
        }
    }
    for (int s = 0; s < SESSIONS; s++) {
        assert_int_equal(hearth_session_position(sessions[s]), position[s]);
        hearth_session_free(&sessions[s]);
        free(expected[s]);
    }
    hearth_engine_close(&f.engine);
}

/* Shown red by starting a second pass's positions at 0. */
static void test_any_pass_size(void **state) {
    (void)state;
    static const char *const sizes[] = {"1", "2", "7", "63", "64", "65", "199", "512"};
    hearth_token tokens[LENGTH];
    float *expected = alone(NULL, 7, tokens);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fixture f = open_with((const char *const[]){"rows", sizes[i], NULL});
        hearth_session *session = session_of(&f);
        float *out = rows_of(&f, LENGTH);
        run_all(&f, session, tokens, LENGTH, out);
        same_rows(&f, out, expected, LENGTH, sizes[i], 0);
        free(out);
        hearth_session_free(&session);
        hearth_engine_close(&f.engine);
    }
    free(expected);
}

/* Go back, run something else, go back again, run what was there: the bits are those of never having left. Shown red by
 * letting truncate keep one position more than asked for. */
static void test_truncate_and_return(void **state) {
    (void)state;
    static const int64_t backs[] = {0, 1, 63, 64, 65, 127, 128, 150, LENGTH - 1};
    hearth_token tokens[LENGTH], other[LENGTH];
    float *expected = alone(NULL, 11, tokens);
    fixture f = open_with(NULL);
    make_tokens(&f, 12, other, LENGTH);
    hearth_session *session = session_of(&f);
    float *out = rows_of(&f, LENGTH);
    hearth_error err;
    run_all(&f, session, tokens, LENGTH, out);
    for (size_t i = 0; i < sizeof backs / sizeof *backs; i++) {
        int64_t back = backs[i], detour = LENGTH - back < 40 ? LENGTH - back : 40;
        ok(hearth_session_truncate(session, back, &err), &err);
        assert_int_equal(hearth_session_position(session), back);
        run_all(&f, session, other, detour, out);
        ok(hearth_session_truncate(session, back, &err), &err);
        run_all(&f, session, tokens + back, LENGTH - back, out);
        same_rows(&f, out, expected + back * f.info.vocab, LENGTH - back, "after going back", back);
        assert_memory_equal(hearth_session_tokens(session), tokens, sizeof tokens);
    }
    assert_int_equal(hearth_session_truncate(session, LENGTH + 1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_session_truncate(session, -1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_session_position(session), LENGTH);
    free(out);
    free(expected);
    hearth_session_free(&session);
    hearth_engine_close(&f.engine);
}

/* A sync gives the logits that computing the whole request gives, computes no row of the shared prefix but the last one of
 * a request that was held whole, and says so. Shown red by keeping one token more than is shared. */
static void test_sync_keeps_prefix(void **state) {
    (void)state;
    hearth_token tokens[LENGTH], request[LENGTH];
    float *expected = alone(NULL, 21, tokens);
    fixture f = open_with(NULL);
    hearth_session *session = session_of(&f);
    /* (shared with what the session holds, length of the request) in turn */
    static const int64_t steps[][2] = {{0, 20}, {20, 90}, {90, 90}, {60, 60}, {60, 61}, {61, LENGTH}, {64, 64}, {1, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t shared = steps[i][0], length = steps[i][1];
        const float *logits = NULL;
        hearth_sync_report report;
        hearth_error err;
        memcpy(request, tokens, sizeof request);
        ok(hearth_session_sync(session, request, length, &logits, &report, &err), &err);
        same_rows(&f, logits, expected + (length - 1) * f.info.vocab, 1, "sync", length - 1);
        assert_int_equal(report.shared, shared);
        assert_int_equal(report.kept + report.computed, length);
        assert_int_equal(report.kept, shared < length ? shared : length - 1);
        assert_int_equal(hearth_session_position(session), length);
    }
    free(expected);
    hearth_session_free(&session);
    hearth_engine_close(&f.engine);
}

static void assert_both_numbers(const hearth_error *err, const char *asked, const char *allowed) {
    if (!strstr(err->text, asked) || !strstr(err->text, allowed))
        fail_msg("no %s and %s in: %s", asked, allowed, err->text);
}

/* What does not fit is refused with both numbers, before anything has changed. Shown red by checking the context after the
 * first pass. */
static void test_too_long(void **state) {
    (void)state;
    hearth_token tokens[LENGTH];
    float *expected = alone(NULL, 31, tokens);
    fixture f = open_with((const char *const[]){"ctx", "150", "rows", "64", "outputs", "100", NULL});
    hearth_session *session = session_of(&f);
    float *out = rows_of(&f, LENGTH);
    hearth_error err;
    assert_int_equal(f.info.context, 150);

    hearth_item item = {.session = session, .tokens = tokens, .count = 151, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(f.engine, &item, 1, &err), HEARTH_TOO_LONG);
    assert_both_numbers(&err, "151", "150");
    assert_int_equal(hearth_session_position(session), 0);

    item.count = 101;
    item.outputs = HEARTH_OUTPUT_ALL;
    assert_int_equal(hearth_engine_run(f.engine, &item, 1, &err), HEARTH_TOO_LONG);
    assert_both_numbers(&err, "101", "100");
    assert_int_equal(hearth_session_position(session), 0);

    run_all(&f, session, tokens, 100, out);
    const float *logits = NULL;
    assert_int_equal(hearth_session_sync(session, tokens, 152, &logits, NULL, &err), HEARTH_TOO_LONG);
    assert_both_numbers(&err, "152", "150");
    assert_int_equal(hearth_session_position(session), 100);

    run_all(&f, session, tokens + 100, 50, out + 100 * f.info.vocab);
    same_rows(&f, out, expected, 150, "after refusals", 0);
    item = (hearth_item){.session = session, .tokens = tokens + 150, .count = 1, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(f.engine, &item, 1, &err), HEARTH_TOO_LONG);
    assert_both_numbers(&err, "151", "150");
    free(out);
    free(expected);
    hearth_session_free(&session);
    hearth_engine_close(&f.engine);
}

/* Ids out of range and a session given twice are refused, and leave every session of the call alone. Shown red by checking
 * the ids of each item when its turn comes. */
static void test_refused_together(void **state) {
    (void)state;
    hearth_token tokens[LENGTH];
    float *expected = alone(NULL, 41, tokens);
    fixture f = open_with((const char *const[]){"sessions", "2", NULL});
    hearth_session *a = session_of(&f), *b = session_of(&f), *c = NULL;
    hearth_error err;
    assert_int_equal(hearth_session_create(f.engine, &c, &err), HEARTH_TOO_LONG);
    assert_null(c);
    const hearth_token bad[][2] = {{3, -1}, {3, f.info.vocab}, {INT32_MAX, 3}, {INT32_MIN, 3}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hearth_item items[] = {{.session = a, .tokens = tokens, .count = 10, .outputs = HEARTH_OUTPUT_LAST},
                               {.session = b, .tokens = bad[i], .count = 2, .outputs = HEARTH_OUTPUT_LAST}};
        assert_int_equal(hearth_engine_run(f.engine, items, 2, &err), HEARTH_BAD_ARGUMENT);
        assert_int_equal(hearth_session_position(a), 0);
        assert_int_equal(hearth_session_position(b), 0);
    }
    hearth_item twice[] = {{.session = a, .tokens = tokens, .count = 3, .outputs = HEARTH_OUTPUT_LAST},
                           {.session = a, .tokens = tokens, .count = 3, .outputs = HEARTH_OUTPUT_LAST}};
    assert_int_equal(hearth_engine_run(f.engine, twice, 2, &err), HEARTH_BAD_ARGUMENT);
    hearth_item none = {.session = a, .tokens = tokens, .count = 0, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(f.engine, &none, 1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_session_position(a), 0);

    float *out = rows_of(&f, LENGTH);
    run_all(&f, a, tokens, LENGTH, out);
    same_rows(&f, out, expected, LENGTH, "after refusals", 0);
    free(out);
    free(expected);
    hearth_session_free(&a);
    hearth_session_free(&b);
    hearth_engine_close(&f.engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_others),     cmocka_unit_test(test_any_pass_size),
        cmocka_unit_test(test_truncate_and_return), cmocka_unit_test(test_sync_keeps_prefix),
        cmocka_unit_test(test_too_long),          cmocka_unit_test(test_refused_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
