/* The options table: every row by the same rules, whatever rows there are. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

static hearth_options *make(void) {
    hearth_options *options = NULL;
    assert_int_equal(hearth_options_create(&options, NULL), HEARTH_OK);
    return options;
}

static void refuse(hearth_options *options, const char *name, const char *value) {
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_options_set(options, name, value, &err) == HEARTH_OK)
        fail_msg("option %s took '%s'", name, value ? value : "(no value)");
    assert_int_equal(err.status, HEARTH_BAD_OPTION);
    assert_non_null(strstr(err.text, name));
}

static void accept(hearth_options *options, const char *name, const char *value) {
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_options_set(options, name, value, &err) != HEARTH_OK) fail_msg("option %s: %s", name, err.text);
}

static void rows_are_well_formed(void **state) {
    (void)state;
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *info = hearth_option_at(i);
        assert_true(strlen(info->name) > 1 && strlen(info->name) < 40);
        assert_int_equal(strspn(info->name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(info->name));
        assert_true(strlen(info->help) > 10 && !strchr(info->help, '\n'));
        assert_int_equal(info->type == HEARTH_OPTION_CHOICE, info->choices[0] != '\0');
        for (size_t k = 0; k < i; k++) {
            const hearth_option_info *other = hearth_option_at(k);
            assert_string_not_equal(info->name, other->name);
            assert_string_not_equal(info->name, other->other_name);
            assert_string_not_equal(info->other_name, other->name);
            if (info->other_name[0]) assert_string_not_equal(info->other_name, other->other_name);
        }
    }
    assert_null(hearth_option_at(hearth_option_count()));
}

static void defaults_are_the_tables(void **state) {
    (void)state;
    hearth_options *options = make();
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *info = hearth_option_at(i);
        int set = 1;
        if (info->type == HEARTH_OPTION_INT || info->type == HEARTH_OPTION_BOOL) {
            int64_t value;
            assert_int_equal(hearth_options_get_int(options, info->name, &value, &set, NULL), HEARTH_OK);
            if (info->type == HEARTH_OPTION_INT) assert_int_equal(value, strtoll(info->fallback, NULL, 10));
        } else if (info->type == HEARTH_OPTION_FLOAT) {
            double value;
            assert_int_equal(hearth_options_get_float(options, info->name, &value, &set, NULL), HEARTH_OK);
            assert_true(value == strtod(info->fallback, NULL));
        } else {
            const char *value;
            assert_int_equal(hearth_options_get_text(options, info->name, &value, &set, NULL), HEARTH_OK);
            assert_string_equal(value, info->fallback);
        }
        assert_int_equal(set, 0);
    }
    hearth_options_free(&options);
    assert_null(options);
    hearth_options_free(&options);
    hearth_options_free(NULL);

    assert_int_equal(hth_option_int(NULL, HTH_OPTION_ROWS), 512);
    assert_true(hth_option_float(NULL, HTH_OPTION_TEMP) == 0.8);
    assert_false(hth_option_bool(NULL, HTH_OPTION_PIN));
    assert_string_equal(hth_option_text(NULL, HTH_OPTION_KV), "f16");
    assert_string_equal(hth_option_text(NULL, HTH_OPTION_PRE), "");
    assert_false(hth_option_is_set(NULL, HTH_OPTION_KV));
}

/* What no number of any row is. */
static const char *const not_numbers[] = {"",
                                          " ",
                                          "x",
                                          "1x",
                                          " 1",
                                          "1 ",
                                          "--1",
                                          "+-1",
                                          "1e",
                                          "e1",
                                          "0x10",
                                          "nan",
                                          "inf",
                                          "-inf",
                                          "infinity",
                                          "1,5",
                                          "1.2.3",
                                          "..",
                                          "-",
                                          "+",
                                          "1_0",
                                          "1k5",
                                          "k",
                                          "1kk",
                                          "k1",
                                          "\t1",
                                          "1\n",
                                          "NaN",
                                          "1e999",
                                          "-1e999",
                                          "0x1p3",
                                          "1f",
                                          "1.0f",
                                          "٣",
                                          "𝟙",
                                          "99999999999999999999999999",
                                          "-99999999999999999999999999"};

