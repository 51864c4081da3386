#include "text/template_text.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/utf8.h"
#include "text/template_case.h"
#include "text/unicode.h"

bool hth_is_python_space(uint32_t c) {
    return hth_is_space(c, hth_category_of(c)) || (c >= 0x1C && c <= 0x1F);
}

/* The character at `at` of a valid string, and its length. */
static size_t char_at(const hth_str *s, size_t at, uint32_t *c) {
    int n = hth_utf8_decode(s->data + at, s->size - at, c);
    return n > 0 ? (size_t)n : 1;
}

static size_t char_before(const hth_str *s, size_t end, uint32_t *c) {
    size_t at = end - 1;
    while (at > 0 && ((unsigned char)s->data[at] & 0xC0) == 0x80) at--;
    char_at(s, at, c);
    return end - at;
}

/* ---- case ---- */

static bool is_cased(uint32_t c) {
    hth_category k = hth_category_of(c);
    return k == HTH_LU || k == HTH_LL || k == HTH_LT;
}

/* Characters that a word goes on over when the form of its last letter is asked for. */
static bool is_case_ignorable(uint32_t c) {
    hth_category k = hth_category_of(c);
    return k == HTH_MN || k == HTH_ME || k == HTH_CF || k == HTH_LM || k == HTH_SK || c == '\'' || c == '.' ||
           c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027;
}

/* A sigma that ends a word has another small form. */
static bool ends_word(const hth_str *s, size_t at, size_t behind) {
    uint32_t c = 0;
    size_t before = at;
    while (before > 0) {
        before -= char_before(s, before, &c);
        if (!is_case_ignorable(c)) break;
    }
    if (at == 0 || !is_cased(c)) return false;
    for (size_t next = behind; next < s->size;) {
        next += char_at(s, next, &c);
        if (!is_case_ignorable(c)) return !is_cased(c);
    }
    return true;
}

static const hth_special_case *special_case(uint32_t c) {
    size_t low = 0, high = hth_special_case_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hth_special_cases[middle].character < c) low = middle + 1;
        else high = middle;
    }
    return low < hth_special_case_count && hth_special_cases[low].character == c ? &hth_special_cases[low] : NULL;
}

static bool put_upper(hth_build *b, uint32_t c, bool title, bool content) {
    const hth_special_case *special = c < 0x80 ? NULL : special_case(c);
    if (special != NULL) {
        const char *text = title ? special->title : special->upper;
        return hth_build_bytes(b, text, strlen(text), content);
    }
    int32_t mapped = title ? utf8proc_totitle((int32_t)c) : utf8proc_toupper((int32_t)c);
    return hth_build_char(b, (uint32_t)mapped, content);
}

static bool put_lower(hth_build *b, const hth_str *s, size_t at, size_t n, uint32_t c, bool content) {
    if (c == 0x3A3 && ends_word(s, at, at + n)) return hth_build_char(b, 0x3C2, content);
    if (c == 0x130) return hth_build_bytes(b, "i\xCC\x87", 3, content);
    return hth_build_char(b, (uint32_t)utf8proc_tolower((int32_t)c), content);
}

const hth_str *hth_str_case(hth_work *w, const hth_str *s, hth_case how) {
    hth_build b = {.work = w};
    uint32_t c;
    bool in_word = false;
    for (size_t at = 0, n; at < s->size; at += n) {
        n = char_at(s, at, &c);
        bool content = hth_str_content_at(s, at), up = how == HTH_UPPER, title = false;
        if (how == HTH_CAPITALIZE) up = title = at == 0;
        if (how == HTH_TITLE) up = title = !in_word;
        if (how == HTH_SWAP) up = hth_category_of(c) == HTH_LL;
        in_word = is_cased(c);
        if (up) put_upper(&b, c, title, content);
        else put_lower(&b, s, at, n, c, content);
        if (w->status != HEARTH_OK) return NULL;
    }
    return hth_build_end(&b);
}

/* ---- strip, split, replace, find ---- */

static bool strips(uint32_t c, const hth_str *chars) {
    if (chars == NULL) return hth_is_python_space(c);
    uint32_t other;
    for (size_t at = 0; at < chars->size;) {
        at += char_at(chars, at, &other);
        if (other == c) return true;
    }
    return false;
}

