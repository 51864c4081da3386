/* What a chat template makes of an answer, the format that is detected in its text takes apart again: render, parse,
 * and the reasoning, the text and the calls are those of the message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hearth/output.h"
#include "text/json_reader.h"
#include "unit/template_help.h"

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"\", \"parameters\": "
    "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}, \"days\": {\"type\": \"integer\"}, "
    "\"metric\": {\"type\": \"boolean\"}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"search\", "
    "\"description\": \"\", \"parameters\": {\"type\": \"object\", \"properties\": {\"filter\": {\"type\": "
    "\"object\"}, "
    "\"query\": {\"type\": \"string\"}, \"tags\": {\"type\": \"array\"}}}}}]";

/* Keys in their order, since some templates sort them. */
typedef struct call {
    const char *name, *arguments;
    const char *sign; /* is in the arguments, however they are written */
} call;
static const call calls[][2] = {
    {{"get_weather", "{\"city\": \"Zürich\", \"days\": 3, \"metric\": true}", "Zürich"}},
    {{"search",
      "{\"filter\": {}, \"query\": \"a \\\"b\\\"\\n\\n```\\n<tool_call>{\\\"x\\\": 1}</tool_call> & 1 < 2\", "
      "\"tags\": []}",
      "1 < 2"}},
    {{"search",
      "{\"filter\": {\"from\": 1.5, \"who\": {\"name\": \"x\"}}, \"query\": \"12\", \"tags\": [\"a\", \"b c\"]}",
      "b c"},
     {"get_weather", "{\"city\": \"75001\", \"days\": -1, \"metric\": false}", "75001"}},
};
enum { CALLS = sizeof calls / sizeof *calls };
static const char *const texts[][2] = {
    {"", ""}, {"", "Let me look."}, {"I need\\na tool.", ""}, {"I need a tool.", "Let me look."}}; /* reasoning, text */
enum { TEXTS = sizeof texts / sizeof *texts };

/* What ends the rendered answer and is not part of it, and how many of the CALLS * TEXTS answers the template shows
 * whole: some have no place for text or reasoning beside calls, or for more than one call. */
typedef struct family {
    const char *name, *end;
    hearth_output_format format;
    int shown;
    bool text_is_reasoning; /* beside calls; then only answers without text are tried */
} family;
static const family families[] = {
    {"hy3", "<｜hy_eos:opensource｜>", HEARTH_OUTPUT_HY3, 12, false},
    {"kimi-k3", "", HEARTH_OUTPUT_KIMI_K3, 12, false},
    {"minimax-m3", "[e~[\n", HEARTH_OUTPUT_MINIMAX_M3, 12, false},
    {"muse", "", HEARTH_OUTPUT_ATEM, 6, false},
    {"solar", "", HEARTH_OUTPUT_SOLAR, 6, false},
    {"qwen3", "<|im_end|>\n", HEARTH_OUTPUT_HERMES, 12, false},
    {"qwen35", "<|im_end|>\n", HEARTH_OUTPUT_QWEN_XML, 12, false},
    {"glm", "", HEARTH_OUTPUT_GLM, 12, false},
    {"gemma4", "<turn|>\n", HEARTH_OUTPUT_GEMMA4, 12, false},
    {"deepseek", "<｜end▁of▁sentence｜>", HEARTH_OUTPUT_DEEPSEEK, 8, false},
    {"kimi", "<|im_end|>", HEARTH_OUTPUT_KIMI, 12, false},
    {"mistral", "</s>", HEARTH_OUTPUT_MISTRAL, 6, false},
    {"command-r", "<|END_OF_TURN_TOKEN|>", HEARTH_OUTPUT_COMMAND_R, 6, false},
    {"harmony", "", HEARTH_OUTPUT_HARMONY, 4, true},
    {"llama3", "<|eot_id|>", HEARTH_OUTPUT_LLAMA3, 4, false},
};

static char *render(const char *source, size_t size, const char *answer, int generates) {
    char request[4096];
    hearth_error err = {HEARTH_OK, ""};
    const hearth_template_options options = {.now = "2025-02-01", .marks = -1};
    int n =
        snprintf(request, sizeof request,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello?\"}%s%s], \"tools\": %s, "
                 "\"add_generation_prompt\": %s, \"enable_thinking\": true, \"thinking\": true, \"bos_token\": \"\", "
                 "\"eos_token\": \"\"}",
                 *answer ? ", " : "", answer, tools, generates ? "true" : "false");
    assert_in_range(n, 1, sizeof request - 1);
    return template_render(source, size, request, &options, &err);
}

