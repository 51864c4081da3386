/* What all tool calls share: finding out which syntax one has, its name, its place among the calls, and its end. */
#include <assert.h>

#include "base/utf8.h"
#include "text/output_internal.h"

enum { MAX_NAME = 256 }; /* bytes, and of an id */

static const char cut_off[] = "the answer ends inside a tool call";
static const char bad_name[] = "a tool call's name is empty, too long, or holds white space or control characters";

/* ---- the record of a call ---- */

hth_step hth_output_call_begin(hth_parser *p, const char *name, size_t size) {
    bool bad = size == 0 || size > MAX_NAME || !hth_utf8_is_valid(name, size);
    for (size_t i = 0; i < size && !bad; i++) bad = (unsigned char)name[i] <= 0x20 || name[i] == 0x7F;
    if (bad) return hth_output_call_fail(p, bad_name);
    if (p->call_count >= p->max_calls) return hth_output_call_fail(p, "more tool calls than the limit allows");
    if (p->call_count == p->call_capacity) {
        size_t capacity = 2 * p->call_capacity + 4;
        hth_call_record *grown = realloc(p->calls, capacity * sizeof *grown);
        if (grown == NULL) return HTH_NO_MEMORY;
        p->calls = grown;
        p->call_capacity = capacity;
    }
    hth_range range = {p->names.size, p->names.size + size};
    if (!hth_bytes_append(&p->names, name, size)) return HTH_NO_MEMORY;
    p->calls[p->call_count++] = (hth_call_record){.name = range, .arguments.from = p->arguments.size};
    p->begun = true;
    p->shown = p->arguments.size;
    hth_output_report(p, HEARTH_OUTPUT_CALL, p->names.data + range.from, size);
    return HTH_NEXT;
}

hth_step hth_output_call_begin_object(hth_parser *p) {
    if (p->begun) return HTH_NEXT;
    HTH_STEP(hth_output_call_begin(p, p->text.data + p->name.from, p->name.to - p->name.from));
    return hth_output_call_put(p, "{");
}

hth_step hth_output_call_argue(hth_parser *p, const char *text, size_t size) {
    return hth_bytes_append(&p->arguments, text, size) ? HTH_NEXT : HTH_NO_MEMORY;
}

hth_step hth_output_call_put(hth_parser *p, const char *text) {
    return hth_output_call_argue(p, text, strlen(text));
}

hth_step hth_output_call_put_escaped(hth_parser *p, size_t from, size_t to) {
    return hth_json_escape(p->text.data + from, to - from, &p->arguments) ? HTH_NEXT : HTH_NO_MEMORY;
}

void hth_output_call_show(hth_parser *p) {
    const char *text = p->arguments.data == NULL ? "" : p->arguments.data + p->shown;
    size_t size = hth_output_whole(text, p->arguments.size - p->shown);
    if (size == 0) return;
    p->shown += size;
    hth_output_report(p, HEARTH_OUTPUT_ARGUMENTS, text, size);
}

static hth_step record_id(hth_parser *p, hth_call_record *call) {
    size_t size = p->id.to - p->id.from;
    if (size == 0) return HTH_NEXT;
    call->id = (hth_range){p->names.size, p->names.size + size};
    return hth_bytes_append(&p->names, p->text.data + p->id.from, size) ? HTH_NEXT : HTH_NO_MEMORY;
}

hth_step hth_output_call_done(hth_parser *p) {
    assert(p->begun);
    hth_call_record *call = &p->calls[p->call_count - 1];
    if (p->arguments.size == call->arguments.from) HTH_STEP(hth_output_call_argue(p, "{}", 2));
    hth_output_call_show(p);
    call->arguments.to = p->arguments.size;
    HTH_STEP(record_id(p, call));
    hearth_output_span span = {
        .kind = HEARTH_OUTPUT_CALL, .offset = p->call_start, .size = p->at - p->call_start, .call = p->call_count - 1};
    HTH_STEP(hth_output_add_span(p, span));
    p->kept = p->at;
    p->begun = false;
    hth_output_report(p, HEARTH_OUTPUT_CALL_END, "", 0);
    return HTH_NEXT;
}

/* The marker that the text of a broken call ends with. */
static const char *last_close(const hth_parser *p) {
    const hth_output_call_syntax *call = p->call;
    for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES && call == NULL && p->open != NULL; i++)
        if (p->syntax->calls[i].open != NULL && strcmp(p->syntax->calls[i].open, p->open) == 0)
            call = &p->syntax->calls[i];
    if (call == NULL) return NULL;
    return call->close[1] != NULL ? call->close[1] : call->close[0];
}

