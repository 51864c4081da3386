/* Pre-tokenizers: the pieces that another engine recorded, the same patterns run by backtracking on random text, and
 * the work on long runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "text/pattern.h"
#include "text/pattern_internal.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "unit/text_help.h"

enum { MAX_PIECES = 1 << 14 };

typedef struct piece_list {
    int32_t sizes[MAX_PIECES];
    size_t count;
} piece_list;

static hearth_status note_piece(void *context, const char *piece, size_t size, hearth_error *err) {
    piece_list *list = context;
    (void)piece, (void)err;
    if (size == 0 || list->count == MAX_PIECES) return HEARTH_TOO_LONG;
    list->sizes[list->count++] = (int32_t)size;
    return HEARTH_OK;
}

static hth_pretokenizer *create(const hth_pre_row *row) {
    hearth_error err;
    hth_pretokenizer *p;
    if (hth_pretokenizer_create(row, &p, &err) != HEARTH_OK) fail_msg("%s: %s", row->name, err.text);
    return p;
}

static void split(const hth_pretokenizer *p, const char *text, size_t size, piece_list *out) {
    hth_piece_sink sink = {note_piece, out, 0};
    out->count = 0;
    assert_int_equal(hth_pretokenizer_split(p, text, size, &sink, NULL), HEARTH_OK);
    size_t total = 0;
    for (size_t i = 0; i < out->count; i++) total += (size_t)out->sizes[i];
    assert_int_equal(total, size);
}

/* ---- recorded pieces ---- */

typedef struct text_list {
    char *text[1024];
    size_t size[1024];
    size_t count;
} text_list;

static text_list texts; /* of the file of vectors */

static void check_group(const char *names, text_vectors *v) {
    piece_list wanted, got;
    hth_pretokenizer *p[64];
    const char *first_name[64];
    size_t count = 0;
    for (const char *name = names; *name != 0 && count < 64; count++) {
        size_t size = strcspn(name, " ");
        const hth_pre_row *row = hth_pre_find(name, size);
        if (row == NULL) fail_msg("no pre-tokenizer %.*s", (int)size, name);
        p[count] = create(row);
        first_name[count] = row->name;
        name += size + (name[size] == ' ');
    }
    for (size_t i = 0; i < texts.count; i++) {
        assert_true(text_vectors_next(v));
        wanted.count = text_numbers(v->line, wanted.sizes, MAX_PIECES);
        for (size_t k = 0; k < count; k++) {
            split(p[k], texts.text[i], texts.size[i], &got);
            size_t at = 0;
            while (at < got.count && at < wanted.count && got.sizes[at] == wanted.sizes[at]) at++;
            if (at < got.count || at < wanted.count)
                fail_msg("%s, text %zu \"%.*s\": piece %zu has %d bytes, not %d", first_name[k], i,
                         (int)(texts.size[i] < 80 ? texts.size[i] : 80), texts.text[i], at,
                         at < got.count ? (int)got.sizes[at] : -1, at < wanted.count ? (int)wanted.sizes[at] : -1);
        }
    }
    for (size_t k = 0; k < count; k++) hth_pretokenizer_free(&p[k]);
}

static void pieces_equal_recorded(void **state) {
    (void)state;
    text_vectors v;
    size_t groups = 0;
    text_vectors_open(&v, "pieces");
    while (text_vectors_next(&v)) {
        if (strncmp(v.line, "text ", 5) == 0) {
            const char *end;
            assert_true(texts.count < 1024);
            texts.text[texts.count] = malloc(strlen(v.line));
            texts.size[texts.count] = text_from_hex(v.line + 5, texts.text[texts.count], &end);
            texts.count++;
        } else {
            assert_memory_equal(v.line, "pre ", 4);
            char *names = strdup(v.line + 4);
            check_group(names, &v);
            free(names);
            groups++;
        }
    }
    assert_true(groups > 20 && texts.count > 150);
    for (size_t i = 0; i < texts.count; i++) free(texts.text[i]);
    text_vectors_close(&v);
}

