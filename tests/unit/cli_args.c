/* How a command line is taken apart. What it says when it refuses is tested from outside (tests/cli). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/args.h"
#include "cli/verbs.h"

enum { MAX_WORDS = 16 };

typedef struct found {
    const char *text;
    int64_t number;
    bool on;
    hth_list list;
    hth_args args;
    int status;
} found;

static bool parse_as(found *f, const char *operands, unsigned scopes, const char *const *words) {
    *f = (found){.number = -99, .status = -99};
    const hth_flag flags[] = {
        {'p', "prompt", NULL, HTH_FLAG_TEXT, &f->text, "TEXT", "a text", 0, 0},
        {'n', "tokens", "n-predict", HTH_FLAG_INT, &f->number, "N", "a number", 0, 1000},
        {0, "greedy", NULL, HTH_FLAG_SWITCH, &f->on, NULL, "a switch", 0, 0},
        {0, "stop", NULL, HTH_FLAG_LIST, &f->list, "TEXT", "a list", 0, 0},
        {0, "marks", NULL, HTH_FLAG_LATER, NULL, NULL, "later", 0, 0},
    };
    static const hth_default defaults[] = {{"rows", "7", NULL}, {"ctx", NULL, "worked out"}};
    const hth_command command = {.verb = "test",
                                 .summary = "A test.",
                                 .operands = operands,
                                 .scopes = scopes,
                                 .flags = flags,
                                 .n_flags = sizeof flags / sizeof *flags,
                                 .defaults = defaults,
                                 .n_defaults = sizeof defaults / sizeof *defaults};
    char *argv[MAX_WORDS] = {(char *)"test"};
    int argc = 1;
    for (; *words; words++) argv[argc++] = (char *)*words;
    return hth_args_parse(&command, argc, argv, &f->args, &f->status);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void release(found *f) {
    hth_list_free(&f->list);
    hth_args_free(&f->args);
}

static void accept(found *f, const char *const *words) {
    if (!parse_as(f, NULL, HTH_SCOPES_ALL, words)) fail_msg("refused '%s'", words[0]);
}

static void refuse(const char *const *words) {
    found f;
    if (parse_as(&f, NULL, HTH_SCOPES_ENGINE, words)) fail_msg("took '%s'", words[0]);
    assert_int_equal(f.status, HTH_EXIT_USAGE);
    assert_null(f.args.options);
    hth_list_free(&f.list);
}

static int64_t int_option(const found *f, const char *name) {
    int64_t value = -1;
    assert_int_equal(hearth_options_get_int(f->args.options, name, &value, NULL, NULL), HEARTH_OK);
    return value;
}

static void values_are_attached_or_follow(void **state) {
    (void)state;
    const char *const *const forms[] = {
        WORDS("-p", "x y", "-n", "7", "--ctx", "100"), WORDS("--prompt", "x y", "--tokens", "7", "-c", "100"),
        WORDS("--prompt=x y", "--tokens=7", "--ctx=100"), WORDS("-p=x y", "-n=7", "-c=100"),
        WORDS("--n-predict", "7", "--ctx-size=100", "-p", "x y")};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        found f;
        accept(&f, forms[i]);
        assert_string_equal(f.text, "x y");
        assert_int_equal(f.number, 7);
        assert_int_equal(int_option(&f, "ctx"), 100);
        release(&f);
    }
}

static void any_text_can_be_a_value(void **state) {
    (void)state;
    static const char *const texts[] = {"", "-", "--", "-n", "--temp", "a=b", "=", "\xff\xfe"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        found f;
        accept(&f, WORDS("-p", texts[i], "--greedy"));
        assert_string_equal(f.text, texts[i]);
        assert_true(f.on);
        release(&f);
    }
    found f;
    accept(&f, WORDS("--prompt="));
    assert_string_equal(f.text, "");
    release(&f);
}

static void lists_and_the_last_of_others_count(void **state) {
    (void)state;
    found f;
    accept(&f, WORDS("--stop", "a", "-n", "1", "--stop=b", "-n", "2", "--stop", "", "--top-k", "3", "--top-k", "4"));
    assert_int_equal(f.list.count, 3);
    assert_string_equal(f.list.items[0], "a");
    assert_string_equal(f.list.items[1], "b");
    assert_string_equal(f.list.items[2], "");
    assert_int_equal(f.number, 2);
    assert_int_equal(int_option(&f, "top-k"), 4);
    release(&f);
}

static void switches_of_the_table(void **state) {
    (void)state;
    found f;
    accept(&f, WORDS("--pin", "--no-sigbus", "--lock=off"));
    assert_int_equal(int_option(&f, "pin"), 1);
    assert_int_equal(int_option(&f, "sigbus"), 0);
    assert_int_equal(int_option(&f, "lock"), 0);
    release(&f);
    accept(&f, WORDS("--json", "-m", "x"));
    assert_int_equal(int_option(&f, "sigbus"), 1); /* the program's default */
    assert_true(f.args.common.json);
    assert_string_equal(f.args.common.model, "x");
    release(&f);
}

