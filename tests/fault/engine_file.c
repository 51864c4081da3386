/* A model file that changes under an engine: one that shrinks ends an open or a call with an error that names it, never
 * the process; one that is replaced is seen at the next open, and not before.
 *
 * Planted, each seen red: pages touched where populating them failed; a call that does not ask whether its file is
 * whole; a copy that looks neither at the file's size nor at short reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "hearth/hearth.h"
#include "support/temp_folder.h"

#define MODELS HEARTH_TEST_DATA "/models/"
enum { TOKENS = 30 };

static char path[512];

/* No weights are populated while it is shut. */
static atomic_bool gate_is_shut;

int __real_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice);

int __wrap_madvise(void *at, size_t size, int advice) {
    enum { POPULATE_READ = 22 };
    while (advice == POPULATE_READ && atomic_load(&gate_is_shut)) usleep(100);
    return __real_madvise(at, size, advice);
}

static size_t copy_file(const char *from, const char *to) {
    static char buffer[1 << 20];
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    assert_non_null(in);
    assert_non_null(out);
    size_t size = fread(buffer, 1, sizeof buffer, in);
    assert_int_equal(fwrite(buffer, 1, size, out), size);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    return size;
}

static int start(void **state) {
    (void)state;
    temp_folder_make();
    snprintf(path, sizeof path, "%s", temp_path("model.gguf"));
    copy_file(MODELS "tiny-llama-bf16.gguf", path);
    return 0;
}

static int end(void **state) {
    (void)state;
    temp_folder_remove();
    return 0;
}

static hearth_options *options_of(const char *load, const char *sigbus) {
    hearth_options *options;
    assert_int_equal(hearth_options_create(&options, NULL), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "ctx", "64", NULL), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "threads", "2", NULL), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "load", load, NULL), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "sigbus", sigbus, NULL), HEARTH_OK);
    return options;
}