static void digits_in_threes_from_the_right(void **state) {
    static const struct {
        const char *text;
        const char *sizes;
    } cases[] = {
        {"1", "1"},
        {"123", "3"},
        {"1234", "1 3"},
        {"1234567", "1 3 3"},
        {"12", "2"},
        {"ab1234", "2 1 3"},
        {"1234cd", "1 3 2"},
        {"x12y123456z", "1 2 1 3 3 1"},
        {"", ""},
        {"abc", "3"},
        /* Letters of numbers count as numbers in the first step and as none in the second. */
        {"\xC2\xBD"
         "1234",
         "3 3"},
        {"\xC2\xBD"
         "123456",
         "2 3 3"},
        {"123\xC2\xBD", "5"},
        {"1234\xC2\xBD"
         "12345",
         "1 7 3"},
    };
    (void)state;
    hth_pretokenizer *p = create(hth_pre_find("superbpe", 8));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        piece_list got;
        int32_t wanted[16];
        size_t count = text_numbers(cases[i].sizes, wanted, 16);
        split(p, cases[i].text, strlen(cases[i].text), &got);
        if (got.count != count || memcmp(got.sizes, wanted, count * sizeof *wanted) != 0)
            fail_msg("\"%s\": %zu pieces, first %d", cases[i].text, got.count, got.count > 0 ? (int)got.sizes[0] : 0);
    }
    hth_pretokenizer_free(&p);
}

/* ---- the same patterns by backtracking ---- */

static const size_t NONE = SIZE_MAX;

/* The end of the match that begins in `step` at `at`, found as the expressions are meant: one way after the other. */
static size_t backtrack(const pattern_program *p, unsigned step, const char *text, size_t size, size_t at) {
    const pattern_step *s = &p->steps[step];
    uint32_t c = 0x110000; /* a byte that is no character */
    size_t length = 1, end;
    bool in_set = false;
    if (at < size) {
        int n = hth_utf8_decode(text + at, size - at, &c);
        hth_category category = n > 0 ? hth_category_of(c) : HTH_CN;
        if (n > 0) length = (size_t)n;
        if (s->op == PATTERN_TAKE || s->op == PATTERN_NOT)
            in_set = hth_pattern_set_has(p, &p->sets[s->arg], c, category);
    }
    switch (s->op) {
    case PATTERN_TAKE: return in_set ? backtrack(p, s->next, text, size, at + length) : NONE;
    case PATTERN_NOT: return in_set ? NONE : backtrack(p, s->next, text, size, at);
    case PATTERN_END: return at == size ? backtrack(p, s->next, text, size, at) : NONE;
    case PATTERN_FORK:
        end = backtrack(p, s->next, text, size, at);
        return end != NONE ? end : backtrack(p, s->arg, text, size, at);
    case PATTERN_MATCH: break;
    }
    return at;
}

/* All matches of one pattern in random texts. */
static void compare_with_backtracking(const char *regex, uint64_t *seed) {
    static pattern_program program;
    char text[200];
    hearth_error err;
    hth_pattern *pattern;
    if (hth_pattern_parse(regex, &program, &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (hth_pattern_compile(regex, &pattern, &err) != HEARTH_OK) fail_msg("%s", err.text);
    for (int i = 0; i < 400; i++) {
        size_t size =
            i % 4 == 0 ? text_random_bytes(seed, text, sizeof text) : text_random_characters(seed, text, sizeof text);
        hth_pattern_search search;
        hth_pattern_start(&search, pattern, text, size);
        for (size_t from = 0, begin, end; from <= size; from = end) {
            bool found = hth_pattern_next(&search, from, &begin, &end);
            size_t twin = from, twin_end = NONE;
            while (twin < size && (twin_end = backtrack(&program, program.start, text, size, twin)) == NONE) {
                uint32_t ignored;
                int n = hth_utf8_decode(text + twin, size - twin, &ignored);
                twin += n > 0 ? (size_t)n : 1;
            }
            if (found != (twin_end != NONE) || (found && (begin != twin || end != twin_end)))
                fail_msg("%s in \"%.*s\" from %zu: %zu to %zu, not %zu to %zu", regex, (int)size, text, from,
                         found ? begin : size, found ? end : size, twin, twin_end);
            if (!found) break;
        }
    }
    hth_pattern_free(&pattern);
}

static void patterns_match_what_backtracking_finds(void **state) {
    (void)state;
    static const char *const more[] = {"a|ab|abc", "(?:a|ab)(?:c|bcd)", "(a|b)*c|ab", "a{2,3}(?!a)",
                                       "x*$|x",    "(?i:K)+|\\d{1,2}"};
    uint64_t seed = text_seed("patterns_match_what_backtracking_finds");
    size_t count;
    const hth_pre_row *rows = hth_pre_rows(&count);
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) seen = rows[k].steps == rows[i].steps;
        for (const char *const *step = rows[i].steps; *step != NULL && !seen; step++)
            if (strstr(*step, "(?=") == NULL) compare_with_backtracking(*step, &seed);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) compare_with_backtracking(more[i], &seed);
}

