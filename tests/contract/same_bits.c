/* The contract "same bits" as a random walk: several sessions of one engine are appended to together, cut back, synced,
 * brought to marks that any of them left, freed and taken again, and refused calls come in between. Each row of logits
 * that comes out must have, byte for byte, the bits of its history computed alone, in one pass, by one thread. A model
 * beside the walk knows what each session holds, how many rows were computed and how many blocks are in use.
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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hearth/hearth.h"

enum { SESSIONS = 4, CONTEXT = 200, BLOCK = 64, OUTPUTS = 48, LONGEST_APPEND = 90, MARKS = 6, MARKS_A_CALL = 3 };

/* What a session must hold. */
typedef struct expected_session {
    hearth_session *session;
    int64_t position;
    hearth_token tokens[CONTEXT];
} expected_session;

/* What a mark must hold. */
typedef struct expected_mark {
    int64_t id; /* 0: none */
    int64_t position;
    hearth_token tokens[CONTEXT];
} expected_mark;

typedef struct walk {
    uint64_t random, seed;
    int step;
    bool marks;            /* the walk leaves some */
    bool recurrent;        /* the model goes back to marks only */
    hearth_engine *engine; /* several sessions, several threads, passes of few rows */
    hearth_engine *alone;  /* one session, one thread, one pass */
    hearth_session *alone_session;
    int32_t vocab;
    uint64_t rows; /* computed by `engine` so far */
    int compared;
    expected_session sessions[SESSIONS];
    expected_mark kept[MARKS];
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
    uint64_t marks = 0;
    for (int m = 0; m < MARKS; m++) {
        if (!w->kept[m].id) continue;
        marks++;
        blocks += (uint64_t)((w->kept[m].position + BLOCK - 1) / BLOCK);
    }
    if (counters.marks_used != marks)
        WALK_FAIL(w, "%llu marks kept, not %llu", (unsigned long long)counters.marks_used, (unsigned long long)marks);
    /* Marks share blocks with the sessions they came from and those they went to. */
    if (w->marks ? counters.blocks_used > blocks : counters.blocks_used != blocks)
        WALK_FAIL(w, "%llu blocks in use, not %llu", (unsigned long long)counters.blocks_used,
                  (unsigned long long)blocks);
    if (counters.rows != w->rows)
        WALK_FAIL(w, "%llu rows computed, not %llu", (unsigned long long)counters.rows, (unsigned long long)w->rows);
}

static int64_t common(const hearth_token *a, int64_t a_count, const hearth_token *b, int64_t b_count) {
    int64_t n = 0;
    while (n < a_count && n < b_count && a[n] == b[n]) n++;
    return n;
}

/* Whether a mark stands exactly there on a session's way. */
static bool has_mark_at(const walk *w, const expected_session *e, int64_t position) {
    for (int m = 0; m < MARKS; m++)
        if (w->kept[m].id && w->kept[m].position == position &&
            common(w->kept[m].tokens, position, e->tokens, position) == position)
            return true;
    return false;
}

/* What a timeline lets a request of `count` tokens keep. */
static int64_t keepable(const walk *w, int64_t shared, int64_t position, int64_t count) {
    int64_t kept = shared < count - 1 ? shared : count - 1;
    return w->recurrent && kept < position ? 0 : kept;
}

/* ---- Steps ---- */

static void drop_marks(walk *w, int64_t most) {
    hearth_error err;
    for (int m = 0; m < MARKS && most > 0; m++) {
        if (!w->kept[m].id) continue;
        if (hearth_mark_drop(w->engine, w->kept[m].id, &err) != HEARTH_OK) WALK_FAIL(w, "drop: %s", err.text);
        w->kept[m].id = 0;
        most--;
    }
}

