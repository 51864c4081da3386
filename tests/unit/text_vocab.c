/* Vocabularies as files give them: roles of tokens, and files that are wrong. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/alloc_guard.h"
#include "support/gguf_image.h"
#include "text/tokenizer_internal.h"
#include "unit/text_help.h"

/* ---- files ---- */

/* A vocabulary to be written. Lists of strings end with NULL, other lists with END. */
enum { END = -99 };

typedef struct vocab_file {
    const char *model, *pre;
    const char *const *tokens;
    const int32_t *types;
    const char *const *merges;
    const float *scores;
    size_t score_count;
    const char *number_key; /* one more number, as u32 */
    uint32_t number;
    bool add_bos; /* written when it is set */
} vocab_file;

static size_t length_of(const char *const *strings) {
    size_t n = 0;
    while (strings[n] != NULL) n++;
    return n;
}

static void put_strings(gguf_image *im, const char *key, const char *const *strings) {
    gguf_put_kv_array(im, key, 8, length_of(strings));
    for (size_t i = 0; strings[i] != NULL; i++) gguf_put_string(im, NULL, strings[i]);
}

static void write_file(gguf_image *im, const vocab_file *f) {
    *im = (gguf_image){0};
    gguf_put_header(im, 3, 0,
                    1 + (f->model != NULL) + (f->pre != NULL) + (f->tokens != NULL) + (f->types != NULL) +
                        (f->merges != NULL) + (f->scores != NULL) + (f->number_key != NULL) + f->add_bos);
    gguf_put_kv_string(im, "general.architecture", "llama");
    if (f->model != NULL) gguf_put_kv_string(im, "tokenizer.ggml.model", f->model);
    if (f->pre != NULL) gguf_put_kv_string(im, "tokenizer.ggml.pre", f->pre);
    if (f->tokens != NULL) put_strings(im, "tokenizer.ggml.tokens", f->tokens);
    if (f->types != NULL) {
        size_t count = 0;
        while (f->types[count] != END) count++;
        gguf_put_kv_array(im, "tokenizer.ggml.token_type", 5, count);
        for (size_t i = 0; i < count; i++) gguf_put_u32(im, NULL, (uint32_t)f->types[i]);
    }
    if (f->merges != NULL) put_strings(im, "tokenizer.ggml.merges", f->merges);
    if (f->scores != NULL) {
        gguf_put_kv_array(im, "tokenizer.ggml.scores", 6, f->score_count);
        gguf_put(im, f->scores, f->score_count * sizeof *f->scores);
    }
    if (f->number_key != NULL) gguf_put_kv_u32(im, f->number_key, f->number);
    if (f->add_bos) {
        gguf_put_key(im, "tokenizer.ggml.add_bos_token", 7);
        gguf_put(im, "\1", 1);
    }
    gguf_put_padding(im, 32);
}

typedef struct opened {
    gguf_image image;
    hth_gguf *g;
    hearth_tokenizer *t;
    hearth_error err;
    hearth_status status;
} opened;

static void open_file(opened *o, const vocab_file *f, const hearth_tokenizer_options *options) {
    *o = (opened){0};
    write_file(&o->image, f);
    if (hth_gguf_open_memory(o->image.data, o->image.size, &o->g, &o->err) != HEARTH_OK) fail_msg("%s", o->err.text);
    o->status = hth_tokenizer_from_gguf(o->g, options, &o->t, &o->err);
    assert_true((o->status == HEARTH_OK) == (o->t != NULL));
}

static void close_file(opened *o) {
    hearth_tokenizer_close(&o->t);
    hth_gguf_close(&o->g);
    gguf_image_free(&o->image);
}

static void refused(const vocab_file *f, hearth_status status, const char *part) {
    opened o;
    open_file(&o, f, NULL);
    if (o.status != status || strstr(o.err.text, part) == NULL)
        fail_msg("%s instead of %s naming %s: %s", hearth_status_name(o.status), hearth_status_name(status), part,
                 o.err.text);
    close_file(&o);
}

static const char *const few_tokens[] = {"a", "b", "c", "ab", "abc", "<end>", NULL};
static const int32_t few_types[] = {1, 1, 1, 1, 1, 3, END};
static const char *const few_merges[] = {"a b", "ab c", NULL};
static const vocab_file few = {
    .model = "gpt2", .pre = "gpt-2", .tokens = few_tokens, .types = few_types, .merges = few_merges};

