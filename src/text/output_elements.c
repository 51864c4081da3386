/* Calls whose arguments are elements, one in another: MARK<KEY>VALUE MARK</KEY>, and of a list MARK<item>VALUE
 * MARK</item>, where the mark (a control token) stands before every tag.
 *
 * A value that begins with an element is a list when that is called `item`, and no object by the schema; else an
 * object. Any other value is text up to the closing tag of its own name; what of it is shown when, and which type it
 * has, is as in output_tagged.c. The schema is known of parameters only, not of what is inside them. */
#include "text/output_internal.h"

enum { MAX_KEY = 256 };

void hth_output_elements_begin(hth_parser *p) {
    p->phase = HTH_PHASE_ELEMENTS;
    p->body.elements.state = HTH_ELEMENT_NEXT;
    p->body.elements.depth = 0;
    p->body.elements.seen_at = 0;
    p->body.elements.levels[0] = (hth_element_level){.object = true};
}

/* ---- tags ---- */

/* MARK and `text` at `at`, and where they end. */
static hth_match match_behind_mark(hth_parser *p, size_t at, const char *text, size_t *end) {
    const char *mark = p->call->elements->mark;
    *end = at + strlen(mark);
    hth_match match = hth_output_match(p, at, mark);
    if (match != HTH_MATCH_FULL) return match;
    match = hth_output_match(p, *end, text);
    *end += strlen(text);
    return match;
}

/* Where a tag's name at `at`, which begins at `from`, was found to go on to the last time. */
static size_t seen_to(const hth_elements *e, size_t at, size_t from) {
    return e->seen_at == at && e->seen > from ? e->seen : from;
}

static void see(hth_elements *e, size_t at, size_t to) {
    e->seen_at = at;
    e->seen = to;
}

/* An opening tag at `at`: its name and where it ends. Names have no white space, slash or bracket. */
static hth_match match_open(hth_parser *p, size_t at, hth_range *name, size_t *end) {
    hth_match match = match_behind_mark(p, at, "<", end);
    if (match != HTH_MATCH_FULL) return match;
    if (*end < p->text.size && p->text.data[*end] == '/') return HTH_MATCH_NONE;
    *name = (hth_range){*end, seen_to(&p->body.elements, at, *end)};
    for (; name->to < p->text.size && name->to - name->from < MAX_KEY; name->to++) {
        char c = p->text.data[name->to];
        p->work++;
        if (c == '>' && name->to > name->from) {
            *end = name->to + 1;
            return HTH_MATCH_FULL;
        }
        if (hth_output_is_space(c) || c == '/' || c == '<' || c == '>') return HTH_MATCH_NONE;
    }
    see(&p->body.elements, at, name->to);
    return name->to == p->text.size && !p->ended ? HTH_MATCH_PARTIAL : HTH_MATCH_NONE;
}

/* The closing tag of a name at `at`, and where it ends. */
static hth_match match_closing(hth_parser *p, size_t at, hth_range name, size_t *end) {
    hth_match match = match_behind_mark(p, at, "</", end);
    if (match != HTH_MATCH_FULL) return match;
    size_t size = name.to - name.from, known = seen_to(&p->body.elements, at, *end) - *end, i = known;
    while (i < size && *end + i < p->text.size && p->text.data[*end + i] == p->text.data[name.from + i]) i++;
    p->work += i - known + 1;
    see(&p->body.elements, at, *end + i);
    if (i == size) {
        *end += size;
        match = hth_output_match(p, *end, ">");
        ++*end;
        return match;
    }
    return *end + i == p->text.size && !p->ended ? HTH_MATCH_PARTIAL : HTH_MATCH_NONE;
}

static bool is_item(const hth_parser *p, hth_range name) {
    const char *item = p->call->elements->item;
    return name.to - name.from == strlen(item) && memcmp(p->text.data + name.from, item, name.to - name.from) == 0;
}

/* ---- containers ---- */

/* An element begins in the container at hand. */
static hth_step element_begins(hth_parser *p, hth_range name, size_t end) {
    hth_elements *e = &p->body.elements;
    hth_element_level *level = &e->levels[e->depth];
    if (!level->object && !is_item(p, name))
        return hth_output_call_fail(p, "a list in a tool call has a named element");
    if (level->any) HTH_STEP(hth_output_call_put(p, ", "));
    if (level->object) {
        HTH_STEP(hth_output_call_put(p, "\""));
        HTH_STEP(hth_output_call_put_escaped(p, name.from, name.to));
        HTH_STEP(hth_output_call_put(p, "\": "));
    }
    level->any = true;
    level->name = name;
    e->types = e->depth > 0 ? 0
                            : hth_output_tools_types(p->tools, p->text.data + p->name.from, p->name.to - p->name.from,
                                                     p->text.data + name.from, name.to - name.from);
    e->string = e->types == HTH_TYPE_STRING;
    e->state = HTH_ELEMENT_BEGIN;
    e->value_at = p->at = end;
    return e->string ? hth_output_call_put(p, "\"") : HTH_NEXT;
}

