/* Opening: the bill adds up, it can be stopped anywhere and run in the background, what was wrong is said once, and
 * however weights arrive the bits are the same. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hearth/hearth.h"

#define MODEL HEARTH_TEST_DATA "/models/tiny-gemma3-bf16.gguf"
#define OTHER HEARTH_TEST_DATA "/models/tiny-llama-bf16.gguf"
enum { TOKENS = 40 };

/* Reads of weights wait while it is shut, and each takes so long. */
static atomic_bool gate_is_shut;
static _Atomic long read_delay_ms;
static atomic_bool reads_fail;
static atomic_bool reads_are_short; /* by a part of a page: not where a direct read may go on */

ssize_t __real_pread(int fd, void *to, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t size, off_t at);

ssize_t __wrap_pread(int fd, void *to, size_t size, off_t at) {
    long delay_ms = atomic_load(&read_delay_ms);
    struct timespec delay = {0, delay_ms * 1000000};
    while (atomic_load(&gate_is_shut)) usleep(100);
    if (delay_ms) nanosleep(&delay, NULL);
    if (atomic_load(&reads_fail)) {
        errno = EIO;
        return -1;
    }
    ssize_t n = __real_pread(fd, to, size, at);
    return n > 5000 && atomic_load(&reads_are_short) ? n - 100 : n;
}

static hearth_options *options_of(const char *const *pairs) {
    hearth_options *options;
    hearth_error err = {0};
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (; *pairs; pairs += 2)
        if (hearth_options_set(options, pairs[0], pairs[1], &err) != HEARTH_OK) fail_msg("%s", err.text);
    return options;
}

#define OPTIONS(...) options_of((const char *const[]){"ctx", "64", "threads", "2", __VA_ARGS__, NULL})

/* The logits after a prompt, in memory of the caller's. */
static float *logits_of(hearth_engine *engine, size_t *bytes) {
    hearth_token tokens[TOKENS];
    hearth_session *session;
    hearth_model_info info;
    hearth_error err = {0};
    const float *logits;
    hearth_engine_info(engine, &info);
    for (int i = 0; i < TOKENS; i++) tokens[i] = (i * 7 + 3) % info.vocab;
    *bytes = (size_t)info.vocab * sizeof *logits;
    float *copy = malloc(*bytes);
    assert_non_null(copy);
    assert_int_equal(hearth_session_create(engine, &session, &err), HEARTH_OK);
    if (hearth_session_sync(session, tokens, TOKENS, NULL, 0, &logits, NULL, &err) != HEARTH_OK)
        fail_msg("%s", err.text);
    memcpy(copy, logits, *bytes);
    hearth_session_free(&session);
    return copy;
}

static hearth_engine *open_with(hearth_options *options) {
    hearth_engine *engine;
    hearth_error err = {0};
    if (hearth_engine_open(MODEL, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    return engine;
}

static const hearth_ledger_row *find_row(const hearth_engine *engine, const char *what) {
    const hearth_ledger_row *rows;
    size_t n = hearth_engine_ledger(engine, &rows);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].what, what) == 0) return &rows[i];
    fail_msg("the ledger has no row \"%s\"", what);
    return NULL;
}

/* ---- the bill ---- */

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The second report about weights comes when open has waited for them alone for a while. */
static int let_weights_arrive_late(void *context, const hearth_open_progress *p) {
    int *reports = context;
    if (strcmp(p->stage, "residency") == 0 && ++*reports == 2) atomic_store(&gate_is_shut, false);
    return 0;
}

