/* `hearth bench`: rates of prefill and decode over token counts, depths and sessions, beside the machine's limits. */
#include "cli/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/say.h"
#include "cli/verbs.h"

enum { MAX_TOKENS = 1 << 24, MAX_ROWS = 10000, MAX_MARKS = 1024, MAX_SESSIONS = 1024 };

/* Flags that what is measured has no use for are refused. */
static int check_flags(const hth_bench_flags *f) {
    const struct {
        const char *name;
        bool given;
    } warm[] = {{"--gen", f->gen != NULL}, {"--depth", f->depth != NULL}, {"--batch", f->batch != NULL},
                {"--marks", f->marks > 0}, {"--sweep", f->sweep != NULL}, {"--ops", f->ops},
                {"--svg", f->svg != NULL}, {"--limits", f->limits},       {"--no-limits", f->no_limits}};
    for (size_t i = 0; f->cold && i < sizeof warm / sizeof *warm; i++) {
        if (!warm[i].given) continue;
        hth_complain("%s has no effect with --cold", warm[i].name);
        return HTH_EXIT_USAGE;
    }
    if (f->idle >= 0 && !f->cold) hth_complain("--idle has an effect only with --cold");
    else if (f->child && !f->cold) hth_complain("--cold-child is not for users: --cold starts it");
    else if (f->limits && f->no_limits) hth_complain("--limits and --no-limits contradict each other");
    else return HTH_EXIT_OK;
    return HTH_EXIT_USAGE;
}

static bool parse_flags(int argc, char **argv, hth_bench *b, int *status) {
    hth_bench_flags *f = &b->flags;
    *f = (hth_bench_flags){.reps = 3, .idle = -1};
    const hth_flag flags[] = {
        {'p', "prompt", "n-prompt", HTH_FLAG_TEXT, &f->prompt, "N,...", "prefill N tokens; 0: none (512)", 0, 0},
        {'n', "gen", "n-gen", HTH_FLAG_TEXT, &f->gen, "N,...", "decode N tokens; 0: none (128)", 0, 0},
        {'d', "depth", "n-depth", HTH_FLAG_TEXT, &f->depth, "N,...", "after N tokens of the session (0)", 0, 0},
        {0, "batch", NULL, HTH_FLAG_TEXT, &f->batch, "N,...", "decode again, N sessions together", 0, 0},
        {'r', "reps", "repetitions", HTH_FLAG_INT, &f->reps, "N", "measure each N times, give the median (3)", 1, 1000},
        {0, "marks", NULL, HTH_FLAG_INT, &f->marks, "N", "prefill again, leaving N marks on the way (0)", 0, MAX_MARKS},
        {0, "sweep", NULL, HTH_FLAG_TEXT, &f->sweep, "N-M,...",
         "time one pass of N rows, N+1, ... M; then no prompt and gen unless they are given", 0, 0},
        {0, "ops", NULL, HTH_FLAG_SWITCH, &f->ops, NULL, "measure again, giving the time of each kind of work", 0, 0},
        {0, "limits", NULL, HTH_FLAG_SWITCH, &f->limits, NULL, "give the machine's limits for fewer threads, too", 0,
         0},
        {0, "no-limits", NULL, HTH_FLAG_SWITCH, &f->no_limits, NULL, "do not measure the machine's limits", 0, 0},
        {0, "svg", NULL, HTH_FLAG_TEXT, &f->svg, "FILE", "draw a picture: of the sweep, else of the rates", 0, 0},
        {0, "cold", NULL, HTH_FLAG_SWITCH, &f->cold, NULL,
         "first calls against later ones, time to the first token, of new processes (prompt: 26)", 0, 0},
        {0, "idle", NULL, HTH_FLAG_INT, &f->idle, "MS", "the pause before a call that --cold measures (2000)", 0,
         3600000},
        {0, "cold-child", NULL, HTH_FLAG_INT, &f->child, NULL, NULL, 1, INT64_MAX}, /* what --cold starts */
        {0, "reuse", NULL, HTH_FLAG_LATER, NULL, NULL, "reuse against none", 0, 0},
    };
    static const hth_default defaults[] = {{"ctx", NULL, "what the longest measurement needs"},
                                           {"rows", NULL, "512, or the longest pass of --sweep"},
                                           {"outputs", NULL, "16, or one a session"},
                                           {"sessions", NULL, "1, or the most of --batch"},
                                           {"mark-slots", NULL, "those of --marks, and one a session"}};
    const hth_command command = {
        .verb = "bench",
        .summary = "Measure the rates of prefill (N tokens in one call) and decode (one after the other).",
        .notes = "Several values are separated by commas: every prompt and gen is measured at every depth, on tokens\n"
                 "without meaning. The repetitions of different measurements alternate. 'of read': bytes of weights,\n"
                 "keys and values a second over what the same threads can read; 'of peak': time that the linears\n"
                 "would take at the peak of the kernels' instructions over the time that all took. docs/bench.md says\n"
                 "what the figures and the keys of --json mean.",
        .scopes = HTH_SCOPES_ENGINE,
        .flags = flags,
        .n_flags = sizeof flags / sizeof *flags,
        .defaults = defaults,
        .n_defaults = sizeof defaults / sizeof *defaults};
    if (!hth_args_parse(&command, argc, argv, &b->args, status)) return false;
    *status = check_flags(f);
    if (*status != HTH_EXIT_OK) return false;
    if (!f->prompt) f->prompt = f->sweep ? "0" : f->cold ? "26" : "512";
    if (!f->gen) f->gen = f->sweep && !f->batch ? "0" : "128";
    if (!f->depth) f->depth = "0";
    if (f->idle < 0) f->idle = 2000;
    return true;
}

