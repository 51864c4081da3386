/* Cold against warm: the first call of a process, of a row count and after a pause beside the later ones, and how long
 * a process takes to its first token.
 *
 * Each sample is a process of its own: the parent starts this program again with --cold-child, which opens the model,
 * makes the calls and writes one line of figures. Samples with the file in the page cache and without alternate. Times
 * begin where the parent forks, so the loader's work is in them.
 *
 * A first call happens once a process, so what other processes took from it cannot be averaged away. How long threads
 * were ready to run and had no core tells how much that was: samples with too much of it are left out and counted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bench.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "hearth/file.h"
#include "hearth/sampler.h"

enum {
    LATER = 7,   /* warm calls that a first one is held against */
    FEW_ROWS = 5 /* a row count that nothing has used before; of a prompt of so many, one more */
};

/* A first call is disturbed when its threads waited for a core this long: a part of its time, or so many ms. */
#define DISTURBED_PART 0.01
#define DISTURBED_MS   0.2

/* What a child tells, in ms; first_token and its parts run from the fork. */
#define FIGURES(X)                                                                                                     \
    X(start) /* until main: fork, exec, link */                                                                        \
    X(tokenizer)                                                                                                       \
    X(open)                                                                                                            \
    X(prompt)                                                                                                          \
    X(sample)                                                                                                          \
    X(first_token)                                                                                                     \
    X(process_cold) /* the first call, and the median of the later ones alike */                                       \
    X(process_warm)                                                                                                    \
    X(process_waited) /* what its threads waited for a core; -1: unknown */                                            \
    X(shape_cold)                                                                                                      \
    X(shape_warm)                                                                                                      \
    X(shape_waited)                                                                                                    \
    X(idle_cold)                                                                                                       \
    X(idle_warm)                                                                                                       \
    X(idle_waited)

typedef struct figures {
#define X(name) double name;
    FIGURES(X)
#undef X
} figures;

enum { COUNT = sizeof(figures) / sizeof(double) };

#define MOST_START_NS UINT64_C(60000000000) /* from a child's fork to its main: what took longer was no child */

/* sorted: room for `count` values. */
static double median(const double *values, int64_t count, double *sorted) {
    double middle, least, most;
    hth_bench_summarize(values, count, sorted, &middle, &least, &most);
    return middle;
}

/* ---- The child ---- */

typedef struct child {
    hth_bench *b;
    uint64_t begun_ns;
    figures f;
    int64_t prompt, few; /* tokens of the calls */
    hth_tokens tokens;   /* enough for both */
    hearth_engine *engine;
    hearth_session *session;
    hearth_sampler *sampler;
} child;

static const char text[] =
    "The quick brown fox jumps over the lazy dog, and then it runs on into the forest where an old "
    "bear sits by the river and asks everyone who passes for honey. ";

/* `count` tokens of some English. */
static int make_prompt(child *c, const hearth_tokenizer *tokenizer, int64_t count) {
    hth_tokens once = {NULL, 0};
    hth_text english = {(char *)(uintptr_t)text, sizeof text - 1};
    int status = hth_encode(tokenizer, english, HEARTH_ENCODE_ADD, &once);
    c->tokens.ids = malloc((size_t)count * sizeof *c->tokens.ids);
    if (status == HTH_EXIT_OK && !c->tokens.ids) status = hth_out_of_memory();
    if (status == HTH_EXIT_OK && once.count == 0) status = HTH_EXIT_FAILED;
    for (int64_t i = 0; status == HTH_EXIT_OK && i < count; i++) c->tokens.ids[i] = once.ids[(size_t)i % once.count];
    c->tokens.count = (size_t)count;
    free(once.ids);
    return status;
}

/* How long threads of this process have been ready to run without a core, ms; -1 where the system does not tell. */
static double waited_ms(void) {
    double ns = 0;
    bool told = false;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads)) != NULL;) {
        char path[320];
        uint64_t ran, waited;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        FILE *in = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (in && fscanf(in, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2) {
            ns += (double)waited;
            told = true;
        }
        if (in) fclose(in);
    }
    if (threads) closedir(threads);
    return told ? ns * 1e-6 : -1;
}

/* One call of the first `count` tokens in an empty session; *ms: how long it took. */
static hearth_status call(child *c, int64_t count, double *ms, const float **logits, hearth_error *err) {
    hearth_item item = {.session = c->session, .tokens = c->tokens.ids, .count = count, .outputs = HEARTH_OUTPUT_LAST};
    hearth_status status = hearth_session_truncate(c->session, 0, err);
    uint64_t start = hth_now_ns();
    if (status == HEARTH_OK) status = hearth_engine_run(c->engine, &item, 1, err);
    *ms = hth_ms_since(start);
    *logits = item.logits;
    return status;
}

