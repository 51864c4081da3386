/* Which positions of a chat are kept to come back to. A model with recurrent state goes back only to marks, and the
 * engine keeps a few of them (option mark-slots): each turn leaves some, and the least useful go.
 *
 * Worth most: where a user's message begins (to take it back, or to go back several turns), the newer the more, and
 * the first of all, which stands behind the system message; then the ends of prompts, from which another answer starts.
 */
#ifndef HTH_CLI_CHAT_MARKS_H
#define HTH_CLI_CHAT_MARKS_H

#include <stdbool.h>

#include "hearth/engine.h"

typedef enum hth_mark_kind { HTH_MARK_PROMPT, HTH_MARK_MESSAGE, HTH_MARK_FIRST_MESSAGE } hth_mark_kind;

/* A position that a prompt offers. */
typedef struct hth_chat_mark {
    int64_t position, id; /* id: of the mark that the engine keeps there, 0: none */
    hth_mark_kind kind;
} hth_chat_mark;

/* Which of `count` marks to leave, at most `room`, by increasing position: those that are worth most stay in front, in
 * order; the answer is how many. */
size_t hth_chat_marks_choose(hth_chat_mark *marks, size_t count, size_t room);

/* The marks that are kept. */
typedef struct hth_chat_marks {
    hth_chat_mark *kept; /* [slots] */
    size_t count, slots;
} hth_chat_marks;

/* Make room for those of `wanted` (by increasing position, at most slots) that are not kept: drop marks that are not on
 * the way of the tokens, then the least useful, never the one that a sync to the tokens would start from. The answer is
 * how many of `wanted` there is room for now: they are chosen and in front. */
size_t hth_chat_marks_make_room(hth_chat_marks *m, hearth_session *session, hearth_engine *engine,
                                const hearth_token *tokens, int64_t count, hth_chat_mark *wanted, size_t n_wanted);
/* Note what a sync has left. */
void hth_chat_marks_note(hth_chat_marks *m, const hth_chat_mark *left, size_t count);
void hth_chat_marks_drop_all(hth_chat_marks *m, hearth_engine *engine);

#endif