const hth_str *hth_str_strip(hth_work *w, const hth_str *s, const hth_str *chars, int sides) {
    size_t from = 0, to = s->size;
    uint32_t c;
    while ((sides & HTH_LEFT) != 0 && from < to) {
        size_t n = char_at(s, from, &c);
        if (!strips(c, chars)) break;
        from += n;
    }
    while ((sides & HTH_RIGHT) != 0 && to > from) {
        size_t n = char_before(s, to, &c);
        if (!strips(c, chars)) break;
        to -= n;
    }
    uint64_t each = chars == NULL ? 1 : 1 + chars->size;
    if (!hth_work_charge(w, 1 + (s->size - (to - from)) / 16 * each)) return NULL;
    return hth_str_cut(w, s, from, to);
}

static bool put_piece(hth_work *w, hth_items *l, const hth_str *s, size_t from, size_t to) {
    const hth_str *piece = hth_str_cut(w, s, from, to);
    return piece != NULL && hth_work_charge(w, 1) && hth_items_put(w, l, hth_string_value(piece));
}

static hth_items *split_spaces(hth_work *w, const hth_str *s, int64_t max, hth_items *l) {
    uint32_t c;
    for (size_t at = 0, n; at < s->size;) {
        for (; at < s->size; at += n) {
            n = char_at(s, at, &c);
            if (!hth_is_python_space(c)) break;
        }
        if (at == s->size) break;
        size_t end = s->size;
        if (max >= 0 && l->count >= max) return put_piece(w, l, s, at, end) ? l : NULL;
        for (end = at; end < s->size; end += n) {
            n = char_at(s, end, &c);
            if (hth_is_python_space(c)) break;
        }
        if (!put_piece(w, l, s, at, end)) return NULL;
        at = end;
    }
    return l;
}

static void reverse(hth_items *l) {
    for (uint32_t i = 0; i < l->count / 2; i++) {
        hth_value v = l->items[i];
        l->items[i] = l->items[l->count - 1 - i];
        l->items[l->count - 1 - i] = v;
    }
}

static hth_items *split_right_spaces(hth_work *w, const hth_str *s, int64_t max, hth_items *l) {
    uint32_t c;
    for (size_t end = s->size, n; end > 0;) {
        for (; end > 0; end -= n) {
            n = char_before(s, end, &c);
            if (!hth_is_python_space(c)) break;
        }
        if (end == 0) break;
        size_t from = 0;
        if (max >= 0 && l->count >= max) {
            if (!put_piece(w, l, s, from, end)) return NULL;
            break;
        }
        for (from = end; from > 0; from -= n) {
            n = char_before(s, from, &c);
            if (hth_is_python_space(c)) break;
        }
        if (!put_piece(w, l, s, from, end)) return NULL;
        end = from;
    }
    reverse(l);
    return l;
}

hth_items *hth_str_split(hth_work *w, const hth_str *s, const hth_str *sep, int64_t max, bool from_right) {
    hth_items *l = hth_items_new(w, HTH_A_LIST, 0);
    if (l == NULL || !hth_work_charge(w, 1 + s->size / 16)) return NULL;
    if (sep == NULL) return from_right ? split_right_spaces(w, s, max, l) : split_spaces(w, s, max, l);
    if (sep->size == 0) {
        hth_work_fail(w, HEARTH_BAD_ARGUMENT, "an empty separator");
        return NULL;
    }
    size_t from = 0, to = s->size;
    while (max < 0 || l->count < max) {
        size_t found = hth_str_find(s, sep, from, to, from_right);
        if (found == SIZE_MAX) break;
        bool ok = from_right ? put_piece(w, l, s, found + sep->size, to) : put_piece(w, l, s, from, found);
        if (!ok) return NULL;
        if (from_right) to = found;
        else from = found + sep->size;
    }
    if (!put_piece(w, l, s, from, to)) return NULL;
    if (from_right) reverse(l);
    return l;
}

hth_items *hth_str_lines(hth_work *w, const hth_str *s) {
    hth_items *l = hth_items_new(w, HTH_A_LIST, 0);
    uint32_t c;
    size_t from = 0;
    if (l == NULL) return NULL;
    for (size_t at = 0, n; at < s->size; at += n) {
        n = char_at(s, at, &c);
        bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
        if (!ends) continue;
        if (!put_piece(w, l, s, from, at)) return NULL;
        if (c == '\r' && at + 1 < s->size && s->data[at + 1] == '\n') n++;
        from = at + n;
    }
    if (from < s->size && !put_piece(w, l, s, from, s->size)) return NULL;
    return l;
}