/* ---- what is wrong is named ---- */

static void wrong_files_are_refused_by_name(void **state) {
    (void)state;
    static const char *const no_tokens[] = {NULL};
    static const int32_t short_types[] = {1, 1, END};
    static const char *const one_part[] = {"ab", NULL}, *const unknown_part[] = {"a x", NULL},
                             *const unknown_whole[] = {"b c", NULL};
    static const char *const lead_space[] = {" b", NULL}, *const empty_merge[] = {"", NULL};
    static const int32_t bytes[] = {6, 1, 1, 1, 1, 3, END};
    static const float scores[] = {1, 2, 3, 4, 5, 6}, wrong_scores[] = {1, 2, 0.0f / 0.0f, 4, 5, 6};
    vocab_file f;
    opened o;
    open_file(&o, &few, NULL);
    assert_int_equal(o.status, HEARTH_OK);
    close_file(&o);
#define REFUSED(status, part, ...)                                                                                     \
    f = few;                                                                                                           \
    __VA_ARGS__;                                                                                                       \
    refused(&f, status, part)
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.model", f.model = NULL);
    REFUSED(HEARTH_UNSUPPORTED, "\"bert\"", f.model = "bert");
    REFUSED(HEARTH_UNSUPPORTED, "\"t5\"", f.model = "t5");
    REFUSED(HEARTH_UNSUPPORTED, "\"rwkv\"", f.model = "rwkv");
    REFUSED(HEARTH_UNSUPPORTED, "\"plamo2\"", f.model = "plamo2");
    REFUSED(HEARTH_UNSUPPORTED, "\"no_vocab\"", f.model = "no_vocab");
    REFUSED(HEARTH_UNSUPPORTED, "\"\"", f.model = "");
    REFUSED(HEARTH_UNSUPPORTED, "\"gpt-3\"", f.pre = "gpt-3");
    REFUSED(HEARTH_UNSUPPORTED, "option pre", f.pre = "gpt-3");
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.tokens", f.tokens = NULL);
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.tokens", f.tokens = no_tokens);
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.token_type", f.types = short_types);
    REFUSED(HEARTH_BAD_FILE, "token 0", f.types = bytes);
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.merges", f.merges = NULL);
    REFUSED(HEARTH_BAD_FILE, "merge 0", f.merges = one_part);
    REFUSED(HEARTH_BAD_FILE, "merge 0", f.merges = unknown_part);
    REFUSED(HEARTH_BAD_FILE, "merge 0", f.merges = unknown_whole);
    REFUSED(HEARTH_BAD_FILE, "merge 0", f.merges = lead_space);
    REFUSED(HEARTH_BAD_FILE, "merge 0", f.merges = empty_merge);
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.scores", f.model = "llama"; f.scores = scores; f.score_count = 5);
    REFUSED(HEARTH_BAD_FILE, "score 2", f.model = "llama"; f.scores = wrong_scores; f.score_count = 6);
    REFUSED(HEARTH_BAD_FILE, "tokenizer.ggml.pre", f.pre = NULL; f.number_key = "tokenizer.ggml.pre");
#undef REFUSED
}

static void forced_pre_tokenizer(void **state) {
    (void)state;
    vocab_file f = few;
    f.pre = "not-known";
    opened o;
    hearth_tokenizer_options options = {.pre = "smollm", .nfc = -1};
    open_file(&o, &f, &options);
    assert_int_equal(o.status, HEARTH_OK);
    assert_string_equal(hearth_tokenizer_pre(o.t), "smollm");
    close_file(&o);
    options.pre = "nor-this";
    open_file(&o, &f, &options);
    assert_int_equal(o.status, HEARTH_BAD_OPTION);
    assert_non_null(strstr(o.err.text, "nor-this"));
    close_file(&o);
    options.pre = "smollm";
    f.model = "llama";
    open_file(&o, &f, &options);
    assert_int_equal(o.status, HEARTH_BAD_OPTION);
    close_file(&o);
    options = (hearth_tokenizer_options){.nfc = 2};
    open_file(&o, &few, &options);
    assert_int_equal(o.status, HEARTH_BAD_OPTION);
    close_file(&o);
    f = few;
    f.pre = NULL;
    open_file(&o, &f, NULL);
    assert_string_equal(hearth_tokenizer_pre(o.t), "default");
    close_file(&o);
}

