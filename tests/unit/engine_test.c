/* The engine through its public header: sessions, batches, cuts, refusals. Every comparison of logits is of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hearth/hearth.h"

#define MODEL HEARTH_TEST_DATA "/models/llama-bf16.gguf"
enum { TOKENS = 300, FEW = 70 };

static hearth_engine *open_file_with(const char *path, const char *const *pairs) {
    hearth_options *options;
    hearth_error err = {0};
    hearth_engine *engine;
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (; *pairs; pairs += 2)
        if (hearth_options_set(options, pairs[0], pairs[1], &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (hearth_engine_open(path, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    return engine;
}

#define OPEN(...) open_file_with(MODEL, (const char *const[]){__VA_ARGS__, NULL})

static void fill_tokens(hearth_token *tokens, int n, uint32_t seed) {
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        tokens[i] = (hearth_token)(seed >> 8) % 4000;
    }
}

static hearth_session *new_session(hearth_engine *engine) {
    hearth_session *session;
    hearth_error err = {0};
    if (hearth_session_create(engine, &session, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return session;
}

static const float *run(hearth_engine *engine, hearth_session *session, const hearth_token *tokens, int64_t count,
                        hearth_outputs outputs) {
    hearth_error err = {0};
    hearth_item item = {.session = session, .tokens = tokens, .count = count, .outputs = outputs};
    if (hearth_engine_run(engine, &item, 1, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return item.logits;
}

static size_t row_bytes(const hearth_engine *engine) {
    hearth_model_info info;
    hearth_engine_info(engine, &info);
    return (size_t)info.vocab * sizeof(float);
}

/* The logits after the whole prompt, in memory of the caller's. */
static float *last_logits(hearth_engine *engine, const hearth_token *tokens, int64_t count) {
    hearth_session *session = new_session(engine);
    float *copy = malloc(row_bytes(engine));
    assert_non_null(copy);
    memcpy(copy, run(engine, session, tokens, count, HEARTH_OUTPUT_LAST), row_bytes(engine));
    hearth_session_free(&session);
    return copy;
}

static void facts_ledger_and_plan_are_stated(void **state) {
    (void)state;
    hearth_engine *engine = OPEN("ctx", "512", "rows", "64", "outputs", "8", "sessions", "2", "threads", "2");
    hearth_model_info info;
    hearth_engine_info(engine, &info);
    assert_string_equal(info.architecture, "llama");
    assert_int_equal(info.vocab, 4096);
    assert_int_equal(info.context, 512);
    assert_int_equal(info.rows, 64);
    assert_int_equal(info.threads, 2);
    assert_string_equal(info.kv, "f16");
    const hearth_ledger_row *rows;
    size_t n = hearth_engine_ledger(engine, &rows);
    assert_true(n >= 6);
    for (size_t i = 0; i < n; i++) assert_true(rows[i].end_ms >= rows[i].start_ms);
    const hearth_plan_term *terms;
    uint64_t kv = 0;
    n = hearth_engine_plan(engine, &terms);
    for (size_t i = 0; i < n; i++)
        if (strcmp(terms[i].what, "KV blocks") == 0) kv = terms[i].bytes;
    assert_true(kv > 0);
    hearth_engine_close(&engine);
    assert_null(engine);
}

static void cuts_do_not_change_a_bit(void **state) {
    (void)state;
    hearth_token tokens[TOKENS];
    fill_tokens(tokens, TOKENS, 1);
    hearth_engine *engine = OPEN("ctx", "512", "rows", "128", "threads", "2");
    float *whole = last_logits(engine, tokens, TOKENS);
    static const int64_t cuts[][6] = {
        {300}, {1, 299}, {64, 1, 235}, {63, 1, 1, 64, 171}, {299, 1}, {7, 13, 100, 80, 50, 50}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        hearth_session *session = new_session(engine);
        const float *logits = NULL;
        for (int64_t k = 0, at = 0; k < 6 && cuts[i][k]; at += cuts[i][k++])
            logits = run(engine, session, tokens + at, cuts[i][k], HEARTH_OUTPUT_LAST);
        assert_int_equal(hearth_session_position(session), TOKENS);
        assert_memory_equal(logits, whole, row_bytes(engine));
        hearth_session_free(&session);
    }
    free(whole);
    hearth_engine_close(&engine);
}

