#include "cli/args.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "cli/help.h"
#include "cli/say.h"
#include "cli/verbs.h"

/* What other programs can do and Hearth cannot: asked for, it is refused by name. */
static const struct {
    const char *flag, *what;
} unsupported[] = {
    {"lora", "LoRA adapters are not supported"},
    {"lora-scaled", "LoRA adapters are not supported"},
    {"control-vector", "control vectors are not supported"},
    {"mmproj", "images and audio are not supported"},
    {"image", "images are not supported"},
    {"audio", "audio is not supported"},
    {"embedding", "embeddings are not supported"},
    {"embeddings", "embeddings are not supported"},
    {"pooling", "embeddings are not supported"},
    {"rerank", "reranking is not supported"},
    {"chat-template", "--template FILE gives a chat template"},
    {"jinja", "chat templates are always run; --raw does without"},
    {"conversation", "that is the verb chat"},
    {"system-prompt", "a system message is given with --system, to verbs that have a use for it"},
    {"n-gpu-layers", "GPUs are not there yet"},
    {"ngl", "GPUs are not there yet"},
    {"gpu-layers", "GPUs are not there yet"},
    {"device", "GPUs are not there yet"},
    {"model-draft", "speculative decoding is not there yet"},
    {"draft", "speculative decoding is not there yet"},
    {"mirostat", "mirostat sampling is not supported"},
    {"prompt-cache", "saved sessions are not there yet"},
    {"rope-scaling", "rope scaling is read from the model file"},
    {"rope-freq-base", "rope scaling is read from the model file"},
    {"rope-freq-scale", "rope scaling is read from the model file"},
    {"no-mmap", "weights are always mapped; --lock keeps them in memory"},
    {"cache-type-k", "use --kv for the type of the KV cache"},
    {"cache-type-v", "use --kv for the type of the KV cache"},
    {"batch-size", "use --rows for the most rows of a pass"},
};

/* What all verbs have in place of the table's default. */
static const hth_default program_defaults[] = {{"sigbus", "on", NULL}};

/* Letters that users of other programs know. */
static const struct {
    char letter;
    const char *option;
} option_letters[] = {{'c', "ctx"}, {'t', "threads"}, {'s', "seed"}};

/* What a parse works on: the verb's flags and the common ones. */
typedef struct parser {
    const hth_command *command;
    hth_args *args;
    hth_flag common[3];
    size_t n_common;
    const char *config;
    int argc, i;
    char **argv;
} parser;

/* One word of the command line, taken apart: "--name=value" or "-p". */
typedef struct word {
    const char *text; /* as given */
    const char *name;
    size_t size;
    const char *attached; /* after '=', or NULL */
    bool letter;
} word;

/* ---- Names ---- */

static const hth_flag *flag_at(const parser *p, size_t i) {
    return i < p->command->n_flags ? &p->command->flags[i] : &p->common[i - p->command->n_flags];
}

static size_t flag_count(const parser *p) {
    return p->command->n_flags + p->n_common;
}

static bool same(const char *known, const word *w) {
    return known && strlen(known) == w->size && memcmp(known, w->name, w->size) == 0;
}

static const hth_flag *find_flag(const parser *p, const word *w) {
    for (size_t i = 0; i < flag_count(p); i++) {
        const hth_flag *flag = flag_at(p, i);
        if (w->letter ? flag->letter == w->name[0] : same(flag->name, w) || same(flag->other, w)) return flag;
    }
    return NULL;
}

static const hearth_option_info *find_option(const word *w) {
    if (!w->letter) return hth_option_find(w->name, w->size);
    for (size_t i = 0; i < sizeof option_letters / sizeof *option_letters; i++)
        if (option_letters[i].letter == w->name[0])
            return hth_option_find(option_letters[i].option, strlen(option_letters[i].option));
    return NULL;
}

static bool in_scope(const parser *p, const hearth_option_info *option) {
    return p->command->scopes >> option->scope & 1;
}

/* "--no-pin" for a switch of the table. */
static const hearth_option_info *find_negated(const parser *p, const word *w) {
    if (w->letter || w->size < 4 || memcmp(w->name, "no-", 3) != 0) return NULL;
    const hearth_option_info *option = hth_option_find(w->name + 3, w->size - 3);
    return option && option->type == HEARTH_OPTION_BOOL && in_scope(p, option) ? option : NULL;
}

static void consider(const char *name, const char *known, const char **nearest, size_t *best) {
    size_t distance = known && known[0] ? hth_name_distance(name, known) : SIZE_MAX;
    if (distance < *best) *best = distance, *nearest = known;
}

