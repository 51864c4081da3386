/* `hearth template`: a conversation as the text of a prompt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/input.h"
#include "cli/jsonout.h"
#include "cli/model.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/file.h"
#include "hearth/template.h"

typedef struct template_flags {
    const char *file, *input, *now, *name;
    int64_t marks;
} template_flags;

enum { MAX_TOKEN_TEXT = 256 };

typedef struct session {
    hth_args args;
    template_flags flags;
    hearth_tokenizer *tokenizer; /* NULL without -m */
    hth_text source, request;
    hearth_template *template;
    hearth_rendering *rendering;
    char bos[MAX_TOKEN_TEXT], eos[MAX_TOKEN_TEXT];
} session;

/* ---- the template ---- */

static bool find_entry(const hearth_file *file, const char *key, uint64_t *at) {
    hearth_file_entry entry;
    for (*at = 0; *at < hearth_file_entry_count(file); ++*at)
        if (hearth_file_entry_at(file, *at, &entry, NULL) == HEARTH_OK && entry.key_size == strlen(key) &&
            memcmp(entry.key, key, entry.key_size) == 0)
            return true;
    return false;
}

/* Whether the request has tools, which a template that only asks for them says. */
static bool has_tools(const session *s) {
    static const char question[] = "{% if tools %}yes{% endif %}";
    hearth_template *t = NULL;
    hearth_rendering *r = NULL;
    const hearth_template_options options = {.marks = -1};
    bool answer = hearth_template_create(question, sizeof question - 1, &t, NULL) == HEARTH_OK &&
                  hearth_template_render(t, s->request.data, s->request.size, &options, &r, NULL) == HEARTH_OK &&
                  r->size > 0;
    hearth_rendering_free(&r);
    hearth_template_free(&t);
    return answer;
}

/* The entry of the template that a GGUF file carries: that of --name; for tools the one that is made for them, which is
 * also the default where it is the only one; else the default. */
static bool find_own(const session *s, const hearth_file *file, uint64_t *at) {
    char key[128];
    if (s->flags.name != NULL) {
        snprintf(key, sizeof key, "tokenizer.chat_template.%.80s", s->flags.name);
        return find_entry(file, key, at);
    }
    uint64_t tool_use;
    bool has_tool_use = find_entry(file, "tokenizer.chat_template.tool_use", &tool_use);
    if (!(has_tool_use && has_tools(s)) && find_entry(file, "tokenizer.chat_template", at)) return true;
    *at = tool_use;
    return has_tool_use;
}

static int read_own(session *s, const char *path) {
    hearth_file *file;
    hearth_error err;
    uint64_t at;
    const char *data;
    size_t size;
    if (hearth_file_open(path, &file, &err) != HEARTH_OK) return hth_complain_error(&err);
    int status = HTH_EXIT_FAILED;
    if (!find_own(s, file, &at)) {
        hth_complain("%s: it has no chat_template%s%s; --file gives a template", path, s->flags.name != NULL ? "." : "",
                     s->flags.name != NULL ? s->flags.name : "");
    } else if (hearth_file_string(file, at, 0, &data, &size, &err) != HEARTH_OK) {
        status = hth_complain_error(&err);
    } else {
        s->source.data = malloc(size + 1);
        if (s->source.data == NULL) {
            status = hth_out_of_memory();
        } else {
            memcpy(s->source.data, data, size);
            s->source.size = size;
            status = HTH_EXIT_OK;
        }
    }
    hearth_file_close(&file);
    return status;
}

static void token_text(const hearth_tokenizer *tokenizer, hearth_token id, char out[MAX_TOKEN_TEXT]) {
    const char *data = "";
    size_t size = 0;
    if (id >= 0) hearth_tokenizer_piece(tokenizer, id, 1, &data, &size, NULL);
    if (size >= MAX_TOKEN_TEXT) size = 0;
    memcpy(out, data, size);
    out[size] = 0;
}

static int read_model(session *s) {
    char path[HTH_MAX_PATH];
    if (s->flags.file != NULL && s->args.common.model == NULL) return hth_read_text(NULL, s->flags.file, &s->source);
    int status = hth_find_model(&s->args, path);
    if (status == HTH_EXIT_OK) status = hth_open_tokenizer(&s->args, path, &s->tokenizer);
    if (status != HTH_EXIT_OK) return status;
    token_text(s->tokenizer, hearth_tokenizer_bos(s->tokenizer), s->bos);
    token_text(s->tokenizer, hearth_tokenizer_eos(s->tokenizer), s->eos);
    return s->flags.file != NULL ? hth_read_text(NULL, s->flags.file, &s->source) : read_own(s, path);
}

/* ---- the report ---- */

/* The prompt's ids, and the position of each mark in them. */
typedef struct prompt {
    hth_tokens tokens;
    size_t *plain, *offsets, *positions;
} prompt;

static void free_prompt(prompt *p) {
    free(p->tokens.ids);
    free(p->plain);
    free(p->offsets);
    free(p->positions);
}

