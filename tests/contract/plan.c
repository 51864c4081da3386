/* The plan: its terms are what an engine takes, a budget is kept, and what is over it is refused by name with the
 * changes that would fit.
 *
 * Planted, each seen red: the thread scratch left out of the terms; a KV pool twice as large as planned; advice one
 * step too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hearth/hearth.h"

#define MODEL HEARTH_TEST_DATA "/models/llama-bf16.gguf"

static hearth_options *options_of(const char *const *pairs) {
    hearth_options *options;
    hearth_error err = {0};
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (; *pairs; pairs += 2)
        if (hearth_options_set(options, pairs[0], pairs[1], &err) != HEARTH_OK) fail_msg("%s", err.text);
    return options;
}

#define OPTIONS(...) options_of((const char *const[]){__VA_ARGS__, NULL})

static uint64_t plan_sum(const hearth_engine *engine) {
    const hearth_plan_term *terms;
    size_t n = hearth_engine_plan(engine, &terms);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += terms[i].bytes;
    return sum;
}

/* ---- what it takes ---- */

/* Opens, uses every planned byte of KV, and answers the plan in MiB, rounded up. */
static int use_engine(const char *load) {
    hearth_options *options = OPTIONS("ctx", "512", "sessions", "96", "rows", "64", "threads", "2", "load", load);
    hearth_engine *engine;
    hearth_session *session;
    hearth_token tokens[512];
    for (int i = 0; i < 512; i++) tokens[i] = i % 4000;
    if (hearth_engine_open(MODEL, options, &engine, NULL) != HEARTH_OK) return -1;
    for (int i = 0; i < 96; i++)
        if (hearth_session_create(engine, &session, NULL) != HEARTH_OK) return -1;
    if (hearth_session_sync(session, tokens, 512, NULL, 0, NULL, NULL, NULL) != HEARTH_OK) return -1;
    return (int)((plan_sum(engine) + 1048575) / 1048576);
}

/* The most resident memory of a child that does this and nothing else, and its plan. */
static void measure(const char *load, long *peak_mib, long *plan_mib) {
    int ends[2], plan = -1;
    struct rusage usage;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        plan = use_engine(load);
        ssize_t n = write(ends[1], &plan, sizeof plan);
        _exit(n == sizeof plan ? 0 : 1);
    }
    int status;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &plan, sizeof plan), sizeof plan);
    close(ends[0]);
    close(ends[1]);
    *peak_mib = usage.ru_maxrss / 1024;
    *plan_mib = plan;
}

static void peak_memory_stays_within_the_plan(void **state) {
    (void)state;
    static const char *const loads[] = {"map", "read"};
    for (size_t i = 0; i < 2; i++) {
        long peak, plan;
        measure(loads[i], &peak, &plan);
        print_message("load=%s: planned %ld MiB, peak %ld MiB\n", loads[i], plan, peak);
        assert_true(plan > 60); /* or the 16 MiB would hide what is missing */
        assert_true(peak <= plan + 16);
        assert_true(plan <= peak + 8); /* and nothing is planned that is not used */
    }
}

/* ---- what is refused ---- */

/* The value of an option in the text, such as "ctx 192"; 0: it is not there. */
static long advised(const char *text, const char *option) {
    char what[32];
    snprintf(what, sizeof what, " %s ", option);
    const char *at = strstr(text, "it would fit with"), *end = at ? strstr(at, "; in MiB") : NULL;
    const char *found = at ? strstr(at, what) : NULL;
    return found && found < end ? strtol(found + strlen(what), NULL, 10) : 0;
}

static hearth_status try_open(hearth_options *options, hearth_error *err) {
    hearth_engine *engine;
    hearth_status status = hearth_engine_open(MODEL, options, &engine, err);
    hearth_engine_close(&engine);
    return status;
}

static void set_number(hearth_options *options, const char *name, long value) {
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    assert_int_equal(hearth_options_set(options, name, text, NULL), HEARTH_OK);
}

static void what_does_not_fit_is_refused_with_what_would(void **state) {
    (void)state;
    static const struct {
        const char *option;
        long step, asked;
    } changes[] = {{"ctx", 64, 512}, {"rows", 1, 256}, {"sessions", 1, 40}};
    hearth_options *options =
        OPTIONS("ctx", "512", "rows", "256", "sessions", "40", "threads", "1", "mark-slots", "0", "outputs", "1");
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_engine_open(MODEL, options, &engine, &err), HEARTH_OK);
    const hearth_plan_term *terms;
    size_t n = hearth_engine_plan(engine, &terms);
    uint64_t sum = plan_sum(engine), weights = terms[0].bytes;
    set_number(options, "memory", (long)sum - 1);
    assert_int_equal(try_open(options, &err), HEARTH_OVER_BUDGET);
    for (size_t i = 0; i < n; i++)
        if (!strstr(err.text, terms[i].what)) fail_msg("\"%s\" is not in: %s", terms[i].what, err.text);
    hearth_engine_close(&engine);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        long value = advised(err.text, changes[i].option);
        if (value < 1 || value >= changes[i].asked) fail_msg("%s in: %s", changes[i].option, err.text);
        set_number(options, changes[i].option, value);
        assert_int_equal(try_open(options, NULL), HEARTH_OK);
        set_number(options, changes[i].option, value + changes[i].step);
        if (value + changes[i].step < changes[i].asked)
            assert_int_equal(try_open(options, NULL), HEARTH_OVER_BUDGET); /* it is the smallest change */
        set_number(options, changes[i].option, changes[i].asked);
    }
    set_number(options, "memory", (long)sum);
    assert_int_equal(try_open(options, &err), HEARTH_OK);
    set_number(options, "memory", (long)(weights + (64 << 10)));
    assert_int_equal(try_open(options, &err), HEARTH_OVER_BUDGET);
    assert_non_null(strstr(err.text, "no context"));
    assert_non_null(strstr(err.text, "for ctx 512 "));
    set_number(options, "memory", 100 << 10); /* the weights have more */
    assert_int_equal(try_open(options, &err), HEARTH_OVER_BUDGET);
    assert_non_null(strstr(err.text, "the weights alone are more"));
    hearth_options_free(&options);
}

static void another_type_of_kv_is_advised_where_it_would_do(void **state) {
    (void)state;
    hearth_options *options = OPTIONS("ctx", "512", "sessions", "40", "threads", "1", "kv", "f32", "memory", "0");
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_engine_open(MODEL, options, &engine, &err), HEARTH_OK);
    set_number(options, "memory", (long)plan_sum(engine) - 1);
    hearth_engine_close(&engine);
    assert_int_equal(try_open(options, &err), HEARTH_OVER_BUDGET);
    assert_non_null(strstr(err.text, " kv f16"));
    assert_int_equal(hearth_options_set(options, "kv", "f16", NULL), HEARTH_OK);
    assert_int_equal(try_open(options, &err), HEARTH_OK);
    hearth_options_free(&options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_memory_stays_within_the_plan),
        cmocka_unit_test(what_does_not_fit_is_refused_with_what_would),
        cmocka_unit_test(another_type_of_kv_is_advised_where_it_would_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
