/* What pre-tokenizers know of a character: its general category, and whether it is white space.
 *
 * The table is frozen in the source (unicode_table.c says where it comes from), so that ids do not depend on the
 * Unicode version of a system library.
 */
#ifndef HTH_TEXT_UNICODE_H
#define HTH_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of the table. */
typedef enum hth_category {
    HTH_CN,
    HTH_LU,
    HTH_LL,
    HTH_LT,
    HTH_LM,
    HTH_LO,
    HTH_MN,
    HTH_MC,
    HTH_ME,
    HTH_ND,
    HTH_NL,
    HTH_NO,
    HTH_PC,
    HTH_PD,
    HTH_PS,
    HTH_PE,
    HTH_PI,
    HTH_PF,
    HTH_PO,
    HTH_SM,
    HTH_SC,
    HTH_SK,
    HTH_SO,
    HTH_ZS,
    HTH_ZL,
    HTH_ZP,
    HTH_CC,
    HTH_CF,
    HTH_CS,
    HTH_CO,
    HTH_CATEGORY_COUNT
} hth_category;

#define HTH_CATEGORY_BLOCK 128

/* Which row of the table the code points from 128 i on have, and the rows: '0' + category. */
extern const uint16_t hth_category_block[0x110000 / HTH_CATEGORY_BLOCK];
extern const char hth_category_table[][HTH_CATEGORY_BLOCK];

/* c is at most 0x10FFFF. */
static inline hth_category hth_category_of(uint32_t c) {
    const char *row = hth_category_table[hth_category_block[c / HTH_CATEGORY_BLOCK]];
    return (hth_category)(row[c % HTH_CATEGORY_BLOCK] - '0');
}

/* The White_Space property: the separators, and seven control characters. */
static inline bool hth_is_space(uint32_t c, hth_category category) {
    if (category == HTH_CC) return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85;
    return category == HTH_ZS || category == HTH_ZL || category == HTH_ZP;
}

#endif
