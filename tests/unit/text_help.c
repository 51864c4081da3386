#include "unit/text_help.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

uint64_t text_random(uint64_t *state) {
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

uint64_t text_seed(const char *test) {
    const char *given = getenv("HEARTH_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)now.tv_nsec;
    print_message("%s: HEARTH_TEST_SEED=%llu\n", test, (unsigned long long)seed);
    return seed;
}

size_t text_random_bytes(uint64_t *state, char *out, size_t capacity) {
    size_t size = (size_t)(text_random(state) % (capacity + 1));
    for (size_t i = 0; i < size; i++) out[i] = (char)text_random(state);
    return size;
}

size_t text_random_characters(uint64_t *state, char *out, size_t capacity) {
    static const char *const characters[] = {
        "a",
        "e",
        "s",
        "t",
        "ll",
        "A",
        "Z",
        "0",
        "7",
        "12",
        " ",
        "  ",
        "\n",
        "\r",
        "\t",
        "\r\n",
        "'",
        "'s",
        "'LL",
        "!",
        "/",
        "<",
        ">",
        "|",
        "_",
        ".",
        ",",
        "\xC2\xA0",
        "\xC3\xA9",
        "e\xCC\x81",
        "\xCC\xA3",
        "\xC5\xBF",
        "\xE4\xB8\xAD",
        "\xE3\x81\x82",
        "\xEA\xB0\x80",
        "\xE1\x84\x80\xE1\x85\xA1",
        "\xD9\xA1",
        "\xC2\xBD",
        "\xF0\x9F\x91\x8D",
        "\xE2\x80\x8D",
        "\xE2\x96\x81",
        "<|im_start|>",
        "<|im_end|>",
        "<s>",
        "</s>",
        "\xE2\x84\xAB",
        "\xD0\x99",
        "\xE0\xA4\xA8\xE0\xA5\x8D",
        "\xF3\xA0\x80\x81",
    };
    size_t size = 0, wanted = (size_t)(text_random(state) % (capacity + 1));
    while (size < wanted) {
        const char *c = characters[text_random(state) % (sizeof characters / sizeof *characters)];
        size_t length = strlen(c), times = text_random(state) % 16 == 0 ? 1 + text_random(state) % 20 : 1;
        for (; times > 0 && size + length <= wanted; times--, size += length) memcpy(out + size, c, length);
        if (size + length > wanted) break;
    }
    return size;
}

char *text_run(const char *character, size_t *size) {
    size_t length = strlen(character);
    char *text = malloc(*size + 1);
    assert_non_null(text);
    *size -= *size % length;
    for (size_t i = 0; i < *size; i += length) memcpy(text + i, character, length);
    return text;
}

hearth_tokenizer *text_open(const char *name, const char *pre, int nfc) {
    char path[512];
    hearth_tokenizer *t = NULL;
    hearth_error err;
    hearth_tokenizer_options options = {.pre = pre, .nfc = nfc};
    snprintf(path, sizeof path, HEARTH_TEST_DATA "/tokenizer/%s.gguf", name);
    if (hearth_tokenizer_open(path, &options, &t, &err) != HEARTH_OK) fail_msg("%s: %s", path, err.text);
    return t;
}

hearth_token *text_encode(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags, size_t *count) {
    hearth_error err;
    size_t capacity = 2 * size + 8;
    hearth_token *ids = malloc(capacity * sizeof *ids);
    assert_non_null(ids);
    if (hearth_tokenizer_encode(t, text, size, flags, ids, capacity, count, &err) != HEARTH_OK)
        fail_msg("%s", err.text);
    return ids;
}

void text_check_round_trip(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags) {
    hearth_error err;
    size_t count, back_size;
    hearth_token *ids = text_encode(t, text, size, flags, &count);
    char *back = malloc(size + 1);
    assert_non_null(back);
    if (hearth_tokenizer_decode(t, ids, count, 1, back, size, &back_size, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(back_size, size);
    assert_memory_equal(back, text, size);
    free(back);
    free(ids);
}

typedef struct small_stack {
    void (*body)(void *);
    void *context;
} small_stack;

static void *run_body(void *argument) {
    small_stack *s = argument;
    s->body(s->context);
    return NULL;
}

void text_on_small_stack(void (*body)(void *), void *context, size_t stack) {
    if (TEXT_SANITIZED) stack *= 8;
    small_stack s = {body, context};
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, stack), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_body, &s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

void text_vectors_open(text_vectors *v, const char *name) {
    char path[512];
    snprintf(path, sizeof path, HEARTH_TEST_DATA "/tokenizer/%s.vectors", name);
    *v = (text_vectors){.file = fopen(path, "r")};
    if (v->file == NULL) fail_msg("cannot open %s", path);
}

bool text_vectors_next(text_vectors *v) {
    ssize_t size;
    do {
        size = getline(&v->line, &v->capacity, v->file);
    } while (size > 0 && v->line[0] == '#');
    if (size <= 0) return false;
    if (v->line[size - 1] == '\n') v->line[size - 1] = 0;
    return true;
}

void text_vectors_close(text_vectors *v) {
    fclose(v->file);
    free(v->line);
}

static int hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t text_from_hex(const char *hex, char *out, const char **end) {
    size_t size = 0;
    for (; hex_value(hex[0]) >= 0 && hex_value(hex[1]) >= 0; hex += 2)
        out[size++] = (char)(hex_value(hex[0]) * 16 + hex_value(hex[1]));
    *end = hex;
    return size;
}

size_t text_numbers(const char *line, int32_t *out, size_t capacity) {
    size_t count = 0;
    char *end;
    for (;; line = end) {
        long n = strtol(line, &end, 10);
        if (end == line) return count;
        assert_true(count < capacity);
        out[count++] = (int32_t)n;
    }
}
