/* Text to token ids and back, from the vocabulary in a GGUF file. Usable without an engine.
 *
 * Threads: a hearth_tokenizer is read-only after open and may be shared by any number of threads. A hearth_detokenizer
 * and a hearth_stop_matcher belong to one stream and one thread at a time.
 *
 * Text is bytes with a size; it need not be valid UTF-8 and may contain NUL. Encode then decode gives the bytes back,
 * with exceptions that are the models' own: normalisation to NFC; white space that a few models' special tokens
 * swallow; U+2581, which comes back as a space from vocabularies that write a space so (kinds llama and gemma4); and a
 * byte for which the vocabulary has no token, which is dropped (some of kind gpt2 lack a few control characters, and
 * bytes that UTF-8 never uses).
 */
#ifndef HEARTH_TOKENIZER_H
#define HEARTH_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "hearth/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_tokenizer hearth_tokenizer;
typedef int32_t hearth_token;

typedef struct hearth_tokenizer_options {
    const char *pre; /* NULL: the file's pre-tokenizer; else the name of the one to use instead */
    int nfc;         /* -1: as the model's own tokenizer does (known by pre-tokenizer); 0 off; 1 on */
    int threads;     /* that build its tables, at most; 0: as many as the machine has cores and help */
} hearth_tokenizer_options;

/* Read the vocabulary of a GGUF file (a file with a vocabulary and no tensors is enough). options may be NULL.
 * HEARTH_UNSUPPORTED names a tokenizer kind or pre-tokenizer of the file that is not known; HEARTH_BAD_OPTION: the one
 * in options is not, or there is none to choose. */
HEARTH_API hearth_status hearth_tokenizer_open(const char *path, const hearth_tokenizer_options *options,
                                               hearth_tokenizer **out, hearth_error *err);
HEARTH_API void hearth_tokenizer_close(hearth_tokenizer **tokenizer); /* NULL is ignored; *tokenizer becomes NULL */

enum {
    HEARTH_ENCODE_SPECIAL = 1, /* text of control tokens ("<|im_end|>") becomes those tokens */
    HEARTH_ENCODE_ADD = 2      /* add BOS / EOS where the file says so */
};

/* Encode `size` bytes. Writes at most `capacity` ids to `out` (may be NULL when capacity is 0) and the number of ids
 * the text has to *count, also when it is more than capacity (then nothing beyond capacity is written and the status is
 * HEARTH_TOO_LONG). Time is linear in size up to a logarithm; the C stack used does not depend on the text. */
HEARTH_API hearth_status hearth_tokenizer_encode(const hearth_tokenizer *tokenizer, const char *text, size_t size,
                                                 unsigned flags, hearth_token *out, size_t capacity, size_t *count,
                                                 hearth_error *err);

/* What a prompt's maker knows of its text. */
typedef struct hearth_encode_parts {
    const size_t *plain;   /* begin and end of each stretch that is only text, in bytes, in order */
    size_t n_plain;        /* stretches */
    const size_t *offsets; /* bytes, in order, whose positions are asked for */
    size_t *positions; /* gets for each: the number of tokens in front of it that the text up to it alone has, too */
    size_t n_offsets;
} hearth_encode_parts;

/* As hearth_tokenizer_encode, with HEARTH_ENCODE_SPECIAL minding the stretches: text of a control token of which a byte
 * is in one stays text. Pieces that merge are the same as without stretches. HEARTH_ENCODE_ADD adds no second BOS to a
 * text that begins with one. Positions are right when the ids had room. */
HEARTH_API hearth_status hearth_tokenizer_encode_parts(const hearth_tokenizer *tokenizer, const char *text, size_t size,
                                                       unsigned flags, const hearth_encode_parts *parts,
                                                       hearth_token *out, size_t capacity, size_t *count,
                                                       hearth_error *err);

/* The bytes of one token: what it adds to the output. Control tokens are empty unless `special`. *data lives as long as
 * the tokenizer. HEARTH_BAD_ARGUMENT when the id is out of range. */
