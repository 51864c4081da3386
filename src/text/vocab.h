/* The vocabulary of a GGUF file: token texts, types and roles, and the tables that encoding looks things up in. */
#ifndef HTH_TEXT_VOCAB_H
#define HTH_TEXT_VOCAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "gguf/gguf.h"
#include "hearth/tokenizer.h"
#include "text/pretokenizer.h"
#include "text/specials.h"

typedef enum hth_vocab_kind {
    HTH_VOCAB_GPT2,  /* merges by rank, over bytes written in the byte alphabet */
    HTH_VOCAB_LLAMA, /* merges by score, over UTF-8 characters */
    HTH_VOCAB_GEMMA4 /* merges by rank, over UTF-8 characters */
} hth_vocab_kind;

/* As tokenizer.ggml.token_type numbers them. */
enum {
    HTH_TOKEN_NORMAL = 1,
    HTH_TOKEN_UNKNOWN = 2,
    HTH_TOKEN_CONTROL = 3,
    HTH_TOKEN_USER = 4, /* found in any text, and shown */
    HTH_TOKEN_UNUSED = 5,
    HTH_TOKEN_BYTE = 6
};

#define HTH_NO_TOKEN (-1)

/* The high half of a text's hash above the id of its token; HTH_FREE_SLOT: none. */
typedef _Atomic uint64_t hth_text_slot;

typedef struct hth_pair_slot {
    _Atomic uint64_t pair; /* the left token above the right one; HTH_FREE_SLOT: none */
    _Atomic uint32_t rank;
    _Atomic hearth_token merged;
} hth_pair_slot;

#define HTH_FREE_SLOT UINT64_MAX

static inline hearth_token hth_text_slot_id(uint64_t slot) {
    return (hearth_token)(uint32_t)slot; /* HTH_NO_TOKEN of a free one */
}

static inline uint64_t hth_pair_of(hearth_token left, hearth_token right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Read-only once loaded. A zeroed one is valid to free. */
typedef struct hth_vocab {
    hth_vocab_kind kind;
    bool raw;      /* merges work on UTF-8 characters; spaces stand for U+2581 in all texts here */
    uint32_t size; /* number of tokens */
    uint8_t *types;
    bool *ends;       /* the token ends a generation */
    hth_arena tables; /* holds bytes, offsets and texts */
    hth_arena merges; /* holds pairs */

    /* What each token adds to the output: the bytes it stands for; for control tokens and the like their own text. */
    char *bytes;
    uint32_t *offsets; /* size + 1 */
    uint32_t longest;  /* piece in bytes */

    /* Tokens that merging may produce, by their bytes. */
    uint64_t key; /* of both hashes */
    hth_text_slot *texts;
    size_t text_mask;
    hearth_token byte_token[256];

    hth_pair_slot *pairs; /* merges by rank; NULL under scores */
    size_t pair_mask;
    uint32_t *order; /* merges by score: a token's place, lower first; NULL under ranks */
    bool cuts_words; /* no token has a space behind another character: nothing merges across the front of a space */

    hth_specials specials;

    hearth_token bos, eos, eot, eom, unknown;
    bool add_bos, add_eos, add_space;
} hth_vocab;

/* Fill a zeroed vocabulary, with at most so many threads (0: as many as there are cores and help). Free it also after a
 * failure. */
hearth_status hth_vocab_load(hth_vocab *v, const hth_gguf *g, hth_vocab_kind kind, const hth_pre_row *pre, int threads,
                             hearth_error *err);
void hth_vocab_free(hth_vocab *v);

/* The most bytes that the vocabulary of a file takes while it is loaded and after. */
uint64_t hth_vocab_bytes(const hth_gguf *g, hth_vocab_kind kind);

/* Read the ids of special tokens, find the tokens that end a generation, and correct the types of tokens that are
 * known by their text. Needs size, types and ends (zeroed); called by hth_vocab_load. */
hearth_status hth_vocab_find_roles(hth_vocab *v, const hth_gguf *g, const hth_gguf_kv *tokens, const hth_pre_row *pre,
                                   hearth_error *err);

static inline uint64_t hth_vocab_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Slots are probed upwards from the low bits of a hash. */
uint64_t hth_vocab_hash(uint64_t key, const char *text, size_t size);

static inline size_t hth_vocab_pair_hash(uint64_t key, hearth_token left, hearth_token right) {
    return (size_t)hth_vocab_mix(key ^ hth_pair_of(left, right), 0x9E3779B97F4A7C15u);
}

/* The token with this text, of those that merging may produce. */
hearth_token hth_vocab_find(const hth_vocab *v, const char *text, size_t size);

static inline const hth_pair_slot *hth_vocab_pair(const hth_vocab *v, hearth_token left, hearth_token right) {
    for (size_t i = hth_vocab_pair_hash(v->key, left, right);; i++) {
        const hth_pair_slot *slot = &v->pairs[i & v->pair_mask];
        const uint64_t pair = atomic_load_explicit(&slot->pair, memory_order_relaxed);
        if (pair == hth_pair_of(left, right)) return slot;
        if (pair == HTH_FREE_SLOT) return NULL;
    }
}

#endif
