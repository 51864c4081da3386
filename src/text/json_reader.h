/* JSON to values, exactly: integers of 64 bits, doubles, strings of whole characters, members in their order (of two
 * with one name the last value counts). What cannot be kept is refused with its place, never rounded: larger integers,
 * numbers beyond a double, escapes that are half of a surrogate pair. */
#ifndef HTH_TEXT_JSON_READER_H
#define HTH_TEXT_JSON_READER_H

#include "text/template_value.h"

/* Strings are content of the request; lists and dicts are fixed. Nested at most HTH_MAX_NESTING deep; no recursion. */
bool hth_json_read(hth_work *w, const char *text, size_t size, hth_value *out);

#endif