static hth_step container_begins(hth_parser *p, hth_range first) {
    hth_elements *e = &p->body.elements;
    bool list = is_item(p, first) && (e->types & (HTH_TYPE_OBJECT | HTH_TYPE_ARRAY)) != HTH_TYPE_OBJECT;
    if (e->depth + 1 == HTH_JSON_MAX_DEPTH)
        return hth_output_call_fail(p, "a tool call's arguments are nested too deep");
    e->levels[++e->depth] = (hth_element_level){.object = !list};
    e->state = HTH_ELEMENT_NEXT;
    return hth_output_call_put(p, list ? "[" : "{");
}

/* The container at hand has ended, and with it the element that holds it, at `end`. */
static hth_step container_ends(hth_parser *p, size_t end) {
    hth_elements *e = &p->body.elements;
    bool object = e->levels[e->depth--].object;
    p->at = end;
    return hth_output_call_put(p, object ? "}" : "]");
}

/* Between elements. */
static hth_step next_step(hth_parser *p) {
    hth_elements *e = &p->body.elements;
    hth_range name;
    size_t open_end, close_end;
    HTH_STEP(hth_output_skip_space(p));
    if (p->at == p->text.size) return HTH_WAIT;
    hth_match open = match_open(p, p->at, &name, &open_end), close;
    if (e->depth > 0) close = match_closing(p, p->at, e->levels[e->depth - 1].name, &close_end);
    else close = hth_output_match(p, p->at, p->call->close[0]);
    if (open == HTH_MATCH_FULL) {
        HTH_STEP(hth_output_call_begin_object(p));
        return element_begins(p, name, open_end);
    }
    if (close == HTH_MATCH_FULL && e->depth > 0) return container_ends(p, close_end);
    if (close == HTH_MATCH_FULL) {
        HTH_STEP(hth_output_call_begin_object(p));
        HTH_STEP(hth_output_call_put(p, "}"));
        p->at += strlen(p->call->close[0]);
        p->closed = 1;
        HTH_STEP(hth_output_call_done(p));
        return hth_output_call_close(p);
    }
    if (open == HTH_MATCH_PARTIAL || close == HTH_MATCH_PARTIAL) return HTH_WAIT;
    return hth_output_call_fail(p, p->begun ? "text stands between the elements of a tool call"
                                            : "a tool call's name is not followed by its parameters");
}

/* ---- values ---- */

/* An element's first byte that is no white space says whether it holds elements. */
static hth_step begin_step(hth_parser *p) {
    hth_elements *e = &p->body.elements;
    hth_range first;
    size_t end;
    e->state = HTH_ELEMENT_TEXT;
    if (e->string) return HTH_NEXT;
    hth_step space = hth_output_skip_space(p);
    hth_match open = space == HTH_NEXT ? match_open(p, p->at, &first, &end) : HTH_MATCH_PARTIAL;
    if (open == HTH_MATCH_FULL) return container_begins(p, first);
    if (open == HTH_MATCH_PARTIAL) {
        e->state = HTH_ELEMENT_BEGIN;
        return HTH_WAIT;
    }
    p->at = e->value_at;
    return HTH_NEXT;
}

static hth_step drain(hth_parser *p) {
    hth_elements *e = &p->body.elements;
    if (!e->string || p->at <= e->value_at) return HTH_NEXT;
    size_t size = hth_output_whole(p->text.data + e->value_at, p->at - e->value_at);
    HTH_STEP(hth_output_call_put_escaped(p, e->value_at, e->value_at + size));
    e->value_at += size;
    return HTH_NEXT;
}

static hth_step value_ends(hth_parser *p) {
    hth_elements *e = &p->body.elements;
    bool empty = p->at == e->value_at && !(e->types & HTH_TYPE_STRING);
    unsigned containers = e->types & (HTH_TYPE_OBJECT | HTH_TYPE_ARRAY);
    if (e->string) {
        HTH_STEP(hth_output_call_put_escaped(p, e->value_at, p->at)); /* the beginning of a character, at most */
        return hth_output_call_put(p, "\"");
    }
    if (empty && containers == HTH_TYPE_ARRAY) return hth_output_call_put(p, "[]");
    if (empty && containers == HTH_TYPE_OBJECT) return hth_output_call_put(p, "{}");
    return hth_output_argue_text(p, e->value_at, p->at, e->types);
}

static hth_step text_step(hth_parser *p) {
    hth_elements *e = &p->body.elements;
    char first = *p->call->elements->mark;
    for (; p->at < p->text.size; p->at++) {
        size_t end;
        p->work++;
        if (p->text.data[p->at] != first) continue;
        hth_match match = match_closing(p, p->at, e->levels[e->depth].name, &end);
        if (match == HTH_MATCH_PARTIAL) break;
        if (match == HTH_MATCH_NONE) continue;
        HTH_STEP(value_ends(p));
        p->at = end;
        e->state = HTH_ELEMENT_NEXT;
        return HTH_NEXT;
    }
    HTH_STEP(drain(p));
    return HTH_WAIT;
}

hth_step hth_output_elements_step(hth_parser *p) {
    hth_step step = HTH_NEXT;
    while (step == HTH_NEXT) {
        switch (p->body.elements.state) {
        case HTH_ELEMENT_NEXT: step = next_step(p); break;
        case HTH_ELEMENT_BEGIN: step = begin_step(p); break;
        case HTH_ELEMENT_TEXT: step = text_step(p); break;
        }
    }
    return step;
}
