/* GBNF: what each construct means, what is refused and where, and that nothing takes long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/constraint_help.h"
#include "unit/text_help.h"

static constraint_vocab vocab; /* of the 256 bytes */

static int open_vocab(void **unused) {
    (void)unused;
    constraint_bytes_open(&vocab);
    return 0;
}

static int close_vocab(void **unused) {
    (void)unused;
    constraint_vocab_close(&vocab);
    return 0;
}

/* ---- What is taken ---- */

/* Texts that a grammar matches, that are a beginning of one, and that it refuses; each list ends with NULL. */
typedef struct sample {
    const char *grammar;
    const char *matches[6], *prefixes[6], *refuses[6];
} sample;

static const sample samples[] = {
    {"root ::= \"{\" \"}\"", {"{}"}, {"", "{"}, {"}", "{}}", "{ }", "x"}},
    {"root ::= \"\"", {""}, {NULL}, {"a", " "}},
    {"root ::= \"a\" | \"bc\" |", {"", "a", "bc"}, {"b"}, {"c", "ab", "aa"}},
    {"root::=x y?\nx::=\"a\"#c\n# all of it\n\n\ny ::= [bc]", {"a", "ab", "ac"}, {""}, {"b", "abb", "ad"}},
    {"root ::= (\n \"a\" # one\n | \n \"b\" ) \"c\"", {"ac", "bc"}, {"a", "b", ""}, {"c", "ab", "acc"}},
    {"root ::= \"a\" |\n \"b\"", {"a", "b"}, {""}, {"ab"}},
    {"root ::= \"ab\"* \"c\"+", {"c", "ccc", "abc", "ababcc"}, {"", "a", "ab"}, {"b", "aba c", "cab"}},
    {"root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2}", {"aab", "aabbbcc"}, {"a", "aa"}, {"ab", "aaa", "aabccc"}},
    {"root ::= [a]{ 1 , 3 }", {"a", "aa", "aaa"}, {""}, {"aaaa", "b"}},
    {"root ::= (\"a\" | \"b\"){0}", {""}, {NULL}, {"a"}},
    {"root ::= \"a\"?{2}", {"", "a", "aa"}, {NULL}, {"aaa"}},
    {"root ::= [a-cx]", {"a", "b", "c", "x"}, {""}, {"d", "-", "ab"}},
    {"root ::= [a-]", {"a", "-"}, {""}, {"b", "a-"}},
    {"root ::= [\\]\\[\\\\^-]", {"]", "[", "\\", "^", "-"}, {""}, {"a"}},
    {"root ::= [^a-c\"]", {"d", "\n", "\xC3\xA9", "\xF0\x9F\x99\x82"}, {"\xC3", "\xF0\x9F"}, {"a", "\"", "\xFF", "dd"}},
    {"root ::= .", {"a", "\n", "\xE2\x82\xAC"}, {"", "\xE2\x82"}, {"ab", "\x80", "\xED\xA0", "\xC0", "\xF5"}},
    {"root ::= \"\\n\\t\\r\\\\\\\"\\x41\\u00e9\\U0001F642\"",
     {"\n\t\r\\\"A\xC3\xA9\xF0\x9F\x99\x82"},
     {"\n\t\r\\\"A\xC3", "\n"},
     {"n", "\n\t\r\\\"A\xE9"}},
    {"root ::= [\\u0400-\\u04FF]+", {"\xD0\xB6\xD0\x96"}, {"\xD0", "", "\xD0\xB6\xD1"}, {"a", "\xC3\xA9"}},
    {"root ::= [\\x00]", {NULL}, {""}, {"a"}},
    {"root ::= [^\\x01-\\U0010FFFF]", {NULL}, {""}, {"a", "\x01"}}, /* U+0000 alone */
    {"root ::= [a] | [^\\x00-\\U0010FFFF] \"b\"", {"a"}, {""}, {"b"}},
    {"root ::= \"(\" root \")\" | \"x\"", {"x", "(x)", "((x))"}, {"(", "((x)"}, {")", "(x))", "xx"}},
    {"root ::= a\na ::= \"x\" a | \"x\" b \"y\" | \"z\"\nb ::= a",
     {"z", "xz", "xzy", "xxzyy"},
     {"x", "xx"},
     {"zy", "y"}},
    {"root ::= a b\na ::= \"x\"?\nb ::= a \"y\"", {"y", "xy", "xxy"}, {"x", "xx"}, {"xxx", "yy"}},
    {"root ::= opt opt opt\nopt ::= (\"a\" opt \"b\")?", {"", "ab", "abab", "aabb"}, {"a", "aab"}, {"b", "abb"}},
    /* x is called from two places, one found after t was called behind the other */
    {"root ::= x \"1\" | z\nx ::= t | \"[\" x \"]\"\nz ::= x \"2\" | \"{\" z \"}\"\nt ::= \"a\" | \"(\" t \")\"",
     {"a1", "a2", "[(a)]2", "{a2}"},
     {"a", "[(a)]"},
     {"a3", "{a1", "[(a)2"}},
    {"root ::= \"a\" never | \"b\"\nnever ::= \"c\" never", {"b"}, {""}, {"a", "ac"}},
};

