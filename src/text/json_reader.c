#include "text/json_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_lexer.h"
#include "text/template_number.h"

typedef struct container {
    hth_value v; /* list or dict */
    hth_value key;
} container;

typedef struct reader {
    hth_work *work;
    const char *text;
    size_t size, at;
    container *stack;
    uint32_t depth, capacity;
} reader;

static bool fail_at(reader *r, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool fail_at(reader *r, size_t at, const char *format, ...) {
    char text[200];
    uint32_t line, column;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hth_source_place(r->text, r->size, at, &line, &column);
    return hth_work_fail(r->work, HEARTH_BAD_ARGUMENT, "JSON, line %u, column %u: %s", line, column, text);
}

static bool unexpected(reader *r, const char *wanted) {
    if (r->at >= r->size) return fail_at(r, r->at, "the text ends where %s is due", wanted);
    unsigned char c = (unsigned char)r->text[r->at];
    if (c > 0x20 && c < 0x7F) return fail_at(r, r->at, "'%c' where %s is due", c, wanted);
    return fail_at(r, r->at, "byte 0x%02X where %s is due", c, wanted);
}

static void skip_blanks(reader *r) {
    while (r->at < r->size && strchr(" \t\r\n", r->text[r->at]) != NULL && r->text[r->at] != 0) r->at++;
}

static bool hex4(reader *r, size_t at, uint32_t *out) {
    *out = 0;
    for (size_t i = at; i < at + 4; i++) {
        char c = i < r->size ? r->text[i] : 'x';
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return fail_at(r, at - 2, "an escape that is no \\uXXXX");
        *out = *out * 16 + (uint32_t)digit;
    }
    return true;
}

/* r->at is at the backslash. */
static bool read_escape(reader *r, hth_build *b) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at + 1 < r->size ? r->text[r->at + 1] : 0;
    const char *known = c != 0 ? strchr(from, c) : NULL;
    uint32_t high, low;
    if (known != NULL) {
        r->at += 2;
        return hth_build_bytes(b, &to[known - from], 1, true);
    }
    if (c != 'u') return fail_at(r, r->at, "an unknown escape");
    if (!hex4(r, r->at + 2, &high)) return false;
    if (high < 0xD800 || high > 0xDFFF) {
        r->at += 6;
        return hth_build_char(b, high, true);
    }
    bool pair = high < 0xDC00 && r->at + 7 < r->size && r->text[r->at + 6] == '\\' && r->text[r->at + 7] == 'u';
    if (!pair || !hex4(r, r->at + 8, &low) || low < 0xDC00 || low > 0xDFFF)
        return fail_at(r, r->at, "half of a surrogate pair");
    r->at += 12;
    return hth_build_char(b, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), true);
}

static bool read_string(reader *r, hth_value *out) {
    hth_build b = {.work = r->work};
    size_t begin = r->at++;
    for (;;) {
        size_t end = r->at;
        uint32_t c;
        while (end < r->size && (unsigned char)r->text[end] >= 0x20 && r->text[end] != '"' && r->text[end] != '\\') {
            int n = hth_utf8_decode(r->text + end, r->size - end, &c);
            if (n == 0) return fail_at(r, end, "not UTF-8");
            end += (size_t)n;
        }
        if (!hth_build_bytes(&b, r->text + r->at, end - r->at, true)) return false;
        r->at = end;
        if (end >= r->size) return fail_at(r, begin, "this string has no end");
        if ((unsigned char)r->text[end] < 0x20) return fail_at(r, end, "a control character in a string");
        if (r->text[end] == '"') break;
        if (!read_escape(r, &b)) return false;
    }
    r->at++;
    const hth_str *s = hth_build_end(&b);
    *out = hth_string_value(s);
    return s != NULL;
}

static size_t digits_end(const reader *r, size_t at) {
    while (at < r->size && r->text[at] >= '0' && r->text[at] <= '9') at++;
    return at;
}

