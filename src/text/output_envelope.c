/* Calls that are JSON objects with a name and arguments in them: one, or a list.
 *
 * The name and the arguments come in either order. The arguments are shown as they arrive, once the name is known: as
 * they stand when they are an object, decoded when they are a string that holds one. */
#include "text/output_internal.h"

static const char not_json[] = "a tool call is not JSON";
static const char no_object[] = "a tool call's arguments are not a JSON object";

void hth_output_envelope_begin(hth_parser *p) {
    p->phase = HTH_PHASE_ENVELOPE;
    p->body.envelope = (hth_envelope){.depth = p->call->body == HTH_BODY_ENVELOPE ? 1 : 2};
    hth_json_start(&p->body.envelope.json);
}

bool hth_output_envelope_is_between(const hth_parser *p) {
    return p->body.envelope.any && !p->body.envelope.inside;
}

static bool is_key(const hth_parser *p, size_t from, size_t to, const char *const *names) {
    for (; *names != NULL; names++)
        if (strlen(*names) == to - from && memcmp(p->text.data + from, *names, to - from) == 0) return true;
    return false;
}

/* Take the arguments' bytes up to p->at, if the call is known to be one. */
static hth_step drain(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    size_t to = e->arguments_open ? p->at : e->arguments_to, from = e->arguments_at;
    if (!p->begun || !e->has_arguments || from >= to) return HTH_NEXT;
    e->arguments_at = to;
    if (!e->arguments_are_string) return hth_output_call_argue(p, p->text.data + from, to - from);
    size_t at = p->arguments.size;
    if (!hth_json_decode(&e->decoder, p->text.data + from, to - from, &p->arguments)) return HTH_NO_MEMORY;
    for (; at < p->arguments.size; at++) {
        bool good = hth_json_take(&e->inner, p->arguments.data[at]);
        bool object = e->inner.event == HTH_JSON_OPEN ? e->inner.depth > 1 || p->arguments.data[at] == '{'
                                                      : e->inner.depth > 0 || e->inner.event == HTH_JSON_NOTHING ||
                                                            e->inner.event == HTH_JSON_CLOSE;
        p->work++;
        if (good && object) continue;
        p->arguments.size = at;
        return hth_output_call_fail(p, no_object);
    }
    return HTH_NEXT;
}

/* The name is known and the arguments have begun, or there will be none. */
static hth_step begin(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    const char *name = p->text.data + p->name.from;
    size_t size = p->name.to - p->name.from;
    hth_bytes decoded = {0};
    hth_json_decoder decoder = {0};
    if (memchr(name, '\\', size) != NULL) {
        if (!hth_json_decode(&decoder, name, size, &decoded)) {
            hth_bytes_free(&decoded);
            return HTH_NO_MEMORY;
        }
        name = decoded.data;
        size = decoded.size;
    }
    hth_step step = HTH_NEXT;
    bool known = p->tools == NULL || hth_output_tools_have(p->tools, name, size);
    if (p->call == &hth_output_bare_call && !known) step = hth_output_call_fail(p, not_json);
    else step = hth_output_call_begin(p, name, size);
    hth_bytes_free(&decoded);
    if (step != HTH_NEXT) return step;
    hth_json_start(&e->inner);
    return drain(p);
}

static hth_step begin_if_ready(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    return e->has_name && e->has_arguments && !p->begun ? begin(p) : HTH_NEXT;
}

static hth_step key_ended(hth_parser *p) {
    static const char *const names[] = {"name", "tool_name", "function", NULL};
    static const char *const arguments[] = {"arguments", "parameters", "args", NULL};
    static const char *const ids[] = {"id", "tool_call_id", NULL};
    static const char *const types[] = {"type", NULL};
    hth_envelope *e = &p->body.envelope;
    size_t from = e->string_at, to = p->at;
    if (p->call->body == HTH_BODY_KEYED_LIST) {
        if (e->has_name) return hth_output_call_fail(p, "a tool call has two names");
        e->key = HTH_KEY_ARGUMENTS;
        e->has_name = true;
        p->name = (hth_range){from, to};
        return HTH_NEXT;
    }
    e->key = is_key(p, from, to, names)       ? HTH_KEY_NAME
             : is_key(p, from, to, arguments) ? HTH_KEY_ARGUMENTS
             : is_key(p, from, to, ids)       ? HTH_KEY_ID
                                              : HTH_KEY_OTHER;
    bool twice = (e->key == HTH_KEY_NAME && e->has_name) || (e->key == HTH_KEY_ARGUMENTS && e->has_arguments);
    if (twice) return hth_output_call_fail(p, "a tool call has its name or its arguments twice");
    /* A message that is just JSON is a call only when it says nothing else. */
    if (p->call == &hth_output_bare_call && e->key == HTH_KEY_OTHER && !is_key(p, from, to, types))
        return hth_output_call_fail(p, not_json);
    return HTH_NEXT;
}

static hth_step arguments_begin(hth_parser *p, size_t at, bool string) {
    hth_envelope *e = &p->body.envelope;
    e->has_arguments = e->arguments_open = true;
    e->arguments_are_string = string;
    e->arguments_at = at;
    e->decoder = (hth_json_decoder){0};
    return begin_if_ready(p);
}

