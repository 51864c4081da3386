/* A chat with a model: what its parts share. */
#ifndef HTH_CLI_CHAT_H
#define HTH_CLI_CHAT_H

#include "cli/chat_display.h"
#include "cli/chat_marks.h"
#include "cli/chat_prompt.h"
#include "cli/choosing.h"
#include "cli/generate.h"
#include "cli/line_editor.h"
#include "cli/model.h"

/* What an answer took. */
typedef struct hth_chat_answer {
    int64_t prompt_tokens, kept, computed, generated;
    double prompt_ms, first_token_ms, decode_ms;
    int64_t decoded;
    hth_stop stop;
} hth_chat_answer;

/* chat_free copes with any part of it missing. */
typedef struct hth_chat {
    hth_args args;
    hth_choosing choosing;
    char path[HTH_MAX_PATH];
    int64_t most; /* tokens of an answer */
    bool interactive;
    hth_chat_template template;
    hearth_tokenizer *own_tokenizer; /* until the engine has it */
    const hearth_tokenizer *tokenizer;
    hearth_engine *engine;
    hearth_session *session;
    hearth_detokenizer *detokenizer;
    hth_line_editor *editor;
    hth_chat_display display;
    int64_t context;
    int64_t seed, drawn; /* of the first answer; answers so far */
    hth_conversation conversation;
    hth_pasts pasts;
    hth_chat_marks marks;
    hearth_token *tokens; /* room for an answer */
    hth_text withdrawn;   /* the message that was taken back last; NUL-terminated, or NULL */
    bool unanswered;      /* it was taken back because there was no answer */
    bool editing;         /* it is to stand in the next line */
    hth_chat_answer last;
    int64_t answers;
} hth_chat;

/* Answer the conversation, which ends with a user's message or a tool's result, and append the answer. When there is
 * none, because it was stopped before it began or could not be made, that message is taken out of the conversation, and
 * a user's is kept as withdrawn. The answer is an exit status; HTH_EXIT_OK also when it was stopped. */
int hth_chat_turn(hth_chat *c);

/* On a terminal: which call of the last answer waits for its result, if one does. */
void hth_chat_say_call(const hth_chat *c);

/* Keep the first `count` messages of the conversation; and keep the text of the next as withdrawn. */
void hth_chat_cut(hth_chat *c, size_t count);
void hth_chat_withdraw(hth_chat *c, size_t count);
/* Where the last message is that an answer can follow, a user's or a tool's; the number of messages when there is
 * none. */
size_t hth_chat_last_said(const hth_chat *c);

typedef enum hth_chat_next { HTH_CHAT_GO_ON, HTH_CHAT_ANSWER, HTH_CHAT_QUIT, HTH_CHAT_FAILED } hth_chat_next;

/* Do what a line that began with '/' says; `line` is what stands behind it. */
hth_chat_next hth_chat_command(hth_chat *c, const char *line);

#endif