/* A first call, what its threads waited for a core, and the median of those calls that follow it. */
typedef struct first_call {
    double *cold, *waited, *warm;
} first_call;

static hearth_status first(child *c, int64_t count, first_call f, const float **logits, hearth_error *err) {
    const double before = waited_ms();
    hearth_status status = call(c, count, f.cold, logits, err);
    const double after = waited_ms();
    *f.waited = before < 0 || after < 0 ? -1 : after - before;
    return status;
}

static hearth_status later(child *c, int64_t count, first_call f, const float **logits, hearth_error *err) {
    double later[LATER], sorted[LATER];
    hearth_status status = HEARTH_OK;
    for (int i = 0; i < LATER && status == HEARTH_OK; i++) status = call(c, count, &later[i], logits, err);
    if (status == HEARTH_OK) *f.warm = median(later, LATER, sorted);
    return status;
}

static hearth_status make_calls(child *c, hearth_error *err) {
    const float *logits;
    struct timespec pause = {c->b->flags.idle / 1000, c->b->flags.idle % 1000 * 1000000};
    hearth_token token;
    const first_call process = {&c->f.process_cold, &c->f.process_waited, &c->f.process_warm};
    const first_call shape = {&c->f.shape_cold, &c->f.shape_waited, &c->f.shape_warm};
    const first_call idle = {&c->f.idle_cold, &c->f.idle_waited, &c->f.idle_warm};
    hearth_status status = first(c, c->prompt, process, &logits, err);
    c->f.prompt = hth_ms_since(c->begun_ns) - c->f.start - c->f.tokenizer - c->f.open;
    if (status == HEARTH_OK) status = hearth_sampler_sample(c->sampler, logits, &token, err);
    c->f.first_token = hth_ms_since(c->begun_ns);
    c->f.sample = c->f.first_token - c->f.start - c->f.tokenizer - c->f.open - c->f.prompt;
    if (status == HEARTH_OK) status = later(c, c->prompt, process, &logits, err);
    if (status == HEARTH_OK) status = first(c, c->few, shape, &logits, err);
    if (status == HEARTH_OK) status = later(c, c->few, shape, &logits, err);
    nanosleep(&pause, NULL);
    if (status == HEARTH_OK) status = first(c, c->prompt, idle, &logits, err);
    if (status == HEARTH_OK) status = later(c, c->prompt, idle, &logits, err);
    return status;
}

static int open_all(child *c) {
    hearth_error err = {HEARTH_OK, ""};
    hearth_tokenizer *tokenizer = NULL;
    hearth_model_info info;
    int64_t most = c->prompt > c->few ? c->prompt : c->few;
    c->f.start = hth_ms_since(c->begun_ns);
    int status = hth_open_tokenizer(&c->b->args, c->b->path, &tokenizer);
    if (status == HTH_EXIT_OK) status = make_prompt(c, tokenizer, most);
    if (status == HTH_EXIT_OK) status = hth_set_int(&c->b->args, "ctx", most + 1);
    if (status == HTH_EXIT_OK) status = hth_set_default(&c->b->args, "mark-slots", 0);
    if (status == HTH_EXIT_OK) status = hth_set_default(&c->b->args, "rows", most);
    if (status == HTH_EXIT_OK) status = hth_set_default(&c->b->args, "outputs", 1);
    c->f.tokenizer = hth_ms_since(c->begun_ns) - c->f.start;
    if (status == HTH_EXIT_OK) status = hth_open_engine_with(&c->b->args, c->b->path, &tokenizer, &c->engine);
    hearth_tokenizer_close(&tokenizer);
    if (status != HTH_EXIT_OK) return status;
    hearth_engine_info(c->engine, &info);
    if (hearth_session_create(c->engine, &c->session, &err) != HEARTH_OK ||
        hearth_sampler_create(c->b->args.options, info.vocab, 1, NULL, 0, &c->sampler, &err) != HEARTH_OK)
        return hth_complain_error(&err);
    c->f.open = hth_ms_since(c->begun_ns) - c->f.start - c->f.tokenizer;
    return HTH_EXIT_OK;
}