static void threads_tiers_and_pass_sizes_do_not_change_a_bit(void **state) {
    (void)state;
    hearth_token tokens[TOKENS];
    fill_tokens(tokens, FEW, 2);
    hearth_engine *first = OPEN("ctx", "512", "threads", "1", "cpu-mask", "ref");
    float *expected = last_logits(first, tokens, FEW);
    size_t bytes = row_bytes(first);
    hearth_engine_close(&first);
    static const char *const settings[][2] = {{"1", "512"}, {"2", "512"}, {"5", "512"},
                                              {"3", "1"},   {"2", "33"},  {"1", "100"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        hearth_engine *engine = OPEN("ctx", "512", "threads", settings[i][0], "rows", settings[i][1]);
        float *logits = last_logits(engine, tokens, FEW);
        assert_memory_equal(logits, expected, bytes);
        free(logits);
        hearth_engine_close(&engine);
    }
    free(expected);
}

/* Decode at depth takes attention apart over the tiles when there are threads to share them: the sums must stay. */
static void splitting_the_depth_does_not_change_a_bit(void **state) {
    (void)state;
    enum { DEEP = 500 };
    hearth_token tokens[DEEP];
    fill_tokens(tokens, DEEP, 3);
    float *expected = NULL;
    size_t bytes = 0;
    static const char *const threads[] = {"1", "2", "4", "7"};
    for (size_t i = 0; i < 4; i++) {
        hearth_engine *engine = OPEN("ctx", "512", "threads", threads[i], "kv", "f32");
        hearth_session *session = new_session(engine);
        run(engine, session, tokens, DEEP - 3, HEARTH_OUTPUT_NONE);
        run(engine, session, tokens + DEEP - 3, 1, HEARTH_OUTPUT_NONE);
        const float *logits = run(engine, session, tokens + DEEP - 2, 2, HEARTH_OUTPUT_LAST);
        bytes = row_bytes(engine);
        if (!expected) {
            expected = malloc(bytes);
            assert_non_null(expected);
            memcpy(expected, logits, bytes);
        }
        assert_memory_equal(logits, expected, bytes);
        hearth_engine_close(&engine); /* releases the session too */
    }
    free(expected);
}

static void sessions_in_one_pass_have_the_bits_each_has_alone(void **state) {
    (void)state;
    enum { SESSIONS = 4, STEPS = 12 };
    static const int64_t lengths[SESSIONS] = {1, 63, 64, 150};
    hearth_token tokens[SESSIONS][TOKENS];
    hearth_engine *engine = OPEN("ctx", "256", "rows", "100", "sessions", "5", "threads", "2");
    size_t bytes = row_bytes(engine);
    float *alone[SESSIONS];
    for (int s = 0; s < SESSIONS; s++) {
        fill_tokens(tokens[s], TOKENS, (uint32_t)(10 + s));
        alone[s] = last_logits(engine, tokens[s], lengths[s] + STEPS);
    }
    hearth_session *sessions[SESSIONS];
    hearth_item items[SESSIONS];
    for (int s = 0; s < SESSIONS; s++) {
        sessions[s] = new_session(engine);
        items[s] = (hearth_item){.session = sessions[s], .tokens = tokens[s], .count = lengths[s]};
    }
    hearth_error err = {0};
    assert_int_equal(hearth_engine_run(engine, items, SESSIONS, &err), HEARTH_OK);
    for (int step = 0; step < STEPS; step++) {
        for (int s = 0; s < SESSIONS; s++)
            items[s] = (hearth_item){.session = sessions[s],
                                     .tokens = tokens[s] + lengths[s] + step,
                                     .count = 1,
                                     .outputs = HEARTH_OUTPUT_LAST};
        assert_int_equal(hearth_engine_run(engine, items, SESSIONS, &err), HEARTH_OK);
    }
    for (int s = 0; s < SESSIONS; s++) {
        assert_memory_equal(items[s].logits, alone[s], bytes);
        free(alone[s]);
        hearth_session_free(&sessions[s]);
    }
    hearth_counters counters;
    hearth_engine_counters(engine, &counters);
    assert_int_equal(counters.blocks_used, 0);
    hearth_engine_close(&engine);
}

static void going_back_is_never_having_left(void **state) {
    (void)state;
    hearth_token tokens[TOKENS], other[TOKENS];
    fill_tokens(tokens, TOKENS, 20);
    fill_tokens(other, TOKENS, 21);
    hearth_engine *engine = OPEN("ctx", "512", "threads", "2", "sessions", "2");
    size_t bytes = row_bytes(engine);
    float *expected = last_logits(engine, tokens, TOKENS);
    hearth_session *session = new_session(engine);
    hearth_error err = {0};
    run(engine, session, tokens, 130, HEARTH_OUTPUT_NONE);
    run(engine, session, other, 150, HEARTH_OUTPUT_NONE);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(hearth_session_truncate(session, 130, &err), HEARTH_OK);
        assert_memory_equal(run(engine, session, tokens + 130, TOKENS - 130, HEARTH_OUTPUT_LAST), expected, bytes);
        assert_memory_equal(hearth_session_tokens(session), tokens, sizeof tokens);
    }
    assert_int_equal(hearth_session_truncate(session, TOKENS + 1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_session_truncate(session, -1, &err), HEARTH_BAD_ARGUMENT);
    free(expected);
    hearth_engine_close(&engine);
}

static void sync_keeps_what_is_shared(void **state) {
    (void)state;
    hearth_token tokens[TOKENS];
    fill_tokens(tokens, TOKENS, 30);
    hearth_engine *engine = OPEN("ctx", "512", "rows", "64", "threads", "2", "sessions", "2");
    size_t bytes = row_bytes(engine);
    hearth_session *session = new_session(engine);
    hearth_sync_report report;
    hearth_error err = {0};
    const float *logits;
    assert_int_equal(hearth_session_sync(session, tokens, 200, NULL, 0, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.kept, 0);
    assert_int_equal(report.computed, 200);
    assert_int_equal(report.passes, 4);
    tokens[150] ^= 1;
    assert_int_equal(hearth_session_sync(session, tokens, 220, NULL, 0, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.shared, 150);
    assert_int_equal(report.kept, 150);
    assert_int_equal(report.computed, 70);
    float *expected = last_logits(engine, tokens, 220);
    assert_int_equal(hearth_session_sync(session, tokens, 220, NULL, 0, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.shared, 220);
    assert_int_equal(report.computed, 1);
    assert_memory_equal(logits, expected, bytes);
    free(expected);
    hearth_engine_close(&engine);
}

/* A refused call leaves position, tokens, blocks and counters as they were. */
static void refusals_change_nothing(void **state) {
    (void)state;
    hearth_token tokens[TOKENS];
    fill_tokens(tokens, TOKENS, 40);
    hearth_engine *engine = OPEN("ctx", "256", "outputs", "8", "sessions", "2", "threads", "1");
    hearth_session *session = new_session(engine), *second = new_session(engine), *third;
    hearth_error err = {0};
    run(engine, session, tokens, 100, HEARTH_OUTPUT_NONE);
    hearth_counters before, after;
    hearth_engine_counters(engine, &before);

    assert_int_equal(hearth_session_create(engine, &third, &err), HEARTH_TOO_LONG);
    assert_null(third);
    hearth_item item = {.session = session, .tokens = tokens, .count = 157};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_TOO_LONG);
    assert_non_null(strstr(err.text, "157"));
    assert_non_null(strstr(err.text, "256"));
    item = (hearth_item){.session = session, .tokens = tokens, .count = 9, .outputs = HEARTH_OUTPUT_ALL};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_TOO_LONG);
    item.count = 0;
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_BAD_ARGUMENT);
    hearth_item twice[2] = {{.session = second, .tokens = tokens, .count = 3},
                            {.session = second, .tokens = tokens, .count = 3}};
    assert_int_equal(hearth_engine_run(engine, twice, 2, &err), HEARTH_BAD_ARGUMENT);
    hearth_token bad[3] = {1, 4096, 2};
    item = (hearth_item){.session = session, .tokens = bad, .count = 3};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "4096"));
    bad[1] = -1;
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_session_sync(session, bad, 3, NULL, 0, NULL, NULL, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_session_sync(session, tokens, 257, NULL, 0, NULL, NULL, &err), HEARTH_TOO_LONG);
    assert_non_null(strstr(err.text, "257"));

    hearth_engine_counters(engine, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(hearth_session_position(session), 100);
    assert_memory_equal(hearth_session_tokens(session), tokens, 100 * sizeof *tokens);
    hearth_engine_close(&engine);
}

