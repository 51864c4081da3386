/* `hearth run`: one completion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonout.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/chat_template.h"
#include "cli/choosing.h"
#include "cli/conversation.h"
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/ledger.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"

enum { DEFAULT_TOKENS = 256, MOST_ROWS = 512 };

typedef struct run_flags {
    const char *prompt, *file, *system;
    hth_template_flags template;
    int64_t n;
    const char *svg;
    bool raw, no_special, no_bos, show_special, ledger, verbose;
} run_flags;

/* Everything a run holds; run_free copes with any part of it missing. */
typedef struct run_state {
    hth_args args;
    run_flags flags;
    char path[HTH_MAX_PATH];
    hth_text prompt;
    hth_chat_template template;
    hearth_tokenizer *tokenizer; /* until the engine has it */
    hth_generation generation;
    hth_choosing choosing;
    int64_t room;  /* tokens that the session can hold after the prompt, or that are asked for */
    hth_text text; /* what was generated, kept for --json */
    size_t text_capacity;
    double open_ms;
} run_state;

static const char notes[] =
    "Where the model has a chat template, the text (UTF-8) is a user's message, and the answer to it is generated; a\n"
    "last newline of a file or of standard input is no part of it. With --raw, and where there is no template, the\n"
    "text is completed, bytes as they are.\n"
    "Without --ctx the session holds the prompt and -n tokens, at most the model's context. A prompt that does not "
    "fit\n"
    "is refused. Generation ends after -n tokens, at a token with which the model ends, at a stop string, when a\n"
    "grammar or schema lets nothing follow, or when the context is full; --json says which. Ctrl-C ends it too: the\n"
    "text so far stands, and the exit status is 0. Weights arrive while the prompt is computed; --no-early waits for\n"
    "them.";

static int check_flags(run_state *r) {
    const run_flags *f = &r->flags;
    bool shapes = f->system || f->template.file || f->template.arguments.count > 0;
    if (!f->raw || !shapes) return hth_choosing_check(&r->choosing, &r->args);
    hth_complain("%s has no effect with --raw", f->system          ? "--system"
                                                : f->template.file ? "--template"
                                                                   : "--template-arg");
    return HTH_EXIT_USAGE;
}

/* One prompt and one row of logits at a time: what is planned for more would be made present for nothing. */
static const hth_default defaults[] = {{"ctx", NULL, "the prompt and -n tokens"},
                                       {"rows", NULL, "the prompt's tokens, at most 512"},
                                       {"outputs", "1", NULL},
                                       {"mark-slots", "0", NULL},
                                       {"early", "on", NULL}}; /* the prompt need not wait for all weights */

static bool parse_flags(int argc, char **argv, run_state *r, int *status) {
    run_flags *f = &r->flags;
    f->n = DEFAULT_TOKENS;
    const hth_flag flags[] = {
        {'p', "prompt", NULL, HTH_FLAG_TEXT, &f->prompt, "TEXT", "the message or text; -: standard input", 0, 0},
        {'f', "file", NULL, HTH_FLAG_TEXT, &f->file, "FILE", "read it from a file; default: standard input", 0, 0},
        {'n', "tokens", "n-predict", HTH_FLAG_INT, &f->n, "N", "tokens to generate at most (256)", 0, INT64_MAX},
        HTH_CHOOSING_FLAGS(&r->choosing),
        {0, "system", "system-prompt", HTH_FLAG_TEXT, &f->system, "TEXT|@FILE", "a system message in front", 0, 0},
        HTH_TEMPLATE_FLAGS(&f->template),
        {0, "raw", NULL, HTH_FLAG_SWITCH, &f->raw, NULL, "no chat template: complete the text", 0, 0},
        {0, "no-special", NULL, HTH_FLAG_SWITCH, &f->no_special, NULL, "read control tokens in a raw prompt as text", 0,
         0},
        {0, "no-bos", NULL, HTH_FLAG_SWITCH, &f->no_bos, NULL, "add no begin or end token to a raw prompt", 0, 0},
        {0, "special", NULL, HTH_FLAG_SWITCH, &f->show_special, NULL, "show control tokens in the text", 0, 0},
        {'v', "verbose", NULL, HTH_FLAG_SWITCH, &f->verbose, NULL, "give times and rates where no terminal gets them",
         0, 0},
        {0, "ledger", NULL, HTH_FLAG_SWITCH, &f->ledger, NULL, "print what opening the model cost", 0, 0},
        {0, "svg", NULL, HTH_FLAG_TEXT, &f->svg, "FILE", "draw what opening the model cost", 0, 0},
    };
    const hth_command command = {
        .verb = "run",
        .summary = "Answer a message, or complete a text. What is generated goes to standard output as it comes.",
        .notes = notes,
        .scopes = HTH_SCOPES_ALL,
        .flags = flags,
        .n_flags = sizeof flags / sizeof *flags,
        .defaults = defaults,
        .n_defaults = sizeof defaults / sizeof *defaults};
    if (!hth_args_parse(&command, argc, argv, &r->args, status)) return false;
    if (f->prompt && strcmp(f->prompt, "-") == 0 && !f->file) {
        f->prompt = NULL;
        f->file = "-";
    }
    *status = check_flags(r);
    return *status == HTH_EXIT_OK;
}

