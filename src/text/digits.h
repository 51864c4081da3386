/* Three regular expressions that group the digits of a number from its right end. They look ahead over a whole run of
 * digits, which no table of states can do; counting can. */
#ifndef HTH_TEXT_DIGITS_H
#define HTH_TEXT_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hth_digit_rule hth_digit_rule;

const hth_digit_rule *hth_digit_rule_find(const char *regex); /* NULL: none of the three */

/* The cuts in one text, left to right: used as hth_pattern_search is. */
typedef struct hth_digit_search {
    const hth_digit_rule *rule;
    const char *text;
    size_t size;
    size_t run_end;    /* end of the run of digits that was counted last */
    size_t run_digits; /* digits of it from the position asked for last */
    uint64_t work;
} hth_digit_search;

void hth_digits_start(hth_digit_search *search, const hth_digit_rule *rule, const char *text, size_t size);
bool hth_digits_next(hth_digit_search *search, size_t from, size_t *begin, size_t *end);

#endif