static void bad_values_are_refused(void **state) {
    (void)state;
    hearth_options *options = make();
    char huge[4000];
    memset(huge, '9', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *info = hearth_option_at(i);
        if (info->type == HEARTH_OPTION_TEXT) continue;
        for (size_t k = 0; k < sizeof not_numbers / sizeof *not_numbers; k++)
            refuse(options, info->name, not_numbers[k]);
        refuse(options, info->name, huge);
        if (info->type != HEARTH_OPTION_BOOL) refuse(options, info->name, NULL);
        if (info->type == HEARTH_OPTION_CHOICE) refuse(options, info->name, info->choices); /* "f16|f32" */
        if (info->type == HEARTH_OPTION_INT) {
            refuse(options, info->name, "1.5");
            refuse(options, info->name, "9223372036854775808");
            refuse(options, info->name, "-9223372036854775809");
            if (strcmp(info->unit, "bytes") != 0) refuse(options, info->name, "1k");
        }
    }
    for (size_t i = 0; i < hearth_option_count(); i++) {
        int set = 1;
        int64_t whole;
        if (hearth_option_at(i)->type == HEARTH_OPTION_INT) {
            hearth_options_get_int(options, hearth_option_at(i)->name, &whole, &set, NULL);
            assert_int_equal(set, 0);
        }
    }
    hearth_options_free(&options);
}

static void ranges_hold_at_their_ends(void **state) {
    (void)state;
    hearth_options *options = make();
    char text[400];
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *info = hearth_option_at(i);
        if (info->type == HEARTH_OPTION_INT) {
            bool open = info->max >= 0x1p63;
            int64_t ends[2] = {(int64_t)info->min, open ? INT64_MAX : (int64_t)info->max};
            for (int k = 0; k < 2; k++) {
                int64_t value = -7;
                snprintf(text, sizeof text, "%lld", (long long)ends[k]);
                accept(options, info->name, text);
                assert_int_equal(hearth_options_get_int(options, info->name, &value, NULL, NULL), HEARTH_OK);
                assert_int_equal(value, ends[k]);
            }
            snprintf(text, sizeof text, "%lld", (long long)ends[0] - 1);
            refuse(options, info->name, text);
            snprintf(text, sizeof text, "%lld", (long long)ends[1] + !open);
            if (!open) refuse(options, info->name, text);
        } else if (info->type == HEARTH_OPTION_FLOAT) {
            double ends[2] = {info->min, info->max}, value;
            for (int k = 0; k < 2; k++) {
                snprintf(text, sizeof text, "%.17g", ends[k]);
                accept(options, info->name, text);
                assert_int_equal(hearth_options_get_float(options, info->name, &value, NULL, NULL), HEARTH_OK);
                assert_true(value == ends[k]);
                snprintf(text, sizeof text, "%.17g", nextafter(ends[k], k ? INFINITY : -INFINITY));
                refuse(options, info->name, text);
            }
        }
    }
    hearth_options_free(&options);
}

static void choices_and_switches(void **state) {
    (void)state;
    hearth_options *options = make();
    for (size_t i = 0; i < hearth_option_count(); i++) {
        const hearth_option_info *info = hearth_option_at(i);
        if (info->type == HEARTH_OPTION_CHOICE) {
            char list[200];
            snprintf(list, sizeof list, "%s", info->choices);
            for (char *save = NULL, *word = strtok_r(list, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
                const char *value;
                accept(options, info->name, word);
                hearth_options_get_text(options, info->name, &value, NULL, NULL);
                assert_string_equal(value, word);
            }
        } else if (info->type == HEARTH_OPTION_BOOL) {
            static const char *const words[] = {NULL, "off", "on", "false", "true", "0", "1", "no", "yes"};
            for (int k = 0; k < 9; k++) {
                int64_t value;
                accept(options, info->name, words[k]);
                assert_int_equal(hearth_options_get_int(options, info->name, &value, NULL, NULL), HEARTH_OK);
                assert_int_equal(value, k == 0 || k % 2 == 0);
            }
        }
    }
    hearth_options_free(&options);
}

static void byte_suffixes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"0", 0},           {"1", 1},          {"1k", 1024},
                 {"3M", 3 << 20},    {"2g", 2LL << 30}, {"2GiB", 2LL << 30},
                 {"2GB", 2LL << 30}, {"1t", 1LL << 40}, {"16TiB", 1LL << 44}};
    hearth_options *options = make();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value;
        accept(options, "memory", cases[i].text);
        assert_int_equal(hearth_options_get_int(options, "memory", &value, NULL, NULL), HEARTH_OK);
        assert_int_equal(value, cases[i].value);
    }
    static const char *const bad[] = {"1p",  "1kx",         "1ki",       "1kbb", "1.5g",
                                      "-1k", "9999999999g", "16777216t", "g",    "1gg"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuse(options, "memory", bad[i]);
    hearth_options_free(&options);
}

