/* The contract "same bits" as a random walk: several sessions of one engine are appended to together, cut back, synced,
 * freed and taken again, and refused calls come in between. Each row of logits that comes out must have, byte for byte,
 * the bits of its history computed alone, in one pass, by one thread. A model beside the walk knows what each session
 * holds, how many rows were computed and how many blocks are in use.
 *
 * The steps are the same on every machine; the seed is printed with the step that fails.
 *
 * Shown red by: a pass that reads the first item's block table for all sessions; a truncate that keeps one block too
 * many; a sync that keeps one token more than is shared; token ids checked only when their item's turn comes; positions
 * of a call's second pass that start again at those of the first.
 *
 * usage: same_bits MODEL [STEPS [SEED]]
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

enum { SESSIONS = 4, CONTEXT = 200, BLOCK = 64, OUTPUTS = 48, LONGEST_APPEND = 90 };

/* What a session must hold. */
typedef struct expected_session {
    hearth_session *session;
    int64_t position;
    hearth_token tokens[CONTEXT];
} expected_session;

typedef struct walk {
    uint64_t random, seed;
    int step;
    hearth_engine *engine; /* several sessions, several threads, passes of few rows */
    hearth_engine *alone;  /* one session, one thread, one pass */
    hearth_session *alone_session;
    int32_t vocab;
    uint64_t rows; /* computed by `engine` so far */
    int compared;
    expected_session sessions[SESSIONS];
} walk;

static const char *model_argument;
static int steps = 60;
static uint64_t seed_argument = 1;

#define WALK_FAIL(w, ...)                                                                                              \
    do {                                                                                                               \
        print_error("seed %llu, step %d: ", (unsigned long long)(w)->seed, (w)->step);                                 \
        fail_msg(__VA_ARGS__);                                                                                         \
    } while (0)

/* A number below n. */
static int64_t pick(walk *w, int64_t n) {
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((w->random >> 33) % (uint64_t)n);
}

static hearth_token pick_token(walk *w) {
    return (hearth_token)pick(w, w->vocab);
}

static hearth_engine *open_with(const char *const *settings) {
    hearth_error err;
    hearth_options *options = NULL;
    hearth_engine *engine = NULL;
    hearth_status status = hearth_options_create(&options, &err);
    for (; status == HEARTH_OK && *settings; settings += 2)
        status = hearth_options_set(options, settings[0], settings[1], &err);
    if (status == HEARTH_OK) status = hearth_engine_open(model_argument, options, &engine, &err);
    hearth_options_free(&options);
    if (status != HEARTH_OK) fail_msg("%s", err.text);
    return engine;
}

/* ---- What must be ---- */

/* The row of logits after `count` tokens is the one that these tokens give alone. */
static void expect_row(walk *w, const hearth_token *tokens, int64_t count, const float *logits) {
    hearth_error err;
    hearth_item item = {.session = w->alone_session, .tokens = tokens, .count = count, .outputs = HEARTH_OUTPUT_LAST};
    hearth_session_truncate(w->alone_session, 0, NULL);
    if (hearth_engine_run(w->alone, &item, 1, &err) != HEARTH_OK) WALK_FAIL(w, "alone: %s", err.text);
    if (memcmp(item.logits, logits, (size_t)w->vocab * sizeof *logits) != 0)
        WALK_FAIL(w, "other bits than alone after %lld tokens", (long long)count);
    w->compared++;
}

static void expect_state(walk *w) {
    hearth_counters counters;
    uint64_t blocks = 0;
    for (int s = 0; s < SESSIONS; s++) {
        const expected_session *e = &w->sessions[s];
        blocks += (uint64_t)((e->position + BLOCK - 1) / BLOCK);
        if (hearth_session_position(e->session) != e->position)
            WALK_FAIL(w, "session %d is at %lld, not %lld", s, (long long)hearth_session_position(e->session),
                      (long long)e->position);
        if (memcmp(hearth_session_tokens(e->session), e->tokens, (size_t)e->position * sizeof *e->tokens) != 0)
            WALK_FAIL(w, "session %d holds other tokens", s);
    }
    hearth_engine_counters(w->engine, &counters);
    if (counters.blocks_used != blocks)
        WALK_FAIL(w, "%llu blocks in use, not %llu", (unsigned long long)counters.blocks_used,
                  (unsigned long long)blocks);
    if (counters.rows != w->rows)
        WALK_FAIL(w, "%llu rows computed, not %llu", (unsigned long long)counters.rows, (unsigned long long)w->rows);
}

