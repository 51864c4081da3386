/* What a trained model remembers, across marks, restores and eight sessions that run together: each is told a code word
 * in its first turn and asked for it in its last. A state that was lost, mixed up or stale says another word.
 *
 * usage: code_word MODEL...
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hearth/hearth.h"

enum { TALKS = 8, CONTEXT = 320, ANSWER = 24, SLOTS = 2 * TALKS, TURNS = 3 };

static const char *const words[TALKS] = {"garden", "house", "lamp", "river", "stone", "tree", "bread", "window"};
static const char *const turns[TURNS] = {"My name is Ken.", "What is my name?", "What is my code word?"};
/* Said at a mark, and taken back by going back to it. */
static const char aside[] = "My code word is spoon.";

typedef struct talk {
    hearth_session *session;
    hearth_mark mark;                /* where the turn that runs began */
    hearth_token next[CONTEXT];      /* what the turn adds */
    hearth_token answer[ANSWER + 1]; /* and what is said to it */
    size_t next_count, answer_count;
} talk;

typedef struct test {
    hearth_engine *engine;
    const hearth_tokenizer *tokenizer;
    hearth_token end; /* <|im_end|> */
    int32_t vocab;
    talk talks[TALKS];
} test;

static void check(hearth_status status, const hearth_error *err) {
    if (status == HEARTH_OK) return;
    fprintf(stderr, "FAILED: %s\n", err->text);
    exit(1);
}

static size_t encode(const test *t, const char *text, hearth_token *out, size_t capacity) {
    hearth_error err;
    size_t count;
    check(hearth_tokenizer_encode(t->tokenizer, text, strlen(text), HEARTH_ENCODE_SPECIAL, out, capacity, &count, &err),
          &err);
    return count;
}

static void open_model(test *t, const char *path) {
    static const char *const pairs[][2] = {
        {"ctx", "320"}, {"sessions", "8"}, {"threads", "2"}, {"mark-slots", "16"}, {"rows", "64"}};
    hearth_options *options;
    hearth_error err;
    hearth_model_info info;
    check(hearth_options_create(&options, &err), &err);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check(hearth_options_set(options, pairs[i][0], pairs[i][1], &err), &err);
    check(hearth_engine_open(path, options, &t->engine, &err), &err);
    hearth_options_free(&options);
    hearth_engine_info(t->engine, &info);
    t->vocab = info.vocab;
    t->tokenizer = hearth_engine_tokenizer(t->engine);
    if (encode(t, "<|im_end|>", &t->end, 1) != 1) exit(1);
    for (int i = 0; i < TALKS; i++) check(hearth_session_create(t->engine, &t->talks[i].session, &err), &err);
}