static void test_samples(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        hearth_constraint *c = constraint_of(vocab.index, s->grammar);
        const struct {
            const char *const *texts;
            constraint_verdict verdict;
        } lists[] = {
            {s->matches, CONSTRAINT_MATCHES}, {s->prefixes, CONSTRAINT_PREFIX}, {s->refuses, CONSTRAINT_REFUSES}};
        for (int k = 0; k < 3; k++)
            for (int t = 0; t < 6 && lists[k].texts[t] != NULL; t++) {
                const char *text = lists[k].texts[t];
                constraint_verdict found = constraint_judge(c, text, strlen(text));
                if (found != lists[k].verdict)
                    fail_msg("%s\n\"%s\": verdict %d, not %d", s->grammar, text, found, lists[k].verdict);
            }
        hearth_constraint_free(&c);
    }
}

static void test_nul_is_a_character(void **unused) {
    (void)unused;
    hearth_constraint *c = constraint_of(vocab.index, "root ::= [\\x00] \"b\"");
    assert_int_equal(constraint_judge(c, "\0b", 2), CONSTRAINT_MATCHES);
    assert_int_equal(constraint_judge(c, "b", 1), CONSTRAINT_REFUSES);
    hearth_constraint_free(&c);
}

/* Every character and no other byte sequence, by a grammar that takes them in ranges cut at odd places. */
static void test_utf8_is_exact(void **unused) {
    (void)unused;
    hearth_constraint *c = constraint_of(
        vocab.index, "root ::= [\\x00-\\u0081] | [\\u0082-\\u0fff] | [\\u1000-\\uD7FE] | [\\uD7FF-\\uFFF0] | "
                     "[\\uFFF1-\\U00012345] | [\\U00012346-\\U0010FFFF]");
    hearth_constraint *any = constraint_of(vocab.index, "root ::= .");
    hearth_matcher *of_ranges, *of_any;
    assert_int_equal(hearth_matcher_create(c, &of_ranges, NULL), HEARTH_OK);
    assert_int_equal(hearth_matcher_create(any, &of_any, NULL), HEARTH_OK);
    for (uint32_t n = 0; n < 0x120000; n += n < 0x1000 ? 1 : n < 0x11000 ? 13 : 257) {
        char text[4];
        size_t size = n < 0x80 ? 1 : n < 0x800 ? 2 : n < 0x10000 ? 3 : 4;
        uint32_t rest = n;
        for (size_t i = size; i-- > 1; rest >>= 6) text[i] = (char)(0x80 | (rest & 0x3F));
        text[0] = (char)(size == 1 ? rest : (0xF00u >> size & 0xF0) | rest);
        bool valid = n <= 0x10FFFF && (n < 0xD800 || n > 0xDFFF);
        constraint_verdict expected = valid ? CONSTRAINT_MATCHES : CONSTRAINT_REFUSES;
        if (constraint_judge_with(of_ranges, text, size) != expected ||
            constraint_judge_with(of_any, text, size) != expected)
            fail_msg("U+%04X", n);
    }
    hearth_matcher_free(&of_ranges);
    hearth_matcher_free(&of_any);
    hearth_constraint_free(&any);
    hearth_constraint_free(&c);
}

/* ---- What is refused ---- */

