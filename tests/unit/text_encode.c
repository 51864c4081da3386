/* Ids: equal to what other implementations recorded, and what must hold of any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/tokenizer_internal.h"
#include "unit/text_help.h"

enum { MAX_TEXT = 1 << 16 };

/* ---- recorded ids ---- */

static void check_ids(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags, const char *numbers) {
    int32_t *wanted = malloc(MAX_TEXT * sizeof *wanted);
    size_t count, wanted_count = text_numbers(numbers, wanted, MAX_TEXT);
    hearth_token *ids = text_encode(t, text, size, flags, &count);
    size_t at = 0;
    while (at < count && at < wanted_count && ids[at] == wanted[at]) at++;
    if (at < count || at < wanted_count)
        fail_msg("\"%.*s\": id %zu of %zu is %d, not %d (of %zu)", (int)(size < 80 ? size : 80), text, at, count,
                 at < count ? (int)ids[at] : -1, at < wanted_count ? (int)wanted[at] : -1, wanted_count);
    free(ids);
    free(wanted);
}

static void check_vectors(const char *name) {
    text_vectors v;
    hearth_tokenizer *t = NULL;
    unsigned flags = 0;
    size_t checked = 0;
    char *text = malloc(MAX_TEXT);
    text_vectors_open(&v, name);
    while (text_vectors_next(&v)) {
        const char *end;
        if (strstr(v.line, "special=") != NULL) {
            hearth_tokenizer_close(&t);
            t = text_open(name, NULL, strstr(v.line, "nfc=1") != NULL);
            flags = strstr(v.line, "special=1") != NULL ? HEARTH_ENCODE_SPECIAL : 0;
            continue;
        }
        size_t size = text_from_hex(v.line, text, &end);
        assert_int_equal(*end, ':');
        check_ids(t, text, size, flags, end + 1);
        checked++;
    }
    assert_true(checked > 200);
    text_vectors_close(&v);
    hearth_tokenizer_close(&t);
    free(text);
}

static void bytes_equal_recorded(void **state) {
    (void)state;
    check_vectors("bpe");
}

static void scores_equal_recorded(void **state) {
    (void)state;
    check_vectors("spm");
}

static void characters_equal_recorded(void **state) {
    (void)state;
    check_vectors("raw");
}

/* ---- what the file and the caller decide ---- */

static void check_list(const hearth_tokenizer *t, const char *text, unsigned flags, const char *numbers) {
    check_ids(t, text, strlen(text), flags, numbers);
}

static void bos_and_eos_only_where_the_file_says(void **state) {
    (void)state;
    hearth_tokenizer *bpe = text_open("bpe", NULL, 0), *spm = text_open("spm", NULL, 0),
                     *raw = text_open("raw", NULL, 0);
    assert_int_equal(hearth_tokenizer_adds_bos(bpe), 0);
    check_list(bpe, "", HEARTH_ENCODE_ADD, "");
    assert_int_equal(hearth_tokenizer_adds_bos(spm), 1);
    assert_int_equal(hearth_tokenizer_adds_eos(spm), 0);
    check_list(spm, "", HEARTH_ENCODE_ADD, "1");
    check_list(spm, "", 0, "");
    assert_int_equal(hearth_tokenizer_bos(raw), 2);
    check_list(raw, "", HEARTH_ENCODE_ADD, "2");
    assert_string_equal(hearth_tokenizer_kind(bpe), "gpt2");
    assert_string_equal(hearth_tokenizer_pre(bpe), "qwen35");
    assert_string_equal(hearth_tokenizer_kind(spm), "llama");
    assert_string_equal(hearth_tokenizer_pre(spm), "");
    assert_string_equal(hearth_tokenizer_kind(raw), "gemma4");
    assert_int_equal(hearth_tokenizer_ends_generation(bpe, 2), 1);
    assert_int_equal(hearth_tokenizer_ends_generation(bpe, 1), 0);
    assert_int_equal(hearth_tokenizer_ends_generation(bpe, -1), 0);
    assert_int_equal(hearth_tokenizer_ends_generation(bpe, 1 << 30), 0);
    hearth_tokenizer_close(&bpe);
    hearth_tokenizer_close(&spm);
    hearth_tokenizer_close(&raw);
}