hth_step hth_output_call_fail(hth_parser *p, const char *fault) {
    bool was_text = p->call == &hth_output_bare_call && !p->begun; /* a JSON object as any other */
    if (p->begun) {
        hth_call_record *call = &p->calls[p->call_count - 1];
        hth_output_call_show(p);
        p->arguments.size = call->arguments.to = p->shown;
        call->fault = fault;
        p->begun = false;
        hth_output_report(p, HEARTH_OUTPUT_CALL_END, "", 0);
    }
    p->phase = HTH_PHASE_TEXT;
    p->is_reasoning = p->blank = p->after_marker = false;
    p->solid = p->at;
    p->fence = (hth_fence){0};
    p->section = -1;
    if (was_text) return HTH_TURN;
    p->fault = fault;
    p->fault_close = last_close(p);
    p->faults++;
    return HTH_TURN;
}

/* ---- from the opening marker to the body ---- */

static void enter_body(hth_parser *p) {
    switch (p->call->body) {
    case HTH_BODY_ENVELOPE:
    case HTH_BODY_LIST:
    case HTH_BODY_KEYED_LIST: hth_output_envelope_begin(p); return;
    case HTH_BODY_ARGUMENTS:
        hth_json_start(&p->json);
        p->phase = HTH_PHASE_ARGUMENTS;
        return;
    case HTH_BODY_TAGGED: hth_output_tagged_begin(p); return;
    case HTH_BODY_ELEMENTS: hth_output_elements_begin(p); return;
    case HTH_BODY_GEMMA:
    case HTH_BODY_PYTHON: hth_output_literals_begin(p); return;
    }
}

static void enter_call(hth_parser *p, const hth_output_call_syntax *call) {
    p->call = call;
    bool name_first = call->name_end != NULL || call->body == HTH_BODY_TAGGED;
    if (!name_first) {
        enter_body(p);
        return;
    }
    p->phase = call->id_close != NULL ? HTH_PHASE_ID : HTH_PHASE_NAME;
    (call->id_close != NULL ? &p->id : &p->name)->from = p->at;
}

hth_step hth_output_call_open(hth_parser *p, size_t start, const char *open) {
    p->call_start = start;
    p->open = open;
    p->call = NULL;
    p->begun = false;
    p->name = p->id = (hth_range){0, 0};
    p->phase = HTH_PHASE_LEAD;
    if (*open == 0) enter_call(p, &hth_output_bare_call);
    return HTH_TURN;
}

static hth_step lead_step(hth_parser *p) {
    HTH_STEP(hth_output_skip_space(p));
    for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES && p->syntax->calls[i].open != NULL; i++) {
        const hth_output_call_syntax *call = &p->syntax->calls[i];
        if (strcmp(call->open, p->open) != 0) continue;
        hth_match match = call->lead == NULL ? HTH_MATCH_FULL : hth_output_match(p, p->at, call->lead);
        if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_NONE) continue;
        bool is_body = call->lead != NULL && (*call->lead == '{' || *call->lead == '[');
        if (call->lead != NULL && !is_body) p->at += strlen(call->lead);
        enter_call(p, call);
        return HTH_TURN;
    }
    return hth_output_call_fail(p, "no tool call follows its opening marker");
}

/* functions.NAME:NUMBER is the id of a call of NAME. */
static void split_id(hth_parser *p) {
    static const char prefix[] = "functions.";
    const char *text = p->text.data;
    size_t size = sizeof prefix - 1, to = p->name.to;
    p->id = p->name;
    while (to > p->name.from && text[to - 1] >= '0' && text[to - 1] <= '9') to--;
    if (to < p->name.to && to > p->name.from && text[to - 1] == ':') p->name.to = to - 1;
    if (p->name.to - p->name.from > size && memcmp(text + p->name.from, prefix, size) == 0) p->name.from += size;
}

static hth_step name_ended(hth_parser *p, hth_range *range, size_t marker) {
    range->to = p->at;
    while (range->to > range->from && hth_output_is_space(p->text.data[range->to - 1])) range->to--;
    p->at += marker;
    return HTH_NEXT;
}

