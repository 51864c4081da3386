/* Cutting text into the pieces inside which byte-pair merges happen.
 *
 * A pre-tokenizer is a list of steps, most of them patterns. The first step cuts the text; each further one cuts every
 * piece that came out so far. In a step the matches are pieces, and so is what lies between them: nothing is dropped.
 * A step sees one piece only, whose end is the end of the text for it.
 */
#ifndef HTH_TEXT_PRETOKENIZER_H
#define HTH_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a pre-tokenizer's name says of the tokenizer besides the pieces. */
enum {
    HTH_PRE_IGNORE_MERGES = 1, /* a piece that is a token is that token, without merging */
    HTH_PRE_ADD_BOS = 2,       /* BOS is added unless the file says otherwise */
    HTH_PRE_NO_BOS = 4,        /* there is no BOS unless the file names one */
    HTH_PRE_NFC = 8,           /* the model's own tokenizer normalises text to NFC */
    HTH_PRE_RAW = 16,          /* merges work on UTF-8 characters with spaces as U+2581, not on the byte alphabet */
    HTH_PRE_NEWLINES = 32      /* a piece of newlines that is a token is that token */
};

#define HTH_PRE_MAX_STEPS 7

/* A row of the table of known pre-tokenizers. */
typedef struct hth_pre_row {
    const char *name;
    unsigned flags;
    const char *const *steps; /* regular expressions, ended by NULL */
} hth_pre_row;

const hth_pre_row *hth_pre_find(const char *name, size_t size); /* NULL: not known */
const hth_pre_row *hth_pre_rows(size_t *count);

typedef struct hth_pretokenizer hth_pretokenizer;

hearth_status hth_pretokenizer_create(const hth_pre_row *row, hth_pretokenizer **out, hearth_error *err);
void hth_pretokenizer_free(hth_pretokenizer **pretokenizer); /* NULL is ignored; *pretokenizer becomes NULL */

/* Who gets the pieces, in the order of the text; none is empty. An error from it ends the cutting. */
typedef struct hth_piece_sink {
    hearth_status (*piece)(void *context, const char *text, size_t size, hearth_error *err);
    void *context;
    uint64_t work; /* characters looked at, added up: linear in the text */
} hth_piece_sink;

hearth_status hth_pretokenizer_split(const hth_pretokenizer *pretokenizer, const char *text, size_t size,
                                     hth_piece_sink *sink, hearth_error *err);

#endif
