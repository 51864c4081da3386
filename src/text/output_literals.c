/* Calls in literals that are not JSON, turned into JSON as they come.
 *
 *   Gemma   NAME{key:value,...}     strings between <|"|> without escapes, keys bare or such strings
 *   Python  NAME(key=value, ...)    or a list of them; strings with escapes, dicts, lists, True, False, None
 *
 * A bare word that is no number, true, false or null (or Python's names for these) is a string in Gemma's syntax, which
 * models often forget to quote, and no call in Python's. */
#include "text/output_internal.h"

static const char gemma_quote[] = "<|\"|>";
enum { MAX_WORD = 4096 };

enum {
    START,        /* Python: a list, or a name */
    NAME,         /* Python: up to the parenthesis */
    KEY_OR_END,   /* in an object */
    VALUE_OR_END, /* in a list */
    VALUE,        /* after a key's colon */
    WORD,
    STRING,
    ESCAPE,
    HEX,
    COLON,
    AFTER,  /* a value has ended */
    BETWEEN /* Python: a call of a list has ended */
};

void hth_output_literals_begin(hth_parser *p) {
    bool gemma = p->call->body == HTH_BODY_GEMMA;
    p->phase = HTH_PHASE_LITERALS;
    p->body.literals = (hth_literals){.state = gemma ? KEY_OR_END : START, .depth = gemma ? 1 : 0, .first = true};
    p->body.literals.objects[0] = 1;
}

bool hth_output_literals_are_between(const hth_parser *p) {
    const hth_literals *l = &p->body.literals;
    return l->any_call && (l->state == BETWEEN || l->state == START);
}

static hth_step fail(hth_parser *p) {
    return hth_output_call_fail(p, "a tool call's arguments are not what the format has");
}

static bool in_object(const hth_literals *l) {
    return (l->objects[(l->depth - 1) / 64] >> ((l->depth - 1) % 64) & 1) != 0;
}

/* Before a key of an object, or an element of a list: the comma. */
static hth_step separate(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    bool first = l->first;
    l->first = false;
    return first ? HTH_NEXT : hth_output_call_put(p, ", ");
}

/* ---- containers ---- */

static hth_step open_container(hth_parser *p, bool object) {
    hth_literals *l = &p->body.literals;
    if (l->depth == HTH_JSON_MAX_DEPTH) return hth_output_call_fail(p, "a tool call's arguments are nested too deep");
    uint64_t bit = (uint64_t)1 << (l->depth % 64), *word = &l->objects[l->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    l->depth++;
    l->first = true;
    l->state = object ? KEY_OR_END : VALUE_OR_END;
    p->at++;
    return hth_output_call_put(p, object ? "{" : "[");
}

/* The call's own bracket closes. */
static hth_step call_ended(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    HTH_STEP(hth_output_call_begin_object(p));
    HTH_STEP(hth_output_call_put(p, "}"));
    p->at++;
    HTH_STEP(hth_output_call_done(p));
    if (!l->list) return hth_output_call_close(p);
    p->call_start = p->at;
    l->any_call = true;
    l->state = BETWEEN;
    return HTH_NEXT;
}

static hth_step close_container(hth_parser *p, char c) {
    hth_literals *l = &p->body.literals;
    char closes = !in_object(l) ? ']' : l->depth == 1 && p->call->body == HTH_BODY_PYTHON ? ')' : '}';
    if (c != closes) return fail(p);
    l->depth--;
    if (l->depth == 0) return call_ended(p);
    l->state = AFTER;
    l->first = false;
    p->at++;
    return hth_output_call_put(p, c == '}' ? "}" : "]");
}

/* ---- words: keys, numbers, names of constants ---- */

static hth_step begin_word(hth_parser *p, bool keyed) {
    hth_literals *l = &p->body.literals;
    l->state = WORD;
    l->keyed = keyed;
    l->from = p->at;
    return HTH_NEXT;
}

static bool is_json_scalar(const char *word, size_t size) {
    hth_json json;
    hth_json_start(&json);
    for (size_t i = 0; i < size; i++)
        if (!hth_json_take(&json, word[i]) || json.depth > 0) return false;
    return size > 0 && *word != '"' && hth_json_is_whole(&json);
}

static hth_step argue_word(hth_parser *p, size_t from, size_t to) {
    static const char *const python[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    const char *word = p->text.data + from;
    bool keyed = p->body.literals.keyed;
    if (!keyed && is_json_scalar(word, to - from)) return hth_output_call_argue(p, word, to - from);
    for (size_t i = 0; i < 3 && !keyed; i++)
        if (to - from == strlen(python[i][0]) && memcmp(word, python[i][0], to - from) == 0)
            return hth_output_call_put(p, python[i][1]);
    if (from == to || (!keyed && p->call->body == HTH_BODY_PYTHON)) return fail(p);
    HTH_STEP(hth_output_call_put(p, "\""));
    if (!hth_json_escape(word, to - from, &p->arguments)) return HTH_NO_MEMORY;
    return hth_output_call_put(p, keyed ? "\": " : "\"");
}

static hth_step word_step(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    bool parameter = p->call->body == HTH_BODY_PYTHON && l->depth == 1;
    const char *ends = l->keyed ? (parameter ? "=" : ":") : ",)]}";
    const char *never = l->keyed ? (parameter ? ",()[]{}:\"'" : ",()[]{}=\"'") : "([{=\"";
    if (p->call->body == HTH_BODY_GEMMA) never = l->keyed ? ",[]{}" : "";
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at];
        p->work++;
        if (c != 0 && strchr(ends, c) != NULL) {
            size_t to = p->at;
            while (to > l->from && hth_output_is_space(p->text.data[to - 1])) to--;
            if (l->keyed) {
                HTH_STEP(hth_output_call_begin_object(p));
                HTH_STEP(separate(p));
                p->at++;
            }
            HTH_STEP(argue_word(p, l->from, to));
            l->state = l->keyed ? VALUE : AFTER;
            return HTH_NEXT;
        }
        if ((c != 0 && strchr(never, c) != NULL) || p->at - l->from >= MAX_WORD) return fail(p);
    }
    return HTH_WAIT;
}

