/* A value that is not finite: the session it belongs to is poisoned by name, everything else lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf/gguf.h"
#include "hearth/hearth.h"
#include "support/temp_folder.h"

#define MODEL HEARTH_TEST_DATA "/models/tiny-qwen3moe-bf16.gguf"
enum { BAD = 5, COUNT = 40, AT = 17 }; /* the token whose embedding is no number, and where session A has it */

static const char *model_path;

static void read_file(const char *name, unsigned char **data, size_t *size) {
    FILE *in = fopen(name, "rb");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    *size = (size_t)ftell(in);
    rewind(in);
    *data = malloc(*size);
    assert_non_null(*data);
    assert_int_equal(fread(*data, 1, *size, in), *size);
    fclose(in);
}

/* A copy of the model in which token BAD is embedded as NaN. */
static int make_model(void **state) {
    (void)state;
    unsigned char *data;
    size_t size;
    hth_gguf *g;
    hearth_error err = {0};
    read_file(MODEL, &data, &size);
    assert_int_equal(hth_gguf_open(MODEL, &g, &err), HEARTH_OK);
    const hth_gguf_tensor *t = hth_gguf_find_tensor(g, "token_embd.weight");
    assert_non_null(t);
    assert_int_equal(t->dtype, HTH_BF16);
    memset(data + t->offset + BAD * t->dims[0] * 2, 0xFF, 2);
    hth_gguf_close(&g);
    temp_folder_make();
    model_path = strdup(temp_path("poisoned.gguf"));
    assert_non_null(model_path);
    FILE *out = fopen(model_path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    free(data);
    return 0;
}

static hearth_engine *open_model(void) {
    static const char *const pairs[][2] = {{"ctx", "128"}, {"sessions", "2"}, {"threads", "2"}, {"rows", "32"}};
    hearth_options *options;
    hearth_engine *engine;
    hearth_error err = {0};
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(hearth_options_set(options, pairs[i][0], pairs[i][1], &err), HEARTH_OK);
    if (hearth_engine_open(model_path, options, &engine, &err) != HEARTH_OK) fail_msg("%s", err.text);
    hearth_options_free(&options);
    return engine;
}

static void test_router_names_site(void **state) {
    (void)state;
    hearth_engine *engine = open_model();
    hearth_error err = {0};
    hearth_session *a, *b;
    hearth_token good[COUNT], bad[COUNT];
    for (int i = 0; i < COUNT; i++) good[i] = bad[i] = (hearth_token)(10 + i);
    bad[AT] = BAD;
    assert_int_equal(hearth_session_create(engine, &a, &err), HEARTH_OK);
    assert_int_equal(hearth_session_create(engine, &b, &err), HEARTH_OK);

    hearth_model_info info;
    hearth_engine_info(engine, &info);
    size_t row = (size_t)info.vocab * sizeof(float);
    const float *logits;
    float *want = malloc(row);
    assert_non_null(want);
    assert_int_equal(hearth_session_sync(b, good, COUNT, NULL, 0, &logits, NULL, &err), HEARTH_OK);
    memcpy(want, logits, row);
    assert_int_equal(hearth_session_truncate(b, 0, &err), HEARTH_OK);

    hearth_mark mark_a = {.position = 5}, mark_b = {.position = 5};
    hearth_item items[] = {
        {.session = a, .tokens = bad, .count = COUNT, .outputs = HEARTH_OUTPUT_NONE, .marks = &mark_a, .mark_count = 1},
        {.session = b,
         .tokens = good,
         .count = COUNT,
         .outputs = HEARTH_OUTPUT_LAST,
         .marks = &mark_b,
         .mark_count = 1},
    };
    assert_int_equal(hearth_engine_run(engine, items, 2, &err), HEARTH_POISONED);
    assert_non_null(strstr(err.text, "blk.0.ffn_router"));
    assert_non_null(strstr(err.text, "position 17"));
    assert_memory_equal(items[1].logits, want, row);
    assert_int_equal(mark_a.id, 0);
    assert_true(mark_b.id > 0);

    /* The one is refused by name until it goes back; the other goes on, with the bits that it had. */
    items[0] = (hearth_item){.session = a, .tokens = good, .count = 1, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(engine, items, 1, &err), HEARTH_POISONED);
    assert_non_null(strstr(err.text, "blk.0.ffn_router"));
    assert_int_equal(hearth_session_restore(a, mark_b.id, &err), HEARTH_OK);
    items[0] = (hearth_item){.session = a, .tokens = good + 5, .count = COUNT - 5, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(engine, items, 1, &err), HEARTH_OK);
    assert_memory_equal(items[0].logits, want, row);
    assert_int_equal(hearth_session_truncate(b, 20, &err), HEARTH_OK);
    items[1] = (hearth_item){.session = b, .tokens = good + 20, .count = COUNT - 20, .outputs = HEARTH_OUTPUT_LAST};
    assert_int_equal(hearth_engine_run(engine, items + 1, 1, &err), HEARTH_OK);
    assert_memory_equal(items[1].logits, want, row);
    free(want);
    hearth_session_free(&a);
    hearth_session_free(&b);
    hearth_engine_close(&engine);
}

static int stop(void *context, int64_t done, int64_t total) {
    (void)context;
    return done < total;
}

/* A call that is stopped drops the marks of a session which it has poisoned, and keeps those of the others. */
static void test_stopped_call_drops_marks(void **state) {
    (void)state;
    hearth_engine *engine = open_model();
    hearth_error err = {0};
    hearth_session *a, *b;
    hearth_token good[COUNT], bad[COUNT];
    for (int i = 0; i < COUNT; i++) good[i] = bad[i] = (hearth_token)(10 + i);
    bad[AT] = BAD;
    assert_int_equal(hearth_session_create(engine, &a, &err), HEARTH_OK);
    assert_int_equal(hearth_session_create(engine, &b, &err), HEARTH_OK);
    hearth_mark mark_a = {.position = AT + 2}, mark_b = {.position = 5};
    hearth_item items[] = {
        {.session = b, .tokens = good, .count = 10, .marks = &mark_b, .mark_count = 1},
        {.session = a, .tokens = bad, .count = COUNT, .marks = &mark_a, .mark_count = 1},
    };
    hearth_engine_set_progress(engine, stop, NULL);
    assert_int_equal(hearth_engine_run(engine, items, 2, &err), HEARTH_CANCELLED);
    hearth_engine_set_progress(engine, NULL, NULL);
    assert_int_equal(mark_a.id, 0);
    assert_true(mark_b.id > 0);
    assert_int_equal(hearth_engine_marks(engine, NULL, 0), 1);
    assert_int_equal(hearth_session_truncate(a, 3, &err), HEARTH_POISONED);
    assert_int_equal(hearth_session_restore(a, mark_b.id, &err), HEARTH_OK);
    hearth_session_free(&a);
    hearth_session_free(&b);
    hearth_engine_close(&engine);
}

static int remove_model(void **state) {
    (void)state;
    free((void *)(uintptr_t)model_path);
    temp_folder_remove();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_router_names_site),
        cmocka_unit_test(test_stopped_call_drops_marks),
    };
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