static void unknown_names_get_a_suggestion(void **state) {
    (void)state;
    static const struct {
        const char *name, *suggestion;
    } cases[] = {{"tmep", "'temp'"},
                 {"tempp", "'temp'"},
                 {"topk", "'top-k'"},
                 {"cpumask", "'cpu-mask'"},
                 {"thread", "'threads'"},
                 {"repeat-last", "'repeat-last-n'"},
                 {"frequncy-penalty", "'frequency-penalty'"}};
    hearth_options *options = make();
    hearth_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hearth_options_set(options, cases[i].name, "1", &err), HEARTH_BAD_OPTION);
        assert_non_null(strstr(err.text, cases[i].suggestion));
    }
    static const char *const far[] = {"", "x", "banana", "TEMP", "temp ", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        assert_int_equal(hearth_options_set(options, far[i], "1", &err), HEARTH_BAD_OPTION);
    assert_int_equal(hearth_options_set(options, "banana", "1", &err), HEARTH_BAD_OPTION);
    assert_null(strstr(err.text, "did you mean"));
    char *long_name = malloc(100000);
    memset(long_name, 'a', 99999);
    long_name[99999] = '\0';
    assert_int_equal(hearth_options_set(options, long_name, "1", &err), HEARTH_BAD_OPTION);
    free(long_name);
    int64_t value;
    assert_int_equal(hearth_options_get_int(options, "kv", &value, NULL, &err), HEARTH_BAD_OPTION);
    assert_int_equal(hearth_options_get_int(options, "nope", &value, NULL, &err), HEARTH_BAD_OPTION);
    assert_int_equal(hearth_options_set(options, NULL, "1", &err), HEARTH_BAD_ARGUMENT);
    hearth_options_free(&options);
}

static void distance_counts_edits(void **state) {
    (void)state;
    assert_int_equal(hth_name_distance("", ""), 0);
    assert_int_equal(hth_name_distance("", "abc"), 3);
    assert_int_equal(hth_name_distance("temp", "temp"), 0);
    assert_int_equal(hth_name_distance("tmep", "temp"), 1);
    assert_int_equal(hth_name_distance("kitten", "sitting"), 3);
    assert_int_equal(hth_name_distance("sitting", "kitten"), 3);
}

static void both_names_mean_the_same(void **state) {
    (void)state;
    hearth_options *options = make();
    accept(options, "repeat-last-n", "7");
    assert_int_equal(hth_option_int(options, HTH_OPTION_PENALTY_WINDOW), 7);
    accept(options, "penalty-window", "8");
    int64_t value;
    int set = 0;
    assert_int_equal(hearth_options_get_int(options, "repeat-last-n", &value, &set, NULL), HEARTH_OK);
    assert_int_equal(value, 8);
    assert_int_equal(set, 1);
    accept(options, "pre", "a");
    accept(options, "pre", "smollm");
    assert_string_equal(hth_option_text(options, HTH_OPTION_PRE), "smollm");
    hearth_options_free(&options);
}

static void numbers_do_not_depend_on_the_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    locale_t with_comma = (locale_t)0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !with_comma; i++)
        with_comma = newlocale(LC_ALL_MASK, names[i], (locale_t)0);
    locale_t before = uselocale(with_comma);
    hearth_options *options = make();
    accept(options, "temp", "0.25");
    assert_true(hth_option_float(options, HTH_OPTION_TEMP) == 0.25);
    refuse(options, "temp", "0,25");
    hearth_options_free(&options);
    uselocale(before);
    if (with_comma) freelocale(with_comma);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_well_formed),           cmocka_unit_test(defaults_are_the_tables),
        cmocka_unit_test(bad_values_are_refused),         cmocka_unit_test(ranges_hold_at_their_ends),
        cmocka_unit_test(choices_and_switches),           cmocka_unit_test(byte_suffixes),
        cmocka_unit_test(unknown_names_get_a_suggestion), cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(both_names_mean_the_same),       cmocka_unit_test(numbers_do_not_depend_on_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
