/* An answer as it is shown while it comes: content as it is, reasoning set apart, tool calls named. */
#ifndef HTH_CLI_CHAT_DISPLAY_H
#define HTH_CLI_CHAT_DISPLAY_H

#include <stdbool.h>

#include "hearth/output.h"

typedef struct hth_chat_display {
    bool terminal; /* control characters that the model writes do not reach it, and reasoning is shown */
    bool colours;
    bool silent; /* nothing is shown */
    bool failed; /* standard output cannot be written to */
    /* its own */
    int part; /* what is being shown: a hearth_output_kind, -1: nothing yet */
    bool in_line;
} hth_chat_display;

/* To begin with: what standard output is. */
hth_chat_display hth_chat_display_make(void);
/* An answer begins. */
void hth_chat_display_begin(hth_chat_display *d);
/* A hearth_output_sink; context: the display. */
void hth_chat_display_event(void *context, const hearth_output_event *event);
/* The answer is over: the line ends. */
void hth_chat_display_end(hth_chat_display *d);

#endif
