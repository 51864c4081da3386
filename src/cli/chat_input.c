#include "cli/chat_input.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

static const char quotes[] = "\"\"\"", first_prompt[] = "> ", next_prompt[] = ". ";
enum { QUOTES = sizeof quotes - 1 };

/* False with a message when it cannot. */
static bool append(hth_text *text, const char *data, size_t size) {
    if (size > HTH_MOST_BY_HAND - text->size) {
        hth_complain("the message has more than %zu bytes", HTH_MOST_BY_HAND);
        return false;
    }
    char *grown = realloc(text->data, text->size + size + 1);
    if (!grown) {
        hth_out_of_memory();
        return false;
    }
    memcpy(grown + text->size, data, size);
    text->data = grown;
    text->size += size;
    grown[text->size] = '\0';
    return true;
}

static size_t without_blanks(const char *data, size_t size) {
    while (size > 0 && (data[size - 1] == ' ' || data[size - 1] == '\t')) size--;
    return size;
}

/* Whether the text ends with the quotation marks; *size is then what is in front of them. */
static bool ends_block(const char *data, size_t *size) {
    size_t n = without_blanks(data, *size);
    if (n < QUOTES || memcmp(data + n - QUOTES, quotes, QUOTES) != 0) return false;
    *size = n - QUOTES;
    return true;
}

static void fail(hth_chat_input *out, hth_chat_input_kind kind) {
    free(out->text.data);
    *out = (hth_chat_input){.kind = kind};
}

/* A block whose first line, without its quotation marks, is `line`. */
static void read_block(hth_line_editor *editor, hth_text line, hth_chat_input *out) {
    for (bool first = true;; first = false) {
        size_t size = line.size;
        bool over = ends_block(line.data, &size);
        bool blank = (first || over) && without_blanks(line.data, size) == 0; /* the lines of the quotation marks */
        if ((!first && !blank && out->text.size > 0 && !append(&out->text, "\n", 1)) ||
            (!blank && !append(&out->text, line.data, size)) || !append(&out->text, "", 0)) {
            fail(out, HTH_INPUT_FAILED);
            return;
        }
        if (over) return;
        switch (hth_line_editor_read(editor, next_prompt, NULL, &line)) {
        case HTH_LINE_READ: break;
        case HTH_LINE_END:
            hth_complain("the message that \"\"\" began has no end");
            fail(out, HTH_INPUT_FAILED);
            return;
        case HTH_LINE_FAILED: fail(out, HTH_INPUT_FAILED); return;
        case HTH_LINE_CLEARED:
        case HTH_LINE_CLEARED_NOTHING: fail(out, HTH_INPUT_NOTHING); return;
        }
    }
}

static void read_lines(hth_line_editor *editor, hth_text line, hth_chat_input *out) {
    for (;;) {
        bool more = line.size > 0 && line.data[line.size - 1] == '\\';
        if (!append(&out->text, line.data, line.size - more) || (more && !append(&out->text, "\n", 1))) {
            fail(out, HTH_INPUT_FAILED);
            return;
        }
        if (!more) return;
        switch (hth_line_editor_read(editor, next_prompt, NULL, &line)) {
        case HTH_LINE_READ: break;
        case HTH_LINE_END: return;
        case HTH_LINE_FAILED: fail(out, HTH_INPUT_FAILED); return;
        case HTH_LINE_CLEARED:
        case HTH_LINE_CLEARED_NOTHING: fail(out, HTH_INPUT_NOTHING); return;
        }
    }
}

static bool is_blank(hth_text text) {
    for (size_t i = 0; i < text.size; i++)
        if (!strchr(" \t\r\n", text.data[i]) || !text.data[i]) return false;
    return true;
}

void hth_chat_input_read(hth_line_editor *editor, const char *typed, hth_chat_input *out) {
    hth_text line;
    *out = (hth_chat_input){.kind = HTH_INPUT_MESSAGE};
    switch (hth_line_editor_read(editor, first_prompt, typed, &line)) {
    case HTH_LINE_READ: break;
    case HTH_LINE_END: fail(out, HTH_INPUT_END); return;
    case HTH_LINE_FAILED: fail(out, HTH_INPUT_FAILED); return;
    case HTH_LINE_CLEARED: fail(out, HTH_INPUT_NOTHING); return;
    case HTH_LINE_CLEARED_NOTHING: fail(out, HTH_INPUT_INTERRUPT); return;
    }
    if (line.size >= QUOTES && memcmp(line.data, quotes, QUOTES) == 0) {
        read_block(editor, (hth_text){line.data + QUOTES, line.size - QUOTES}, out);
    } else if (line.size > 0 && line.data[0] == '/' && !(line.size > 1 && line.data[1] == '/')) {
        out->kind = HTH_INPUT_COMMAND;
        if (!append(&out->text, line.data + 1, without_blanks(line.data, line.size) - 1)) fail(out, HTH_INPUT_FAILED);
    } else {
        size_t escape = line.size > 0 && line.data[0] == '/';
        read_lines(editor, (hth_text){line.data + escape, line.size - escape}, out);
    }
    if (out->kind == HTH_INPUT_MESSAGE && is_blank(out->text)) fail(out, HTH_INPUT_NOTHING);
}