/* ---- strings ---- */

static hth_step begin_string(hth_parser *p, bool keyed, size_t quote) {
    hth_literals *l = &p->body.literals;
    if (keyed) HTH_STEP(hth_output_call_begin_object(p));
    if (keyed) HTH_STEP(separate(p));
    l->quote = p->text.data[p->at];
    p->at += quote;
    l->state = STRING;
    l->keyed = keyed;
    l->from = p->at;
    return hth_output_call_put(p, "\"");
}

/* Take the string's bytes up to p->at; `cut` when more of it may follow. */
static hth_step drain(hth_parser *p, bool cut) {
    hth_literals *l = &p->body.literals;
    size_t size = p->at - l->from;
    if (cut) size = hth_output_whole(p->text.data + l->from, size);
    HTH_STEP(hth_output_call_put_escaped(p, l->from, l->from + size));
    l->from += size;
    return HTH_NEXT;
}

static hth_step string_ended(hth_parser *p, size_t quote) {
    hth_literals *l = &p->body.literals;
    HTH_STEP(drain(p, false));
    p->at += quote;
    l->state = l->keyed ? COLON : AFTER;
    return hth_output_call_put(p, "\"");
}

static hth_step string_step(hth_parser *p) {
    bool gemma = p->call->body == HTH_BODY_GEMMA;
    char end = gemma ? gemma_quote[0] : p->body.literals.quote;
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at];
        p->work++;
        if (c == end && !gemma) return string_ended(p, 1);
        if (c == end) {
            hth_match match = hth_output_match(p, p->at, gemma_quote);
            if (match == HTH_MATCH_PARTIAL) break;
            if (match == HTH_MATCH_FULL) return string_ended(p, sizeof gemma_quote - 1);
        }
        if (gemma || c != '\\') continue;
        HTH_STEP(drain(p, false));
        p->body.literals.state = ESCAPE;
        p->at++;
        return HTH_NEXT;
    }
    HTH_STEP(drain(p, true));
    return HTH_WAIT;
}

/* Append a character that an escape stands for. */
static hth_step argue_character(hth_parser *p, uint32_t c) {
    char utf8[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return fail(p);
    for (size_t i = size; i-- > 1; c >>= 6) utf8[i] = (char)(0x80 | (c & 0x3F));
    utf8[0] = (char)(size == 1 ? c : (0xF00u >> size) | c);
    return hth_json_escape(utf8, size, &p->arguments) ? HTH_NEXT : HTH_NO_MEMORY;
}

static hth_step escape_step(hth_parser *p) {
    static const char names[] = "nrtbfav0\\'\"", bytes[] = "\n\r\t\b\f\a\v\0\\'\"";
    hth_literals *l = &p->body.literals;
    if (p->at == p->text.size) return HTH_WAIT;
    char c = p->text.data[p->at];
    const char *known = c == 0 ? NULL : strchr(names, c);
    l->state = STRING;
    if (c == 'x' || c == 'u' || c == 'U') {
        l->state = HEX;
        l->hex = 0;
        l->hex_left = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    }
    bool kept = known == NULL && l->state == STRING && c != '\n'; /* not an escape: the backslash stays */
    l->from = p->at + (kept ? 0 : 1);
    if (!kept) p->at++;
    if (known != NULL) return argue_character(p, (unsigned char)bytes[known - names]);
    return kept ? argue_character(p, '\\') : HTH_NEXT;
}

static hth_step hex_step(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at], low = (char)(c | 0x20);
        bool digit = c >= '0' && c <= '9', letter = low >= 'a' && low <= 'f';
        if (!digit && !letter) return fail(p);
        l->hex = l->hex << 4 | (uint32_t)(digit ? c - '0' : low - 'a' + 10);
        if (--l->hex_left > 0) continue;
        l->state = STRING;
        l->from = ++p->at;
        return argue_character(p, l->hex);
    }
    return HTH_WAIT;
}

