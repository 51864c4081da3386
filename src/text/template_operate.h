/* Operators, attributes, items and iteration, as Python and Jinja have them. False has failed the work. */
#ifndef HTH_TEXT_TEMPLATE_OPERATE_H
#define HTH_TEXT_TEMPLATE_OPERATE_H

#include "text/template_code.h"
#include "text/template_value.h"

/* Fails by the name of what is undefined; true when it is not undefined. */
bool hth_use(hth_work *w, hth_value v);
/* Undefined, with what it would have been. */
hth_value hth_missing(const hth_str *name);

/* a.name: method first, then key. a[key]: the other way round. */
bool hth_attribute(hth_work *w, hth_value v, const hth_str *name, hth_value *out);
bool hth_item(hth_work *w, hth_value v, hth_value key, hth_value *out);
/* a.b.0 of a dotted name, as filters take them; from undefined on it is an error. */
bool hth_path(hth_work *w, hth_value v, hth_value path, hth_value *out);
bool hth_slice(hth_work *w, hth_value v, const hth_value bounds[3], hth_value *out);

bool hth_binary(hth_work *w, int sign, hth_value a, hth_value b, hth_value *out);
bool hth_compare_values(hth_work *w, hth_compare how, hth_value a, hth_value b, bool *out);
bool hth_negate(hth_work *w, hth_value v, bool minus, hth_value *out);

/* What a loop over it meets. A list or tuple is the value itself, not a copy. */
bool hth_iterate(hth_work *w, hth_value v, hth_items **out);
/* Of something that has one; false has failed. */
bool hth_length(hth_work *w, hth_value v, int64_t *out);
/* Printed as a string; a string is itself. */
const hth_str *hth_text_of(hth_work *w, hth_value v);
int64_t hth_range_at(const hth_range *r, int64_t i);

#endif
