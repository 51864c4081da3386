/* Calls whose arguments stand between tags: <parameter=KEY>VALUE</parameter>, <arg_key>KEY</arg_key><arg_value>VALUE…
 *
 * Values are raw text, so a value may itself speak of tags. It ends at a closing tag that (1) closes no tag opened
 * inside the value and (2) is followed, white space aside, by what may follow a value: the next key or the end of the
 * call.
 *
 * A parameter that its schema says is a string is shown as it comes. Any other value is kept until it is whole: it is
 * JSON if it is JSON of a type that the schema allows (Python's True, False and None count as JSON's), else a string.
 */
#include "text/output_internal.h"

enum { MAX_KEY = 256 };

void hth_output_tagged_begin(hth_parser *p) {
    p->phase = HTH_PHASE_TAGGED;
    p->body.tagged = (hth_tagged){.state = HTH_TAG_NEXT};
}

/* Which of the call's closing tags stands at `at`: its place plus 1, in *which; 0 none. */
static hth_match match_close(hth_parser *p, size_t at, size_t *which) {
    hth_match found = HTH_MATCH_NONE;
    *which = 0;
    for (size_t i = 0; i < 2 && p->call->close[i] != NULL; i++) {
        hth_match match = hth_output_match(p, at, p->call->close[i]);
        if (match == HTH_MATCH_FULL) *which = i + 1;
        if (match > found) found = match;
    }
    return found;
}

/* ---- between values ---- */

static hth_step next_step(hth_parser *p) {
    hth_tagged *t = &p->body.tagged;
    size_t which;
    HTH_STEP(hth_output_skip_space(p));
    if (p->at == p->text.size) return HTH_WAIT;
    hth_match key = hth_output_match(p, p->at, p->call->tags->key_open), close = match_close(p, p->at, &which);
    hth_match json = p->call->tags->json_open == NULL || t->any ? HTH_MATCH_NONE
                                                                : hth_output_match(p, p->at, p->call->tags->json_open);
    if (json == HTH_MATCH_FULL) {
        p->at += strlen(p->call->tags->json_open);
        p->call = p->call->tags->json;
        hth_json_start(&p->json);
        p->phase = HTH_PHASE_ARGUMENTS;
        return HTH_TURN;
    }
    if (key == HTH_MATCH_FULL) {
        HTH_STEP(hth_output_call_begin_object(p));
        p->at += strlen(p->call->tags->key_open);
        t->key_at = p->at;
        t->state = HTH_TAG_KEY;
        return HTH_NEXT;
    }
    if (close == HTH_MATCH_FULL) {
        HTH_STEP(hth_output_call_begin_object(p));
        HTH_STEP(hth_output_call_put(p, "}"));
        p->at += strlen(p->call->close[which - 1]);
        p->closed = which;
        HTH_STEP(hth_output_call_done(p));
        return hth_output_call_close(p);
    }
    if (key == HTH_MATCH_PARTIAL || close == HTH_MATCH_PARTIAL || json == HTH_MATCH_PARTIAL) return HTH_WAIT;
    return hth_output_call_fail(p, p->begun ? "text stands between the parameters of a tool call"
                                            : "a tool call's name is not followed by its parameters");
}

static hth_step value_begins(hth_parser *p) {
    hth_tagged *t = &p->body.tagged;
    t->state = HTH_TAG_VALUE;
    t->value_at = p->at;
    t->started = false;
    t->nesting = 0;
    return HTH_NEXT;
}

/* The key, for which &amp; and &quot; may stand for & and ". */
static hth_step argue_key(hth_parser *p) {
    static const char *const references[][2] = {{"&amp;", "&"}, {"&quot;", "\\\""}};
    hth_tagged *t = &p->body.tagged;
    size_t from = t->key_at;
    for (size_t at = from; at < t->key_to && p->call->tags->key_has_references; at++) {
        for (size_t i = 0; i < 2; i++) {
            size_t size = strlen(references[i][0]);
            if (t->key_to - at < size || memcmp(p->text.data + at, references[i][0], size) != 0) continue;
            HTH_STEP(hth_output_call_put_escaped(p, from, at));
            HTH_STEP(hth_output_call_put(p, references[i][1]));
            from = at + size;
            at = from - 1;
            break;
        }
    }
    return hth_output_call_put_escaped(p, from, t->key_to);
}

