#include "text/template_lexer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_number.h"
#include "text/unicode.h"

void hth_source_place(const char *source, size_t size, size_t at, uint32_t *line, uint32_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at && i < size; i++) {
        if (source[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)source[i] & 0xC0) != 0x80) {
            ++*column;
        }
    }
}

bool hth_lexer_fail(hth_lexer *lexer, size_t at, hearth_status status, const char *format, ...) {
    char text[300];
    uint32_t line, column;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hth_source_place(lexer->source, lexer->size, at, &line, &column);
    return hth_work_fail(lexer->work, status, "template, line %u, column %u: %s", line, column, text);
}

bool hth_lexer_begin(hth_lexer *lexer, hth_work *w, const char *text, size_t size) {
    *lexer = (hth_lexer){.work = w, .mode = HTH_T_TEXT, .line_start = true};
    if (size > INT32_MAX) return hth_work_fail(w, HEARTH_TOO_LONG, "a template of %zu bytes is too long", size);
    char *copy = hth_work_take(w, size);
    if (copy == NULL) return false;
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r' && i + 1 < size && text[i + 1] == '\n') continue;
        copy[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (n > 0 && copy[n - 1] == '\n') n--;
    lexer->source = copy;
    lexer->size = n;
    uint32_t c;
    for (size_t i = 0; i < n;) {
        int length = hth_utf8_decode(copy + i, n - i, &c);
        if (length == 0) return hth_lexer_fail(lexer, i, HEARTH_BAD_FILE, "not UTF-8");
        i += (size_t)length;
    }
    return true;
}

/* ---- outside of tags ---- */

/* The length of the white space character at `at`, 0 when there is none. */
static size_t space_at(const hth_lexer *l, size_t at) {
    uint32_t c;
    int n = hth_utf8_decode(l->source + at, l->size - at, &c);
    return n > 0 && (hth_is_space(c, hth_category_of(c)) || (c >= 0x1C && c <= 0x1F)) ? (size_t)n : 0;
}

static size_t skip_space(const hth_lexer *l, size_t at) {
    for (size_t n; (n = space_at(l, at)) > 0;) at += n;
    return at;
}

/* Where the white space in front of `end` begins, not before `begin`. */
static size_t space_before(const hth_lexer *l, size_t begin, size_t end) {
    while (end > begin) {
        size_t at = end - 1;
        while (at > begin && ((unsigned char)l->source[at] & 0xC0) == 0x80) at--;
        if (space_at(l, at) == 0) break;
        end = at;
    }
    return end;
}

/* The first "{{", "{%" or "{#" from `at` on; the size when there is none. */
static size_t find_tag(const hth_lexer *l, size_t at) {
    for (; at + 1 < l->size; at++) {
        const char *brace = memchr(l->source + at, '{', l->size - 1 - at);
        if (brace == NULL) return l->size;
        at = (size_t)(brace - l->source);
        if (brace[1] == '{' || brace[1] == '%' || brace[1] == '#') return at;
    }
    return l->size;
}

/* The end of the text in front of a tag, once its white space rules are applied. sign: the character behind "{%". */
static size_t text_end(const hth_lexer *l, size_t begin, size_t tag, char kind, char sign) {
    if (sign == '-') return space_before(l, begin, tag);
    if (sign == '+' || kind == '{') return tag;
    size_t line = tag;
    while (line > begin && l->source[line - 1] != '\n') line--;
    if (line == begin && !l->line_start) return tag;
    return space_before(l, line, tag) == line ? line : tag;
}

/* The end of a tag that ends with `close` ("%}") at `at`, which a '-' or '+' may precede: behind what it trims. 0: not
 * there. */
static size_t close_at(const hth_lexer *l, size_t at, const char *close, bool trims_newline) {
    bool minus = at < l->size && l->source[at] == '-', plus = at < l->size && l->source[at] == '+';
    size_t from = at + (minus || (plus && trims_newline));
    if (l->size - at < 2 || from + 2 > l->size || memcmp(l->source + from, close, 2) != 0) return 0;
    from += 2;
    if (minus) return skip_space(l, from);
    if (!plus && trims_newline && from < l->size && l->source[from] == '\n') from++;
    return from;
}

/* Move behind the end of a tag that began outside. */
static void enter_text(hth_lexer *l, size_t at) {
    l->line_start = at > 0 && l->source[at - 1] == '\n';
    l->at = at;
    l->mode = HTH_T_TEXT;
}

/* `at` is behind "{#". */
static bool skip_comment(hth_lexer *l, size_t tag, size_t at) {
    for (; at + 1 < l->size; at++) {
        size_t end = l->source[at] == '#' || l->source[at + 1] == '#' ? close_at(l, at, "#}", true) : 0;
        if (end == 0) continue;
        enter_text(l, end);
        return true;
    }
    return hth_lexer_fail(l, tag, HEARTH_BAD_FILE, "this comment has no end");
}

static size_t skip_word(const hth_lexer *l, size_t at, const char *word) {
    size_t size = strlen(word);
    at = skip_space(l, at);
    if (l->size - at < size || memcmp(l->source + at, word, size) != 0) return 0;
    return skip_space(l, at + size);
}

/* The text of a raw block whose tag ends at `at`. */
static bool read_raw(hth_lexer *l, size_t tag, size_t at, hth_lexed *out) {
    size_t begin = at;
    for (; at + 1 < l->size; at++) {
        if (l->source[at] != '{' || l->source[at + 1] != '%') continue;
        char sign = at + 2 < l->size ? l->source[at + 2] : ' ';
        size_t word = skip_word(l, at + 2 + (sign == '-' || sign == '+'), "endraw");
        size_t end = word == 0 ? 0 : close_at(l, word, "%}", true);
        if (end == 0) continue;
        l->line_start = begin > 0 && l->source[begin - 1] == '\n';
        size_t stop = text_end(l, begin, at, '%', sign);
        *out = (hth_lexed){HTH_T_TEXT, .at = (uint32_t)begin, .data = l->source + begin, .size = stop - begin};
        enter_text(l, end);
        return true;
    }
    return hth_lexer_fail(l, tag, HEARTH_BAD_FILE, "this raw block has no end");
}

/* Where the tag of a raw block ends, 0 when it is none. at: behind "{%" and its sign. */
static size_t raw_begin(const hth_lexer *l, size_t at) {
    size_t word = skip_word(l, at, "raw");
    return word == 0 ? 0 : close_at(l, word, "%}", false);
}

/* Text and comments up to the next tag. */
static bool next_outside(hth_lexer *l, hth_lexed *out) {
    while (l->at < l->size) {
        size_t begin = l->at, tag = find_tag(l, begin);
        if (tag == l->size) {
            l->at = l->size;
            *out = (hth_lexed){HTH_T_TEXT, .at = (uint32_t)begin, .data = l->source + begin, .size = tag - begin};
            return true;
        }
        char kind = l->source[tag + 1], sign = tag + 2 < l->size ? l->source[tag + 2] : ' ';
        size_t inside = tag + 2 + (sign == '-' || sign == '+'), stop = text_end(l, begin, tag, kind, sign);
        if (stop > begin) {
            *out = (hth_lexed){HTH_T_TEXT, .at = (uint32_t)begin, .data = l->source + begin, .size = stop - begin};
            l->at = tag;
            return true;
        }
        if (kind == '#') {
            if (!skip_comment(l, tag, inside)) return false;
            continue;
        }
        size_t raw = kind == '%' ? raw_begin(l, inside) : 0;
        if (raw != 0) {
            if (!read_raw(l, tag, raw, out)) return false;
            if (out->size == 0) continue;
            return true;
        }
        l->mode = kind == '{' ? HTH_T_PRINT : HTH_T_TAG;
        l->mode_at = (uint32_t)tag;
        l->at = inside;
        l->after_dot = false;
        l->n_brackets = 0;
        *out = (hth_lexed){l->mode, .at = (uint32_t)tag};
        return true;
    }
    *out = (hth_lexed){HTH_T_END, .at = (uint32_t)l->size};
    return true;
}

/* ---- inside of tags ---- */

static bool is_name_char(uint32_t c) {
    hth_category k = hth_category_of(c);
    return c == '_' || (k >= HTH_LU && k <= HTH_LO) || (k >= HTH_ND && k <= HTH_NO) || k == HTH_MN || k == HTH_MC;
}

static bool read_name(hth_lexer *l, hth_lexed *out) {
    size_t at = l->at;
    uint32_t c;
    for (int n; (n = hth_utf8_decode(l->source + at, l->size - at, &c)) > 0 && is_name_char(c);) at += (size_t)n;
    *out = (hth_lexed){HTH_T_NAME, .at = (uint32_t)l->at, .data = l->source + l->at, .size = at - l->at};
    l->at = at;
    return true;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/* The end of digits of a base from `at`, with single underscores between them, or in front of them too. */
static size_t skip_digits(const hth_lexer *l, size_t at, int base, bool underscore_first) {
    for (size_t begin = at; at < l->size; at++) {
        if (digit_of(l->source[at]) < base) continue;
        bool follows = l->source[at] == '_' && at + 1 < l->size && digit_of(l->source[at + 1]) < base;
        if (!follows || (at == begin && !underscore_first)) break;
    }
    return at;
}

static bool read_integer(hth_lexer *l, size_t begin, size_t end, int base, hth_lexed *out) {
    int64_t n = 0;
    for (size_t i = begin; i < end; i++) {
        if (l->source[i] == '_') continue;
        if (__builtin_mul_overflow(n, (int64_t)base, &n) ||
            __builtin_add_overflow(n, (int64_t)digit_of(l->source[i]), &n))
            return hth_lexer_fail(l, l->at, HEARTH_UNSUPPORTED, "an integer of more than 64 bits");
    }
    *out = (hth_lexed){HTH_T_INT, .at = (uint32_t)l->at, .integer = n};
    l->at = end;
    return true;
}

/* Where a float's exponent at `at` ends, or `at`. */
static size_t skip_exponent(const hth_lexer *l, size_t at) {
    if (at >= l->size || (l->source[at] != 'e' && l->source[at] != 'E')) return at;
    size_t digits = at + 1 + (at + 1 < l->size && (l->source[at + 1] == '+' || l->source[at + 1] == '-'));
    size_t end = digits < l->size && digit_of(l->source[digits]) < 10 ? skip_digits(l, digits, 10, false) : digits;
    return end > digits ? end : at;
}

static bool read_number(hth_lexer *l, hth_lexed *out) {
    size_t at = l->at;
    char base = l->source[at] == '0' && at + 1 < l->size ? (char)(l->source[at + 1] | 0x20) : ' ';
    int radix = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 0;
    if (radix != 0 && at + 2 < l->size) {
        size_t end = skip_digits(l, at + 2, radix, true);
        if (end > at + 2) return read_integer(l, at + 2, end, radix, out);
    }
    size_t end = skip_digits(l, at, 10, false), real = end;
    if (!l->after_dot) {
        if (end + 1 < l->size && l->source[end] == '.' && digit_of(l->source[end + 1]) < 10)
            real = skip_digits(l, end + 1, 10, false);
        real = skip_exponent(l, real);
    }
    if (real == end) {
        if (l->source[at] == '0') /* Python knows no number that begins with 0 but 0 */
            for (size_t i = at; i < end; i++)
                if (l->source[i] != '0' && l->source[i] != '_')
                    return hth_lexer_fail(l, at, HEARTH_BAD_FILE, "an integer that begins with 0");
        return read_integer(l, at, end, 10, out);
    }
    *out = (hth_lexed){HTH_T_FLOAT, .at = (uint32_t)at};
    if (!hth_read_real(l->source + at, real - at, &out->real))
        return hth_lexer_fail(l, at, HEARTH_UNSUPPORTED, "a number that is too long");
    l->at = real;
    return true;
}

/* One escape; `at` is behind the backslash. 0: not one that is known; else bytes of it. */
static size_t read_escape(hth_lexer *l, size_t at, size_t end, hth_build *b) {
    static const char names[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    char c = l->source[at];
    const char *simple = c != 0 ? strchr(names, c) : NULL;
    if (simple != NULL) return hth_build_bytes(b, &values[simple - names], 1, false) ? 1 : 0;
    if (c == '\n') return 1;
    uint32_t value = 0;
    size_t n = 0;
    if (c >= '0' && c <= '7') {
        for (; n < 3 && at + n < end && digit_of(l->source[at + n]) < 8; n++)
            value = value * 8 + (uint32_t)digit_of(l->source[at + n]);
        return hth_build_char(b, value, false) ? n : 0;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
        if (c == 'N') hth_lexer_fail(l, at - 1, HEARTH_UNSUPPORTED, "characters by name (\\N) are not supported");
        else hth_build_bytes(b, "\\", 1, false);
        return 0;
    }
    for (n = 1; n <= digits; n++) {
        if (at + n >= end || digit_of(l->source[at + n]) > 15) break;
        value = value * 16 + (uint32_t)digit_of(l->source[at + n]);
    }
    if (n <= digits || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        hth_lexer_fail(l, at - 1, HEARTH_BAD_FILE, "this escape is no character");
        return 0;
    }
    return hth_build_char(b, value, false) ? n : 0;
}

static bool read_string(hth_lexer *l, hth_lexed *out) {
    size_t begin = l->at + 1, end = begin;
    char quote = l->source[l->at];
    while (end < l->size && l->source[end] != quote) end += l->source[end] == '\\' ? 2 : 1;
    if (end >= l->size) return hth_lexer_fail(l, l->at, HEARTH_BAD_FILE, "this string has no end");
    hth_build b = {.work = l->work};
    for (size_t at = begin; at < end;) {
        const char *slash = memchr(l->source + at, '\\', end - at);
        size_t stop = slash == NULL ? end : (size_t)(slash - l->source);
        hth_build_bytes(&b, l->source + at, stop - at, false);
        at = stop;
        if (slash != NULL) at += 1 + read_escape(l, at + 1, end, &b);
        if (l->work->status != HEARTH_OK) return false;
    }
    *out = (hth_lexed){HTH_T_STRING, .at = (uint32_t)l->at, .data = b.data != NULL ? b.data : "", .size = b.size};
    l->at = end + 1;
    return true;
}

static bool read_sign(hth_lexer *l, hth_lexed *out) {
    static const struct {
        char text[3];
        hth_sign sign;
    } signs[] = {{"//", HTH_S_FLOORDIV}, {"**", HTH_S_POW},     {"==", HTH_S_EQ},    {"!=", HTH_S_NE},
                 {">=", HTH_S_GE},       {"<=", HTH_S_LE},      {"+", HTH_S_ADD},    {"-", HTH_S_SUB},
                 {"/", HTH_S_DIV},       {"*", HTH_S_MUL},      {"%", HTH_S_MOD},    {"~", HTH_S_TILDE},
                 {"[", HTH_S_LBRACKET},  {"]", HTH_S_RBRACKET}, {"(", HTH_S_LPAREN}, {")", HTH_S_RPAREN},
                 {"{", HTH_S_LBRACE},    {"}", HTH_S_RBRACE},   {">", HTH_S_GT},     {"<", HTH_S_LT},
                 {"=", HTH_S_ASSIGN},    {".", HTH_S_DOT},      {":", HTH_S_COLON},  {"|", HTH_S_PIPE},
                 {",", HTH_S_COMMA},     {";", HTH_S_SEMICOLON}};
    static const char pairs[] = "()[]{}";
    const char *p = l->source + l->at;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t n = strlen(signs[i].text);
        if (l->size - l->at < n || memcmp(p, signs[i].text, n) != 0) continue;
        *out = (hth_lexed){HTH_T_SIGN, .sign = signs[i].sign, .at = (uint32_t)l->at};
        l->at += n;
        const char *bracket = n == 1 ? strchr(pairs, *p) : NULL;
        if (bracket == NULL) return true;
        if ((bracket - pairs) % 2 == 0) {
            if (!HTH_WORK_ROOM(l->work, l->brackets, l->n_brackets, l->bracket_capacity)) return false;
            l->brackets[l->n_brackets++] = bracket[1];
            return true;
        }
        if (l->n_brackets > 0 && l->brackets[l->n_brackets - 1] == *p) {
            l->n_brackets--;
            return true;
        }
        return hth_lexer_fail(l, out->at, HEARTH_BAD_FILE, "unexpected '%c'", *p);
    }
    uint32_t c = 0;
    hth_utf8_decode(p, l->size - l->at, &c);
    return hth_lexer_fail(l, l->at, HEARTH_BAD_FILE, "unexpected character U+%04X", (unsigned)c);
}

static bool next_inside(hth_lexer *l, hth_lexed *out) {
    bool printing = l->mode == HTH_T_PRINT;
    l->at = skip_space(l, l->at);
    if (l->at >= l->size)
        return hth_lexer_fail(l, l->mode_at, HEARTH_BAD_FILE, printing ? "this {{ has no }}" : "this {%% has no %%}");
    size_t end = l->n_brackets > 0 ? 0 : close_at(l, l->at, printing ? "}}" : "%}", !printing);
    if (end != 0) {
        *out = (hth_lexed){printing ? HTH_T_PRINT_END : HTH_T_TAG_END, .at = (uint32_t)l->at};
        enter_text(l, end);
        return true;
    }
    char c = l->source[l->at];
    uint32_t character = 0;
    bool ok;
    hth_utf8_decode(l->source + l->at, l->size - l->at, &character);
    if (c >= '0' && c <= '9') ok = read_number(l, out);
    else if (c == '\'' || c == '"') ok = read_string(l, out);
    else if (is_name_char(character)) ok = read_name(l, out);
    else ok = read_sign(l, out);
    l->after_dot = ok && out->kind == HTH_T_SIGN && out->sign == HTH_S_DOT;
    return ok;
}

bool hth_lexer_next(hth_lexer *l, hth_lexed *out) {
    if (!hth_work_charge(l->work, 1)) return false;
    return l->mode == HTH_T_TEXT ? next_outside(l, out) : next_inside(l, out);
}