/* ---- What is measured ---- */

static int parse_list(const char *what, const char *text, int64_t min, int64_t max, hth_numbers *out) {
    return text ? hth_parse_numbers(what, text, min, max, &out->values, &out->count) : HTH_EXIT_OK;
}

static int parse_lists(hth_bench *b) {
    const hth_bench_flags *f = &b->flags;
    int status = parse_list("--prompt", f->prompt, 0, MAX_TOKENS, &b->prompts);
    if (status == HTH_EXIT_OK) status = parse_list("--gen", f->gen, 0, MAX_TOKENS, &b->gens);
    if (status == HTH_EXIT_OK) status = parse_list("--depth", f->depth, 0, MAX_TOKENS, &b->depths);
    if (status == HTH_EXIT_OK) status = parse_list("--batch", f->batch, 1, MAX_SESSIONS, &b->batches);
    if (status == HTH_EXIT_OK && f->sweep) status = hth_bench_sweep_parse(f->sweep, &b->sweep);
    return status;
}

static void add_prefills(hth_bench *b, int64_t depth) {
    for (size_t i = 0; i < b->prompts.count; i++) {
        hth_bench_row row = {.tokens = b->prompts.values[i], .depth = depth, .sessions = 1};
        if (row.tokens == 0) continue;
        b->rows[b->n_rows++] = row;
        row.marks = b->flags.marks < row.tokens ? b->flags.marks : row.tokens;
        if (row.marks > 0) b->rows[b->n_rows++] = row;
    }
}

static void add_decodes(hth_bench *b, int64_t depth) {
    for (size_t i = 0; i < b->gens.count; i++) {
        hth_bench_row row = {.decode = true, .tokens = b->gens.values[i], .depth = depth, .sessions = 1};
        if (row.tokens == 0) continue;
        b->rows[b->n_rows++] = row;
        for (size_t k = 0; k < b->batches.count; k++) {
            row.sessions = b->batches.values[k];
            b->rows[b->n_rows++] = row;
            if (row.sessions > b->n_sessions) b->n_sessions = row.sessions;
        }
    }
}

static void keep_longest(hth_bench *b, int64_t tokens) {
    if (tokens > b->longest) b->longest = tokens;
}

