#include "cli/choosing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "cli/say.h"
#include "cli/verbs.h"

static bool parse_bias(const char *text, hearth_logit_bias *out) {
    const char *equals = strchr(text, '=');
    char id[16];
    int64_t token;
    double bias;
    if (!equals || equals - text >= (ptrdiff_t)sizeof id) return false;
    snprintf(id, sizeof id, "%.*s", (int)(equals - text), text);
    if (!hth_parse_int(id, false, &token) || token < 0 || token > INT32_MAX) return false;
    if (strcmp(equals + 1, "-inf") == 0) bias = -INFINITY;
    else if (!hth_parse_float(equals + 1, &bias)) return false;
    *out = (hearth_logit_bias){(hearth_token)token, (float)bias};
    return true;
}

static int parse_biases(hth_choosing *c) {
    c->bias = calloc(c->biases.count + 1, sizeof *c->bias);
    if (!c->bias) return hth_out_of_memory();
    for (; c->n_bias < c->biases.count; c->n_bias++) {
        if (parse_bias(c->biases.items[c->n_bias], &c->bias[c->n_bias])) continue;
        hth_complain("--logit-bias: '%s' is not ID=X, X a number or -inf", c->biases.items[c->n_bias]);
        return HTH_EXIT_USAGE;
    }
    return HTH_EXIT_OK;
}

int hth_choosing_check(hth_choosing *c, hth_args *args) {
    if (c->greedy) hearth_options_set(args->options, "temp", "0", NULL);
    if (c->grammar && c->schema)
        hth_complain("the constraint comes from --grammar or from --json-schema, not from both");
    else if (!hth_list_without_empty(&c->stops)) hth_complain("--stop: a stop string has a byte at least");
    else return parse_biases(c);
    return HTH_EXIT_USAGE;
}

static int forbid_ends(hth_choosing *c, const hearth_tokenizer *tokenizer) {
    int32_t size = hearth_tokenizer_size(tokenizer);
    hearth_logit_bias *grown = realloc(c->bias, (c->n_bias + (size_t)size + 1) * sizeof *grown);
    if (!grown) return hth_out_of_memory();
    c->bias = grown;
    for (int32_t id = 0; id < size; id++)
        if (hearth_tokenizer_ends_generation(tokenizer, id)) c->bias[c->n_bias++] = (hearth_logit_bias){id, -INFINITY};
    return HTH_EXIT_OK;
}

int hth_choosing_prepare(hth_choosing *c, const hearth_tokenizer *tokenizer) {
    int status = c->ignore_end ? forbid_ends(c, tokenizer) : HTH_EXIT_OK;
    if (status == HTH_EXIT_OK && (c->grammar || c->schema))
        status = hth_constrain(c->grammar, c->schema, tokenizer, &c->constrained);
    return status;
}

void hth_choosing_free(hth_choosing *c) {
    hth_constrained_free(&c->constrained);
    free(c->bias);
    hth_list_free(&c->stops);
    hth_list_free(&c->biases);
}

hearth_status hth_choosing_sampler(const hth_choosing *c, const hearth_options *options, int32_t vocab, int64_t history,
                                   hearth_sampler **out, hearth_error *err) {
    HTH_TRY(hearth_sampler_create(options, vocab, history, c->bias, c->n_bias, out, err));
    return hearth_sampler_set_matcher(*out, c->constrained.matcher, err);
}

hearth_status hth_choosing_stops(const hth_choosing *c, hearth_stop_matcher **out, hearth_error *err) {
    const hth_list *list = &c->stops;
    *out = NULL;
    if (list->count == 0) return HEARTH_OK;
    size_t *sizes = malloc(list->count * sizeof *sizes);
    if (!sizes) return hth_fail(err, HEARTH_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < list->count; i++) sizes[i] = strlen(list->items[i]);
    hearth_status status = hearth_stop_matcher_create(list->items, sizes, list->count, out, err);
    free(sizes);
    return status;
}
