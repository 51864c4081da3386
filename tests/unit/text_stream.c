/* Text as it streams: whole characters only, and stop strings wherever tokens are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "unit/text_help.h"

enum { MAX_OUT = 1 << 16 };

typedef struct buffer {
    char data[MAX_OUT];
    size_t size;
} buffer;

static void append(buffer *b, const char *data, size_t size) {
    assert_true(b->size + size <= sizeof b->data);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void assert_buffer(const buffer *b, const char *wanted, size_t size) {
    if (b->size != size || memcmp(b->data, wanted, size) != 0)
        fail_msg("\"%.*s\" is not \"%.*s\"", (int)b->size, b->data, (int)size, wanted);
}

/* ---- characters ---- */

/* What a whole text becomes: each longest beginning of a character that is not completed is one U+FFFD. */
static void replace_malformed(const char *text, size_t size, buffer *out) {
    for (size_t at = 0; at < size;) {
        uint32_t c;
        size_t length = (size_t)hth_utf8_decode(text + at, size - at, &c);
        if (length > 0) {
            append(out, text + at, length);
            at += length;
            continue;
        }
        append(out, "\xEF\xBF\xBD", 3);
        /* As many bytes as some continuation would make well-formed. */
        size_t most = 1;
        for (size_t n = 2; n <= 3 && at + n <= size; n++) {
            static const char *const tails[] = {"\x80", "\xBF", "\x80\x80", "\xBF\xBF"};
            bool possible = false;
            for (size_t t = 0; t < 4 && !possible; t++) {
                char trial[8];
                memcpy(trial, text + at, n);
                memcpy(trial + n, tails[t], strlen(tails[t]));
                possible = (size_t)hth_utf8_decode(trial, n + strlen(tails[t]), &c) == n + strlen(tails[t]);
            }
            if (possible) most = n;
        }
        at += most;
    }
}

static void feed_ids(hearth_detokenizer *d, const hearth_token *ids, size_t count, buffer *out) {
    const char *data;
    size_t size;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(hearth_detokenizer_feed(d, ids[i], &data, &size, NULL), HEARTH_OK);
        assert_true(hth_utf8_is_valid(data, size));
        append(out, data, size);
    }
    hearth_detokenizer_finish(d, &data, &size);
    append(out, data, size);
}

static hearth_token byte_token(const hearth_tokenizer *t, unsigned char byte) {
    size_t count;
    hearth_token *ids = text_encode(t, (const char *)&byte, 1, 0, &count), id = ids[0];
    assert_int_equal(count, 1);
    free(ids);
    return id;
}

static void characters_cut_into_bytes_come_out_whole(void **state) {
    (void)state;
    static const char text[] = "a\xF0\x9F\x91\x8D\xE4\xB8\xAD\xC3\xA9z";
    static const size_t sizes[] = {1, 0, 0, 0, 4, 0, 0, 3, 0, 2, 1};
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    hearth_detokenizer *d;
    assert_int_equal(hearth_detokenizer_create(t, 0, &d, NULL), HEARTH_OK);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        const char *data;
        size_t size;
        assert_int_equal(hearth_detokenizer_feed(d, byte_token(t, (unsigned char)text[i]), &data, &size, NULL),
                         HEARTH_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(data, text + i + 1 - size, size);
    }
    hearth_detokenizer_free(&d);
    hearth_tokenizer_close(&t);
}

