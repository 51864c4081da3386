/* UTF-8, one character at a time, from bytes that need not be UTF-8. */
#ifndef HTH_BASE_UTF8_H
#define HTH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length (1..4) of the well-formed character at the start of the `size` bytes at s, and the character itself; 0
 * when there is none: a stray or cut sequence, an overlong form, a surrogate, or beyond U+10FFFF. */
static inline int hth_utf8_decode(const void *s, size_t size, uint32_t *character) {
    const unsigned char *p = (const unsigned char *)s;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (size == 0) return 0;
    if (p[0] < 0x80) {
        *character = p[0];
        return 1;
    }
    int n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || (size_t)n > size) return 0;
    uint32_t c = p[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
    *character = c;
    return n;
}

static inline bool hth_utf8_is_valid(const void *s, size_t size) {
    uint32_t ignored;
    for (size_t i = 0; i < size;) {
        int n = hth_utf8_decode((const unsigned char *)s + i, size - i, &ignored);
        if (n == 0) return false;
        i += (size_t)n;
    }
    return true;
}

/* A character that could move a terminal's cursor, start an escape sequence, or reorder the text around it. */
static inline bool hth_is_control(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

#endif