static int encode_prompt(const session *s, prompt *p) {
    const hearth_rendering *r = s->rendering;
    hearth_error err;
    size_t n_plain = 0, capacity = r->size + 16; /* a token has a byte at least, but for those that are added */
    p->plain = malloc((2 * r->n_segments + 1) * sizeof *p->plain);
    p->offsets = malloc((r->n_marks + 1) * sizeof *p->offsets);
    p->positions = malloc((r->n_marks + 1) * sizeof *p->positions);
    p->tokens.ids = malloc(capacity * sizeof *p->tokens.ids);
    if (!p->plain || !p->offsets || !p->positions || !p->tokens.ids) return hth_out_of_memory();
    for (size_t i = 0; i < r->n_segments; i++) {
        if (!r->segments[i].content) continue;
        p->plain[2 * n_plain] = r->segments[i].begin;
        p->plain[2 * n_plain++ + 1] = r->segments[i].end;
    }
    for (size_t i = 0; i < r->n_marks; i++) p->offsets[i] = r->marks[i].offset;
    const hearth_encode_parts parts = {p->plain, n_plain, p->offsets, p->positions, r->n_marks};
    if (hearth_tokenizer_encode_parts(s->tokenizer, r->text, r->size, HEARTH_ENCODE_SPECIAL | HEARTH_ENCODE_ADD, &parts,
                                      p->tokens.ids, capacity, &p->tokens.count, &err) != HEARTH_OK)
        return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

static void print_marks(hth_json *json, const session *s, const prompt *p) {
    const hearth_rendering *r = s->rendering;
    hth_json_open(json, "marks", '[');
    for (size_t i = 0; i < r->n_marks; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_uint(json, "message", r->marks[i].message);
        hth_json_bool(json, "generation_prompt", r->marks[i].message == r->n_messages);
        hth_json_uint(json, "offset", r->marks[i].offset);
        if (s->tokenizer != NULL) hth_json_uint(json, "position", p->positions[i]);
        hth_json_bool(json, "stable", r->marks[i].stable != 0);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
}

static int print_report(const session *s) {
    const hearth_rendering *r = s->rendering;
    prompt p = {{NULL, 0}, NULL, NULL, NULL};
    int status = s->tokenizer != NULL ? encode_prompt(s, &p) : HTH_EXIT_OK;
    if (status == HTH_EXIT_OK) {
        hth_json json = {.out = stdout};
        hth_json_open(&json, NULL, '{');
        hth_json_bytes(&json, "text", r->text, r->size);
        print_marks(&json, s, &p);
        hth_json_open(&json, "segments", '[');
        for (size_t i = 0; i < r->n_segments; i++) {
            hth_json_open(&json, NULL, '{');
            hth_json_uint(&json, "begin", r->segments[i].begin);
            hth_json_uint(&json, "end", r->segments[i].end);
            hth_json_bool(&json, "content", r->segments[i].content != 0);
            hth_json_close(&json, '}');
        }
        hth_json_close(&json, ']');
        if (s->tokenizer != NULL) {
            hth_json_open(&json, "ids", '[');
            for (size_t i = 0; i < p.tokens.count; i++) hth_json_int(&json, NULL, p.tokens.ids[i]);
            hth_json_close(&json, ']');
        }
        hth_json_close(&json, '}');
    }
    free_prompt(&p);
    return status;
}

static int render(session *s) {
    hearth_error err;
    const hearth_template_variable variables[] = {{"bos_token", s->bos}, {"eos_token", s->eos}};
    const hearth_template_options options = {
        .variables = variables,
        .n_variables = s->tokenizer != NULL ? sizeof variables / sizeof *variables : 0,
        .now = s->flags.now,
        .marks = s->args.common.json ? (int)s->flags.marks : -1,
    };
    if (hearth_template_create(s->source.data, s->source.size, &s->template, &err) != HEARTH_OK ||
        hearth_template_render(s->template, s->request.data, s->request.size, &options, &s->rendering, &err) !=
            HEARTH_OK)
        return hth_complain_error(&err);
    if (s->args.common.json) return print_report(s);
    hth_out(s->rendering->text, s->rendering->size);
    return HTH_EXIT_OK;
}

int hth_verb_template(int argc, char **argv) {
    session s = {.flags = {.marks = 0}};
    template_flags *f = &s.flags;
    const hth_flag flags[] = {
        {'f', "file", NULL, HTH_FLAG_TEXT, &f->file, "TEMPLATE", "a template in place of the model's own", 0, 0},
        {'i', "input", NULL, HTH_FLAG_TEXT, &f->input, "REQUEST", "a file of JSON; default: standard input", 0, 0},
        {0, "name", NULL, HTH_FLAG_TEXT, &f->name, "NAME",
         "one of a model's other templates; tool_use is taken when there are tools", 0, 0},
        {0, "now", NULL, HTH_FLAG_TEXT, &f->now, "TIME", "the time it sees, as 2024-07-26T12:30:00; default: now", 0,
         0},
        {0, "marks", NULL, HTH_FLAG_INT, &f->marks, "N", "message starts to report with --json, newest first; 0: 32", 0,
         100000},
    };
    const hth_command command = {
        .verb = "template",
        .summary = "Print a conversation as the prompt that a chat template makes of it.",
        .notes = "REQUEST is an object: messages, and any other variable of the template (tools,\n"
                 "add_generation_prompt, ...). With --file a model is not needed. With --json: the text,\n"
                 "where each message begins, which of the text is the request's own, and with -m the\n"
                 "prompt's ids.",
        .scopes = HTH_SCOPES_TEXT,
        .flags = flags,
        .n_flags = sizeof flags / sizeof *flags};
    int status;
    if (!hth_args_parse(&command, argc, argv, &s.args, &status)) return status;
    status = hth_read_text(NULL, f->input, &s.request);
    if (status == HTH_EXIT_OK) status = read_model(&s);
    if (status == HTH_EXIT_OK) status = render(&s);
    hearth_rendering_free(&s.rendering);
    hearth_template_free(&s.template);
    hearth_tokenizer_close(&s.tokenizer);
    free(s.source.data);
    free(s.request.data);
    hth_args_free(&s.args);
    return status;
}
