/* A turn of a chat: from the conversation to the answer in it. */
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "cli/chat.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"

/* An answer on its way. */
typedef struct turn {
    hth_chat *chat;
    hth_chat_prompt prompt;
    hth_generation generation;
    hearth_output_parser *parser;
    hth_text text; /* as the model wrote it, control tokens and all */
    size_t capacity;
    hearth_error err; /* why emit refused a text */
} turn;

size_t hth_chat_last_said(const hth_chat *c) {
    const hth_message *m = c->conversation.messages;
    size_t i = c->conversation.count;
    while (i > 0 && m[i - 1].role != HTH_USER && m[i - 1].role != HTH_TOOL) i--;
    return i > 0 ? i - 1 : c->conversation.count;
}

void hth_chat_cut(hth_chat *c, size_t count) {
    hth_conversation_cut(&c->conversation, count);
    hth_pasts_cut(&c->pasts, count);
}

void hth_chat_withdraw(hth_chat *c, size_t count) {
    hth_text *content = &c->conversation.messages[count].content; /* has room for the NUL */
    free(c->withdrawn.data);
    c->withdrawn = *content;
    c->withdrawn.data[c->withdrawn.size] = '\0';
    *content = (hth_text){NULL, 0};
    hth_chat_cut(c, count);
}

/* ---- Text ---- */

static bool keep(turn *t, const char *text, size_t size) {
    if (t->text.size + size > t->capacity) {
        size_t capacity = 2 * (t->text.size + size);
        char *grown = realloc(t->text.data, capacity);
        if (!grown) return false;
        t->text.data = grown;
        t->capacity = capacity;
    }
    memcpy(t->text.data + t->text.size, text, size);
    t->text.size += size;
    return true;
}

static bool emit(void *context, const char *text, size_t size) {
    turn *t = context;
    hth_chat_display *display = &t->chat->display;
    return keep(t, text, size) &&
           hearth_output_parser_feed(t->parser, text, size, hth_chat_display_event, display, &t->err) == HEARTH_OK &&
           !display->failed;
}

/* ---- Where a constraint holds: in the content ---- */

static hearth_output_place place(void *context) {
    const turn *t = context;
    return hearth_output_parser_place(t->parser);
}

/* A token that is a marker, or a control token that one begins with; none that ends the answer. */
static bool is_marker(void *context, hearth_token token) {
    const turn *t = context;
    const hearth_tokenizer *tokenizer = t->chat->tokenizer;
    const char *text;
    size_t size;
    if (hearth_tokenizer_ends_generation(tokenizer, token) ||
        hearth_tokenizer_piece(tokenizer, token, 1, &text, &size, NULL) != HEARTH_OK)
        return false;
    int marks = hearth_output_parser_marks(t->parser, text, size);
    return marks == 2 || (marks == 1 && hth_is_control_token(tokenizer, token));
}

static const hth_bounds content_only = {place, is_marker};

/* ---- Generation ---- */

static int check_length(const hth_chat *c, size_t count) {
    if (count == 0) {
        hth_complain("the prompt has no tokens");
        return HTH_EXIT_FAILED;
    }
    if ((int64_t)count <= c->context) return HTH_EXIT_OK;
    hth_complain("the conversation has %zu token%s, but the context holds %lld: /undo or /reset makes room", count,
                 hth_plural((int64_t)count), (long long)c->context);
    return HTH_EXIT_FAILED;
}

/* Each answer is drawn with a seed of its own, so that a repeated one can differ. */
static int64_t next_seed(hth_chat *c) {
    return (int64_t)(((uint64_t)c->seed + (uint64_t)c->drawn++) & INT64_MAX);
}

static hearth_status prepare(turn *t, hearth_error *err) {
    hth_chat *c = t->chat;
    hth_generation *g = &t->generation;
    hearth_model_info info;
    const hearth_rendering *r = t->prompt.rendering;
    hearth_engine_info(c->engine, &info);
    const hearth_output_options options = {
        .starts_in_reasoning = hearth_output_prompt_opens_reasoning(c->template.format, r->text, r->size),
        .tools = c->template.tools.data,
        .tools_size = c->template.tools.size};
    hearth_status status = hearth_output_parser_create(c->template.format, &options, &t->parser, err);
    if (status == HEARTH_OK && hth_set_int(&c->args, "seed", next_seed(c)) == HTH_EXIT_OK)
        status = hth_choosing_sampler(&c->choosing, c->args.options, info.vocab, c->context + 1, &g->sampler, err);
    if (status == HEARTH_OK) status = hth_choosing_stops(&c->choosing, &g->stops, err);
    if (status != HEARTH_OK) return status;
    if (c->choosing.constrained.matcher) hearth_matcher_reset(c->choosing.constrained.matcher);
    g->engine = c->engine;
    g->session = c->session;
    g->detokenizer = c->detokenizer;
    g->matcher = c->choosing.constrained.matcher;
    g->bounds = &content_only;
    g->prompt = t->prompt.tokens;
    g->most = c->most;
    g->emit = emit;
    g->emit_context = t;
    g->tokens = c->tokens;
    return HEARTH_OK;
}