static void write_answer(char *out, size_t room, const call *some, const char *reasoning, const char *text) {
    int n = snprintf(out, room, "{\"role\": \"assistant\", \"content\": \"%s\"", text);
    if (*reasoning)
        n += snprintf(out + n, room - (size_t)n, ", \"reasoning_content\": \"%s\"%s%s%s", reasoning,
                      *text ? "" : ", \"thinking\": \"", *text ? "" : reasoning, *text ? "" : "\"");
    n += snprintf(out + n, room - (size_t)n, ", \"tool_calls\": [");
    for (int i = 0; i < 2 && some[i].name != NULL; i++)
        n += snprintf(out + n, room - (size_t)n,
                      "%s{\"id\": \"call%05d\", \"type\": \"function\", \"function\": {\"name\": \"%s\", "
                      "\"arguments\": %s}}",
                      i > 0 ? ", " : "", i, some[i].name, some[i].arguments);
    n += snprintf(out + n, room - (size_t)n, "]}");
    assert_in_range(n, 1, room - 1);
}

static bool same_json(const char *a, size_t a_size, const char *b) {
    hth_work w;
    hth_value x, y;
    hth_work_begin(&w, SIZE_MAX, UINT64_MAX, 0);
    bool same = hth_json_read(&w, a, a_size, &x) && hth_json_read(&w, b, strlen(b), &y) &&
                strcmp(template_json(&w, x), template_json(&w, y)) == 0;
    hth_work_end(&w);
    return same;
}

/* The text of a JSON string's inside, in which only newlines are escaped. */
static bool same_text(const char *text, size_t size, const char *escaped) {
    char plain[200];
    size_t n = 0;
    for (; *escaped; escaped++) {
        bool newline = escaped[0] == '\\' && escaped[1] == 'n';
        plain[n++] = newline ? '\n' : *escaped;
        if (newline) escaped++;
    }
    return n == size && memcmp(text, plain, n) == 0;
}

/* The end of what both begin with; not inside a marker. */
static size_t common(const char *prompt, const char *whole) {
    size_t n = 0;
    while (prompt[n] != 0 && prompt[n] == whole[n]) n++;
    if (prompt[n] == 0) return n;
    for (size_t back = 1; back <= 12 && back <= n; back++)
        if (whole[n - back] == '<') return n - back;
    return n;
}

static const char *problem(const hearth_output_result *r, const call *some, const char *reasoning, const char *text) {
    size_t n = 0;
    while (n < 2 && some[n].name != NULL) n++;
    if (r->call_count != n || r->faults > 0) return "calls";
    for (size_t i = 0; i < n; i++) {
        const hearth_output_call *c = &r->calls[i];
        if (c->name_size != strlen(some[i].name) || memcmp(c->name, some[i].name, c->name_size) != 0) return "name";
        if (!same_json(c->arguments, c->arguments_size, some[i].arguments)) return "arguments";
    }
    if (!same_text(r->content, r->content_size, text)) return "content";
    return r->reasoning_size == 0 || same_text(r->reasoning, r->reasoning_size, reasoning) ? NULL : "reasoning";
}

/* Whether the answer is shown whole, and then parses to what it was. */
static bool check(const family *f, const char *source, size_t size, const call *some, const char *const *words) {
    char answer[2048];
    write_answer(answer, sizeof answer, some, words[0], words[1]);
    char *prompt = render(source, size, "", 1), *whole = render(source, size, answer, 0);
    bool shown = prompt != NULL && whole != NULL;
    size_t from = shown ? common(prompt, whole) : 0, end = strlen(f->end);
    for (int i = 0; i < 2 && shown && some[i].name != NULL; i++) shown = strstr(whole + from, some[i].sign) != NULL;
    shown = shown && !(f->text_is_reasoning && *words[1]) && strstr(whole + from, words[1]) != NULL;
    if (shown) {
        size_t length = strlen(whole);
        if (length >= end && strcmp(whole + length - end, f->end) == 0) length -= end;
        const hearth_output_options options = {.starts_in_reasoning =
                                                   hearth_output_prompt_opens_reasoning(f->format, whole, from),
                                               .tools = tools,
                                               .tools_size = sizeof tools - 1};
        hearth_output_parser *parser;
        hearth_output_result result;
        assert_int_equal(hearth_output_parser_create(f->format, &options, &parser, NULL), HEARTH_OK);
        assert_int_equal(hearth_output_parser_feed(parser, whole + from, length - from, NULL, NULL, NULL), HEARTH_OK);
        assert_int_equal(hearth_output_parser_finish(parser, NULL, NULL, &result, NULL), HEARTH_OK);
        const char *wrong = problem(&result, some, words[0], words[1]);
        if (wrong != NULL)
            fail_msg("%s: %s of\n%s\nin\n%.*s", f->name, wrong, answer, (int)(length - from), whole + from);
        hearth_output_parser_free(&parser);
    }
    free(prompt);
    free(whole);
    return shown;
}

static void rendered_answers_parse_to_themselves(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        char path[200];
        size_t size;
        int shown = 0;
        snprintf(path, sizeof path, "../golden/templates/%s.jinja", f->name);
        char *source = template_file(path, &size);
        assert_int_equal(hearth_output_format_detect(source, size), f->format);
        for (size_t c = 0; c < CALLS; c++)
            for (size_t t = 0; t < TEXTS; t++) shown += check(f, source, size, calls[c], texts[t]);
        if (shown != f->shown) fail_msg("%s: %d answers are shown, not %d", f->name, shown, f->shown);
        free(source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rendered_answers_parse_to_themselves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
