#include "text/output_format.h"

#include <assert.h>
#include <string.h>

#include "base/status.h"

static const hth_output_tags qwen_tags = {.key_open = "<parameter=",
                                          .key_close = ">",
                                          .value_close = "</parameter>",
                                          .nested = "<parameter=",
                                          .newlines = true};
static const hth_output_tags glm_tags = {.key_open = "<arg_key>",
                                         .key_close = "</arg_key>",
                                         .value_open = "<arg_value>",
                                         .value_close = "</arg_value>",
                                         .nested = "<arg_value>"};
static const hth_output_tags minimax_tags = {.key_open = "<parameter name=\"",
                                             .key_close = "\">",
                                             .value_close = "</parameter>",
                                             .nested = "<parameter name=\""};
static const hth_output_type_word dsml_types[] = {{"true", HTH_TYPE_STRING}, {"false", 0}, {NULL, 0}};
static const hth_output_tags dsml_tags = {.key_open = "<｜DSML｜parameter name=\"",
                                          .key_close = "\" string=\"",
                                          .types = dsml_types,
                                          .type_close = "\">",
                                          .value_close = "</｜DSML｜parameter>",
                                          .nested = "<｜DSML｜parameter name=\""};
static const hth_output_tags hy3_tags = {.key_open = "<arg_key:opensource>",
                                         .key_close = "</arg_key:opensource>",
                                         .value_open = "<arg_value:opensource>",
                                         .value_close = "</arg_value:opensource>",
                                         .nested = "<arg_value:opensource>"};
static const hth_output_tags atem_tags = {.key_open = "<atem:parameter name=\"",
                                          .key_close = "\">",
                                          .value_close = "</atem:parameter>",
                                          .nested = "<atem:parameter name=\""};
static const hth_output_call_syntax k3_json_call = {
    .open = "", .body = HTH_BODY_ARGUMENTS, .close = {"<|close|>json<|sep|>", "<|close|>call<|sep|>"}};
static const hth_output_type_word k3_types[] = {{"string", HTH_TYPE_STRING},
                                                {"number", HTH_TYPE_NUMBER},
                                                {"boolean", HTH_TYPE_BOOLEAN},
                                                {"null", HTH_TYPE_NULL},
                                                {"object", HTH_TYPE_OBJECT},
                                                {"array", HTH_TYPE_ARRAY},
                                                {NULL, 0}};
static const hth_output_tags k3_tags = {.key_open = "<|open|>argument key=\"",
                                        .key_close = "\" type=\"",
                                        .types = k3_types,
                                        .type_close = "\"<|sep|>",
                                        .value_close = "<|close|>argument<|sep|>",
                                        .nested = "<|open|>argument key=\"",
                                        .key_has_references = true,
                                        .json_open = "<|open|>json type=\"object\"<|sep|>",
                                        .json = &k3_json_call};
static const hth_output_elements m3_elements = {.mark = "]<]minimax[>[", .item = "item"};

static const hth_output_tags minicpm_tags = {.key_open = "<param name=\"",
                                             .key_close = "\">",
                                             .value_close = "</param>",
                                             .nested = "<param name=\"",
                                             .literal_open = "<![CDATA[",
                                             .literal_close = "]]></param>"};

/* A JSON object, or a list of them, between two markers. */
#define JSON_CALLS(opener, closer)                                                                                     \
    {.open = opener, .lead = "{", .body = HTH_BODY_ENVELOPE, .close = {closer}}, {                                     \
        .open = opener, .lead = "[", .body = HTH_BODY_LIST, .close = { closer }                                        \
    }
/* <function=NAME><parameter=KEY>VALUE</parameter></function>, in a pair of markers that are sometimes forgotten. */
#define FUNCTION_CALLS(opener, closer)                                                                                 \
    {.open = opener,                                                                                                   \
     .lead = "<function=",                                                                                             \
     .name_end = ">",                                                                                                  \
     .body = HTH_BODY_TAGGED,                                                                                          \
     .close = {"</function>", closer},                                                                                 \
     .tags = &qwen_tags},                                                                                              \
    {                                                                                                                  \
        .open = "<function=", .name_end = ">", .body = HTH_BODY_TAGGED, .close = {"</function>", closer},              \
        .tags = &qwen_tags                                                                                             \
    }
