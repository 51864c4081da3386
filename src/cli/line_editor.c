#include "cli/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

enum { HISTORY = 1000 };

struct hth_line_editor {
    bool terminal;
    char *line; /* the latest */
    size_t capacity;
    /* of a terminal */
    EditLine *el;
    HistoryW *history;
    const char *file;
    const wchar_t *prompt;
    wchar_t *typed; /* still to be put into the line */
    locale_t locale, before;
};

/* ---- Characters ---- */

static wchar_t *widen(const char *text) {
    size_t size = strlen(text), n = 0;
    wchar_t *wide = malloc((size + 1) * sizeof *wide);
    if (!wide) return NULL;
    for (size_t i = 0; i < size;) {
        uint32_t c = 0xFFFD;
        int length = hth_utf8_decode(text + i, size - i, &c);
        wide[n++] = (wchar_t)c;
        i += length > 0 ? (size_t)length : 1;
    }
    wide[n] = L'\0';
    return wide;
}

static size_t encode_character(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(0xF00 >> n | c);
    return n;
}

/* One byte of the terminal; false when there is none any more, or Ctrl-C came. */
static bool read_byte(hth_line_editor *e, unsigned char *byte) {
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = hth_interrupt_wake_fd(), .events = POLLIN}};
    while (!hth_interrupted()) {
        if (hth_resize_take()) {
            el_resize(e->el);
            el_wset(e->el, EL_REFRESH);
        }
        if (poll(fds, 2, -1) < 0 && errno != EINTR) return false;
        if (fds[0].revents == 0) continue;
        ssize_t n = read(STDIN_FILENO, byte, 1);
        if (n == 1) return true;
        if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
    }
    return false;
}

/* What the editor calls for each character. Bytes that are no UTF-8 are left out. */
static int read_character(EditLine *el, wchar_t *out) {
    hth_line_editor *e = NULL;
    unsigned char bytes[4];
    uint32_t c;
    el_wget(el, EL_CLIENTDATA, &e);
    if (e->typed) {
        wchar_t *typed = e->typed;
        e->typed = NULL;
        el_winsertstr(el, typed);
        el_wset(el, EL_REFRESH);
        free(typed);
    }
    for (size_t n = 0; read_byte(e, &bytes[n]);) {
        if (hth_utf8_decode(bytes, ++n, &c) > 0) {
            *out = (wchar_t)c;
            return 1;
        }
        bool lead = bytes[0] >= 0xC2 && bytes[0] <= 0xF4;
        if (!lead || n == sizeof bytes || (n > 1 && (bytes[n - 1] & 0xC0) != 0x80)) n = 0;
    }
    return -1;
}

/* ---- Keys ---- */

static const wchar_t paste_end[] = L"\033[201~";

/* A paste that the terminal brackets becomes part of the line, line breaks and all. */
static unsigned char paste(EditLine *el, wint_t key) {
    enum { MAX_PASTE = 1 << 20, END = sizeof paste_end / sizeof *paste_end - 1 };
    size_t size = 0, capacity = 256;
    wchar_t *text = malloc(capacity * sizeof *text), c;
    (void)key;
    while (text && el_wgetc(el, &c) == 1) {
        if (size + 2 > capacity) {
            wchar_t *grown = capacity < MAX_PASTE ? realloc(text, 2 * capacity * sizeof *grown) : NULL;
            if (!grown) break;
            text = grown;
            capacity *= 2;
        }
        text[size++] = c == L'\r' ? L'\n' : c;
        if (size < END || wmemcmp(text + size - END, paste_end, END) != 0) continue;
        size -= END;
        break;
    }
    if (!text) return CC_ERROR;
    size_t kept = 0;
    for (size_t i = 0; i < size; i++)
        if (text[i] == L'\n' || !hth_is_control((uint32_t)text[i])) text[kept++] = text[i];
        else if (text[i] == L'\t') text[kept++] = L' ';
    text[kept] = L'\0';
    el_winsertstr(el, text);
    free(text);
    return CC_REFRESH;
}

static wchar_t *show_prompt(EditLine *el) {
    hth_line_editor *e = NULL;
    el_wget(el, EL_CLIENTDATA, &e);
    return (wchar_t *)e->prompt;
}

/* ---- Open and close ---- */

static bool open_terminal(hth_line_editor *e, const char *history) {
    HistEventW event;
    hth_terminal_keep();
    /* The editor asks the locale what a character is and how wide. The terminal gets UTF-8 whatever the user's is. */
    e->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (e->locale) e->before = uselocale(e->locale);
    e->el = el_init("hearth", stdin, stdout, stderr);
    e->history = history_winit();
    if (!e->el || !e->history) return false;
    el_wset(e->el, EL_CLIENTDATA, e);
    el_wset(e->el, EL_GETCFN, read_character);
    el_wset(e->el, EL_PROMPT, show_prompt);
    el_wset(e->el, EL_EDITOR, L"emacs");
    el_wset(e->el, EL_SIGNAL, 0);
    /* Between lines too, what is typed is neither shown (in the middle of an answer) nor edited by the system. */
    el_wset(e->el, EL_SETTY, L"-x", L"-icanon", L"-echo", NULL);
    el_wset(e->el, EL_ADDFN, L"hearth-paste", L"Take what is pasted", paste);
    el_wset(e->el, EL_BIND, L"\033[200~", L"hearth-paste", NULL);
    el_wset(e->el, EL_BIND, L"\033[1~", L"ed-move-to-beg", NULL); /* Home, End and Delete where the terminal's */
    el_wset(e->el, EL_BIND, L"\033[4~", L"ed-move-to-end", NULL); /* description does not have them */
    el_wset(e->el, EL_BIND, L"\033[3~", L"ed-delete-next-char", NULL);
    el_wset(e->el, EL_BIND, L"^R", L"em-inc-search-prev", NULL);
    el_wset(e->el, EL_HIST, history_w, e->history);
    history_w(e->history, &event, H_SETSIZE, (int)HISTORY);
    history_w(e->history, &event, H_SETUNIQUE, 1);
    e->file = history;
    if (history && access(history, F_OK) == 0 && history_w(e->history, &event, H_LOAD, history) < 0)
        hth_note("the history in %s cannot be read", history);
    return true;
}