static hth_step key_ended(hth_parser *p) {
    hth_tagged *t = &p->body.tagged;
    const char *key = p->text.data + t->key_at;
    size_t size = t->key_to - t->key_at;
    HTH_STEP(hth_output_call_put(p, t->any ? ", \"" : "\""));
    HTH_STEP(argue_key(p));
    HTH_STEP(hth_output_call_put(p, "\": "));
    t->any = true;
    t->types = hth_output_tools_types(p->tools, p->text.data + p->name.from, p->name.to - p->name.from, key, size);
    if (p->call->tags->types != NULL) {
        t->state = HTH_TAG_TYPE;
        return HTH_NEXT;
    }
    t->string = t->types == HTH_TYPE_STRING;
    if (p->call->tags->value_open == NULL) return value_begins(p);
    t->state = HTH_TAG_OPEN;
    return HTH_NEXT;
}

static hth_step key_step(hth_parser *p) {
    hth_tagged *t = &p->body.tagged;
    for (; p->at < p->text.size; p->at++) {
        hth_match match = hth_output_match(p, p->at, p->call->tags->key_close);
        if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_FULL) {
            t->key_to = p->at;
            p->at += strlen(p->call->tags->key_close);
            return key_ended(p);
        }
        if (p->at - t->key_at >= MAX_KEY || p->text.data[p->at] == '\n')
            return hth_output_call_fail(p, "a parameter's name does not end");
    }
    return HTH_WAIT;
}

/* The word for the value's type, and what ends it. No word is the beginning of another. */
static hth_step type_step(hth_parser *p) {
    hth_tagged *t = &p->body.tagged;
    const hth_output_tags *tags = p->call->tags;
    for (const hth_output_type_word *word = tags->types; word->text != NULL; word++) {
        size_t size = strlen(word->text);
        hth_match match = hth_output_match(p, p->at, word->text);
        if (match == HTH_MATCH_FULL) match = hth_output_match(p, p->at + size, tags->type_close);
        if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_NONE) continue;
        p->at += size + strlen(tags->type_close);
        if (word->types != 0) t->types = word->types;
        t->string = word->types == HTH_TYPE_STRING;
        return value_begins(p);
    }
    return hth_output_call_fail(p, "a parameter does not say its type");
}

static hth_step open_step(hth_parser *p) {
    HTH_STEP(hth_output_skip_space(p));
    hth_match match = hth_output_match(p, p->at, p->call->tags->value_open);
    if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
    if (match == HTH_MATCH_NONE) return hth_output_call_fail(p, "a parameter has no value");
    p->at += strlen(p->call->tags->value_open);
    return value_begins(p);
}

/* ---- values ---- */

/* The type of a JSON text; 0 when it is none. */
static unsigned json_type(hth_parser *p, size_t from, size_t to) {
    hth_json json;
    hth_json_start(&json);
    while (from < to && hth_output_is_space(p->text.data[from])) from++;
    for (size_t i = from; i < to; i++)
        if (!hth_json_take(&json, p->text.data[i])) return 0;
    p->work += to - from;
    if (!hth_json_is_whole(&json)) return 0;
    switch (p->text.data[from]) {
    case '{': return HTH_TYPE_OBJECT;
    case '[': return HTH_TYPE_ARRAY;
    case '"': return HTH_TYPE_STRING;
    case 't':
    case 'f': return HTH_TYPE_BOOLEAN;
    case 'n': return HTH_TYPE_NULL;
    default: return HTH_TYPE_NUMBER;
    }
}

hth_step hth_output_argue_text(hth_parser *p, size_t from, size_t to, unsigned types) {
    static const struct {
        const char *python, *json;
        unsigned type;
    } words[] = {
        {"True", "true", HTH_TYPE_BOOLEAN}, {"False", "false", HTH_TYPE_BOOLEAN}, {"None", "null", HTH_TYPE_NULL}};
    unsigned allowed = types != 0 ? types : ~0u;
    size_t a = from, b = to;
    while (a < b && hth_output_is_space(p->text.data[a])) a++;
    while (b > a && hth_output_is_space(p->text.data[b - 1])) b--;
    unsigned type = json_type(p, a, b);
    /* Where a bare string is allowed, quotes are part of it. */
    if (type == HTH_TYPE_STRING && types != 0 && (allowed & HTH_TYPE_STRING) != 0) type = 0;
    if ((type & allowed) != 0) return hth_output_call_argue(p, p->text.data + a, b - a);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        bool is_word = b - a == strlen(words[i].python) && memcmp(p->text.data + a, words[i].python, b - a) == 0;
        if (is_word && (words[i].type & allowed) != 0) return hth_output_call_put(p, words[i].json);
    }
    HTH_STEP(hth_output_call_put(p, "\""));
    HTH_STEP(hth_output_call_put_escaped(p, from, to));
    return hth_output_call_put(p, "\"");
}

