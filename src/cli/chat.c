/* `hearth chat`: a conversation with a model. */
#include "cli/chat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/chat_input.h"
#include "cli/interrupt.h"
#include "cli/say.h"
#include "cli/verbs.h"

static const char notes[] =
    "Each line is a message; /help lists what else can be said. Ctrl-C stops an answer and keeps what was said; "
    "Ctrl-D\n"
    "leaves. Without a terminal the chat is a filter: a line in, its answer out, no prompts and no colours, and the\n"
    "first thing that fails ends it; with --json each answer is a line of JSON. A model without a chat template needs\n"
    "one with --template. Weights arrive while the first message is typed; --no-early waits for them. docs/chat.md\n"
    "says more.";

typedef struct chat_flags {
    const char *system, *history;
    hth_template_flags template;
} chat_flags;

static bool parse_flags(int argc, char **argv, hth_chat *c, chat_flags *f, int *status) {
    c->most = INT64_MAX;
    const hth_flag flags[] = {
        {'n', "tokens", "n-predict", HTH_FLAG_INT, &c->most, "N", "tokens of an answer at most; default: any", 1,
         INT64_MAX},
        HTH_CHOOSING_FLAGS(&c->choosing),
        {0, "system", "system-prompt", HTH_FLAG_TEXT, &f->system, "TEXT|@FILE", "the system message", 0, 0},
        HTH_TEMPLATE_FLAGS(&f->template),
        {0, "tools", NULL, HTH_FLAG_TEXT, &f->template.tools, "FILE",
         "tools that the model may call, a JSON array; /tool gives results", 0, 0},
        {0, "history", NULL, HTH_FLAG_TEXT, &f->history, "FILE", "keep what is typed in a file, for the next chat", 0,
         0},
    };
    static const hth_default defaults[] = {{"ctx", NULL, "the model's, at most 8192 and what fits"},
                                           {"outputs", "1", NULL},
                                           {"early", "on", NULL}}; /* the user is still typing */
    const hth_command command = {.verb = "chat",
                                 .summary = "Talk to a model.",
                                 .notes = notes,
                                 .scopes = HTH_SCOPES_ALL,
                                 .flags = flags,
                                 .n_flags = sizeof flags / sizeof *flags,
                                 .defaults = defaults,
                                 .n_defaults = sizeof defaults / sizeof *defaults};
    if (!hth_args_parse(&command, argc, argv, &c->args, status)) return false;
    *status = hth_choosing_check(&c->choosing, &c->args);
    return *status == HTH_EXIT_OK;
}

/* ---- Opening ---- */

/* Everything that is refused without the engine comes first: it is open only later. */
static int open_text(hth_chat *c, const chat_flags *f) {
    hth_text system = {NULL, 0};
    int status = hth_find_model(&c->args, c->path);
    if (status == HTH_EXIT_OK) status = hth_open_tokenizer(&c->args, c->path, &c->own_tokenizer);
    if (status == HTH_EXIT_OK) status = hth_chat_template_open(c->path, &f->template, c->own_tokenizer, &c->template);
    if (status == HTH_EXIT_OK && !c->template.template) {
        hth_complain("%s has no chat template; --template FILE gives one, and 'hearth run' completes text", c->path);
        status = HTH_EXIT_FAILED;
    }
    if (status == HTH_EXIT_OK && f->system) status = hth_read_text_or_file(f->system, &system);
    if (status == HTH_EXIT_OK && f->system &&
        !hth_conversation_set_system(&c->conversation, system.data ? system.data : "", system.size))
        status = hth_out_of_memory();
    free(system.data);
    if (status == HTH_EXIT_OK) status = hth_choosing_prepare(&c->choosing, c->own_tokenizer);
    return status;
}

static int open_engine(hth_chat *c) {
    hearth_model_info info;
    hearth_error err = {HEARTH_OK, ""};
    hearth_sampler *sampler = NULL;
    int status = hth_open_engine_with(&c->args, c->path, &c->own_tokenizer, &c->engine);
    if (status != HTH_EXIT_OK) return status;
    c->tokenizer = hearth_engine_tokenizer(c->engine);
    hearth_engine_info(c->engine, &info);
    c->context = info.context;
    c->marks.slots = (size_t)hth_int_option(&c->args, "mark-slots", NULL);
    c->marks.kept = calloc(c->marks.slots + 1, sizeof *c->marks.kept);
    c->tokens = malloc((size_t)(c->context + 1) * sizeof *c->tokens);
    if (!c->tokens || !c->marks.kept) return hth_out_of_memory();
    if (hearth_session_create(c->engine, &c->session, &err) != HEARTH_OK ||
        hearth_detokenizer_create(c->tokenizer, 1, &c->detokenizer, &err) != HEARTH_OK ||
        hth_choosing_sampler(&c->choosing, c->args.options, info.vocab, 1, &sampler, &err) != HEARTH_OK)
        status = hth_complain_error(&err); /* a bad bias is told before the first message */
    else c->seed = hearth_sampler_seed(sampler);
    hearth_sampler_free(&sampler);
    return status;
}

