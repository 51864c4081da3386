/* After open, calls are free of first times: they allocate nothing, map nothing, start no thread and touch no page of
 * the engine's memory for the first time, whatever is done for the first time. What the system takes back while an
 * engine rests is populated again before a call computes, and counted. Engines that come and go leave nothing.
 *
 * Planted, each seen red: a malloc in hth_cpu_run; an arena that is not populated; the idle check left out of
 * hth_engine_ready; half of the pieces left out of hth_residency_start; an engine that keeps its name; a warm pass on
 * the model's weights that leaves its state. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cpu/executable.h"
#include "base/pagemap.h"
#include "engine/engine.h"
#include "hearth/hearth.h"
#include "support/call_guard.h"
#include "support/temp_folder.h"

enum {
    ROWS = 18,
    CONTEXT = 256,
    PROMPT = 40,
    READ_AROUND = 64 << 10 /* what the program itself may read meanwhile */
};

static const char *model; /* of the tests that take one */
static int rounds = 30;   /* of engines that come and go; five times as many prompts */

static hearth_engine *open_model(const char *path, const char *const *pairs) {
    hearth_options *options;
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (; *pairs; pairs += 2)
        if (hearth_options_set(options, pairs[0], pairs[1], &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (hearth_engine_open(path, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    return engine;
}

#define OPEN(path, ...)                                                                                                \
    open_model(path, (const char *const[]){"ctx", "256", "rows", "18", "sessions", "2", "threads", "2", "outputs",     \
                                           "18", __VA_ARGS__, NULL})

/* ---- first times ---- */

typedef struct first_times {
    hearth_engine *engine;
    hearth_session *sessions[2];
    hearth_sampler *sampler;
    hearth_model_info info;
    hearth_token tokens[CONTEXT];
    const float *logits;
} first_times;

static void set_up(first_times *f, hearth_engine *engine) {
    hearth_options *options;
    hearth_error err = {0};
    static const char *const features[] = {"temp",
                                           "0.9",
                                           "top-k",
                                           "20",
                                           "top-p",
                                           "0.9",
                                           "min-p",
                                           "0.01",
                                           "typical",
                                           "0.95",
                                           "repeat-penalty",
                                           "1.1",
                                           "presence-penalty",
                                           "0.1",
                                           "frequency-penalty",
                                           "0.1",
                                           "seed",
                                           "7",
                                           NULL};
    *f = (first_times){.engine = engine};
    hearth_engine_info(engine, &f->info);
    for (int i = 0; i < CONTEXT; i++) f->tokens[i] = (i * 13 + 5) % f->info.vocab;
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (size_t i = 0; features[i]; i += 2)
        assert_int_equal(hearth_options_set(options, features[i], features[i + 1], &err), HEARTH_OK);
    assert_int_equal(hearth_sampler_create(options, f->info.vocab, CONTEXT, NULL, 0, &f->sampler, &err), HEARTH_OK);
    hearth_options_free(&options);
}

static void tear_down(first_times *f) {
    hearth_sampler_free(&f->sampler);
    for (int i = 0; i < 2; i++) hearth_session_free(&f->sessions[i]);
    hearth_engine_close(&f->engine);
}

static hearth_status create(first_times *f, int i) {
    return hearth_session_create(f->engine, &f->sessions[i], NULL);
}

static hearth_status first_prefill(first_times *f) {
    if (create(f, 0) != HEARTH_OK) return HEARTH_NOT_FOUND;
    return hearth_session_sync(f->sessions[0], f->tokens, PROMPT, NULL, 0, &f->logits, NULL, NULL);
}

static hearth_status first_decode(first_times *f) {
    return hearth_session_sync(f->sessions[0], f->tokens, PROMPT + 1, NULL, 0, &f->logits, NULL, NULL);
}

static hearth_status every_row_count(first_times *f) {
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        hearth_item item = {
            .session = f->sessions[0], .tokens = f->tokens, .count = rows, .outputs = HEARTH_OUTPUT_ALL};
        if (hearth_session_truncate(f->sessions[0], 0, NULL) != HEARTH_OK) return HEARTH_NOT_FOUND;
        hearth_status status = hearth_engine_run(f->engine, &item, 1, NULL);
        if (status != HEARTH_OK) return status;
    }
    return HEARTH_OK;
}

static hearth_status second_session(first_times *f) {
    if (create(f, 1) != HEARTH_OK) return HEARTH_NOT_FOUND;
    return hearth_session_sync(f->sessions[1], f->tokens + 3, PROMPT, NULL, 0, &f->logits, NULL, NULL);
}

static hearth_status both_at_once(first_times *f) {
    hearth_item items[2];
    for (int i = 0; i < 2; i++)
        items[i] = (hearth_item){
            .session = f->sessions[i], .tokens = f->tokens + i, .count = 3, .outputs = HEARTH_OUTPUT_LAST};
    hearth_status status = hearth_engine_run(f->engine, items, 2, NULL);
    f->logits = items[0].logits;
    return status;
}

static hearth_status first_sample(first_times *f) {
    hearth_token token;
    hearth_status status = hearth_sampler_accept(f->sampler, f->tokens, PROMPT, NULL);
    return status == HEARTH_OK ? hearth_sampler_sample(f->sampler, f->logits, &token, NULL) : status;
}

static hearth_status first_mark(first_times *f) {
    hearth_mark mark = {.position = 70};
    hearth_status status = hearth_session_sync(f->sessions[0], f->tokens, 90, &mark, 1, &f->logits, NULL, NULL);
    return status == HEARTH_OK ? hearth_session_restore(f->sessions[1], mark.id, NULL) : status;
}

static hearth_status full_depth(first_times *f) {
    return hearth_session_sync(f->sessions[0], f->tokens, CONTEXT, NULL, 0, &f->logits, NULL, NULL);
}

static const struct {
    const char *what;
    hearth_status (*run)(first_times *f);
} calls[] = {{"the first prefill", first_prefill}, {"the first decode", first_decode},
             {"every row count", every_row_count}, {"a second session", second_session},
             {"both at once", both_at_once},       {"the first sample", first_sample},
             {"the first mark", first_mark},       {"the full depth", full_depth}};

enum { CALLS = sizeof calls / sizeof *calls };

/* A file as it is now. */
static char *contents(const char *path, size_t *size) {
    static char buffer[8 << 20];
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    *size = fread(buffer, 1, sizeof buffer - 1, f);
    buffer[*size] = '\0';
    fclose(f);
    return buffer;
}

static size_t count_lines(const char *path) {
    size_t size, lines = 0;
    const char *text = contents(path, &size);
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    return lines;
}

/* Make all calls on a fresh engine; the page faults of them together. */
static long make_calls(const char *load, long allowed_faults_a_row) {
    first_times f;
    long faults = 0;
    set_up(&f, OPEN(model, "load", load));
    size_t maps = count_lines("/proc/self/maps");
    for (size_t i = 0; i < CALLS; i++) {
        hearth_counters before, after;
        hearth_engine_counters(f.engine, &before);
        call_guard_arm();
        hearth_status status = calls[i].run(&f);
        call_counts counts = call_guard_disarm();
        hearth_engine_counters(f.engine, &after);
        if (status != HEARTH_OK) fail_msg("%s: %s", calls[i].what, hearth_status_name(status));
        if (counts.allocations || counts.frees || counts.mappings || counts.threads)
            fail_msg("%s: %ld allocations, %ld frees, %ld mappings, %ld threads", calls[i].what, counts.allocations,
                     counts.frees, counts.mappings, counts.threads);
        assert_int_equal(after.refaults, 0);
        long rows = (long)(after.row_reads - before.row_reads);
        if (counts.faults > rows * allowed_faults_a_row) {
            print_message("%s: %ld page faults\n", calls[i].what, counts.faults);
            faults += counts.faults;
        }
    }
    assert_int_equal(count_lines("/proc/self/maps"), maps);
    tear_down(&f);
    return faults;
}

/* A system that is short of memory, or moves pages, makes faults that are not ours: one quiet run out of a few shows
 * that none of ours are left. */
static void no_call_is_a_first_time(const char *load, long allowed_faults_a_row) {
    enum { TRIES = 4 };
    long faults = 1;
    for (int i = 0; i < TRIES && faults > 0; i++) faults = make_calls(load, allowed_faults_a_row);
    assert_int_equal(faults, 0);
}

static void calls_touch_nothing_new_when_weights_are_read(void **state) {
    (void)state;
    no_call_is_a_first_time("read", 0);
}

/* Rows of the embedding table are read where it is mapped: at most the two pages that a row lies in, and once. */
static void calls_touch_rows_alone_when_weights_are_mapped(void **state) {
    (void)state;
    no_call_is_a_first_time("map", 2);
}

/* ---- what is resident ---- */

typedef struct mapping {
    unsigned char *base;
    size_t size;
} mapping;

/* The engine's mapping of a file of ours. */
static mapping mapping_of(const hearth_engine *engine) {
    const hth_file_view *view = &engine->residency.files[0];
    return (mapping){(unsigned char *)(uintptr_t)view->base, (size_t)view->size};
}

static size_t pages_there(const hearth_engine *engine, size_t *pages) {
    static unsigned char there[1 << 16];
    const hth_arrival *a = &engine->residency.arrival;
    size_t count = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    *pages = 0;
    for (size_t i = 0; i < a->count; i++) {
        size_t size = (size_t)(a->pieces[i].to - a->pieces[i].from), n = (size + page - 1) / page;
        assert_true(n <= sizeof there);
        assert_int_equal(mincore(mapping_of(engine).base + a->pieces[i].from, size, there), 0);
        for (size_t k = 0; k < n; k++) count += there[k] & 1;
        *pages += n;
    }
    return count;
}

/* Take all pages of a file of ours from memory. False where the file system keeps them. */
static bool evict(const char *path, const hearth_engine *engine) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (engine) madvise(mapping_of(engine).base, mapping_of(engine).size, MADV_DONTNEED);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    unsigned char there[1];
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore((char *)map + st.st_size / 2 / 4096 * 4096, 1, there), 0);
    munmap(map, (size_t)st.st_size);
    close(fd);
    return !(there[0] & 1);
}

/* Bytes that this process had the system read from disks; 0 where it does not say. */
static long bytes_read(void) {
    size_t size;
    long bytes = 0;
    const char *text = access("/proc/self/io", R_OK) == 0 ? contents("/proc/self/io", &size) : "";
    const char *at = strstr(text, "\nread_bytes:");
    return at && sscanf(at, " read_bytes: %ld", &bytes) == 1 ? bytes : 0;
}

/* Whether the mapping at `base` asks for huge pages; true where the system does not know them. */
static bool asks_for_huge_pages(const unsigned char *base) {
    char line[512];
    bool inside = false, asks = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f || access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) asks = true;
    while (f && fgets(line, sizeof line, f)) {
        uintmax_t from, to;
        if (sscanf(line, "%jx-%jx ", &from, &to) == 2) inside = from <= (uintptr_t)base && (uintptr_t)base < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0) asks |= strstr(line, " hg") != NULL;
    }
    if (f) fclose(f);
    return asks;
}

