/* Tokens in, whole characters out. Between two calls the detokenizer holds at most three bytes: a character that is
 * not complete yet. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_internal.h"

enum { MAX_HELD = 3, REPLACEMENT_SIZE = 3 };

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

struct hearth_detokenizer {
    const hearth_tokenizer *tokenizer;
    bool special;
    unsigned char *in; /* what is held, then the piece at hand */
    size_t held;
    char *out; /* three times as large: every byte of `in` may become U+FFFD */
};

hearth_status hearth_detokenizer_create(const hearth_tokenizer *tokenizer, int special, hearth_detokenizer **out,
                                        hearth_error *err) {
    size_t most = (size_t)tokenizer->vocab.longest + MAX_HELD;
    hearth_detokenizer *d = *out = calloc(1, sizeof *d);
    if (d != NULL) {
        d->tokenizer = tokenizer;
        d->special = special != 0;
        d->in = malloc(most);
        d->out = malloc(most * REPLACEMENT_SIZE);
        if (d->in != NULL && d->out != NULL) return HEARTH_OK;
    }
    hearth_detokenizer_free(out);
    return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a detokenizer");
}

void hearth_detokenizer_free(hearth_detokenizer **detokenizer) {
    hearth_detokenizer *d = *detokenizer;
    if (d == NULL) return;
    free(d->in);
    free(d->out);
    free(d);
    *detokenizer = NULL;
}

/* How many bytes at p are the longest beginning of a well-formed character, at least 1; *whole when they are all of
 * one, *open when more bytes could make them one. */
static size_t character_prefix(const unsigned char *p, size_t size, bool *whole, bool *open) {
    unsigned char lead = p[0], low = 0x80, high = 0xBF; /* bounds of the second byte: no overlong form, no surrogate */
    size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    size_t at = 1;
    for (; at < length && at < size && p[at] >= low && p[at] <= high; at++) low = 0x80, high = 0xBF;
    *whole = at == length;
    *open = at < length && at == size;
    return at;
}

hearth_status hearth_detokenizer_feed(hearth_detokenizer *detokenizer, hearth_token id, const char **data, size_t *size,
                                      hearth_error *err) {
    hearth_detokenizer *d = detokenizer;
    const char *piece;
    size_t piece_size, count = 0;
    HTH_TRY(hearth_tokenizer_piece(d->tokenizer, id, d->special, &piece, &piece_size, err));
    memcpy(d->in + d->held, piece, piece_size);
    size_t in_size = d->held + piece_size, at = 0;
    d->held = 0;
    while (at < in_size) {
        bool whole, open;
        size_t length = character_prefix(d->in + at, in_size - at, &whole, &open);
        if (open) {
            d->held = length;
            break;
        }
        memcpy(d->out + count, whole ? (const char *)d->in + at : REPLACEMENT, whole ? length : REPLACEMENT_SIZE);
        count += whole ? length : REPLACEMENT_SIZE;
        at += length;
    }
    memmove(d->in, d->in + at, d->held);
    *data = d->out;
    *size = count;
    return HEARTH_OK;
}

void hearth_detokenizer_finish(hearth_detokenizer *detokenizer, const char **data, size_t *size) {
    *data = REPLACEMENT;
    *size = detokenizer->held > 0 ? REPLACEMENT_SIZE : 0;
    detokenizer->held = 0;
}
