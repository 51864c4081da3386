/* Unicode normalisation form C, as the tokenizers of some models apply it before they split text. */
#ifndef HTH_TEXT_NORMALIZE_H
#define HTH_TEXT_NORMALIZE_H

#include <stddef.h>

#include "base/status.h"

/* *out becomes the normal form of the text, allocated and the caller's to free; or NULL when the text has that form
 * already. Bytes that are no well-formed UTF-8 stay where they are, and nothing composes across them. Linear time. */
hearth_status hth_normalize(const char *text, size_t size, char **out, size_t *out_size, hearth_error *err);

#endif