static bool refuse_unknown(const parser *p, const word *w) {
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (!w->letter && same(unsupported[i].flag, w)) {
            hth_complain("%.*s: %s", (int)(w->name + w->size - w->text), w->text, unsupported[i].what);
            return false;
        }
    char name[64];
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    if (!w->letter && w->size < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)w->size, w->name);
        for (size_t i = 0; i < flag_count(p); i++) {
            if (!flag_at(p, i)->help) continue;
            consider(name, flag_at(p, i)->name, &nearest, &best);
            consider(name, flag_at(p, i)->other, &nearest, &best);
        }
        for (size_t i = 0; i < hearth_option_count(); i++) {
            const hearth_option_info *option = hearth_option_at(i);
            if (!in_scope(p, option)) continue;
            consider(name, option->name, &nearest, &best);
            consider(name, option->other_name, &nearest, &best);
        }
    }
    if (nearest && hth_name_is_near(name, best)) hth_complain("unknown flag %s; did you mean --%s?", w->text, nearest);
    else hth_complain("unknown flag %s; 'hearth %s --help' lists them", w->text, p->command->verb);
    return false;
}

/* ---- Values ---- */

static bool append(hth_list *list, const char *text) {
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) {
        hth_complain("out of memory");
        return false;
    }
    items[list->count++] = text;
    list->items = items;
    return true;
}

/* The value after the word or attached to it; NULL with a message when there is none. */
static const char *take_value(parser *p, const word *w) {
    if (w->attached) return w->attached;
    if (p->i + 1 < p->argc) return p->argv[++p->i];
    hth_complain("%s needs a value", w->text);
    return NULL;
}

static bool set_int(const hth_flag *flag, const word *w, const char *text) {
    int64_t value;
    if (hth_parse_int(text, false, &value) && value >= flag->min && value <= flag->max) {
        *(int64_t *)flag->out = value;
        return true;
    }
    int size = (int)(w->attached ? w->attached - 1 - w->text : (ptrdiff_t)strlen(w->text));
    if (flag->max == INT64_MAX)
        hth_complain("%.*s: '%s' is not a whole number of at least %lld", size, w->text, text, (long long)flag->min);
    else
        hth_complain("%.*s: '%s' is not a whole number from %lld to %lld", size, w->text, text, (long long)flag->min,
                     (long long)flag->max);
    return false;
}

static bool set_flag(parser *p, const hth_flag *flag, const word *w) {
    const char *value = NULL;
    if (flag->kind == HTH_FLAG_LATER) {
        hth_complain("--%s: not there yet (%s)", flag->name, flag->help);
        return false;
    }
    if (flag->kind == HTH_FLAG_SWITCH) {
        if (w->attached) hth_complain("--%s takes no value", flag->name);
        else *(bool *)flag->out = true;
        return !w->attached;
    }
    if (!(value = take_value(p, w))) return false;
    switch (flag->kind) {
    case HTH_FLAG_TEXT: *(const char **)flag->out = value; return true;
    case HTH_FLAG_LIST: return append(flag->out, value);
    case HTH_FLAG_INT: return set_int(flag, w, value);
    case HTH_FLAG_SWITCH:
    case HTH_FLAG_LATER: break;
    }
    return false;
}

static bool set_option(parser *p, const hearth_option_info *option, const word *w) {
    if (!in_scope(p, option)) {
        hth_complain("%s has no effect in '%s'", w->text, p->command->verb);
        return false;
    }
    const char *value = w->attached;
    if (option->type != HEARTH_OPTION_BOOL && !(value = take_value(p, w))) return false;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_options_set(p->args->options, option->name, value, &err) == HEARTH_OK) return true;
    hth_complain("%s", err.text);
    return false;
}

/* ---- Words ---- */

static word take_apart(char *text) {
    word w = {.text = text};
    w.letter = text[1] != '-';
    w.name = text + (w.letter ? 1 : 2);
    w.size = w.letter ? 1 : strcspn(w.name, "=");
    if (w.name[w.size] == '=') w.attached = w.name + w.size + 1;
    return w;
}

static bool parse_word(parser *p, char *text) {
    word w = take_apart(text);
    const hearth_option_info *option;
    if (w.letter && w.name[1] && !w.attached) { /* "-xyz": letters are not bundled, so this is a name */
        w.letter = false;
        w.size = strlen(w.name);
        return refuse_unknown(p, &w);
    }
    const hth_flag *flag = find_flag(p, &w);
    if (flag) return set_flag(p, flag, &w);
    if ((option = find_option(&w))) return set_option(p, option, &w);
    if ((option = find_negated(p, &w)) && !w.attached)
        return hearth_options_set(p->args->options, option->name, "off", NULL) == HEARTH_OK;
    return refuse_unknown(p, &w);
}

