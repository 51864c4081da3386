/* However many threads build a vocabulary, its tables say the same, and the first thing that is wrong is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/gguf_image.h"
#include "text/tokenizer_internal.h"

enum {
    LETTERS = 26,
    PAIRS = LETTERS * LETTERS,
    TRIPLES = PAIRS * LETTERS,
    AGAIN = 600, /* tokens at the end that have the text of others */
    TOKENS = LETTERS + PAIRS + TRIPLES + AGAIN,
    MERGES = PAIRS + TRIPLES + AGAIN
};

/* All texts of one to three letters, and some of them again. */
static int text_of(int id, char text[4]) {
    if (id >= LETTERS + PAIRS + TRIPLES) id = (id * 31) % (LETTERS + PAIRS + TRIPLES);
    const int size = id < LETTERS ? 1 : id < LETTERS + PAIRS ? 2 : 3;
    id -= size == 1 ? 0 : size == 2 ? LETTERS : LETTERS + PAIRS;
    for (int i = size - 1; i >= 0; i--, id /= LETTERS) text[i] = (char)('a' + id % LETTERS);
    text[size] = '\0';
    return size;
}

/* Merge `rank` makes the token behind the letters; the last ones are early ones again. */
static void merge_of(int rank, char merge[5]) {
    char text[4];
    if (rank >= PAIRS + TRIPLES) rank = (rank * 17) % (PAIRS + TRIPLES);
    const int size = text_of(LETTERS + rank, text);
    snprintf(merge, 5, "%.*s %s", size - 1, text, text + size - 1);
}

typedef struct wrongs {
    int merges[2], bytes[2]; /* merges that are none and tokens that are no bytes; -1: none */
} wrongs;

static const wrongs nothing_wrong = {{-1, -1}, {-1, -1}};

static void write_file(gguf_image *im, const char *model, const wrongs *w) {
    *im = (gguf_image){0};
    gguf_put_header(im, 3, 0, 5);
    gguf_put_kv_string(im, "general.architecture", "llama");
    gguf_put_kv_string(im, "tokenizer.ggml.model", model);
    gguf_put_kv_array(im, "tokenizer.ggml.tokens", 8, TOKENS);
    for (int id = 0; id < TOKENS; id++) {
        char text[4];
        text_of(id, text);
        gguf_put_string(im, NULL, text);
    }
    gguf_put_kv_array(im, "tokenizer.ggml.token_type", 5, TOKENS);
    for (int id = 0; id < TOKENS; id++) gguf_put_u32(im, NULL, id == w->bytes[0] || id == w->bytes[1] ? 6 : 1);
    if (strcmp(model, "llama") == 0) {
        gguf_put_kv_array(im, "tokenizer.ggml.scores", 6, TOKENS);
        for (int id = 0; id < TOKENS; id++) {
            const float score = -(float)id;
            gguf_put(im, &score, sizeof score);
        }
    } else {
        gguf_put_kv_array(im, "tokenizer.ggml.merges", 8, MERGES);
        for (int rank = 0; rank < MERGES; rank++) {
            char merge[5];
            merge_of(rank, merge);
            gguf_put_string(im, NULL, rank == w->merges[0] || rank == w->merges[1] ? "a ?" : merge);
        }
    }
    gguf_put_padding(im, 32);
}

typedef struct opened {
    gguf_image image;
    hth_gguf *g;
    hearth_tokenizer *t;
    hearth_error err;
} opened;

static hearth_status open_file(opened *o, const char *model, const wrongs *w, int threads) {
    const hearth_tokenizer_options options = {.nfc = -1, .threads = threads};
    *o = (opened){0};
    write_file(&o->image, model, w);
    if (hth_gguf_open_memory(o->image.data, o->image.size, &o->g, &o->err) != HEARTH_OK) fail_msg("%s", o->err.text);
    return hth_tokenizer_from_gguf(o->g, &options, &o->t, &o->err);
}

static void close_file(opened *o) {
    hearth_tokenizer_close(&o->t);
    hth_gguf_close(&o->g);
    gguf_image_free(&o->image);
}

/* Each text finds the last token that has it, and each two tokens their earliest merge. */
static void check_tables(const hth_vocab *v) {
    for (int id = TOKENS - 1; id >= 0; id--) {
        char text[4];
        const int size = text_of(id, text);
        assert_int_equal(v->offsets[id + 1] - v->offsets[id], size);
        assert_memory_equal(v->bytes + v->offsets[id], text, size);
        const hearth_token found = hth_vocab_find(v, text, (size_t)size);
        char same[4];
        text_of(found, same);
        assert_string_equal(same, text);
        assert_true(found >= id);
    }
    assert_int_equal(v->longest, 3);
    for (int rank = 0; rank < MERGES && v->pairs; rank++) {
        char merge[5];
        merge_of(rank, merge);
        const size_t left = strcspn(merge, " "), right = strlen(merge) - left - 1;
        const hth_pair_slot *slot =
            hth_vocab_pair(v, hth_vocab_find(v, merge, left), hth_vocab_find(v, merge + left + 1, right));
        assert_non_null(slot);
        assert_true(rank < PAIRS + TRIPLES ? slot->rank == (uint32_t)rank : slot->rank < (uint32_t)rank);
        memmove(merge + left, merge + left + 1, right + 1);
        assert_int_equal(slot->merged, hth_vocab_find(v, merge, left + right));
    }
}

static void tables_are_those_of_one_thread(void **state) {
    (void)state;
    static const char *const models[] = {"gpt2", "llama"};
    for (int m = 0; m < 2; m++)
        for (int threads = 1; threads <= 5; threads++) {
            opened o;
            if (open_file(&o, models[m], &nothing_wrong, threads) != HEARTH_OK) fail_msg("%s", o.err.text);
            check_tables(&o.t->vocab);
            close_file(&o);
        }
}

static void the_first_thing_that_is_wrong_is_named(void **state) {
    (void)state;
    static const struct {
        wrongs wrongs;
        const char *says;
    } cases[] = {{{{MERGES - 5, 9000}, {-1, -1}}, "merge 9000 "}, {{{-1, -1}, {TOKENS - 1, 50}}, "token 50 "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 4; threads++) {
            opened o;
            assert_int_equal(open_file(&o, "gpt2", &cases[i].wrongs, threads), HEARTH_BAD_FILE);
            if (!strstr(o.err.text, cases[i].says)) fail_msg("%d threads: %s", threads, o.err.text);
            close_file(&o);
        }
}

static void a_count_of_threads_below_0_is_refused(void **state) {
    (void)state;
    opened o;
    assert_int_equal(open_file(&o, "gpt2", &nothing_wrong, -1), HEARTH_BAD_OPTION);
    assert_non_null(strstr(o.err.text, "threads"));
    close_file(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_those_of_one_thread),
        cmocka_unit_test(the_first_thing_that_is_wrong_is_named),
        cmocka_unit_test(a_count_of_threads_below_0_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
