/* What can be said to a chat besides messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/utf8.h"
#include "cli/chat.h"
#include "cli/say.h"
#include "cli/verbs.h"

typedef hth_chat_next command_fn(hth_chat *c, const char *argument);

/* ---- Going back ---- */

/* Take the last `turns` turns out of the conversation; the first message of them is kept as withdrawn. */
static bool go_back(hth_chat *c, int64_t turns) {
    size_t at = c->conversation.count;
    for (int64_t i = 0; i < turns; i++) {
        size_t user = at;
        while (user > 0 && c->conversation.messages[user - 1].role != HTH_USER) user--;
        if (user == 0) {
            if (i == 0) hth_complain("there is no turn to go back");
            else
                hth_complain("there %s only %lld turn%s to go back", i == 1 ? "is" : "are", (long long)i,
                             hth_plural(i));
            return false;
        }
        at = user - 1;
    }
    hth_chat_withdraw(c, at);
    return true;
}

static hth_chat_next do_undo(hth_chat *c, const char *argument) {
    (void)argument;
    return go_back(c, 1) ? HTH_CHAT_GO_ON : HTH_CHAT_FAILED;
}

static hth_chat_next do_back(hth_chat *c, const char *argument) {
    int64_t turns;
    if (!hth_parse_int(argument, false, &turns) || turns < 1) {
        hth_complain("/back N: '%s' is not a number of turns, from 1", argument);
        return HTH_CHAT_FAILED;
    }
    return go_back(c, turns) ? HTH_CHAT_GO_ON : HTH_CHAT_FAILED;
}

static hth_chat_next do_retry(hth_chat *c, const char *argument) {
    size_t said = hth_chat_last_said(c);
    (void)argument;
    if (said == c->conversation.count) {
        hth_complain("there is no answer to try again");
        return HTH_CHAT_FAILED;
    }
    hth_chat_cut(c, said + 1);
    return HTH_CHAT_ANSWER;
}

static hth_chat_next do_edit(hth_chat *c, const char *argument) {
    (void)argument;
    if (!c->interactive) {
        hth_complain("/edit needs a terminal");
        return HTH_CHAT_FAILED;
    }
    if (!c->unanswered && !go_back(c, 1)) return HTH_CHAT_FAILED;
    c->editing = true;
    return HTH_CHAT_GO_ON;
}

/* The model goes on once all calls of its answer have their results. */
static hth_chat_next do_tool(hth_chat *c, const char *argument) {
    hth_text text = {NULL, 0};
    if (!hth_conversation_open_call(&c->conversation)) {
        hth_complain("/tool: no call waits for a result");
        return HTH_CHAT_FAILED;
    }
    if (hth_read_text_or_file(argument, &text) != HTH_EXIT_OK) return HTH_CHAT_FAILED;
    bool added = hth_conversation_add_result(&c->conversation, text.data ? text.data : "", text.size);
    free(text.data);
    if (!added) {
        hth_out_of_memory();
        return HTH_CHAT_FAILED;
    }
    if (!hth_conversation_open_call(&c->conversation)) return HTH_CHAT_ANSWER;
    hth_chat_say_call(c);
    return HTH_CHAT_GO_ON;
}

static bool has_system(const hth_chat *c) {
    return c->conversation.count > 0 && c->conversation.messages[0].role == HTH_SYSTEM;
}

static hth_chat_next do_reset(hth_chat *c, const char *argument) {
    (void)argument;
    hth_chat_cut(c, has_system(c));
    return HTH_CHAT_GO_ON;
}

static hth_chat_next do_system(hth_chat *c, const char *argument) {
    hth_text text = {NULL, 0};
    if (!argument[0]) {
        const hth_message *m = c->conversation.messages;
        if (has_system(c)) hth_note("%.*s", (int)m->content.size, m->content.data);
        else hth_note("there is no system message");
        return HTH_CHAT_GO_ON;
    }
    bool none = strcmp(argument, "\"\"") == 0;
    if (!none && hth_read_text_or_file(argument, &text) != HTH_EXIT_OK) return HTH_CHAT_FAILED;
    if (!hth_conversation_set_system(&c->conversation, none ? NULL : text.data, text.size)) {
        free(text.data);
        hth_out_of_memory();
        return HTH_CHAT_FAILED;
    }
    free(text.data);
    hth_pasts_cut(&c->pasts, 0); /* what was rendered with another system message */
    return HTH_CHAT_GO_ON;
}

/* ---- Facts ---- */

static double per_second(int64_t count, double ms) {
    return ms > 0 ? (double)count * 1000 / ms : 0;
}

static hth_chat_next do_stats(hth_chat *c, const char *argument) {
    const hth_chat_answer *a = &c->last;
    hearth_counters counters;
    (void)argument;
    hearth_engine_counters(c->engine, &counters);
    hth_note("context      %lld of %lld tokens, %zu message%s", (long long)hearth_session_position(c->session),
             (long long)c->context, c->conversation.count, hth_plural((int64_t)c->conversation.count));
    if (c->answers > 0) {
        hth_note("last prompt  %lld token%s: %lld kept, %lld computed, %.0f ms, %.1f/s", (long long)a->prompt_tokens,
                 hth_plural(a->prompt_tokens), (long long)a->kept, (long long)a->computed, a->prompt_ms,
                 per_second(a->computed, a->prompt_ms));
        hth_note("last answer  %lld token%s, first after %.0f ms, then %.1f/s; stop: %s", (long long)a->generated,
                 hth_plural(a->generated), a->first_token_ms, per_second(a->decoded, a->decode_ms),
                 hth_stop_name(a->stop));
    }
    hth_note("all answers  %lld, %llu row%s computed; marks kept %zu of %zu, restored %llu time%s; seed %lld",
             (long long)c->answers, (unsigned long long)counters.rows, hth_plural((int64_t)counters.rows),
             c->marks.count, c->marks.slots, (unsigned long long)counters.restores,
             hth_plural((int64_t)counters.restores), (long long)c->seed);
    return HTH_CHAT_GO_ON;
}

