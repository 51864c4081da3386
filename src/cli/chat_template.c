#include "cli/chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/file.h"

/* ---- The template ---- */

static bool find_entry(const hearth_file *file, const char *key, uint64_t *at) {
    hearth_file_entry entry;
    for (*at = 0; *at < hearth_file_entry_count(file); ++*at)
        if (hearth_file_entry_at(file, *at, &entry, NULL) == HEARTH_OK && entry.key_size == strlen(key) &&
            memcmp(entry.key, key, entry.key_size) == 0)
            return true;
    return false;
}

static bool find_template(const hearth_file *file, const char *name, bool tools, uint64_t *at) {
    char key[128];
    if (name != NULL) {
        snprintf(key, sizeof key, "tokenizer.chat_template.%.80s", name);
        return find_entry(file, key, at);
    }
    uint64_t tool_use;
    bool has_tool_use = find_entry(file, "tokenizer.chat_template.tool_use", &tool_use);
    if (!(has_tool_use && tools) && find_entry(file, "tokenizer.chat_template", at)) return true;
    *at = tool_use;
    return has_tool_use;
}

int hth_read_chat_template(const char *path, const char *name, bool tools, hth_text *out) {
    hearth_file *file;
    hearth_error err = {HEARTH_OK, ""};
    uint64_t at;
    const char *data;
    size_t size;
    *out = (hth_text){NULL, 0};
    if (hearth_file_open(path, &file, &err) != HEARTH_OK) return hth_complain_error(&err);
    int status = HTH_EXIT_OK;
    if (find_template(file, name, tools, &at)) {
        if (hearth_file_string(file, at, 0, &data, &size, &err) != HEARTH_OK) {
            status = hth_complain_error(&err);
        } else if (!(out->data = malloc(size + 1))) {
            status = hth_out_of_memory();
        } else {
            memcpy(out->data, data, size);
            out->size = size;
        }
    }
    hearth_file_close(&file);
    return status;
}

void hth_token_text(const hearth_tokenizer *tokenizer, hearth_token id, char out[HTH_MAX_TOKEN_TEXT]) {
    const char *data = "";
    size_t size = 0;
    if (id >= 0) hearth_tokenizer_piece(tokenizer, id, 1, &data, &size, NULL);
    if (size >= HTH_MAX_TOKEN_TEXT) size = 0;
    memcpy(out, data, size);
    out[size] = 0;
}

int hth_chat_template_open(const char *path, const char *file, const hearth_tokenizer *tokenizer,
                           hth_chat_template *out) {
    hth_text source;
    hearth_error err = {HEARTH_OK, ""};
    *out = (hth_chat_template){.template = NULL};
    int status = file ? hth_read_text(NULL, file, HTH_MOST_BY_HAND, &source)
                      : hth_read_chat_template(path, NULL, false, &source);
    if (status != HTH_EXIT_OK || !source.data) return status;
    hth_token_text(tokenizer, hearth_tokenizer_bos(tokenizer), out->bos);
    hth_token_text(tokenizer, hearth_tokenizer_eos(tokenizer), out->eos);
    out->format = hearth_output_format_detect(source.data, source.size);
    if (hearth_template_create(source.data, source.size, &out->template, &err) != HEARTH_OK) {
        hth_complain("%s%s%s", file ? file : "", file ? ": " : "", err.text);
        status = HTH_EXIT_FAILED;
    }
    free(source.data);
    return status;
}

void hth_chat_template_free(hth_chat_template *t) {
    hearth_template_free(&t->template);
}

int hth_chat_template_render(const hth_chat_template *t, hth_text request, int marks, hearth_rendering **out) {
    const hearth_template_variable variables[] = {{"bos_token", t->bos}, {"eos_token", t->eos}};
    const hearth_template_options options = {
        .variables = variables, .n_variables = sizeof variables / sizeof *variables, .marks = marks};
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_template_render(t->template, request.data, request.size, &options, out, &err) == HEARTH_OK)
        return HTH_EXIT_OK;
    hth_complain("%s%s", err.status == HEARTH_REFUSED ? "the chat template refuses this: " : "", err.text);
    return HTH_EXIT_FAILED;
}

/* ---- Its tokens ---- */

/* The stretches of the request's text and the marks behind `from`, counted from there; first: the first of those. */
static size_t cut_parts(const hearth_rendering *r, size_t from, size_t *plain, size_t *offsets, size_t *first) {
    size_t n_plain = 0;
    for (size_t i = 0; i < r->n_segments; i++) {
        if (!r->segments[i].content || r->segments[i].end <= from) continue;
        plain[2 * n_plain] = r->segments[i].begin > from ? r->segments[i].begin - from : 0;
        plain[2 * n_plain++ + 1] = r->segments[i].end - from;
    }
    for (*first = 0; *first < r->n_marks && r->marks[*first].offset < from;) ++*first;
    for (size_t i = *first; i < r->n_marks; i++) offsets[i] = r->marks[i].offset - from;
    return n_plain;
}

int hth_encode_rendering(const hearth_tokenizer *tokenizer, const hearth_rendering *r, size_t from, hth_tokens *out,
                         size_t *positions) {
    hearth_error err = {HEARTH_OK, ""};
    size_t capacity = r->size - from + 16; /* a token has a byte at least, but for those that are added */
    size_t *plain = malloc((2 * r->n_segments + 1) * sizeof *plain);
    size_t *offsets = malloc((r->n_marks + 1) * sizeof *offsets), *found = calloc(r->n_marks + 1, sizeof *found);
    int status = HTH_EXIT_OK;
    *out = (hth_tokens){malloc(capacity * sizeof *out->ids), 0};
    if (!plain || !offsets || !found || !out->ids) {
        status = hth_out_of_memory();
    } else {
        size_t first, n_plain = cut_parts(r, from, plain, offsets, &first);
        const hearth_encode_parts parts = {plain, n_plain, offsets + first, found + first, r->n_marks - first};
        unsigned flags = HEARTH_ENCODE_SPECIAL | (from == 0 ? HEARTH_ENCODE_ADD : 0);
        if (hearth_tokenizer_encode_parts(tokenizer, r->text + from, r->size - from, flags, &parts, out->ids, capacity,
                                          &out->count, &err) != HEARTH_OK)
            status = hth_complain_error(&err);
        if (positions) memcpy(positions, found, r->n_marks * sizeof *found);
    }
    free(plain);
    free(offsets);
    free(found);
    return status;
}
