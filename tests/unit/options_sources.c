/* Options from the environment and from a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/options.h"

static hearth_options *make(void) {
    hearth_options *options = NULL;
    assert_int_equal(hearth_options_create(&options, NULL), HEARTH_OK);
    return options;
}

static int clear_environment(void **state) {
    (void)state;
    return clearenv();
}

static void environment_sets_options(void **state) {
    (void)state;
    hearth_options *options = make();
    hearth_error err;
    setenv("HEARTH_CPU_MASK", "ref", 1);
    setenv("HEARTH_REPEAT_LAST_N", "5", 1);
    setenv("HEARTH_PIN", "off", 1);
    setenv("HEARTH_KV", "", 1);
    setenv("HEARTH_WHEELS", "/somewhere", 1);
    setenv("XHEARTH_NOPE", "1", 1);
    assert_int_equal(hearth_options_read_environment(options, &err), HEARTH_OK);
    assert_string_equal(hth_option_text(options, HTH_OPTION_CPU_MASK), "ref");
    assert_int_equal(hth_option_int(options, HTH_OPTION_PENALTY_WINDOW), 5);
    assert_true(hth_option_is_set(options, HTH_OPTION_PIN));
    assert_false(hth_option_is_set(options, HTH_OPTION_KV));
    hearth_options_free(&options);
}

static void cache_folder(const char *expected) {
    hearth_options *options = make();
    assert_int_equal(hearth_options_read_environment(options, NULL), HEARTH_OK);
    assert_string_equal(hth_option_text(options, HTH_OPTION_CACHE), expected);
    hearth_options_set(options, "cache", "mine", NULL);
    assert_int_equal(hearth_options_read_environment(options, NULL), HEARTH_OK);
    assert_string_equal(hth_option_text(options, HTH_OPTION_CACHE), getenv("HEARTH_CACHE") ? expected : "mine");
    hearth_options_free(&options);
}

static void the_cache_folder_is_the_systems_unless_named(void **state) {
    (void)state;
    cache_folder("");
    setenv("HOME", "/people/x", 1);
    cache_folder("/people/x/.cache/hearth");
    setenv("XDG_CACHE_HOME", "/caches", 1);
    cache_folder("/caches/hearth");
    setenv("HEARTH_CACHE", "/here", 1);
    cache_folder("/here");
}

static void environment_refuses(const char *name, const char *value, const char *needle) {
    hearth_options *options = make();
    hearth_error err;
    setenv(name, value, 1);
    assert_int_equal(hearth_options_read_environment(options, &err), HEARTH_BAD_OPTION);
    assert_non_null(strstr(err.text, name));
    assert_non_null(strstr(err.text, needle));
    unsetenv(name);
    hearth_options_free(&options);
}

static void environment_refuses_what_it_does_not_know(void **state) {
    (void)state;
    environment_refuses("HEARTH_TMEP", "1", "did you mean 'temp'");
    environment_refuses("HEARTH_TEMP", "hot", "from 0 to 1000");
    environment_refuses("HEARTH_temp", "1", "names no option");
    environment_refuses("HEARTH_CPU-MASK", "ref", "names no option");
    environment_refuses("HEARTH_", "1", "names no option");
}

static void write_file(char path[64], const char *data, size_t size) {
    snprintf(path, 64, "/tmp/hearth-options-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static void file_sets_options(void **state) {
    (void)state;
    static const char text[] =
        "# a comment\n\n  temp = 0.5   # warm\ntop-k=7\r\npin\n\tlock = off\npre = a#b\nctx = 4096";
    char path[64];
    write_file(path, text, sizeof text - 1);
    hearth_options *options = make();
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_options_read_file(options, path, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_true(hth_option_float(options, HTH_OPTION_TEMP) == 0.5);
    assert_int_equal(hth_option_int(options, HTH_OPTION_TOP_K), 7);
    assert_true(hth_option_bool(options, HTH_OPTION_PIN));
    assert_false(hth_option_bool(options, HTH_OPTION_LOCK));
    assert_string_equal(hth_option_text(options, HTH_OPTION_PRE), "a#b");
    assert_int_equal(hth_option_int(options, HTH_OPTION_CTX), 4096);
    hearth_options_free(&options);
    unlink(path);
}

static void file_refuses(const char *text, size_t size, const char *needle) {
    char path[64];
    write_file(path, text, size);
    hearth_options *options = make();
    hearth_error err = {HEARTH_OK, ""};
    assert_int_equal(hearth_options_read_file(options, path, &err), HEARTH_BAD_OPTION);
    assert_non_null(strstr(err.text, path));
    if (!strstr(err.text, needle)) fail_msg("'%s' lacks '%s'", err.text, needle);
    hearth_options_free(&options);
    unlink(path);
}

static void file_errors_name_the_line(void **state) {
    (void)state;
#define REFUSES(text, needle) file_refuses(text, sizeof text - 1, needle)
    REFUSES("temp = 1\ntmep = 1\n", "line 2: no option is named 'tmep'; did you mean 'temp'?");
    REFUSES("temp\n", "line 1: option 'temp' needs a value");
    REFUSES("temp = x\n", "line 1: option 'temp': 'x'");
    REFUSES("= 1\n", "line 1");
    REFUSES("temp 1\n", "line 1");
    REFUSES("temp = 1\0\n", "line 1");
    REFUSES("temp = 1 = 2", "line 1");
#undef REFUSES
    char long_line[10000];
    memset(long_line, 'a', sizeof long_line);
    file_refuses(long_line, sizeof long_line, "line 1: the line is longer");

    hearth_options *options = make();
    hearth_error err;
    assert_int_equal(hearth_options_read_file(options, "/nonexistent/x", &err), HEARTH_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/x"));
    assert_int_equal(hearth_options_read_file(options, "/", &err), HEARTH_IO);
    hearth_options_free(&options);
}

/* Random bytes and mutated lines never do more than be refused. */
static void random_files_are_survived(void **state) {
    (void)state;
    uint64_t seed = 20240607;
    for (int round = 0; round < 300; round++) {
        char text[512] = "temp = 0.5\ncpu-mask = avx2 # x\nmemory = 3g\npin = on\nseed = 12\n";
        size_t size = round % 2 ? strlen(text) : sizeof text;
        for (int k = 0; k < 6 || (round % 2 == 0 && k < 512); k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % size] = (char)(seed >> 24);
        }
        char path[64];
        write_file(path, text, size);
        hearth_options *options = make();
        hearth_error err = {HEARTH_OK, ""};
        hearth_status status = hearth_options_read_file(options, path, &err);
        if (status != HEARTH_OK && status != HEARTH_BAD_OPTION) fail_msg("round %d: %s", round, err.text);
        hearth_options_free(&options);
        unlink(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(environment_sets_options, clear_environment, clear_environment),
        cmocka_unit_test_setup_teardown(the_cache_folder_is_the_systems_unless_named, clear_environment,
                                        clear_environment),
        cmocka_unit_test_setup_teardown(environment_refuses_what_it_does_not_know, clear_environment,
                                        clear_environment),
        cmocka_unit_test(file_sets_options),
        cmocka_unit_test(file_errors_name_the_line),
        cmocka_unit_test(random_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
