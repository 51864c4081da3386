#include "text/grammar_parse.h"

#include <string.h>

#include "base/utf8.h"

/* A group that is open, or the body of a rule: how much of it is on the stack of values. */
typedef struct frame {
    uint32_t items;        /* of the alternative at hand */
    uint32_t alternatives; /* before it */
    uint32_t at;
} frame;

typedef struct parser {
    hth_grammar *g;
    const char *text;
    uint32_t size, at;
    frame frames[HTH_GRAMMAR_MAX_DEPTH + 1]; /* the first is the body */
    uint32_t depth;                          /* of the innermost */
} parser;

enum { CLASS_RANGES = 256 };

static void fail_here(parser *p, const char *what) {
    hth_grammar_fail(p->g, HEARTH_BAD_ARGUMENT, p->at, "%s", what);
}

static char peek(const parser *p) {
    return p->at < p->size ? p->text[p->at] : '\0';
}

static bool accept(parser *p, char c) {
    if (p->at == p->size || p->text[p->at] != c) return false;
    p->at++;
    return true;
}

/* ---- Words ---- */

static void skip_space(parser *p, bool newlines) {
    for (; p->at < p->size; p->at++) {
        char c = p->text[p->at];
        if (c == '#')
            while (p->at + 1 < p->size && p->text[p->at + 1] != '\n' && p->text[p->at + 1] != '\r') p->at++;
        else if (c != ' ' && c != '\t' && !(newlines && (c == '\n' || c == '\r'))) return;
    }
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/* The rule that is named here. */
static uint32_t parse_name(parser *p) {
    uint32_t begin = p->at;
    while (is_name(peek(p))) p->at++;
    return hth_grammar_rule_named(p->g, p->text + begin, p->at - begin, begin);
}

static bool parse_number(parser *p, uint32_t *value) {
    uint64_t number = 0;
    if (peek(p) < '0' || peek(p) > '9') return false;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        number = number * 10 + (uint64_t)(peek(p) - '0');
        if (number >= HTH_GRAMMAR_MANY) number = HTH_GRAMMAR_MANY - 1; /* far beyond what can be compiled */
    }
    *value = (uint32_t)number;
    return true;
}

static uint32_t parse_hexadecimal(parser *p, int digits) {
    uint32_t value = 0, begin = p->at;
    for (int i = 0; i < digits; i++, p->at++) {
        char c = peek(p);
        if (c >= '0' && c <= '9') value = value * 16 + (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f') value = value * 16 + (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F') value = value * 16 + (uint32_t)(c - 'A') + 10;
        else {
            fail_here(p, "the escape has too few hexadecimal digits");
            return 0;
        }
    }
    if (value <= HTH_MAX_CHARACTER && (value < 0xD800 || value > 0xDFFF)) return value;
    p->at = begin;
    fail_here(p, "the escape is no character of Unicode");
    return 0;
}

/* A character of a literal or a class, escaped or not. */
static uint32_t parse_character(parser *p) {
    uint32_t c = 0;
    if (!accept(p, '\\')) {
        int n = hth_utf8_decode(p->text + p->at, p->size - p->at, &c);
        if (n == 0) fail_here(p, "the text is no UTF-8");
        p->at += (uint32_t)n;
        return c;
    }
    char escape = peek(p);
    p->at += p->at < p->size;
    switch (escape) {
    case 'x': return parse_hexadecimal(p, 2);
    case 'u': return parse_hexadecimal(p, 4);
    case 'U': return parse_hexadecimal(p, 8);
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '\\':
    case '"':
    case '[':
    case ']': return (unsigned char)escape;
    default: break;
    }
    p->at--;
    fail_here(p, "an escape that is not known");
    return 0;
}

/* ---- Items ---- */

static void parse_literal(parser *p) {
    uint32_t begin = p->at++;
    hth_grammar_literal(p->g, "", 0, begin);
    while (!hth_grammar_failed(p->g) && peek(p) != '"') {
        if (p->at == p->size || peek(p) == '\n') {
            p->at = begin;
            fail_here(p, "the literal has no end");
            return;
        }
        hth_grammar_append(p->g, parse_character(p));
    }
    accept(p, '"');
}

static void parse_class(parser *p) {
    hth_character_range ranges[CLASS_RANGES];
    size_t count = 0;
    uint32_t begin = p->at++;
    bool negated = accept(p, '^');
    while (!hth_grammar_failed(p->g) && peek(p) != ']') {
        if (p->at == p->size || peek(p) == '\n' || count == CLASS_RANGES) {
            p->at = begin;
            fail_here(p, count == CLASS_RANGES ? "the class has too many ranges" : "the class has no end");
            return;
        }
        uint32_t first = parse_character(p), last = first;
        if (peek(p) == '-' && p->at + 1 < p->size && p->text[p->at + 1] != ']') {
            p->at++;
            last = parse_character(p);
        }
        if (last < first) fail_here(p, "the range goes down");
        ranges[count++] = (hth_character_range){first, last};
    }
    accept(p, ']');
    hth_grammar_set(p->g, ranges, count, negated, begin);
}

/* "{m}", "{m,}" or "{m,n}". */
static void parse_bounds(parser *p) {
    uint32_t begin = p->at++, min = 0, max;
    skip_space(p, true);
    if (!parse_number(p, &min)) fail_here(p, "the number of repetitions is missing");
    max = min;
    skip_space(p, true);
    if (accept(p, ',')) {
        skip_space(p, true);
        if (!parse_number(p, &max)) max = HTH_GRAMMAR_MANY;
        skip_space(p, true);
    }
    if (!accept(p, '}')) fail_here(p, "a } is missing");
    if (max < min) hth_grammar_fail(p->g, HEARTH_BAD_ARGUMENT, begin, "at least %u and at most %u times", min, max);
    else hth_grammar_repeat(p->g, min, max, begin);
}

