/* Text and token ids that a verb is given. The functions answer an exit status; when it is not HTH_EXIT_OK, why is
 * printed and nothing is left to free. */
#ifndef HTH_CLI_INPUT_H
#define HTH_CLI_INPUT_H

#include <stddef.h>

#include "hearth/tokenizer.h"

typedef struct hth_text {
    char *data; /* NULL only when nothing was read */
    size_t size;
} hth_text;

typedef struct hth_tokens {
    hearth_token *ids;
    size_t count;
} hth_tokens;

/* The most bytes that are read of a text that a model is to read, and of what is written by hand: a chat's messages,
 * templates, requests, schemas, grammars. More is refused before memory is. */
#define HTH_MOST_TEXT    ((size_t)1 << 30)
#define HTH_MOST_BY_HAND ((size_t)64 << 20)

/* The bytes of `text` (-p), of the file (-f; "-" is standard input), or, when both are NULL, of standard input. Bytes
 * are taken as they are, a last newline too; at most `most`. */
int hth_read_text(const char *text, const char *file, size_t most, hth_text *out);

/* What is given as TEXT or @FILE (without its last newline), UTF-8; a text that begins with @ is written with two. */
int hth_read_text_or_file(const char *given, hth_text *out);

/* Ids separated by commas or blanks, brackets ignored. Between two commas has to be one. */
int hth_parse_tokens(const char *text, size_t size, hth_tokens *out);
/* The same for numbers of any kind of count: from min to max, at least one. `what` names the flag. */
int hth_parse_numbers(const char *what, const char *text, int64_t min, int64_t max, int64_t **out, size_t *count);

/* The ids of a text; flags as in hearth_tokenizer_encode. */
int hth_encode(const hearth_tokenizer *tokenizer, hth_text text, unsigned flags, hth_tokens *out);

#endif