static const char *copy_model(void) {
    size_t size;
    char *bytes = contents(model, &size);
    const char *path = temp_path("model.gguf");
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void weights_are_resident_and_come_back(void **state) {
    (void)state;
    first_times f;
    hearth_counters counters;
    size_t pages;
    temp_folder_make();
    const char *path = copy_model();
    if (!evict(path, NULL)) {
        print_message("this file system keeps its pages: nothing to see here\n");
        temp_folder_remove();
        return;
    }
    long before_open = bytes_read();
    set_up(&f, OPEN(path, "load", "map"));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    long read = bytes_read() - before_open;
    print_message("read %ld of %ld bytes\n", read, (long)st.st_size);
    assert_true(read <= (long)(st.st_size + st.st_size / 50) + READ_AROUND);
    size_t there = pages_there(f.engine, &pages);
    const hth_arrival *a = &f.engine->residency.arrival;
    for (size_t i = 0; i < a->count; i++) {
        assert_true(asks_for_huge_pages(mapping_of(f.engine).base + a->pieces[i].from));
        assert_true(asks_for_huge_pages(mapping_of(f.engine).base + a->pieces[i].to - 1));
    }
    assert_int_equal(there, pages);
    assert_true(pages > 10);
    assert_int_equal(first_prefill(&f), HEARTH_OK);
    float *logits = malloc((size_t)f.info.vocab * sizeof *logits);
    memcpy(logits, f.logits, (size_t)f.info.vocab * sizeof *logits);

    assert_true(evict(path, f.engine));
    assert_true(pages_there(f.engine, &pages) < pages);
    assert_int_equal(hearth_session_truncate(f.sessions[0], 0, NULL), HEARTH_OK);
    f.engine->residency.idle_ms = 0; /* as after a pause */
    assert_int_equal(hearth_session_sync(f.sessions[0], f.tokens, PROMPT, NULL, 0, &f.logits, NULL, NULL), HEARTH_OK);
    assert_memory_equal(f.logits, logits, (size_t)f.info.vocab * sizeof *logits);
    there = pages_there(f.engine, &pages);
    assert_int_equal(there, pages);
    hearth_engine_counters(f.engine, &counters);
    assert_true(counters.refaults > 0 && counters.refaults <= pages);
    uint64_t before = counters.refaults;
    assert_int_equal(first_decode(&f), HEARTH_OK);
    hearth_engine_counters(f.engine, &counters);
    assert_int_equal(counters.refaults, before);
    free(logits);
    tear_down(&f);
    temp_folder_remove();
}

/* A file that is somebody else's: the page cache does not tell what is there, and what is there is not walked again. */
static void weights_of_others_come_back(void **state) {
    (void)state;
    first_times f;
    hearth_counters counters;
    size_t pages;
    uint64_t absent;
    set_up(&f, OPEN(model, "load", "map"));
    const mapping m = mapping_of(f.engine);
    f.engine->residency.may_ask = false;
    f.engine->residency.idle_ms = 0;
    if (!hth_absent_bytes(m.base, m.size, &absent)) {
        tear_down(&f);
        skip(); /* nor do the page tables */
    }
    assert_int_equal(first_prefill(&f), HEARTH_OK);
    call_guard_arm();
    assert_int_equal(first_decode(&f), HEARTH_OK);
    assert_int_equal(call_guard_disarm().mappings, 0);
    hearth_engine_counters(f.engine, &counters);
    assert_int_equal(counters.refaults, 0);

    assert_int_equal(madvise(m.base, m.size, MADV_DONTNEED), 0);
    assert_int_equal(hearth_session_truncate(f.sessions[0], 0, NULL), HEARTH_OK);
    assert_int_equal(hearth_session_sync(f.sessions[0], f.tokens, PROMPT, NULL, 0, &f.logits, NULL, NULL), HEARTH_OK);
    (void)pages_there(f.engine, &pages);
    hearth_engine_counters(f.engine, &counters);
    assert_true(counters.refaults > 0 && counters.refaults <= pages);
    tear_down(&f);
}

static void weights_are_kept_warm_between_calls(void **state) {
    enum { PATIENCE = 10000 };
    (void)state;
    hearth_counters counters = {0};
    size_t pages, there = 0;
    temp_folder_make();
    const char *path = copy_model();
    hearth_engine *engine = OPEN(path, "load", "map", "keep-warm", "1");
    if (!evict(path, engine)) {
        print_message("this file system keeps its pages: nothing to see here\n");
    } else {
        for (int waited = 0; counters.kept_warm == 0 && waited < PATIENCE; waited++) {
            usleep(1000);
            hearth_engine_counters(engine, &counters);
        }
        there = pages_there(engine, &pages);
        assert_int_equal(there, pages);
        assert_true(counters.kept_warm > 0 && counters.kept_warm <= pages);
        assert_int_equal(counters.refaults, 0);
    }
    hearth_engine_close(&engine);
    engine = OPEN(path, "load", "map", "keep-warm", "3600");
    hearth_engine_close(&engine); /* waits for no pause to end */
    temp_folder_remove();
}

static void keeping_warm_what_cannot_cool_is_refused(void **state) {
    (void)state;
    hearth_options *options;
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "keep-warm", "1", &err), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "load", "read", &err), HEARTH_OK);
    assert_int_equal(hearth_engine_open(model, options, &engine, &err), HEARTH_BAD_OPTION);
    assert_non_null(strstr(err.text, "keep-warm"));
    hearth_options_free(&options);
}

