/* The `loop` object of a for. */
#ifndef HTH_TEXT_TEMPLATE_LOOP_H
#define HTH_TEXT_TEMPLATE_LOOP_H

#include "text/template_value.h"

struct hth_loop {
    hth_items *items; /* what it goes over; may grow meanwhile */
    int64_t index;    /* of the item it is at, from 0; -1 before the first */
    bool seen;        /* `changed` was called: with last */
    hth_value last;
};

/* False when there is no such attribute. */
bool hth_loop_attribute(hth_work *w, const hth_loop *loop, const hth_str *name, hth_value *out);

#endif
