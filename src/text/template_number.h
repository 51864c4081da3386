/* Numbers from text, whatever the process's locale. */
#ifndef HTH_TEXT_TEMPLATE_NUMBER_H
#define HTH_TEXT_TEMPLATE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* Digits with an optional sign, point and exponent, and underscores, which are skipped; what it is has been checked.
 * Rounded to the nearest double; infinite when it is too large. False: longer than any that is read. */
bool hth_read_real(const char *text, size_t size, double *out);

#endif