static bool parse_operand(parser *p, const char *text) {
    if (p->command->operands) return append(&p->args->operands, text);
    const word prompt = {.name = "prompt", .size = sizeof "prompt" - 1};
    const hth_flag *flag = find_flag(p, &prompt);
    if (flag && flag->letter == 'p' && flag->help && strcmp(flag->value, "TEXT") == 0)
        hth_complain("'%s' is no flag; a text is given with -p", text);
    else hth_complain("'%s' is no flag; 'hearth %s --help' says what can be given", text, p->command->verb);
    return false;
}

static bool parse_words(parser *p) {
    bool flags = true;
    for (p->i = 1; p->i < p->argc; p->i++) {
        char *text = p->argv[p->i];
        if (flags && strcmp(text, "--") == 0) {
            flags = false;
            continue;
        }
        bool flag = flags && text[0] == '-' && text[1] != '\0';
        if (!(flag ? parse_word(p, text) : parse_operand(p, text))) return false;
    }
    return true;
}

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return true;
    return false;
}

/* The --config that will be in force; it has to be read before the other words are. */
static const char *find_config(int argc, char **argv) {
    const char *found = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--config=", 9) == 0) found = argv[i] + 9;
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) found = argv[++i];
    }
    return found;
}

static void add_common(parser *p) {
    hth_common *common = &p->args->common;
    const hth_flag flags[] = {
        {'m', "model", NULL, HTH_FLAG_TEXT, &common->model, "FILE", "the model; default: the one that is fetched", 0,
         0},
        {0, "json", NULL, HTH_FLAG_SWITCH, &common->json, NULL, "report as JSON on standard output", 0, 0},
        {0, "config", NULL, HTH_FLAG_TEXT, &p->config, "FILE", "read options from a file of 'name = value' lines", 0,
         0},
    };
    p->n_common = sizeof flags / sizeof *flags;
    assert(p->n_common == sizeof p->common / sizeof *p->common);
    memcpy(p->common, flags, sizeof flags);
}

/* The options as they are before the words: the program's defaults, the file, the environment. */
static int read_settings(hearth_options *options, const char *config) {
    hearth_error err = {HEARTH_OK, ""};
    hearth_status status = HEARTH_OK;
    if (config) status = hearth_options_read_file(options, config, &err);
    if (status == HEARTH_OK) status = hearth_options_read_environment(options, &err);
    return status == HEARTH_OK ? HTH_EXIT_OK : hth_complain_error(&err);
}

static const hth_default *find_default(const hth_default *defaults, size_t count, const char *option) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(defaults[i].option, option) == 0) return &defaults[i];
    return NULL;
}

const hth_default *hth_verb_default(const hth_command *command, const char *option) {
    const hth_default *own = find_default(command->defaults, command->n_defaults, option);
    return own ? own : find_default(program_defaults, sizeof program_defaults / sizeof *program_defaults, option);
}

static int create_options(const hth_command *command, hearth_options **options) {
    hearth_error err = {HEARTH_OK, ""};
    hearth_status status = hearth_options_create(options, &err);
    for (size_t i = 0; i < hearth_option_count() && status == HEARTH_OK; i++) {
        const char *name = hearth_option_at(i)->name;
        const hth_default *found = hth_verb_default(command, name);
        if (found && found->value) status = hearth_options_set(*options, name, found->value, &err);
    }
    return status == HEARTH_OK ? HTH_EXIT_OK : hth_complain_error(&err);
}

bool hth_args_parse(const hth_command *command, int argc, char **argv, hth_args *args, int *status) {
    *args = (hth_args){.options = NULL};
    parser p = {.command = command, .args = args, .argc = argc, .argv = argv};
    bool help = wants_help(argc, argv);
    add_common(&p);
    *status = create_options(command, &args->options);
    if (*status == HTH_EXIT_OK && help) hth_print_help(command, p.common, p.n_common);
    else if (*status == HTH_EXIT_OK) *status = read_settings(args->options, find_config(argc, argv));
    if (*status == HTH_EXIT_OK && !help) {
        if (parse_words(&p)) return true;
        *status = HTH_EXIT_USAGE;
    }
    hth_args_free(args);
    return false;
}

bool hth_list_without_empty(const hth_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i][0]) return false;
    return true;
}

void hth_list_free(hth_list *list) {
    free((void *)list->items);
    *list = (hth_list){NULL, 0};
}

void hth_args_free(hth_args *args) {
    hearth_options_free(&args->options);
    hth_list_free(&args->operands);
}