/* ---- roles ---- */

static bool finds_special(const hearth_tokenizer *t, const char *text, bool control, hearth_token id) {
    size_t count;
    hearth_token *ids = text_encode(t, text, strlen(text), control ? HEARTH_ENCODE_SPECIAL : 0, &count);
    bool found = count == 1 && ids[0] == id;
    free(ids);
    return found;
}

static void tokens_known_by_their_text(void **state) {
    (void)state;
    static const char *const tokens[] = {
        "a", "<|im_end|>", "<|endoftext|>", "<|file_sep|>", "<think>", "<|fim_prefix|>", NULL};
    static const int32_t types[] = {1, 1, 4, 1, 4, 4, END};
    static const char *const merges[] = {NULL};
    const vocab_file f = {.model = "gpt2", .pre = "qwen2", .tokens = tokens, .types = types, .merges = merges};
    opened o;
    open_file(&o, &f, NULL);
    assert_int_equal(o.status, HEARTH_OK);
    static const int ends[] = {0, 1, 1, 1, 0, 0};
    for (int i = 0; i < 6; i++) assert_int_equal(hearth_tokenizer_ends_generation(o.t, i), ends[i]);
    assert_true(finds_special(o.t, "<|im_end|>", true, 1));
    assert_false(finds_special(o.t, "<|im_end|>", false, 1));
    assert_false(finds_special(o.t, "<|fim_prefix|>", false, 5));
    assert_true(finds_special(o.t, "<think>", false, 4)); /* user-defined: always found */
    assert_int_equal(hearth_tokenizer_bos(o.t), -1);      /* no token of the vocabulary is taken for BOS */
    assert_int_equal(hearth_tokenizer_eos(o.t), -1);
    close_file(&o);
}

static void markup_that_looks_like_an_end_stays_text(void **state) {
    (void)state;
    static const char *const tokens[] = {"<", "/", "s", ">", "</", "</s", "</s>", NULL};
    static const char *const merges[] = {"< /", "</ s", "</s >", NULL};
    const vocab_file f = {.model = "gpt2", .pre = "bloom", .tokens = tokens, .merges = merges};
    opened o;
    open_file(&o, &f, NULL);
    assert_int_equal(o.status, HEARTH_OK);
    assert_true(finds_special(o.t, "</s>", false, 6));
    assert_true(finds_special(o.t, "</s>", true, 6));
    close_file(&o);
}

static void messages_of_gpt_oss(void **state) {
    (void)state;
    static const char *const tokens[] = {"<|end|>", "<|call|>", "<|return|>", "<|channel|>", "<|start|>", "x", NULL};
    static const int32_t types[] = {3, 3, 3, 3, 3, 1, END};
    static const char *const merges[] = {NULL};
    const vocab_file f = {.model = "gpt2", .pre = "gpt-4o", .tokens = tokens, .types = types, .merges = merges};
    opened o;
    open_file(&o, &f, NULL);
    static const int ends[] = {0, 1, 1, 0, 0, 0};
    for (int i = 0; i < 6; i++) assert_int_equal(hearth_tokenizer_ends_generation(o.t, i), ends[i]);
    const char *data;
    size_t size;
    assert_int_equal(hearth_tokenizer_piece(o.t, 3, 0, &data, &size, NULL), HEARTH_OK);
    assert_int_equal(size, 11); /* shown */
    assert_int_equal(hearth_tokenizer_piece(o.t, 1, 0, &data, &size, NULL), HEARTH_OK);
    assert_int_equal(size, 0);
    close_file(&o);
}

static void ids_beyond_the_vocabulary_are_no_ids(void **state) {
    (void)state;
    vocab_file f = few;
    f.number_key = "tokenizer.ggml.eos_token_id";
    f.number = 6;
    opened o;
    open_file(&o, &f, NULL);
    assert_int_equal(o.status, HEARTH_OK);
    assert_int_equal(hearth_tokenizer_eos(o.t), -1);
    close_file(&o);
    f.number = 5;
    open_file(&o, &f, NULL);
    assert_int_equal(hearth_tokenizer_eos(o.t), 5);
    assert_int_equal(hearth_tokenizer_ends_generation(o.t, 5), 1);
    close_file(&o);
    f.number_key = "tokenizer.ggml.bos_token_id";
    f.add_bos = true;
    open_file(&o, &f, NULL);
    assert_int_equal(hearth_tokenizer_adds_bos(o.t), 1);
    size_t count;
    hearth_token *ids = text_encode(o.t, "abc", 3, HEARTH_ENCODE_ADD, &count);
    assert_int_equal(count, 2);
    assert_int_equal(ids[0], 5);
    assert_int_equal(ids[1], 4);
    free(ids);
    close_file(&o);
    f.number = 77; /* asked for, and not there */
    open_file(&o, &f, NULL);
    assert_int_equal(hearth_tokenizer_adds_bos(o.t), 0);
    close_file(&o);
}

