#include "cli/chat_display.h"

#include <string.h>

#include "base/options.h"
#include "base/utf8.h"
#include "cli/say.h"

static const char dim[] = "\033[2m", plain[] = "\033[0m";

hth_chat_display hth_chat_display_make(void) {
    bool terminal = hth_out_is_terminal();
    return (hth_chat_display){.terminal = terminal, .colours = terminal && hth_environment_has_colours(), .part = -1};
}

static void out(hth_chat_display *d, const char *data, size_t size) {
    if (size == 0) return;
    if (!hth_out(data, size)) d->failed = true;
    d->in_line = data[size - 1] != '\n';
}

static void out_text(hth_chat_display *d, const char *text) {
    out(d, text, strlen(text));
}

/* Nothing that a model writes may move a terminal's cursor or change its state. */
static void out_harmless(hth_chat_display *d, const char *text, size_t size) {
    if (!d->terminal) {
        out(d, text, size);
        return;
    }
    size_t shown = 0;
    for (size_t i = 0; i < size;) {
        uint32_t c = 0;
        int n = hth_utf8_decode(text + i, size - i, &c);
        bool harmless = n > 0 && (!hth_is_control(c) || c == '\n' || c == '\t');
        if (!harmless) {
            out(d, text + shown, i - shown);
            out_text(d, "\xEF\xBF\xBD");
        }
        i += n > 0 ? (size_t)n : 1;
        if (!harmless) shown = i;
    }
    out(d, text + shown, size - shown);
}

static void end_line(hth_chat_display *d) {
    if (d->in_line) out_text(d, "\n");
}

static void set_dim(hth_chat_display *d, bool on) {
    if (d->colours && !hth_out(on ? dim : plain, strlen(on ? dim : plain))) d->failed = true;
}

/* Go from one part of an answer to another. */
static void change_part(hth_chat_display *d, int part) {
    if (part == d->part) return;
    if (d->part == HEARTH_OUTPUT_REASONING) {
        set_dim(d, false);
        end_line(d);
        out_text(d, d->colours ? "\n" : "[end of reasoning]\n");
    } else if (d->part != -1) {
        end_line(d);
    }
    d->part = part;
    if (part != HEARTH_OUTPUT_REASONING) return;
    if (d->colours) set_dim(d, true);
    else out_text(d, "[reasoning]\n");
}

void hth_chat_display_begin(hth_chat_display *d) {
    d->part = -1;
    d->in_line = false;
}

void hth_chat_display_event(void *context, const hearth_output_event *event) {
    hth_chat_display *d = context;
    if (d->silent) return;
    switch (event->kind) {
    case HEARTH_OUTPUT_REASONING:
        if (!d->terminal) return; /* what reads a pipe wants the answer */
        change_part(d, HEARTH_OUTPUT_REASONING);
        break;
    case HEARTH_OUTPUT_CONTENT: change_part(d, HEARTH_OUTPUT_CONTENT); break;
    case HEARTH_OUTPUT_CALL:
        change_part(d, -1);
        d->part = HEARTH_OUTPUT_CALL;
        out_text(d, "[call] ");
        out_harmless(d, event->text, event->size);
        out_text(d, " ");
        return;
    case HEARTH_OUTPUT_ARGUMENTS: break;
    case HEARTH_OUTPUT_CALL_END:
        if (event->fault) {
            out_text(d, " [broken: ");
            out_text(d, event->fault);
            out_text(d, "]");
        }
        end_line(d);
        return;
    }
    out_harmless(d, event->text, event->size);
}

void hth_chat_display_end(hth_chat_display *d) {
    if (d->part == HEARTH_OUTPUT_REASONING) set_dim(d, false);
    if (!d->silent) end_line(d);
}
