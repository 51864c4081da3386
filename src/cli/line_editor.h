/* Lines from a terminal, edited as they are typed, with a history; or from a pipe or file, as they are. */
#ifndef HTH_CLI_LINE_EDITOR_H
#define HTH_CLI_LINE_EDITOR_H

#include <stdbool.h>

#include "cli/input.h"

typedef enum hth_line_status {
    HTH_LINE_READ,
    HTH_LINE_END,            /* no more lines: Ctrl-D, the end of a file */
    HTH_LINE_FAILED,         /* why is printed */
    HTH_LINE_CLEARED,        /* Ctrl-C, and what had been typed is gone */
    HTH_LINE_CLEARED_NOTHING /* Ctrl-C, and nothing had been typed */
} hth_line_status;

typedef struct hth_line_editor hth_line_editor;

/* terminal: standard input and output are terminals; else standard input is read plainly. history: a file that the
 * lines of this and earlier sessions are kept in; NULL: they are forgotten at the end. The answer is an exit status;
 * why is printed. hth_interrupt_watch comes first. */
int hth_line_editor_open(bool terminal, const char *history, hth_line_editor **out);
void hth_line_editor_close(hth_line_editor **editor); /* NULL is ignored */

/* The next line, without its end; *line is valid until the next call. It can hold line breaks when it was pasted. One
 * of standard input with more than HTH_MOST_BY_HAND bytes is refused. `prompt` is shown only on a terminal; `typed`
 * (NULL: nothing) stands in the line as if it had been typed. */
hth_line_status hth_line_editor_read(hth_line_editor *editor, const char *prompt, const char *typed, hth_text *line);
/* Put a message into the history. */
void hth_line_editor_remember(hth_line_editor *editor, const char *text);

#endif
