/* Where in an answer a constraint begins: a model that wants to write a given row of tokens stands in for the engine.
 */
#include <string.h>

#include "cli/generate.h"
#include "hearth/engine.h"
#include "unit/constraint_help.h"
#include "unit/sampler_help.h"

/* From 3 on; the constraint is {a}. */
static const char *const tokens[] = {"{",        "a",           "}",           "b",         "<think>",
                                     "</think>", "<|channel|>", "<|message|>", "<|start|>", "assistant",
                                     "analysis", "final",       "<|open|>",    "response",  "<|sep|>"};
enum { TOKENS = sizeof tokens / sizeof *tokens, VOCAB = TOKENS + 4, CONTEXT = 64, END = CONSTRAINT_END };
enum {
    OBJECT = 3,
    A,
    OBJECT_END,
    B,
    THINK,
    THINK_END,
    CHANNEL,
    MESSAGE,
    START,
    ASSISTANT,
    ANALYSIS,
    FINAL,
    OPEN,
    RESPONSE,
    SEP
};

/* ---- the engine ---- */

static constraint_vocab vocab;
static const hearth_token *wanted; /* ended by END, and then END for ever */
static int64_t position;
static float logits[VOCAB];

static const float *next_logits(void) {
    memset(logits, 0, sizeof logits);
    logits[*wanted] = 10;
    if (*wanted != END) wanted++;
    position++;
    return logits;
}

hearth_status __wrap_hearth_session_sync(hearth_session *s, const hearth_token *ids, int64_t count, hearth_mark *marks,
                                         size_t n_marks, const float **out, hearth_sync_report *report,
                                         hearth_error *err);
hearth_status __wrap_hearth_session_sync(hearth_session *s, const hearth_token *ids, int64_t count, hearth_mark *marks,
                                         size_t n_marks, const float **out, hearth_sync_report *report,
                                         hearth_error *err) {
    (void)s, (void)ids, (void)count, (void)marks, (void)n_marks, (void)report, (void)err;
    *out = next_logits();
    return HEARTH_OK;
}

hearth_status __wrap_hearth_engine_run(hearth_engine *e, hearth_item *items, size_t count, hearth_error *err);
hearth_status __wrap_hearth_engine_run(hearth_engine *e, hearth_item *items, size_t count, hearth_error *err) {
    (void)e, (void)count, (void)err;
    items->logits = next_logits();
    return HEARTH_OK;
}

int64_t __wrap_hearth_session_position(const hearth_session *s);
int64_t __wrap_hearth_session_position(const hearth_session *s) {
    (void)s;
    return position;
}

const hearth_tokenizer *__wrap_hearth_engine_tokenizer(const hearth_engine *e);
const hearth_tokenizer *__wrap_hearth_engine_tokenizer(const hearth_engine *e) {
    (void)e;
    return vocab.tokenizer;
}

void __wrap_hearth_engine_info(const hearth_engine *e, hearth_model_info *out);
void __wrap_hearth_engine_info(const hearth_engine *e, hearth_model_info *out) {
    (void)e;
    *out = (hearth_model_info){.context = CONTEXT};
}

void __wrap_hearth_engine_set_progress(hearth_engine *e, hearth_progress_fn *progress, void *context);
void __wrap_hearth_engine_set_progress(hearth_engine *e, hearth_progress_fn *progress, void *context) {
    (void)e, (void)progress, (void)context;
}

/* ---- an answer ---- */

typedef struct answer {
    hearth_output_parser *parser;
    char text[512];
    size_t size;
} answer;

static bool emit(void *context, const char *text, size_t size) {
    answer *a = context;
    assert_true(a->size + size < sizeof a->text);
    memcpy(a->text + a->size, text, size);
    a->size += size;
    return hearth_output_parser_feed(a->parser, text, size, NULL, NULL, NULL) == HEARTH_OK;
}

static hearth_output_place place(void *context) {
    return hearth_output_parser_place(((answer *)context)->parser);
}

static bool marks(void *context, hearth_token token) {
    if (token < CONSTRAINT_FIRST) return false;
    const char *text = tokens[token - CONSTRAINT_FIRST];
    return hearth_output_parser_marks(((answer *)context)->parser, text, strlen(text)) > 0;
}

typedef struct sample {
    hearth_output_format format;
    bool opened; /* the prompt opens reasoning */
    hearth_token wanted[16];
    const char *text;
    hth_stop stop;
    int64_t most;
} sample;