/* Rows and points, with room for their samples, and the longest session that they need. */
static int plan(hth_bench *b) {
    size_t most =
        b->depths.count * ((b->flags.marks ? 2 : 1) * b->prompts.count + (1 + b->batches.count) * b->gens.count);
    size_t reps = (size_t)b->flags.reps, points = b->sweep.count;
    if (most > MAX_ROWS) {
        hth_complain("%zu measurements are more than %d", most, MAX_ROWS);
        return HTH_EXIT_USAGE;
    }
    b->n_sessions = 1;
    b->rows = calloc(most, sizeof *b->rows);
    b->points = calloc(points + 1, sizeof *b->points);
    b->samples = calloc(most + points, reps * sizeof *b->samples);
    if (!b->rows || !b->points || !b->samples) return hth_out_of_memory();
    for (size_t d = 0; d < b->depths.count; d++) {
        add_prefills(b, b->depths.values[d]);
        add_decodes(b, b->depths.values[d]);
    }
    for (size_t i = 0; i < b->n_rows; i++) {
        b->rows[i].rates = b->samples + i * reps;
        keep_longest(b, b->rows[i].depth + b->rows[i].tokens);
    }
    for (size_t i = 0; i < points; i++) {
        b->points[i] = (hth_bench_point){.rows = b->sweep.values[i], .ms = b->samples + (most + i) * reps};
        keep_longest(b, b->depths.values[0] + b->sweep.values[i]);
    }
    b->total = (int64_t)((b->flags.ops ? 2 : 1) * b->n_rows + points) * b->flags.reps;
    if (b->total > 0) return HTH_EXIT_OK;
    hth_complain("--prompt and --gen are 0: nothing to measure");
    return HTH_EXIT_USAGE;
}

/* ---- The picture ---- */

static int cannot_write(const hth_bench *b, int error) {
    hth_complain("cannot write %s: %s", b->flags.svg, strerror(error));
    return HTH_EXIT_FAILED;
}

/* Whether it can be written shows before the measurements; what was there before stays until they are done. */
static int open_picture(hth_bench *b) {
    if (!b->flags.svg) return HTH_EXIT_OK;
    b->picture = fopen(b->flags.svg, "ae");
    return b->picture ? HTH_EXIT_OK : cannot_write(b, errno);
}

static bool draw(const hth_bench *b) {
    const char *slash = strrchr(b->path, '/'), *name = slash ? slash + 1 : b->path;
    char subtitle[200];
    snprintf(subtitle, sizeof subtitle, "%d thread%s, kernels %s, KV %s; median of %lld%s", b->info.threads,
             hth_plural(b->info.threads), b->info.kernels, b->info.kv, (long long)b->flags.reps,
             b->sweep.count ? "" : ", whiskers from least to most");
    if (b->sweep.count) return hth_bench_sweep_svg(b->picture, name, subtitle, b->points, b->sweep.count);
    return hth_bench_svg(b->picture, name, subtitle, b->rows, b->n_rows);
}

static int write_picture(hth_bench *b) {
    if (!b->picture) return HTH_EXIT_OK;
    /* What is no file, such as a pipe, has nothing to cut. */
    bool written = (ftruncate(fileno(b->picture), 0) == 0 || errno == EINVAL) && draw(b);
    int error = errno;
    if (fclose(b->picture) != 0 && written) {
        error = errno;
        written = false;
    }
    b->picture = NULL;
    return written ? HTH_EXIT_OK : cannot_write(b, error);
}

/* ---- The verb ---- */

/* Rates, sweep and limits: all that one engine measures. */
static int measure_warm(hth_bench *b) {
    int status = plan(b);
    if (status == HTH_EXIT_OK) status = open_picture(b);
    if (status == HTH_EXIT_OK) status = hth_bench_open(b);
    if (status == HTH_EXIT_OK) status = hth_bench_limits_measure(b, &b->limits.before);
    if (status == HTH_EXIT_OK) status = hth_bench_rates(b);
    if (status == HTH_EXIT_OK && b->sweep.count) status = hth_bench_sweep_measure(b);
    if (status == HTH_EXIT_OK && b->flags.ops) status = hth_bench_ops_measure(b);
    hth_progress_end();
    if (status == HTH_EXIT_OK) status = hth_bench_limits_finish(b);
    if (status == HTH_EXIT_OK) hth_bench_report(b);
    return status == HTH_EXIT_OK ? write_picture(b) : status;
}

int hth_verb_bench(int argc, char **argv) {
    hth_bench b = {.argc = argc, .argv = argv};
    int status;
    if (parse_flags(argc, argv, &b, &status)) {
        status = hth_find_model(&b.args, b.path);
        if (status == HTH_EXIT_OK) status = parse_lists(&b);
        if (status == HTH_EXIT_OK)
            status = b.flags.child ? hth_bench_cold_child(&b) : b.flags.cold ? hth_bench_cold(&b) : measure_warm(&b);
    }
    hth_bench_free(&b);
    return status;
}