static const struct {
    const char *grammar;
    hearth_status status;
    const char *says;
} refusals[] = {
    {"", HEARTH_BAD_ARGUMENT, "line 1, column 1: the rule root is missing"},
    {"a ::= \"x\"", HEARTH_BAD_ARGUMENT, "the rule root is missing"},
    {"a ::= root", HEARTH_BAD_ARGUMENT, "the rule root is missing"},
    {"root ::= a\n\n  b ::= c \"x\"\na ::= \"y\"", HEARTH_BAD_ARGUMENT, "line 3, column 9: the rule c is not defined"},
    {"root ::= \"a\"\nroot ::= \"b\"", HEARTH_BAD_ARGUMENT, "line 2, column 1: the rule root is defined twice"},
    {"root ::= root \"a\" | \"b\"", HEARTH_BAD_ARGUMENT, "line 1, column 1: the rule root is left-recursive"},
    {"root ::= x\nx ::= y \"a\" | \"b\"\ny ::= z\nz ::= x", HEARTH_BAD_ARGUMENT, "is left-recursive"},
    {"root ::= e root \"a\" | \"b\"\ne ::= \"c\"?", HEARTH_BAD_ARGUMENT, "the rule root is left-recursive"},
    {"root ::= \"b\"\nx ::= f e? x\ne ::= \"c\"\nf ::= \"d\"{0,3}", HEARTH_BAD_ARGUMENT,
     "line 2, column 1: the rule x is left"},
    {"root ::= root", HEARTH_BAD_ARGUMENT, "left-recursive"},
    {"root ::= (\"a\"*)*", HEARTH_BAD_ARGUMENT, "line 1, column 16: what is repeated without limit can be empty"},
    {"root ::= x+\nx ::= \"a\"?", HEARTH_BAD_ARGUMENT, "line 1, column 11: what is repeated"},
    {"root ::= (\"a\" | ){2,}", HEARTH_BAD_ARGUMENT, "what is repeated"},
    {"root ::= \"a\" root", HEARTH_BAD_ARGUMENT, "the rule root matches no text"},
    {"root ::= [^\\x00-\\U0010FFFF]", HEARTH_BAD_ARGUMENT, "matches no text"},
    {"root ::= \"a\"{3,2}", HEARTH_BAD_ARGUMENT, "line 1, column 13: at least 3 and at most 2"},
    {"root ::= \"a\"{x}", HEARTH_BAD_ARGUMENT, "the number of repetitions is missing"},
    {"root ::= \"a\"{1", HEARTH_BAD_ARGUMENT, "a } is missing"},
    {"root ::= \"a\"{0,1000000000}", HEARTH_TOO_LONG, "line 1, column 13: the grammar is too large"},
    {"root ::= \"a\"{1000000000,}", HEARTH_TOO_LONG, "too large"},
    {"root ::= \"a\"{99999999999999999999}", HEARTH_TOO_LONG, "too large"},
    {"root ::= (((\"a\"{1000}){1000}){1000}){1000}", HEARTH_TOO_LONG, "too large"},
    {"root ::= *", HEARTH_BAD_ARGUMENT, "line 1, column 10: there is nothing to repeat"},
    {"root ::= \"a\" | *", HEARTH_BAD_ARGUMENT, "nothing to repeat"},
    {"root ::= (\"a\"", HEARTH_BAD_ARGUMENT, "line 1, column 10: the group has no end"},
    {"root ::= \"a\")", HEARTH_BAD_ARGUMENT, "line 1, column 13: a ) without its ("},
    {"root ::= \"a", HEARTH_BAD_ARGUMENT, "line 1, column 10: the literal has no end"},
    {"root ::= [a", HEARTH_BAD_ARGUMENT, "line 1, column 10: the class has no end"},
    {"root ::= [b-a]", HEARTH_BAD_ARGUMENT, "the range goes down"},
    {"root ::= [b-a", HEARTH_BAD_ARGUMENT, "the range goes down"},
    {"root ::= \"\\q\"", HEARTH_BAD_ARGUMENT, "line 1, column 12: an escape that is not known"},
    {"root ::= \"\\x4\"", HEARTH_BAD_ARGUMENT, "too few hexadecimal digits"},
    {"root ::= \"\\uD800\"", HEARTH_BAD_ARGUMENT, "no character"},
    {"root ::= \"\\U00110000\"", HEARTH_BAD_ARGUMENT, "no character"},
    {"root ::= \"\xFF\"", HEARTH_BAD_ARGUMENT, "no UTF-8"},
    {"root = \"a\"", HEARTH_BAD_ARGUMENT, "line 1, column 6: ::= is expected"},
    {"root ::= \"a\" \xC3\xA9 b ::= \"c\"", HEARTH_BAD_ARGUMENT, "line 1, column 14:"},
    {"\xC3\xA9\xC3\xA9 ::= \"a\"", HEARTH_BAD_ARGUMENT, "line 1, column 1: the name of a rule is expected"},
    {"root ::= <think>", HEARTH_UNSUPPORTED, "line 1, column 10: terminals that are tokens"},
    {"root ::= !<[7]>", HEARTH_UNSUPPORTED, "tokens"},
};

