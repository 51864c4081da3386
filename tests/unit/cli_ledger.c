/* The bill of open as a table and as a picture: what is not known yet is not given as a figure, and every word of the
 * picture lies inside it.
 *
 * Seen red with figures for a row that is still going on (-13.50 ms), with names that begin at 190 or bars 450 wide,
 * with "exposed" behind a row whose times differ by rounding alone, and with what is outstanding said of every row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/ledger.h"

#define LONGEST "populated by 16 threads, 100 % in huge pages, x"

_Static_assert(sizeof LONGEST == sizeof((hearth_ledger_row *)0)->how, "as much as a row can say");

enum { PROGRAM, RESIDENCY, ARENAS, ROWS };

/* A bill of three rows; the times differ by what a sum of floats may. */
static void make_bill(hearth_ledger_row rows[ROWS]) {
    rows[PROGRAM] = (hearth_ledger_row){.what = "program", .how = "<&>", .end_ms = 13.5, .exposed_ms = 13.5 - 1e-12};
    rows[RESIDENCY] = (hearth_ledger_row){.what = "residency",
                                          .how = LONGEST,
                                          .start_ms = 13.5,
                                          .end_ms = 12345.678,
                                          .exposed_ms = 12300,
                                          .bytes = 1 << 20,
                                          .minor_faults = 7};
    rows[ARENAS] = (hearth_ledger_row){
        .what = "arenas", .start_ms = 13.5, .end_ms = 45.678, .exposed_ms = 32.178, .outstanding = 1 << 19};
}

static char *picture_of(const hearth_ledger_row *rows) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(hth_ledger_svg(out, "a<model>.gguf", rows, ROWS));
    fclose(out);
    return text;
}

static char *table_of(const hearth_ledger_row *rows) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    hth_ledger_table(out, rows, ROWS);
    fclose(out);
    return text;
}

/* The line of a table that begins with `name`, its columns in `columns`; how many there are. */
static int columns_of(char *table, const char *name, char *columns[], int most) {
    char *line = table;
    while (strncmp(line, name, strlen(name)) != 0) {
        line = strchr(line, '\n');
        assert_non_null(line);
        line++;
    }
    *strchr(line, '\n') = 0;
    int n = 0;
    for (char *rest, *word = strtok_r(line, " ", &rest); word && n < most; word = strtok_r(NULL, " ", &rest))
        columns[n++] = word;
    return n;
}

static double number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

/* Each text of a picture begins and ends inside it, as far as letters have the width that they have at most. */
static void assert_texts_fit(char *picture) {
    const double width = number_after(picture, "width='");
    int texts = 0;
    for (char *at = strstr(picture, "<text "); at; at = strstr(at, "<text "), texts++) {
        char *begin = strchr(at, '>') + 1, *end = strstr(begin, "</text>");
        *end = 0;
        const bool small = strstr(at, "class='how'"), ends = small || strstr(at, "class='name'");
        const bool middle = strstr(at, "class='tick'"), title = strstr(at, "class='title'");
        const double x = number_after(at, "x='"), room = (double)(end - begin) * (title ? 10 : small ? 5.5 : 6.5);
        const double from = ends ? x - room : middle ? x - room / 2 : x;
        if (from < 0 || from + room > width) fail_msg("%s: from %.0f to %.0f", begin, from, from + room);
        at = end + 1;
    }
    assert_true(texts > 2 * ROWS);
}

static void words_have_room(void **state) {
    (void)state;
    hearth_ledger_row rows[ROWS];
    make_bill(rows);
    char *picture = picture_of(rows);
    assert_non_null(strstr(picture, "Opening a&lt;model&gt;.gguf took 12346 ms"));
    assert_non_null(strstr(picture, ">" LONGEST "<"));
    assert_non_null(strstr(picture, ">&lt;&amp;&gt;<"));
    assert_non_null(strstr(picture, ">12332 ms, exposed 12300<"));
    assert_non_null(strstr(picture, ">13.50 ms<"));
    assert_texts_fit(picture);
    free(picture);
}

static void what_is_going_on_has_no_figures(void **state) {
    (void)state;
    hearth_ledger_row rows[ROWS];
    make_bill(rows);
    rows[RESIDENCY] = (hearth_ledger_row){.what = "residency", .how = "populated by 1 thread", .start_ms = 13.5};
    char *picture = picture_of(rows), *table = table_of(rows);
    assert_non_null(strstr(picture, ">going on<"));
    assert_null(strstr(picture, ">-"));
    assert_null(strstr(picture, "='-"));
    enum { COLUMNS = 14 };
    char *columns[COLUMNS];
    static const char *const expected[COLUMNS] = {"residency", "13.50",     "-",  "0.00", "-",       "-",     "-",
                                                  "-",         "populated", "by", "1",    "thread,", "going", "on"};
    assert_int_equal(columns_of(table, "residency", columns, COLUMNS), COLUMNS);
    for (int i = 0; i < COLUMNS; i++) assert_string_equal(columns[i], expected[i]);
    free(table);
    free(picture);
}

/* Nothing is said of weights that are left before they begin to arrive. */
static void outstanding_begins_with_the_weights(void **state) {
    (void)state;
    static const struct {
        const char *row, *outstanding;
    } cases[] = {{"program", "-"}, {"residency", "0"}, {"arenas", "524288"}};
    hearth_ledger_row rows[ROWS];
    make_bill(rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *columns[8], *table = table_of(rows);
        assert_int_equal(columns_of(table, cases[i].row, columns, 8), 8);
        assert_string_equal(columns[7], cases[i].outstanding);
        free(table);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_have_room),
        cmocka_unit_test(what_is_going_on_has_no_figures),
        cmocka_unit_test(outstanding_begins_with_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
