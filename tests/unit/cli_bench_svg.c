/* The picture of a bench: names have room, and rates stand there as numbers are read.
 *
 * Seen red with bars that begin at 190, and with rates printed by %.4g. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench.h"

static char *picture_of(const hth_bench_row *rows, size_t count) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(hth_bench_svg(out, "model", "subtitle", rows, count));
    fclose(out);
    return text;
}

static void rates_are_plain(void **state) {
    (void)state;
    static const struct {
        double rate;
        const char *text;
    } cases[] = {{0.6292, ">0.629<"}, {9.5, ">9.500<"},     {43.45, ">43.45<"},  {633.12, ">633.1<"},
                 {9771, ">9771<"},    {13734.2, ">13734<"}, {2.5e6, ">2500000<"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double rate = cases[i].rate;
        hth_bench_row row = {.tokens = 8, .median = rate, .least = rate, .most = rate};
        char *text = picture_of(&row, 1);
        if (!strstr(text, cases[i].text) || strstr(text, "e+")) fail_msg("%g: no %s in %s", rate, cases[i].text, text);
        free(text);
    }
}

static void long_names_have_room(void **state) {
    (void)state;
    enum { PIXELS_A_LETTER = 7 };
    hth_bench_row row = {.tokens = 65536, .depth = 65536, .marks = 65536, .median = 2, .least = 1, .most = 3};
    char *text = picture_of(&row, 1);
    const char *end = strstr(text, "65536 tokens after 65536, 65536 marks"), *begin = end;
    assert_non_null(end);
    while (strncmp(begin, "<text x='", 9) != 0) begin--;
    assert_true(strtol(begin + 9, NULL, 10) >= PIXELS_A_LETTER * (long)strlen("65536 tokens after 65536, 65536 marks"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_plain),
        cmocka_unit_test(long_names_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
