#include "text/output_json.h"

#include "base/utf8.h"

enum {
    VALUE,        /* a value must begin */
    VALUE_OR_END, /* after '[' */
    KEY_OR_END,   /* after '{' */
    KEY,          /* after a comma in an object */
    COLON,
    AFTER, /* a value has ended inside a container */
    DONE,  /* the top value has ended */
    STRING,
    ESCAPE,
    HEX,
    LOW_BACKSLASH, /* after the first half of a surrogate pair */
    LOW_U,
    LITERAL,
    MINUS, /* numbers: named after what was read last */
    ZERO,
    DIGITS,
    POINT,
    FRACTION,
    EXPONENT,
    SIGN,
    POWER
};

void hth_json_start(hth_json *json) {
    *json = (hth_json){.state = VALUE};
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool value_ended(hth_json *json) {
    json->state = json->depth == 0 ? DONE : AFTER;
    return true;
}

static bool open_container(hth_json *json, bool object) {
    json->too_deep = json->depth == HTH_JSON_MAX_DEPTH;
    if (json->too_deep) return false;
    uint64_t bit = (uint64_t)1 << (json->depth % 64), *word = &json->objects[json->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    json->depth++;
    json->event = HTH_JSON_OPEN;
    json->state = object ? KEY_OR_END : VALUE_OR_END;
    return true;
}

static bool close_container(hth_json *json, char byte) {
    if (byte != (hth_json_in_object(json) ? '}' : ']')) return false;
    json->depth--;
    json->event = HTH_JSON_CLOSE;
    return value_ended(json);
}

static bool begin_string(hth_json *json, bool is_key) {
    json->is_key = is_key;
    json->event = is_key ? HTH_JSON_KEY_BEGIN : HTH_JSON_STRING_BEGIN;
    json->state = STRING;
    return true;
}

static bool begin_scalar(hth_json *json, char byte) {
    json->event = HTH_JSON_SCALAR;
    switch (byte) {
    case 't': json->literal = "rue"; break;
    case 'f': json->literal = "alse"; break;
    case 'n': json->literal = "ull"; break;
    case '-': json->state = MINUS; return true;
    case '0': json->state = ZERO; return true;
    default: json->state = DIGITS; return is_digit(byte);
    }
    json->state = LITERAL;
    return true;
}

static bool begin_value(hth_json *json, char byte) {
    if (byte == '{' || byte == '[') return open_container(json, byte == '{');
    if (byte == '"') return begin_string(json, false);
    return begin_scalar(json, byte);
}

/* A byte of a character beyond ASCII, held to the table of well-formed sequences in the Unicode standard. */
static bool take_utf8(hth_json *json, unsigned char byte) {
    if (json->utf8_left > 0) {
        if (byte < json->utf8_low || byte > json->utf8_high) return false;
        json->utf8_left--;
    } else {
        if (byte < 0xC2 || byte > 0xF4) return false;
        json->utf8_left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    }
    json->utf8_low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    json->utf8_high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return true;
}

static bool take_in_string(hth_json *json, char byte) {
    unsigned char c = (unsigned char)byte;
    if (c >= 0x80 || json->utf8_left > 0) return take_utf8(json, c);
    if (c < 0x20) return false;
    if (byte == '\\') json->state = ESCAPE;
    if (byte != '"') return true;
    json->event = json->is_key ? HTH_JSON_KEY_END : HTH_JSON_STRING_END;
    if (!json->is_key) return value_ended(json);
    json->state = COLON;
    return true;
}

static bool take_escape(hth_json *json, char byte) {
    static const char simple[] = "\"\\/bfnrt";
    if (byte == 'u') {
        json->state = HEX;
        json->hex_left = 4;
        json->hex = 0;
        return true;
    }
    json->state = STRING;
    return byte != 0 && memchr(simple, byte, sizeof simple - 1) != NULL;
}

static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_hex(hth_json *json, char byte) {
    int digit = hex_digit(byte);
    if (digit < 0) return false;
    json->hex = (uint16_t)(json->hex << 4 | digit);
    if (--json->hex_left > 0) return true;
    bool high = json->hex >= 0xD800 && json->hex < 0xDC00, low = json->hex >= 0xDC00 && json->hex < 0xE000;
    if (low != json->low_surrogate) return false;
    json->low_surrogate = high;
    json->state = high ? LOW_BACKSLASH : STRING;
    return true;
}

static bool ends_number(int state) {
    return state == ZERO || state == DIGITS || state == FRACTION || state == POWER;
}

/* The state of a number after one more byte; -1 when the byte is none of it. */
static int after_number_byte(int state, char byte) {
    bool digit = is_digit(byte);
    if (digit && (state == MINUS)) return byte == '0' ? ZERO : DIGITS;
    if (digit && (state == POINT || state == FRACTION)) return FRACTION;
    if (digit && (state == EXPONENT || state == SIGN || state == POWER)) return POWER;
    if (digit && state == DIGITS) return DIGITS;
    if (byte == '.' && (state == ZERO || state == DIGITS)) return POINT;
    if ((byte == 'e' || byte == 'E') && (state == ZERO || state == DIGITS || state == FRACTION)) return EXPONENT;
    if ((byte == '+' || byte == '-') && state == EXPONENT) return SIGN;
    return -1;
}

/* A byte between values, or outside of all. */
static bool take_between(hth_json *json, char byte) {
    if (is_space(byte)) return true;
    switch (json->state) {
    case VALUE: return begin_value(json, byte);
    case VALUE_OR_END: return byte == ']' ? close_container(json, byte) : begin_value(json, byte);
    case KEY_OR_END:
        if (byte == '}') return close_container(json, byte);
        return byte == '"' && begin_string(json, true);
    case KEY: return byte == '"' && begin_string(json, true);
    case COLON: json->state = VALUE; return byte == ':';
    case AFTER:
        if (byte != ',') return close_container(json, byte);
        json->state = hth_json_in_object(json) ? KEY : VALUE;
        return true;
    default: return false; /* DONE */
    }
}

bool hth_json_take(hth_json *json, char byte) {
    json->event = HTH_JSON_NOTHING;
    switch (json->state) {
    case STRING: return take_in_string(json, byte);
    case ESCAPE: return take_escape(json, byte);
    case HEX: return take_hex(json, byte);
    case LOW_BACKSLASH: json->state = LOW_U; return byte == '\\';
    case LOW_U: return byte == 'u' && take_escape(json, byte);
    case LITERAL:
        if (byte != *json->literal) return false;
        if (*++json->literal == 0) value_ended(json);
        return true;
    default: break;
    }
    if (json->state >= MINUS) {
        int next = after_number_byte(json->state, byte);
        if (next >= 0) {
            json->state = (uint8_t)next;
            return true;
        }
        if (!ends_number(json->state)) return false;
        value_ended(json);
    }
    return take_between(json, byte);
}

bool hth_json_is_whole(const hth_json *json) {
    return json->state == DONE || (json->depth == 0 && ends_number(json->state));
}

/* ---- strings ---- */

enum { DECODE_PLAIN, DECODE_ESCAPE, DECODE_HEX };

static bool append_character(hth_bytes *out, uint32_t c) {
    char s[4];
    if (c < 0x80) {
        s[0] = (char)c;
        return hth_bytes_append(out, s, 1);
    }
    size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; c >>= 6) s[i] = (char)(0x80 | (c & 0x3F));
    s[0] = (char)((0xF00u >> size) | c);
    return hth_bytes_append(out, s, size);
}

static bool decode_hex(hth_json_decoder *d, char byte, hth_bytes *out) {
    d->hex = d->hex << 4 | (uint32_t)hex_digit(byte);
    if (--d->hex_left > 0) return true;
    d->state = DECODE_PLAIN;
    if (d->hex >= 0xD800 && d->hex < 0xDC00) {
        d->high = d->hex;
        return true;
    }
    uint32_t c = d->high == 0 ? d->hex : 0x10000 + ((d->high - 0xD800) << 10) + (d->hex - 0xDC00);
    d->high = 0;
    return append_character(out, c);
}

static bool decode_escape(hth_json_decoder *d, char byte, hth_bytes *out) {
    d->state = DECODE_PLAIN;
    switch (byte) {
    case 'b': return hth_bytes_append(out, "\b", 1);
    case 'f': return hth_bytes_append(out, "\f", 1);
    case 'n': return hth_bytes_append(out, "\n", 1);
    case 'r': return hth_bytes_append(out, "\r", 1);
    case 't': return hth_bytes_append(out, "\t", 1);
    case 'u':
        d->state = DECODE_HEX;
        d->hex_left = 4;
        d->hex = 0;
        return true;
    default: return hth_bytes_append(out, &byte, 1);
    }
}

bool hth_json_decode(hth_json_decoder *d, const char *text, size_t size, hth_bytes *out) {
    for (size_t i = 0; i < size; i++) {
        bool ok = true;
        if (d->state == DECODE_ESCAPE) ok = decode_escape(d, text[i], out);
        else if (d->state == DECODE_HEX) ok = decode_hex(d, text[i], out);
        else if (text[i] == '\\') d->state = DECODE_ESCAPE;
        else ok = hth_bytes_append(out, text + i, 1);
        if (!ok) return false;
    }
    return true;
}

static bool append_escaped(char byte, hth_bytes *out) {
    static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt", digits[] = "0123456789abcdef";
    const char *known = byte == 0 ? NULL : memchr(letters, byte, sizeof letters - 1);
    char escape[6] = {'\\', 'u', '0', '0', digits[(byte >> 4) & 15], digits[byte & 15]};
    if (known == NULL) return hth_bytes_append(out, escape, 6);
    escape[1] = names[known - letters];
    return hth_bytes_append(out, escape, 2);
}

bool hth_json_escape(const char *text, size_t size, hth_bytes *out) {
    size_t plain = 0; /* bytes before `i` that stand for themselves */
    for (size_t i = 0; i < size;) {
        uint32_t c;
        int length = hth_utf8_decode(text + i, size - i, &c);
        if (length > 0 && c >= 0x20 && c != '"' && c != '\\') {
            plain += (size_t)length;
            i += (size_t)length;
            continue;
        }
        if (!hth_bytes_append(out, text + i - plain, plain)) return false;
        if (!(length == 0 ? hth_bytes_append(out, "\xEF\xBF\xBD", 3) : append_escaped(text[i], out))) return false;
        plain = 0;
        i++;
    }
    return hth_bytes_append(out, text + size - plain, plain);
}