static bool has_id(const hearth_tokenizer *t, const char *text, unsigned flags, hearth_token id) {
    size_t count;
    hearth_token *ids = text_encode(t, text, strlen(text), flags, &count);
    bool found = false;
    for (size_t i = 0; i < count; i++) found |= ids[i] == id;
    free(ids);
    return found;
}

static void text_of_control_tokens_is_text_unless_asked_for(void **state) {
    (void)state;
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    assert_true(has_id(t, "a<|im_end|>b", HEARTH_ENCODE_SPECIAL, 2));
    assert_false(has_id(t, "a<|im_end|>b", 0, 2));
    assert_false(has_id(t, "<|im_end|>", 0, 2));
    check_list(t, "<|im_start|><|im_end|><|im_end|>", HEARTH_ENCODE_SPECIAL, "1 2 2");
    hearth_tokenizer_close(&t);
}

/* A space goes in front of each fragment, also behind a special token, and goes away in decoding. */
static void spaces_around_special_tokens(void **state) {
    static const char *const texts[] = {"<s> hello", "<s>hello", "<s>  hello", " <s>hello", "  <s>  hello  </s>  ",
                                        "<s></s>",   "hello",    " hello",     "  hello",   " ",
                                        "  ",        "<s> "};
    (void)state;
    hearth_tokenizer *t = text_open("spm", NULL, 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_check_round_trip(t, texts[i], strlen(texts[i]), HEARTH_ENCODE_SPECIAL);
    size_t count, with_count;
    hearth_token *plain = text_encode(t, "hello", 5, 0, &count);
    hearth_token *with = text_encode(t, "<s>hello", 8, HEARTH_ENCODE_SPECIAL, &with_count);
    assert_int_equal(with_count, count + 1);
    assert_int_equal(with[0], 1);
    assert_memory_equal(with + 1, plain, count * sizeof *plain);
    free(plain);
    free(with);

    /* BOS that nobody sees does not hide the space from decoding. */
    hearth_token *ids = text_encode(t, "hello", 5, HEARTH_ENCODE_ADD, &count);
    char out[16];
    size_t size;
    assert_int_equal(hearth_tokenizer_decode(t, ids, count, 0, out, sizeof out, &size, NULL), HEARTH_OK);
    assert_int_equal(size, 5);
    assert_memory_equal(out, "hello", 5);
    free(ids);
    hearth_tokenizer_close(&t);
}

static void writing_stops_at_the_capacity(void **state) {
    (void)state;
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    const char *text = "In the beginning God created the heaven and the earth.";
    size_t size = strlen(text), count, got, bytes, got_bytes;
    hearth_error err;
    hearth_token *all = text_encode(t, text, size, 0, &count);
    assert_int_equal(hearth_tokenizer_encode(t, text, size, 0, NULL, 0, &got, &err), HEARTH_TOO_LONG);
    assert_int_equal(got, count);
    for (size_t capacity = 0; capacity <= count; capacity++) {
        hearth_token *out = malloc((capacity + 1) * sizeof *out);
        out[capacity] = -77;
        hearth_status wanted = capacity < count ? HEARTH_TOO_LONG : HEARTH_OK;
        assert_int_equal(hearth_tokenizer_encode(t, text, size, 0, out, capacity, &got, &err), wanted);
        assert_int_equal(got, count);
        assert_memory_equal(out, all, capacity * sizeof *out);
        assert_int_equal(out[capacity], -77);
        free(out);
    }
    assert_int_equal(hearth_tokenizer_decode(t, all, count, 0, NULL, 0, &bytes, &err), HEARTH_TOO_LONG);
    assert_int_equal(bytes, size);
    char part[8] = "zzzzzzz";
    assert_int_equal(hearth_tokenizer_decode(t, all, count, 0, part, 5, &got_bytes, &err), HEARTH_TOO_LONG);
    assert_memory_equal(part, "In thzz", 7);
    free(all);
    hearth_tokenizer_close(&t);
}

static void ids_out_of_range_are_refused(void **state) {
    (void)state;
    hearth_tokenizer *t = text_open("bpe", NULL, 0);
    const hearth_token wrong[] = {-1, INT32_MIN, INT32_MAX, hearth_tokenizer_size(t)};
    hearth_detokenizer *d;
    assert_int_equal(hearth_detokenizer_create(t, 0, &d, NULL), HEARTH_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *data;
        size_t size;
        hearth_error err;
        assert_int_equal(hearth_tokenizer_piece(t, wrong[i], 1, &data, &size, &err), HEARTH_BAD_ARGUMENT);
        assert_non_null(strstr(err.text, "4096"));
        assert_int_equal(hearth_tokenizer_decode(t, &wrong[i], 1, 1, NULL, 0, &size, &err), HEARTH_BAD_ARGUMENT);
        assert_int_equal(hearth_detokenizer_feed(d, wrong[i], &data, &size, &err), HEARTH_BAD_ARGUMENT);
    }
    hearth_detokenizer_free(&d);
    hearth_tokenizer_close(&t);
}

/* ---- any bytes ---- */

static const char *const vocabularies[] = {"bpe", "raw", "spm"};

static void every_byte_comes_back(void **state) {
    (void)state;
    for (size_t v = 0; v < 3; v++) {
        hearth_tokenizer *t = text_open(vocabularies[v], NULL, 1);
        char all[256];
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[3] = {'a', (char)byte, ' '};
            all[byte] = (char)byte;
            text_check_round_trip(t, text + 1, 1, 0);
            text_check_round_trip(t, text, 3, HEARTH_ENCODE_SPECIAL);
        }
        text_check_round_trip(t, all, sizeof all, HEARTH_ENCODE_SPECIAL);
        hearth_tokenizer_close(&t);
    }
}