/* ---- Preparation ---- */

/* The request with the prompt as a user's message. */
static int make_request(const run_state *r, hth_text *request) {
    hth_conversation c = {.count = 0};
    hth_text system = {NULL, 0};
    int status = HTH_EXIT_OK;
    size_t size = r->prompt.size;
    if (!r->flags.prompt && size > 0 && r->prompt.data[size - 1] == '\n') size--;
    if (!hth_utf8_is_valid(r->prompt.data, size)) {
        hth_complain("the message is not UTF-8; --raw completes any bytes");
        return HTH_EXIT_FAILED;
    }
    if (r->flags.system) status = hth_read_text_or_file(r->flags.system, &system);
    if (status != HTH_EXIT_OK) return status;
    if ((r->flags.system && !hth_conversation_add(&c, HTH_SYSTEM, system.data, system.size)) ||
        !hth_conversation_add(&c, HTH_USER, r->prompt.data, size) || !hth_conversation_request(&c, request))
        status = hth_out_of_memory();
    hth_conversation_free(&c);
    free(system.data);
    return status;
}

static int encode_message(run_state *r) {
    hearth_rendering *rendering = NULL;
    hth_text request = {NULL, 0};
    if (r->flags.no_special || r->flags.no_bos) {
        hth_complain("%s has an effect only with --raw", r->flags.no_special ? "--no-special" : "--no-bos");
        return HTH_EXIT_USAGE;
    }
    int status = make_request(r, &request);
    if (status == HTH_EXIT_OK) status = hth_chat_template_render(&r->template, request, -1, &rendering);
    if (status == HTH_EXIT_OK) status = hth_encode_rendering(r->tokenizer, rendering, 0, &r->generation.prompt, NULL);
    hearth_rendering_free(&rendering);
    free(request.data);
    return status;
}

static int encode_prompt(run_state *r) {
    unsigned flags = (r->flags.no_special ? 0 : HEARTH_ENCODE_SPECIAL) | (r->flags.no_bos ? 0 : HEARTH_ENCODE_ADD);
    if (!r->flags.raw) {
        int status = hth_chat_template_open(r->path, &r->flags.template, r->tokenizer, &r->template);
        if (status != HTH_EXIT_OK) return status;
        if (r->template.template) return encode_message(r);
        if (r->flags.system || r->flags.template.arguments.count > 0) {
            hth_complain("%s: the model has no chat template; --template gives one",
                         r->flags.system ? "--system" : "--template-arg");
            return HTH_EXIT_FAILED;
        }
        hth_note("the model has no chat template: the text is completed as it is (--raw does so without this note)");
    }
    return hth_encode(r->tokenizer, r->prompt, flags, &r->generation.prompt);
}

/* The prompt's tokens, and the context that they and the answer need. The tokenizer comes first, since the engine
 * cannot be planned before the length is known, and the engine takes it over. */
