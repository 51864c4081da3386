#include "unit/constraint_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/tokenizer.h"

enum { STRING = 8, I32 = 5, F32 = 6, NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6 };

static bool is_byte(const char *token) {
    return strlen(token) == 6 && strncmp(token, "<0x", 3) == 0;
}

void constraint_vocab_open(constraint_vocab *v, const char *const *tokens, size_t count) {
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    hearth_error err = {HEARTH_OK, ""};
    gguf_image *im = &v->image;
    *v = (constraint_vocab){.file = NULL};
    gguf_put_header(im, 3, 0, 5);
    gguf_put_kv_string(im, "general.architecture", "llama");
    gguf_put_kv_string(im, "tokenizer.ggml.model", "llama");
    gguf_put_kv_array(im, "tokenizer.ggml.tokens", STRING, count + 4);
    for (size_t i = 0; i < 3; i++) gguf_put_string(im, NULL, first[i]);
    for (size_t i = 0; i < count; i++) gguf_put_string(im, NULL, tokens[i]);
    gguf_put_string(im, NULL, "a<unused>");
    gguf_put_kv_array(im, "tokenizer.ggml.token_type", I32, count + 4);
    gguf_put_u32(im, NULL, UNKNOWN);
    gguf_put_u32(im, NULL, CONTROL);
    gguf_put_u32(im, NULL, CONTROL);
    for (size_t i = 0; i < count; i++) gguf_put_u32(im, NULL, is_byte(tokens[i]) ? BYTE : NORMAL);
    gguf_put_u32(im, NULL, UNUSED);
    gguf_put_kv_array(im, "tokenizer.ggml.scores", F32, count + 4);
    for (size_t i = 0; i < count + 4; i++) {
        float score = -(float)i;
        gguf_put(im, &score, sizeof score);
    }
    gguf_put_padding(im, 32);
    if (hth_gguf_open_memory(im->data, im->size, &v->file, &err) != HEARTH_OK ||
        hth_tokenizer_from_gguf(v->file, NULL, &v->tokenizer, &err) != HEARTH_OK ||
        hearth_token_index_create(v->tokenizer, &v->index, &err) != HEARTH_OK)
        fail_msg("%s", err.text);
}

void constraint_vocab_close(constraint_vocab *v) {
    hearth_token_index_free(&v->index);
    hearth_tokenizer_close(&v->tokenizer);
    hth_gguf_close(&v->file);
    gguf_image_free(&v->image);
}

void constraint_bytes_open(constraint_vocab *v) {
    char names[256][8];
    const char *tokens[256];
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(names[byte], sizeof names[byte], "<0x%02X>", byte);
        tokens[byte] = names[byte];
    }
    constraint_vocab_open(v, tokens, 256);
}

static hearth_constraint *compile(const hearth_token_index *index, bool schema, const char *text) {
    hearth_constraint *c;
    hearth_error err = {HEARTH_OK, ""};
    hearth_status status = schema ? hearth_constraint_schema(index, text, strlen(text), NULL, &c, &err)
                                  : hearth_constraint_grammar(index, text, strlen(text), NULL, &c, &err);
    if (status != HEARTH_OK) fail_msg("%s\n%s", text, err.text);
    return c;
}

hearth_constraint *constraint_of(const hearth_token_index *index, const char *grammar) {
    return compile(index, false, grammar);
}

hearth_constraint *constraint_of_schema(const hearth_token_index *index, const char *schema) {
    return compile(index, true, schema);
}

void constraint_refused(const hearth_token_index *index, bool schema, const char *text, size_t size,
                        hearth_status status, const char *says) {
    hearth_constraint *c;
    hearth_error err = {HEARTH_OK, ""};
    hearth_status found = schema ? hearth_constraint_schema(index, text, size, NULL, &c, &err)
                                 : hearth_constraint_grammar(index, text, size, NULL, &c, &err);
    if (found != status || strstr(err.text, says) == NULL)
        fail_msg("%.200s\n%s \"%s\", not %s with \"%s\"", text, hearth_status_name(found), err.text,
                 hearth_status_name(status), says);
    assert_null(c);
}

constraint_verdict constraint_judge_with(hearth_matcher *m, const char *text, size_t size) {
    hearth_matcher_reset(m);
    constraint_verdict verdict = CONSTRAINT_PREFIX;
    for (size_t i = 0; i < size && verdict == CONSTRAINT_PREFIX; i++)
        if (hearth_matcher_accept(m, CONSTRAINT_FIRST + (unsigned char)text[i], NULL) != HEARTH_OK)
            verdict = CONSTRAINT_REFUSES;
    if (verdict == CONSTRAINT_PREFIX && hearth_matcher_is_complete(m)) verdict = CONSTRAINT_MATCHES;
    return verdict;
}

constraint_verdict constraint_judge(const hearth_constraint *c, const char *text, size_t size) {
    hearth_matcher *m;
    assert_int_equal(hearth_matcher_create(c, &m, NULL), HEARTH_OK);
    constraint_verdict verdict = constraint_judge_with(m, text, size);
    hearth_matcher_free(&m);
    return verdict;
}
