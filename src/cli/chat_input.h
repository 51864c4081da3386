/* What a user of a chat says: a message, which may go over several lines, or a command. */
#ifndef HTH_CLI_CHAT_INPUT_H
#define HTH_CLI_CHAT_INPUT_H

#include "cli/line_editor.h"

typedef enum hth_chat_input_kind {
    HTH_INPUT_MESSAGE,
    HTH_INPUT_COMMAND,   /* a line that begins with one '/' (two are a message that begins with one); text: behind it */
    HTH_INPUT_NOTHING,   /* blanks only, or Ctrl-C ended what had been begun */
    HTH_INPUT_INTERRUPT, /* Ctrl-C, and nothing had been begun */
    HTH_INPUT_END,
    HTH_INPUT_FAILED /* why is printed */
} hth_chat_input_kind;

typedef struct hth_chat_input {
    hth_chat_input_kind kind;
    hth_text text; /* NUL-terminated; the caller's to free */
} hth_chat_input;

/* The next one. A line that ends in a backslash goes on in the next; between lines that begin and end with three
 * quotation marks, all is the message. typed as in hth_line_editor_read. */
void hth_chat_input_read(hth_line_editor *editor, const char *typed, hth_chat_input *out);

#endif