static void test_refusals(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        constraint_refused(vocab.index, false, refusals[i].grammar, strlen(refusals[i].grammar), refusals[i].status,
                           refusals[i].says);
}

/* ---- Hostile sizes ---- */

/* `head`, then `part` so often, then `tail`. */
static char *repeated(const char *head, const char *part, size_t times, const char *tail) {
    size_t part_size = strlen(part), at = strlen(head);
    char *text = malloc(at + part_size * times + strlen(tail) + 1);
    assert_non_null(text);
    memcpy(text, head, at);
    for (size_t i = 0; i < times; i++, at += part_size) memcpy(text + at, part, part_size);
    memcpy(text + at, tail, strlen(tail) + 1);
    return text;
}

static void refuse_repeated(const char *head, const char *part, size_t times, const char *tail, hearth_status status,
                            const char *says) {
    char *text = repeated(head, part, times, tail);
    constraint_refused(vocab.index, false, text, strlen(text), status, says);
    free(text);
}

static void take_repeated(const char *head, const char *part, size_t times, const char *tail) {
    char *text = repeated(head, part, times, tail);
    hearth_constraint *c = constraint_of(vocab.index, text);
    hearth_constraint_free(&c);
    free(text);
}

static void refuse_hostile(void *unused) {
    (void)unused;
    refuse_repeated("root ::= ", "(", 60000, "", HEARTH_TOO_LONG,
                    "line 1, column 266: groups are nested more than 256 deep");
    refuse_repeated("root ::= ", "(", 256, "\"a\"", HEARTH_BAD_ARGUMENT, "the group has no end");
    refuse_repeated("root ::= [", "a-z", 60000, "]", HEARTH_BAD_ARGUMENT, "too many ranges");
    refuse_repeated("root ::= \"a\"", "{9}", 60000, "", HEARTH_TOO_LONG, "too large");
    refuse_repeated("root ::= \"a\"", "*", 60000, "", HEARTH_BAD_ARGUMENT, "can be empty");
    refuse_repeated("root ::= \"a\"", "\n", 1200000, "", HEARTH_TOO_LONG, "bytes; 1048576 are allowed");
    refuse_repeated("root ::= ", "\"a\" ", 270000, "", HEARTH_TOO_LONG, "");
    take_repeated("root ::= \"a\"", "?", 60000, "");
    take_repeated("root ::= \"x\" ", "| \"a\" ", 20000, "");
    take_repeated("root ::= ", "[a-z]", 20000, "");
}

/* A chain of rules, each a call of the next, in either order; and a cycle of left calls as long. */
static void chain_rules(void *unused) {
    (void)unused;
    enum { RULES = 12000 };
    char *text = malloc(RULES * 40);
    for (int kind = 0; kind < 4; kind++) {
        size_t at = 0;
        for (int k = 0; k < RULES; k++) {
            int i = kind % 2 ? RULES - 1 - k : k;
            const char *body = kind < 2 ? "x" : "";
            if (i == 0) at += (size_t)snprintf(text + at, 40, "root ::= r1\n");
            else if (i < RULES - 1) at += (size_t)snprintf(text + at, 40, "r%d ::= \"%s\" r%d\n", i, body, i + 1);
            else at += (size_t)snprintf(text + at, 40, kind < 2 ? "r%d ::= \"y\"\n" : "r%d ::= r1 | \"y\"\n", i);
        }
        if (kind < 2) {
            hearth_constraint *c = constraint_of(vocab.index, text);
            assert_int_equal(constraint_judge(c, "xxx", 3), CONSTRAINT_PREFIX);
            hearth_constraint_free(&c);
        } else {
            constraint_refused(vocab.index, false, text, at, HEARTH_BAD_ARGUMENT, "left-recursive");
        }
    }
    free(text);
}

static void test_hostile_sizes(void **unused) {
    (void)unused;
    text_on_small_stack(refuse_hostile, NULL, 128 << 10);
    text_on_small_stack(chain_rules, NULL, 128 << 10);
}

