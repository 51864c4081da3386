/* Shared by the tests of the text folder. */
#ifndef HTH_TESTS_UNIT_TEXT_HELP_H
#define HTH_TESTS_UNIT_TEXT_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearth/tokenizer.h"

/* Sanitized builds are slow and their stack frames large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEXT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEXT_SANITIZED 1
#endif
#endif
#ifndef TEXT_SANITIZED
#define TEXT_SANITIZED 0
#endif

/* The next number of a sequence that a seed fixes. */
uint64_t text_random(uint64_t *state);

/* A seed: the decimal HEARTH_TEST_SEED of the environment, or a new one. It is printed. */
uint64_t text_seed(const char *test);

/* Up to `capacity` bytes: of every value, or of characters that matter to tokenizers. */
size_t text_random_bytes(uint64_t *state, char *out, size_t capacity);
size_t text_random_characters(uint64_t *state, char *out, size_t capacity);

/* `size` bytes of one character (cut at the end so that it stays whole); the caller frees them. */
char *text_run(const char *character, size_t *size);

/* The tokenizer of tests/data/tokenizer/NAME.gguf; the test fails when it does not open. */
hearth_tokenizer *text_open(const char *name, const char *pre, int nfc);

/* All ids of a text; the caller frees them. */
hearth_token *text_encode(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags, size_t *count);

/* Fails the test unless decoding the ids of a text gives the text. */
void text_check_round_trip(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags);

/* Run a test's body on a thread with a stack of this size (more in sanitized builds). */
void text_on_small_stack(void (*body)(void *), void *context, size_t stack);

/* A file of vectors, read line by line. Lines that begin with # are skipped. */
typedef struct text_vectors {
    void *file;
    char *line;
    size_t capacity;
} text_vectors;

void text_vectors_open(text_vectors *v, const char *name);
bool text_vectors_next(text_vectors *v); /* the line is in v->line, without its end */
void text_vectors_close(text_vectors *v);

/* Decode hexadecimal up to the first other character, in place of `out`; *end points at that. */
size_t text_from_hex(const char *hex, char *out, const char **end);

/* The numbers of a line. */
size_t text_numbers(const char *line, int32_t *out, size_t capacity);

#endif