static hearth_engine *open_copy(const char *sigbus) {
    hearth_options *options = options_of("map", sigbus);
    hearth_engine *engine;
    hearth_error err = {0};
    if (hearth_engine_open(path, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    return engine;
}

static hearth_status call(hearth_engine *engine, float *first_logit, hearth_error *err) {
    hearth_token tokens[TOKENS];
    hearth_session *session;
    const float *logits = NULL;
    for (int i = 0; i < TOKENS; i++) tokens[i] = i * 3 % 70;
    assert_int_equal(hearth_session_create(engine, &session, err), HEARTH_OK);
    hearth_status status = hearth_session_sync(session, tokens, TOKENS, NULL, 0, &logits, NULL, err);
    if (status == HEARTH_OK && first_logit) *first_logit = *logits;
    hearth_session_free(&session);
    return status;
}

static void assert_named(hearth_status status, hearth_status expected, const hearth_error *err) {
    if (status != expected || err->status != expected || !strstr(err->text, path))
        fail_msg("%s \"%s\", expected %s", hearth_status_name(status), err->text, hearth_status_name(expected));
}

static void a_file_that_shrinks_ends_calls(void **state) {
    (void)state;
    hearth_error err = {0};
    hearth_engine *engine = open_copy("on");
    assert_int_equal(call(engine, NULL, &err), HEARTH_OK);
    assert_int_equal(truncate(path, 8192), 0);
    assert_named(call(engine, NULL, &err), HEARTH_IO, &err);
    assert_named(call(engine, NULL, &err), HEARTH_IO, &err);
    hearth_engine_close(&engine);
    hearth_options *options = options_of("map", "on");
    assert_named(hearth_engine_open(path, options, &engine, &err), HEARTH_BAD_FILE, &err);
    hearth_options_free(&options);
}

/* Without a handler: what a pause has cost is looked for with calls that answer, not with accesses that fault. */
static void a_file_that_shrinks_in_a_pause_ends_the_next_call(void **state) {
    (void)state;
    hearth_error err = {0};
    hearth_engine *engine = open_copy("off");
    assert_int_equal(call(engine, NULL, &err), HEARTH_OK);
    engine->residency.idle_ms = 0;
    assert_int_equal(truncate(path, 8192), 0);
    assert_named(call(engine, NULL, &err), HEARTH_IO, &err);
    hearth_engine_close(&engine);
}

/* The directory was read with the tokenizer; then the file shrank. */
static void a_file_that_shrinks_while_it_is_opened_is_refused(void **state) {
    static const char *const loads[] = {"map", "read"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        hearth_options *options = options_of(loads[i], "off");
        hearth_tokenizer *tokenizer;
        hearth_engine *engine;
        hearth_error err = {0};
        size_t size = copy_file(MODELS "tiny-llama-bf16.gguf", path);
        assert_int_equal(hearth_tokenizer_open(path, NULL, &tokenizer, &err), HEARTH_OK);
        assert_int_equal(truncate(path, (off_t)(size * 3 / 4)), 0);
        const hearth_open_request request = {.path = path, .options = options, .tokenizer = tokenizer};
        assert_named(hearth_engine_open_request(&request, &engine, &err), HEARTH_IO, &err);
        assert_null(engine);
        hearth_tokenizer_close(&tokenizer);
        hearth_options_free(&options);
    }
}

/* A copy is read from the file whose directory was read, or not at all: another one of the same size has other weights.
 */
static void a_file_that_is_replaced_while_it_is_opened_is_not_copied(void **state) {
    (void)state;
    char fresh[600];
    hearth_options *options = options_of("read", "off");
    hearth_tokenizer *tokenizer;
    hearth_engine *engine;
    hearth_error err = {0};
    snprintf(fresh, sizeof fresh, "%s.new", path);
    assert_int_equal(hearth_tokenizer_open(path, NULL, &tokenizer, &err), HEARTH_OK);
    copy_file(MODELS "tiny-llama-bf16.gguf", fresh);
    assert_int_equal(rename(fresh, path), 0);
    const hearth_open_request request = {.path = path, .options = options, .tokenizer = tokenizer};
    assert_named(hearth_engine_open_request(&request, &engine, &err), HEARTH_IO, &err);
    assert_null(engine);
    hearth_tokenizer_close(&tokenizer);
    hearth_options_free(&options);
}

/* Without a handler: a pass does not touch weights of which it is known that they cannot be read. */
static void a_file_that_shrinks_while_weights_arrive_ends_the_call(void **state) {
    (void)state;
    hearth_options *options = options_of("map", "off");
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_options_set(options, "early", "on", NULL), HEARTH_OK);
    size_t size = copy_file(MODELS "tiny-llama-bf16.gguf", path);
    atomic_store(&gate_is_shut, true);
    if (hearth_engine_open(path, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(truncate(path, (off_t)(size * 3 / 4)), 0);
    atomic_store(&gate_is_shut, false);
    assert_named(call(engine, NULL, &err), HEARTH_IO, &err);
    assert_named(call(engine, NULL, &err), HEARTH_IO, &err);
    hearth_engine_close(&engine);
    hearth_options_free(&options);
}

/* An engine goes on with the file that it has; the next one has the new file. */
static void a_file_that_is_replaced_is_seen_at_the_next_open(void **state) {
    (void)state;
    hearth_error err = {0};
    hearth_model_info info;
    float before = 0, after = 0;
    char fresh[600];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    hearth_engine *engine = open_copy("off"), *next;
    assert_int_equal(call(engine, &before, &err), HEARTH_OK);
    copy_file(MODELS "tiny-qwen3-bf16.gguf", fresh);
    assert_int_equal(rename(fresh, path), 0);
    assert_int_equal(call(engine, &after, &err), HEARTH_OK);
    assert_memory_equal(&before, &after, sizeof before);
    next = open_copy("off");
    hearth_engine_info(next, &info);
    assert_string_equal(info.architecture, "qwen3");
    hearth_engine_close(&next);
    hearth_engine_close(&engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_ends_calls, start, end),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_in_a_pause_ends_the_next_call, start, end),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_while_it_is_opened_is_refused, start, end),
        cmocka_unit_test_setup_teardown(a_file_that_is_replaced_while_it_is_opened_is_not_copied, start, end),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_while_weights_arrive_ends_the_call, start, end),
        cmocka_unit_test_setup_teardown(a_file_that_is_replaced_is_seen_at_the_next_open, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
