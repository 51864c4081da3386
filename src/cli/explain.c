/* `hearth explain`: what opening a model would do. */
#include <stdio.h>

#include "base/jsonout.h"
#include "cli/args.h"
#include "cli/ledger.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/engine.h"

typedef struct explain_flags {
    bool open, plan;
    const char *svg;
} explain_flags;

/* Open the model and tell what it cost. */
static int explain_open(const hth_args *args, const explain_flags *flags, const char *path) {
    hearth_engine *engine;
    const hearth_ledger_row *rows;
    int status = flags->svg ? hth_report_check_picture(flags->svg) : HTH_EXIT_OK;
    if (status == HTH_EXIT_OK) status = hth_open_engine(args, path, &engine);
    if (status != HTH_EXIT_OK) return status;
    size_t count = hearth_engine_ledger(engine, &rows);
    if (args->common.json) {
        hth_json json = {.out = stdout};
        hth_json_open(&json, NULL, '{');
        hth_report_model(&json, path, engine);
        hth_report_plan(&json, engine);
        hth_ledger_json(&json, rows, count);
        hth_json_close(&json, '}');
    } else {
        hth_ledger_table(stdout, rows, count);
    }
    if (flags->svg) status = hth_ledger_draw(flags->svg, path, engine);
    hearth_engine_close(&engine);
    return status;
}

static int explain(const hth_args *args, const explain_flags *flags) {
    char path[HTH_MAX_PATH];
    hearth_error err = {HEARTH_OK, ""};
    int status = hth_find_model(args, path);
    if (status != HTH_EXIT_OK) return status;
    if (flags->svg && !flags->open) {
        hth_complain("--svg draws what opening costs: it needs --open");
        return HTH_EXIT_USAGE;
    }
    if (flags->open && flags->plan) {
        hth_complain("--plan opens nothing: it has no effect with --open");
        return HTH_EXIT_USAGE;
    }
    if (flags->open) return explain_open(args, flags, path);
    const hearth_explain_request request = {.path = path,
                                            .options = args->options,
                                            .parts = flags->plan ? HEARTH_EXPLAIN_PLAN : HEARTH_EXPLAIN_ALL,
                                            .json = args->common.json};
    if (hearth_explain_to(&request, stdout, &err) != HEARTH_OK) return hth_complain_error(&err);
    hth_out("", 0); /* writes what is left, and keeps the reason if that fails */
    return HTH_EXIT_OK;
}

int hth_verb_explain(int argc, char **argv) {
    explain_flags chosen = {.open = false};
    const hth_flag flags[] = {
        {0, "plan", NULL, HTH_FLAG_SWITCH, &chosen.plan, NULL, "print the memory plan alone", 0, 0},
        {0, "open", NULL, HTH_FLAG_SWITCH, &chosen.open, NULL, "open the model and print what that cost", 0, 0},
        {0, "svg", NULL, HTH_FLAG_TEXT, &chosen.svg, "FILE", "with --open: draw it", 0, 0},
    };
    static const char notes[] =
        "Options that leave the choice to open are shown as it has chosen.\n"
        "--open gives a row for each thing that costs: when it began and ended, what open waited for it alone\n"
        "(exposed; these add up), bytes, page faults without and with reading (minor, major), bytes of weights that\n"
        "were still to come (outstanding), and what was chosen. docs/open.md says more.";
    static const hth_default context = {"ctx", NULL, "the model's, at most 8192 and what fits"};
    const hth_command command = {.verb = "explain",
                                 .summary = "Print the program, the memory plan, the kernels and the options in force. "
                                            "Nothing is computed.",
                                 .notes = notes,
                                 .scopes = HTH_SCOPES_ENGINE,
                                 .flags = flags,
                                 .n_flags = sizeof flags / sizeof *flags,
                                 .defaults = &context,
                                 .n_defaults = 1};
    hth_args args;
    int status;
    if (!hth_args_parse(&command, argc, argv, &args, &status)) return status;
    status = explain(&args, &chosen);
    hth_args_free(&args);
    return status;
}