#define THINK .think_open = "<think>", .think_close = "</think>"

const hth_output_call_syntax hth_output_bare_call = {.open = "", .lead = "{", .body = HTH_BODY_ENVELOPE};
static const hth_output_call_syntax harmony_call = {
    .open = "", .body = HTH_BODY_ARGUMENTS, .close = {"<|call|>", "<|end|>"}};

static const hth_output_headers harmony_headers = {.start = "<|start|>",
                                                   .message = "<|message|>",
                                                   .parts = {"<|channel|>", "<|constrain|>", "to="},
                                                   .ends = {"<|end|>", "<|return|>", "<|call|>"},
                                                   .key = "<|channel|>",
                                                   .reasoning = "analysis",
                                                   .call = &harmony_call,
                                                   .prefix = "functions.",
                                                   .persons = {"assistant", "user", "all"}};
static const hth_output_headers atem_headers = {.start = "<|start|>",
                                                .message = "<|message|>",
                                                .parts = {"to="},
                                                .ends = {"<|eom|>", "<|eot|>"},
                                                .key = "to=",
                                                .reasoning = "self"};

static const hth_output_syntax syntaxes[HEARTH_OUTPUT_FORMAT_COUNT] = {
    [HEARTH_OUTPUT_PLAIN] = {THINK},
    [HEARTH_OUTPUT_HERMES] = {THINK, .calls = {JSON_CALLS("<tool_call>", "</tool_call>"),
                                               FUNCTION_CALLS("<tool_call>", "</tool_call>")}},
    [HEARTH_OUTPUT_QWEN_XML] = {THINK, .calls = {FUNCTION_CALLS("<tool_call>", "</tool_call>"),
                                                 JSON_CALLS("<tool_call>", "</tool_call>")}},
    [HEARTH_OUTPUT_SEED] = {.think_open = "<seed:think>",
                            .think_close = "</seed:think>",
                            .calls = {FUNCTION_CALLS("<seed:tool_call>", "</seed:tool_call>")}},
    [HEARTH_OUTPUT_GLM] =
        {THINK,
         .calls = {{.open = "<tool_call>", .body = HTH_BODY_TAGGED, .close = {"</tool_call>"}, .tags = &glm_tags}}},
    [HEARTH_OUTPUT_LLAMA3] = {THINK, .whole_message_is_call = true,
                              .calls = {{.open = "<|python_tag|>", .lead = "{", .body = HTH_BODY_ENVELOPE},
                                        {.open = "<|python_tag|>", .body = HTH_BODY_PYTHON}}},
    [HEARTH_OUTPUT_MISTRAL] =
        {.think_open = "[THINK]",
         .think_close = "[/THINK]",
         .calls = {{.open = "[TOOL_CALLS]", .lead = "[", .body = HTH_BODY_LIST},
                   {.open = "[TOOL_CALLS]", .lead = "{", .body = HTH_BODY_ENVELOPE},
                   {.open = "[TOOL_CALLS]", .name_end = "[ARGS]", .id_open = "[CALL_ID]", .body = HTH_BODY_ARGUMENTS}}},
    [HEARTH_OUTPUT_DEEPSEEK] = {THINK, .section_open = {"<｜tool▁calls▁begin｜>"},
                                .section_close = {"<｜tool▁calls▁end｜>"},
                                .calls = {{.open = "<｜tool▁call▁begin｜>",
                                           .lead = "function<｜tool▁sep｜>",
                                           .name_end = "```json",
                                           .body = HTH_BODY_ARGUMENTS,
                                           .close = {"```", "<｜tool▁call▁end｜>"}},
                                          {.open = "<｜tool▁call▁begin｜>",
                                           .name_end = "<｜tool▁sep｜>",
                                           .body = HTH_BODY_ARGUMENTS,
                                           .close = {"<｜tool▁call▁end｜>"}}}},
    [HEARTH_OUTPUT_DEEPSEEK_DSML] = {THINK, .section_open = {"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"},
                                     .section_close = {"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"},
                                     .calls = {{.open = "<｜DSML｜invoke name=\"",
                                                .name_end = "\">",
                                                .body = HTH_BODY_TAGGED,
                                                .close = {"</｜DSML｜invoke>"},
                                                .tags = &dsml_tags}}},
    [HEARTH_OUTPUT_GEMMA4] = {.think_open = "<|channel>thought",
                              .think_close = "<channel|>",
                              .think_anywhere = true,
                              .dropped = {"<|tool_response>"},
                              .calls = {{.open = "<|tool_call>",
                                         .lead = "call:",
                                         .name_end = "{",
                                         .body = HTH_BODY_GEMMA,
                                         .close = {"<tool_call|>"}}}},
    [HEARTH_OUTPUT_HARMONY] = {.headers = &harmony_headers},
    [HEARTH_OUTPUT_KIMI] = {THINK, .section_open = {"<|tool_calls_section_begin|>"},
                            .section_close = {"<|tool_calls_section_end|>"},
                            .calls = {{.open = "<|tool_call_begin|>",
                                       .name_end = "<|tool_call_argument_begin|>",
                                       .name_in_id = true,
                                       .body = HTH_BODY_ARGUMENTS,
                                       .close = {"<|tool_call_end|>"}}}},
    [HEARTH_OUTPUT_MINIMAX] = {THINK, .section_open = {"<minimax:tool_call>"},
                               .section_close = {"</minimax:tool_call>"},
                               .calls = {{.open = "<invoke name=\"",
                                          .name_end = "\">",
                                          .body = HTH_BODY_TAGGED,
                                          .close = {"</invoke>"},
                                          .tags = &minimax_tags}}},
    [HEARTH_OUTPUT_FUNCTIONARY] =
        {.calls = {{.open = "<function=", .name_end = ">", .body = HTH_BODY_ARGUMENTS, .close = {"</function>"}}}},
    [HEARTH_OUTPUT_GRANITE] = {THINK, .calls = {JSON_CALLS("<|tool_call|>", "<|/tool_call|>")}},
    [HEARTH_OUTPUT_NEMOTRON] = {THINK, .calls = {JSON_CALLS("<TOOLCALL>", "</TOOLCALL>")}},
    [HEARTH_OUTPUT_COMMAND_R] = {.think_open = "<|START_THINKING|>",
                                 .think_close = "<|END_THINKING|>",
                                 .dropped = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>",
                                             "<|END_TEXT|>"},
                                 .calls = {JSON_CALLS("<|START_ACTION|>", "<|END_ACTION|>")}},
    [HEARTH_OUTPUT_APERTUS] = {.think_open = "<|inner_prefix|>",
                               .think_close = "<|inner_suffix|>",
                               .calls = {{.open = "<|tools_prefix|>",
                                          .lead = "[",
                                          .body = HTH_BODY_KEYED_LIST,
                                          .close = {"<|tools_suffix|>"}}}},
    [HEARTH_OUTPUT_APRIEL] = {.think_open = "Here are my reasoning steps:",
                              .think_close = "[BEGIN FINAL RESPONSE]",
                              .calls = {JSON_CALLS("<tool_calls>", "</tool_calls>")}},
    [HEARTH_OUTPUT_GIGACHAT] = {THINK, .calls = {JSON_CALLS("<|function_call|>", NULL)}},
    [HEARTH_OUTPUT_MINICPM] = {THINK, .calls = {{.open = "<function name=\"",
                                                 .name_end = "\">",
                                                 .body = HTH_BODY_TAGGED,
                                                 .close = {"</function>"},
                                                 .tags = &minicpm_tags}}},
    [HEARTH_OUTPUT_KIMI_K3] = {.think_open = "<|open|>think<|sep|>",
                               .think_close = "<|close|>think<|sep|>",
                               .dropped = {"<|open|>response<|sep|>", "<|close|>response<|sep|>",
                                           "<|close|>message<|sep|>", "<|end_of_msg|>"},
                               .section_open = {"<|open|>tools<|sep|>"},
                               .section_close = {"<|close|>tools<|sep|>"},
                               .calls = {{.open = "<|open|>call tool=\"",
                                          .name_end = "\"",
                                          .attributes_close = "<|sep|>",
                                          .body = HTH_BODY_TAGGED,
                                          .close = {"<|close|>call<|sep|>"},
                                          .tags = &k3_tags}}},
    [HEARTH_OUTPUT_MINIMAX_M3] = {.think_open = "<mm:think>",
                                  .think_close = "</mm:think>",
                                  .section_open = {"]<]minimax[>[<tool_call>"},
                                  .section_close = {"]<]minimax[>[</tool_call>"},
                                  .calls = {{.open = "]<]minimax[>[<invoke name=\"",
                                             .name_end = "\">",
                                             .body = HTH_BODY_ELEMENTS,
                                             .close = {"]<]minimax[>[</invoke>"},
                                             .elements = &m3_elements}}},
    [HEARTH_OUTPUT_ATEM] = {.headers = &atem_headers,
                            .section_open = {"<atem:function_calls>"},
                            .section_close = {"</atem:function_calls>"},
                            .calls = {{.open = "<atem:invoke name=\"",
                                       .name_end = "\">",
                                       .body = HTH_BODY_TAGGED,
                                       .close = {"</atem:invoke>"},
                                       .tags = &atem_tags}}},
    [HEARTH_OUTPUT_HY3] = {.think_open = "<think:opensource>",
                           .think_close = "</think:opensource>",
                           .section_open = {"<tool_calls:opensource>"},
                           .section_close = {"</tool_calls:opensource>"},
                           .calls = {{.open = "<tool_call:opensource>",
                                      .name_end = "<tool_sep:opensource>",
                                      .body = HTH_BODY_TAGGED,
                                      .close = {"</tool_call:opensource>"},
                                      .tags = &hy3_tags}}},
    [HEARTH_OUTPUT_SOLAR] = {.think_open = "<|think|>",
                             .think_close = "<|end|>",
                             .dropped = {"<|begin|>assistant", "<|content|>", "<|end|>"},
                             .section_open = {"<|tool_calls|>"},
                             .section_close = {"<|calls|>"},
                             .calls = {{.open = "<|tool_call:begin|>",
                                        .id_close = "<|tool_call:name|>",
                                        .name_end = "<|tool_call:args|>",
                                        .body = HTH_BODY_ARGUMENTS,
                                        .close = {"<|tool_call:end|>"}}}},
    [HEARTH_OUTPUT_LFM2] =
        {THINK, .calls = {{.open = "<|tool_call_start|>", .body = HTH_BODY_PYTHON, .close = {"<|tool_call_end|>"}}}},
};