static void defaults_of_the_verb(void **state) {
    (void)state;
    found f;
    accept(&f, WORDS("--json"));
    assert_int_equal(int_option(&f, "rows"), 7);
    assert_int_equal(int_option(&f, "ctx"), 0); /* the verb's is worked out later */
    release(&f);
    accept(&f, WORDS("--rows", "9", "--ctx", "5"));
    assert_int_equal(int_option(&f, "rows"), 9);
    assert_int_equal(int_option(&f, "ctx"), 5);
    release(&f);
}

static void operands(void **state) {
    (void)state;
    found f;
    assert_true(parse_as(&f, "[ID ...]", HTH_SCOPES_TEXT, WORDS("1", "-n", "2", "-", "--", "--greedy", "-n")));
    assert_int_equal(f.args.operands.count, 4);
    assert_string_equal(f.args.operands.items[1], "-");
    assert_string_equal(f.args.operands.items[3], "-n");
    assert_false(f.on);
    release(&f);
    refuse(WORDS("word"));
    refuse(WORDS("--", "-n"));
}

static void what_is_refused(void **state) {
    (void)state;
    const char *const *const bad[] = {WORDS("--unknown"),   WORDS("-z"),
                                      WORDS("-n5"),         WORDS("-pn", "x"),
                                      WORDS("-p"),          WORDS("--ctx"),
                                      WORDS("-n", "-1"),    WORDS("-n", "1001"),
                                      WORDS("-n", "1.5"),   WORDS("-n", ""),
                                      WORDS("-n="),         WORDS("-n", "99999999999999999999"),
                                      WORDS("--greedy=1"),  WORDS("--marks"),
                                      WORDS("--marks=1"),   WORDS("--temp", "1"),
                                      WORDS("--ctx", "-1"), WORDS("--ctx=x"),
                                      WORDS("--kv", "f8"),  WORDS("--no-ctx"),
                                      WORDS("--no-pin=on"), WORDS("--no-greedy"),
                                      WORDS("--pin=maybe"), WORDS("---ctx", "1"),
                                      WORDS("--=1"),        WORDS("--lora", "x"),
                                      WORDS("--mmproj=x"),  WORDS("-ngl", "99"),
                                      WORDS("--CTX", "1"),  WORDS("--stop", "a", "--stop"),
                                      WORDS("-n", "0x10"),  WORDS("-n", " 1"),
                                      WORDS("--tok", "1"),  WORDS("--config", "/nonexistent/file"),
                                      WORDS("--config"),    WORDS("-c", "1k")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strcmp(bad[i][0], "--config") != 0 || !bad[i][1]) refuse(bad[i]);
    found f;
    assert_false(parse_as(&f, NULL, HTH_SCOPES_ALL, WORDS("--config", "/nonexistent/file")));
    assert_int_equal(f.status, HTH_EXIT_FAILED);
}

static void file_then_environment_then_words(void **state) {
    (void)state;
    char path[] = "/tmp/hearth-args-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char text[] = "ctx = 1\nrows = 1\nthreads = 1\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    setenv("HEARTH_ROWS", "2", 1);
    setenv("HEARTH_THREADS", "2", 1);
    found f;
    accept(&f, WORDS("--threads", "3", "--config", path));
    assert_int_equal(int_option(&f, "ctx"), 1);
    assert_int_equal(int_option(&f, "rows"), 2);
    assert_int_equal(int_option(&f, "threads"), 3);
    release(&f);
    setenv("HEARTH_TREADS", "2", 1);
    refuse(WORDS("--greedy"));
    unsetenv("HEARTH_TREADS");
    unsetenv("HEARTH_ROWS");
    unsetenv("HEARTH_THREADS");
    unlink(path);
}

int main(void) {
    clearenv();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_attached_or_follow),
        cmocka_unit_test(any_text_can_be_a_value),
        cmocka_unit_test(lists_and_the_last_of_others_count),
        cmocka_unit_test(switches_of_the_table),
        cmocka_unit_test(defaults_of_the_verb),
        cmocka_unit_test(operands),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(file_then_environment_then_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