static int prepare_prompt(run_state *r) {
    hth_generation *g = &r->generation;
    int status = hth_open_tokenizer(&r->args, r->path, &r->tokenizer);
    if (status != HTH_EXIT_OK) return status;
    status = encode_prompt(r);
    if (status == HTH_EXIT_OK) status = hth_choosing_prepare(&r->choosing, r->tokenizer);
    if (status != HTH_EXIT_OK) return status;
    if (g->prompt.count == 0) {
        hth_complain("the prompt has no tokens");
        return HTH_EXIT_FAILED;
    }
    int64_t count = (int64_t)g->prompt.count, model = hearth_tokenizer_model_context(r->tokenizer);
    int64_t context = hth_int_option(&r->args, "ctx", NULL);
    bool asked = context > 0;
    status = hth_check_fits(&r->args, model, count);
    if (!asked) context = r->flags.n > INT32_MAX - count ? INT32_MAX : count + r->flags.n;
    if (!asked && model > 0 && context > model) context = model;
    if (status == HTH_EXIT_OK) status = hth_set_int(&r->args, "ctx", context);
    if (status == HTH_EXIT_OK) status = hth_set_default(&r->args, "rows", count < MOST_ROWS ? count : MOST_ROWS);
    if (status != HTH_EXIT_OK) return status;
    g->most = r->flags.n;
    r->room = g->most < context - count + 1 ? g->most : context - count + 1;
    g->tokens = malloc((size_t)(r->room + 1) * sizeof *g->tokens);
    return g->tokens ? HTH_EXIT_OK : hth_out_of_memory();
}

static int open_all(run_state *r) {
    hth_generation *g = &r->generation;
    uint64_t start = hth_now_ns();
    int status = hth_open_engine_with(&r->args, r->path, &r->tokenizer, &g->engine);
    r->open_ms = hth_ms_since(start);
    if (status != HTH_EXIT_OK) return status;
    hearth_model_info info;
    hearth_engine_info(g->engine, &info);
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_session_create(g->engine, &g->session, &err) != HEARTH_OK ||
        hth_choosing_sampler(&r->choosing, r->args.options, info.vocab, (int64_t)g->prompt.count + r->room, &g->sampler,
                             &err) != HEARTH_OK ||
        hearth_detokenizer_create(hearth_engine_tokenizer(g->engine), r->flags.show_special, &g->detokenizer, &err) !=
            HEARTH_OK ||
        hth_choosing_stops(&r->choosing, &g->stops, &err) != HEARTH_OK)
        return hth_complain_error(&err);
    g->matcher = r->choosing.constrained.matcher;
    return HTH_EXIT_OK;
}

/* ---- Output ---- */

static bool emit_text(void *context, const char *text, size_t size) {
    (void)context;
    return hth_out(text, size);
}

static bool keep_text(void *context, const char *text, size_t size) {
    run_state *r = context;
    if (r->text.size + size > r->text_capacity) {
        size_t capacity = (r->text.size + size) * 2;
        char *grown = realloc(r->text.data, capacity);
        if (!grown) return false;
        r->text.data = grown;
        r->text_capacity = capacity;
    }
    memcpy(r->text.data + r->text.size, text, size);
    r->text.size += size;
    return true;
}

static double per_second(int64_t count, double ms) {
    return ms > 0 ? (double)count * 1000 / ms : 0;
}

static void report_json(const run_state *r) {
    const hth_generation *g = &r->generation;
    hth_json json = {.out = stdout};
    const hearth_ledger_row *rows;
    size_t count = hearth_engine_ledger(g->engine, &rows);
    hth_json_open(&json, NULL, '{');
    hth_report_model(&json, r->path, g->engine);
    hth_json_bytes(&json, "text", r->text.data ? r->text.data : "", r->text.size);
    hth_json_open(&json, "tokens", '[');
    for (int64_t i = 0; i < g->count; i++) hth_json_int(&json, NULL, g->tokens[i]);
    hth_json_close(&json, ']');
    hth_json_text(&json, "stop", hth_stop_name(g->stop));
    hth_json_int(&json, "seed", hearth_sampler_seed(g->sampler));
    hth_json_int(&json, "prompt_tokens", (int64_t)g->prompt.count);
    hth_json_int(&json, "generated_tokens", g->count);
    if (r->choosing.constrained.constraint) hth_constrained_report(&r->choosing.constrained, &json);
    hth_json_open(&json, "timings", '{');
    hth_report_measure(&json, "open_ms", r->open_ms);
    hth_report_measure(&json, "prompt_ms", g->prompt_ms);
    hth_report_measure(&json, "first_token_ms", g->first_token_ms);
    hth_report_measure(&json, "decode_ms", g->decode_ms);
    hth_report_measure(&json, "prompt_tokens_per_s", per_second(g->sync.computed, g->prompt_ms));
    hth_report_measure(&json, "decode_tokens_per_s", per_second(g->decoded, g->decode_ms));
    hth_json_close(&json, '}');
    hth_report_counters(&json, g->engine);
    hth_report_plan(&json, g->engine);
    hth_ledger_json(&json, rows, count);
    hth_json_close(&json, '}');
}

