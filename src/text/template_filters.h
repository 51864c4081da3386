/* What the files of filters share: each filter is a function of the value, its arguments in the order of its names, and
 * the call itself. */
#ifndef HTH_TEXT_TEMPLATE_FILTERS_H
#define HTH_TEXT_TEMPLATE_FILTERS_H

#include "text/template_builtins.h"
#include "text/template_operate.h"

typedef bool hth_filter(hth_env *env, hth_value v, const hth_value *a, const hth_call *call, hth_value *out);

/* template_sequences.c */
hth_filter hth_filter_batch, hth_filter_dictsort, hth_filter_first, hth_filter_groupby, hth_filter_items,
    hth_filter_join, hth_filter_last, hth_filter_list, hth_filter_map, hth_filter_max, hth_filter_min,
    hth_filter_reject, hth_filter_rejectattr, hth_filter_reverse, hth_filter_select, hth_filter_selectattr,
    hth_filter_slice, hth_filter_sort, hth_filter_sum, hth_filter_unique;

static inline bool hth_out_str(const hth_str *s, hth_value *out) {
    *out = hth_string_value(s);
    return s != NULL;
}

static inline bool hth_out_list(hth_items *l, hth_value *out) {
    *out = hth_list_value(l);
    return l != NULL;
}

#endif