static bool row_is_there(const hearth_engine *engine, hearth_token token) {
    const hth_residency *r = &engine->residency;
    uint64_t first = (r->table.offset + (uint64_t)token * r->table.row_bytes) / r->page * r->page;
    unsigned char there;
    assert_int_equal(mincore(mapping_of(engine).base + first, 1, &there), 0);
    return there & 1;
}

/* The rows of a prompt are asked for together, before the pass that reads them. */
static void rows_of_a_prompt_are_read_ahead(void **state) {
    enum { PATIENCE = 2000 };
    (void)state;
    temp_folder_make();
    const char *path = copy_model();
    hearth_engine *engine = OPEN(path, "load", "map");
    hearth_token tokens[] = {1, 40, 70};
    assert_true(engine->residency.table.row_bytes > 0);
    if (!evict(path, engine)) {
        print_message("this file system keeps its pages: nothing to see here\n");
    } else {
        engine->residency.table.arrives = false; /* as in a model with an output matrix of its own */
        hth_residency_hint(&engine->residency, tokens, 3);
        for (size_t i = 0; i < 3; i++) {
            int waited = 0;
            while (!row_is_there(engine, tokens[i]) && waited++ < PATIENCE) usleep(1000);
            assert_true(waited < PATIENCE);
        }
    }
    hearth_engine_close(&engine);
    temp_folder_remove();
}