static int stop_after_two(void *context, int64_t done, int64_t total) {
    (void)total;
    *(int64_t *)context = done;
    return done >= 64;
}

static void a_call_can_be_stopped_between_passes(void **state) {
    (void)state;
    hearth_token tokens[TOKENS];
    fill_tokens(tokens, TOKENS, 50);
    hearth_engine *engine = OPEN("ctx", "512", "rows", "32", "threads", "1", "sessions", "2");
    hearth_session *session = new_session(engine);
    hearth_error err = {0};
    int64_t done = 0;
    float *expected = last_logits(engine, tokens, TOKENS);
    hearth_engine_set_progress(engine, stop_after_two, &done);
    hearth_item item = {.session = session, .tokens = tokens, .count = TOKENS, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_CANCELLED);
    assert_null(item.logits);
    assert_int_equal(done, 64);
    assert_int_equal(hearth_session_position(session), 64);
    hearth_engine_set_progress(engine, NULL, NULL);
    assert_memory_equal(run(engine, session, tokens + 64, TOKENS - 64, HEARTH_OUTPUT_LAST), expected,
                        row_bytes(engine));
    free(expected);
    hearth_engine_close(&engine);
}

static void what_cannot_be_opened_is_named(void **state) {
    (void)state;
    static const struct {
        const char *name, *value, *text;
        hearth_status status;
    } cases[] = {
        {"memory", "1m", "KV blocks", HEARTH_OVER_BUDGET},
        {"ctx", "100000", "100000", HEARTH_BAD_OPTION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hearth_options *options;
        hearth_error err = {0};
        hearth_engine *engine = (hearth_engine *)&err;
        assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
        assert_int_equal(hearth_options_set(options, cases[i].name, cases[i].value, &err), HEARTH_OK);
        assert_int_equal(hearth_engine_open(MODEL, options, &engine, &err), cases[i].status);
        assert_null(engine);
        if (!strstr(err.text, cases[i].text)) fail_msg("'%s' is not in: %s", cases[i].text, err.text);
        hearth_options_free(&options);
    }
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_engine_open("/nonexistent.gguf", NULL, &engine, &err), HEARTH_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent.gguf"));
    assert_int_not_equal(hearth_engine_open("/", NULL, &engine, &err), HEARTH_OK);
}

static void copy_file(const char *from, const char *to) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    static char buffer[1 << 16];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;) assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void a_model_file_that_shrinks_ends_the_call_by_name(void **state) {
    (void)state;
    char path[] = "/tmp/hearth-engine-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    copy_file(MODEL, path);
    hearth_engine *engine =
        open_file_with(path, (const char *const[]){"ctx", "128", "sigbus", "on", "threads", "2", NULL});
    hearth_session *session = new_session(engine);
    hearth_token tokens[8];
    hearth_error err = {0};
    fill_tokens(tokens, 8, 60);
    run(engine, session, tokens, 4, HEARTH_OUTPUT_LAST);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    hearth_item item = {.session = session, .tokens = tokens + 4, .count = 4, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_POISONED);
    hearth_engine_close(&engine);
    close(fd);
    unlink(path);
}

