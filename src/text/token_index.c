#include "text/token_index.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_internal.h"

typedef struct entry {
    const unsigned char *bytes;
    uint32_t size;
    hearth_token id;
} entry;

static int by_bytes(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);
    if (order != 0) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_usable(const hth_vocab *v, uint32_t id) {
    unsigned type = v->types[id];
    uint32_t size = v->offsets[id + 1] - v->offsets[id];
    return (type == HTH_TOKEN_NORMAL || type == HTH_TOKEN_USER || type == HTH_TOKEN_BYTE) && !v->ends[id] && size > 0 &&
           size <= HTH_TOKEN_MAX_BYTES;
}

static uint32_t common_bytes(const entry *a, const entry *b) {
    uint32_t n = 0;
    while (n < a->size && n < b->size && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

/* Nodes of the trie: each token adds those that the token before it does not share. */
static uint64_t count_nodes(const entry *tokens, uint32_t count) {
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < count; i++)
        nodes += tokens[i].size - (i > 0 ? common_bytes(&tokens[i - 1], &tokens[i]) : 0);
    return nodes;
}

static void lay_out(hearth_token_index *x, const entry *tokens) {
    uint32_t open[HTH_TOKEN_MAX_BYTES], node = 0; /* the nodes of the token before, by depth */
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < x->n_tokens; i++) {
        uint32_t shared = i > 0 ? common_bytes(&tokens[i - 1], &tokens[i]) : 0;
        while (n_open > shared) x->next[open[--n_open]] = node;
        for (; n_open < tokens[i].size; node++) {
            x->bytes[node] = tokens[i].bytes[n_open];
            x->depths[node] = (uint16_t)n_open;
            x->first[node] = i;
            open[n_open++] = node;
        }
        x->ids[i] = tokens[i].id;
        if (tokens[i].size > x->longest) x->longest = tokens[i].size;
    }
    while (n_open > 0) x->next[open[--n_open]] = node;
    x->first[node] = x->n_tokens;
}

static bool allocate(hearth_token_index *x) {
    size_t nodes = x->n_nodes + (size_t)1;
    x->bytes = malloc(nodes);
    x->depths = malloc(nodes * sizeof *x->depths);
    x->next = malloc(nodes * sizeof *x->next);
    x->first = malloc(nodes * sizeof *x->first);
    x->ids = malloc((x->n_tokens + (size_t)1) * sizeof *x->ids);
    return x->bytes && x->depths && x->next && x->first && x->ids;
}

static hearth_status fill(hearth_token_index *x, entry *tokens, hearth_error *err) {
    const hth_vocab *v = &x->tokenizer->vocab;
    for (uint32_t id = 0; id < x->vocab; id++) {
        if (v->ends[id]) hth_mask_add(x->ends, id);
        if (!is_usable(v, id)) continue;
        hth_mask_add(x->usable, id);
        const unsigned char *bytes = (const unsigned char *)v->bytes + v->offsets[id];
        tokens[x->n_tokens++] = (entry){bytes, v->offsets[id + 1] - v->offsets[id], (hearth_token)id};
    }
    qsort(tokens, x->n_tokens, sizeof *tokens, by_bytes);
    uint64_t nodes = count_nodes(tokens, x->n_tokens);
    if (nodes >= UINT32_MAX)
        return hth_fail(err, HEARTH_TOO_LONG, "the texts of the tokens are too long to be indexed");
    x->n_nodes = (uint32_t)nodes;
    if (!allocate(x)) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an index of %u tokens", x->vocab);
    lay_out(x, tokens);
    return HEARTH_OK;
}

hearth_status hearth_token_index_create(const hearth_tokenizer *tokenizer, hearth_token_index **out,
                                        hearth_error *err) {
    uint32_t vocab = tokenizer->vocab.size;
    hearth_token_index *x = *out = calloc(1, sizeof *x);
    entry *tokens = malloc((vocab + (size_t)1) * sizeof *tokens);
    if (x != NULL) {
        x->tokenizer = tokenizer;
        x->vocab = vocab;
        x->words = vocab / 64 + 1;
        x->ends = calloc(x->words, sizeof *x->ends);
        x->usable = calloc(x->words, sizeof *x->usable);
    }
    hearth_status status = x && tokens && x->ends && x->usable
                               ? fill(x, tokens, err)
                               : hth_fail(err, HEARTH_NO_MEMORY, "no memory for an index of %u tokens", vocab);
    free(tokens);
    if (status != HEARTH_OK) hearth_token_index_free(out);
    return status;
}

void hearth_token_index_free(hearth_token_index **index) {
    hearth_token_index *x = *index;
    if (x == NULL) return;
    free(x->bytes);
    free(x->depths);
    free(x->next);
    free(x->first);
    free(x->ids);
    free(x->ends);
    free(x->usable);
    free(x);
    *index = NULL;
}
