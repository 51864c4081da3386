/* Marks: what a call leaves on its way, and coming back to it. Every comparison of logits is of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hearth/hearth.h"

#define DATA HEARTH_TEST_DATA "/models/"

/* A model, and whether it keeps recurrent state, which only a mark can bring back. */
typedef struct model {
    const char *path;
    bool recurrent;
} model;

static const model models[] = {
    {DATA "tiny-llama-bf16.gguf", false},    {DATA "tiny-gemma3-bf16.gguf", false},
    {DATA "tiny-qwen3moe-bf16.gguf", false}, {DATA "tiny-qwen35-bf16.gguf", true},
    {DATA "tiny-qwen35moe-bf16.gguf", true},
};
enum { MODELS = sizeof models / sizeof *models, TOKENS = 200, CONTEXT = 256 };

static const model *the_model; /* of the test that runs */
static hearth_engine *engine;
static hearth_token tokens[CONTEXT], others[CONTEXT];
static size_t row_bytes;

static void open_model(const char *const *pairs) {
    hearth_options *options;
    hearth_error err = {0};
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (; *pairs; pairs += 2)
        if (hearth_options_set(options, pairs[0], pairs[1], &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (hearth_engine_open(the_model->path, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    hearth_model_info info;
    hearth_engine_info(engine, &info);
    row_bytes = (size_t)info.vocab * sizeof(float);
    for (uint32_t i = 0, seed = 7; i < CONTEXT; i++) {
        seed = seed * 1664525u + 1013904223u;
        tokens[i] = (hearth_token)((seed >> 8) % (uint32_t)info.vocab);
        others[i] = (hearth_token)((seed >> 12) % (uint32_t)info.vocab);
    }
}
#define OPEN(...) open_model((const char *const[]){"ctx", "256", "threads", "2", __VA_ARGS__, NULL})

static hearth_session *new_session(void) {
    hearth_session *session;
    hearth_error err = {0};
    if (hearth_session_create(engine, &session, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return session;
}

static const float *run(hearth_session *s, const hearth_token *from, int64_t count, hearth_mark *marks, size_t n) {
    hearth_error err = {0};
    hearth_item item = {
        .session = s, .tokens = from, .count = count, .outputs = HEARTH_OUTPUT_LAST, .marks = marks, .mark_count = n};
    if (hearth_engine_run(engine, &item, 1, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return item.logits;
}

static void restore(hearth_session *s, int64_t id) {
    hearth_error err = {0};
    if (hearth_session_restore(s, id, &err) != HEARTH_OK) fail_msg("%s", err.text);
}

static void drop(int64_t id) {
    hearth_error err = {0};
    if (hearth_mark_drop(engine, id, &err) != HEARTH_OK) fail_msg("%s", err.text);
}

static float *copy_row(const float *row) {
    float *copy = malloc(row_bytes);
    assert_non_null(copy);
    return memcpy(copy, row, row_bytes);
}

/* The logits after the first `count` of `text`, in a session of its own. */
static float *alone(const hearth_token *text, int64_t count) {
    hearth_session *s = new_session();
    float *row = copy_row(run(s, text, count, NULL, 0));
    hearth_session_free(&s);
    return row;
}

static hearth_counters counters(void) {
    hearth_counters c;
    hearth_engine_counters(engine, &c);
    return c;
}

static void assert_refused(hearth_session *s, int64_t count, hearth_mark *marks, size_t n, hearth_status wanted,
                           const char *says) {
    hearth_error err = {0};
    hearth_counters before = counters();
    int64_t position = hearth_session_position(s);
    hearth_item item = {.session = s,
                        .tokens = tokens + position,
                        .count = count,
                        .outputs = HEARTH_OUTPUT_LAST,
                        .marks = marks,
                        .mark_count = n};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), wanted);
    if (!strstr(err.text, says)) fail_msg("'%s' does not say '%s'", err.text, says);
    hearth_counters after = counters();
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(hearth_session_position(s), position);
}

/* ---- Tests, each for every model ---- */

/* Marks at the start, at the first rows, side by side, over the ends of blocks and passes, at the last row. */
static const int64_t places[] = {0, 1, 2, 3, 31, 32, 63, 64, 65, 100, 127, 128, 199, 200};
enum { PLACES = sizeof places / sizeof *places };

static void test_leave_and_come_back(void **state) {
    (void)state;
    OPEN("mark-slots", "14", "rows", "48");
    float *want = alone(tokens, TOKENS);
    uint64_t passes = counters().passes;
    assert_int_equal(passes, (TOKENS + 47) / 48);

    hearth_mark marks[PLACES];
    for (int i = 0; i < PLACES; i++) marks[i] = (hearth_mark){.position = places[i]};
    hearth_session *s = new_session();
    const float *got = run(s, tokens, TOKENS, marks, PLACES);
    assert_memory_equal(got, want, row_bytes);
    assert_int_equal(counters().passes, 2 * passes); /* marks never cut a call */
    assert_int_equal(counters().marks_used, PLACES);

    for (int again = 0; again < 2; again++)
        for (int i = PLACES - 1; i >= 0; i--) {
            assert_true(marks[i].id > 0);
            restore(s, marks[i].id);
            assert_int_equal(hearth_session_position(s), places[i]);
            assert_memory_equal(hearth_session_tokens(s), tokens, (size_t)places[i] * sizeof *tokens);
            if (places[i] < TOKENS)
                assert_memory_equal(run(s, tokens + places[i], TOKENS - places[i], NULL, 0), want, row_bytes);
        }
    free(want);
    hearth_session_free(&s);
    for (int i = 0; i < PLACES; i++) drop(marks[i].id);
    assert_int_equal(counters().blocks_used, 0);
    assert_int_equal(counters().marks_used, 0);
    hearth_engine_close(&engine);
}

/* The first session went on to `reached`; two others come to its mark at `at` and go elsewhere. In one call or one
 * after the other, each has the bits that it has alone, and the mark outlives them all. */
static void part(int64_t at, int64_t reached, bool together) {
    hearth_token text_a[CONTEXT], text_b[CONTEXT];
    memcpy(text_a, tokens, sizeof tokens);
    memcpy(text_b, tokens, sizeof tokens);
    memcpy(text_a + at, others, 40 * sizeof *others);
    memcpy(text_b + at, others + 100, 40 * sizeof *others);
    float *want = alone(tokens, 90), *want_a = alone(text_a, at + 40), *want_b = alone(text_b, at + 40);
    hearth_session *s = new_session(), *a = new_session(), *b = new_session();
    hearth_mark mark = {.position = at};
    run(s, tokens, reached, &mark, 1);
    restore(a, mark.id);
    restore(b, mark.id);
    hearth_item items[] = {
        {.session = a, .tokens = text_a + at, .count = 40, .outputs = HEARTH_OUTPUT_LAST},
        {.session = s, .tokens = tokens + reached, .count = 90 - reached, .outputs = HEARTH_OUTPUT_LAST},
        {.session = b, .tokens = text_b + at, .count = 40, .outputs = HEARTH_OUTPUT_LAST},
    };
    const float *wanted[] = {want_a, want, want_b};
    hearth_error err = {0};
    for (size_t i = 0, n = together ? 3 : 1; i < 3; i += n) {
        if (hearth_engine_run(engine, items + i, n, &err) != HEARTH_OK) fail_msg("%s", err.text);
        for (size_t k = i; k < i + n; k++) assert_memory_equal(items[k].logits, wanted[k], row_bytes);
    }
    hearth_session_free(&s);
    hearth_session_free(&b);
    restore(a, mark.id);
    assert_memory_equal(run(a, tokens + at, 90 - at, NULL, 0), want, row_bytes);
    hearth_session_free(&a);
    drop(mark.id);
    assert_int_equal(counters().blocks_used, 0);
    free(want), free(want_a), free(want_b);
}

static void test_timelines_part(void **state) {
    (void)state;
    OPEN("sessions", "3", "mark-slots", "2");
    for (int64_t at = 60; at <= 70; at += 5) {
        const int64_t reached[] = {at, at + 1, 80};
        for (int i = 0; i < 6; i++) part(at, reached[i / 2], i % 2);
    }
    assert_true(counters().block_copies > 0);
    hearth_engine_close(&engine);
}

/* What is written after a way back behind a mark does not reach the mark. */
static void test_write_below_mark(void **state) {
    (void)state;
    OPEN("mark-slots", "2");
    float *want = alone(tokens, 100);
    hearth_session *s = new_session();
    hearth_error err = {0};
    hearth_mark marks[] = {{.position = 20}, {.position = 50}};
    run(s, tokens, 60, marks, 2);
    assert_int_equal(hearth_session_truncate(s, 20, &err), HEARTH_OK);
    run(s, others, 40, NULL, 0);
    restore(s, marks[1].id);
    assert_memory_equal(run(s, tokens + 50, 50, NULL, 0), want, row_bytes);
    restore(s, marks[0].id);
    assert_memory_equal(run(s, tokens + 20, 80, NULL, 0), want, row_bytes);
    hearth_session_free(&s);
    hearth_engine_close(&engine);
    free(want);
}

static void test_refusals(void **state) {
    (void)state;
    OPEN("mark-slots", "3", "rows", "32");
    hearth_session *s = new_session();
    hearth_mark kept = {.position = 10};
    run(s, tokens, 20, &kept, 1);
    hearth_mark three[] = {{.position = 21}, {.position = 22}, {.position = 23}};
    assert_refused(s, 30, three, 3, HEARTH_TOO_LONG, "3 marks wanted in one call: 2 of 3 slots are free");
    hearth_mark back[] = {{.position = 25}, {.position = 24}}, twice[] = {{.position = 25}, {.position = 25}};
    assert_refused(s, 30, back, 2, HEARTH_BAD_ARGUMENT, "mark 1 at 24 follows one at 25");
    assert_refused(s, 30, twice, 2, HEARTH_BAD_ARGUMENT, "mark 1 at 25 follows one at 25");
    hearth_mark before = {.position = 19}, beyond = {.position = 51}, negative = {.position = -1};
    assert_refused(s, 30, &before, 1, HEARTH_BAD_ARGUMENT, "mark 0 is at position 19: the call goes from 20 to 50");
    assert_refused(s, 30, &beyond, 1, HEARTH_BAD_ARGUMENT, "mark 0 is at position 51: the call goes from 20 to 50");
    assert_refused(s, 30, &negative, 1, HEARTH_BAD_ARGUMENT, "mark 0 is at position -1");
    hearth_mark *many = calloc(10000, sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < 10000; i++) many[i].position = 20 + i;
    assert_refused(s, 30, many, 10000, HEARTH_BAD_ARGUMENT, "mark 31 is at position 51");
    free(many);
    hearth_error err = {0};
    assert_int_equal(hearth_session_restore(s, 99, &err), HEARTH_NOT_FOUND);
    assert_non_null(strstr(err.text, "99"));
    assert_int_equal(hearth_mark_drop(engine, 0, &err), HEARTH_NOT_FOUND);
    drop(kept.id);
    assert_int_equal(hearth_session_restore(s, kept.id, &err), HEARTH_NOT_FOUND);
    hearth_session_free(&s);
    hearth_engine_close(&engine);
}

/* Going back to where no mark is: attention can, recurrent state names what would do. */
static void test_truncate(void **state) {
    (void)state;
    OPEN("mark-slots", "2");
    float *want = alone(tokens, 100);
    hearth_session *s = new_session();
    hearth_error err = {0};
    hearth_mark mark = {.position = 30};
    run(s, tokens, 100, &mark, 1);
    hearth_status status = hearth_session_truncate(s, 77, &err);
    if (the_model->recurrent) {
        assert_int_equal(status, HEARTH_BAD_ARGUMENT);
        assert_non_null(strstr(err.text, "position 77"));
        assert_non_null(strstr(err.text, "nearest before it is 30"));
        assert_int_equal(hearth_session_position(s), 100);
        assert_int_equal(hearth_session_truncate(s, 29, &err), HEARTH_BAD_ARGUMENT);
        assert_non_null(strstr(err.text, "nearest before it is 0, the start"));
    } else {
        assert_int_equal(status, HEARTH_OK);
        assert_memory_equal(run(s, tokens + 77, 23, NULL, 0), want, row_bytes);
    }
    assert_int_equal(hearth_session_truncate(s, 30, &err), HEARTH_OK);
    assert_memory_equal(run(s, tokens + 30, 70, NULL, 0), want, row_bytes);
    assert_int_equal(hearth_session_truncate(s, 0, &err), HEARTH_OK);
    assert_memory_equal(run(s, tokens, 100, NULL, 0), want, row_bytes);
    hearth_session_free(&s);
    hearth_engine_close(&engine);
    free(want);
}

/* A sync keeps what a mark has when the session itself has less, and says so. */
static void test_sync(void **state) {
    (void)state;
    OPEN("mark-slots", "3");
    hearth_token text[CONTEXT]; /* other tokens from 50 on */
    memcpy(text, tokens, sizeof tokens);
    memcpy(text + 50, others, 50 * sizeof *others);
    float *want = alone(tokens, 150), *want_other = alone(text, 100);
    hearth_session *s = new_session();
    hearth_error err = {0};
    const float *logits;
    hearth_sync_report report;
    hearth_mark marks[] = {{.position = 40}, {.position = 90}};
    assert_int_equal(hearth_session_sync(s, tokens, 120, marks, 2, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.computed, 120);
    /* The mark at 40 is all that recurrent state can keep of the other text. */
    assert_int_equal(hearth_session_sync(s, text, 100, NULL, 0, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.shared, 50);
    assert_int_equal(report.kept, the_model->recurrent ? 40 : 50);
    assert_int_equal(report.computed, 100 - report.kept);
    assert_memory_equal(logits, want_other, row_bytes);
    /* Back to the first way: the session shares 50, the mark 90. A mark asked for in what is kept is the one there. */
    hearth_mark asked[] = {{.position = 40}, {.position = 41}, {.position = 100}};
    assert_int_equal(hearth_session_sync(s, tokens, 150, asked, 3, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.kept, 90);
    assert_int_equal(report.restored, marks[1].id);
    assert_int_equal(asked[0].id, marks[0].id);
    assert_int_equal(asked[1].id, 0);
    assert_true(asked[2].id > marks[1].id);
    assert_memory_equal(logits, want, row_bytes);
    /* Marks outlive their session. */
    hearth_session_free(&s);
    s = new_session();
    assert_int_equal(hearth_session_sync(s, tokens, 150, NULL, 0, &logits, &report, &err), HEARTH_OK);
    assert_int_equal(report.kept, 100);
    assert_memory_equal(logits, want, row_bytes);
    hearth_mark_info infos[3];
    assert_int_equal(hearth_engine_marks(engine, infos, 3), 3);
    assert_int_equal(infos[0].position, 40);
    assert_int_equal(infos[2].position, 100);
    assert_memory_equal(infos[2].tokens, tokens, 100 * sizeof *tokens);
    hearth_session_free(&s);
    hearth_engine_close(&engine);
    free(want), free(want_other);
}

/* A sync asked for a mark where a mark is already, at the very end of what is kept, does not take a second slot. */
static void test_sync_asks_again(void **state) {
    (void)state;
    OPEN("mark-slots", "2", "sessions", "2");
    hearth_token text[CONTEXT];
    memcpy(text, tokens, sizeof text);
    hearth_session *s = new_session();
    hearth_error err = {0};
    hearth_mark first = {.position = 60};
    hearth_sync_report report;
    assert_int_equal(hearth_session_sync(s, text, 80, &first, 1, NULL, NULL, &err), HEARTH_OK);
    for (int turn = 0; turn < 3; turn++) {
        text[60] = others[turn];
        hearth_mark again = {.position = 60};
        float *want = alone(text, 80);
        const float *logits;
        assert_int_equal(hearth_session_sync(s, text, 80, &again, 1, &logits, &report, &err), HEARTH_OK);
        assert_int_equal(report.kept, 60);
        assert_int_equal(again.id, first.id);
        assert_int_equal(counters().marks_used, 1);
        assert_memory_equal(logits, want, row_bytes);
        free(want);
    }
    hearth_session_free(&s);
    hearth_engine_close(&engine);
}

/* A stop between two passes: the marks that were reached are there, the others are not. */
static int stop_after_second(void *context, int64_t done, int64_t total) {
    (void)total;
    return done >= *(const int64_t *)context;
}

static void test_cancelled(void **state) {
    (void)state;
    OPEN("mark-slots", "3", "rows", "20");
    float *want = alone(tokens, 100);
    hearth_session *s = new_session();
    hearth_error err = {0};
    int64_t rows = 40;
    hearth_mark marks[] = {{.position = 10}, {.position = 40}, {.position = 41}};
    hearth_item item = {
        .session = s, .tokens = tokens, .count = 100, .outputs = HEARTH_OUTPUT_LAST, .marks = marks, .mark_count = 3};
    hearth_engine_set_progress(engine, stop_after_second, &rows);
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_CANCELLED);
    hearth_engine_set_progress(engine, NULL, NULL);
    assert_int_equal(hearth_session_position(s), 40);
    assert_true(marks[0].id > 0 && marks[1].id > 0);
    assert_int_equal(marks[2].id, 0);
    for (int i = 1; i >= 0; i--) {
        restore(s, marks[i].id);
        assert_memory_equal(run(s, tokens + marks[i].position, 100 - marks[i].position, NULL, 0), want, row_bytes);
    }
    hearth_session_free(&s);
    hearth_engine_close(&engine);
    free(want);
}

/* Marks hold blocks of ways that were left: a call that finds too few is refused, and nothing is lost. */
static void test_blocks_run_out(void **state) {
    (void)state;
    OPEN("mark-slots", "2");
    hearth_session *s = new_session();
    hearth_error err = {0};
    hearth_mark end = {.position = 256};
    run(s, tokens, 256, &end, 1);
    assert_int_equal(counters().blocks_total, 256 / 64 + 2);
    assert_int_equal(hearth_session_truncate(s, 0, &err), HEARTH_OK);
    run(s, others, 100, NULL, 0);
    hearth_item item = {.session = s, .tokens = tokens, .count = 100, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_TOO_LONG);
    assert_non_null(strstr(err.text, "a call needs 2 KV blocks and 0 of 6 are free: others are held by 1 mark"));
    assert_int_equal(hearth_session_position(s), 100);
    assert_int_equal(hearth_session_sync(s, others, 200, NULL, 0, NULL, NULL, &err), HEARTH_TOO_LONG);
    assert_int_equal(hearth_session_position(s), 100);
    drop(end.id);
    assert_int_equal(hearth_engine_run(engine, &item, 1, &err), HEARTH_OK);
    hearth_session_free(&s);
    hearth_engine_close(&engine);
}

/* A sync that goes back to a mark shares its last block with it, and so may need a copy of that block. One block short,
 * it is refused before the session leaves its place. */
static void test_refused_sync_stays(void **state) {
    (void)state;
    OPEN("mark-slots", "2");
    hearth_session *s = new_session();
    hearth_error err = {0};
    hearth_mark near = {.position = 100}, far = {.position = 192};
    hearth_token text[CONTEXT];
    memcpy(text, tokens, 100 * sizeof *text);
    memcpy(text + 100, others, 100 * sizeof *text);
    run(s, tokens, 120, &near, 1);
    assert_int_equal(hearth_session_truncate(s, 0, &err), HEARTH_OK);
    run(s, others, 192, &far, 1);
    assert_int_equal(counters().blocks_total - counters().blocks_used, 1);
    assert_int_equal(hearth_session_sync(s, text, 130, NULL, 0, NULL, NULL, &err), HEARTH_TOO_LONG);
    assert_non_null(strstr(err.text, "a call needs 2 KV blocks and 1 of 6 are free"));
    assert_int_equal(hearth_session_position(s), 192);
    assert_memory_equal(hearth_session_tokens(s), others, 192 * sizeof *others);
    assert_int_equal(counters().restores, 0);
    hearth_session_free(&s);
    hearth_engine_close(&engine);
}

#define FOR_ALL(test)                                                                                                  \
    static void test##_all(void **state) {                                                                             \
        for (int i = 0; i < MODELS; i++) {                                                                             \
            the_model = &models[i];                                                                                    \
            test(state);                                                                                               \
        }                                                                                                              \
    }
FOR_ALL(test_leave_and_come_back)
FOR_ALL(test_timelines_part)
FOR_ALL(test_write_below_mark)
FOR_ALL(test_refusals)
FOR_ALL(test_truncate)
FOR_ALL(test_sync)
FOR_ALL(test_sync_asks_again)
FOR_ALL(test_cancelled)
FOR_ALL(test_blocks_run_out)
FOR_ALL(test_refused_sync_stays)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leave_and_come_back_all),
        cmocka_unit_test(test_timelines_part_all),
        cmocka_unit_test(test_write_below_mark_all),
        cmocka_unit_test(test_refusals_all),
        cmocka_unit_test(test_truncate_all),
        cmocka_unit_test(test_sync_all),
        cmocka_unit_test(test_sync_asks_again_all),
        cmocka_unit_test(test_cancelled_all),
        cmocka_unit_test(test_blocks_run_out_all),
        cmocka_unit_test(test_refused_sync_stays_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