/* A rule whose deterministic automaton would have 2^200 states, doubling calls, and doubling returns. */
static void test_exponential_grammars(void **unused) {
    (void)unused;
    hearth_constraint_info info;
    hearth_constraint *c = constraint_of(vocab.index, "root ::= [ab]* \"a\" [ab]{200}");
    hearth_constraint_get_info(c, &info);
    assert_true(info.states < 1000);
    char text[1001];
    for (int i = 0; i < 1000; i++) text[i] = "ab"[i * 7 % 11 % 2];
    text[799] = 'a';
    assert_int_equal(constraint_judge(c, text, 1000), CONSTRAINT_MATCHES);
    text[799] = 'b';
    assert_int_equal(constraint_judge(c, text, 1000), CONSTRAINT_PREFIX);
    hearth_constraint_free(&c);

    char grammar[4096];
    size_t at = (size_t)snprintf(grammar, sizeof grammar, "root ::= r0\n");
    for (int i = 0; i < 60; i++)
        at += (size_t)snprintf(grammar + at, sizeof grammar - at, "r%d ::= r%d r%d\n", i, i + 1, i + 1);
    snprintf(grammar + at, sizeof grammar - at, "r60 ::= \"a\"\n");
    c = constraint_of(vocab.index, grammar);
    memset(text, 'a', 1000);
    assert_int_equal(constraint_judge(c, text, 1000), CONSTRAINT_PREFIX);
    hearth_constraint_free(&c);

    c = constraint_of(vocab.index, "root ::= s\ns ::= \"a\" s s | \"a\" s | \"a\"\n"); /* Catalan many readings */
    assert_int_equal(constraint_judge(c, text, 60), CONSTRAINT_MATCHES);
    hearth_constraint_free(&c);

    c = constraint_of(vocab.index, "root ::= a\na ::= \"x\" c | \"z\"\nb ::= \"x\" c | \"w\"\nc ::= a | b");
    memset(text, 'x', 1000); /* two ways at each letter that return to the same place */
    assert_int_equal(constraint_judge(c, text, 1000), CONSTRAINT_PREFIX);
    hearth_constraint_free(&c);
}

/* A long list needs no stack, and depth is bounded by name. */
static void test_depth(void **unused) {
    (void)unused;
    hearth_constraint *c =
        constraint_of(vocab.index, "root ::= \"[\" list \"]\"\nlist ::= root list | \"x\" list | \"x\"");
    hearth_matcher *m;
    hearth_error err = {HEARTH_OK, ""};
    assert_int_equal(hearth_matcher_create(c, &m, NULL), HEARTH_OK);
    assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST + '[', NULL), HEARTH_OK);
    for (int i = 0; i < 200000; i++)
        assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST + 'x', NULL), HEARTH_OK);
    int depth = 0;
    while (depth < 1000000 && hearth_matcher_accept(m, CONSTRAINT_FIRST + '[', &err) == HEARTH_OK) depth++;
    assert_in_range(depth, 4000, 100000);
    assert_int_equal(err.status, HEARTH_TOO_LONG);
    assert_non_null(strstr(err.text, "nested too deep"));
    /* It stands where it stood. */
    assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST + 'x', NULL), HEARTH_OK);
    for (int i = 0; i <= depth; i++) {
        assert_false(hearth_matcher_is_complete(m));
        assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST + ']', NULL), HEARTH_OK);
        if (i < depth) assert_int_equal(hearth_matcher_accept(m, CONSTRAINT_FIRST + 'x', NULL), HEARTH_OK);
    }
    assert_true(hearth_matcher_is_complete(m));
    hearth_matcher_free(&m);
    hearth_constraint_free(&c);
}

static void test_limits(void **unused) {
    (void)unused;
    const char json[] = "root ::= \"[\" ( root ( \",\" root )* )? \"]\" | [0-9]+ | \"\\\"\" [^\"]* \"\\\"\"";
    hearth_constraint_limits limits = {.bytes = 100};
    hearth_constraint *c;
    hearth_error err;
    assert_int_equal(hearth_constraint_grammar(vocab.index, json, sizeof json - 1, &limits, &c, &err),
                     HEARTH_OVER_BUDGET);
    assert_non_null(strstr(err.text, "100 bytes"));
    assert_null(c);
    limits = (hearth_constraint_limits){.steps = 50};
    assert_int_equal(hearth_constraint_grammar(vocab.index, json, sizeof json - 1, &limits, &c, &err),
                     HEARTH_OVER_BUDGET);
    assert_non_null(strstr(err.text, "50 steps"));
    assert_null(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),       cmocka_unit_test(test_nul_is_a_character),
        cmocka_unit_test(test_utf8_is_exact), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hostile_sizes), cmocka_unit_test(test_exponential_grammars),
        cmocka_unit_test(test_depth),         cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests_name("constraint_grammar", tests, open_vocab, close_vocab);
}