/* ---- Steps ---- */

/* Append to a random set of sessions in one call. */
static void step_run(walk *w) {
    hearth_item items[SESSIONS];
    expected_session *whose[SESSIONS];
    size_t count = 0;
    int64_t outputs = 0;
    hearth_error err;
    for (int s = 0; s < SESSIONS; s++) {
        expected_session *e = &w->sessions[s];
        int64_t room = CONTEXT - e->position;
        if (room == 0 || pick(w, 3) == 0) continue;
        int64_t n = 1 + pick(w, pick(w, 2) ? 3 : LONGEST_APPEND);
        if (n > room) n = room;
        for (int64_t i = 0; i < n; i++) e->tokens[e->position + i] = pick_token(w);
        hearth_outputs wanted = outputs + n + SESSIONS <= OUTPUTS ? HEARTH_OUTPUT_ALL
                                : pick(w, 4)                      ? HEARTH_OUTPUT_LAST
                                                                  : HEARTH_OUTPUT_NONE;
        outputs += wanted == HEARTH_OUTPUT_ALL ? n : wanted == HEARTH_OUTPUT_LAST;
        whose[count] = e;
        items[count++] =
            (hearth_item){.session = e->session, .tokens = e->tokens + e->position, .count = n, .outputs = wanted};
    }
    if (count == 0) return;
    if (hearth_engine_run(w->engine, items, count, &err) != HEARTH_OK) WALK_FAIL(w, "run: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        expected_session *e = whose[i];
        e->position += items[i].count;
        w->rows += (uint64_t)items[i].count;
        if (items[i].outputs == HEARTH_OUTPUT_NONE) continue;
        int64_t n = items[i].outputs == HEARTH_OUTPUT_ALL ? items[i].count : 1, row = pick(w, n);
        expect_row(w, e->tokens, e->position - n + row + 1, items[i].logits + row * w->vocab);
    }
}

/* A position at most `most`, often at a block's border. */
static int64_t pick_position(walk *w, int64_t most) {
    int64_t position = pick(w, most + 1);
    if (pick(w, 2)) position = position / BLOCK * BLOCK + pick(w, 3) - 1;
    return position < 0 ? 0 : position > most ? most : position;
}

static void step_truncate(walk *w) {
    expected_session *e = &w->sessions[pick(w, SESSIONS)];
    hearth_error err;
    int64_t position = pick_position(w, e->position);
    if (hearth_session_truncate(e->session, position, &err) != HEARTH_OK) WALK_FAIL(w, "truncate: %s", err.text);
    e->position = position;
}

/* A request that shares some of what the session holds, possibly all, and goes on otherwise, possibly not at all. */
static void step_sync(walk *w) {
    expected_session *e = &w->sessions[pick(w, SESSIONS)];
    int64_t shared = pick_position(w, e->position), length = shared + pick(w, 3) * pick(w, 40);
    if (length > CONTEXT) length = CONTEXT;
    if (length == 0) length = 1;
    for (int64_t i = shared; i < length; i++)
        e->tokens[i] = i < e->position ? (e->tokens[i] + 1) % w->vocab : pick_token(w);
    int64_t kept = shared < length ? shared : length - 1;
    const float *logits = NULL;
    hearth_sync_report report;
    hearth_error err;
    if (hearth_session_sync(e->session, e->tokens, length, NULL, 0, &logits, &report, &err) != HEARTH_OK)
        WALK_FAIL(w, "sync: %s", err.text);
    if (report.shared != (shared < length ? shared : length) || report.kept != kept || report.computed != length - kept)
        WALK_FAIL(w, "sync to %lld with %lld shared: shared %lld, kept %lld, computed %lld", (long long)length,
                  (long long)shared, (long long)report.shared, (long long)report.kept, (long long)report.computed);
    e->position = length;
    w->rows += (uint64_t)report.computed;
    expect_row(w, e->tokens, length, logits);
}