static void patterns_outside_the_language_are_refused(void **state) {
    static const char *const wrong[] = {"(",
                                        ")",
                                        "a)",
                                        "[a",
                                        "*",
                                        "a**",
                                        "\\",
                                        "\\q",
                                        "\\p{Xx}",
                                        "\\p",
                                        "a{",
                                        "a{2",
                                        "a{3,2}",
                                        "(?=a)",
                                        "(?<a>b)",
                                        "(?!ab)",
                                        "\\x41",
                                        "\\x{110000}",
                                        "[b-a]",
                                        "[a-\\s]",
                                        "\xC3\xA9",
                                        "a{4097}",
                                        "(a{4000}){4000}",
                                        "[\\",
                                        "\\x{4",
                                        "(?i:a"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hth_pattern *pattern;
        hearth_error err = {0};
        if (hth_pattern_compile(wrong[i], &pattern, &err) != HEARTH_UNSUPPORTED) fail_msg("accepted %s", wrong[i]);
        assert_null(pattern);
        assert_true(err.text[0] != 0);
    }
}

/* ---- long runs ---- */

enum { RUN = TEXT_SANITIZED ? 1 << 14 : 1 << 17, STACK = 64 << 10, WORK_PER_BYTE = 16 };

typedef struct split_job {
    const hth_pretokenizer *p;
    const char *text;
    size_t size;
    uint64_t work;
} split_job;

static hearth_status ignore_piece(void *context, const char *piece, size_t size, hearth_error *err) {
    (void)context, (void)piece, (void)size, (void)err;
    return HEARTH_OK;
}

static void run_split(void *context) {
    split_job *job = context;
    hth_piece_sink sink = {ignore_piece, NULL, 0};
    if (hth_pretokenizer_split(job->p, job->text, job->size, &sink, NULL) == HEARTH_OK) job->work = sink.work;
}

static void long_runs_take_linear_work(void **state) {
    static const char *const runs[] = {
        "a",    " ",   "7",  "\n", "\t", "\r\n", "\xE4\xB8\xAD", "A",           "'",        "!",        "\xCC\x81",
        "\xFF", " \n", "a ", "Aa", "1a", "12 ",  "IMG",          "<sentinel:1", "\xC2\xBD", "\xC5\xBF", "'s"};
    (void)state;
    size_t count;
    const hth_pre_row *rows = hth_pre_rows(&count);
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) seen = rows[k].steps == rows[i].steps;
        if (seen) continue;
        hth_pretokenizer *p = create(&rows[i]);
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            size_t size = RUN;
            char *text = text_run(runs[r], &size);
            for (int end = 0; end < 3; end++) { /* alone, in front of a letter, in front of a newline */
                split_job job = {p, text, size, UINT64_MAX};
                if (end > 0) text[size - 1] = end == 1 ? 'x' : '\n';
                text_on_small_stack(run_split, &job, STACK);
                if (job.work > (uint64_t)WORK_PER_BYTE * size)
                    fail_msg("%s, run of \"%s\": %llu steps for %zu bytes", rows[i].name, runs[r],
                             (unsigned long long)job.work, size);
            }
            free(text);
        }
        hth_pretokenizer_free(&p);
    }
}

/* ---- names ---- */

static void names_are_found_and_listed(void **state) {
    static const char *const required[] = {"llama-bpe",        "smollm",       "qwen2",  "qwen35", "deepseek-v3",
                                           "deepseek-r1-qwen", "glm4",         "tekken", "gpt-4o", "command-r",
                                           "falcon",           "gpt-2",        "mpt",    "refact", "starcoder",
                                           "deepseek-coder",   "deepseek-llm", "default"};
    (void)state;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        assert_non_null(hth_pre_find(required[i], strlen(required[i])));
    assert_null(hth_pre_find("", 0));
    assert_null(hth_pre_find("qwen", 4));
    assert_null(hth_pre_find("qwen22", 6));
    size_t count, listed = 1;
    const hth_pre_row *rows = hth_pre_rows(&count);
    for (const char *p = hth_tokenizer_pre_names(); *p != 0; p++) listed += *p == ' ';
    assert_int_equal(listed, count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(hth_pre_find(rows[i].name, strlen(rows[i].name)), &rows[i]);
        if (i > 0) assert_true(strcmp(rows[i - 1].name, rows[i].name) < 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_equal_recorded),
        cmocka_unit_test(digits_in_threes_from_the_right),
        cmocka_unit_test(patterns_match_what_backtracking_finds),
        cmocka_unit_test(patterns_outside_the_language_are_refused),
        cmocka_unit_test(long_runs_take_linear_work),
        cmocka_unit_test(names_are_found_and_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
