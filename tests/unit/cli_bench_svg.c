/* The pictures of a bench: names have room, rates stand there as numbers are read, and the points of a sweep that stand
 * out are marked.
 *
 * Seen red with bars that begin at 190, with rates printed by %.4g, and with a trend that takes neighbours for equally
 * far. */
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
        hth_bench_row row = {.tokens = 8, .sessions = 1, .median = rate, .least = rate, .most = rate};
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

/* Points of a straight line, but for one. */
static void steps_are_marked(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 3, 4, 8, 16, 17};
    enum { POINTS = sizeof rows / sizeof *rows };
    for (size_t odd = 0; odd < POINTS; odd++)
        for (int above = 0; above <= 1; above++) {
            hth_bench_point points[POINTS] = {{0}};
            for (size_t i = 0; i < POINTS; i++) {
                points[i] = (hth_bench_point){.rows = rows[i], .median = 5 + (double)rows[i]};
                if (i == odd) points[i].median *= above ? 1.16 : 1.14;
            }
            hth_bench_sweep_judge(points, POINTS);
            for (size_t i = 0; i < POINTS; i++) {
                bool expected = above && i == odd && i > 0;
                if (points[i].step != expected)
                    fail_msg("%lld rows: %.2f of trend %.2f", (long long)rows[i], points[i].median, points[i].trend);
            }
            char *text = NULL;
            size_t size = 0;
            FILE *out = open_memstream(&text, &size);
            assert_non_null(out);
            assert_true(hth_bench_sweep_svg(out, "model", "subtitle", points, POINTS));
            fclose(out);
            assert_int_equal(strstr(text, "class='step'") != NULL, above && odd > 0);
            free(text);
        }
}

static void a_level_is_a_step(void **state) {
    (void)state;
    hth_bench_point points[] = {{.rows = 1, .median = 10}, {.rows = 2, .median = 10}, {.rows = 3, .median = 10},
                                {.rows = 4, .median = 20}, {.rows = 5, .median = 20}, {.rows = 6, .median = 20}};
    hth_bench_sweep_judge(points, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(points[i].step, i == 3);
    hth_bench_sweep_judge(points, 2); /* too few for a trend */
    assert_false(points[1].step);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_plain),
        cmocka_unit_test(long_names_have_room),
        cmocka_unit_test(steps_are_marked),
        cmocka_unit_test(a_level_is_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
