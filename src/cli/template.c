/* `hearth template`: a conversation as the text of a prompt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "cli/args.h"
#include "cli/chat_template.h"
#include "cli/input.h"
#include "cli/model.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/template.h"

typedef struct template_flags {
    const char *file, *input, *now, *name;
    int64_t marks;
} template_flags;

typedef struct session {
    hth_args args;
    template_flags flags;
    hearth_tokenizer *tokenizer; /* NULL without -m */
    hth_text source, request;
    hearth_template *template;
    hearth_rendering *rendering;
    char bos[HTH_MAX_TOKEN_TEXT], eos[HTH_MAX_TOKEN_TEXT];
} session;

/* ---- the template ---- */

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

static int read_own(session *s, const char *path) {
    const char *name = s->flags.name;
    int status = hth_read_chat_template(path, name, !name && has_tools(s), &s->source);
    if (status != HTH_EXIT_OK || s->source.data) return status;
    hth_complain("%s: it has no chat_template%s%s; --file gives a template", path, name ? "." : "", name ? name : "");
    return HTH_EXIT_FAILED;
}

static int read_model(session *s) {
    char path[HTH_MAX_PATH];
    if (s->flags.file != NULL && s->args.common.model == NULL)
        return hth_read_text(NULL, s->flags.file, HTH_MOST_BY_HAND, &s->source);
    int status = hth_find_model(&s->args, path);
    if (status == HTH_EXIT_OK) status = hth_open_tokenizer(&s->args, path, &s->tokenizer);
    if (status != HTH_EXIT_OK) return status;
    hth_token_text(s->tokenizer, hearth_tokenizer_bos(s->tokenizer), s->bos);
    hth_token_text(s->tokenizer, hearth_tokenizer_eos(s->tokenizer), s->eos);
    return s->flags.file != NULL ? hth_read_text(NULL, s->flags.file, HTH_MOST_BY_HAND, &s->source) : read_own(s, path);
}

/* ---- the report ---- */

static void print_marks(hth_json *json, const session *s, const size_t *positions) {
    const hearth_rendering *r = s->rendering;
    hth_json_open(json, "marks", '[');
    for (size_t i = 0; i < r->n_marks; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_uint(json, "message", r->marks[i].message);
        hth_json_bool(json, "generation_prompt", r->marks[i].message == r->n_messages);
        hth_json_uint(json, "offset", r->marks[i].offset);
        if (s->tokenizer != NULL) hth_json_uint(json, "position", positions[i]);
        hth_json_bool(json, "stable", r->marks[i].stable != 0);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
}

static void print_rendering(hth_json *json, const session *s, const hth_tokens *tokens, const size_t *positions) {
    const hearth_rendering *r = s->rendering;
    hth_json_open(json, NULL, '{');
    hth_json_bytes(json, "text", r->text, r->size);
    print_marks(json, s, positions);
    hth_json_open(json, "segments", '[');
    for (size_t i = 0; i < r->n_segments; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_uint(json, "begin", r->segments[i].begin);
        hth_json_uint(json, "end", r->segments[i].end);
        hth_json_bool(json, "content", r->segments[i].content != 0);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
    if (s->tokenizer != NULL) {
        hth_json_open(json, "ids", '[');
        for (size_t i = 0; i < tokens->count; i++) hth_json_int(json, NULL, tokens->ids[i]);
        hth_json_close(json, ']');
    }
    hth_json_close(json, '}');
}

static int print_report(const session *s) {
    hth_tokens tokens = {NULL, 0};
    size_t *positions = calloc(s->rendering->n_marks + 1, sizeof *positions);
    hth_json json = {.out = stdout};
    int status = positions ? HTH_EXIT_OK : hth_out_of_memory();
    if (status == HTH_EXIT_OK && s->tokenizer != NULL)
        status = hth_encode_rendering(s->tokenizer, s->rendering, 0, &tokens, positions);
    if (status == HTH_EXIT_OK) print_rendering(&json, s, &tokens, positions);
    free(tokens.ids);
    free(positions);
    return status;
}

static int render(session *s) {
    hearth_error err;
    const hearth_template_variable variables[] = {{"bos_token", s->bos, 0}, {"eos_token", s->eos, 0}};
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
    status = hth_read_text(NULL, f->input, HTH_MOST_BY_HAND, &s.request);
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
