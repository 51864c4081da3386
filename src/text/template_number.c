#include "text/template_number.h"

#include <locale.h>
#include <stdlib.h>

enum { LONGEST = 1100 }; /* characters: more than the longest that rounding depends on */

bool hth_read_real(const char *text, size_t size, double *out) {
    char digits[LONGEST + 1];
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '_') continue;
        if (n == LONGEST) return false;
        digits[n++] = text[i];
    }
    digits[n] = 0;
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return false;
    *out = strtod_l(digits, NULL, c);
    freelocale(c);
    return true;
}