static void random_bytes_come_back(void **state) {
    (void)state;
    uint64_t seed = text_seed("random_bytes_come_back");
    char text[600];
    for (size_t v = 0; v < 3; v++) {
        hearth_tokenizer *t = text_open(vocabularies[v], NULL, 0);
        for (unsigned i = 0; i < 3000; i++) {
            size_t size = i % 2 == 0 ? text_random_bytes(&seed, text, sizeof text)
                                     : text_random_characters(&seed, text, sizeof text);
            /* Vocabularies over characters write a space as U+2581 and cannot tell the two apart. */
            bool ambiguous = v > 0 && memmem(text, size, "\xE2\x96\x81", 3) != NULL;
            if (!ambiguous) text_check_round_trip(t, text, size, i % 4 < 2 ? HEARTH_ENCODE_SPECIAL : 0);
        }
        hearth_tokenizer_close(&t);
    }
}

/* Malformed bytes pass normalisation where they stand, and what is between them is normalised. */
static void malformed_bytes_survive_normalisation(void **state) {
    (void)state;
    hearth_tokenizer *t = text_open("bpe", NULL, 1);
    const char text[] = "e\xCC\x81\xFF"
                        "e\xCC\x81\xCC"
                        "e\xCC\x81",
               normal[] = "\xC3\xA9\xFF\xC3\xA9\xCC\xC3\xA9";
    size_t count, size;
    char out[64];
    hearth_token *ids = text_encode(t, text, sizeof text - 1, 0, &count);
    assert_int_equal(hearth_tokenizer_decode(t, ids, count, 0, out, sizeof out, &size, NULL), HEARTH_OK);
    assert_int_equal(size, sizeof normal - 1);
    assert_memory_equal(out, normal, size);
    free(ids);
    hearth_tokenizer_close(&t);
}

/* ---- long runs ---- */

enum { RUN = TEXT_SANITIZED ? 1 << 17 : 1 << 20, STACK = 64 << 10, WORK_PER_BYTE = 40 };

typedef struct run_case {
    const hearth_tokenizer *t;
    const char *character;
    uint64_t small, large; /* steps; UINT64_MAX after a failure */
} run_case;

static uint64_t work_of(const hearth_tokenizer *t, const char *character, size_t size) {
    hearth_error err;
    uint64_t work;
    size_t count;
    char *text = text_run(character, &size);
    size_t capacity = size + 8;
    hearth_token *ids = malloc(capacity * sizeof *ids);
    if (ids == NULL) return UINT64_MAX;
    hearth_status status = hth_tokenizer_encode(t, text, size, 0, ids, capacity, &count, &work, &err);
    free(ids);
    free(text);
    return status == HEARTH_OK ? work : UINT64_MAX;
}

/* On its own thread, where nothing may fail a test. */
static void encode_run(void *context) {
    run_case *c = context;
    c->small = work_of(c->t, c->character, RUN / 16);
    c->large = work_of(c->t, c->character, RUN);
}

