/* JSON, one byte at a time: says whether the text so far can still become a JSON value, and what each byte begins or
 * ends. Keeps a bit for each open container and nothing of the text, so it neither allocates nor recurses. */
#ifndef HTH_TEXT_OUTPUT_JSON_H
#define HTH_TEXT_OUTPUT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/output_bytes.h"

enum { HTH_JSON_MAX_DEPTH = 256 };

/* What the last byte did. A string that is a key has events of its own. */
typedef enum hth_json_event {
    HTH_JSON_NOTHING,
    HTH_JSON_OPEN,         /* '{' or '[': depth is the one inside it */
    HTH_JSON_CLOSE,        /* '}' or ']': depth is the one outside it */
    HTH_JSON_KEY_BEGIN,    /* the quote before a key */
    HTH_JSON_KEY_END,      /* the quote after it */
    HTH_JSON_STRING_BEGIN, /* the same of a string that is a value */
    HTH_JSON_STRING_END,
    HTH_JSON_SCALAR /* the first byte of a number, true, false or null */
} hth_json_event;

typedef struct hth_json {
    uint8_t state;
    uint8_t event;
    bool is_key;        /* the string being read is a key */
    bool low_surrogate; /* the \u being read must be the second half of a pair */
    bool too_deep;      /* why a byte was refused */
    uint8_t hex_left;   /* digits that \u still needs */
    uint8_t utf8_left;  /* bytes that the character being read still needs, and the range of the next one */
    uint8_t utf8_low, utf8_high;
    uint16_t hex;
    uint32_t depth;                            /* open containers */
    const char *literal;                       /* what is left of true, false or null */
    uint64_t objects[HTH_JSON_MAX_DEPTH / 64]; /* the container at depth d is an object: bit d - 1 */
} hth_json;

void hth_json_start(hth_json *json);

/* Take one byte. False when no JSON value begins so: not JSON, not UTF-8 inside a string, half a surrogate pair, or
 * deeper than HTH_JSON_MAX_DEPTH. After the end of the value only white space is taken. */
bool hth_json_take(hth_json *json, char byte);

/* The value has ended, or would if no byte followed (a number at top level has no end of its own). */
bool hth_json_is_whole(const hth_json *json);

static inline bool hth_json_in_object(const hth_json *json) {
    return json->depth > 0 && (json->objects[(json->depth - 1) / 64] >> ((json->depth - 1) % 64) & 1) != 0;
}

/* The contents of a JSON string (between its quotes, already known to be well formed), decoded in pieces. */
typedef struct hth_json_decoder {
    uint8_t state;
    uint8_t hex_left;
    uint32_t hex, high;
} hth_json_decoder;

/* Append to `out` what `size` more bytes of the string stand for; false when there is no memory. */
bool hth_json_decode(hth_json_decoder *decoder, const char *text, size_t size, hth_bytes *out);

/* Append `size` bytes as the inside of a JSON string: escaped, and each byte that belongs to no UTF-8 character as
 * U+FFFD. A character must not be cut. False when there is no memory. */
bool hth_json_escape(const char *text, size_t size, hth_bytes *out);

#endif