static void exposed_times_add_up_to_the_whole(void **state) {
    (void)state;
    static const char *const loads[] = {"map", "read"};
    for (size_t k = 0; k < 2; k++) {
        int reports = 0;
        hearth_options *options = OPTIONS("load", loads[k]);
        const hearth_open_request request = {
            .path = MODEL, .options = options, .progress = let_weights_arrive_late, .context = &reports};
        hearth_engine *engine;
        hearth_error err = {0};
        atomic_store(&gate_is_shut, true);
        double before = now_ms();
        if (hearth_engine_open_request(&request, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
        double whole = now_ms() - before;
        const hearth_ledger_row *rows, *weights = find_row(engine, "residency");
        size_t n = hearth_engine_ledger(engine, &rows);
        double exposed = 0, end = 0;
        for (size_t i = 0; i < n; i++) {
            assert_true(rows[i].start_ms <= rows[i].end_ms);
            assert_true(rows[i].exposed_ms >= 0);
            exposed += rows[i].exposed_ms;
            if (rows[i].end_ms > end) end = rows[i].end_ms;
        }
        /* Between them lies what a busy machine adds after the last row: the rows themselves have no gap. */
        assert_true(exposed >= end - 0.001 && exposed <= whole);
        assert_true(weights->bytes > 400000);
        if (k == 1) assert_true(weights->exposed_ms > 0);
        if (k == 1) assert_int_equal(find_row(engine, "warm pass")->outstanding, weights->bytes);
        hearth_engine_close(&engine);
        hearth_options_free(&options);
    }
    atomic_store(&gate_is_shut, false);
}

/* Every cost has its row, once, in the order it is paid; what is chosen on the way is said. */
static void each_cost_has_a_row(void **state) {
    (void)state;
    static const struct {
        const char *what;
        bool chooses;
    } wanted[] = {{"map", false},      {"directory", false}, {"weights bound", true}, {"program", true},
                  {"placement", true}, {"threads", true},    {"kernels", true},       {"plan", true},
                  {"residency", true}, {"tokenizer", false}, {"arenas", false},       {"executables", false},
                  {"warm pass", false}};
    const size_t count = sizeof wanted / sizeof *wanted;
    hearth_options *options = OPTIONS("load", "map");
    const hearth_open_request request = {.path = OTHER, .options = options};
    hearth_engine *engine;
    hearth_error err = {0};
    if (hearth_engine_open_request(&request, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    const hearth_ledger_row *rows;
    assert_int_equal(hearth_engine_ledger(engine, &rows), count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(rows[i].what, wanted[i].what);
        assert_int_equal(rows[i].how[0] != '\0', wanted[i].chooses);
    }
    const hearth_plan_term *terms;
    const size_t n = hearth_engine_plan(engine, &terms);
    uint64_t planned = 0, weights = 0;
    for (size_t i = 0; i < n; i++) {
        planned += terms[i].bytes;
        if (strstr(terms[i].what, "weights")) weights += terms[i].bytes;
    }
    assert_int_equal(find_row(engine, "plan")->bytes, planned);
    assert_int_equal(find_row(engine, "weights bound")->bytes, weights);
    assert_int_equal(find_row(engine, "placement")->bytes, find_row(engine, "residency")->bytes);
    assert_string_equal(find_row(engine, "threads")->how, "2 threads");
    hearth_engine_close(&engine);
    hearth_options_free(&options);
}

/* ---- the bits ---- */

/* A pass that did not wait would multiply by the zeros of memory that nothing has been read into. */
static void however_weights_arrive_the_bits_are_the_same(void **state) {
    (void)state;
    static const struct {
        const char *load, *early;
        bool late, short_reads;
    } ways[] = {{"map", "on", false, false},
                {"read", "off", false, false},
                {"read", "on", false, false},
                {"read", "on", true, false},
                {"read", "off", false, true}};
    size_t bytes, other_bytes;
    hearth_engine *engine = open_with(OPTIONS("load", "map"));
    float *plain = logits_of(engine, &bytes);
    hearth_engine_close(&engine);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        atomic_store(&gate_is_shut, ways[i].late);
        read_delay_ms = ways[i].late ? 30 : 0;
        atomic_store(&reads_are_short, ways[i].short_reads);
        engine = open_with(OPTIONS("load", ways[i].load, "early", ways[i].early));
        if (ways[i].late) assert_true(find_row(engine, "residency")->end_ms == 0);
        atomic_store(&gate_is_shut, false);
        float *logits = logits_of(engine, &other_bytes);
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(logits, plain, bytes);
        assert_true(find_row(engine, "residency")->end_ms > 0);
        free(logits);
        hearth_engine_close(&engine);
    }
    read_delay_ms = 0;
    atomic_store(&reads_are_short, false);
    free(plain);
}

static void an_engine_may_be_closed_while_weights_arrive(void **state) {
    (void)state;
    read_delay_ms = 30;
    hearth_engine *engine = open_with(OPTIONS("load", "read", "early", "on"));
    hearth_engine_close(&engine);
    read_delay_ms = 0;
}

/* Open has returned, and then the disk fails: the call that waited for the weights says so, and so do later ones. */
static void weights_that_never_arrive_end_the_call(void **state) {
    (void)state;
    const hearth_token tokens[] = {1, 2, 3};
    hearth_session *session;
    hearth_error err = {0};
    atomic_store(&gate_is_shut, true);
    atomic_store(&reads_fail, true);
    hearth_engine *engine = open_with(OPTIONS("load", "read", "early", "on"));
    atomic_store(&gate_is_shut, false);
    assert_int_equal(hearth_session_create(engine, &session, &err), HEARTH_OK);
    for (int i = 0; i < 3; i++) {
        err = (hearth_error){HEARTH_OK, ""};
        if (i == 2) assert_int_equal(hearth_session_truncate(session, 0, &err), HEARTH_OK);
        hearth_status status = hearth_session_sync(session, tokens, 3, NULL, 0, NULL, NULL, &err);
        assert_true(status == HEARTH_IO || status == HEARTH_POISONED);
        assert_non_null(strstr(err.text, MODEL));
    }
    atomic_store(&reads_fail, false);
    hearth_session_free(&session);
    hearth_engine_close(&engine);
}

/* ---- stopping ---- */

typedef struct stopper {
    int calls, stop_at; /* the nth call stops */
    char stages[32][32];
    uint64_t bytes, total;
} stopper;

static int count_calls(void *context, const hearth_open_progress *p) {
    stopper *s = context;
    assert_true(p->elapsed_ms >= 0 && p->bytes <= p->total && p->bytes >= s->bytes);
    s->bytes = p->bytes;
    s->total = p->total;
    if (s->calls < 32) snprintf(s->stages[s->calls], sizeof s->stages[0], "%s", p->stage);
    return ++s->calls == s->stop_at;
}

static void it_can_be_stopped_at_every_stage(void **state) {
    (void)state;
    hearth_options *options = OPTIONS("load", "read");
    hearth_status status = HEARTH_CANCELLED;
    int stages = 0;
    read_delay_ms = 120; /* longer than it takes between two reports while it waits */
    while (status == HEARTH_CANCELLED) {
        stopper s = {.stop_at = ++stages};
        const hearth_open_request request = {.path = MODEL, .options = options, .progress = count_calls, .context = &s};
        hearth_engine *engine;
        hearth_error err = {0};
        status = hearth_engine_open_request(&request, &engine, &err);
        if (status != HEARTH_OK) {
            assert_int_equal(status, HEARTH_CANCELLED);
            assert_null(engine);
            assert_non_null(strstr(err.text, MODEL));
        } else {
            assert_string_equal(s.stages[0], "map");
            assert_string_equal(s.stages[s.calls - 1], "open");
            assert_true(s.bytes == s.total && s.total > 0);
        }
        hearth_engine_close(&engine);
    }
    assert_int_equal(status, HEARTH_OK);
    assert_true(stages >= 10);
    read_delay_ms = 0;
    hearth_options_free(&options);
}

/* ---- in the background ---- */

static hearth_opening *begin(const char *path, const hearth_options *options) {
    const hearth_open_request request = {.path = path, .options = options};
    hearth_opening *opening;
    hearth_error err = {0};
    if (hearth_opening_begin(&request, &opening, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return opening;
}

static void in_the_background_it_is_the_same(void **state) {
    (void)state;
    size_t bytes;
    hearth_error err = {0};
    hearth_engine *engine = open_with(OPTIONS("load", "map"));
    float *plain = logits_of(engine, &bytes);
    hearth_engine_close(&engine);
    hearth_options *options = OPTIONS("load", "read");
    char path[] = MODEL;
    atomic_store(&gate_is_shut, true);
    hearth_opening *opening = begin(path, options);
    assert_false(hearth_opening_is_over(opening));
    atomic_store(&gate_is_shut, false);
    memset(path, 'x', sizeof path - 1); /* both were copied */
    hearth_options_free(&options);
    if (hearth_opening_end(&opening, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_null(opening);
    float *logits = logits_of(engine, &bytes);
    assert_memory_equal(logits, plain, bytes);
    free(logits);
    free(plain);
    hearth_engine_close(&engine);
}

static void a_cancel_that_comes_in_time_releases_all(void **state) {
    (void)state;
    hearth_options *options = OPTIONS("load", "read");
    hearth_engine *engine;
    hearth_error err = {0};
    for (int i = 0; i < 10; i++) {
        struct timespec wait = {0, i * 500000};
        atomic_store(&gate_is_shut, true);
        hearth_opening *opening = begin(MODEL, options);
        nanosleep(&wait, NULL);
        hearth_opening_cancel(opening);
        hearth_opening_cancel(opening);
        atomic_store(&gate_is_shut, false);
        assert_int_equal(hearth_opening_end(&opening, &engine, &err), HEARTH_CANCELLED);
        assert_null(engine);
    }
    hearth_options_free(&options);
}

static void what_is_wrong_is_said_at_the_end_once(void **state) {
    (void)state;
    hearth_engine *engine;
    hearth_error err = {0};
    hearth_opening *opening = begin("/nowhere/model.gguf", NULL);
    assert_int_equal(hearth_opening_end(&opening, &engine, &err), HEARTH_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/model.gguf"));
    assert_null(engine);
    assert_null(opening);
    assert_int_equal(hearth_opening_end(&opening, &engine, &err), HEARTH_BAD_ARGUMENT);
}

/* ---- signals ---- */

typedef struct tids {
    long ids[64];
    size_t count;
} tids;

static tids threads_now(void) {
    tids t = {.count = 0};
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && t.count < 64) t.ids[t.count++] = strtol(entry->d_name, NULL, 10);
    closedir(dir);
    return t;
}

static bool has(const tids *t, long id) {
    for (size_t i = 0; i < t->count; i++)
        if (t->ids[i] == id) return true;
    return false;
}

/* Whether a thread takes SIGTERM; one that is gone takes none. */
static bool takes_signals(long id) {
    char path[64], line[256];
    unsigned long long blocked = ~0ull;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "SigBlk: %llx", &blocked) != 1) continue;
    if (f) fclose(f);
    return !(blocked >> (SIGTERM - 1) & 1);
}

typedef struct watcher {
    tids before;
    int looked, takers;
    int most; /* threads of ours at once */
} watcher;

static int count_takers(void *context, const hearth_open_progress *p) {
    (void)p;
    watcher *w = context;
    const tids now = threads_now();
    int ours = 0;
    for (size_t i = 0; i < now.count; i++) {
        if (has(&w->before, now.ids[i])) continue;
        w->takers += takes_signals(now.ids[i]);
        ours++;
    }
    if (ours > w->most) w->most = ours;
    w->looked++;
    return 0;
}

/* A host's signals are its own threads' affair: opening, workers, weights and keep-warm run on threads that take none.
 */
static void no_thread_of_ours_takes_signals(void **state) {
    (void)state;
    hearth_options *options = OPTIONS("load", "map", "keep-warm", "3600");
    watcher w = {.before = threads_now()};
    const hearth_open_request request = {.path = MODEL, .options = options, .progress = count_takers, .context = &w};
    hearth_opening *opening;
    hearth_engine *engine;
    hearth_error err = {0};
    if (hearth_opening_begin(&request, &opening, &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (hearth_opening_end(&opening, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_true(w.looked >= 10);
    assert_true(w.most >= 3); /* that of the opening, a worker, and the one that keeps weights warm */
    assert_int_equal(w.takers, 0);
    hearth_engine_close(&engine);
    hearth_options_free(&options);
}

/* ---- with a tokenizer ---- */

static void a_tokenizer_changes_hands_when_it_opens(void **state) {
    (void)state;
    hearth_options *options = OPTIONS("memory", "0"), *tight = OPTIONS("memory", "4096");
    hearth_tokenizer *tokenizer;
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_tokenizer_open(OTHER, NULL, &tokenizer, &err), HEARTH_OK);
    hearth_open_request request = {.path = MODEL, .options = options, .tokenizer = tokenizer};
    assert_int_equal(hearth_engine_open_request(&request, &engine, &err), HEARTH_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, OTHER));
    request.path = OTHER;
    request.options = tight;
    assert_int_equal(hearth_engine_open_request(&request, &engine, &err), HEARTH_OVER_BUDGET);
    assert_true(hearth_tokenizer_size(tokenizer) > 0); /* still ours */
    request.options = options;
    if (hearth_engine_open_request(&request, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_ptr_equal(hearth_engine_tokenizer(engine), tokenizer);
    hearth_engine_close(&engine);
    hearth_options_free(&options);
    hearth_options_free(&tight);
}

/* Sanitizers leave locking out. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LOCKS false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LOCKS false
#endif
#endif
#ifndef LOCKS
#define LOCKS true
#endif

static long locked_kib(void) {
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "VmLck: %ld", &kib) != 1) continue;
    if (f) fclose(f);
    return kib;
}

static int stop_at_the_warm_pass(void *context, const hearth_open_progress *p) {
    *(long *)context = locked_kib();
    return strcmp(p->stage, "warm pass") == 0;
}

/* The mapping stays with the tokenizer, its lock does not. */
static void an_open_that_fails_leaves_nothing_locked(void **state) {
    (void)state;
    hearth_options *options = OPTIONS("lock", "on");
    hearth_tokenizer *tokenizer;
    hearth_engine *engine;
    hearth_error err = {0};
    long then = 0;
    const long before = locked_kib();
    assert_int_equal(hearth_tokenizer_open(OTHER, NULL, &tokenizer, &err), HEARTH_OK);
    const hearth_open_request request = {
        .path = OTHER, .options = options, .tokenizer = tokenizer, .progress = stop_at_the_warm_pass, .context = &then};
    const hearth_status status = hearth_engine_open_request(&request, &engine, &err);
    const long after = locked_kib();
    hearth_tokenizer_close(&tokenizer);
    hearth_options_free(&options);
    if (!LOCKS || status == HEARTH_NO_MEMORY) skip(); /* or this process may lock nothing */
    assert_int_equal(status, HEARTH_CANCELLED);
    assert_true(then > before);
    assert_int_equal(after, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed_times_add_up_to_the_whole),
        cmocka_unit_test(each_cost_has_a_row),
        cmocka_unit_test(however_weights_arrive_the_bits_are_the_same),
        cmocka_unit_test(an_engine_may_be_closed_while_weights_arrive),
        cmocka_unit_test(weights_that_never_arrive_end_the_call),
        cmocka_unit_test(it_can_be_stopped_at_every_stage),
        cmocka_unit_test(in_the_background_it_is_the_same),
        cmocka_unit_test(a_cancel_that_comes_in_time_releases_all),
        cmocka_unit_test(what_is_wrong_is_said_at_the_end_once),
        cmocka_unit_test(no_thread_of_ours_takes_signals),
        cmocka_unit_test(a_tokenizer_changes_hands_when_it_opens),
        cmocka_unit_test(an_open_that_fails_leaves_nothing_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
