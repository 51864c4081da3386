/* The byte alphabet of byte-level BPE: each byte is written as one printable character, so that token texts are text.
 *
 * Bytes that are printable in Latin-1 are the character of the same number; the other 68 are, in order, U+0100 and up.
 */
#ifndef HTH_TEXT_ALPHABET_H
#define HTH_TEXT_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTH_ALPHABET_END 0x144 /* its characters are below */

typedef struct hth_alphabet {
    int16_t byte_of[HTH_ALPHABET_END]; /* of a character; -1: it is not in the alphabet */
} hth_alphabet;

static inline bool hth_alphabet_is_plain(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

static inline void hth_alphabet_init(hth_alphabet *a) {
    unsigned next = 0x100;
    for (unsigned c = 0; c < HTH_ALPHABET_END; c++) a->byte_of[c] = -1;
    for (unsigned byte = 0; byte < 256; byte++) a->byte_of[hth_alphabet_is_plain(byte) ? byte : next++] = (int16_t)byte;
}

/* Write the bytes that a text in the alphabet stands for; out has room for `size` of them. False when a character is
 * not in the alphabet. */
static inline bool hth_alphabet_decode(const hth_alphabet *a, const char *text, size_t size, char *out,
                                       size_t *out_size) {
    const unsigned char *p = (const unsigned char *)text;
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned c = p[i];
        if (c >= 0x80) { /* every character of the alphabet takes at most two bytes */
            if (c < 0xC2 || c > 0xC5 || i + 1 == size || (p[i + 1] & 0xC0) != 0x80) return false;
            c = (c & 0x1F) << 6 | (p[++i] & 0x3F);
        }
        if (c >= HTH_ALPHABET_END || a->byte_of[c] < 0) return false;
        out[count++] = (char)a->byte_of[c];
    }
    *out_size = count;
    return true;
}

#endif