/* Bytes, one a token, in every order of a few that matter. */
static void bytes_that_are_no_text_become_replacements(void **state) {
    (void)state;
    static const unsigned char bytes[] = {'a',  0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xA0, 0xED,
                                          0x9F, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF, 0xE4};
    enum { KINDS = sizeof bytes };
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    hearth_token of[KINDS];
    hearth_detokenizer *d;
    for (size_t i = 0; i < KINDS; i++) of[i] = byte_token(t, bytes[i]);
    assert_int_equal(hearth_detokenizer_create(t, 0, &d, NULL), HEARTH_OK);
    static buffer got, wanted;
    for (unsigned n = 0; n < KINDS * KINDS * KINDS * KINDS; n++) {
        char text[4];
        hearth_token ids[4];
        for (unsigned i = 0, rest = n; i < 4; i++, rest /= KINDS) {
            text[i] = (char)bytes[rest % KINDS];
            ids[i] = of[rest % KINDS];
        }
        got.size = wanted.size = 0;
        feed_ids(d, ids, 4, &got);
        replace_malformed(text, 4, &wanted);
        assert_buffer(&got, wanted.data, wanted.size);
    }
    hearth_detokenizer_free(&d);
    hearth_tokenizer_close(&t);
}

static void streamed_text_is_the_whole_text(void **state) {
    (void)state;
    uint64_t seed = text_seed("streamed_text_is_the_whole_text");
    static const char *const vocabularies[] = {"bpe", "raw", "spm"};
    static buffer got, wanted;
    for (size_t v = 0; v < 3; v++) {
        hearth_tokenizer *t = text_open(vocabularies[v], NULL, 0);
        hearth_detokenizer *d;
        assert_int_equal(hearth_detokenizer_create(t, 1, &d, NULL), HEARTH_OK);
        for (int i = 0; i < 1000; i++) {
            hearth_token ids[40];
            size_t count = (size_t)(text_random(&seed) % 41);
            got.size = wanted.size = 0;
            for (size_t k = 0; k < count; k++) {
                const char *piece;
                size_t size;
                ids[k] = (hearth_token)(text_random(&seed) % (uint64_t)hearth_tokenizer_size(t));
                assert_int_equal(hearth_tokenizer_piece(t, ids[k], 1, &piece, &size, NULL), HEARTH_OK);
                append(&got, piece, size);
            }
            replace_malformed(got.data, got.size, &wanted);
            got.size = 0;
            feed_ids(d, ids, count, &got);
            assert_buffer(&got, wanted.data, wanted.size);
        }
        hearth_detokenizer_free(&d);
        hearth_tokenizer_close(&t);
    }
}

static void control_tokens_are_shown_only_when_asked_for(void **state) {
    (void)state;
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    for (int special = 0; special < 2; special++) {
        const hearth_token ids[] = {1, 2};
        static buffer got;
        hearth_detokenizer *d;
        got.size = 0;
        assert_int_equal(hearth_detokenizer_create(t, special, &d, NULL), HEARTH_OK);
        feed_ids(d, ids, 2, &got);
        if (special) assert_buffer(&got, "<|im_start|><|im_end|>", 22);
        else assert_buffer(&got, "", 0);
        hearth_detokenizer_free(&d);
    }
    hearth_tokenizer_close(&t);
}

/* ---- stop strings ---- */

static hearth_stop_matcher *matcher_of(const char *const *strings, size_t count) {
    size_t sizes[16];
    hearth_stop_matcher *m;
    for (size_t i = 0; i < count; i++) sizes[i] = strlen(strings[i]);
    assert_int_equal(hearth_stop_matcher_create(strings, sizes, count, &m, NULL), HEARTH_OK);
    return m;
}

/* Feed a text in parts of the given sizes (the last one repeats). The answer: stopped. */
static bool feed_parts(hearth_stop_matcher *m, const char *text, size_t size, const size_t *parts, size_t part_count,
                       buffer *out) {
    const char *data;
    size_t shown;
    int stopped = 0;
    out->size = 0;
    for (size_t at = 0, i = 0; at < size && !stopped; i++) {
        size_t part = parts[i < part_count ? i : part_count - 1];
        if (part > size - at) part = size - at;
        assert_int_equal(hearth_stop_matcher_feed(m, text + at, part, &data, &shown, &stopped, NULL), HEARTH_OK);
        append(out, data, shown);
        at += part;
    }
    hearth_stop_matcher_finish(m, &data, &shown);
    append(out, data, shown);
    return stopped != 0;
}