/* ---- a clean slate ---- */

static bool all_zero(const hth_arena *arena) {
    for (size_t i = 0; i < arena->capacity; i++)
        if (arena->base[i] != 0) return false;
    return true;
}

/* The warm pass leaves nothing in keys, values, recurrent state or checkpoints. */
static void opening_leaves_no_trace_in_any_state(void **state) {
    (void)state;
    hearth_engine *engine = OPEN(model, "load", "map");
    assert_true(all_zero(&engine->exe->kv_arena));
    assert_true(all_zero(&engine->exe->state_arena));
    assert_true(all_zero(&engine->exe->mark_arena));
    hearth_engine_close(&engine);
}

static void the_first_answer_is_a_later_one(void **state) {
    (void)state;
    first_times f;
    set_up(&f, OPEN(model, "load", "map"));
    const size_t bytes = (size_t)f.info.vocab * sizeof *f.logits;
    float *first = malloc(bytes);
    assert_non_null(first);
    assert_int_equal(first_prefill(&f), HEARTH_OK);
    memcpy(first, f.logits, bytes);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hearth_session_truncate(f.sessions[0], 0, NULL), HEARTH_OK);
        assert_int_equal(hearth_session_sync(f.sessions[0], f.tokens, PROMPT, NULL, 0, &f.logits, NULL, NULL),
                         HEARTH_OK);
        assert_memory_equal(f.logits, first, bytes);
    }
    free(first);
    tear_down(&f);
}