const hth_output_syntax *hth_output_syntax_of(hearth_output_format format) {
    assert((unsigned)format < HEARTH_OUTPUT_FORMAT_COUNT);
    return &syntaxes[format];
}

static const char *const names[] = {
#define X(name, text) text,
    HEARTH_OUTPUT_FORMAT_LIST(X)
#undef X
};

const char *hearth_output_format_name(hearth_output_format format) {
    return (unsigned)format < HEARTH_OUTPUT_FORMAT_COUNT ? names[format] : "";
}

hearth_status hearth_output_format_find(const char *name, hearth_output_format *out, hearth_error *err) {
    char all[384];
    size_t at = 0;
    for (int i = 0; i < HEARTH_OUTPUT_FORMAT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (hearth_output_format)i;
            return HEARTH_OK;
        }
        size_t size = strlen(names[i]);
        assert(at + size + 2 < sizeof all);
        all[at++] = ' ';
        memcpy(all + at, names[i], size);
        at += size;
    }
    all[at] = 0;
    return hth_fail(err, HEARTH_NOT_FOUND, "no output format is called \"%s\"; there are:%s", name, all);
}

/* A template that holds all of a row's texts writes the row's format; the first such row counts. */
static const struct {
    const char *texts[2];
    hearth_output_format format;
} signs[] = {
    {{"<|channel|>", "<|message|>"}, HEARTH_OUTPUT_HARMONY},
    {{"<|tool_call>", "call:"}, HEARTH_OUTPUT_GEMMA4},
    {{"[TOOL_CALLS]"}, HEARTH_OUTPUT_MISTRAL},
    {{"[THINK]"}, HEARTH_OUTPUT_MISTRAL},
    {{"<｜tool▁calls▁begin｜>"}, HEARTH_OUTPUT_DEEPSEEK},
    {{"｜DSML｜"}, HEARTH_OUTPUT_DEEPSEEK_DSML},
    {{"<|tool_calls_section_begin|>"}, HEARTH_OUTPUT_KIMI},
    {{"<minimax:tool_call>"}, HEARTH_OUTPUT_MINIMAX},
    {{"]<]minimax[>[", "<invoke name="}, HEARTH_OUTPUT_MINIMAX_M3},
    {{"<|open|>", "<|close|>"}, HEARTH_OUTPUT_KIMI_K3},
    {{"<atem:function_calls>", "<|message|>"}, HEARTH_OUTPUT_ATEM},
    {{"<tool_sep{}>", ":opensource"}, HEARTH_OUTPUT_HY3},
    {{"<tool_sep:opensource>"}, HEARTH_OUTPUT_HY3},
    {{"<|tool_call:begin|>", "<|tool_call:args|>"}, HEARTH_OUTPUT_SOLAR},
    {{"<seed:tool_call>"}, HEARTH_OUTPUT_SEED},
    {{"<arg_key>"}, HEARTH_OUTPUT_GLM},
    {{"<function=", "<parameter="}, HEARTH_OUTPUT_QWEN_XML},
    {{"<function="}, HEARTH_OUTPUT_FUNCTIONARY},
    {{"<tool_calls>", "</tool_calls>"}, HEARTH_OUTPUT_APRIEL},
    {{"<tool_call>", "</tool_call>"}, HEARTH_OUTPUT_HERMES},
    {{"<|function_call|>"}, HEARTH_OUTPUT_GIGACHAT},
    {{"<function name=", "<param name="}, HEARTH_OUTPUT_MINICPM},
    {{"<|START_ACTION|>"}, HEARTH_OUTPUT_COMMAND_R},
    {{"<|tools_prefix|>"}, HEARTH_OUTPUT_APERTUS},
    {{"<|tool_call_start|>"}, HEARTH_OUTPUT_LFM2},
    {{"<|tool_list_start|>"}, HEARTH_OUTPUT_LFM2},
    {{"<|tool_call|>"}, HEARTH_OUTPUT_GRANITE},
    {{"<TOOLCALL>"}, HEARTH_OUTPUT_NEMOTRON},
    {{"<|python_tag|>"}, HEARTH_OUTPUT_LLAMA3},
    {{"<|start_header_id|>", "\"parameters\": "}, HEARTH_OUTPUT_LLAMA3},
};

hearth_output_format hearth_output_format_detect(const char *chat_template, size_t size) {
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        bool all = true;
        for (size_t k = 0; k < 2 && all && signs[i].texts[k] != NULL; k++)
            all = memmem(chat_template, size, signs[i].texts[k], strlen(signs[i].texts[k])) != NULL;
        if (all) return signs[i].format;
    }
    return HEARTH_OUTPUT_PLAIN;
}

int hearth_output_prompt_opens_reasoning(hearth_output_format format, const char *prompt, size_t size) {
    if ((unsigned)format >= HEARTH_OUTPUT_FORMAT_COUNT || syntaxes[format].think_open == NULL) return 0;
    const char *open = syntaxes[format].think_open;
    size_t open_size = strlen(open);
    while (size > 0 && memchr(" \t\r\n", prompt[size - 1], 4) != NULL) size--;
    return size >= open_size && memcmp(prompt + size - open_size, open, open_size) == 0;
}