/* Ask for some marks in a call of a session that has been given its tokens; how many. */
static size_t ask_for_marks(walk *w, const expected_session *e, int64_t count, hearth_mark *marks) {
    size_t n = 0, room = 0;
    for (int m = 0; m < MARKS; m++) room += !w->kept[m].id;
    if (!w->marks) return 0;
    for (int64_t at = e->position; at <= e->position + count && n < room && n < MARKS_A_CALL; at++)
        if (pick(w, 1 + count / 2) == 0) marks[n++] = (hearth_mark){.position = at};
    return n;
}

static void keep_marks(walk *w, const expected_session *e, const hearth_mark *marks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int m = 0;
        if (marks[i].id <= 0) WALK_FAIL(w, "no mark was left at %lld", (long long)marks[i].position);
        while (w->kept[m].id) m++;
        w->kept[m] = (expected_mark){.id = marks[i].id, .position = marks[i].position};
        memcpy(w->kept[m].tokens, e->tokens, (size_t)marks[i].position * sizeof *e->tokens);
    }
}

/* Run, after the marks have let go of blocks if there are too few. */
static void run_items(walk *w, hearth_item *items, size_t count) {
    hearth_error err;
    hearth_status status = hearth_engine_run(w->engine, items, count, &err);
    if (status == HEARTH_TOO_LONG && strstr(err.text, "KV blocks")) {
        drop_marks(w, MARKS);
        status = hearth_engine_run(w->engine, items, count, &err);
    }
    if (status != HEARTH_OK) WALK_FAIL(w, "run: %s", err.text);
}

/* Append to a random set of sessions in one call. */
static void step_run(walk *w) {
    hearth_item items[SESSIONS];
    expected_session *whose[SESSIONS];
    hearth_mark marks[MARKS_A_CALL];
    size_t count = 0, marked = 0;
    int64_t outputs = 0;
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
    marked = (size_t)pick(w, (int64_t)count); /* one of them leaves marks */
    items[marked].marks = marks;
    items[marked].mark_count = ask_for_marks(w, whose[marked], items[marked].count, marks);
    run_items(w, items, count);
    keep_marks(w, whose[marked], marks, items[marked].mark_count);
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
    for (int m = 0; m < MARKS && w->recurrent && pick(w, 2); m++)
        if (w->kept[m].id && w->kept[m].position < e->position) position = w->kept[m].position;
    bool allowed = !w->recurrent || position == 0 || position == e->position || has_mark_at(w, e, position);
    hearth_status status = hearth_session_truncate(e->session, position, &err);
    if (status != (allowed ? HEARTH_OK : HEARTH_BAD_ARGUMENT))
        WALK_FAIL(w, "truncate to %lld: %s", (long long)position, status == HEARTH_OK ? "went through" : err.text);
    if (allowed) e->position = position;
}

static void step_restore(walk *w) {
    expected_session *e = &w->sessions[pick(w, SESSIONS)];
    expected_mark *m = &w->kept[pick(w, MARKS)];
    hearth_error err;
    if (!m->id) return;
    if (hearth_session_restore(e->session, m->id, &err) != HEARTH_OK) WALK_FAIL(w, "restore: %s", err.text);
    e->position = m->position;
    memcpy(e->tokens, m->tokens, (size_t)m->position * sizeof *m->tokens);
}