/* Show what is certain to be part of a string's value, up to `to`. */
static hth_step drain(hth_parser *p, size_t to) {
    hth_tagged *t = &p->body.tagged;
    if (!t->string || to <= t->value_at) return HTH_NEXT;
    to = t->value_at + hth_output_whole(p->text.data + t->value_at, to - t->value_at);
    HTH_STEP(hth_output_call_put_escaped(p, t->value_at, to));
    t->value_at = to;
    return HTH_NEXT;
}

static hth_step value_step(hth_parser *p) {
    const hth_output_tags *tags = p->call->tags;
    hth_tagged *t = &p->body.tagged;
    if (!t->started) {
        if (p->at == p->text.size) return HTH_WAIT;
        hth_match literal =
            tags->literal_open == NULL ? HTH_MATCH_NONE : hth_output_match(p, p->at, tags->literal_open);
        if (literal == HTH_MATCH_PARTIAL) return HTH_WAIT;
        t->literal = literal == HTH_MATCH_FULL;
        if (t->literal) t->value_at = p->at += strlen(tags->literal_open);
        else if (tags->newlines && p->text.data[p->at] == '\n') t->value_at = ++p->at;
        t->started = true;
        if (t->string) HTH_STEP(hth_output_call_put(p, "\""));
    }
    const char *value_close = t->literal ? tags->literal_close : tags->value_close;
    for (; p->at < p->text.size; p->at++) {
        p->work++;
        if (p->text.data[p->at] != *value_close) continue;
        hth_match close = hth_output_match(p, p->at, value_close),
                  open = t->literal ? HTH_MATCH_NONE : hth_output_match(p, p->at, tags->nested);
        if (close == HTH_MATCH_PARTIAL || open == HTH_MATCH_PARTIAL) break;
        if (open == HTH_MATCH_FULL) t->nesting++;
        if (close != HTH_MATCH_FULL || t->nesting > 0) {
            if (close == HTH_MATCH_FULL) t->nesting--;
            continue;
        }
        bool newline = tags->newlines && p->at > t->value_at && p->text.data[p->at - 1] == '\n';
        t->value_to = p->at - (newline ? 1 : 0);
        HTH_STEP(drain(p, t->value_to));
        p->at += strlen(value_close);
        t->state = HTH_TAG_AFTER;
        return HTH_NEXT;
    }
    /* A newline before the closing tag would belong to the tag. */
    bool newline = tags->newlines && p->at > t->value_at && p->text.data[p->at - 1] == '\n';
    HTH_STEP(drain(p, p->at - (newline ? 1 : 0)));
    return HTH_WAIT;
}

/* A closing tag has come: does what follows agree that the value has ended? */
static hth_step after_step(hth_parser *p) {
    hth_tagged *t = &p->body.tagged;
    size_t which;
    HTH_STEP(hth_output_skip_space(p));
    hth_match key = hth_output_match(p, p->at, p->call->tags->key_open), close = match_close(p, p->at, &which);
    bool ends = key == HTH_MATCH_FULL || close == HTH_MATCH_FULL || p->at == p->text.size;
    if (!ends && (key == HTH_MATCH_PARTIAL || close == HTH_MATCH_PARTIAL)) return HTH_WAIT;
    if (!ends) {
        t->state = HTH_TAG_VALUE; /* the tag, and what followed it, is part of the value */
        return HTH_NEXT;
    }
    t->state = HTH_TAG_NEXT;
    if (!t->string) return hth_output_argue_text(p, t->value_at, t->value_to, t->types);
    HTH_STEP(hth_output_call_put_escaped(p, t->value_at, t->value_to)); /* the beginning of a character, at most */
    return hth_output_call_put(p, "\"");
}

hth_step hth_output_tagged_step(hth_parser *p) {
    hth_step step = HTH_NEXT;
    while (step == HTH_NEXT) {
        switch (p->body.tagged.state) {
        case HTH_TAG_NEXT: step = next_step(p); break;
        case HTH_TAG_KEY: step = key_step(p); break;
        case HTH_TAG_TYPE: step = type_step(p); break;
        case HTH_TAG_OPEN: step = open_step(p); break;
        case HTH_TAG_VALUE: step = value_step(p); break;
        case HTH_TAG_AFTER: step = after_step(p); break;
        }
    }
    return step;
}