/* A name or an id has ended, at `id_open` or at what else ends it. */
static void enter_next(hth_parser *p, bool id_opens) {
    const hth_output_call_syntax *call = p->call;
    if (p->phase == HTH_PHASE_NAME && call->name_in_id) split_id(p);
    if (id_opens) {
        p->phase = HTH_PHASE_ID;
        p->id.from = p->at;
    } else if (p->phase == HTH_PHASE_ID && call->id_close != NULL) {
        p->phase = HTH_PHASE_NAME;
        p->name.from = p->at;
    } else if (call->attributes_close != NULL) {
        p->phase = HTH_PHASE_ATTRIBUTES;
        p->attributes_at = p->at;
    } else {
        enter_body(p);
    }
}

static hth_step attributes_step(hth_parser *p) {
    for (; p->at < p->text.size; p->at++) {
        hth_match match = hth_output_match(p, p->at, p->call->attributes_close);
        if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_FULL) {
            p->at += strlen(p->call->attributes_close);
            enter_body(p);
            return HTH_TURN;
        }
        if (p->at - p->attributes_at >= MAX_NAME) return hth_output_call_fail(p, "what opens a tool call does not end");
    }
    return HTH_WAIT;
}

/* A name, or an id: up to the marker that ends it. */
static hth_step name_step(hth_parser *p, hth_range *range) {
    bool is_name = p->phase == HTH_PHASE_NAME;
    const char *end = is_name || p->call->id_close == NULL ? p->call->name_end : p->call->id_close;
    const char *id_open = is_name ? p->call->id_open : NULL;
    const char *close = last_close(p);
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at];
        p->work++;
        if (p->at == range->from && hth_output_is_space(c)) {
            range->from++;
            continue;
        }
        hth_match ends = end == NULL ? (hth_output_is_space(c) || c == '<' ? HTH_MATCH_FULL : HTH_MATCH_NONE)
                                     : hth_output_match(p, p->at, end);
        hth_match goes_on = id_open == NULL ? HTH_MATCH_NONE : hth_output_match(p, p->at, id_open);
        if (ends == HTH_MATCH_PARTIAL || goes_on == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (ends == HTH_MATCH_FULL || goes_on == HTH_MATCH_FULL) {
            const char *marker = ends != HTH_MATCH_FULL ? id_open : end == NULL ? "" : end;
            HTH_STEP(name_ended(p, range, strlen(marker)));
            enter_next(p, ends != HTH_MATCH_FULL);
            return HTH_TURN;
        }
        hth_match closes = close == NULL ? HTH_MATCH_NONE : hth_output_match(p, p->at, close);
        if (closes == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (closes == HTH_MATCH_FULL) return hth_output_call_fail(p, "a tool call has a name only");
        if (p->at - range->from >= MAX_NAME || c == '\n') {
            /* White space may stand before the marker, so only a longer run of it is a fault. */
            size_t to = p->at;
            while (to > range->from && hth_output_is_space(p->text.data[to - 1])) to--;
            if (p->at - to > 8 || to - range->from >= MAX_NAME) return hth_output_call_fail(p, bad_name);
        }
    }
    return HTH_WAIT;
}

/* ---- a body that is a JSON object ---- */

static hth_step arguments_step(hth_parser *p) {
    size_t from = p->at;
    if (!p->begun) {
        HTH_STEP(hth_output_skip_space(p));
        if (p->at == p->text.size) return HTH_WAIT;
        if (p->text.data[p->at] != '{') return hth_output_call_fail(p, "a tool call's arguments are not a JSON object");
        from = p->at;
        HTH_STEP(hth_output_call_begin(p, p->text.data + p->name.from, p->name.to - p->name.from));
    }
    while (p->at < p->text.size) {
        p->work++;
        if (!hth_json_take(&p->json, p->text.data[p->at])) {
            HTH_STEP(hth_output_call_argue(p, p->text.data + from, p->at - from));
            return hth_output_call_fail(p, p->json.too_deep ? "a tool call's arguments are nested too deep"
                                                            : "a tool call's arguments are not JSON");
        }
        p->at++;
        if (p->json.depth > 0) continue;
        HTH_STEP(hth_output_call_argue(p, p->text.data + from, p->at - from));
        HTH_STEP(hth_output_call_done(p));
        return hth_output_call_close(p);
    }
    HTH_STEP(hth_output_call_argue(p, p->text.data + from, p->at - from));
    return HTH_WAIT;
}

/* ---- after the body ---- */

hth_step hth_output_call_close(hth_parser *p) {
    p->phase = HTH_PHASE_CLOSE;
    return HTH_TURN;
}

