/* Output parsers: what becomes of the corpus, wherever it is cut; the work that takes; limits; failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/alloc_guard.h"
#include "support/output_log.h"
#include "text/output_internal.h"

/* ---- the corpus: tests/data/outputs/FORMAT.txt ---- */

/* "=== TITLE [FLAG]...", the answer, a line "---", the lines that output_log.h describes. Flags: open (the prompt
 * has opened reasoning), keep (reasoning stays in the content), tools (those of tools.json). The newline before "---"
 * is not part of the answer. */
typedef struct corpus_case {
    char title[128];
    bool open, keep, tools;
    const char *text, *wanted;
    size_t size;
} corpus_case;

static char *read_file(const char *name, size_t *size) {
    char path[512];
    snprintf(path, sizeof path, "%s/outputs/%s", HEARTH_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *text = calloc(1, 1 << 20);
    *size = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static char *tools_text;
static size_t tools_size;

/* Cut the next case out of a corpus file; false at its end. */
static bool next_case(char **rest, corpus_case *c) {
    static const char first[] = "=== ", middle[] = "\n---\n";
    if (strncmp(*rest, first, 4) != 0) return false;
    char *title = *rest + 4, *text = strchr(title, '\n') + 1;
    char *end = strstr(text - 1, middle), *wanted = end + sizeof middle - 1, *next = strstr(wanted - 1, "\n=== ");
    assert_non_null(end);
    text[-1] = *end = 0;
    if (next != NULL) *next = 0;
    *rest = next != NULL ? next + 1 : wanted + strlen(wanted);
    snprintf(c->title, sizeof c->title, "%s", title);
    c->open = strstr(title, "[open]") != NULL;
    c->keep = strstr(title, "[keep]") != NULL;
    c->tools = strstr(title, "[tools]") != NULL;
    c->text = text;
    c->size = end < text ? 0 : (size_t)(end - text);
    c->wanted = next == wanted - 1 ? "" : wanted; /* NUL stands for the newline between them */
    return true;
}

static hearth_output_parser *make_parser(hearth_output_format format, const corpus_case *c) {
    hearth_output_options options = {.starts_in_reasoning = c->open, .keep_reasoning = c->keep};
    hearth_output_parser *parser = NULL;
    hearth_error err = {0};
    if (c->tools) options.tools = tools_text;
    if (c->tools) options.tools_size = tools_size;
    if (hearth_output_parser_create(format, &options, &parser, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return parser;
}

/* The lines for the first `size` bytes of a case in the given pieces; the caller frees. */
static char *parse_pieces(hearth_output_format format, const corpus_case *c, size_t size, const size_t *sizes,
                          size_t count) {
    hearth_output_parser *parser = make_parser(format, c);
    output_log log = {0};
    hearth_output_result result;
    hearth_error err = {0};
    if (output_parse(parser, c->text, size, sizes, count, &log, &result, &err) != HEARTH_OK) fail_msg("%s", err.text);
    const char *wrong = log.wrong != NULL ? log.wrong : output_check(format, &result);
    if (wrong != NULL)
        fail_msg("%s, %s, %zu bytes: %s:\n%s", hearth_output_format_name(format), c->title, size, wrong,
                 log.lines.data);
    char *lines = strdup(log.lines.data);
    output_log_free(&log);
    hearth_output_parser_free(&parser);
    return lines;
}

static void assert_lines(hearth_output_format format, const corpus_case *c, const char *cuts, const char *lines,
                         const char *wanted) {
    size_t size = strlen(lines), wanted_size = strlen(wanted);
    while (wanted_size > 0 && wanted[wanted_size - 1] == '\n') wanted_size--;
    while (size > 0 && lines[size - 1] == '\n') size--;
    if (size != wanted_size || memcmp(lines, wanted, size) != 0)
        fail_msg("%s, %s, %s:\n%.*s\nwanted:\n%.*s", hearth_output_format_name(format), c->title, cuts, (int)size,
                 lines, (int)wanted_size, wanted);
}

typedef void case_check(hearth_output_format format, const corpus_case *c);

static void for_each_case(case_check *check) {
    size_t cases = 0;
    for (int f = 0; f < HEARTH_OUTPUT_FORMAT_COUNT; f++) {
        char name[64];
        size_t size;
        snprintf(name, sizeof name, "%s.txt", hearth_output_format_name((hearth_output_format)f));
        char *text = read_file(name, &size), *rest = text;
        if (text == NULL) fail_msg("no corpus %s", name);
        corpus_case c;
        size_t before = cases;
        for (; next_case(&rest, &c); cases++) check((hearth_output_format)f, &c);
        assert_true(cases > before);
        assert_int_equal(*rest, 0);
        free(text);
    }
}

static void check_whole(hearth_output_format format, const corpus_case *c) {
    char *lines = parse_pieces(format, c, c->size, NULL, 0);
    assert_lines(format, c, "at once", lines, c->wanted);
    free(lines);
}

static void test_corpus(void **state) {
    (void)state;
    for_each_case(check_whole);
}

/* ---- cuts ---- */

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void compare_cut(hearth_output_format format, const corpus_case *c, size_t size, const size_t *sizes,
                        size_t count, const char *how, const char *wanted) {
    char *lines = parse_pieces(format, c, size, sizes, count);
    assert_lines(format, c, how, lines, wanted);
    free(lines);
}

static void check_cuts(hearth_output_format format, const corpus_case *c) {
    size_t *ones = malloc((c->size + 1) * sizeof *ones), sizes[16];
    uint32_t seed = 7;
    char how[64];
    for (size_t i = 0; i <= c->size; i++) ones[i] = 1;
    compare_cut(format, c, c->size, ones, c->size, "byte by byte", c->wanted);
    for (size_t cut = 1; cut < c->size; cut++) {
        snprintf(how, sizeof how, "cut at %zu", cut);
        compare_cut(format, c, c->size, &cut, 1, how, c->wanted);
    }
    for (int round = 0; round < 20; round++) {
        snprintf(how, sizeof how, "random cuts %d", round);
        for (size_t i = 0; i < 16; i++) sizes[i] = next_random(&seed) % (c->size / 4 + 2);
        compare_cut(format, c, c->size, sizes, 16, how, c->wanted);
    }
    /* An answer that ends early is an answer too. */
    for (size_t size = 0; size < c->size; size++) {
        char *whole = parse_pieces(format, c, size, NULL, 0);
        snprintf(how, sizeof how, "the first %zu bytes, byte by byte", size);
        compare_cut(format, c, size, ones, size, how, whole);
        free(whole);
    }
    free(ones);
}

static void test_cuts(void **state) {
    (void)state;
    for_each_case(check_cuts);
}

/* Answers made of pieces of the corpus that do not belong together, some with a byte that is no UTF-8. */
static void test_mixtures(void **state) {
    (void)state;
    enum { ROUNDS = 150, LONGEST = 400 };
    uint32_t seed = 3;
    for (int f = 0; f < HEARTH_OUTPUT_FORMAT_COUNT; f++) {
        char name[64], text[LONGEST + 64], how[64];
        size_t size, ones[LONGEST + 64], some[16];
        hearth_output_format format = (hearth_output_format)f;
        snprintf(name, sizeof name, "%s.txt", hearth_output_format_name(format));
        char *corpus = read_file(name, &size);
        for (size_t i = 0; i < LONGEST + 64; i++) ones[i] = 1;
        for (int round = 0; round < ROUNDS; round++) {
            size_t total = 0, longest = 40 + next_random(&seed) % (LONGEST - 40);
            while (total < longest) {
                size_t from = next_random(&seed) % size, take = 1 + next_random(&seed) % 60;
                if (take > size - from) take = size - from;
                memcpy(text + total, corpus + from, take);
                total += take;
            }
            if (round % 4 == 3) text[next_random(&seed) % total] = (char)(0x80 | next_random(&seed));
            corpus_case c = {.text = text, .size = total, .tools = (round & 1) != 0, .open = (round & 2) != 0};
            char *whole = parse_pieces(format, &c, total, NULL, 0);
            snprintf(how, sizeof how, "mixture %d", round);
            compare_cut(format, &c, total, ones, total, how, whole);
            for (size_t i = 0; i < 16; i++) some[i] = next_random(&seed) % (total / 4 + 2);
            compare_cut(format, &c, total, some, 16, how, whole);
            free(whole);
        }
        free(corpus);
    }
}

/* ---- holding back ---- */

static void count_bytes(void *context, const hearth_output_event *e) {
    if (e->kind <= HEARTH_OUTPUT_REASONING || e->kind == HEARTH_OUTPUT_ARGUMENTS) *(size_t *)context += e->size;
}

/* Feed a text and say how much of what it stands for has been shown. */
static size_t shown_after(hearth_output_format format, const char *text) {
    hearth_output_parser *parser = make_parser(format, &(corpus_case){.tools = true});
    size_t shown = 0;
    assert_int_equal(hearth_output_parser_feed(parser, text, strlen(text), count_bytes, &shown, NULL), HEARTH_OK);
    hearth_output_parser_free(&parser);
    return shown;
}

/* No more is held back than must be. */
static void test_held_back(void **state) {
    (void)state;
    static const struct {
        hearth_output_format format;
        const char *text;
        size_t shown;
    } cases[] = {
        {HEARTH_OUTPUT_HERMES, "a < b", 5},
        {HEARTH_OUTPUT_HERMES, "a <", 1}, /* the blank goes when a call follows */
        {HEARTH_OUTPUT_HERMES, "a <tool_cal", 1},
        {HEARTH_OUTPUT_HERMES, "a <tool_cat", 11},
        {HEARTH_OUTPUT_HERMES, "a\n\n", 1},
        {HEARTH_OUTPUT_HERMES, "caf\xC3", 3},
        {HEARTH_OUTPUT_HERMES, "caf\xC3\xA9", 5},
        {HEARTH_OUTPUT_HERMES, "<think>\nabc</", 3},
        {HEARTH_OUTPUT_HERMES, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"bc", 9},
        {HEARTH_OUTPUT_HERMES, "<tool_call>{\"arguments\": {\"a\": \"bc", 0}, /* of which tool? */
        {HEARTH_OUTPUT_HERMES, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a", 3},
        {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=write_file><parameter=path>\na/b", 13},
        {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=write_file><parameter=path>\na/b\n</param", 13},
        {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=write_file><parameter=mode>\na/b", 9}, /* of which type? */
        {HEARTH_OUTPUT_GEMMA4, "<|tool_call>call:f{a:<|\"|>bc<", 9},
        {HEARTH_OUTPUT_LLAMA3, "{\"name\": \"Ada\"", 0},
        {HEARTH_OUTPUT_LLAMA3, "{\"first\": \"Ada\"", 15},
        {HEARTH_OUTPUT_HARMONY, "<|channel|>final<|message|>Hi <|", 2},
        {HEARTH_OUTPUT_ATEM, " to=user<|message|>Hi <|e", 2},
        {HEARTH_OUTPUT_KIMI_K3,
         "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>"
         "<|open|>argument key=\"a\" type=\"string\"<|sep|>bc<|close|>arg",
         9},
        {HEARTH_OUTPUT_MINIMAX_M3,
         "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"write_file\">"
         "]<]minimax[>[<path>a/b]<]minim",
         13},
        {HEARTH_OUTPUT_MINIMAX_M3,
         "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">"
         "]<]minimax[>[<a>]<]minimax[>[<b>]<]minimax[>[<item>1]<]minimax[>[</item>",
         14},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t shown = shown_after(cases[i].format, cases[i].text);
        if (shown != cases[i].shown) fail_msg("%s: %zu bytes shown, not %zu", cases[i].text, shown, cases[i].shown);
    }
}

/* ---- work ---- */

/* Answers that go on for ever in the same way, each meant to make a parser look at the same bytes again. */
static const struct {
    hearth_output_format format;
    const char *head, *again;
} endless[] = {
    {HEARTH_OUTPUT_HERMES, "", "plain text "},
    {HEARTH_OUTPUT_HERMES, "a", " "},
    {HEARTH_OUTPUT_HERMES, "", "<tool_cal"},
    {HEARTH_OUTPUT_HERMES, "", "<tool_call>"},
    {HEARTH_OUTPUT_HERMES, "", "<tool_call>{"},
    {HEARTH_OUTPUT_HERMES, "<think>", "</thin"},
    {HEARTH_OUTPUT_HERMES, "<tool_call>", " "},
    {HEARTH_OUTPUT_HERMES, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"", "</tool_call>"},
    {HEARTH_OUTPUT_HERMES, "<tool_call>{\"arguments\": \"{\\\"", "a"},
    {HEARTH_OUTPUT_HERMES, "<tool_call>{\"name\": \"", "a"},
    {HEARTH_OUTPUT_HERMES, "", "<tool_call>{\"name\": \"f\"}</tool_call>"},
    {HEARTH_OUTPUT_HERMES, "", "```\n"},
    {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=f><parameter=a>", "</parameter>"},
    {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=f><parameter=a>", "</parameter>          </functio"},
    {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=f><parameter=a></parameter>", " "},
    {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=write_file><parameter=path>", "\n"},
    {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=f>", "<parameter=a>1</parameter>"},
    {HEARTH_OUTPUT_QWEN_XML, "<tool_call><function=f><parameter=a>", "<parameter=a>"},
    {HEARTH_OUTPUT_GLM, "<tool_call>f", "<arg_key>a</arg_key><arg_value>{</arg_value>"},
    {HEARTH_OUTPUT_LLAMA3, "", "{\"name\": \"f\", "},
    {HEARTH_OUTPUT_LLAMA3, "{\"parameters\": ", "["},
    {HEARTH_OUTPUT_LLAMA3, "<|python_tag|>f(a=", "["},
    {HEARTH_OUTPUT_MISTRAL, "[TOOL_CALLS]", "f"},
    {HEARTH_OUTPUT_MISTRAL, "[TOOL_CALLS][", "{\"name\": \"f\"}, "},
    {HEARTH_OUTPUT_DEEPSEEK, "<｜tool▁calls▁begin｜>",
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n```json\n{}\n```"},
    {HEARTH_OUTPUT_GEMMA4, "<|tool_call>call:f{a:", "<|\"|"},
    {HEARTH_OUTPUT_GEMMA4, "<|tool_call>call:f{a:<|\"|>", "<|\"|"},
    {HEARTH_OUTPUT_HARMONY, "<|channel|>", "<|channel|>"},
    {HEARTH_OUTPUT_HARMONY, "", "<|end|>"},
    {HEARTH_OUTPUT_HARMONY, "<|channel|>final<|message|>", "<|start|>"},
    {HEARTH_OUTPUT_LFM2, "<|tool_call_start|>[", "f(a='\\n'), "},
    {HEARTH_OUTPUT_MINICPM, "<function name=\"f\"><param name=\"a\"><![CDATA[", "]]></param "},
    {HEARTH_OUTPUT_MINICPM, "<function name=\"f\"><param name=\"a\"><![CDATA[", "]]></param>   "},
    {HEARTH_OUTPUT_KIMI_K3, "", "<|close|>response<|sep|>"},
    {HEARTH_OUTPUT_KIMI_K3, "<|open|>tools<|sep|>", "<|open|>call tool=\"f\" index=\"1\"<|sep|><|close|>call<|sep|>"},
    {HEARTH_OUTPUT_KIMI_K3, "<|open|>tools<|sep|><|open|>call tool=\"f\"", " a"},
    {HEARTH_OUTPUT_KIMI_K3, "<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|>",
     "<|open|>argument key=\"&amp;&quot;&\" type=\"object\"<|sep|><|close|>argument<|sep|>"},
    {HEARTH_OUTPUT_MINIMAX_M3, "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">", "]<]minimax[>[<item>"},
    {HEARTH_OUTPUT_MINIMAX_M3, "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>",
     "]<]minimax[>[</b>"},
    {HEARTH_OUTPUT_MINIMAX_M3, "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>", " "},
    {HEARTH_OUTPUT_MINIMAX_M3, "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">",
     "]<]minimax[>[<"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>"
     "]<]minimax[>[</"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>"},
    {HEARTH_OUTPUT_ATEM, " to=user<|message|>", "<|eom|><|start|>assistant to=self<|message|>a"},
    {HEARTH_OUTPUT_ATEM, " to=f<|message|><atem:function_calls>", "<atem:invoke name=\"f\"></atem:invoke>\n"},
    {HEARTH_OUTPUT_SOLAR, "<|tool_calls|>",
     "<|tool_call:begin|>x<|tool_call:name|>f<|tool_call:args|>{}<|tool_call:end|>"},
};

static size_t work_of(size_t which, size_t size, size_t piece) {
    hearth_output_options options = {.tools = tools_text, .tools_size = tools_size, .max_calls = size};
    hearth_output_parser *parser;
    assert_int_equal(hearth_output_parser_create(endless[which].format, &options, &parser, NULL), HEARTH_OK);
    const char *again = endless[which].again;
    size_t head = strlen(endless[which].head), length = strlen(again);
    char *text = malloc(size);
    for (size_t i = 0; i < size; i++) text[i] = i < head ? endless[which].head[i] : again[(i - head) % length];
    hearth_output_result result;
    for (size_t at = 0; at < size; at += piece) {
        size_t take = piece < size - at ? piece : size - at;
        assert_int_equal(hearth_output_parser_feed(parser, text + at, take, NULL, NULL, NULL), HEARTH_OK);
    }
    assert_int_equal(hearth_output_parser_finish(parser, NULL, NULL, &result, NULL), HEARTH_OK);
    size_t work = parser->work;
    hearth_output_parser_free(&parser);
    free(text);
    return work;
}

static void test_work(void **state) {
    (void)state;
    enum { SIZE = 20000, WORK_PER_BYTE = 64 };
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        size_t at_once = work_of(i, SIZE, SIZE), bytes = work_of(i, SIZE, 1);
        size_t twice = work_of(i, 2 * SIZE, 1), four_times = work_of(i, 4 * SIZE, 1);
        bool linear = four_times - twice <= 2 * (twice - bytes) + (twice - bytes) / 20;
        if (at_once > WORK_PER_BYTE * SIZE || bytes > WORK_PER_BYTE * SIZE || !linear)
            fail_msg("%s%s...: %zu steps at once, %zu byte by byte, %zu for twice as much, %zu for four times",
                     endless[i].head, endless[i].again, at_once, bytes, twice, four_times);
    }
}

/* ---- limits and errors ---- */

static void test_limits(void **state) {
    (void)state;
    hearth_output_options options = {.max_text = 40, .max_calls = 1};
    hearth_output_parser *parser;
    hearth_output_result result;
    hearth_error err;
    assert_int_equal(hearth_output_parser_create(HEARTH_OUTPUT_FUNCTIONARY, &options, &parser, &err), HEARTH_OK);
    static const char calls[] = "<function=f>{}</function><function=g>{}";
    assert_int_equal(hearth_output_parser_feed(parser, calls, sizeof calls - 1, NULL, NULL, &err), HEARTH_OK);
    assert_int_equal(hearth_output_parser_feed(parser, "</", 2, NULL, NULL, &err), HEARTH_TOO_LONG);
    assert_string_equal(err.text, "an answer of 39 bytes and 2 more: the limit is 40");
    assert_int_equal(hearth_output_parser_feed(parser, "!", 1, NULL, NULL, &err), HEARTH_OK);
    assert_int_equal(hearth_output_parser_finish(parser, NULL, NULL, &result, &err), HEARTH_OK);
    assert_int_equal(result.call_count, 1);
    assert_int_equal(result.faults, 1);
    assert_int_equal(result.content_size, strlen("<function=g>{}!"));
    assert_int_equal(hearth_output_parser_feed(parser, "", 0, NULL, NULL, &err), HEARTH_BAD_ARGUMENT);
    assert_int_equal(hearth_output_parser_finish(parser, NULL, NULL, &result, &err), HEARTH_BAD_ARGUMENT);
    hearth_output_parser_free(&parser);
    assert_null(parser);
    hearth_output_parser_free(&parser);
    assert_int_equal(hearth_output_parser_create(HEARTH_OUTPUT_FORMAT_COUNT, NULL, &parser, &err), HEARTH_BAD_ARGUMENT);
    assert_null(parser);
}

/* The same of elements, whose first level is the call's object. */
static void test_depth_of_elements(void **state) {
    (void)state;
    for (int deeper = 0; deeper < 2; deeper++) {
        hearth_output_parser *parser = make_parser(HEARTH_OUTPUT_MINIMAX_M3, &(corpus_case){0});
        static const char head[] = "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">",
                          opening[] = "]<]minimax[>[<a>", closing[] = "]<]minimax[>[</a>",
                          tail[] = "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>";
        hearth_output_result result;
        int depth = HTH_JSON_MAX_DEPTH + deeper;
        assert_int_equal(hearth_output_parser_feed(parser, head, sizeof head - 1, NULL, NULL, NULL), HEARTH_OK);
        for (int i = 0; i < depth; i++)
            assert_int_equal(hearth_output_parser_feed(parser, opening, sizeof opening - 1, NULL, NULL, NULL),
                             HEARTH_OK);
        for (int i = 0; i < depth; i++)
            assert_int_equal(hearth_output_parser_feed(parser, closing, sizeof closing - 1, NULL, NULL, NULL),
                             HEARTH_OK);
        assert_int_equal(hearth_output_parser_feed(parser, tail, sizeof tail - 1, NULL, NULL, NULL), HEARTH_OK);
        assert_int_equal(hearth_output_parser_finish(parser, NULL, NULL, &result, NULL), HEARTH_OK);
        assert_int_equal(result.call_count, 1);
        assert_int_equal(result.faults, deeper);
        if (deeper) assert_string_equal(result.calls[0].fault, "a tool call's arguments are nested too deep");
        hearth_output_parser_free(&parser);
    }
}

/* As deep as the limit is a call; one deeper is text. */
static void test_depth(void **state) {
    (void)state;
    for (int deeper = 0; deeper < 2; deeper++) {
        char text[1024] = "<function=f>{\"a\": ";
        size_t size = strlen(text), depth = HTH_JSON_MAX_DEPTH - 1 + (size_t)deeper;
        memset(text + size, '[', depth);
        memset(text + size + depth, ']', depth);
        text[size + 2 * depth] = '}';
        hearth_output_parser *parser = make_parser(HEARTH_OUTPUT_FUNCTIONARY, &(corpus_case){0});
        hearth_output_result result;
        assert_int_equal(hearth_output_parser_feed(parser, text, strlen(text), NULL, NULL, NULL), HEARTH_OK);
        assert_int_equal(hearth_output_parser_finish(parser, NULL, NULL, &result, NULL), HEARTH_OK);
        assert_int_equal(result.faults, deeper);
        assert_int_equal(result.content_size, deeper ? strlen(text) : 0);
        if (deeper) assert_string_equal(result.calls[0].fault, "a tool call's arguments are nested too deep");
        hearth_output_parser_free(&parser);
    }
}

/* ---- tools ---- */

static void test_bad_tools(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "tools: the JSON text ends too early, after 0 bytes"},
        {"[", "tools: the JSON text ends too early, after 1 bytes"},
        {"{}", "tools: not a JSON array"},
        {"1", "tools: not a JSON array"},
        {"\"x\"", "tools: not a JSON array"},
        {"[{]", "tools: not JSON at byte 2"},
        {"[] []", "tools: not JSON at byte 3"},
    };
    hearth_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hth_output_tools *tools;
        hearth_status status = hth_output_tools_read(cases[i][0], strlen(cases[i][0]), &tools, &err);
        assert_int_equal(status, HEARTH_BAD_ARGUMENT);
        assert_null(tools);
        assert_string_equal(err.text, cases[i][1]);
    }
}

static unsigned types_of(const hth_output_tools *tools, const char *tool, const char *parameter) {
    return hth_output_tools_types(tools, tool, strlen(tool), parameter, strlen(parameter));
}

static void test_tools(void **state) {
    (void)state;
    hth_output_tools *tools;
    assert_int_equal(hth_output_tools_read(tools_text, tools_size, &tools, NULL), HEARTH_OK);
    assert_int_equal(types_of(tools, "get_weather", "city"), HTH_TYPE_STRING);
    assert_int_equal(types_of(tools, "get_weather", "days"), HTH_TYPE_NUMBER);
    assert_int_equal(types_of(tools, "get_weather", "metric"), HTH_TYPE_BOOLEAN);
    assert_int_equal(types_of(tools, "get_weather", "where"), HTH_TYPE_OBJECT | HTH_TYPE_NULL);
    assert_int_equal(types_of(tools, "get_weather", "note"), HTH_TYPE_STRING | HTH_TYPE_NULL);
    assert_int_equal(types_of(tools, "get_weather", "path"), 0); /* another tool's */
    assert_int_equal(types_of(tools, "write_file", "path"), HTH_TYPE_STRING);
    assert_int_equal(types_of(tools, "write_file", "mode"), 0); /* a reference */
    assert_int_equal(types_of(tools, "search", "query"), HTH_TYPE_STRING);
    assert_int_equal(types_of(tools, "search", "limit"), 0);
    assert_int_equal(types_of(NULL, "search", "query"), 0);
    assert_true(hth_output_tools_have(tools, "search", 6));
    assert_false(hth_output_tools_have(tools, "searc", 5));
    hth_output_tools_free(&tools);
}

/* ---- formats ---- */

static void test_formats(void **state) {
    (void)state;
    hearth_output_format format;
    hearth_error err;
    for (int f = 0; f < HEARTH_OUTPUT_FORMAT_COUNT; f++) {
        const char *name = hearth_output_format_name((hearth_output_format)f);
        assert_int_equal(hearth_output_format_find(name, &format, &err), HEARTH_OK);
        assert_int_equal(format, f);
    }
    assert_int_equal(hearth_output_format_find("qwen", &format, &err), HEARTH_NOT_FOUND);
    assert_non_null(strstr(err.text, "no output format is called \"qwen\"; there are: plain hermes qwen-xml"));
    assert_string_equal(hearth_output_format_name(HEARTH_OUTPUT_FORMAT_COUNT), "");

    static const struct {
        const char *text;
        hearth_output_format format;
    } templates[] = {
        {"{{ messages }}", HEARTH_OUTPUT_PLAIN},
        {"'<think>' <tool_call>{\"name\"}</tool_call>", HEARTH_OUTPUT_HERMES},
        {"<tool_call>\n<function=f>\n<parameter=p></tool_call>", HEARTH_OUTPUT_QWEN_XML},
        {"<tool_call>{{ name }}<arg_key></tool_call>", HEARTH_OUTPUT_GLM},
        {"<function={{ name }}>", HEARTH_OUTPUT_FUNCTIONARY},
        {"<|start_header_id|> {\"name\": f, \"parameters\": x}", HEARTH_OUTPUT_LLAMA3},
        {"[TOOL_CALLS]", HEARTH_OUTPUT_MISTRAL},
        {"<|channel|>x<|message|>", HEARTH_OUTPUT_HARMONY},
        {"<|tool_call>call:", HEARTH_OUTPUT_GEMMA4},
        {"'<tool_sep{}>'.format(':opensource') <tool_call> </tool_call>", HEARTH_OUTPUT_HY3},
        {"<tool_call:opensource> <tool_sep:opensource>", HEARTH_OUTPUT_HY3},
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
        assert_int_equal(hearth_output_format_detect(templates[i].text, strlen(templates[i].text)),
                         templates[i].format);

    static const struct {
        hearth_output_format format;
        const char *prompt;
        int opens;
    } prompts[] = {
        {HEARTH_OUTPUT_QWEN_XML, "<|im_start|>assistant\n<think>\n", 1},
        {HEARTH_OUTPUT_QWEN_XML, "<|im_start|>assistant\n<think>\n\n</think>\n\n", 0},
        {HEARTH_OUTPUT_QWEN_XML, "think>", 0},
        {HEARTH_OUTPUT_SEED, "<think>", 0},
        {HEARTH_OUTPUT_HARMONY, "<|start|>assistant", 0},
        {HEARTH_OUTPUT_PLAIN, "", 0},
    };
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
        assert_int_equal(
            hearth_output_prompt_opens_reasoning(prompts[i].format, prompts[i].prompt, strlen(prompts[i].prompt)),
            prompts[i].opens);
}

/* ---- memory ---- */

static void check_allocations(hearth_output_format format, const corpus_case *c) {
    hearth_output_options options = {.starts_in_reasoning = c->open, .tools = tools_text, .tools_size = tools_size};
    bool done = false;
    size_t before = alloc_guard_live();
    for (long nth = 1; !done; nth++) {
        hearth_output_parser *parser;
        hearth_output_result result;
        hearth_error err;
        alloc_guard_fail_at(nth);
        hearth_status status = hearth_output_parser_create(format, &options, &parser, &err);
        for (size_t at = 0; at < c->size && status == HEARTH_OK; at += 7)
            status =
                hearth_output_parser_feed(parser, c->text + at, c->size - at < 7 ? c->size - at : 7, NULL, NULL, &err);
        if (status == HEARTH_OK) status = hearth_output_parser_finish(parser, NULL, NULL, &result, &err);
        alloc_guard_fail_at(0);
        done = status == HEARTH_OK;
        if (!done) assert_int_equal(status, HEARTH_NO_MEMORY);
        if (!done && parser != NULL)
            assert_int_equal(hearth_output_parser_feed(parser, "x", 1, NULL, NULL, &err), HEARTH_NO_MEMORY);
        hearth_output_parser_free(&parser);
        assert_int_equal(alloc_guard_live(), before);
    }
}

static void test_allocations(void **state) {
    (void)state;
    for_each_case(check_allocations);
}

static int set_up(void **state) {
    (void)state;
    tools_text = read_file("tools.json", &tools_size);
    return tools_text == NULL;
}

static int tear_down(void **state) {
    (void)state;
    free(tools_text);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),    cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_mixtures),  cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_work),      cmocka_unit_test(test_limits),
        cmocka_unit_test(test_depth),     cmocka_unit_test(test_depth_of_elements),
        cmocka_unit_test(test_bad_tools), cmocka_unit_test(test_tools),
        cmocka_unit_test(test_formats),   cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
