/* The tokens that a constrained text may be made of, in the order of their bytes: a trie, laid out depth first. */
#ifndef HTH_TEXT_TOKEN_INDEX_H
#define HTH_TEXT_TOKEN_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearth/constraint.h"
#include "hearth/tokenizer.h"

enum { HTH_TOKEN_MAX_BYTES = 1024 }; /* longer tokens are in no constrained text */

/* Node 0 .. n_nodes - 1: its subtree is the nodes up to next[node], its tokens have the ranks first[node] up to those
 * of the node behind it. A token's rank is its place in the order. */
struct hearth_token_index {
    const hearth_tokenizer *tokenizer; /* not owned */
    uint32_t vocab;                    /* tokens of the tokenizer */
    uint32_t words;                    /* of 64 bits, of a mask with a bit a token */
    uint32_t n_nodes, n_tokens;
    uint32_t longest;  /* in bytes */
    uint8_t *bytes;    /* [n_nodes] the last byte of the texts below the node */
    uint16_t *depths;  /* [n_nodes] bytes before that */
    uint32_t *next;    /* [n_nodes] */
    uint32_t *first;   /* [n_nodes + 1] */
    hearth_token *ids; /* [n_tokens] by rank */
    uint64_t *usable;  /* [words] the same as a mask */
    uint64_t *ends;    /* [words] tokens that end a generation */
};

static inline bool hth_mask_has(const uint64_t *mask, uint32_t id) {
    return mask[id / 64] >> id % 64 & 1;
}

static inline void hth_mask_add(uint64_t *mask, uint32_t id) {
    mask[id / 64] |= UINT64_C(1) << id % 64;
}

#endif
