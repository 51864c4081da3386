/* The command line of a verb: its own flags, and the options of the table in the scopes it has a use for. */
#ifndef HTH_CLI_ARGS_H
#define HTH_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearth/options.h"

/* Texts in the order they were given; they point into argv. */
typedef struct hth_list {
    const char **items;
    size_t count;
} hth_list;

typedef enum hth_flag_kind {
    HTH_FLAG_SWITCH, /* out: bool *, set to true */
    HTH_FLAG_TEXT,   /* out: const char ** */
    HTH_FLAG_INT,    /* out: int64_t *, from min to max */
    HTH_FLAG_LIST,   /* out: hth_list *, may be given several times */
    HTH_FLAG_LATER   /* known, and not there yet: refused by name */
} hth_flag_kind;

typedef struct hth_flag {
    char letter;       /* 'p' for -p; 0: none */
    const char *name;  /* "prompt" */
    const char *other; /* a second name, or NULL */
    hth_flag_kind kind;
    void *out;
    const char *value; /* what the help calls its value */
    const char *help;  /* NULL: the help does not list it, and nothing suggests it */
    int64_t min, max;
} hth_flag;

/* What an option is in a verb as long as nobody sets it, where that is not what the table of options says. */
typedef struct hth_default {
    const char *option;
    const char *value; /* in force before the user's settings are read; NULL: the verb works it out later */
    const char *shown; /* what the help says; NULL: the value */
} hth_default;

/* The flags that most verbs share; NULL where a verb does not have one. */
typedef struct hth_common {
    const char *model; /* -m */
    bool json;
} hth_common;

typedef struct hth_command {
    const char *verb;
    const char *summary;  /* one line */
    const char *operands; /* how the usage line shows them; NULL: none are allowed */
    const char *notes;    /* ends the help; may be NULL */
    unsigned scopes;      /* bit s: the options of hearth_option_scope s */
    const hth_flag *flags;
    size_t n_flags;
    const hth_default *defaults;
    size_t n_defaults;
} hth_command;

typedef struct hth_args {
    hth_common common;
    hearth_options *options;
    hth_list operands;
} hth_args;

#define HTH_SCOPES_PROGRAM (1u << HEARTH_SCOPE_PROGRAM)
#define HTH_SCOPES_TEXT    (1u << HEARTH_SCOPE_TEXT | HTH_SCOPES_PROGRAM)
#define HTH_SCOPES_ENGINE  (1u << HEARTH_SCOPE_ENGINE | HTH_SCOPES_TEXT)
#define HTH_SCOPES_ALL     (1u << HEARTH_SCOPE_SAMPLING | HTH_SCOPES_ENGINE)

/* Parse. True: go on, and call hth_args_free at the end together with hth_list_free for each list. False: *status is
 * the exit status, help or an error is printed, and everything is released but the lists. Settings count in this order,
 * later ones over earlier ones: defaults, those of the verb, --config FILE, environment, command line. */
bool hth_args_parse(const hth_command *command, int argc, char **argv, hth_args *args, int *status);
void hth_args_free(hth_args *args);

/* The default that the verb has of its own for an option, or all verbs have; NULL: none. */
const hth_default *hth_verb_default(const hth_command *command, const char *option);

bool hth_list_without_empty(const hth_list *list); /* no text in it is empty */
void hth_list_free(hth_list *list);

#endif