int hth_bench_cold_child(hth_bench *b) {
    child c = {.b = b, .begun_ns = (uint64_t)b->flags.child, .prompt = b->prompts.values[0]};
    c.few = c.prompt == FEW_ROWS ? FEW_ROWS + 1 : FEW_ROWS;
    hearth_error err = {HEARTH_OK, ""};
    uint64_t now = hth_now_ns();
    if (c.begun_ns > now || now - c.begun_ns > MOST_START_NS) {
        hth_complain("--cold-child is not for users: --cold starts it");
        return HTH_EXIT_USAGE;
    }
    int status = open_all(&c);
    if (status == HTH_EXIT_OK && make_calls(&c, &err) != HEARTH_OK) status = hth_complain_error(&err);
    if (status == HTH_EXIT_OK) {
#define X(name) hth_outf("%a ", c.f.name);
        FIGURES(X)
#undef X
        hth_outf("\n");
    }
    hearth_sampler_free(&c.sampler);
    hearth_session_free(&c.session);
    hearth_engine_close(&c.engine);
    free(c.tokens.ids);
    return status;
}

/* ---- The parent ---- */

/* The files of a model. */
typedef struct file_list {
    char **paths; /* [count] */
    int count;
} file_list;

static void free_list(file_list *list) {
    for (int i = 0; i < list->count; i++) free(list->paths[i]);
    free(list->paths);
}

/* The names alone: pages of a file that is mapped would stay. */
static int list_files(const char *path, file_list *list) {
    hearth_file *file;
    hearth_error err = {HEARTH_OK, ""};
    int status = HTH_EXIT_OK;
    if (hearth_file_open(path, &file, &err) != HEARTH_OK) return hth_complain_error(&err);
    const int shards = hearth_file_shards(file);
    list->paths = calloc((size_t)shards, sizeof *list->paths);
    if (!list->paths) status = hth_out_of_memory();
    for (; status == HTH_EXIT_OK && list->count < shards; list->count++) {
        list->paths[list->count] = strdup(hearth_file_path(file, list->count));
        if (!list->paths[list->count]) status = hth_out_of_memory();
    }
    hearth_file_close(&file);
    return status;
}

/* Ask the system to drop the file's pages; it keeps those that others have mapped or that are not written yet. */
static int drop_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    if (!good) hth_complain("cannot drop %s from the page cache: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return good ? HTH_EXIT_OK : HTH_EXIT_FAILED;
}

/* The child's command line: this one, with what makes it a child behind. */
static char **child_arguments(const hth_bench *b, bool early, bool rests, char *since, size_t size) {
    char **argv = calloc((size_t)b->argc + 8, sizeof *argv);
    int n = 0;
    if (!argv) return NULL;
    argv[n++] = (char *)(uintptr_t) "hearth";
    for (int i = 0; i < b->argc; i++) argv[n++] = b->argv[i];
    argv[n++] = (char *)(uintptr_t) "--cold-child";
    argv[n++] = since;
    argv[n++] = (char *)(uintptr_t)(early ? "--early=on" : "--early=off");
    if (!rests) argv[n++] = (char *)(uintptr_t) "--idle=0";
    snprintf(since, size, "%" PRIu64, hth_now_ns());
    return argv;
}

static bool read_figures(FILE *in, figures *f) {
    double *values[] = {
#define X(name) &f->name,
        FIGURES(X)
#undef X
    };
    bool good = true;
    for (int i = 0; i < COUNT && good; i++) good = fscanf(in, "%la", values[i]) == 1;
    return good;
}

/* Start a child and read what it tells; it `rests` before its last calls. */
static int sample(const hth_bench *b, bool early, bool rests, figures *f) {
    int ends[2], status = 0;
    char since[32];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        hth_complain("cannot make a pipe: %s", strerror(errno));
        return HTH_EXIT_FAILED;
    }
    char **argv = child_arguments(b, early, rests, since, sizeof since);
    pid_t pid = argv ? fork() : -1;
    if (!argv) hth_out_of_memory();
    else if (pid < 0) hth_complain("cannot start a process: %s", strerror(errno));
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv("/proc/self/exe", argv);
        hth_complain("cannot start this program again as /proc/self/exe: %s", strerror(errno));
        _exit(127);
    }
    close(ends[1]);
    FILE *in = pid > 0 ? fdopen(ends[0], "re") : NULL;
    bool good = in && read_figures(in, f);
    if (in) fclose(in);
    else close(ends[0]);
    if (pid > 0) good = waitpid(pid, &status, 0) == pid && status == 0 && good;
    free(argv);
    if (good) return HTH_EXIT_OK;
    hth_complain("a cold start failed");
    return HTH_EXIT_FAILED;
}

/* The samples of one way to start; figures[i] of each. */
typedef struct series {
    const char *name;
    bool dropped, early;
    figures *samples; /* [reps] */
    figures median;
} series;