/* ---- locked ---- */

/* Bytes that this process has locked in memory. */
static long locked_bytes(void) {
    size_t size;
    long kilobytes = 0;
    const char *at = strstr(contents("/proc/self/status", &size), "\nVmLck:");
    assert_true(at && sscanf(at, " VmLck: %ld", &kilobytes) == 1);
    return kilobytes * 1024;
}

static void locked_weights_are_locked_in_whole(void **state) {
    (void)state;
    static const char *const loads[] = {"map", "read"};
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    if (geteuid() != 0 && limit.rlim_cur < (rlim_t)16 << 20) {
        print_message("may not lock enough: nothing to see here\n");
        return;
    }
    const long before = locked_bytes();
    for (int i = 0; i < 2; i++) {
        hearth_engine *engine = OPEN(model, "load", loads[i], "lock", "on");
        const hearth_plan_term *terms;
        hearth_engine_plan(engine, &terms);
        assert_true(locked_bytes() - before >= (long)terms[0].bytes); /* the weights' */
        hearth_engine_close(&engine);
        assert_int_equal(locked_bytes(), before);
    }
}

/* ---- coming and going ---- */

static int threads_now(void) {
    size_t size;
    int threads = 0;
    const char *at = strstr(contents("/proc/self/status", &size), "\nThreads:");
    assert_true(at && sscanf(at, " Threads: %d", &threads) == 1);
    return threads;
}

