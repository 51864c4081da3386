/* Regular expressions of `pattern` (ECMA-262, what has a meaning without memory of what matched): a parser that keeps
 * its open groups in an array. Anchors may stand at the two ends; where one is missing, any text may. */
#include <string.h>

#include "base/utf8.h"
#include "text/schema_internal.h"

enum { SET_RANGES = 256 };

typedef struct frame {
    uint32_t items, alternatives;
} frame;

typedef struct parser {
    schema_compiler *s;
    const char *text, *at, *end;
    frame frames[HTH_GRAMMAR_MAX_DEPTH + 1];
    uint32_t depth;
} parser;

typedef struct set {
    hth_character_range ranges[SET_RANGES];
    size_t count;
} set;

static void refuse(parser *p, const char *what) {
    SCHEMA_FAIL(p->s, UNSUPPORTED, "the pattern, at byte %zu: %s", (size_t)(p->at - p->text), what);
}

static bool failed(const parser *p) {
    return hth_grammar_failed(p->s->g);
}

static char peek(const parser *p) {
    return p->at < p->end ? *p->at : '\0';
}

static bool accept(parser *p, char c) {
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* ---- Sets ---- */

static void add(parser *p, set *out, uint32_t first, uint32_t last) {
    if (out->count == SET_RANGES) refuse(p, "a class has too many ranges");
    else out->ranges[out->count++] = (hth_character_range){first, last};
}

/* All characters but those from `from` on, which are in order and apart. */
static void negate(parser *p, set *out, size_t from) {
    hth_character_range kept[16];
    size_t count = out->count - from;
    uint32_t next = 0;
    memcpy(kept, out->ranges + from, count * sizeof *kept);
    out->count = from;
    for (size_t i = 0; i < count; i++) {
        if (kept[i].first > next) add(p, out, next, kept[i].first - 1);
        next = kept[i].last + 1;
    }
    add(p, out, next, HTH_MAX_CHARACTER);
}

/* \d \w \s and their opposites; false when the letter is none of them. */
static bool add_shorthand(parser *p, set *out, char letter) {
    static const hth_character_range digits[] = {{'0', '9'}};
    static const hth_character_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const hth_character_range spaces[] = {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                                 {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                                 {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    const hth_character_range *ranges = digits;
    size_t count = 1, from = out->count;
    switch (letter | 0x20) {
    case 'd': break;
    case 'w':
        ranges = words;
        count = sizeof words / sizeof *words;
        break;
    case 's':
        ranges = spaces;
        count = sizeof spaces / sizeof *spaces;
        break;
    default: return false;
    }
    for (size_t i = 0; i < count; i++) add(p, out, ranges[i].first, ranges[i].last);
    if (letter < 'a' && !failed(p)) negate(p, out, from);
    return true;
}

static uint32_t parse_hexadecimal(parser *p, int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; i++) {
        char c = peek(p);
        if (c >= '0' && c <= '9') value = value * 16 + (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') value = value * 16 + (uint32_t)((c | 0x20) - 'a') + 10;
        else refuse(p, "an escape has too few hexadecimal digits");
        if (failed(p)) return 0;
        p->at++;
    }
    if (value >= 0xD800 && value <= 0xDFFF) refuse(p, "a surrogate is no character");
    return value;
}

/* The character behind a backslash. */
static uint32_t parse_escape(parser *p) {
    static const char plain[] = "^$\\.*+?()[]{}|/-\"' #&,:;<=>@_`~!%";
    char c = peek(p);
    p->at += p->at < p->end;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case '0': return 0;
    case 'x': return parse_hexadecimal(p, 2);
    case 'u': return parse_hexadecimal(p, 4);
    default: break;
    }
    if (c != '\0' && strchr(plain, c) != NULL) return (unsigned char)c;
    p->at--;
    refuse(p, c >= '1' && c <= '9' ? "references to groups are not supported" : "an escape that is not supported");
    return 0;
}

static uint32_t parse_plain(parser *p) {
    uint32_t c = 0;
    p->at += hth_utf8_decode(p->at, (size_t)(p->end - p->at), &c); /* the document is UTF-8 */
    return c;
}

static void parse_class(parser *p, set *out, bool *negated) {
    *negated = accept(p, '^');
    while (!failed(p) && peek(p) != ']') {
        if (p->at == p->end) {
            refuse(p, "a class has no end");
            return;
        }
        if (*p->at == '\\' && p->at + 1 < p->end && add_shorthand(p, out, p->at[1])) {
            p->at += 2;
            continue;
        }
        uint32_t first = accept(p, '\\') ? parse_escape(p) : parse_plain(p), last = first;
        if (peek(p) == '-' && p->at + 1 < p->end && p->at[1] != ']') {
            p->at++;
            last = accept(p, '\\') ? parse_escape(p) : parse_plain(p);
        }
        if (last < first) refuse(p, "a range goes down");
        add(p, out, first, last);
    }
    accept(p, ']');
}

/* ---- Characters as they are spelled in JSON ---- */

/* Put the characters of a set: as they are, or as the one escape for those that need it. Control characters without a
 * short escape are left out. */
static void put_set(parser *p, const set *in, bool negated) {
    static const struct {
        uint32_t c;
        const char *spelled;
    } escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
                   {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};
    schema_compiler *s = p->s;
    set plain = {.count = 0};
    uint32_t choices = 1;
    for (size_t i = 0; i < in->count; i++) {
        uint32_t next = in->ranges[i].first, last = in->ranges[i].last;
        static const uint32_t cuts[] = {'"', '\\'};
        if (next < 0x20 && !negated) next = 0x20;
        for (int k = 0; k < 2 && !negated; k++) {
            if (next > cuts[k] || last < cuts[k]) continue;
            if (next < cuts[k]) add(p, &plain, next, cuts[k] - 1);
            next = cuts[k] + 1;
        }
        if (next <= last) add(p, &plain, next, last);
    }
    if (negated) { /* all but these, and but those that need an escape */
        add(p, &plain, 0, 0x1F);
        add(p, &plain, '"', '"');
        add(p, &plain, '\\', '\\');
    }
    if (failed(p)) return;
    hth_grammar_set(s->g, plain.ranges, plain.count, negated, s->at);
    for (size_t e = 0; e < sizeof escapes / sizeof *escapes; e++) {
        bool inside = false;
        for (size_t i = 0; i < in->count; i++)
            inside |= in->ranges[i].first <= escapes[e].c && escapes[e].c <= in->ranges[i].last;
        if (inside == negated) continue;
        hth_schema_text(s, escapes[e].spelled);
        choices++;
    }
    hth_schema_choice(s, choices);
}

static void put_any(parser *p) {
    put_set(p, &(set){.count = 0}, true);
    hth_schema_repeat(p->s, 0, HTH_GRAMMAR_MANY);
}

/* ---- Items ---- */

static bool parse_number(parser *p, uint32_t *value) {
    uint64_t number = 0;
    if (peek(p) < '0' || peek(p) > '9') return false;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        number = number * 10 + (uint64_t)(*p->at - '0');
        if (number >= HTH_GRAMMAR_MANY) number = HTH_GRAMMAR_MANY - 1;
    }
    *value = (uint32_t)number;
    return true;
}

static void parse_bounds(parser *p) {
    uint32_t min = 0, max;
    p->at++;
    if (!parse_number(p, &min)) refuse(p, "a { that is no repetition has to be escaped");
    max = min;
    if (accept(p, ',') && !parse_number(p, &max)) max = HTH_GRAMMAR_MANY;
    if (!accept(p, '}')) refuse(p, "a } is missing");
    if (max < min) refuse(p, "the bounds of a repetition are in the wrong order");
    if (!failed(p)) hth_schema_repeat(p->s, min, max);
}

/* The item that was put last counts, and may be repeated. A lazy repetition matches the same texts. */
static void end_item(parser *p) {
    char c = peek(p);
    p->frames[p->depth].items++;
    if (c == '{') parse_bounds(p);
    else if (accept(p, '*')) hth_schema_repeat(p->s, 0, HTH_GRAMMAR_MANY);
    else if (accept(p, '+')) hth_schema_repeat(p->s, 1, HTH_GRAMMAR_MANY);
    else if (accept(p, '?')) hth_schema_repeat(p->s, 0, 1);
    else return;
    accept(p, '?');
    c = peek(p);
    if (c == '*' || c == '+' || c == '{' || c == '?') refuse(p, "there is nothing to repeat");
}

static void open_group(parser *p) {
    p->at++;
    if (peek(p) == '?' && !(p->at + 1 < p->end && p->at[1] == ':')) {
        refuse(p, "groups that look ahead or behind, and named ones, are not supported");
        return;
    }
    if (accept(p, '?')) p->at++;
    if (p->depth == HTH_GRAMMAR_MAX_DEPTH) refuse(p, "groups are nested too deep");
    else p->frames[++p->depth] = (frame){0, 0};
}

static void end_choice(parser *p) {
    hth_schema_sequence(p->s, p->frames[p->depth].items);
    hth_schema_choice(p->s, p->frames[p->depth].alternatives + 1);
}

static void close_group(parser *p) {
    if (p->depth == 0) {
        refuse(p, "a ) without its (");
        return;
    }
    end_choice(p);
    p->at++;
    p->depth--;
    end_item(p);
}

static void next_alternative(parser *p) {
    frame *f = &p->frames[p->depth];
    hth_schema_sequence(p->s, f->items);
    f->items = 0;
    f->alternatives++;
    p->at++;
}

static void parse_item(parser *p) {
    set characters = {.count = 0};
    bool negated = false;
    char c = peek(p);
    if (c == '(') open_group(p);
    else if (c == ')') close_group(p);
    else if (c == '|') next_alternative(p);
    else if (c == '*' || c == '+' || c == '?' || c == '{') refuse(p, "there is nothing to repeat");
    else if (c == '^' || c == '$') refuse(p, "an anchor that is not at an end of the pattern is not supported");
    else {
        if (accept(p, '[')) {
            parse_class(p, &characters, &negated);
        } else if (accept(p, '.')) {
            negated = true; /* all but the ends of lines */
            add(p, &characters, '\n', '\n');
            add(p, &characters, '\r', '\r');
            add(p, &characters, 0x2028, 0x2029);
        } else if (!accept(p, '\\')) {
            uint32_t plain = parse_plain(p);
            add(p, &characters, plain, plain);
        } else if (!add_shorthand(p, &characters, peek(p))) {
            uint32_t escaped = parse_escape(p);
            add(p, &characters, escaped, escaped);
        } else {
            p->at++;
        }
        if (failed(p)) return;
        put_set(p, &characters, negated);
        end_item(p);
    }
}

/* Whether the last byte is a $ that is not escaped. */
static bool ends_with_anchor(const char *text, size_t size) {
    size_t slashes = 0;
    if (size == 0 || text[size - 1] != '$') return false;
    while (slashes < size - 1 && text[size - 2 - slashes] == '\\') slashes++;
    return slashes % 2 == 0;
}

void hth_schema_put_pattern(schema_compiler *s, const char *regex) {
    size_t size = strlen(regex);
    bool at_begin = size > 0 && regex[0] == '^', at_end = ends_with_anchor(regex, size);
    parser p = {.s = s, .text = regex, .at = regex + at_begin, .end = regex + size - at_end};
    if (!at_begin) put_any(&p);
    while (p.at < p.end && !failed(&p)) parse_item(&p);
    if (p.depth > 0) refuse(&p, "a group has no end");
    if (p.frames[0].alternatives > 0 && (at_begin || at_end))
        refuse(&p, "an anchor beside | is not supported: put the alternatives in a group");
    if (failed(&p)) return;
    end_choice(&p);
    if (!at_end) put_any(&p);
    hth_schema_sequence(s, 1u + !at_begin + !at_end);
}