int hth_line_editor_open(bool terminal, const char *history, hth_line_editor **out) {
    hth_line_editor *e = *out = calloc(1, sizeof *e);
    if (!e) return hth_out_of_memory();
    e->terminal = terminal;
    if (!terminal || open_terminal(e, history)) return HTH_EXIT_OK;
    hth_complain("cannot edit lines on this terminal");
    hth_line_editor_close(out);
    return HTH_EXIT_FAILED;
}

void hth_line_editor_close(hth_line_editor **editor) {
    hth_line_editor *e = *editor;
    HistEventW event;
    *editor = NULL;
    if (!e) return;
    if (e->file && e->history && history_w(e->history, &event, H_SAVE, e->file) < 0)
        hth_note("the history cannot be written to %s", e->file);
    if (e->history) history_wend(e->history);
    if (e->el) el_end(e->el);
    if (e->terminal) hth_terminal_release();
    if (e->locale) {
        uselocale(e->before);
        freelocale(e->locale);
    }
    free(e->typed);
    free(e->line);
    free(e);
}

/* ---- Lines ---- */

/* Room for `size` bytes of the line. */
static bool make_room(hth_line_editor *e, size_t size) {
    if (size <= e->capacity) return true;
    size_t capacity = size < 256 ? 256 : 2 * size;
    char *grown = realloc(e->line, capacity);
    if (!grown) {
        hth_out_of_memory();
        return false;
    }
    e->line = grown;
    e->capacity = capacity;
    return true;
}

static hth_line_status read_plain(hth_line_editor *e, hth_text *line) {
    size_t size = 0;
    int c;
    errno = 0;
    while ((c = getc_unlocked(stdin)) != EOF && c != '\n') {
        if (size == HTH_MOST_BY_HAND) {
            hth_complain("a line of standard input has more than %zu bytes", size);
            return HTH_LINE_FAILED;
        }
        if (!make_room(e, size + 2)) return HTH_LINE_FAILED;
        e->line[size++] = (char)c;
    }
    if (c == EOF && ferror(stdin)) {
        hth_complain("cannot read standard input: %s", strerror(errno));
        return HTH_LINE_FAILED;
    }
    if (c == EOF && size == 0) return HTH_LINE_END;
    if (!make_room(e, size + 1)) return HTH_LINE_FAILED;
    if (size > 0 && e->line[size - 1] == '\r') size--;
    e->line[size] = '\0';
    *line = (hth_text){e->line, size};
    return HTH_LINE_READ;
}

static bool keep_line(hth_line_editor *e, const wchar_t *wide, size_t count) {
    char *text = malloc(4 * count + 1);
    size_t size = 0;
    if (!text) return false;
    for (size_t i = 0; i < count; i++) size += encode_character((uint32_t)wide[i], text + size);
    if (size > 0 && text[size - 1] == '\n') size--;
    text[size] = '\0';
    free(e->line);
    e->line = text;
    e->capacity = size;
    return true;
}

hth_line_status hth_line_editor_read(hth_line_editor *e, const char *prompt, const char *typed, hth_text *line) {
    if (!e->terminal) return read_plain(e, line);
    wchar_t *wide_prompt = widen(prompt);
    int count = 0;
    e->prompt = wide_prompt ? wide_prompt : L"> ";
    e->typed = typed ? widen(typed) : NULL;
    hth_interrupt_take();
    hth_out("\033[?2004h", 8); /* let the terminal bracket what is pasted */
    const wchar_t *wide = el_wgets(e->el, &count);
    hth_out("\033[?2004l", 8);
    bool read = wide && count > 0 && keep_line(e, wide, (size_t)count);
    const LineInfoW *left = el_wline(e->el);
    bool empty = left->lastchar == left->buffer;
    free(wide_prompt);
    e->prompt = L"";
    if (hth_interrupt_take()) {
        hth_out("\n", 1);
        return empty ? HTH_LINE_CLEARED_NOTHING : HTH_LINE_CLEARED;
    }
    if (!read) return HTH_LINE_END;
    *line = (hth_text){e->line, strlen(e->line)};
    return HTH_LINE_READ;
}

void hth_line_editor_remember(hth_line_editor *e, const char *text) {
    HistEventW event;
    wchar_t *wide = e->terminal ? widen(text) : NULL;
    if (wide && wide[0]) history_w(e->history, &event, H_ENTER, wide);
    free(wide);
}
