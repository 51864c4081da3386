/* Python's "%s and %d" % values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_operate.h"
#include "text/template_text.h"

enum { MAX_WIDTH = 1000 };

typedef struct conversion {
    bool left, plus, space, zero;
    int64_t width, precision; /* precision -1: none */
    char letter;
} conversion;

/* Reads "[flags][width][.precision]letter"; *at is behind the '%', then behind the letter. */
static bool read_conversion(hth_work *w, const hth_str *s, size_t *at, conversion *c) {
    *c = (conversion){.precision = -1};
    for (; *at < s->size; ++*at) {
        char flag = s->data[*at];
        if (flag == '-') c->left = true;
        else if (flag == '+') c->plus = true;
        else if (flag == ' ') c->space = true;
        else if (flag == '0') c->zero = true;
        else break;
    }
    for (int part = 0; part < 2; part++) {
        int64_t *n = part == 0 ? &c->width : &c->precision;
        if (part == 1) {
            if (*at >= s->size || s->data[*at] != '.') break;
            ++*at;
            *n = 0;
        }
        for (; *at < s->size && s->data[*at] >= '0' && s->data[*at] <= '9'; ++*at) {
            *n = *n * 10 + (s->data[*at] - '0');
            if (*n > MAX_WIDTH) return hth_work_fail(w, HEARTH_UNSUPPORTED, "%%: a width of more than %d", MAX_WIDTH);
        }
    }
    if (*at >= s->size) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%%: the format ends within a conversion");
    c->letter = s->data[(*at)++];
    return true;
}

/* A number's digits, with its sign and padding. */
static bool put_number(hth_build *b, const conversion *c, bool negative, const char *digits) {
    const char *sign = negative ? "-" : c->plus ? "+" : c->space ? " " : "";
    int64_t missing = c->width - (int64_t)strlen(sign) - (int64_t)strlen(digits);
    if (!c->left && !c->zero)
        for (; missing > 0; missing--) hth_build_text(b, " ");
    hth_build_text(b, sign);
    if (!c->left)
        for (; missing > 0; missing--) hth_build_text(b, "0");
    hth_build_text(b, digits);
    for (; missing > 0; missing--) hth_build_text(b, " ");
    return b->work->status == HEARTH_OK;
}

static bool put_integer(hth_build *b, const conversion *c, hth_value v) {
    char digits[96];
    int64_t n = v.kind == HTH_BOOL ? v.truth : v.kind == HTH_INT ? v.integer : 0;
    if (v.kind == HTH_FLOAT && c->letter == 'd' && fabs(v.real) < 0x1p63) n = (int64_t)v.real;
    else if (v.kind != HTH_INT && v.kind != HTH_BOOL)
        return hth_work_fail(b->work, HEARTH_BAD_ARGUMENT, "%%%c takes an integer, not a %s", c->letter,
                             hth_kind_name(v));
    uint64_t magnitude = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    switch (c->letter) {
    case 'x': snprintf(digits, sizeof digits, "%" PRIx64, magnitude); break;
    case 'X': snprintf(digits, sizeof digits, "%" PRIX64, magnitude); break;
    case 'o': snprintf(digits, sizeof digits, "%" PRIo64, magnitude); break;
    default: snprintf(digits, sizeof digits, "%" PRIu64, magnitude); break;
    }
    return put_number(b, c, n < 0, digits);
}

static bool put_real(hth_build *b, const conversion *c, hth_value v) {
    char digits[MAX_WIDTH + 400];
    double x;
    if (!hth_value_number(v, &x))
        return hth_work_fail(b->work, HEARTH_BAD_ARGUMENT, "%%%c takes a number, not a %s", c->letter,
                             hth_kind_name(v));
    int precision = c->precision < 0 ? 6 : (int)c->precision;
    double magnitude = fabs(x);
    if (c->letter == 'f' || c->letter == 'F') snprintf(digits, sizeof digits, "%.*f", precision, magnitude);
    else if (c->letter == 'e') snprintf(digits, sizeof digits, "%.*e", precision, magnitude);
    else snprintf(digits, sizeof digits, "%.*g", precision, magnitude);
    for (char *p = digits; *p != 0; p++)
        if (*p == ',') *p = '.'; /* the point of some locales */
    return put_number(b, c, signbit(x) != 0, digits);
}

static bool put_text(hth_build *b, const conversion *c, hth_value v) {
    hth_work *w = b->work;
    hth_build text = {.work = w};
    if (c->letter == 'r' ? !hth_value_repr(&text, v) : !hth_value_print(&text, v)) return false;
    const hth_str *s = hth_build_end(&text);
    if (s != NULL && c->precision >= 0 && c->precision < s->chars)
        s = hth_str_cut(w, s, 0, hth_str_offset(s, (size_t)c->precision));
    if (s != NULL) s = hth_str_pad(w, s, c->width, ' ', c->left ? HTH_RIGHT : HTH_LEFT);
    return s != NULL && hth_build_str(b, s);
}

static bool put_value(hth_build *b, const conversion *c, hth_value v) {
    switch (c->letter) {
    case 's':
    case 'r': return put_text(b, c, v);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': return put_integer(b, c, v);
    case 'f':
    case 'F':
    case 'e':
    case 'g': return put_real(b, c, v);
    default:
        return hth_work_fail(b->work, HEARTH_UNSUPPORTED, "%%: the conversion '%c' is not supported",
                             c->letter >= ' ' && c->letter < 0x7F ? c->letter : '?');
    }
}

bool hth_format_percent(hth_work *w, const hth_str *s, hth_value v, hth_value *out) {
    bool tuple = v.kind == HTH_LIST && v.list->kind == HTH_A_TUPLE;
    const hth_value *values = tuple ? v.list->items : &v;
    uint32_t count = tuple ? v.list->count : 1, used = 0;
    hth_build b = {.work = w};
    if (s->markup) return hth_work_fail(w, HEARTH_UNSUPPORTED, "%%: formats that are markup are not supported");
    for (size_t at = 0; at < s->size;) {
        const char *percent = memchr(s->data + at, '%', s->size - at);
        size_t end = percent == NULL ? s->size : (size_t)(percent - s->data);
        if (!hth_build_cut(&b, s, at, end)) return false;
        at = end;
        if (percent == NULL) break;
        at++;
        if (at < s->size && s->data[at] == '%') {
            hth_build_cut(&b, s, at, at + 1);
            at++;
            continue;
        }
        conversion c;
        if (!read_conversion(w, s, &at, &c)) return false;
        if (used == count) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%%: not enough values for the format");
        if (!put_value(&b, &c, values[used++])) return false;
    }
    bool indexed = v.kind == HTH_DICT || (v.kind == HTH_LIST && !tuple); /* may be there for nothing, in Python */
    if (used < count && !(indexed && used == 0))
        return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "%%: not all values were used");
    const hth_str *text = hth_build_end(&b);
    *out = hth_string_value(text);
    return text != NULL;
}