/* Whether standard output and standard error are one, as behind 2>&1. */
static bool streams_meet(void) {
    struct stat out, errors;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &errors) == 0 && out.st_dev == errors.st_dev &&
           out.st_ino == errors.st_ino;
}

/* The text ends where it ends; what is said of it begins on a line of its own. */
static void report_summary(const run_state *r) {
    const hth_generation *g = &r->generation;
    const bool summary = hth_progress_shown() || r->flags.verbose;
    char decoded[32] = "";
    if (!r->args.common.json && hth_out_is_terminal()) hth_out("\n", 1);
    else if (!r->args.common.json && (r->flags.ledger || summary) && streams_meet()) fputc('\n', stderr);
    if (r->flags.ledger) {
        const hearth_ledger_row *rows;
        size_t count = hearth_engine_ledger(g->engine, &rows);
        hth_ledger_table(stderr, rows, count);
    }
    if (!summary) return;
    if (g->decoded > 0) snprintf(decoded, sizeof decoded, ", %.1f/s", per_second(g->decoded, g->decode_ms));
    hth_note("open %.0f ms; prompt %zu token%s, %.1f/s; generated %lld%s; stop: %s; seed %lld", r->open_ms,
             g->prompt.count, hth_plural((int64_t)g->prompt.count), per_second(g->sync.computed, g->prompt_ms),
             (long long)g->count, decoded, hth_stop_name(g->stop), (long long)hearth_sampler_seed(g->sampler));
}

static int generate(run_state *r) {
    hth_generation *g = &r->generation;
    g->emit = r->args.common.json ? keep_text : emit_text;
    g->emit_context = r;
    hth_interrupt_catch();
    hearth_error err = {HEARTH_OK, ""};
    if (hth_generate(g, &err) != HEARTH_OK) return hth_complain_error(&err);
    if (g->stop == HTH_STOP_OUTPUT && r->args.common.json) return hth_out_of_memory();
    if (r->args.common.json) report_json(r);
    report_summary(r);
    int status = r->flags.svg ? hth_ledger_draw(r->flags.svg, r->path, g->engine) : HTH_EXIT_OK;
    return g->stop == HTH_STOP_OUTPUT ? HTH_EXIT_FAILED : status;
}

static void run_free(run_state *r) {
    hth_generation *g = &r->generation;
    hearth_stop_matcher_free(&g->stops);
    hearth_detokenizer_free(&g->detokenizer);
    hearth_sampler_free(&g->sampler);
    hth_choosing_free(&r->choosing);
    hth_chat_template_free(&r->template);
    hth_list_free(&r->flags.template.arguments);
    hearth_session_free(&g->session);
    hearth_engine_close(&g->engine);
    hearth_tokenizer_close(&r->tokenizer);
    free(g->tokens);
    free(g->prompt.ids);
    free(r->prompt.data);
    free(r->text.data);
    hth_args_free(&r->args);
}

int hth_verb_run(int argc, char **argv) {
    run_state r = {.room = 0};
    int status;
    if (parse_flags(argc, argv, &r, &status)) {
        status = hth_find_model(&r.args, r.path);
        if (status == HTH_EXIT_OK && r.flags.svg) status = hth_report_check_picture(r.flags.svg);
        if (status == HTH_EXIT_OK) status = hth_read_text(r.flags.prompt, r.flags.file, HTH_MOST_TEXT, &r.prompt);
        if (status == HTH_EXIT_OK) status = prepare_prompt(&r);
        if (status == HTH_EXIT_OK) status = open_all(&r);
        if (status == HTH_EXIT_OK) status = generate(&r);
    }
    run_free(&r);
    return status;
}