/* Generate, leaving marks. There is always room for a turn: marks that take it are dropped. */
static hearth_status generate(turn *t, hearth_error *err) {
    hth_chat *c = t->chat;
    hth_generation *g = &t->generation;
    hth_chat_prompt *p = &t->prompt;
    hearth_mark marks[64];
    size_t n = p->n_marks;
    if (n > sizeof marks / sizeof *marks) n = hth_chat_marks_choose(p->marks, n, sizeof marks / sizeof *marks);
    n = hth_chat_marks_make_room(&c->marks, c->session, c->engine, p->tokens.ids, (int64_t)p->tokens.count, p->marks,
                                 n);
    for (size_t i = 0; i < n; i++) marks[i] = (hearth_mark){.position = p->marks[i].position};
    g->marks = marks;
    g->mark_count = n;
    hearth_status status = hth_generate(g, err);
    if (status == HEARTH_TOO_LONG && g->count == 0) {
        hth_chat_marks_drop_all(&c->marks, c->engine);
        g->mark_count = 0;
        return hth_generate(g, err);
    }
    for (size_t i = 0; i < n; i++) p->marks[i].id = marks[i].id;
    hth_chat_marks_note(&c->marks, p->marks, n);
    return status;
}

/* ---- The end of an answer ---- */

static void report_json(const hth_chat *c, const hearth_output_result *r) {
    const hth_chat_answer *a = &c->last;
    hth_json json = {.out = stdout, .one_line = true};
    hth_json_open(&json, NULL, '{');
    hth_json_bytes(&json, "content", r->content, r->content_size);
    if (r->reasoning_size > 0) hth_json_bytes(&json, "reasoning", r->reasoning, r->reasoning_size);
    if (r->call_count > 0) hth_json_open(&json, "tool_calls", '[');
    for (size_t i = 0; i < r->call_count; i++) {
        if (r->calls[i].fault) continue;
        hth_json_open(&json, NULL, '{');
        hth_json_bytes(&json, "name", r->calls[i].name, r->calls[i].name_size);
        hth_json_value(&json, "arguments", r->calls[i].arguments, r->calls[i].arguments_size);
        hth_json_close(&json, '}');
    }
    if (r->call_count > 0) hth_json_close(&json, ']');
    hth_json_text(&json, "stop", hth_stop_name(a->stop));
    hth_json_int(&json, "prompt_tokens", a->prompt_tokens);
    hth_json_int(&json, "kept", a->kept);
    hth_json_int(&json, "computed", a->computed);
    hth_json_int(&json, "generated_tokens", a->generated);
    hth_json_int(&json, "marks", (int64_t)c->marks.count);
    hth_report_measure(&json, "prompt_ms", a->prompt_ms);
    hth_report_measure(&json, "first_token_ms", a->first_token_ms);
    hth_report_measure(&json, "decode_ms", a->decode_ms);
    hth_json_close(&json, '}');
    hth_out("", 0);
}

/* The call that the next result is of. */
void hth_chat_say_call(const hth_chat *c) {
    const hth_call *call = hth_conversation_open_call(&c->conversation);
    if (call && c->interactive)
        hth_note("(/tool TEXT, or /tool @FILE, gives the result of %.*s; or say something else)", (int)call->name.size,
                 call->name.data);
}

/* Why an answer ended, where it is not what the user expects. */
static void say_why(const hth_chat *c) {
    switch (c->last.stop) {
    case HTH_STOP_CONTEXT:
        hth_note("(the context of %lld token%s is full: /undo takes back the last turn, /reset begins anew)",
                 (long long)c->context, hth_plural(c->context));
        break;
    case HTH_STOP_LENGTH:
        hth_note("(stopped after %lld token%s)", (long long)c->last.generated, hth_plural(c->last.generated));
        break;
    case HTH_STOP_INTERRUPTED: hth_note("(stopped)"); break;
    case HTH_STOP_CONSTRAINT: hth_note("(the answer does not go on as the constraint demands)"); break;
    case HTH_STOP_END:
    case HTH_STOP_STRING:
    case HTH_STOP_OUTPUT: break;
    }
}

