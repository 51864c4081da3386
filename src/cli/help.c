#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/say.h"

enum { HELP_COLUMN = 32 };

/* "  -p, --prompt TEXT             help" */
static void print_row(char letter, const char *name, const char *value, const char *help, const char *extra) {
    char left[80];
    char short_name[8] = "";
    if (letter) snprintf(short_name, sizeof short_name, "-%c, ", letter);
    snprintf(left, sizeof left, "  %4s--%s%s%s", short_name, name, value ? " " : "", value ? value : "");
    const char *gap = strlen(left) >= HELP_COLUMN ? "\n" : "";
    hth_outf("%s%s%*s%s%s\n", left, gap, *gap ? HELP_COLUMN : (int)(HELP_COLUMN - strlen(left)), "", help, extra);
}

static void print_flags(const hth_flag *flags, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (flags[i].kind != HTH_FLAG_LATER && flags[i].help)
            print_row(flags[i].letter, flags[i].name, flags[i].value, flags[i].help, "");
}

static const char *value_name(const hearth_option_info *option) {
    switch (option->type) {
    case HEARTH_OPTION_INT: return "N";
    case HEARTH_OPTION_FLOAT: return "X";
    case HEARTH_OPTION_TEXT: return "TEXT";
    case HEARTH_OPTION_CHOICE: return option->choices;
    case HEARTH_OPTION_BOOL: break;
    }
    return NULL;
}

/* " (0.8)", or nothing when there is no default. */
static void format_default(const hth_command *command, const hearth_option_info *option, char text[80]) {
    const hth_default *own = hth_verb_default(command, option->name);
    const char *value = !own ? option->fallback : own->shown ? own->shown : own->value;
    text[0] = '\0';
    if (value[0]) snprintf(text, 80, " (%s)", value);
}

static void print_options(const hth_command *command, hearth_option_scope scope, const char *title) {
    if (!(command->scopes >> scope & 1)) return;
    hth_outf("\n%s\n", title);
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *option = hearth_option_at(i);
        char text[80];
        if (option->scope != scope) continue;
        format_default(command, option, text);
        print_row(0, option->name, value_name(option), option->help, text);
    }
}

static bool has_switches(const hth_command *command) {
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *option = hearth_option_at(i);
        if (option->type == HEARTH_OPTION_BOOL && (command->scopes >> option->scope & 1)) return true;
    }
    return false;
}

void hth_print_help(const hth_command *command, const hth_flag *common, size_t n_common) {
    hth_outf("usage: hearth %s [-m MODEL] [flags]%s%s\n\n%s\n\nflags\n", command->verb, command->operands ? " " : "",
             command->operands ? command->operands : "", command->summary);
    print_flags(command->flags, command->n_flags);
    print_flags(common, n_common);
    print_row('h', "help", NULL, "this text", "");
    print_options(command, HEARTH_SCOPE_SAMPLING, "sampling options");
    print_options(command, HEARTH_SCOPE_TEXT, "text options");
    print_options(command, HEARTH_SCOPE_ENGINE, "engine options");
    print_options(command, HEARTH_SCOPE_PROGRAM, "program options");
    if (command->scopes)
        hth_outf(
            "\nOptions can also be set by environment variables (--cache: HEARTH_CACHE) and in a --config file; the "
            "command\nline counts most. In parentheses: the default.%s\n",
            has_switches(command) ? " --no-NAME turns a switch off." : "");
    if (command->notes) hth_outf("\n%s\n", command->notes);
    hth_outf("\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}