/* What may stand behind an item, any number of times. */
static void parse_repeats(parser *p) {
    for (;;) {
        uint32_t at = p->at;
        if (accept(p, '*')) hth_grammar_repeat(p->g, 0, HTH_GRAMMAR_MANY, at);
        else if (accept(p, '+')) hth_grammar_repeat(p->g, 1, HTH_GRAMMAR_MANY, at);
        else if (accept(p, '?')) hth_grammar_repeat(p->g, 0, 1, at);
        else if (peek(p) == '{') parse_bounds(p);
        else return;
        if (hth_grammar_failed(p->g)) return;
        skip_space(p, p->depth > 0);
    }
}

static void end_item(parser *p) {
    p->frames[p->depth].items++;
    skip_space(p, p->depth > 0);
    parse_repeats(p);
}

static void open_group(parser *p) {
    if (p->depth == HTH_GRAMMAR_MAX_DEPTH) {
        hth_grammar_fail(p->g, HEARTH_TOO_LONG, p->at, "groups are nested more than %d deep", HTH_GRAMMAR_MAX_DEPTH);
        return;
    }
    p->frames[++p->depth] = (frame){.at = p->at++};
    skip_space(p, true);
}

/* End the alternatives of the innermost group or of the body. */
static void end_choice(parser *p) {
    const frame *f = &p->frames[p->depth];
    hth_grammar_sequence(p->g, f->items, f->at);
    hth_grammar_choice(p->g, f->alternatives + 1, f->at);
}

static void close_group(parser *p) {
    if (p->depth == 0) {
        fail_here(p, "a ) without its (");
        return;
    }
    end_choice(p);
    p->at++;
    p->depth--;
    end_item(p);
}

static void next_alternative(parser *p) {
    frame *f = &p->frames[p->depth];
    hth_grammar_sequence(p->g, f->items, f->at);
    f->items = 0;
    f->alternatives++;
    p->at++;
    skip_space(p, true);
}

/* One item, bracket or bar; false at the end of the body. */
static bool parse_item(parser *p) {
    char c = peek(p);
    uint32_t at = p->at;
    if (p->at == p->size || ((c == '\n' || c == '\r') && p->depth == 0)) return false;
    if (c == '(') open_group(p);
    else if (c == ')') close_group(p);
    else if (c == '|') next_alternative(p);
    else if (c == '"') parse_literal(p), end_item(p);
    else if (c == '[') parse_class(p), end_item(p);
    else if (c == '.') hth_grammar_set(p->g, NULL, 0, true, p->at++), end_item(p);
    else if (is_name(c)) hth_grammar_call(p->g, parse_name(p), at), end_item(p);
    else if (c == '<' || (c == '!' && at + 1 < p->size && p->text[at + 1] == '<'))
        hth_grammar_fail(p->g, HEARTH_UNSUPPORTED, at, "terminals that are tokens (<...>) are not supported");
    else if (c == '*' || c == '+' || c == '?' || c == '{') fail_here(p, "there is nothing to repeat");
    else fail_here(p, "a literal, a class, a name, a group, | or the end of the rule is expected");
    return !hth_grammar_failed(p->g);
}

static void parse_rule(parser *p) {
    uint32_t begin = p->at;
    if (!is_name(peek(p))) {
        fail_here(p, "the name of a rule is expected");
        return;
    }
    uint32_t rule = parse_name(p);
    skip_space(p, false);
    if (p->size - p->at < 3 || memcmp(p->text + p->at, "::=", 3) != 0) {
        fail_here(p, "::= is expected");
        return;
    }
    p->at += 3;
    if (hth_grammar_failed(p->g)) return;
    const hth_grammar_rule *r = &p->g->rules[rule];
    if (r->count > 0) {
        hth_grammar_fail(p->g, HEARTH_BAD_ARGUMENT, begin, "the rule %.*s is defined twice", HTH_RULE_NAME(p->g, rule));
        return;
    }
    skip_space(p, true);
    hth_grammar_begin(p->g, rule);
    p->g->rules[rule].at = begin;
    p->depth = 0;
    p->frames[0] = (frame){.at = begin};
    while (parse_item(p)) continue;
    if (p->depth > 0) hth_grammar_fail(p->g, HEARTH_BAD_ARGUMENT, p->frames[p->depth].at, "the group has no end");
    end_choice(p);
    hth_grammar_finish(p->g);
}

void hth_grammar_parse_rules(hth_grammar *g, const char *text, size_t size) {
    parser p = {.g = g, .text = text, .size = (uint32_t)size};
    skip_space(&p, true);
    while (p.at < p.size && !hth_grammar_failed(g)) {
        parse_rule(&p);
        skip_space(&p, true);
    }
}

hearth_status hth_grammar_parse(hth_grammar *g, const char *text, size_t size, hearth_error *err) {
    if (size > HTH_GRAMMAR_MAX_TEXT)
        return hth_fail(err, HEARTH_TOO_LONG, "the grammar has %zu bytes; %d are allowed", size, HTH_GRAMMAR_MAX_TEXT);
    hth_grammar_parse_rules(g, text, size);
    g->root = hth_grammar_rule_named(g, "root", 4, (uint32_t)size);
    if (!hth_grammar_failed(g) && g->rules[g->root].count == 0)
        hth_grammar_fail(g, HEARTH_BAD_ARGUMENT, (uint32_t)size, "the rule root is missing");
    return hth_grammar_end(g, err);
}
