/* Opening a tokenizer from a GGUF that is already mapped: the engine and the command line share one mapping. */
#ifndef HTH_TEXT_TOKENIZER_H
#define HTH_TEXT_TOKENIZER_H

#include <stdbool.h>

#include "gguf/gguf.h"
#include "hearth/tokenizer.h"

/* As hearth_tokenizer_open. The tokenizer keeps pointers into the mapping: g must outlive it, and is not closed by it.
 */
hearth_status hth_tokenizer_from_gguf(const hth_gguf *g, const hearth_tokenizer_options *options,
                                      hearth_tokenizer **out, hearth_error *err);

/* The most bytes that the tokenizer of a file takes, or a limit above it; 0 when the file has none. Refuses nothing:
 * what is wrong with the file, building says. */
uint64_t hth_tokenizer_bytes(const hth_gguf *g);

/* The file that the tokenizer has opened itself; NULL for one made by hth_tokenizer_from_gguf. */
const hth_gguf *hth_tokenizer_file(const hearth_tokenizer *tokenizer);

/* What building its tables took. */
uint64_t hth_tokenizer_build_ns(const hearth_tokenizer *tokenizer);

/* Whether it normalises text to NFC. */
bool hth_tokenizer_nfc(const hearth_tokenizer *tokenizer);

/* Names of the known pre-tokenizers, separated by spaces; static storage. */
const char *hth_tokenizer_pre_names(void);

#endif