size_t hth_str_find(const hth_str *s, const hth_str *what, size_t from, size_t to, bool last) {
    if (to < from || to - from < what->size) return SIZE_MAX;
    if (last) {
        for (size_t at = to - what->size + 1; at-- > from;)
            if (memcmp(s->data + at, what->data, what->size) == 0) return at;
        return SIZE_MAX;
    }
    const char *found = memmem(s->data + from, to - from, what->data, what->size);
    return found == NULL ? SIZE_MAX : (size_t)(found - s->data);
}

size_t hth_str_chars_before(const hth_str *s, size_t at) {
    if (s->chars == s->size) return at;
    size_t n = 0;
    for (size_t i = 0; i < at; i++) n += ((unsigned char)s->data[i] & 0xC0) != 0x80;
    return n;
}

const hth_str *hth_str_replace(hth_work *w, const hth_str *s, const hth_str *from, const hth_str *to, int64_t max) {
    hth_build b = {.work = w};
    size_t at = 0;
    int64_t n = 0;
    if (from->size == 0) { /* between all characters */
        uint32_t c;
        for (size_t size; at < s->size && (max < 0 || n < max); at += size, n++) {
            size = char_at(s, at, &c);
            if (!hth_build_str(&b, to) || !hth_build_cut(&b, s, at, at + size)) return NULL;
        }
        if (max < 0 || n < max) hth_build_str(&b, to);
    }
    while (from->size > 0 && (max < 0 || n < max)) {
        size_t found = hth_str_find(s, from, at, s->size, false);
        if (found == SIZE_MAX) break;
        if (!hth_build_cut(&b, s, at, found) || !hth_build_str(&b, to) || !hth_work_charge(w, 1)) return NULL;
        at = found + from->size;
        n++;
    }
    if (n == 0 && from->size > 0) return hth_work_charge(w, 1 + s->size / 64) ? s : NULL;
    hth_build_cut(&b, s, at, s->size);
    return hth_build_end(&b);
}

const hth_str *hth_str_pad(hth_work *w, const hth_str *s, int64_t width, uint32_t fill, int sides) {
    hth_build b = {.work = w};
    int64_t missing = width - (int64_t)s->chars;
    if (missing <= 0) return s;
    /* Python's centre puts the odd one left when the width is odd. */
    int64_t left = sides == HTH_LEFT ? missing : sides == HTH_RIGHT ? 0 : missing / 2 + (missing & width & 1);
    for (int64_t i = 0; i < left; i++)
        if (!hth_build_char(&b, fill, false)) return NULL;
    hth_build_str(&b, s);
    for (int64_t i = left; i < missing; i++)
        if (!hth_build_char(&b, fill, false)) return NULL;
    return hth_build_end(&b);
}

const hth_str *hth_str_escape(hth_work *w, const hth_str *s) {
    static const char from[] = "&<>'\"", *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    hth_build b = {.work = w, .markup = true};
    if (s->markup) return s;
    for (size_t at = 0; at < s->size;) {
        size_t end = at;
        while (end < s->size && (s->data[end] == 0 || strchr(from, s->data[end]) == NULL)) end++;
        hth_build_cut(&b, s, at, end);
        if (end < s->size) {
            const char *text = to[strchr(from, s->data[end]) - from];
            hth_build_bytes(&b, text, strlen(text), hth_str_content_at(s, end));
            end++;
        }
        if (w->status != HEARTH_OK) return NULL;
        at = end;
    }
    return hth_build_end(&b);
}

/* ---- str.format ---- */

static bool no_format(hth_work *w, const char *why) {
    return hth_work_fail(w, HEARTH_UNSUPPORTED, "format: %s", why);
}

/* Fields without a name count up; those with a number may not stand beside them. */
typedef struct numbering {
    size_t next;
    bool numbered;
} numbering;