/* The longest special token at the first place where one begins; control tokens do not hide shorter user-defined ones.
 */
static void overlapping_special_tokens(void **state) {
    (void)state;
    static const char *const tokens[] = {"<a>", "<a><b>", "<a><b><c>", "<b>", "x", "<a", NULL};
    static const int32_t types[] = {4, 3, 4, 4, 1, 3, END};
    static const char *const merges[] = {NULL};
    const vocab_file f = {.model = "gpt2", .pre = "gpt-2", .tokens = tokens, .types = types, .merges = merges};
    static const struct {
        const char *text;
        bool control;
        const char *ids;
    } cases[] = {{"<a><b><c>", true, "2"}, {"<a><b>x", true, "1 4"},   {"<a><b>x", false, "0 3 4"},
                 {"x<ax", true, "4 5 4"},  {"<a><a><b>", true, "0 1"}, {"<a><b><a>", false, "0 3 0"}};
    opened o;
    open_file(&o, &f, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t wanted[8];
        size_t count, wanted_count = text_numbers(cases[i].ids, wanted, 8);
        hearth_token *ids = text_encode(o.t, cases[i].text, strlen(cases[i].text),
                                        cases[i].control ? HEARTH_ENCODE_SPECIAL : 0, &count);
        if (count != wanted_count || memcmp(ids, wanted, count * sizeof *ids) != 0) fail_msg("%s", cases[i].text);
        free(ids);
    }
    close_file(&o);
}

/* ---- memory ---- */

/* Every allocation of opening, encoding and streaming fails once; each failure is a status, and nothing leaks. */
static void use_everything(hth_gguf *g, hearth_status *status) {
    static const char text[] = "ab e\xCC\x81 abcabc<end>";
    static const char *const stops[] = {"x"};
    static const size_t stop_sizes[] = {1};
    hearth_tokenizer_options options = {.pre = "gpt-2", .nfc = 1};
    hearth_tokenizer *t = NULL;
    hearth_detokenizer *d = NULL;
    hearth_stop_matcher *m = NULL;
    hearth_token ids[64];
    const char *data;
    char long_text[5000];
    size_t size, count;
    int stopped;
    memset(long_text, 'a', sizeof long_text);
    memcpy(long_text, text, sizeof text);
    *status = hth_tokenizer_from_gguf(g, &options, &t, NULL);
    if (*status == HEARTH_OK) {
        *status = hearth_tokenizer_encode(t, long_text, sizeof long_text, HEARTH_ENCODE_SPECIAL, ids, 64, &count, NULL);
        if (*status == HEARTH_TOO_LONG) *status = HEARTH_OK;
    }
    if (*status == HEARTH_OK) *status = hearth_detokenizer_create(t, 0, &d, NULL);
    if (*status == HEARTH_OK) *status = hearth_detokenizer_feed(d, 0, &data, &size, NULL);
    if (*status == HEARTH_OK) *status = hearth_stop_matcher_create(stops, stop_sizes, 1, &m, NULL);
    if (*status == HEARTH_OK) *status = hearth_stop_matcher_feed(m, text, sizeof text, &data, &size, &stopped, NULL);
    hearth_stop_matcher_free(&m);
    hearth_detokenizer_free(&d);
    hearth_tokenizer_close(&t);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    opened o;
    open_file(&o, &few, NULL);
    hearth_tokenizer_close(&o.t);
    hearth_status status;
    use_everything(o.g, &status);
    assert_int_equal(status, HEARTH_OK);
    alloc_guard_reset();
    size_t live = alloc_guard_live();
    use_everything(o.g, &status);
    long calls = alloc_guard_calls();
    assert_true(calls > 15);
    long unnoticed = 0;
    for (long n = 1; n <= calls; n++) {
        alloc_guard_reset();
        alloc_guard_fail_at(n);
        use_everything(o.g, &status);
        if (status == HEARTH_OK) unnoticed++;
        else assert_int_equal(status, HEARTH_NO_MEMORY);
        assert_int_equal(alloc_guard_live(), live);
    }
    assert_true(unnoticed <= 1); /* the cache of pieces is done without */
    close_file(&o);
}