static long resident_pages(void) {
    size_t size;
    long all, resident = 0;
    assert_int_equal(sscanf(contents("/proc/self/statm", &size), "%ld %ld", &all, &resident), 2);
    return resident;
}

/* Prompts of 20 tokens that have no prefix in common. */
static void thousands_of_prompts_leave_nothing(void **state) {
    enum { SETTLED = 40, LENGTH = 20 };
    (void)state;
    first_times f;
    long live = 0, resident = 0;
    set_up(&f, OPEN(model, "load", "map"));
    assert_int_equal(create(&f, 0), HEARTH_OK);
    for (int i = 0; i < 5 * rounds; i++) {
        hearth_token prompt[LENGTH];
        for (int k = 0; k < LENGTH; k++) prompt[k] = (hearth_token)((i + 1 + k * (i % 97)) % f.info.vocab);
        assert_int_equal(hearth_session_sync(f.sessions[0], prompt, LENGTH, NULL, 0, &f.logits, NULL, NULL), HEARTH_OK);
        if (i != SETTLED) continue;
        live = call_guard_live();
        resident = resident_pages();
    }
    assert_int_equal(call_guard_live(), live);
    /* Rows of the embedding table are the file's. */
    assert_true(resident_pages() <= resident + (long)(mapping_of(f.engine).size / 4096) + 16);
    tear_down(&f);
}

/* Two engines at a time. */
static void engines_come_and_go_without_growth(void **state) {
    enum { SETTLED = 8, FEW_PAGES = 1024 };
    (void)state;
    long live = 0, resident = 0;
    size_t maps = 0;
    for (int i = 0; i < rounds; i++) {
        first_times f;
        hearth_engine *other = OPEN(model, "load", i % 2 ? "read" : "map", "early", "on");
        set_up(&f, OPEN(model, "load", i % 2 ? "map" : "read", "early", i % 3 ? "on" : "off"));
        if (i % 5 == 0) assert_int_equal(first_prefill(&f), HEARTH_OK);
        hearth_engine_close(&other);
        tear_down(&f);
        if (i == SETTLED) {
            live = call_guard_live();
            maps = count_lines("/proc/self/maps");
            resident = resident_pages();
        }
    }
    assert_true(resident_pages() <= resident + FEW_PAGES);
    /* The C library keeps a few stacks of threads that ended, each with a table of some hundred bytes. */
    assert_true(labs(call_guard_live() - live) <= 1600);
    assert_true(count_lines("/proc/self/maps") <= maps + 8);
    /* A thread that was joined is listed until the system has put it away. */
    for (int waited = 0; threads_now() != 1; waited++) {
        assert_true(waited < 5000);
        usleep(1000);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_touch_nothing_new_when_weights_are_read),
        cmocka_unit_test(calls_touch_rows_alone_when_weights_are_mapped),
        cmocka_unit_test(weights_are_resident_and_come_back),
        cmocka_unit_test(weights_of_others_come_back),
        cmocka_unit_test(weights_are_kept_warm_between_calls),
        cmocka_unit_test(keeping_warm_what_cannot_cool_is_refused),
        cmocka_unit_test(rows_of_a_prompt_are_read_ahead),
        cmocka_unit_test(opening_leaves_no_trace_in_any_state),
        cmocka_unit_test(locked_weights_are_locked_in_whole),
        cmocka_unit_test(the_first_answer_is_a_later_one),
        cmocka_unit_test(thousands_of_prompts_leave_nothing),
        cmocka_unit_test(engines_come_and_go_without_growth),
    };
    const struct CMUnitTest long_ones[] = {cmocka_unit_test(thousands_of_prompts_leave_nothing),
                                           cmocka_unit_test(engines_come_and_go_without_growth)};
    if (argc < 2 || argc > 3) return 2;
    model = argv[1];
    if (argc == 2) return cmocka_run_group_tests(tests, NULL, NULL);
    rounds = (int)strtol(argv[2], NULL, 10);
    return cmocka_run_group_tests(long_ones, NULL, NULL);
}