enum { CACHED, DROPPED, CACHED_EARLY, DROPPED_EARLY, SERIES };

static int measure(const hth_bench *b, const file_list *files, series *all) {
    for (int64_t r = 0; r < b->flags.reps; r++)
        for (int i = 0; i < SERIES; i++) {
            int status = HTH_EXIT_OK;
            for (int k = 0; k < files->count && all[i].dropped && status == HTH_EXIT_OK; k++)
                status = drop_file(files->paths[k]);
            if (status == HTH_EXIT_OK) status = sample(b, all[i].early, i == CACHED, &all[i].samples[r]);
            if (status != HTH_EXIT_OK) return status;
            hth_progress("cold start", r * SERIES + i + 1, b->flags.reps * SERIES);
        }
    return HTH_EXIT_OK;
}

/* The median of each figure by itself. */
static int find_medians(const hth_bench *b, series *s) {
    size_t reps = (size_t)b->flags.reps;
    double *values = malloc(2 * reps * sizeof *values), *medians[] = {
#define X(name) &s->median.name,
                                                            FIGURES(X)
#undef X
                                                        };
    if (!values) return hth_out_of_memory();
    for (int i = 0; i < COUNT; i++) {
        for (size_t r = 0; r < reps; r++) memcpy(&values[r], (const double *)&s->samples[r] + i, sizeof *values);
        *medians[i] = median(values, (int64_t)reps, values + reps);
    }
    free(values);
    return HTH_EXIT_OK;
}

/* ---- What it says ---- */

typedef struct comparison {
    const char *key, *what;
    int series;
    size_t cold, warm, waited;        /* which of the figures */
    double cold_ms, warm_ms, more_ms; /* medians of the samples that count; more: of each one's cold - warm */
    int64_t disturbed;                /* samples left out; all of them count when all were disturbed */
    bool told;                        /* of all samples it is known whether they were */
} comparison;

#define COUNTED 24

#define FIGURE(name) (offsetof(figures, name) / sizeof(double))
#define OF(what)     FIGURE(what##_cold), FIGURE(what##_warm), FIGURE(what##_waited)
enum { COMPARISONS = 4 };

static bool is_disturbed(const comparison *c, const double *sample) {
    const double part = DISTURBED_PART * sample[c->cold];
    return sample[c->waited] > (part > DISTURBED_MS ? part : DISTURBED_MS);
}

static void compare_one(const series *s, int64_t reps, double *room, comparison *c) {
    double *cold = room, *warm = cold + reps, *more = warm + reps, *sorted = more + reps;
    int64_t count = 0;
    c->told = true;
    for (int64_t r = 0; r < reps; r++) {
        const double *sample = (const double *)&s->samples[r];
        c->disturbed += is_disturbed(c, sample);
        c->told &= sample[c->waited] >= 0;
    }
    for (int64_t r = 0; r < reps; r++) {
        const double *sample = (const double *)&s->samples[r];
        if (c->disturbed < reps && is_disturbed(c, sample)) continue;
        cold[count] = sample[c->cold];
        warm[count] = sample[c->warm];
        more[count] = cold[count] - warm[count];
        count++;
    }
    c->cold_ms = median(cold, count, sorted);
    c->warm_ms = median(warm, count, sorted);
    c->more_ms = median(more, count, sorted);
}

static int compare(const series *all, int64_t reps, comparison out[COMPARISONS]) {
    double *room = malloc(4 * (size_t)reps * sizeof *room);
    if (!room) return hth_out_of_memory();
    out[0] = (comparison){"process_cached", "of a process, file cached", CACHED, OF(process), 0, 0, 0, 0, false};
    out[1] = (comparison){"process_dropped", "of a process, file dropped", DROPPED, OF(process), 0, 0, 0, 0, false};
    out[2] = (comparison){"shape", "of a row count", CACHED, OF(shape), 0, 0, 0, 0, false};
    out[3] = (comparison){"idle", "after a pause", CACHED, OF(idle), 0, 0, 0, 0, false};
    for (int i = 0; i < COMPARISONS; i++) compare_one(&all[out[i].series], reps, room, &out[i]);
    free(room);
    return HTH_EXIT_OK;
}

/* How many samples other processes disturbed, in words. */
static const char *left_out(const hth_bench *b, const comparison *c, char counted[COUNTED]) {
    if (!c->told) return "unknown";
    if (c->disturbed == b->flags.reps) return "none (all)";
    snprintf(counted, COUNTED, "%lld", (long long)c->disturbed);
    return counted;
}