/* Put the answer into the conversation, and its tokens into the past that the next prompt begins with. */
static int keep_answer(turn *t, hearth_output_result *result) {
    hth_chat *c = t->chat;
    const hth_generation *g = &t->generation;
    const hth_text prompt = {(char *)t->prompt.rendering->text, t->prompt.rendering->size};
    const hth_tokens written = {g->tokens, (size_t)g->count};
    if (!hth_conversation_add_answer(&c->conversation, result)) return hth_out_of_memory();
    /* The text ends in front of a stop string, the tokens do not. */
    bool whole = g->stop != HTH_STOP_STRING;
    if (whole && !hth_pasts_add(&c->pasts, c->conversation.count, prompt, t->prompt.tokens, t->text, written))
        return hth_out_of_memory();
    return HTH_EXIT_OK;
}

static int finish(turn *t) {
    hth_chat *c = t->chat;
    const hth_generation *g = &t->generation;
    hearth_output_result result;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_output_parser_finish(t->parser, hth_chat_display_event, &c->display, &result, &err) != HEARTH_OK)
        return hth_complain_error(&err);
    hth_chat_display_end(&c->display);
    c->last = (hth_chat_answer){.prompt_tokens = (int64_t)t->prompt.tokens.count,
                                .kept = g->sync.kept,
                                .computed = g->sync.computed,
                                .generated = g->count,
                                .prompt_ms = g->prompt_ms,
                                .first_token_ms = g->first_token_ms,
                                .decode_ms = g->decode_ms,
                                .decoded = g->decoded,
                                .stop = g->stop};
    c->answers++;
    if (c->args.common.json) report_json(c, &result);
    else if (c->interactive || g->stop == HTH_STOP_CONTEXT) say_why(c);
    if (g->stop == HTH_STOP_OUTPUT) {
        if (t->err.status != HEARTH_OK) hth_complain_error(&t->err);
        return HTH_EXIT_FAILED;
    }
    int status = keep_answer(t, &result);
    if (status == HTH_EXIT_OK) hth_chat_say_call(c);
    return status;
}

static int run_turn(turn *t) {
    hth_chat *c = t->chat;
    hearth_error err = {HEARTH_OK, ""};
    int status = hth_chat_prompt_make(&c->template, c->tokenizer, &c->conversation, &c->pasts, false, &t->prompt);
    if (status == HTH_EXIT_OK) status = check_length(c, t->prompt.tokens.count);
    if (status != HTH_EXIT_OK) return status;
    if (prepare(t, &err) != HEARTH_OK) return hth_complain_error(&err);
    hth_chat_display_begin(&c->display);
    hearth_status made = generate(t, &err);
    if (made == HEARTH_OK) return finish(t);
    hth_chat_display_end(&c->display);
    return made == HEARTH_CANCELLED ? HTH_EXIT_OK : hth_complain_error(&err);
}

int hth_chat_turn(hth_chat *c) {
    turn t = {.chat = c};
    size_t before = c->conversation.count;
    const char *left;
    size_t left_size;
    hearth_detokenizer_finish(c->detokenizer, &left, &left_size); /* what an answer that failed left in it */
    if (c->interactive) hth_interrupt_take();
    else hth_interrupt_catch();
    int status = run_turn(&t);
    c->unanswered = c->conversation.count == before;
    size_t said = hth_chat_last_said(c);
    if (c->unanswered && c->conversation.messages[said].role == HTH_TOOL) {
        hth_chat_cut(c, said);
        c->unanswered = false; /* there is no message to bring back */
        if (c->interactive) hth_note("(not answered: the call waits for /tool again)");
    } else if (c->unanswered) {
        hth_chat_withdraw(c, said);
        if (c->interactive) hth_note("(not answered: /edit brings the message back)");
    }
    if (c->interactive) hth_interrupt_take();
    else hth_interrupt_release();
    hearth_sampler_free(&t.generation.sampler);
    hearth_stop_matcher_free(&t.generation.stops);
    hearth_output_parser_free(&t.parser);
    hth_chat_prompt_free(&t.prompt);
    free(t.text.data);
    return status;
}
