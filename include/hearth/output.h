/* What a model writes, taken apart while it is written: reasoning, content and tool calls.
 *
 * A parser is fed the text of one answer as it arrives, cut anywhere, even inside a character or a marker, and reports
 * what each piece turned out to be. The pieces that it reports, put together, do not depend on the cuts. docs/output.md
 * describes the formats and what becomes of text that fits none of them: nothing is ever lost.
 *
 * The markers of many models are control tokens: feed a detokenizer's text with `special` on, and leave out the token
 * that ended the generation.
 *
 * Threads: a parser belongs to one stream and one thread at a time. The other functions may be called from any.
 */
#ifndef HEARTH_OUTPUT_H
#define HEARTH_OUTPUT_H

#include <stddef.h>

#include "hearth/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formats of reasoning and tool calls: name of the enum, name for users, whose models write it. */
#define HEARTH_OUTPUT_FORMAT_LIST(X)                                                                                   \
    X(PLAIN, "plain")       /* <think> at the start, no tool calls */                                                  \
    X(HERMES, "hermes")     /* Hermes 2/3, Qwen 2.5, Qwen3, QwQ, Granite 4: JSON in <tool_call> */                     \
    X(QWEN_XML, "qwen-xml") /* Qwen3-Coder, Qwen3.5, Nemotron 3, StepFun 3.5: <function=...><parameter=...> */         \
    X(SEED, "seed")         /* Seed-OSS: the same inside <seed:tool_call> */                                           \
    X(GLM, "glm")           /* GLM 4.5 and later: <arg_key>, <arg_value> */                                            \
    X(LLAMA3, "llama3")     /* Llama 3.x: a message that is a JSON object; <|python_tag|> */                           \
    X(MISTRAL, "mistral")   /* [TOOL_CALLS] before a JSON array, or before NAME[ARGS]{...} */                          \
    X(DEEPSEEK, "deepseek") /* DeepSeek R1, V3, V3.1 */                                                                \
    X(DEEPSEEK_DSML, "deepseek-dsml") /* DeepSeek V3.2, V4 */                                                          \
    X(GEMMA4, "gemma4")               /* Gemma 4: <|channel>thought, <|tool_call>call:NAME{...} */                     \
    X(HARMONY, "harmony")             /* gpt-oss: messages on the channels analysis, commentary, final */              \
    X(KIMI, "kimi")                   /* Kimi K2 */                                                                    \
    X(MINIMAX, "minimax")             /* MiniMax M2 */                                                                 \
    X(FUNCTIONARY, "functionary")     /* Functionary 3.1: <function=NAME>{...}</function> */                           \
    X(GRANITE, "granite")             /* Granite 3, Phi-4-mini: <|tool_call|>[...] */                                  \
    X(NEMOTRON, "nemotron")           /* Nemotron Nano 2: <TOOLCALL>[...]</TOOLCALL> */                                \
    X(COMMAND_R, "command-r")         /* Command R7B, Command A: <|START_ACTION|>[...] */                              \
    X(APERTUS, "apertus")             /* Apertus: <|tools_prefix|>[{"NAME": {...}}] */                                 \
    X(LFM2, "lfm2")                   /* LFM2, LFM2.5: <|tool_call_start|>[f(a='x')] */                                \
    X(APRIEL, "apriel")               /* Apriel, MiniMax M1: <tool_calls>[...]</tool_calls> */                         \
    X(GIGACHAT, "gigachat")           /* GigaChat 3: <|function_call|>{...} */                                         \
    X(MINICPM, "minicpm")             /* MiniCPM 5: <function name="..."><param name="..."> */                         \
    X(KIMI_K3, "kimi-k3")             /* Kimi K3: <|open|>call ...<|sep|><|open|>argument ...<|sep|> */                \
    X(MINIMAX_M3, "minimax-m3")       /* MiniMax M3: elements, each tag behind ]<]minimax[>[ */                        \
    X(ATEM, "atem")                   /* Muse Glimmer: messages to self, user and tools */                             \
    X(HY3, "hy3")                     /* Hunyuan 3: <arg_key:opensource>, <arg_value:opensource> */                    \
    X(SOLAR, "solar")                 /* Solar Open: <|tool_call:begin|>ID<|tool_call:name|>NAME<|tool_call:args|> */

typedef enum hearth_output_format {
#define X(name, text) HEARTH_OUTPUT_##name,
    HEARTH_OUTPUT_FORMAT_LIST(X)
#undef X
        HEARTH_OUTPUT_FORMAT_COUNT
} hearth_output_format;

/* The format's name ("qwen-xml"); never NULL, static storage; "" for a number that is no format. */
HEARTH_API const char *hearth_output_format_name(hearth_output_format format);
/* The format of a name. HEARTH_NOT_FOUND names all that there are. */
HEARTH_API hearth_status hearth_output_format_find(const char *name, hearth_output_format *out, hearth_error *err);
/* The format that models of a chat template write, known by the markers in the template's text; PLAIN when there are
 * none. */
HEARTH_API hearth_output_format hearth_output_format_detect(const char *chat_template, size_t size);
/* 1 when a rendered prompt ends inside reasoning that it has opened itself ("<think>" at its end, say), so that the
 * answer begins with reasoning. */
HEARTH_API int hearth_output_prompt_opens_reasoning(hearth_output_format format, const char *prompt, size_t size);