static int open_terminal(hth_chat *c, const chat_flags *f) {
    bool terminals = isatty(STDIN_FILENO) && hth_out_is_terminal();
    c->interactive = terminals && !c->args.common.json;
    c->display = hth_chat_display_make();
    c->display.silent = c->args.common.json;
    if (c->interactive && !hth_interrupt_watch()) {
        hth_complain("the system refuses a pipe");
        return HTH_EXIT_FAILED;
    }
    if (f->history && !c->interactive) {
        hth_complain("--history has an effect only on a terminal");
        return HTH_EXIT_USAGE;
    }
    return hth_line_editor_open(c->interactive, f->history, &c->editor);
}

/* ---- The conversation ---- */

static void greet(const hth_chat *c) {
    hearth_model_info info;
    hearth_engine_info(c->engine, &info);
    hth_note("%s, context of %lld token%s. /help lists commands.", info.name[0] ? info.name : c->path,
             (long long)c->context, hth_plural(c->context));
}

static int say_message(hth_chat *c, hth_text text) {
    if (!hth_utf8_is_valid(text.data, text.size)) {
        hth_complain("the message is not UTF-8");
        return HTH_EXIT_FAILED;
    }
    if (!hth_conversation_add(&c->conversation, HTH_USER, text.data, text.size)) return hth_out_of_memory();
    hth_line_editor_remember(c->editor, text.data);
    return hth_chat_turn(c);
}

/* One message or command. False: the chat is over, and *status says how. */
static bool take_turn(hth_chat *c, bool *leaving, int *status) {
    hth_chat_input input;
    hth_chat_next next = HTH_CHAT_GO_ON;
    const char *typed = c->editing ? c->withdrawn.data : NULL;
    hth_chat_input_read(c->editor, typed, &input);
    c->editing = false;
    bool leave = *leaving;
    *leaving = false;
    switch (input.kind) {
    case HTH_INPUT_NOTHING: return true;
    case HTH_INPUT_END:
        if (c->interactive) hth_out("\n", 1);
        return false;
    case HTH_INPUT_INTERRUPT:
        *leaving = !leave;
        if (*leaving) hth_note("(Ctrl-C again leaves, and so does Ctrl-D)");
        return *leaving;
    case HTH_INPUT_FAILED: *status = HTH_EXIT_FAILED; break;
    case HTH_INPUT_MESSAGE: *status = say_message(c, input.text); break;
    case HTH_INPUT_COMMAND:
        next = hth_chat_command(c, input.text.data);
        if (next == HTH_CHAT_ANSWER) *status = hth_chat_turn(c);
        if (next == HTH_CHAT_FAILED) *status = HTH_EXIT_FAILED;
    }
    free(input.text.data);
    if (next == HTH_CHAT_QUIT || c->display.failed) return false;
    if (c->interactive) *status = HTH_EXIT_OK; /* what failed was told, and the user goes on */
    else if (hth_interrupted()) return false;
    return *status == HTH_EXIT_OK;
}

static void chat_free(hth_chat *c) {
    hth_line_editor_close(&c->editor);
    hth_conversation_free(&c->conversation);
    hth_pasts_free(&c->pasts);
    hearth_detokenizer_free(&c->detokenizer);
    hth_choosing_free(&c->choosing);
    hth_chat_template_free(&c->template);
    hearth_session_free(&c->session);
    hearth_engine_close(&c->engine);
    hearth_tokenizer_close(&c->own_tokenizer);
    free(c->marks.kept);
    free(c->tokens);
    free(c->withdrawn.data);
    hth_args_free(&c->args);
}

int hth_verb_chat(int argc, char **argv) {
    hth_chat c = {.engine = NULL};
    chat_flags flags = {.system = NULL};
    int status;
    bool leaving = false;
    if (parse_flags(argc, argv, &c, &flags, &status)) {
        status = open_text(&c, &flags);
        if (status == HTH_EXIT_OK) status = open_terminal(&c, &flags);
        if (status == HTH_EXIT_OK) status = open_engine(&c);
        if (status == HTH_EXIT_OK) {
            if (c.interactive) greet(&c);
            while (take_turn(&c, &leaving, &status)) continue;
        }
    }
    chat_free(&c);
    hth_list_free(&flags.template.arguments);
    return status;
}