static void stop_string_over_several_tokens(void **state) {
    (void)state;
    static const char *const stop[] = {"O P Q"}, *const tokens[] = {"M N ", "O", " P", " Q", " R"};
    hearth_stop_matcher *m = matcher_of(stop, 1);
    static buffer out;
    int stopped = 0;
    const char *data;
    size_t size;
    out.size = 0;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(stopped, i == 4);
        assert_int_equal(hearth_stop_matcher_feed(m, tokens[i], strlen(tokens[i]), &data, &size, &stopped, NULL),
                         HEARTH_OK);
        append(&out, data, size);
    }
    assert_buffer(&out, "M N ", 4);
    hearth_stop_matcher_finish(m, &data, &size);
    assert_int_equal(size, 0);
    hearth_stop_matcher_free(&m);
}

static void only_what_may_be_a_stop_string_is_held_back(void **state) {
    (void)state;
    static const char *const stop[] = {"aab", "ac"};
    hearth_stop_matcher *m = matcher_of(stop, 2);
    static const struct {
        const char *in, *out;
    } steps[] = {{"x", "x"},   {"a", ""}, {"a", ""}, {"a", "a"},  {"", ""},
                 {"d", "aad"}, {"a", ""}, {"", ""},  {"x", "ax"}, {"aa", ""}};
    const char *data;
    size_t size;
    int stopped;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(hearth_stop_matcher_feed(m, steps[i].in, strlen(steps[i].in), &data, &size, &stopped, NULL),
                         HEARTH_OK);
        assert_int_equal(stopped, 0);
        assert_int_equal(size, strlen(steps[i].out));
        assert_memory_equal(data, steps[i].out, size);
    }
    hearth_stop_matcher_finish(m, &data, &size);
    assert_int_equal(size, 2);
    assert_memory_equal(data, "aa", 2);
    hearth_stop_matcher_free(&m);
}

/* The text up to the first place where a stop string is complete; of several, up to the one that begins first. */
static size_t cut_at_stop(const char *text, size_t size, const char *const *strings, size_t count, bool *stopped) {
    for (size_t end = 1; end <= size; end++) {
        size_t begin = size + 1;
        for (size_t i = 0; i < count; i++) {
            size_t length = strlen(strings[i]);
            if (length <= end && memcmp(text + end - length, strings[i], length) == 0 && end - length < begin)
                begin = end - length;
        }
        if (begin <= size) {
            *stopped = true;
            return begin;
        }
    }
    *stopped = false;
    return size;
}

static void streamed_stops_equal_whole_text_stops(void **state) {
    (void)state;
    uint64_t seed = text_seed("streamed_stops_equal_whole_text_stops");
    for (int i = 0; i < 20000; i++) {
        char strings[4][8], text[64];
        const char *pointers[4];
        size_t count = 1 + (size_t)(text_random(&seed) % 4), size = (size_t)(text_random(&seed) % sizeof text),
               parts[4];
        for (size_t k = 0; k < count; k++) {
            size_t length = 1 + (size_t)(text_random(&seed) % 6);
            for (size_t c = 0; c < length; c++) strings[k][c] = (char)('a' + text_random(&seed) % 2);
            strings[k][length] = 0;
            pointers[k] = strings[k];
        }
        for (size_t c = 0; c < size; c++) text[c] = (char)('a' + text_random(&seed) % 8 % 3);
        for (size_t k = 0; k < 4; k++) parts[k] = 1 + (size_t)(text_random(&seed) % 5);
        hearth_stop_matcher *m = matcher_of(pointers, count);
        static buffer out;
        bool wanted_stop;
        size_t wanted = cut_at_stop(text, size, pointers, count, &wanted_stop);
        for (int again = 0; again < 2; again++) { /* after the end it is as new */
            assert_int_equal(feed_parts(m, text, size, parts, 4, &out), wanted_stop);
            assert_buffer(&out, text, wanted);
        }
        hearth_stop_matcher_free(&m);
    }
}

