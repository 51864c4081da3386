/* The regular expressions of pre-tokenizers, run in linear time.
 *
 * A pattern is compiled into a complete deterministic automaton over classes of characters, so a match costs two table
 * lookups a character, needs no stack and no memory, and cannot backtrack. Its meaning is that of the backtracking
 * engines for which these expressions were written: the leftmost match, and of those the one that the first
 * alternative and the greediest repetition lead to.
 *
 * The language: literals; sets such as [^\r\n\p{L}a-z\x{4E00}-\x{9FA5}]; \s \S \d and \p{..} of a general category or a
 * group of them (L M N P S Z); groups ( ) (?: ) (?i: ); | ? * + {n} {n,m}, all greedy; (?!X) for one set X, and $ for
 * the end of the text. A pattern that can match nothing at all never does: an empty match is no match.
 *
 * A byte that begins no well-formed UTF-8 character counts as one character of no category.
 */
#ifndef HTH_TEXT_PATTERN_H
#define HTH_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct hth_pattern hth_pattern;

/* HEARTH_UNSUPPORTED when the text is outside the language or beyond the compiler's fixed sizes. */
hearth_status hth_pattern_compile(const char *regex, hth_pattern **out, hearth_error *err);
void hth_pattern_free(hth_pattern **pattern); /* NULL is ignored; *pattern becomes NULL */

/* A walk over the matches in one text, left to right. */
typedef struct hth_pattern_search {
    const hth_pattern *pattern;
    const unsigned char *text;
    size_t size;
    uint64_t work; /* characters looked at so far: linear in the text */
    /* From any character in [barren_begin, barren_end), the automaton in state `barren` leads to no match any more:
     * what an earlier attempt found out, so that no run of characters is walked again and again in vain. */
    size_t barren_begin, barren_end;
    uint32_t barren;
} hth_pattern_search;

void hth_pattern_start(hth_pattern_search *search, const hth_pattern *pattern, const char *text, size_t size);

/* The first match that begins at or after `from`, which is at least the end of the match before. */
bool hth_pattern_next(hth_pattern_search *search, size_t from, size_t *begin, size_t *end);

#endif