static void opening_again_and_again_leaves_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        hearth_engine *engine = OPEN("ctx", "128", "threads", "2");
        hearth_engine_close(&engine);
    }
    hearth_engine *none = NULL;
    hearth_engine_close(&none);
}

/* An explanation in memory, to be freed. */
static char *explain(unsigned parts, int json) {
    char *text = NULL;
    size_t size = 0;
    hearth_error err = {0};
    const hearth_explain_request request = {.path = MODEL, .parts = parts, .json = json};
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    if (hearth_explain_to(&request, out, &err) != HEARTH_OK) fail_msg("%s", err.text);
    fclose(out);
    return text;
}

static void explanations_have_the_parts_asked_for(void **state) {
    static const struct {
        unsigned part;
        const char *text, *json;
    } parts[] = {{HEARTH_EXPLAIN_FACTS, "architecture llama", "\"architecture\": \"llama\""},
                 {HEARTH_EXPLAIN_PLAN, "memory plan", "\"plan_bytes\": "},
                 {HEARTH_EXPLAIN_OPTIONS, "mark-slots  ", "\"mark-slots\": {\"value\": 8, \"option\": 8}"},
                 {HEARTH_EXPLAIN_PROGRAM, "blk.0.attention  ", "\"site\": \"blk.0.attention\""}};
    enum { PARTS = sizeof parts / sizeof *parts };
    (void)state;
    for (unsigned asked = 1; asked <= HEARTH_EXPLAIN_ALL; asked++) {
        char *text = explain(asked, 0), *json = explain(asked, 1);
        for (size_t i = 0; i < PARTS; i++) {
            assert_int_equal(strstr(text, parts[i].text) != NULL, (asked & parts[i].part) != 0);
            assert_int_equal(strstr(json, parts[i].json) != NULL, (asked & parts[i].part) != 0);
        }
        free(text);
        free(json);
    }
    hearth_error err = {0};
    const unsigned bad[] = {0, HEARTH_EXPLAIN_ALL + 1};
    for (size_t i = 0; i < 2; i++) {
        const hearth_explain_request request = {.path = MODEL, .parts = bad[i]};
        assert_int_equal(hearth_explain_to(&request, stdout, &err), HEARTH_BAD_ARGUMENT);
    }
    const hearth_explain_request nowhere = {.path = MODEL, .parts = HEARTH_EXPLAIN_ALL};
    assert_int_equal(hearth_explain_to(&nowhere, NULL, &err), HEARTH_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_ledger_and_plan_are_stated),
        cmocka_unit_test(cuts_do_not_change_a_bit),
        cmocka_unit_test(threads_tiers_and_pass_sizes_do_not_change_a_bit),
        cmocka_unit_test(splitting_the_depth_does_not_change_a_bit),
        cmocka_unit_test(sessions_in_one_pass_have_the_bits_each_has_alone),
        cmocka_unit_test(going_back_is_never_having_left),
        cmocka_unit_test(sync_keeps_what_is_shared),
        cmocka_unit_test(refusals_change_nothing),
        cmocka_unit_test(a_call_can_be_stopped_between_passes),
        cmocka_unit_test(what_cannot_be_opened_is_named),
        cmocka_unit_test(a_model_file_that_shrinks_ends_the_call_by_name),
        cmocka_unit_test(opening_again_and_again_leaves_nothing),
        cmocka_unit_test(explanations_have_the_parts_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