static void one_string_in_many_repetitions(void **state) {
    (void)state;
    enum { STOP = 1 << 14, TEXT = 1 << 20 };
    char *stop = malloc(STOP + 1), *text = malloc(TEXT);
    memset(stop, 'a', STOP);
    stop[STOP - 1] = 'b'; /* every byte of the text could begin it */
    stop[STOP] = 0;
    memset(text, 'a', TEXT);
    const char *const strings[] = {stop};
    size_t total = 0, size;
    const char *data;
    int stopped;
    hearth_stop_matcher *m = matcher_of(strings, 1);
    for (size_t at = 0; at < TEXT; at += 64) {
        assert_int_equal(hearth_stop_matcher_feed(m, text + at, 64, &data, &size, &stopped, NULL), HEARTH_OK);
        total += size;
    }
    assert_int_equal(total, TEXT - (STOP - 1));
    hearth_stop_matcher_finish(m, &data, &size);
    assert_int_equal(size, STOP - 1);
    hearth_stop_matcher_free(&m);
    free(stop);
    free(text);
}

static void empty_stop_strings_are_refused(void **state) {
    (void)state;
    const char *strings[] = {"a", ""};
    const size_t sizes[] = {1, 0};
    hearth_stop_matcher *m;
    hearth_error err;
    assert_int_equal(hearth_stop_matcher_create(strings, sizes, 2, &m, &err), HEARTH_BAD_ARGUMENT);
    assert_null(m);
    assert_non_null(strstr(err.text, "1"));
    assert_int_equal(hearth_stop_matcher_create(NULL, NULL, 0, &m, &err), HEARTH_OK);
    static buffer out;
    const size_t part = 3;
    assert_false(feed_parts(m, "any text", 8, &part, 1, &out));
    assert_buffer(&out, "any text", 8);
    hearth_stop_matcher_free(&m);
    hearth_stop_matcher_free(&m);
}

/* Stop strings over tokens that cut characters: the detokenizer first, then the matcher, as both endpoints do it. */
static void stops_and_characters_together(void **state) {
    (void)state;
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    static const char *const stop[] = {"\xF0\x9F\x91\x8D!"};
    static const char text[] = "ok \xF0\x9F\x91\x8D?\xF0\x9F\x91\x8D! more";
    hearth_stop_matcher *m = matcher_of(stop, 1);
    hearth_detokenizer *d;
    assert_int_equal(hearth_detokenizer_create(t, 0, &d, NULL), HEARTH_OK);
    static buffer out;
    int stopped = 0;
    out.size = 0;
    for (size_t i = 0; i < sizeof text - 1 && !stopped; i++) {
        const char *data;
        size_t size;
        assert_int_equal(hearth_detokenizer_feed(d, byte_token(t, (unsigned char)text[i]), &data, &size, NULL),
                         HEARTH_OK);
        assert_int_equal(hearth_stop_matcher_feed(m, data, size, &data, &size, &stopped, NULL), HEARTH_OK);
        assert_true(hth_utf8_is_valid(data, size));
        append(&out, data, size);
    }
    assert_int_equal(stopped, 1);
    assert_buffer(&out, "ok \xF0\x9F\x91\x8D?", 8);
    hearth_detokenizer_free(&d);
    hearth_stop_matcher_free(&m);
    hearth_tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_cut_into_bytes_come_out_whole),
        cmocka_unit_test(bytes_that_are_no_text_become_replacements),
        cmocka_unit_test(streamed_text_is_the_whole_text),
        cmocka_unit_test(control_tokens_are_shown_only_when_asked_for),
        cmocka_unit_test(stop_string_over_several_tokens),
        cmocka_unit_test(only_what_may_be_a_stop_string_is_held_back),
        cmocka_unit_test(streamed_stops_equal_whole_text_stops),
        cmocka_unit_test(one_string_in_many_repetitions),
        cmocka_unit_test(empty_stop_strings_are_refused),
        cmocka_unit_test(stops_and_characters_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