static bool read_number(reader *r, hth_value *out) {
    size_t begin = r->at, at = begin + (r->text[begin] == '-'), end = digits_end(r, at);
    bool real = false;
    if (end == at || (r->text[at] == '0' && end > at + 1)) return unexpected(r, "a number");
    if (end < r->size && r->text[end] == '.') {
        size_t part = digits_end(r, end + 1);
        if (part == end + 1) return fail_at(r, end, "a number that ends with its point");
        end = part;
        real = true;
    }
    if (end < r->size && (r->text[end] == 'e' || r->text[end] == 'E')) {
        size_t sign = end + 1 + (end + 1 < r->size && (r->text[end + 1] == '+' || r->text[end + 1] == '-'));
        size_t exponent = digits_end(r, sign);
        if (exponent == sign) return fail_at(r, end, "a number without the digits of its exponent");
        end = exponent;
        real = true;
    }
    r->at = end;
    if (real) {
        double x;
        if (!hth_read_real(r->text + begin, end - begin, &x) || isinf(x))
            return fail_at(r, begin, "a number that is too large or too long");
        *out = hth_real(x);
        return true;
    }
    int64_t n = 0;
    for (size_t i = at; i < end; i++)
        if (__builtin_mul_overflow(n, (int64_t)10, &n) || __builtin_sub_overflow(n, (int64_t)(r->text[i] - '0'), &n))
            return fail_at(r, begin, "an integer of more than 64 bits");
    if (r->text[begin] != '-' && __builtin_sub_overflow((int64_t)0, n, &n))
        return fail_at(r, begin, "an integer of more than 64 bits");
    *out = hth_int(n);
    return true;
}

static bool read_word(reader *r, hth_value *out) {
    static const struct {
        const char *word;
        hth_value value;
    } words[] = {
        {"null", {.kind = HTH_NONE}}, {"true", {.kind = HTH_BOOL, .truth = true}}, {"false", {.kind = HTH_BOOL}}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if (r->size - r->at < n || memcmp(r->text + r->at, words[i].word, n) != 0) continue;
        *out = words[i].value;
        r->at += n;
        return true;
    }
    return unexpected(r, "a value");
}

static bool open_container(reader *r, bool dict) {
    if (r->depth == HTH_MAX_NESTING) return fail_at(r, r->at, "values are nested more than %d deep", HTH_MAX_NESTING);
    if (!HTH_WORK_ROOM(r->work, r->stack, r->depth, r->capacity)) return false;
    container *c = &r->stack[r->depth++];
    if (dict) c->v = hth_dict_value(hth_dict_new(r->work));
    else c->v = hth_list_value(hth_items_new(r->work, HTH_A_LIST, 0));
    if (r->work->status != HEARTH_OK) return false;
    if (dict) c->v.dict->fixed = true;
    else c->v.list->fixed = true;
    r->at++;
    return true;
}

/* A member's name and colon. */
static bool read_key(reader *r) {
    skip_blanks(r);
    if (r->at >= r->size || r->text[r->at] != '"') return unexpected(r, "the name of a member");
    if (!read_string(r, &r->stack[r->depth - 1].key)) return false;
    skip_blanks(r);
    if (r->at >= r->size || r->text[r->at] != ':') return unexpected(r, "':'");
    r->at++;
    return true;
}

/* A value, or the opening of one: then *open, and it is on the stack. */
static bool read_value(reader *r, hth_value *out, bool *open) {
    skip_blanks(r);
    char c = r->at < r->size ? r->text[r->at] : 0;
    *open = false;
    if (!hth_work_charge(r->work, 1)) return false;
    if (c == '"') return read_string(r, out);
    if (c == '-' || (c >= '0' && c <= '9')) return read_number(r, out);
    if (c != '{' && c != '[') return read_word(r, out);
    if (!open_container(r, c == '{')) return false;
    skip_blanks(r);
    bool empty = r->at < r->size && r->text[r->at] == (c == '{' ? '}' : ']');
    if (!empty) {
        *open = true;
        return c == '[' || read_key(r);
    }
    r->at++;
    *out = r->stack[--r->depth].v;
    return true;
}

/* Put a value where it belongs, and close what ends behind it; *out is the value that was closed last. */
static bool place_value(reader *r, hth_value *out) {
    while (r->depth > 0) {
        container *c = &r->stack[r->depth - 1];
        bool dict = c->v.kind == HTH_DICT;
        if (dict ? !hth_dict_put(r->work, c->v.dict, c->key, *out) : !hth_items_put(r->work, c->v.list, *out))
            return false;
        skip_blanks(r);
        char next = r->at < r->size ? r->text[r->at] : 0;
        if (next == ',') {
            r->at++;
            return !dict || read_key(r);
        }
        if (next != (dict ? '}' : ']')) return unexpected(r, dict ? "',' or '}'" : "',' or ']'");
        r->at++;
        *out = c->v;
        r->depth--;
    }
    return true;
}

bool hth_json_read(hth_work *w, const char *text, size_t size, hth_value *out) {
    reader r = {.work = w, .text = text, .size = size};
    bool open;
    do {
        if (!read_value(&r, out, &open)) return false;
        if (!open && !place_value(&r, out)) return false;
    } while (r.depth > 0);
    skip_blanks(&r);
    return r.at == r.size || unexpected(&r, "the end of the text");
}
