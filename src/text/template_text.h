/* Python's string functions, for the filters and methods that share them. NULL has failed the work. */
#ifndef HTH_TEXT_TEMPLATE_TEXT_H
#define HTH_TEXT_TEMPLATE_TEXT_H

#include "text/template_value.h"

bool hth_is_python_space(uint32_t c); /* str.isspace */

typedef enum hth_case { HTH_UPPER, HTH_LOWER, HTH_CAPITALIZE, HTH_TITLE, HTH_SWAP } hth_case;
const hth_str *hth_str_case(hth_work *w, const hth_str *s, hth_case how);

enum { HTH_LEFT = 1, HTH_RIGHT = 2 };
/* chars NULL: white space. */
const hth_str *hth_str_strip(hth_work *w, const hth_str *s, const hth_str *chars, int sides);
/* sep NULL: at stretches of white space. max < 0: no limit. */
hth_items *hth_str_split(hth_work *w, const hth_str *s, const hth_str *sep, int64_t max, bool from_right);
hth_items *hth_str_lines(hth_work *w, const hth_str *s);
/* & < > ' " as entities; markup is as it is. The result is markup. */
const hth_str *hth_str_escape(hth_work *w, const hth_str *s);
const hth_str *hth_str_replace(hth_work *w, const hth_str *s, const hth_str *from, const hth_str *to, int64_t max);
/* The byte at which it stands first or last within [from, to); SIZE_MAX: nowhere. */
size_t hth_str_find(const hth_str *s, const hth_str *what, size_t from, size_t to, bool last);
size_t hth_str_chars_before(const hth_str *s, size_t at); /* code points in front of a byte */
/* `width` code points, filled on the sides given. */
const hth_str *hth_str_pad(hth_work *w, const hth_str *s, int64_t width, uint32_t fill, int sides);
/* "{} {0} {name}".format(...); named: pairs of name and value. */
const hth_str *hth_str_format(hth_work *w, const hth_str *s, const hth_value *values, size_t count,
                              const hth_value *named, size_t n_named);
/* isdigit, isalpha, ... by its name; -1: no such. */
int hth_str_is_class(const hth_str *s, const char *name);

#endif