static void put_table(const hth_bench *b, const series *all, const comparison *rows) {
    char counted[COUNTED];
    hth_outf("%s, prompt of %lld token%s, medians of %lld\n", b->path, (long long)b->prompts.values[0],
             hth_plural(b->prompts.values[0]), (long long)b->flags.reps);
    hth_outf("%-28s %10s %10s %12s %8s %10s\n", "first call", "cold ms", "warm ms", "cold - warm", "%", "left out");
    for (int i = 0; i < COMPARISONS; i++)
        hth_outf("%-28s %10.3f %10.3f %12.3f %7.2f%% %10s\n", rows[i].what, rows[i].cold_ms, rows[i].warm_ms,
                 rows[i].more_ms, 100 * rows[i].more_ms / rows[i].warm_ms, left_out(b, &rows[i], counted));
    hth_outf("%-28s %10s %10s %10s %10s %10s %10s\n", "process start to first token", "start", "tokenizer", "open",
             "prompt", "sample", "total ms");
    for (int i = CACHED_EARLY; i < SERIES; i++) {
        const figures *f = &all[i].median;
        hth_outf("%-28s %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f\n", all[i].name, f->start, f->tokenizer, f->open,
                 f->prompt, f->sample, f->first_token);
    }
}

static void put_json(const hth_bench *b, const series *all, const comparison *rows) {
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_json_bytes(&json, "model", b->path, strlen(b->path));
    hth_json_int(&json, "prompt_tokens", b->prompts.values[0]);
    hth_json_int(&json, "reps", b->flags.reps);
    hth_json_open(&json, "first_calls", '{');
    for (int i = 0; i < COMPARISONS; i++) {
        hth_json_open(&json, rows[i].key, '{');
        hth_report_measure(&json, "cold_ms", rows[i].cold_ms);
        hth_report_measure(&json, "warm_ms", rows[i].warm_ms);
        hth_report_measure(&json, "cold_minus_warm_ms", rows[i].more_ms);
        if (rows[i].told) hth_json_int(&json, "disturbed", rows[i].disturbed);
        hth_json_close(&json, '}');
    }
    hth_json_close(&json, '}');
    hth_json_open(&json, "first_token", '{');
    for (int i = CACHED_EARLY; i < SERIES; i++) {
        const figures *f = &all[i].median;
        hth_json_open(&json, all[i].dropped ? "dropped" : "cached", '{');
        hth_report_measure(&json, "start_ms", f->start);
        hth_report_measure(&json, "tokenizer_ms", f->tokenizer);
        hth_report_measure(&json, "open_ms", f->open);
        hth_report_measure(&json, "prompt_ms", f->prompt);
        hth_report_measure(&json, "sample_ms", f->sample);
        hth_report_measure(&json, "total_ms", f->first_token);
        hth_json_close(&json, '}');
    }
    hth_json_close(&json, '}');
    hth_json_close(&json, '}');
}

int hth_bench_cold(hth_bench *b) {
    series all[SERIES] = {[CACHED] = {.name = "cached"},
                          [DROPPED] = {.name = "dropped", .dropped = true},
                          [CACHED_EARLY] = {.name = "file cached", .early = true},
                          [DROPPED_EARLY] = {.name = "file dropped", .dropped = true, .early = true}};
    comparison rows[COMPARISONS];
    figures unused;
    file_list files = {NULL, 0};
    int status = b->prompts.values[0] >= 1 && b->prompts.count == 1 ? HTH_EXIT_OK : HTH_EXIT_USAGE;
    if (status != HTH_EXIT_OK) hth_complain("--cold needs one prompt, of at least one token");
    for (int i = 0; i < SERIES && status == HTH_EXIT_OK; i++) {
        all[i].samples = calloc((size_t)b->flags.reps, sizeof *all[i].samples);
        if (!all[i].samples) status = hth_out_of_memory();
    }
    if (status == HTH_EXIT_OK) status = list_files(b->path, &files);
    if (status == HTH_EXIT_OK) status = sample(b, false, false, &unused); /* brings the file into the page cache */
    if (status == HTH_EXIT_OK) status = measure(b, &files, all);
    hth_progress_end();
    for (int i = 0; i < SERIES && status == HTH_EXIT_OK; i++) status = find_medians(b, &all[i]);
    if (status == HTH_EXIT_OK) status = compare(all, b->flags.reps, rows);
    if (status == HTH_EXIT_OK) {
        if (b->args.common.json) put_json(b, all, rows);
        else put_table(b, all, rows);
    }
    for (int i = 0; i < SERIES; i++) free(all[i].samples);
    free_list(&files);
    return status;
}
