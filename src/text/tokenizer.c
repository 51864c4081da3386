/* Opening a tokenizer, and what is asked of it besides encoding and decoding. */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "text/tokenizer_internal.h"

static const struct {
    const char *name;
    hth_vocab_kind kind;
} kinds[] = {{"gpt2", HTH_VOCAB_GPT2}, {"llama", HTH_VOCAB_LLAMA}, {"gemma4", HTH_VOCAB_GEMMA4}};

static hearth_status find_kind(const hth_gguf *g, hth_vocab_kind *kind, hearth_error *err) {
    hth_string name = {0};
    hearth_status status = hth_gguf_get_string(g, "tokenizer.ggml.model", &name, err);
    if (status == HEARTH_NOT_FOUND)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"tokenizer.ggml.model\" is missing: the file has no vocabulary");
    if (status != HEARTH_OK) return status;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!hth_string_equals(name, kinds[i].name)) continue;
        *kind = kinds[i].kind;
        return HEARTH_OK;
    }
    return hth_fail(err, HEARTH_UNSUPPORTED,
                    "tokenizer kind \"%.*s\" is not supported; gpt2, llama and gemma4 are (tokenizer.ggml.model)",
                    (int)(name.size < 60 ? name.size : 60), name.data);
}

/* The row of the pre-tokenizer in force. */
static hearth_status find_pre(const hth_gguf *g, const char *forced, hth_vocab_kind kind, const hth_pre_row **row,
                              hearth_error *err) {
    hth_string name = {"default", 7};
    *row = NULL;
    if (forced != NULL && kind != HTH_VOCAB_GPT2)
        return hth_fail(err, HEARTH_BAD_OPTION, "option pre: tokenizers of kind %s have no pre-tokenizer to choose",
                        kinds[kind].name);
    if (kind == HTH_VOCAB_LLAMA) return HEARTH_OK;
    if (kind == HTH_VOCAB_GEMMA4) {
        *row = hth_pre_find("gemma4", 6);
        return HEARTH_OK;
    }
    if (forced != NULL) {
        *row = hth_pre_find(forced, strlen(forced));
        if (*row != NULL) return HEARTH_OK;
        return hth_fail(err, HEARTH_BAD_OPTION, "option pre: pre-tokenizer \"%.60s\" is not known", forced);
    }
    hearth_status status = hth_gguf_get_string(g, "tokenizer.ggml.pre", &name, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) return status;
    if (name.size == 0) name = (hth_string){"default", 7};
    *row = hth_pre_find(name.data, name.size);
    if (*row != NULL) return HEARTH_OK;
    return hth_fail(err, HEARTH_UNSUPPORTED,
                    "pre-tokenizer \"%.*s\" is not known (tokenizer.ggml.pre); option pre forces one that is",
                    (int)(name.size < 60 ? name.size : 60), name.data);
}

/* The entry "ARCHITECTURE.context_length"; 0 when there is none that is a number of tokens. */
static int64_t find_context(const hth_gguf *g) {
    hth_string architecture = {"", 0};
    char key[96];
    uint64_t context = 0;
    if (hth_gguf_get_string(g, "general.architecture", &architecture, NULL) != HEARTH_OK) return 0;
    int size = snprintf(key, sizeof key, "%.*s.context_length",
                        (int)(architecture.size < sizeof key ? architecture.size : sizeof key), architecture.data);
    if (size < 0 || (size_t)size >= sizeof key) return 0;
    return hth_gguf_get_u64(g, key, 1, INT32_MAX, &context, NULL) == HEARTH_OK ? (int64_t)context : 0;
}

static hearth_status fill(hearth_tokenizer *t, const hth_gguf *g, const hearth_tokenizer_options *options,
                          hearth_error *err) {
    hth_vocab_kind kind = HTH_VOCAB_GPT2;
    int nfc = options == NULL ? -1 : options->nfc;
    int threads = options == NULL ? 0 : options->threads;
    if (nfc < -1 || nfc > 1) return hth_fail(err, HEARTH_BAD_OPTION, "option nfc is %d, not -1, 0 or 1", nfc);
    if (threads < 0) return hth_fail(err, HEARTH_BAD_OPTION, "option threads is %d, not 0 or more", threads);
    HTH_TRY(find_kind(g, &kind, err));
    HTH_TRY(find_pre(g, options == NULL ? NULL : options->pre, kind, &t->pre, err));
    HTH_TRY(hth_vocab_load(&t->vocab, g, kind, t->pre, threads, err));
    if (t->pre != NULL) HTH_TRY(hth_pretokenizer_create(t->pre, &t->pretokenizer, err));
    t->model_context = find_context(g);
    t->nfc = nfc == -1 ? t->pre != NULL && (t->pre->flags & HTH_PRE_NFC) != 0 : nfc == 1;
    return HEARTH_OK;
}