/* The value that a field between braces names. */
static bool find_field(hth_work *w, const char *name, size_t size, const hth_value *values, size_t count,
                       const hth_value *named, size_t n_named, numbering *fields, hth_value *out) {
    hth_str key = {.data = name, .size = (uint32_t)size};
    if (size == 0 || (name[0] >= '0' && name[0] <= '9')) {
        if (size == 0 ? fields->numbered : fields->next > 0)
            return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "format: fields with and without numbers");
        fields->numbered = size > 0;
        size_t at = size == 0 ? fields->next++ : 0;
        for (size_t i = 0; i < size; i++) {
            if (name[i] < '0' || name[i] > '9' || at > 1000)
                return no_format(w, "attributes of fields are not supported");
            at = at * 10 + (size_t)(name[i] - '0');
        }
        if (at >= count) return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "format: there is no value %zu", at);
        *out = values[at];
        return true;
    }
    for (size_t i = 0; i < n_named; i++)
        if (hth_str_equal(named[2 * i].str, &key)) {
            *out = named[2 * i + 1];
            return true;
        }
    if (memchr(name, '.', size) != NULL || memchr(name, '[', size) != NULL)
        return no_format(w, "attributes of fields are not supported");
    return hth_work_fail(w, HEARTH_BAD_ARGUMENT, "format: there is no value '%.*s'", (int)(size < 40 ? size : 40),
                         name);
}

const hth_str *hth_str_format(hth_work *w, const hth_str *s, const hth_value *values, size_t count,
                              const hth_value *named, size_t n_named) {
    hth_build b = {.work = w};
    numbering fields = {0};
    for (size_t at = 0; at < s->size;) {
        size_t end = at;
        while (end < s->size && s->data[end] != '{' && s->data[end] != '}') end++;
        if (!hth_build_cut(&b, s, at, end)) return NULL;
        if (end == s->size) break;
        if (end + 1 < s->size && s->data[end + 1] == s->data[end]) {
            hth_build_cut(&b, s, end, end + 1);
            at = end + 2;
            continue;
        }
        const char *close = s->data[end] == '}' ? NULL : memchr(s->data + end, '}', s->size - end);
        if (close == NULL) {
            hth_work_fail(w, HEARTH_BAD_ARGUMENT, "format: a brace stands alone");
            return NULL;
        }
        size_t stop = (size_t)(close - s->data);
        hth_value v;
        if (memchr(s->data + end, ':', stop - end) != NULL || memchr(s->data + end, '!', stop - end) != NULL) {
            no_format(w, "how a field is written cannot be said");
            return NULL;
        }
        if (!find_field(w, s->data + end + 1, stop - end - 1, values, count, named, n_named, &fields, &v)) return NULL;
        if (!hth_value_print(&b, v)) return NULL;
        at = stop + 1;
    }
    return hth_build_end(&b);
}

/* ---- classes ---- */

int hth_str_is_class(const hth_str *s, const char *name) {
    enum { DIGIT, ALPHA, ALNUM, SPACE, UPPER_CLASS, LOWER_CLASS, NUMERIC, DECIMAL, ASCII };
    static const char *const names[] = {"isdigit", "isalpha",   "isalnum",   "isspace", "isupper",
                                        "islower", "isnumeric", "isdecimal", "isascii"};
    int which = 0, all = s->size > 0, cased = 0;
    while (which <= ASCII && strcmp(names[which], name) != 0) which++;
    if (which > ASCII) return -1;
    if (which == ASCII) return s->chars == s->size;
    uint32_t c;
    for (size_t at = 0; at < s->size && all;) {
        at += char_at(s, at, &c);
        hth_category k = hth_category_of(c);
        bool letter = k >= HTH_LU && k <= HTH_LO, digit = k == HTH_ND;
        cased |= is_cased(c);
        switch (which) {
        case ALPHA: all = letter; break;
        case ALNUM: all = letter || (k >= HTH_ND && k <= HTH_NO); break;
        case SPACE: all = hth_is_python_space(c); break;
        case UPPER_CLASS: all = k != HTH_LL && k != HTH_LT; break;
        case LOWER_CLASS: all = k != HTH_LU && k != HTH_LT; break;
        case NUMERIC: all = k >= HTH_ND && k <= HTH_NO; break;
        default: all = digit; break;
        }
    }
    return all && (which == UPPER_CLASS || which == LOWER_CLASS ? cased : 1);
}
