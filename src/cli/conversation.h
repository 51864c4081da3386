/* A conversation: messages in order, as a chat template's request names them. */
#ifndef HTH_CLI_CONVERSATION_H
#define HTH_CLI_CONVERSATION_H

#include <stdbool.h>

#include "cli/input.h"
#include "hearth/output.h"

typedef enum hth_role { HTH_SYSTEM, HTH_USER, HTH_ASSISTANT, HTH_TOOL } hth_role;

/* "system", "user", "assistant", "tool" */
const char *hth_role_name(hth_role role);

typedef struct hth_call {
    hth_text name, arguments; /* arguments: a JSON object */
    hth_text id;              /* the model's, or one of nine letters and digits */
} hth_call;

typedef struct hth_message {
    hth_role role;
    hth_text content;   /* UTF-8, with room for a NUL */
    hth_text reasoning; /* of an answer; size 0: none */
    hth_call *calls;    /* of tools, by an answer */
    size_t n_calls;
    const hth_call *result_of; /* of a tool's message; in an answer before it */
} hth_message;

typedef struct hth_conversation {
    hth_message *messages;
    size_t count, capacity;
} hth_conversation;

/* Append a copy of the text; or of an answer that was parsed. Not UTF-8 in it becomes U+FFFD. False: no memory, and the
 * conversation is as it was. */
bool hth_conversation_add(hth_conversation *c, hth_role role, const char *text, size_t size);
bool hth_conversation_add_answer(hth_conversation *c, const hearth_output_result *answer);
/* The first call of the last answer that has no result, when nothing but results follows that answer; NULL: none. */
const hth_call *hth_conversation_open_call(const hth_conversation *c);
/* Append the result of that call, which must be there. */
bool hth_conversation_add_result(hth_conversation *c, const char *text, size_t size);
/* The system message, which is the first one, becomes a copy of the text (NULL: there is none any more). */
bool hth_conversation_set_system(hth_conversation *c, const char *text, size_t size);
/* Keep the first `count` messages. */
void hth_conversation_cut(hth_conversation *c, size_t count);
void hth_conversation_free(hth_conversation *c);

/* What a template is given (JSON): all messages, and that an answer comes next. False: no memory. */
bool hth_conversation_request(const hth_conversation *c, hth_text *out);

#endif