static void check(const sample *s, bool bounded, const char *stop_string) {
    static const hth_bounds bounds = {place, marks};
    const hearth_output_options options = {.starts_in_reasoning = s->opened};
    hearth_token prompt = 3, written[CONTEXT + 1];
    answer a = {.size = 0};
    hth_generation g = {.prompt = {&prompt, 1},
                        .most = s->most ? s->most : CONTEXT,
                        .emit = emit,
                        .emit_context = &a,
                        .tokens = written,
                        .bounds = bounded ? &bounds : NULL};
    hearth_constraint *c = constraint_of(vocab.index, "root ::= \"{a}\"");
    hearth_error err = {HEARTH_OK, ""};
    assert_int_equal(hearth_matcher_create(c, &g.matcher, NULL), HEARTH_OK);
    g.sampler = sampler_of(VOCAB, (const char *const[]){"temp=0", NULL}, NULL, 0);
    assert_int_equal(hearth_sampler_set_matcher(g.sampler, g.matcher, NULL), HEARTH_OK);
    assert_int_equal(hearth_detokenizer_create(vocab.tokenizer, 1, &g.detokenizer, NULL), HEARTH_OK);
    assert_int_equal(hearth_output_parser_create(s->format, &options, &a.parser, NULL), HEARTH_OK);
    size_t stop_size = stop_string ? strlen(stop_string) : 0;
    if (stop_string)
        assert_int_equal(hearth_stop_matcher_create(&stop_string, &stop_size, 1, &g.stops, NULL), HEARTH_OK);
    wanted = s->wanted;
    position = 0;
    if (hth_generate(&g, &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (a.size != strlen(s->text) || memcmp(a.text, s->text, a.size) != 0 || g.stop != s->stop)
        fail_msg("\"%.*s\", %s, not \"%s\", %s", (int)a.size, a.text, hth_stop_name(g.stop), s->text,
                 hth_stop_name(s->stop));
    hearth_stop_matcher_free(&g.stops);
    hearth_output_parser_free(&a.parser);
    hearth_detokenizer_free(&g.detokenizer);
    hearth_sampler_free(&g.sampler);
    hearth_matcher_free(&g.matcher);
    hearth_constraint_free(&c);
}

static void test_where_a_constraint_begins(void **state) {
    (void)state;
    static const sample samples[] = {
        /* behind reasoning that the model opens, or the prompt */
        {HEARTH_OUTPUT_HERMES, false, {THINK, B, A, THINK_END, B, B, END}, "<think>ba</think>{a}", HTH_STOP_END, 0},
        {HEARTH_OUTPUT_HERMES, true, {B, A, THINK_END, B, B, END}, "ba</think>{a}", HTH_STOP_END, 0},
        /* at once, when there is none; then it cannot be ended before it is complete */
        {HEARTH_OUTPUT_HERMES, false, {B, B, END}, "{a}", HTH_STOP_END, 0},
        {HEARTH_OUTPUT_HERMES, false, {END}, "{a}", HTH_STOP_END, 0},
        {HEARTH_OUTPUT_HERMES, false, {OBJECT, THINK, B, END}, "{a}", HTH_STOP_END, 0},
        {HEARTH_OUTPUT_FUNCTIONARY, false, {THINK, B, END}, "{a}", HTH_STOP_END, 0},
        /* an answer that ends before it begins is none */
        {HEARTH_OUTPUT_HERMES, false, {THINK, B, END}, "<think>b", HTH_STOP_CONSTRAINT, 0},
        {HEARTH_OUTPUT_HERMES, true, {B, B, B, B}, "bb", HTH_STOP_LENGTH, 2},
        /* headers, and markers in front of the content */
        {HEARTH_OUTPUT_HARMONY,
         false,
         {CHANNEL, ANALYSIS, MESSAGE, B, START, ASSISTANT, CHANNEL, FINAL, MESSAGE, B, END},
         "<|channel|>analysis<|message|>b<|start|>assistant<|channel|>final<|message|>{a}",
         HTH_STOP_END,
         0},
        {HEARTH_OUTPUT_HARMONY, false, {B, END}, "{a}", HTH_STOP_END, 0},
        {HEARTH_OUTPUT_KIMI_K3, false, {OPEN, RESPONSE, SEP, B, END}, "<|open|>response<|sep|>{a}", HTH_STOP_END, 0},
        /* what began like a marker and is content has broken the constraint */
        {HEARTH_OUTPUT_KIMI_K3, false, {OPEN, B, B, END}, "<|open|>b", HTH_STOP_CONSTRAINT, 0},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) check(&samples[i], true, NULL);
}

static void test_without_bounds(void **state) {
    (void)state;
    check(&(sample){HEARTH_OUTPUT_HERMES, false, {THINK, B, END}, "{a}", HTH_STOP_END, 0}, false, NULL);
}

/* Stop strings end what the constraint is for, and no reasoning. */
static void test_stop_strings(void **state) {
    (void)state;
    const sample s = {HEARTH_OUTPUT_HERMES, false,           {THINK, B, A, THINK_END, B, END},
                      "<think>ba</think>{", HTH_STOP_STRING, 0};
    check(&s, true, "a");
}

static int open_vocab(void **state) {
    (void)state;
    constraint_vocab_open(&vocab, tokens, TOKENS);
    return 0;
}

static int close_vocab(void **state) {
    (void)state;
    constraint_vocab_close(&vocab);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_a_constraint_begins),
        cmocka_unit_test(test_without_bounds),
        cmocka_unit_test(test_stop_strings),
    };
    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}