/* The beginning of a message, for one line. */
static void print_beginning(const hth_message *m) {
    enum { CHARACTERS = 48 };
    size_t i = 0;
    for (size_t n = 0; n < CHARACTERS && i < m->content.size; n++) {
        uint32_t ch = 0;
        int size = hth_utf8_decode(m->content.data + i, m->content.size - i, &ch);
        if (size <= 0) break;
        fprintf(stderr, "%.*s", hth_is_control(ch) ? 1 : size, hth_is_control(ch) ? " " : m->content.data + i);
        i += (size_t)size;
    }
    fprintf(stderr, "%s\n", i < m->content.size ? " ..." : "");
}

static hth_chat_next do_tokens(hth_chat *c, const char *argument) {
    const hth_pasts none = {.count = 0};
    hth_chat_prompt p;
    (void)argument;
    if (c->conversation.count == 0) {
        hth_note("0 of %lld tokens", (long long)c->context);
        return HTH_CHAT_GO_ON;
    }
    int status = hth_chat_prompt_make(&c->template, c->tokenizer, &c->conversation, &none, true, &p);
    for (size_t i = 0; status == HTH_EXIT_OK && i < p.rendering->n_marks; i++) {
        const hearth_template_mark *mark = &p.rendering->marks[i];
        size_t end = i + 1 < p.rendering->n_marks ? p.positions[i + 1] : p.tokens.count;
        if (mark->message >= c->conversation.count) continue;
        const hth_message *m = &c->conversation.messages[mark->message];
        fprintf(stderr, "%7zu + %-5zu %-10s", p.positions[i], end - p.positions[i], hth_role_name(m->role));
        print_beginning(m);
    }
    if (status == HTH_EXIT_OK)
        hth_note("%zu of %lld tokens, with the header of the next answer", p.tokens.count, (long long)c->context);
    hth_chat_prompt_free(&p);
    return status == HTH_EXIT_OK ? HTH_CHAT_GO_ON : HTH_CHAT_FAILED;
}

/* ---- The table ---- */

static hth_chat_next do_quit(hth_chat *c, const char *argument) {
    (void)c, (void)argument;
    return HTH_CHAT_QUIT;
}

static command_fn do_help;

static const struct {
    const char *name, *argument, *help;
    command_fn *run;
} commands[] = {
    {"retry", NULL, "answer the last message again", do_retry},
    {"edit", NULL, "take back the last message, to change it and send it again", do_edit},
    {"undo", NULL, "take back the last message and its answer", do_undo},
    {"back", "N", "take back the last N messages and their answers", do_back},
    {"reset", NULL, "begin anew, with the same system message", do_reset},
    {"tool", "TEXT", "the result of the tool that the model called (@FILE: from a file)", do_tool},
    {"system", "TEXT", "set the system message (@FILE: from a file; \"\": none); alone: show it", do_system},
    {"stats", NULL, "what the last answer took, and what was kept", do_stats},
    {"tokens", NULL, "how many tokens each message has", do_tokens},
    {"help", NULL, "this list", do_help},
    {"quit", NULL, "leave (Ctrl-D does, too)", do_quit},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static hth_chat_next do_help(hth_chat *c, const char *argument) {
    (void)c, (void)argument;
    for (size_t i = 0; i < COMMANDS; i++)
        hth_note("  /%-7s%-6s%s", commands[i].name, commands[i].argument ? commands[i].argument : "", commands[i].help);
    hth_note("A line that ends in \\ goes on in the next; \"\"\" begins and ends a message of several lines. A message "
             "that\nbegins with / is written with two. Ctrl-C stops an answer and keeps what was said.");
    return HTH_CHAT_GO_ON;
}

static hth_chat_next refuse(const char *name) {
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t distance = hth_name_distance(name, commands[i].name);
        if (distance < best) best = distance, nearest = commands[i].name;
    }
    if (nearest && hth_name_is_near(name, best)) hth_complain("unknown command /%s; did you mean /%s?", name, nearest);
    else hth_complain("unknown command /%s; /help lists them (a message that begins with / is written with two)", name);
    return HTH_CHAT_FAILED;
}

hth_chat_next hth_chat_command(hth_chat *c, const char *line) {
    char name[64];
    size_t size = strcspn(line, " \t\n");
    const char *argument = line + size + strspn(line + size, " \t\n");
    snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name - 1), line);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) != 0) continue;
        if (commands[i].argument || !argument[0]) return commands[i].run(c, argument);
        hth_complain("/%s takes nothing behind it", name);
        return HTH_CHAT_FAILED;
    }
    return refuse(name);
}