/* ---- merges ---- */

enum { RUNS = 40 }; /* more than are read together */

/* "a", a space, "b", runs of two and more "a"s, each made of the one before; then " a", `copies` times. The last merge
 * is the one given. */
typedef struct runs_file {
    char text[RUNS][RUNS + 2], merge[RUNS][RUNS + 3];
    const char *tokens[RUNS + 6], *merges[RUNS + 2];
} runs_file;

static void open_runs(opened *o, runs_file *r, int copies, const char *last_merge) {
    static const char *const first[] = {"a", "\xC4\xA0", "b"};
    memcpy(r->tokens, first, sizeof first);
    for (int i = 0; i < RUNS; i++) {
        memset(r->text[i], 'a', (size_t)i + 2);
        r->text[i][i + 2] = '\0';
        snprintf(r->merge[i], sizeof r->merge[i], "%.*s a", i + 1, r->text[i]);
        r->tokens[3 + i] = r->text[i];
        r->merges[i] = r->merge[i];
    }
    for (int i = 0; i < copies; i++)
        r->tokens[3 + RUNS + i] = "\xC4\xA0"
                                  "a";
    r->tokens[3 + RUNS + copies] = r->merges[RUNS + 1] = NULL;
    r->merges[RUNS] = last_merge;
    const vocab_file f = {.model = "gpt2", .pre = "gpt-2", .tokens = r->tokens, .merges = r->merges};
    open_file(o, &f, NULL);
}

/* The token that a text becomes; -1 when it is none or several. */
static hearth_token one_token(const opened *o, const char *text) {
    hearth_token ids[8];
    size_t count;
    hearth_error err;
    if (hearth_tokenizer_encode(o->t, text, strlen(text), 0, ids, 8, &count, &err) != HEARTH_OK) return -1;
    return count == 1 ? ids[0] : -1;
}

/* A merge makes the token after that of the merge before it, or another one that has the text. */
static void merges_make_the_token_that_has_their_text(void **state) {
    (void)state;
    runs_file r;
    opened o;
    open_runs(&o, &r, 1, "\xC4\xA0 a");
    assert_int_equal(o.status, HEARTH_OK);
    assert_int_equal(one_token(&o, "aaa"), 4);
    assert_int_equal(one_token(&o, "aa"), 3);
    assert_int_equal(one_token(&o, " a"), 3 + RUNS);
    assert_int_equal(one_token(&o, " b"), -1);
    close_file(&o);
    open_runs(&o, &r, 2, "\xC4\xA0 a"); /* of two with one text, the last */
    assert_int_equal(o.status, HEARTH_OK);
    assert_int_equal(one_token(&o, " a"), 4 + RUNS);
    close_file(&o);
    open_runs(&o, &r, 1, "a b");
    assert_int_equal(o.status, HEARTH_BAD_FILE);
    assert_non_null(strstr(o.err.text, "merge 40"));
    close_file(&o);
}

/* "\xC4 \xA0a" has the bytes of the token " a", but its parts are no characters. */
static void merges_that_cut_a_character_are_refused(void **state) {
    (void)state;
    runs_file r;
    opened o;
    open_runs(&o, &r, 1,
              "\xC4 \xA0"
              "a");
    assert_int_equal(o.status, HEARTH_BAD_FILE);
    assert_non_null(strstr(o.err.text, "merge 40"));
    close_file(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_files_are_refused_by_name),
        cmocka_unit_test(forced_pre_tokenizer),
        cmocka_unit_test(tokens_known_by_their_text),
        cmocka_unit_test(markup_that_looks_like_an_end_stays_text),
        cmocka_unit_test(messages_of_gpt_oss),
        cmocka_unit_test(ids_beyond_the_vocabulary_are_no_ids),
        cmocka_unit_test(overlapping_special_tokens),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(merges_make_the_token_that_has_their_text),
        cmocka_unit_test(merges_that_cut_a_character_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