/* ---- the rest ---- */

/* Python: the list's bracket, or the first letter of a name. */
static hth_step start_step(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    HTH_STEP(hth_output_skip_space(p));
    if (p->at == p->text.size) return HTH_WAIT;
    char c = p->text.data[p->at];
    if (c == ']' && l->list) {
        p->at++;
        if (l->any_call) p->spans[p->span_count - 1].size = p->at - p->spans[p->span_count - 1].offset;
        p->kept = p->at;
        return hth_output_call_close(p);
    }
    if (c == '[' && !l->list) {
        l->list = true;
        p->at++;
        return HTH_NEXT;
    }
    l->state = NAME;
    p->name.from = p->at;
    return HTH_NEXT;
}

static hth_step name_step(hth_parser *p) {
    static const char suffix[] = ".call"; /* of Llama's builtin tools */
    hth_literals *l = &p->body.literals;
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at], low = (char)(c | 0x20);
        p->work++;
        if (c == '(' && p->at > p->name.from) {
            size_t size = p->at - p->name.from, tail = sizeof suffix - 1;
            bool builtin = size > tail && memcmp(p->text.data + p->at - tail, suffix, tail) == 0;
            p->name.to = p->at - (builtin ? tail : 0);
            p->at++;
            l->depth = 1;
            l->objects[0] |= 1;
            l->first = true;
            l->state = KEY_OR_END;
            return HTH_NEXT;
        }
        bool word = (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
        if (!word || p->at - p->name.from > 256) return hth_output_call_fail(p, "what follows is not a call of a tool");
    }
    return HTH_WAIT;
}

/* A value or a key begins, or the container ends. */
static hth_step begin_step(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    bool gemma = p->call->body == HTH_BODY_GEMMA, keyed = l->state == KEY_OR_END, closable = l->state != VALUE;
    HTH_STEP(hth_output_skip_space(p));
    if (p->at == p->text.size) return HTH_WAIT;
    char c = p->text.data[p->at];
    hth_match quote = gemma ? hth_output_match(p, p->at, gemma_quote) : HTH_MATCH_NONE;
    if (quote == HTH_MATCH_PARTIAL) return HTH_WAIT;
    if (closable && (c == ')' || c == ']' || c == '}')) return close_container(p, c);
    if (!gemma && (c == '"' || c == '\'') && keyed && l->depth == 1) return fail(p); /* a positional argument */
    if (!keyed && closable) HTH_STEP(separate(p));
    if (quote == HTH_MATCH_FULL) return begin_string(p, keyed, sizeof gemma_quote - 1);
    if (!gemma && (c == '"' || c == '\'')) return begin_string(p, keyed, 1);
    if (!keyed && (c == '{' || c == '[')) return open_container(p, c == '{');
    return begin_word(p, keyed);
}

static hth_step after_step(hth_parser *p) {
    hth_literals *l = &p->body.literals;
    HTH_STEP(hth_output_skip_space(p));
    if (p->at == p->text.size) return HTH_WAIT;
    char c = p->text.data[p->at];
    if (l->state == COLON) {
        if (c != ':') return fail(p);
        p->at++;
        l->state = VALUE;
        return hth_output_call_put(p, ": ");
    }
    if (l->state == BETWEEN) {
        if (c != ',' && c != ']') return fail(p);
        p->at += c == ',' ? 1 : 0;
        l->state = START;
        return HTH_NEXT;
    }
    if (c != ',') return close_container(p, c);
    p->at++;
    l->first = false;
    l->state = in_object(l) ? KEY_OR_END : VALUE_OR_END;
    return HTH_NEXT;
}

hth_step hth_output_literals_step(hth_parser *p) {
    hth_step step = HTH_NEXT;
    if (p->call->body == HTH_BODY_GEMMA) HTH_STEP(hth_output_call_begin_object(p));
    while (step == HTH_NEXT) {
        switch (p->body.literals.state) {
        case START: step = start_step(p); break;
        case NAME: step = name_step(p); break;
        case KEY_OR_END:
        case VALUE_OR_END:
        case VALUE: step = begin_step(p); break;
        case WORD: step = word_step(p); break;
        case STRING: step = string_step(p); break;
        case ESCAPE: step = escape_step(p); break;
        case HEX: step = hex_step(p); break;
        default: step = after_step(p); break;
        }
    }
    return step;
}