static hearth_token likeliest(const float *logits, int32_t vocab) {
    hearth_token best = 0;
    for (int32_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Prepare a turn; the answer before it is not ended yet. */
static void prepare(test *t, talk *k, const char *says) {
    char text[256];
    bool first = hearth_session_position(k->session) == 0;
    snprintf(text, sizeof text, "%s<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n",
             first ? "" : "<|im_end|>\n", says);
    k->next_count = encode(t, text, k->next, CONTEXT);
    k->answer_count = 0;
}

/* Run the turns that are prepared in `count` talks, all together, each leaving a mark where it begins. Answers end
 * before their end token, which the next turn brings. */
static void run_turn(test *t, talk *const *talks, int count) {
    hearth_item items[TALKS];
    bool running[TALKS];
    hearth_error err;
    int left = count;
    for (int i = 0; i < count; i++) {
        talk *k = talks[i];
        k->mark = (hearth_mark){.position = hearth_session_position(k->session)};
        items[i] = (hearth_item){.session = k->session,
                                 .tokens = k->next,
                                 .count = (int64_t)k->next_count,
                                 .outputs = HEARTH_OUTPUT_LAST,
                                 .marks = &k->mark,
                                 .mark_count = 1};
        running[i] = true;
    }
    check(hearth_engine_run(t->engine, items, (size_t)count, &err), &err);
    for (int at[TALKS], n = 0; left > 0; n = 0) {
        hearth_item step[TALKS];
        for (int i = 0; i < count; i++) {
            talk *k = talks[i];
            if (!running[i]) continue;
            hearth_token token = likeliest(items[i].logits, t->vocab);
            running[i] = token != t->end && k->answer_count < ANSWER;
            left -= !running[i];
            if (!running[i]) continue;
            k->answer[k->answer_count] = token;
            at[n] = i;
            step[n++] = (hearth_item){.session = k->session,
                                      .tokens = &k->answer[k->answer_count++],
                                      .count = 1,
                                      .outputs = HEARTH_OUTPUT_LAST};
        }
        if (n == 0) break;
        check(hearth_engine_run(t->engine, step, (size_t)n, &err), &err);
        for (int i = 0; i < n; i++) items[at[i]].logits = step[i].logits;
    }
}

static bool says_word(const test *t, const talk *k, const char *word) {
    char text[512], wanted[64];
    size_t size;
    hearth_error err;
    check(hearth_tokenizer_decode(t->tokenizer, k->answer, k->answer_count, 0, text, sizeof text - 1, &size, &err),
          &err);
    text[size] = 0;
    snprintf(wanted, sizeof wanted, "Your code word is %s.", word);
    if (strcmp(text, wanted) == 0) return true;
    fprintf(stderr, "FAILED: '%s' where '%s' was told\n", text, word);
    return false;
}

static void drop_marks(test *t) {
    hearth_mark_info infos[SLOTS];
    hearth_error err;
    size_t n = hearth_engine_marks(t->engine, infos, SLOTS);
    for (size_t i = 0; i < n; i++) check(hearth_mark_drop(t->engine, infos[i].id, &err), &err);
}

static void tell(test *t, talk *k, const char *word) {
    char text[64];
    snprintf(text, sizeof text, "My code word is %s.", word);
    prepare(t, k, text);
}

/* Each talk alone, from start to end. */
static bool run_alone(test *t) {
    bool good = true;
    hearth_error err;
    for (int i = 0; i < TALKS; i++) {
        talk *k = &t->talks[i];
        check(hearth_session_truncate(k->session, 0, &err), &err);
        for (int turn = -1; turn < TURNS; turn++) {
            if (turn < 0) tell(t, k, words[i]);
            else prepare(t, k, turns[turn]);
            run_turn(t, &k, 1);
            drop_marks(t);
        }
        good &= says_word(t, k, words[i]);
    }
    return good;
}

/* Half of the talks say something else, and go back to where they said it. */
static void turn_aside(test *t, int first) {
    talk *half[TALKS / 2];
    hearth_error err;
    for (int i = 0; i < TALKS / 2; i++) {
        half[i] = &t->talks[2 * i + first];
        prepare(t, half[i], aside);
    }
    run_turn(t, half, TALKS / 2);
    for (int i = 0; i < TALKS / 2; i++) check(hearth_session_restore(half[i]->session, half[i]->mark.id, &err), &err);
    drop_marks(t);
}

/* Every talk goes back to its mark, in the session that was its neighbour's. */
static void change_sessions(test *t) {
    hearth_error err;
    hearth_session *first = t->talks[0].session;
    for (int i = 0; i < TALKS; i++) {
        talk *k = &t->talks[i];
        k->session = i + 1 < TALKS ? t->talks[i + 1].session : first;
        check(hearth_session_restore(k->session, k->mark.id, &err), &err);
    }
    drop_marks(t);
}

/* All talks together. Before each turn half of them turn aside; and each turn is run twice, the second time in another
 * session, from the mark that the first left where it began. */
static bool run_together(test *t) {
    bool good = true;
    hearth_error err;
    talk *all[TALKS];
    for (int i = 0; i < TALKS; i++) {
        all[i] = &t->talks[i];
        check(hearth_session_truncate(all[i]->session, 0, &err), &err);
        tell(t, all[i], words[i]);
    }
    run_turn(t, all, TALKS);
    drop_marks(t);
    for (int turn = 0; turn < TURNS; turn++) {
        turn_aside(t, turn % 2);
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < TALKS; i++) prepare(t, all[i], turns[turn]);
            run_turn(t, all, TALKS);
            if (again == 0) change_sessions(t);
        }
        drop_marks(t);
    }
    for (int i = 0; i < TALKS; i++) good &= says_word(t, all[i], words[i]);
    return good;
}

int main(int argc, char **argv) {
    bool good = argc > 1;
    for (int i = 1; i < argc; i++) {
        test t = {0};
        open_model(&t, argv[i]);
        bool alone = run_alone(&t), together = run_together(&t);
        printf("%s: %s alone, %s together\n", argv[i], alone ? "remembered" : "FORGOTTEN",
               together ? "remembered" : "FORGOTTEN");
        good = good && alone && together;
        for (int k = 0; k < TALKS; k++) hearth_session_free(&t.talks[k].session);
        hearth_engine_close(&t.engine);
    }
    return good ? 0 : 1;
}