uint64_t hth_tokenizer_bytes(const hth_gguf *g) {
    /* The tables of a pre-tokenizer's patterns, and the workspace in which they are compiled: measured, with room. */
    static const uint64_t patterns = 4 << 20;
    hth_vocab_kind kind = HTH_VOCAB_GPT2;
    if (find_kind(g, &kind, NULL) != HEARTH_OK) return 0;
    return sizeof(hearth_tokenizer) + hth_vocab_bytes(g, kind) + (kind == HTH_VOCAB_LLAMA ? 0 : patterns);
}

hearth_status hth_tokenizer_from_gguf(const hth_gguf *g, const hearth_tokenizer_options *options,
                                      hearth_tokenizer **out, hearth_error *err) {
    *out = NULL;
    hearth_tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a tokenizer");
    const uint64_t start = hth_now_ns();
    hearth_status status = fill(t, g, options, err);
    t->build_ns = hth_now_ns() - start;
    if (status != HEARTH_OK) hearth_tokenizer_close(&t);
    *out = t;
    return status;
}

hearth_status hearth_tokenizer_open(const char *path, const hearth_tokenizer_options *options, hearth_tokenizer **out,
                                    hearth_error *err) {
    hth_gguf *g;
    *out = NULL;
    HTH_TRY(hth_gguf_open(path, &g, err));
    hearth_status status = hth_tokenizer_from_gguf(g, options, out, err);
    if (status == HEARTH_OK) (*out)->own = g;
    else hth_gguf_close(&g);
    return status;
}

const hth_gguf *hth_tokenizer_file(const hearth_tokenizer *tokenizer) {
    return tokenizer->own;
}

uint64_t hth_tokenizer_build_ns(const hearth_tokenizer *tokenizer) {
    return tokenizer->build_ns;
}

bool hth_tokenizer_nfc(const hearth_tokenizer *tokenizer) {
    return tokenizer->nfc;
}

void hearth_tokenizer_close(hearth_tokenizer **tokenizer) {
    hearth_tokenizer *t = *tokenizer;
    if (t == NULL) return;
    hth_pretokenizer_free(&t->pretokenizer);
    hth_vocab_free(&t->vocab);
    hth_gguf_close(&t->own);
    free(t);
    *tokenizer = NULL;
}

int32_t hearth_tokenizer_size(const hearth_tokenizer *tokenizer) {
    return (int32_t)tokenizer->vocab.size;
}

const char *hearth_tokenizer_kind(const hearth_tokenizer *tokenizer) {
    return kinds[tokenizer->vocab.kind].name;
}

const char *hearth_tokenizer_pre(const hearth_tokenizer *tokenizer) {
    return tokenizer->vocab.kind == HTH_VOCAB_GPT2 ? tokenizer->pre->name : "";
}

hearth_token hearth_tokenizer_bos(const hearth_tokenizer *tokenizer) {
    return tokenizer->vocab.bos;
}

hearth_token hearth_tokenizer_eos(const hearth_tokenizer *tokenizer) {
    return tokenizer->vocab.eos;
}

int64_t hearth_tokenizer_model_context(const hearth_tokenizer *tokenizer) {
    return tokenizer->model_context;
}

int hearth_tokenizer_adds_bos(const hearth_tokenizer *tokenizer) {
    return tokenizer->vocab.add_bos && tokenizer->vocab.bos != HTH_NO_TOKEN;
}

int hearth_tokenizer_adds_eos(const hearth_tokenizer *tokenizer) {
    return tokenizer->vocab.add_eos && tokenizer->vocab.eos != HTH_NO_TOKEN;
}

int hearth_tokenizer_ends_generation(const hearth_tokenizer *tokenizer, hearth_token id) {
    return id >= 0 && (uint32_t)id < tokenizer->vocab.size && tokenizer->vocab.ends[id];
}