typedef struct hearth_output_options {
    int starts_in_reasoning; /* see hearth_output_prompt_opens_reasoning */
    int keep_reasoning;      /* leave reasoning in the content, markers and all */
    const char *tools;       /* JSON text of the request's tools (OpenAI's array, or Anthropic's), or NULL; copied */
    size_t tools_size;
    size_t max_text;  /* bytes of one answer; 0: 16 MiB. More is HEARTH_TOO_LONG */
    size_t max_calls; /* tool calls of one answer; 0: 256. More stay text, with a fault */
} hearth_output_options;

typedef enum hearth_output_kind {
    HEARTH_OUTPUT_CONTENT,
    HEARTH_OUTPUT_REASONING,
    HEARTH_OUTPUT_CALL,      /* a tool call begins: its name */
    HEARTH_OUTPUT_ARGUMENTS, /* more of its arguments, a JSON object in the end */
    HEARTH_OUTPUT_CALL_END   /* it is complete, or (with a fault) withdrawn: its text follows as content */
} hearth_output_kind;

/* Something new. `text` is valid until the callback returns. Content, reasoning and arguments come in whole UTF-8
 * characters as far as the model wrote UTF-8; arguments always are. */
typedef struct hearth_output_event {
    hearth_output_kind kind;
    size_t call; /* of a call's events: its number, from 0 */
    const char *text;
    size_t size;
    const char *id; /* CALL_END: the id that the model gave the call, often none (size 0) */
    size_t id_size;
    const char *fault; /* CONTENT: the text is a broken call's, and this is what is wrong with it; CALL_END: withdrawn;
                          else NULL. Static storage. */
} hearth_output_event;

typedef void (*hearth_output_sink)(void *context, const hearth_output_event *event);

typedef struct hearth_output_parser hearth_output_parser;

/* A parser at the start of an answer. options may be NULL. HEARTH_BAD_ARGUMENT when there is no such format or `tools`
 * is not JSON; HEARTH_NO_MEMORY. */
HEARTH_API hearth_status hearth_output_parser_create(hearth_output_format format, const hearth_output_options *options,
                                                     hearth_output_parser **out, hearth_error *err);
HEARTH_API void hearth_output_parser_free(hearth_output_parser **parser); /* NULL is ignored; *parser becomes NULL */

/* Feed text; `sink` (may be NULL) is called for each event before this returns, and must not call back into the parser.
 * Text that could still become a marker is held back. Time is linear in the size of the answer, however it is cut.
 * HEARTH_TOO_LONG (nothing of this text was taken, and the answer so far can be finished), HEARTH_NO_MEMORY (the parser
 * can only be freed), HEARTH_BAD_ARGUMENT after finish. */
HEARTH_API hearth_status hearth_output_parser_feed(hearth_output_parser *parser, const char *text, size_t size,
                                                   hearth_output_sink sink, void *context, hearth_error *err);

/* Where an answer stands after what was fed, for a caller that treats its content apart from the rest. */
typedef enum hearth_output_place {
    HEARTH_OUTPUT_BEFORE_CONTENT, /* there is no content yet, and what comes next is, unless it is a marker */
    HEARTH_OUTPUT_IN_CONTENT,     /* there is some */
    HEARTH_OUTPUT_ELSEWHERE       /* none yet: in reasoning, in a header, in a call, or in what may be a marker */
} hearth_output_place;

/* Where it stands; before finish. */
HEARTH_API hearth_output_place hearth_output_parser_place(const hearth_output_parser *parser);
/* Whether content can have a text in front of it that is none: 2 when it is a marker that opens reasoning, a header, a
 * call (if the parser was given tools) or nothing; 1 when it is the beginning of one; else 0. */
HEARTH_API int hearth_output_parser_marks(const hearth_output_parser *parser, const char *text, size_t size);

typedef struct hearth_output_call {
    const char *name, *arguments, *id;
    size_t name_size, arguments_size, id_size;
    const char *fault; /* NULL: complete, and `arguments` is a JSON object. Else it was withdrawn: what was wrong */
} hearth_output_call;

/* A part of the answer's text. */
typedef struct hearth_output_span {
    hearth_output_kind kind; /* CONTENT, REASONING or CALL */
    size_t offset, size;
    size_t call;       /* CALL: its number. Its text is all that the model wrote for it, markers included */
    const char *fault; /* CONTENT: of a broken call; else NULL */
} hearth_output_span;

/* The whole answer. Everything belongs to the parser and lives until it is freed. The spans are in order and do not
 * overlap; what lies between them is markers and the white space next to them. Content is the text of the content
 * spans one after another, and so is reasoning. */
typedef struct hearth_output_result {
    const char *text, *content, *reasoning;
    size_t text_size, content_size, reasoning_size;
    const hearth_output_call *calls;
    size_t call_count;
    const hearth_output_span *spans;
    size_t span_count;
    size_t faults;      /* broken calls, among `calls` or not */
    int reasoning_open; /* the answer ended inside its reasoning */
} hearth_output_result;

/* The answer ends here: report what was held back, then fill *out. HEARTH_BAD_ARGUMENT when it has ended before;
 * HEARTH_NO_MEMORY. */
HEARTH_API hearth_status hearth_output_parser_finish(hearth_output_parser *parser, hearth_output_sink sink,
                                                     void *context, hearth_output_result *out, hearth_error *err);

#ifdef __cplusplus
}
#endif
#endif