static hth_step arguments_end(hth_parser *p, size_t to) {
    hth_envelope *e = &p->body.envelope;
    e->arguments_open = false;
    e->arguments_to = to;
    return drain(p);
}

/* An element of a list, or the envelope itself, has ended with the byte at p->at. */
static hth_step element_ended(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    if (!e->has_name) return hth_output_call_fail(p, "a tool call has no name");
    /* A message that is just JSON needs more than a name to be a call. */
    if (!e->has_arguments && p->call == &hth_output_bare_call) return hth_output_call_fail(p, not_json);
    if (!p->begun) HTH_STEP(begin(p));
    const hth_call_record *call = &p->calls[p->call_count - 1];
    bool empty = p->arguments.size == call->arguments.from;
    if (e->arguments_are_string && !empty && !hth_json_is_whole(&e->inner)) return hth_output_call_fail(p, no_object);
    p->at++;
    HTH_STEP(hth_output_call_done(p));
    p->call_start = p->at;
    p->name = p->id = (hth_range){0, 0};
    e->any = true;
    e->inside = e->has_name = e->has_arguments = e->arguments_open = e->arguments_are_string = false;
    return HTH_NEXT;
}

/* A string that is the value of one of the call's keys has ended. */
static hth_step string_ended(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    hth_range range = {e->string_at, p->at};
    switch (e->key) {
    case HTH_KEY_NAME:
        e->has_name = true;
        p->name = range;
        return begin_if_ready(p);
    case HTH_KEY_ARGUMENTS: return arguments_end(p, p->at);
    case HTH_KEY_ID:
        if (memchr(p->text.data + range.from, '\\', range.to - range.from) == NULL) p->id = range;
        return HTH_NEXT;
    default: return HTH_NEXT;
    }
}

/* The byte at p->at begins or ends something among the call's own keys and values. */
static hth_step on_level(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    switch (e->json.event) {
    case HTH_JSON_KEY_BEGIN: e->string_at = p->at + 1; return HTH_NEXT;
    case HTH_JSON_KEY_END: return key_ended(p);
    case HTH_JSON_STRING_BEGIN:
        e->string_at = p->at + 1;
        return e->key == HTH_KEY_ARGUMENTS ? arguments_begin(p, p->at + 1, true) : HTH_NEXT;
    case HTH_JSON_STRING_END: return string_ended(p);
    case HTH_JSON_SCALAR:
        if (e->key == HTH_KEY_NAME) return hth_output_call_fail(p, "a tool call's name is no string");
        if (e->key == HTH_KEY_ARGUMENTS && p->text.data[p->at] != 'n') return hth_output_call_fail(p, no_object);
        return HTH_NEXT;
    case HTH_JSON_CLOSE: return e->arguments_open ? arguments_end(p, p->at + 1) : HTH_NEXT;
    default: return HTH_NEXT;
    }
}

static hth_step on_open(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    bool object = p->text.data[p->at] == '{';
    if (e->json.depth == e->depth) {
        if (!object) return hth_output_call_fail(p, "a list of tool calls holds something else than objects");
        e->inside = true;
        e->key = HTH_KEY_OTHER;
        return HTH_NEXT;
    }
    if (e->json.depth != e->depth + 1 || (e->key != HTH_KEY_ARGUMENTS && e->key != HTH_KEY_NAME)) return HTH_NEXT;
    if (e->key == HTH_KEY_NAME) return hth_output_call_fail(p, "a tool call's name is no string");
    if (!object) return hth_output_call_fail(p, no_object);
    return arguments_begin(p, p->at, false);
}

/* One byte that the scanner has taken. */
static hth_step take(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    if (e->json.event == HTH_JSON_OPEN) return on_open(p);
    if (e->json.event == HTH_JSON_CLOSE && e->json.depth + 1 == e->depth) return element_ended(p);
    if (e->json.depth == e->depth) return on_level(p);
    bool stray = e->json.depth == 1 && (e->json.event == HTH_JSON_STRING_BEGIN || e->json.event == HTH_JSON_SCALAR);
    if (stray) return hth_output_call_fail(p, "a list of tool calls holds something else than objects");
    return HTH_NEXT;
}

hth_step hth_output_envelope_step(hth_parser *p) {
    hth_envelope *e = &p->body.envelope;
    while (p->at < p->text.size) {
        size_t at = p->at;
        p->work++;
        if (!hth_json_take(&e->json, p->text.data[at])) {
            HTH_STEP(drain(p));
            return hth_output_call_fail(p, e->json.too_deep ? "a tool call is nested too deep" : not_json);
        }
        HTH_STEP(take(p));
        if (p->at == at) p->at++;
        /* Where a string turns out not to hold an object must not depend on how much of it came at once. */
        if (e->arguments_open && e->arguments_are_string) HTH_STEP(drain(p));
        if (e->json.depth > 0) continue;
        if (e->any) p->spans[p->span_count - 1].size = p->at - p->spans[p->span_count - 1].offset;
        p->kept = p->at;
        return hth_output_call_close(p);
    }
    HTH_STEP(drain(p));
    return HTH_WAIT;
}
