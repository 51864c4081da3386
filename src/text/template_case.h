/* The case mappings that change the number of characters. */
#ifndef HTH_TEXT_TEMPLATE_CASE_H
#define HTH_TEXT_TEMPLATE_CASE_H

#include <stddef.h>
#include <stdint.h>

typedef struct hth_special_case {
    uint32_t character;
    const char *upper, *title; /* UTF-8, NUL-terminated */
} hth_special_case;

extern const hth_special_case hth_special_cases[]; /* in the order of the characters */
extern const size_t hth_special_case_count;

#endif