/* A call that is refused for its second item, or for its length: nothing at all may change. */
static void step_refused(walk *w) {
    expected_session *a = &w->sessions[0], *b = &w->sessions[1 + pick(w, SESSIONS - 1)];
    const hearth_token good[2] = {pick_token(w), pick_token(w)}, bad[4] = {-1, w->vocab, INT32_MIN, INT32_MAX};
    hearth_token many[CONTEXT + 1] = {0};
    hearth_item items[2] = {{.session = a->session, .tokens = good, .count = 1, .outputs = HEARTH_OUTPUT_LAST},
                            {.session = b->session, .tokens = good, .count = 2, .outputs = HEARTH_OUTPUT_LAST}};
    hearth_status expected = HEARTH_BAD_ARGUMENT;
    hearth_error err;
    switch (pick(w, 4)) {
    case 0: items[1].tokens = &bad[pick(w, 4)], items[1].count = 1; break;
    case 1: items[1].session = a->session; break;
    case 2: items[1].count = 0; break;
    default: items[1].tokens = many, items[1].count = CONTEXT + 1 - b->position; expected = HEARTH_TOO_LONG;
    }
    if (a->position == CONTEXT) expected = HEARTH_TOO_LONG;
    hearth_status status = hearth_engine_run(w->engine, items, 2, &err);
    if (status != expected) WALK_FAIL(w, "%s, not %s", hearth_status_name(status), hearth_status_name(expected));
    if (hearth_session_sync(b->session, many, CONTEXT + 1, NULL, 0, NULL, NULL, &err) != HEARTH_TOO_LONG ||
        !strstr(err.text, "201") || !strstr(err.text, "200"))
        WALK_FAIL(w, "a request of 201 tokens for 200: %s", err.text);
}

static void take_session(walk *w, int s) {
    hearth_error err;
    if (hearth_session_create(w->engine, &w->sessions[s].session, &err) != HEARTH_OK) WALK_FAIL(w, "%s", err.text);
    w->sessions[s].position = 0;
}

static void step_replace(walk *w) {
    int s = (int)pick(w, SESSIONS);
    hearth_session *one_too_many = NULL;
    if (hearth_session_create(w->engine, &one_too_many, NULL) != HEARTH_TOO_LONG)
        WALK_FAIL(w, "more sessions than planned");
    hearth_session_free(&w->sessions[s].session);
    take_session(w, s);
}

/* ---- The walk ---- */

static void random_walk(const char *threads, const char *rows, const char *kv) {
    walk w = {.random = seed_argument, .seed = seed_argument};
    hearth_model_info info;
    w.engine = open_with((const char *const[]){"ctx", "200", "sessions", "4", "outputs", "48", "threads", threads,
                                               "rows", rows, "kv", kv, NULL});
    w.alone = open_with((const char *const[]){"ctx", "200", "threads", "1", "rows", "200", "kv", kv, NULL});
    hearth_engine_info(w.engine, &info);
    w.vocab = info.vocab;
    assert_int_equal(hearth_session_create(w.alone, &w.alone_session, NULL), HEARTH_OK);
    for (int s = 0; s < SESSIONS; s++) take_session(&w, s);
    for (w.step = 0; w.step < steps; w.step++) {
        switch (pick(&w, 9)) {
        case 0: step_truncate(&w); break;
        case 1:
        case 2: step_sync(&w); break;
        case 3: step_refused(&w); break;
        case 4: step_replace(&w); break;
        default: step_run(&w); break;
        }
        expect_state(&w);
    }
    assert_true(w.compared > steps / 2);
    hearth_engine_close(&w.engine);
    hearth_engine_close(&w.alone);
}

static void test_passes_of_few_rows(void **state) {
    (void)state;
    random_walk("3", "37", "f16");
}

static void test_calls_in_one_pass(void **state) {
    (void)state;
    random_walk("2", "512", "f32");
}

static void test_row_by_row(void **state) {
    (void)state;
    random_walk("1", "1", "f16");
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    model_argument = argv[1];
    if (argc > 2) steps = (int)strtol(argv[2], NULL, 10);
    if (argc > 3) seed_argument = strtoull(argv[3], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_of_few_rows),
        cmocka_unit_test(test_calls_in_one_pass),
        cmocka_unit_test(test_row_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
