/* One call of encode: what it works with and what it counts. The tokenizer itself is only read. */
#ifndef HTH_TEXT_ENCODER_H
#define HTH_TEXT_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "hearth/tokenizer.h"
#include "text/vocab.h"

typedef struct hth_symbol hth_symbol;
typedef struct hth_candidate hth_candidate;
typedef struct hth_piece_cache hth_piece_cache;

typedef struct hth_encoder {
    const hth_vocab *vocab;
    bool whole_pieces; /* a piece that is a token is that token */

    hearth_token *out; /* ids beyond the capacity are counted only */
    size_t capacity, count;
    uint64_t work; /* looks at characters and pairs, added up: linear in the text, up to a logarithm */

    /* For long pieces, in bytes or symbols; grown when needed. */
    hth_symbol *symbols;
    size_t symbol_capacity;
    hth_candidate *heap;
    size_t heap_capacity;
    hth_piece_cache *cache; /* what short pieces became, or NULL */
} hth_encoder;

void hth_encoder_free(hth_encoder *e); /* what it allocated; not itself */

/* Have pieces that come again looked up: worth its memory for all but short texts. Goes without when there is none. */
void hth_encoder_use_cache(hth_encoder *e);

static inline void hth_encoder_put(hth_encoder *e, hearth_token id) {
    if (e->count < e->capacity) e->out[e->count] = id;
    e->count++;
}

/* Merge one piece and put its tokens. The piece is in the notation of the vocabulary (spaces for U+2581 if it is raw)
 * and smaller than 2 GiB. */
hearth_status hth_encode_piece(hth_encoder *e, const char *piece, size_t size, hearth_error *err);

#endif