static void long_runs_take_linear_time_and_little_stack(void **state) {
    static const char *const characters[] = {"a",
                                             " ",
                                             "7",
                                             "\n",
                                             "\r\n",
                                             "\xE4\xB8\xAD",
                                             "A",
                                             "!",
                                             "\xCC\x81",
                                             "\xFF",
                                             "'",
                                             "a ",
                                             " \n",
                                             "<",
                                             "<|im_start|",
                                             "\xE1\x84\x80",
                                             "\xF0\x9F\x91\x8D",
                                             "\xE2\x96\x81"};
    (void)state;
    for (size_t v = 0; v < 3; v++) {
        hearth_tokenizer *t = text_open(vocabularies[v], NULL, 1);
        for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
            run_case c = {.t = t, .character = characters[i]};
            text_on_small_stack(encode_run, &c, STACK);
            if (c.large > (uint64_t)WORK_PER_BYTE * RUN || c.large > 20 * c.small)
                fail_msg("%s, a run of \"%s\": %llu steps for %d bytes, %llu for a sixteenth", vocabularies[v],
                         characters[i], (unsigned long long)c.large, RUN, (unsigned long long)c.small);
        }
        hearth_tokenizer_close(&t);
    }
}

/* ---- vocabularies that are not in this repository ---- */

/* HEARTH_RECORDED_VOCABS, or where scripts/build_peer.sh puts the peer's source. */
static void recorded_folder(char *out, size_t size) {
    const char *folder = getenv("HEARTH_RECORDED_VOCABS"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char peer[] = "hearth/peer/llama_cpp_python-0.3.36/vendor/llama.cpp/models";
    if (folder != NULL) snprintf(out, size, "%s", folder);
    else if (cache != NULL) snprintf(out, size, "%s/%s", cache, peer);
    else snprintf(out, size, "%s/.cache/%s", home == NULL ? "" : home, peer);
}

static char *read_whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = calloc(1, *size + 1);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

/* False when the vocabulary is not there. */
static bool check_recorded(const char *folder, const char *name) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char path[1024];
    size_t in_size, out_size;
    hearth_error err;
    hearth_tokenizer *t;
    hearth_tokenizer_options options = {.nfc = 0};
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf.inp", folder, name);
    char *in = read_whole(path, &in_size);
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf.out", folder, name);
    char *out = read_whole(path, &out_size), *line = out, *text = in;
    if (in == NULL || out == NULL) return false;
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf", folder, name);
    if (hearth_tokenizer_open(path, &options, &t, &err) != HEARTH_OK) fail_msg("%s: %s", path, err.text);
    while (line < out + out_size) {
        char *line_end = strchr(line, '\n'),
             *end = memmem(text, (size_t)(in + in_size - text), separator, sizeof separator - 1);
        *line_end = 0;
        if (end == NULL) end = in + in_size;
        check_ids(t, text, (size_t)(end - text), 0, line);
        line = line_end + 1;
        text = end + sizeof separator - 1;
    }
    hearth_tokenizer_close(&t);
    free(in);
    free(out);
    return true;
}

static void recorded_vocabularies_agree(void **state) {
    static const char *const names[] = {"command-r", "deepseek-coder", "deepseek-llm", "falcon",   "gemma-4",
                                        "gpt-2",     "llama-bpe",      "llama-spm",    "mpt",      "phi-3",
                                        "qwen2",     "qwen35",         "refact",       "starcoder"};
    (void)state;
    char folder[900];
    recorded_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (check_recorded(folder, names[i])) continue;
        print_message("skipped: no vocabulary %s in %s (scripts/build_peer.sh fetches them)\n", names[i], folder);
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_equal_recorded),
        cmocka_unit_test(scores_equal_recorded),
        cmocka_unit_test(characters_equal_recorded),
        cmocka_unit_test(bos_and_eos_only_where_the_file_says),
        cmocka_unit_test(text_of_control_tokens_is_text_unless_asked_for),
        cmocka_unit_test(spaces_around_special_tokens),
        cmocka_unit_test(writing_stops_at_the_capacity),
        cmocka_unit_test(ids_out_of_range_are_refused),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(random_bytes_come_back),
        cmocka_unit_test(malformed_bytes_survive_normalisation),
        cmocka_unit_test(long_runs_take_linear_time_and_little_stack),
        cmocka_unit_test(recorded_vocabularies_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
