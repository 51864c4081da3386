/* The prompt of a turn: the whole conversation, rendered and tokenized.
 *
 * An answer goes into the next prompt with the tokens that the model wrote: its text alone would often become other
 * ones, and what the session holds of it would have to be computed again. A past is such a prompt with its answer, as
 * text and as tokens; where a rendering begins with that text, and a control token of the template comes next, the
 * tokens of the past are the prompt's. Where the template writes an old answer differently (without its thoughts), the
 * text is tokenized, from the newest past that still fits.
 */
#ifndef HTH_CLI_CHAT_PROMPT_H
#define HTH_CLI_CHAT_PROMPT_H

#include "cli/chat_marks.h"
#include "cli/chat_template.h"
#include "cli/conversation.h"

typedef struct hth_past {
    size_t messages; /* that it is made of */
    hth_text text;
    hth_tokens tokens;
} hth_past;

typedef struct hth_pasts {
    hth_past *items;
    size_t count, capacity;
} hth_pasts;

/* Append a prompt with its answer, copied; false: no memory. */
bool hth_pasts_add(hth_pasts *p, size_t messages, hth_text prompt, hth_tokens prompt_tokens, hth_text answer,
                   hth_tokens answer_tokens);
/* Forget those of more than `messages` messages. */
void hth_pasts_cut(hth_pasts *p, size_t messages);
void hth_pasts_free(hth_pasts *p);

typedef struct hth_chat_prompt {
    hearth_rendering *rendering;
    hth_tokens tokens;
    size_t reused;        /* tokens of a past */
    size_t *positions;    /* of the rendering's marks, those in a past left out (0) */
    hth_chat_mark *marks; /* by increasing position */
    size_t n_marks;
} hth_chat_prompt;

/* Whether a token has a text that is shown with control tokens only. */
bool hth_is_control_token(const hearth_tokenizer *tokenizer, hearth_token id);

/* The answer is an exit status; when it is not HTH_EXIT_OK, why is printed. Free it in any case. all_marks: the starts
 * of all messages, and not only the newest. */
int hth_chat_prompt_make(const hth_chat_template *t, const hearth_tokenizer *tokenizer, const hth_conversation *c,
                         const hth_pasts *pasts, bool all_marks, hth_chat_prompt *out);
void hth_chat_prompt_free(hth_chat_prompt *p);

#endif
