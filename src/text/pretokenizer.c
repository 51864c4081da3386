#include "text/pretokenizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/digits.h"
#include "text/pattern.h"

struct hth_pretokenizer {
    unsigned step_count;
    struct {
        hth_pattern *pattern; /* or NULL, and */
        const hth_digit_rule *digits;
    } steps[HTH_PRE_MAX_STEPS];
};

void hth_pretokenizer_free(hth_pretokenizer **pretokenizer) {
    hth_pretokenizer *p = *pretokenizer;
    if (p == NULL) return;
    for (unsigned i = 0; i < p->step_count; i++) hth_pattern_free(&p->steps[i].pattern);
    free(p);
    *pretokenizer = NULL;
}

hearth_status hth_pretokenizer_create(const hth_pre_row *row, hth_pretokenizer **out, hearth_error *err) {
    *out = NULL;
    hth_pretokenizer *p = calloc(1, sizeof *p);
    if (p == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for pre-tokenizer \"%s\"", row->name);
    hearth_status status = HEARTH_OK;
    for (; row->steps[p->step_count] != NULL && status == HEARTH_OK; p->step_count++) {
        assert(p->step_count < HTH_PRE_MAX_STEPS);
        const char *regex = row->steps[p->step_count];
        p->steps[p->step_count].digits = hth_digit_rule_find(regex);
        if (p->steps[p->step_count].digits == NULL)
            status = hth_pattern_compile(regex, &p->steps[p->step_count].pattern, err);
    }
    if (status != HEARTH_OK) hth_pretokenizer_free(&p);
    *out = p;
    return status;
}

/* Calls itself once a step, so HTH_PRE_MAX_STEPS deep whatever the text is. */
static hearth_status split_from(const hth_pretokenizer *p, unsigned step, const char *text, size_t size,
                                hth_piece_sink *sink, hearth_error *err) {
    if (step == p->step_count) return sink->piece(sink->context, text, size, err);
    hth_pattern_search search;
    hth_digit_search digits;
    const hth_digit_rule *rule = p->steps[step].digits;
    if (rule != NULL) hth_digits_start(&digits, rule, text, size);
    else hth_pattern_start(&search, p->steps[step].pattern, text, size);

    hearth_status status = HEARTH_OK;
    size_t from = 0, begin, end;
    while (status == HEARTH_OK && from < size) {
        bool found =
            rule != NULL ? hth_digits_next(&digits, from, &begin, &end) : hth_pattern_next(&search, from, &begin, &end);
        if (!found) begin = end = size;
        if (begin > from) status = split_from(p, step + 1, text + from, begin - from, sink, err);
        if (end > begin && status == HEARTH_OK) status = split_from(p, step + 1, text + begin, end - begin, sink, err);
        from = end;
    }
    sink->work += rule != NULL ? digits.work : search.work;
    return status;
}

hearth_status hth_pretokenizer_split(const hth_pretokenizer *pretokenizer, const char *text, size_t size,
                                     hth_piece_sink *sink, hearth_error *err) {
    return split_from(pretokenizer, 0, text, size, sink, err);
}