HEARTH_API hearth_status hearth_tokenizer_piece(const hearth_tokenizer *tokenizer, hearth_token id, int special,
                                                const char **data, size_t *size, hearth_error *err);

/* Bytes of a whole sequence; same writing rule as encode (*size is the full size). A leading space that encoding added
 * (SentencePiece) is removed, so decode(encode(x)) == x. */
HEARTH_API hearth_status hearth_tokenizer_decode(const hearth_tokenizer *tokenizer, const hearth_token *ids,
                                                 size_t count, int special, char *out, size_t capacity, size_t *size,
                                                 hearth_error *err);

HEARTH_API int32_t hearth_tokenizer_size(const hearth_tokenizer *tokenizer);     /* number of ids */
HEARTH_API const char *hearth_tokenizer_kind(const hearth_tokenizer *tokenizer); /* "gpt2", "llama", "gemma4" */
HEARTH_API const char *hearth_tokenizer_pre(const hearth_tokenizer *tokenizer); /* pre-tokenizer in force, "" if none */
HEARTH_API hearth_token hearth_tokenizer_bos(const hearth_tokenizer *tokenizer); /* -1 when the model has none */
HEARTH_API hearth_token hearth_tokenizer_eos(const hearth_tokenizer *tokenizer); /* -1 when the model has none */
/* Positions that the model of the file was made for; 0 when the file does not say. */
HEARTH_API int64_t hearth_tokenizer_model_context(const hearth_tokenizer *tokenizer);
HEARTH_API int hearth_tokenizer_adds_bos(const hearth_tokenizer *tokenizer);
HEARTH_API int hearth_tokenizer_adds_eos(const hearth_tokenizer *tokenizer);
HEARTH_API int hearth_tokenizer_ends_generation(const hearth_tokenizer *tokenizer,
                                                hearth_token id); /* 1 for EOS, EOT … */

/* Streaming: tokens in, whole UTF-8 characters out. */
typedef struct hearth_detokenizer hearth_detokenizer;

/* A stream with nothing held back. The tokenizer must outlive it. With `special`, control tokens are shown. */
HEARTH_API hearth_status hearth_detokenizer_create(const hearth_tokenizer *tokenizer, int special,
                                                   hearth_detokenizer **out, hearth_error *err);
/* NULL is ignored; *detokenizer becomes NULL. */
HEARTH_API void hearth_detokenizer_free(hearth_detokenizer **detokenizer);
/* Feed one token; *data and *size are the bytes now complete (possibly none), valid until the next call. An incomplete
 * character is held back; a byte that can never become part of one comes out as U+FFFD. */
HEARTH_API hearth_status hearth_detokenizer_feed(hearth_detokenizer *detokenizer, hearth_token id, const char **data,
                                                 size_t *size, hearth_error *err);
/* End of the stream: what is held back, as U+FFFD; the detokenizer is then as new. */
HEARTH_API void hearth_detokenizer_finish(hearth_detokenizer *detokenizer, const char **data, size_t *size);

/* Stop strings, matched on text across tokens. */
typedef struct hearth_stop_matcher hearth_stop_matcher;

/* `count` stop strings, copied; an empty one is HEARTH_BAD_ARGUMENT. */
HEARTH_API hearth_status hearth_stop_matcher_create(const char *const *strings, const size_t *sizes, size_t count,
                                                    hearth_stop_matcher **out, hearth_error *err);
HEARTH_API void hearth_stop_matcher_free(hearth_stop_matcher **matcher);
/* Feed text; *data and *size are the bytes that may be shown (everything that cannot be the start of a stop string),
 * valid until the next call. *stopped is 1 once a stop string is complete: its text and what follows are never shown.
 */
HEARTH_API hearth_status hearth_stop_matcher_feed(hearth_stop_matcher *matcher, const char *text, size_t text_size,
                                                  const char **data, size_t *size, int *stopped, hearth_error *err);
/* End of the stream: what was held back and turned out to be no stop string. */
HEARTH_API void hearth_stop_matcher_finish(hearth_stop_matcher *matcher, const char **data, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