/* A request that shares some of what the session holds, possibly all, and goes on otherwise, possibly not at all. */
static void step_sync(walk *w) {
    expected_session *e = &w->sessions[pick(w, SESSIONS)];
    int64_t shared = pick_position(w, e->position), length = shared + pick(w, 3) * pick(w, 40);
    if (length > CONTEXT) length = CONTEXT;
    if (length == 0) length = 1;
    for (int64_t i = shared; i < length; i++)
        e->tokens[i] = i < e->position ? (e->tokens[i] + 1) % w->vocab : pick_token(w);
    if (shared > length) shared = length;
    int64_t kept = keepable(w, shared, e->position, length);
    for (int m = 0; m < MARKS; m++) {
        const expected_mark *mark = &w->kept[m];
        if (!mark->id) continue;
        int64_t n = common(mark->tokens, mark->position, e->tokens, length);
        int64_t keeps = keepable(w, n, mark->position, length);
        if (n > shared) shared = n;
        if (keeps > kept) kept = keeps;
    }
    const float *logits = NULL;
    hearth_sync_report report;
    hearth_error err;
    hearth_status status = hearth_session_sync(e->session, e->tokens, length, NULL, 0, &logits, &report, &err);
    if (status == HEARTH_TOO_LONG && strstr(err.text, "KV blocks")) {
        /* Refused, and nothing has changed: the session holds what it held. */
        memcpy(e->tokens, hearth_session_tokens(e->session), (size_t)e->position * sizeof *e->tokens);
        return;
    }
    if (status != HEARTH_OK) WALK_FAIL(w, "sync: %s", err.text);
    if (report.shared != shared || report.kept != kept || report.computed != length - kept)
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
    case 0:
        items[1].tokens = &bad[pick(w, 4)], items[1].count = 1;
        if (b->position == CONTEXT) expected = HEARTH_TOO_LONG;
        break;
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

/* Whether going back without a mark is refused. */
static bool is_recurrent(walk *w) {
    const hearth_token three[3] = {1, 2, 3};
    hearth_item item = {.session = w->alone_session, .tokens = three, .count = 3, .outputs = HEARTH_OUTPUT_NONE};
    assert_int_equal(hearth_engine_run(w->alone, &item, 1, NULL), HEARTH_OK);
    return hearth_session_truncate(w->alone_session, 2, NULL) != HEARTH_OK;
}

static void random_walk(const char *threads, const char *rows, const char *kv, bool marks) {
    walk w = {.random = seed_argument, .seed = seed_argument, .marks = marks};
    hearth_model_info info;
    w.engine = open_with((const char *const[]){"ctx", "200", "sessions", "4", "outputs", "48", "threads", threads,
                                               "rows", rows, "kv", kv, "mark-slots", "6", NULL});
    w.alone = open_with((const char *const[]){"ctx", "200", "threads", "1", "rows", "200", "kv", kv, NULL});
    hearth_engine_info(w.engine, &info);
    w.vocab = info.vocab;
    assert_int_equal(hearth_session_create(w.alone, &w.alone_session, NULL), HEARTH_OK);
    w.recurrent = is_recurrent(&w);
    for (int s = 0; s < SESSIONS; s++) take_session(&w, s);
    for (w.step = 0; w.step < steps; w.step++) {
        switch (pick(&w, marks ? 12 : 9)) {
        case 0: step_truncate(&w); break;
        case 1:
        case 2: step_sync(&w); break;
        case 3: step_refused(&w); break;
        case 4: step_replace(&w); break;
        case 9:
        case 10: step_restore(&w); break;
        case 11: drop_marks(&w, pick(&w, MARKS)); break;
        default: step_run(&w); break;
        }
        expect_state(&w);
    }
    assert_true(w.compared > steps / 2 - 2);
    drop_marks(&w, MARKS);
    for (int s = 0; s < SESSIONS; s++) hearth_session_free(&w.sessions[s].session);
    hearth_counters counters;
    hearth_engine_counters(w.engine, &counters);
    assert_int_equal(counters.blocks_used, 0);
    hearth_engine_close(&w.engine);
    hearth_engine_close(&w.alone);
}

static void test_passes_of_few_rows(void **state) {
    (void)state;
    random_walk("3", "37", "f16", true);
}

static void test_calls_in_one_pass(void **state) {
    (void)state;
    random_walk("2", "512", "f32", true);
}

static void test_row_by_row(void **state) {
    (void)state;
    random_walk("1", "1", "f16", true);
}

static void test_no_marks(void **state) {
    (void)state;
    random_walk("2", "50", "f16", false);
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
        cmocka_unit_test(test_no_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
