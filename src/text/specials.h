/* Finding the tokens that are cut out of a text before anything else: control tokens by their text, and user-defined
 * ones. At each place the longest one counts; the first place wins. */
#ifndef HTH_TEXT_SPECIALS_H
#define HTH_TEXT_SPECIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "hearth/tokenizer.h"

typedef struct hth_special {
    const char *text;
    uint32_t size; /* not 0 */
    hearth_token id;
    bool control;      /* found only where control tokens are asked for */
    bool strip_before; /* white space in front of it is dropped */
    bool strip_after;
} hth_special;

typedef struct hth_specials {
    hth_special *list; /* in the order of their bytes, a prefix before what it begins; no text twice */
    uint32_t count;
    uint32_t first[257]; /* those that begin with byte b are list[first[b]] to list[first[b + 1] - 1] */
} hth_specials;

/* Put a filled list in order. Of several with one text, the one with the highest id stays. */
void hth_specials_index(hth_specials *specials);

/* The first special token in text[from, size), or NULL. Costs at most the length of the longest one a byte. */
const hth_special *hth_specials_find(const hth_specials *specials, const char *text, size_t size, size_t from,
                                     bool control, size_t *begin);

/* The longest one at the start of the text, which is not empty; NULL when there is none. */
const hth_special *hth_specials_at(const hth_specials *specials, const char *text, size_t size, bool control);

#endif
