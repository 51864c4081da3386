/* From ids to bytes. */
#include <string.h>

#include "text/tokenizer_internal.h"

static bool is_control(unsigned type) {
    return type == HTH_TOKEN_CONTROL || type == HTH_TOKEN_UNKNOWN;
}

hth_string hth_tokenizer_piece(const hearth_tokenizer *t, hearth_token id, bool special) {
    const hth_vocab *v = &t->vocab;
    if (is_control(v->types[id]) && !special) return (hth_string){"", 0};
    return (hth_string){v->bytes + v->offsets[id], v->offsets[id + 1] - v->offsets[id]};
}

static hearth_status check_id(const hearth_tokenizer *t, hearth_token id, hearth_error *err) {
    if (id >= 0 && (uint32_t)id < t->vocab.size) return HEARTH_OK;
    return hth_fail(err, HEARTH_BAD_ARGUMENT, "token %d is not one of the %u of the vocabulary", (int)id,
                    t->vocab.size);
}

hearth_status hearth_tokenizer_piece(const hearth_tokenizer *tokenizer, hearth_token id, int special, const char **data,
                                     size_t *size, hearth_error *err) {
    HTH_TRY(check_id(tokenizer, id, err));
    hth_string piece = hth_tokenizer_piece(tokenizer, id, special != 0);
    *data = piece.data;
    *size = piece.size;
    return HEARTH_OK;
}

hearth_status hearth_tokenizer_decode(const hearth_tokenizer *tokenizer, const hearth_token *ids, size_t count,
                                      int special, char *out, size_t capacity, size_t *size, hearth_error *err) {
    const hth_vocab *v = &tokenizer->vocab;
    size_t total = 0;
    /* Encoding put a space in front of each fragment: at the start and behind special tokens. */
    bool added_space = v->add_space;
    for (size_t i = 0; i < count; i++) {
        HTH_TRY(check_id(tokenizer, ids[i], err));
        hth_string piece = hth_tokenizer_piece(tokenizer, ids[i], special != 0);
        if (piece.size == 0) continue;
        bool fixed = is_control(v->types[ids[i]]) || v->types[ids[i]] == HTH_TOKEN_USER;
        if (added_space && !fixed && piece.data[0] == ' ') piece = (hth_string){piece.data + 1, piece.size - 1};
        added_space = v->add_space && fixed;
        if (total < capacity)
            memcpy(out + total, piece.data, piece.size < capacity - total ? piece.size : capacity - total);
        total += piece.size;
    }
    *size = total;
    if (total > capacity)
        return hth_fail(err, HEARTH_TOO_LONG, "the text has %zu bytes, and there is room for %zu", total, capacity);
    return HEARTH_OK;
}
