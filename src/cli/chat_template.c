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

/* ---- What it is told ---- */

/* Whether a text is JSON: a template that looks at nothing takes it as a variable. */
static bool is_json(const char *text) {
    static const char request[] = "{\"messages\": []}";
    const hearth_template_variable variable = {.name = "value", .text = text, .is_json = 1};
    const hearth_template_options options = {.variables = &variable, .n_variables = 1, .marks = -1};
    hearth_template *nothing = NULL;
    hearth_rendering *rendering = NULL;
    bool is = hearth_template_create("", 0, &nothing, NULL) == HEARTH_OK &&
              hearth_template_render(nothing, request, sizeof request - 1, &options, &rendering, NULL) == HEARTH_OK;
    hearth_rendering_free(&rendering);
    hearth_template_free(&nothing);
    return is;
}

/* NAME=VALUE, which the template has to look at. */
static int add_argument(hth_chat_template *t, const char *given) {
    static const char *const ours[] = {"messages", "tools", "add_generation_prompt"};
    const char *equals = strchr(given, '=');
    if (!equals || equals == given) {
        hth_complain("--template-arg: '%s' is not NAME=VALUE", given);
        return HTH_EXIT_USAGE;
    }
    char *name = strndup(given, (size_t)(equals - given));
    if (!name) return hth_out_of_memory();
    t->names[t->n_names++] = name;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (strcmp(name, ours[i]) != 0) continue;
        hth_complain("--template-arg: '%s' is set by the conversation", name);
        return HTH_EXIT_USAGE;
    }
    if (!hearth_template_names(t->template, name)) {
        hth_complain("--template-arg: the chat template has no variable '%s'", name);
        return HTH_EXIT_USAGE;
    }
    t->variables[t->n_variables++] = (hearth_template_variable){name, equals + 1, is_json(equals + 1)};
    return HTH_EXIT_OK;
}

/* The array is read as the parser of answers reads it. */
static int add_tools(hth_chat_template *t, const char *file) {
    hearth_error err = {HEARTH_OK, ""};
    hearth_output_parser *parser = NULL;
    int status = hth_read_text(NULL, file, HTH_MOST_BY_HAND, &t->tools);
    if (status != HTH_EXIT_OK) return status;
    char *grown = realloc(t->tools.data, t->tools.size + 1);
    if (!grown) return hth_out_of_memory();
    t->tools.data = grown;
    grown[t->tools.size] = '\0';
    const hearth_output_options options = {.tools = t->tools.data, .tools_size = t->tools.size};
    if (hearth_output_parser_create(t->format, &options, &parser, &err) != HEARTH_OK) {
        hth_complain("%s: %s", file, err.text);
        status = err.status == HEARTH_NO_MEMORY ? HTH_EXIT_FAILED : HTH_EXIT_USAGE;
    } else if (!hearth_template_names(t->template, "tools")) {
        hth_complain("--tools: the chat template shows the model no tools");
        status = HTH_EXIT_USAGE;
    }
    hearth_output_parser_free(&parser);
    t->variables[t->n_variables++] = (hearth_template_variable){"tools", t->tools.data, 1};
    return status;
}

static int add_variables(hth_chat_template *t, const hth_template_flags *flags) {
    t->variables = calloc(flags->arguments.count + 3, sizeof *t->variables);
    t->names = calloc(flags->arguments.count + 1, sizeof *t->names);
    if (!t->variables || !t->names) return hth_out_of_memory();
    int status = HTH_EXIT_OK;
    for (size_t i = 0; i < flags->arguments.count && status == HTH_EXIT_OK; i++)
        status = add_argument(t, flags->arguments.items[i]);
    t->variables[t->n_variables++] = (hearth_template_variable){"bos_token", t->bos, 0};
    t->variables[t->n_variables++] = (hearth_template_variable){"eos_token", t->eos, 0};
    if (status == HTH_EXIT_OK && flags->tools) status = add_tools(t, flags->tools);
    return status;
}

int hth_chat_template_open(const char *path, const hth_template_flags *flags, const hearth_tokenizer *tokenizer,
                           hth_chat_template *out) {
    hth_text source;
    const char *file = flags->file;
    hearth_error err = {HEARTH_OK, ""};
    *out = (hth_chat_template){.template = NULL};
    int status = file ? hth_read_text(NULL, file, HTH_MOST_BY_HAND, &source)
                      : hth_read_chat_template(path, NULL, flags->tools != NULL, &source);
    if (status != HTH_EXIT_OK || !source.data) return status;
    hth_token_text(tokenizer, hearth_tokenizer_bos(tokenizer), out->bos);
    hth_token_text(tokenizer, hearth_tokenizer_eos(tokenizer), out->eos);
    out->format = hearth_output_format_detect(source.data, source.size);
    if (hearth_template_create(source.data, source.size, &out->template, &err) == HEARTH_OK) {
        status = add_variables(out, flags);
    } else {
        hth_complain("%s%s%s", file ? file : "", file ? ": " : "", err.text);
        status = HTH_EXIT_FAILED;
    }
    free(source.data);
    return status;
}

void hth_chat_template_free(hth_chat_template *t) {
    hearth_template_free(&t->template);
    for (size_t i = 0; i < t->n_names; i++) free(t->names[i]);
    free(t->names);
    free(t->variables);
    free(t->tools.data);
    *t = (hth_chat_template){.template = NULL};
}

int hth_chat_template_render(const hth_chat_template *t, hth_text request, int marks, hearth_rendering **out) {
    const hearth_template_options options = {.variables = t->variables, .n_variables = t->n_variables, .marks = marks};
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