static hth_step rest(hth_parser *p) {
    if (p->section >= 0) p->phase = HTH_PHASE_SECTION;
    else if (p->syntax->headers != NULL) hth_output_header_begin(p, p->at);
    else hth_output_text_begin(p, false, true);
    return HTH_TURN;
}

/* The closing marker belongs to the call's text, with the white space before it. */
static void take_close(hth_parser *p, size_t size) {
    hearth_output_span *last = p->span_count > 0 ? &p->spans[p->span_count - 1] : NULL;
    p->at += size;
    if (last != NULL && last->kind == HEARTH_OUTPUT_CALL && last->offset + last->size == p->kept)
        last->size = p->at - last->offset;
    p->kept = p->at;
}

static hth_step close_step(hth_parser *p) {
    const char *const *close = p->call->close;
    while (p->closed < 2 && close[p->closed] != NULL) {
        HTH_STEP(hth_output_skip_space(p));
        hth_match match = HTH_MATCH_NONE;
        size_t i = p->closed; /* one that was left out does not matter */
        for (; i < 2 && close[i] != NULL && match == HTH_MATCH_NONE; i++) match = hth_output_match(p, p->at, close[i]);
        if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_NONE) break;
        take_close(p, strlen(close[i - 1]));
        p->closed = i;
    }
    bool closed = p->closed > 0 || close[0] == NULL || p->section >= 0;
    p->closed = 0;
    /* One object after another, where a list of them is meant. */
    if (!closed && p->call->body == HTH_BODY_ENVELOPE && p->at < p->text.size && p->text.data[p->at] == '{') {
        p->call_start = p->at;
        hth_output_envelope_begin(p);
        return HTH_TURN;
    }
    rest(p);
    if (closed || p->phase != HTH_PHASE_TEXT) return HTH_TURN;
    p->fault = "text stands between a tool call and its closing marker";
    p->fault_close = last_close(p);
    return HTH_TURN;
}

static hth_step section_step(hth_parser *p) {
    const hth_output_syntax *s = p->syntax;
    HTH_STEP(hth_output_skip_space(p));
    if (p->at == p->text.size) return HTH_WAIT;
    bool used = p->kept > p->call_start; /* a call of this section has been read */
    size_t start = used ? p->at : p->call_start;
    hth_match match = hth_output_match(p, p->at, s->section_close[p->section]);
    if (match == HTH_MATCH_FULL) {
        p->at += strlen(s->section_close[p->section]);
        p->section = -1;
        hth_output_text_begin(p, false, true);
        return HTH_TURN;
    }
    bool partial = match == HTH_MATCH_PARTIAL;
    for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES && s->calls[i].open != NULL; i++) {
        match = hth_output_match(p, p->at, s->calls[i].open);
        partial |= match == HTH_MATCH_PARTIAL;
        if (match == HTH_MATCH_FULL) {
            p->at += strlen(s->calls[i].open);
            return hth_output_call_open(p, start, s->calls[i].open);
        }
    }
    if (partial) return HTH_WAIT;
    p->call_start = start;
    p->call = NULL;
    p->open = s->calls[0].open;
    return hth_output_call_fail(p, "text stands between tool calls");
}

hth_step hth_output_call_step(hth_parser *p) {
    switch (p->phase) {
    case HTH_PHASE_SECTION: return section_step(p);
    case HTH_PHASE_LEAD: return lead_step(p);
    case HTH_PHASE_NAME: return name_step(p, &p->name);
    case HTH_PHASE_ID: return name_step(p, &p->id);
    case HTH_PHASE_ATTRIBUTES: return attributes_step(p);
    case HTH_PHASE_ENVELOPE: return hth_output_envelope_step(p);
    case HTH_PHASE_ARGUMENTS: return arguments_step(p);
    case HTH_PHASE_TAGGED: return hth_output_tagged_step(p);
    case HTH_PHASE_ELEMENTS: return hth_output_elements_step(p);
    case HTH_PHASE_LITERALS: return hth_output_literals_step(p);
    default: return close_step(p);
    }
}

hth_step hth_output_call_end(hth_parser *p) {
    bool between = (p->phase == HTH_PHASE_SECTION && p->kept > p->call_start) ||
                   (p->phase == HTH_PHASE_ENVELOPE && hth_output_envelope_is_between(p)) ||
                   (p->phase == HTH_PHASE_LITERALS && hth_output_literals_are_between(p));
    p->at = p->text.size;
    if (!between) return hth_output_call_fail(p, cut_off);
    p->section = -1;
    hth_output_text_begin(p, false, true);
    return HTH_TURN;
}
