/* `hearth explain`: what opening a model would do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/jsonout.h"
#include "cli/model.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/engine.h"

/* The text, one array of lines a section. A section begins after an empty line with its title. */
static void print_sections(const char *path, char *text) {
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_json_bytes(&json, "model", path, strlen(path));
    hth_json_open(&json, "facts", '[');
    bool title = false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        if (title || !*line) {
            if (title) {
                hth_json_close(&json, ']');
                hth_json_open(&json, line, '[');
            }
            title = !title;
        } else {
            hth_json_bytes(&json, NULL, line, strlen(line));
        }
    }
    hth_json_close(&json, ']');
    hth_json_close(&json, '}');
}

static int explain_json(const hth_args *args, const char *path) {
    char *text = NULL;
    size_t size = 0;
    hearth_error err = {HEARTH_OK, ""};
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return hth_out_of_memory();
    hearth_status status = hearth_explain(path, args->options, memory, &err);
    bool complete = fclose(memory) == 0;
    int result = HTH_EXIT_OK;
    if (status != HEARTH_OK) result = hth_complain_error(&err);
    else if (!complete) result = hth_out_of_memory();
    else print_sections(path, text);
    free(text);
    return result;
}

static int explain(const hth_args *args) {
    char path[HTH_MAX_PATH];
    hearth_error err = {HEARTH_OK, ""};
    int status = hth_find_model(args, path);
    if (status != HTH_EXIT_OK) return status;
    if (args->common.json) return explain_json(args, path);
    if (hearth_explain(path, args->options, stdout, &err) != HEARTH_OK) return hth_complain_error(&err);
    return HTH_EXIT_OK;
}

int hth_verb_explain(int argc, char **argv) {
    const hth_command command = {.verb = "explain",
                                 .summary = "Print the program, the memory plan, the kernels and the options in force. "
                                            "Nothing is computed.",
                                 .scopes = HTH_SCOPES_ENGINE};
    hth_args args;
    int status;
    if (!hth_args_parse(&command, argc, argv, &args, &status)) return status;
    status = explain(&args);
    hth_args_free(&args);
    return status;
}
