#include "text/template_loop.h"

#include "text/template_operate.h"

bool hth_loop_attribute(hth_work *w, const hth_loop *l, const hth_str *name, hth_value *out) {
    int64_t count = l->items->count;
    (void)w;
    if (hth_str_is(name, "index")) *out = hth_int(l->index + 1);
    else if (hth_str_is(name, "index0")) *out = hth_int(l->index);
    else if (hth_str_is(name, "first")) *out = hth_truth(l->index == 0);
    else if (hth_str_is(name, "last")) *out = hth_truth(l->index + 1 >= count);
    else if (hth_str_is(name, "length")) *out = hth_int(count);
    else if (hth_str_is(name, "revindex")) *out = hth_int(count - l->index);
    else if (hth_str_is(name, "revindex0")) *out = hth_int(count - l->index - 1);
    else if (hth_str_is(name, "depth")) *out = hth_int(1); /* it counts recursive loops only */
    else if (hth_str_is(name, "depth0")) *out = hth_int(0);
    else if (hth_str_is(name, "previtem")) *out = l->index > 0 ? l->items->items[l->index - 1] : hth_missing(name);
    else if (hth_str_is(name, "nextitem"))
        *out = l->index + 1 < count ? l->items->items[l->index + 1] : hth_missing(name);
    else return false;
    return true;
}
