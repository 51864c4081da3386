/* Chat templates: from a conversation to the text of a prompt. Usable without an engine.
 *
 * A template is the Jinja text that models carry (tokenizer.chat_template), read once and rendered any number of times,
 * with the settings of transformers' apply_chat_template. What it cannot do is refused by name, with line and column.
 *
 * Threads: a template is read-only once created and may be used by any number of threads. A rendering belongs to its
 * owner.
 *
 * Limits: whatever the template and the request are, creating and rendering end within the limits on steps, time,
 * memory and output, and use a bounded C stack.
 */
#ifndef HEARTH_TEMPLATE_H
#define HEARTH_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "hearth/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_template hearth_template;

/* Read a template: `size` bytes of UTF-8, not kept. HEARTH_BAD_FILE or HEARTH_UNSUPPORTED with line and column. */
HEARTH_API hearth_status hearth_template_create(const char *text, size_t size, hearth_template **out,
                                                hearth_error *err);
/* NULL is ignored; *chat_template becomes NULL. */
HEARTH_API void hearth_template_free(hearth_template **chat_template);

/* 1 when the template's text has a variable of this name (whether it gets so far as to read it is another matter): what
 * it does not name has no effect. */
HEARTH_API int hearth_template_names(const hearth_template *chat_template, const char *name);

/* A variable that does not come from the request: a text that is the model's and not the user's, such as bos_token; or
 * a value in JSON, whose strings are content as the request's are. */
typedef struct hearth_template_variable {
    const char *name, *text; /* NUL-terminated UTF-8 */
    int is_json;
} hearth_template_variable;

/* Zero is the default of each. */
typedef struct hearth_template_options {
    const hearth_template_variable *variables; /* used where the request does not have one of that name */
    size_t n_variables;
    const char *now;     /* what strftime_now prints: local time as "2024-07-26T12:30:00"; NULL: the system's clock */
    uint64_t max_steps;  /* 50 million */
    uint64_t max_ms;     /* 10,000 */
    uint64_t max_memory; /* bytes at any one time: 512 MiB */
    uint64_t max_output; /* bytes: 64 MiB */
    int marks;           /* message starts to look for, the newest first, at one more rendering each; -1: none; 32 */
} hearth_template_options;

/* A stretch of the text that is all the template's, or all content of the request. Where text of control tokens is
 * content, it is not to become those tokens: hearth_tokenizer_encode_parts keeps them apart. */
typedef struct hearth_template_segment {
    size_t begin, end; /* bytes */
    int content;
} hearth_template_segment;

/* Where the text begins to depend on a message: what the text has in common with that of the messages before it.
 * stable: the text of those messages is wholly a prefix of this text, so a prompt that ended there is continued. A
 * template that rewrites what it wrote before (thoughts that it strips from old answers) leaves a start that is not. */
typedef struct hearth_template_mark {
    size_t message; /* its number; the number of messages: the generation prompt */
    size_t offset;  /* bytes */
    int stable;
} hearth_template_mark;

typedef struct hearth_rendering {
    const char *text; /* UTF-8, not NUL-terminated */
    size_t size;
    const hearth_template_segment *segments; /* all of the text, in order, kinds in turn */
    size_t n_segments;
    /* By message, and so by offset. Left out: those whose messages the template refuses, and the oldest ones when a
     * limit was passed on the way to them. */
    const hearth_template_mark *marks;
    size_t n_marks;
    size_t n_messages;
} hearth_rendering;

/* Render a request: `size` bytes of JSON, an object whose members are the template's variables: messages (required, an
 * array of objects, each with a role that is usual or that the template names), tools, add_generation_prompt and any
 * other. An empty tool_calls of a message counts as none. options may be NULL.
 *
 * The rendering is the caller's, to be released with hearth_rendering_free; on failure *out is NULL.
 * HEARTH_BAD_ARGUMENT names what is wrong with the request or with what the template does with it; HEARTH_OVER_BUDGET
 * the limit that was passed; HEARTH_REFUSED: the template raised an exception, and the text is its own. */
HEARTH_API hearth_status hearth_template_render(const hearth_template *chat_template, const char *request, size_t size,
                                                const hearth_template_options *options, hearth_rendering **out,
                                                hearth_error *err);
/* NULL is ignored; *rendering becomes NULL. */
HEARTH_API void hearth_rendering_free(hearth_rendering **rendering);

#ifdef __cplusplus
}
#endif
#endif
