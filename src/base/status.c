#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *hearth_status_text(hearth_status status) {
    switch (status) {
#define X(name, text)                                                                                                  \
    case HEARTH_##name: return text;
        HEARTH_STATUS_LIST(X)
#undef X
    case HEARTH_STATUS_COUNT: break;
    }
    return "unknown status";
}

const char *hearth_status_name(hearth_status status) {
    switch (status) {
#define X(name, text)                                                                                                  \
    case HEARTH_##name: return #name;
        HEARTH_STATUS_LIST(X)
#undef X
    case HEARTH_STATUS_COUNT: break;
    }
    return "UNKNOWN";
}

/* Length in bytes of the well-formed UTF-8 character at s, or 0. */
static int utf8_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    int n = s[0] >= 0xC2 && s[0] <= 0xDF ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    return n;
}

static void make_printable(char *text) {
    for (unsigned char *s = (unsigned char *)text; *s;) {
        int n = utf8_length(s);
        if (n == 0 || *s < 0x20 || *s == 0x7F) {
            *s++ = '?';
            continue;
        }
        s += n;
    }
}

hearth_status hth_fail(hearth_error *err, hearth_status status, const char *format, ...) {
    if (!err) return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    make_printable(err->text);
    return status;
}

hearth_status hth_raise(const hearth_error *kept, hearth_error *err) {
    if (err && kept->status != HEARTH_OK) *err = *kept;
    return kept->status;
}
