/* The tokenizer object, for the files that implement its functions and for tests that count its work. */
#ifndef HTH_TEXT_TOKENIZER_INTERNAL_H
#define HTH_TEXT_TOKENIZER_INTERNAL_H

#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

struct hearth_tokenizer {
    hth_gguf *own;          /* the file, when the tokenizer opened it itself */
    const hth_pre_row *pre; /* NULL: the kind has no pre-tokenizer */
    hth_pretokenizer *pretokenizer;
    hth_vocab vocab;
    bool nfc;
    int64_t model_context; /* 0: the file does not say */
    uint64_t build_ns;     /* what building the tables took */
};

/* As hearth_tokenizer_encode; *work (may be NULL) becomes a count of the steps taken. */
hearth_status hth_tokenizer_encode(const hearth_tokenizer *t, const char *text, size_t size, unsigned flags,
                                   hearth_token *out, size_t capacity, size_t *count, uint64_t *work,
                                   hearth_error *err);

/* The bytes of a token, which must be in range. */
hth_string hth_tokenizer_piece(const hearth_tokenizer *t, hearth_token id, bool special);

#endif
