/* The public functions, the buffers, and the loop over phases. */
#include <assert.h>

#include "base/status.h"
#include "text/output_internal.h"

enum { DEFAULT_TEXT = 16 << 20, DEFAULT_CALLS = 256 };

/* ---- text and buffers ---- */

hth_match hth_output_match(hth_parser *p, size_t at, const char *literal) {
    size_t i = 0;
    while (literal[i] != 0 && at + i < p->text.size && p->text.data[at + i] == literal[i]) i++;
    p->work += i + 1;
    if (literal[i] == 0) return HTH_MATCH_FULL;
    return at + i == p->text.size && !p->ended ? HTH_MATCH_PARTIAL : HTH_MATCH_NONE;
}

hth_step hth_output_skip_space(hth_parser *p) {
    size_t from = p->at;
    while (p->at < p->text.size && hth_output_is_space(p->text.data[p->at])) p->at++;
    p->work += p->at - from + 1;
    return p->at == p->text.size && !p->ended ? HTH_WAIT : HTH_NEXT;
}

size_t hth_output_whole(const char *data, size_t size) {
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char c = (unsigned char)data[size - back];
        if (c < 0x80) return size;
        if (c < 0xC0) continue;
        size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        return length > back ? size - back : size;
    }
    return size;
}

void hth_output_report(hth_parser *p, hearth_output_kind kind, const char *text, size_t size) {
    if (p->sink == NULL) return;
    const hth_call_record *call = &p->calls[p->call_count - 1];
    hearth_output_event event = {.kind = kind, .call = p->call_count - 1, .text = text, .size = size, .id = ""};
    if (kind == HEARTH_OUTPUT_CALL_END) {
        event.fault = call->fault;
        event.id_size = call->id.to - call->id.from;
        if (event.id_size > 0) event.id = p->names.data + call->id.from;
    }
    p->sink(p->context, &event);
}

hth_step hth_output_add_span(hth_parser *p, hearth_output_span span) {
    hearth_output_span *last = p->span_count > 0 ? &p->spans[p->span_count - 1] : NULL;
    if (last != NULL && span.kind != HEARTH_OUTPUT_CALL && last->kind == span.kind && last->fault == span.fault &&
        last->offset + last->size == span.offset) {
        last->size += span.size;
        return HTH_NEXT;
    }
    if (p->span_count == p->span_capacity) {
        size_t capacity = 2 * p->span_capacity + 8;
        hearth_output_span *grown = realloc(p->spans, capacity * sizeof *grown);
        if (grown == NULL) return HTH_NO_MEMORY;
        p->spans = grown;
        p->span_capacity = capacity;
    }
    p->spans[p->span_count++] = span;
    return HTH_NEXT;
}

hth_step hth_output_show(hth_parser *p, size_t to) {
    if (to <= p->kept) return HTH_NEXT;
    bool is_reasoning = p->is_reasoning && !p->keep_reasoning;
    hearth_output_kind kind = is_reasoning ? HEARTH_OUTPUT_REASONING : HEARTH_OUTPUT_CONTENT;
    hearth_output_event event = {
        .kind = kind, .text = p->text.data + p->kept, .size = to - p->kept, .id = "", .fault = p->fault};
    hearth_output_span span = {.kind = kind, .offset = p->kept, .size = event.size, .fault = p->fault};
    if (!hth_bytes_append(is_reasoning ? &p->reasoning : &p->content, event.text, event.size)) return HTH_NO_MEMORY;
    HTH_STEP(hth_output_add_span(p, span));
    p->kept = to;
    if (p->sink != NULL) p->sink(p->context, &event);
    return HTH_NEXT;
}

/* ---- creating ---- */

static void mark_starts(hth_parser *p) {
    const hth_output_syntax *s = p->syntax;
    if (s->think_open != NULL) p->starts[(unsigned char)*s->think_open] = true;
    if (s->think_close != NULL) p->starts[(unsigned char)*s->think_close] = true;
    if (s->headers != NULL) p->starts[(unsigned char)*s->headers->start] = true;
    for (size_t i = 0; s->headers != NULL && i < sizeof s->headers->ends / sizeof *s->headers->ends; i++)
        if (s->headers->ends[i] != NULL) p->starts[(unsigned char)*s->headers->ends[i]] = true;
    for (int i = 0; i < HTH_OUTPUT_MAX_MARKERS; i++) {
        if (s->section_open[i] != NULL) p->starts[(unsigned char)*s->section_open[i]] = true;
        if (s->section_close[i] != NULL) p->starts[(unsigned char)*s->section_close[i]] = true;
        if (s->dropped[i] != NULL) p->starts[(unsigned char)*s->dropped[i]] = true;
    }
    for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES && s->calls[i].open != NULL; i++) {
        p->starts[(unsigned char)*s->calls[i].open] = true;
        for (int k = 0; k < 2; k++)
            if (s->calls[i].close[k] != NULL) p->starts[(unsigned char)*s->calls[i].close[k]] = true;
    }
}

hearth_status hearth_output_parser_create(hearth_output_format format, const hearth_output_options *options,
                                          hearth_output_parser **out, hearth_error *err) {
    static const hearth_output_options defaults;
    const hearth_output_options *o = options != NULL ? options : &defaults;
    *out = NULL;
    if ((unsigned)format >= HEARTH_OUTPUT_FORMAT_COUNT)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "there is no output format %d", (int)format);
    hth_parser *p = calloc(1, sizeof *p);
    if (p == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an output parser");
    p->syntax = hth_output_syntax_of(format);
    p->keep_reasoning = o->keep_reasoning != 0;
    p->max_text = o->max_text != 0 ? o->max_text : DEFAULT_TEXT;
    p->max_calls = o->max_calls != 0 ? o->max_calls : DEFAULT_CALLS;
    p->section = -1;
    mark_starts(p);
    if (o->tools != NULL) {
        hearth_status status = hth_output_tools_read(o->tools, o->tools_size, &p->tools, err);
        if (status != HEARTH_OK) {
            hearth_output_parser_free(&p);
            return status;
        }
    }
    bool starts_in_reasoning = o->starts_in_reasoning != 0 && p->syntax->think_close != NULL;
    if (p->syntax->headers != NULL) hth_output_header_begin(p, 0);
    else hth_output_text_begin(p, starts_in_reasoning, starts_in_reasoning && !p->keep_reasoning);
    *out = p;
    return HEARTH_OK;
}

void hearth_output_parser_free(hearth_output_parser **parser) {
    hth_parser *p = *parser;
    if (p == NULL) return;
    hth_output_tools_free(&p->tools);
    hth_bytes_free(&p->text);
    hth_bytes_free(&p->content);
    hth_bytes_free(&p->reasoning);
    hth_bytes_free(&p->names);
    hth_bytes_free(&p->arguments);
    free(p->spans);
    free(p->calls);
    free(p->public_calls);
    free(p);
    *parser = NULL;
}

/* ---- the loop ---- */

static hth_step step(hth_parser *p) {
    switch (p->phase) {
    case HTH_PHASE_TEXT: return hth_output_text_step(p);
    case HTH_PHASE_HEADER: return hth_output_header_step(p);
    default: return hth_output_call_step(p);
    }
}

static hearth_status advance(hth_parser *p, hearth_error *err) {
    hth_step did = HTH_TURN;
    while (did != HTH_WAIT && did != HTH_NO_MEMORY) {
        size_t at = p->at;
        hth_phase phase = p->phase;
        did = step(p);
        assert(did != HTH_NEXT);
        /* Turning without getting on would be for ever. (A failed call turns to text where it stands.) */
        assert(did != HTH_TURN || p->at > at || p->phase != phase);
    }
    if (did == HTH_NO_MEMORY) {
        p->failed = true;
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory to parse an answer of %zu bytes", p->text.size);
    }
    if (p->begun) hth_output_call_show(p);
    return HEARTH_OK;
}

static hearth_status check_usable(const hth_parser *p, hearth_error *err) {
    if (p->failed) return hth_fail(err, HEARTH_NO_MEMORY, "this answer's parser ran out of memory before");
    if (p->ended) return hth_fail(err, HEARTH_BAD_ARGUMENT, "this answer has been finished before");
    return HEARTH_OK;
}

hearth_status hearth_output_parser_feed(hearth_output_parser *parser, const char *text, size_t size,
                                        hearth_output_sink sink, void *context, hearth_error *err) {
    hth_parser *p = parser;
    HTH_TRY(check_usable(p, err));
    if (size > p->max_text - p->text.size)
        return hth_fail(err, HEARTH_TOO_LONG, "an answer of %zu bytes and %zu more: the limit is %zu", p->text.size,
                        size, p->max_text);
    if (!hth_bytes_append(&p->text, text, size)) {
        p->failed = true;
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory to parse an answer of %zu bytes", p->text.size + size);
    }
    p->sink = sink;
    p->context = context;
    return advance(p, err);
}

hearth_output_place hearth_output_parser_place(const hearth_output_parser *p) {
    bool text = p->phase == HTH_PHASE_TEXT && !p->is_reasoning;
    if (p->content.size > 0 || (text && !p->blank)) return HEARTH_OUTPUT_IN_CONTENT;
    if (text && p->at == p->text.size) return HEARTH_OUTPUT_BEFORE_CONTENT;
    bool header = p->phase == HTH_PHASE_HEADER && p->call_start == p->text.size;
    return header ? HEARTH_OUTPUT_BEFORE_CONTENT : HEARTH_OUTPUT_ELSEWHERE;
}

static int marks(const char *marker, const char *text, size_t size) {
    if (marker == NULL || size == 0 || strncmp(marker, text, size) != 0) return 0;
    return marker[size] == 0 ? 2 : 1;
}

int hearth_output_parser_marks(const hearth_output_parser *p, const char *text, size_t size) {
    const hth_output_syntax *s = p->syntax;
    const hth_output_headers *h = s->headers;
    int best = marks(s->think_open, text, size), one;
    if (memchr(text, 0, size) != NULL) return 0;
#define TRY(marker)                                                                                                    \
    if ((one = marks(marker, text, size)) > best) best = one
    for (int i = 0; i < HTH_OUTPUT_MAX_MARKERS; i++) TRY(s->dropped[i]);
    for (int i = 0; i < HTH_OUTPUT_MAX_MARKERS && p->tools != NULL; i++) TRY(s->section_open[i]);
    for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES && p->tools != NULL && s->calls[i].open != NULL; i++)
        TRY(s->calls[i].open);
    if (h == NULL) return best;
    TRY(h->start);
    TRY(h->message);
    for (size_t i = 0; i < sizeof h->parts / sizeof *h->parts; i++) TRY(h->parts[i]);
#undef TRY
    return best;
}

static const char *at_or_empty(const hth_bytes *b, size_t at) {
    return b->data == NULL ? "" : b->data + at;
}

static hearth_status fill_calls(hth_parser *p, hearth_error *err) {
    p->public_calls = calloc(p->call_count + 1, sizeof *p->public_calls);
    p->failed = p->public_calls == NULL;
    if (p->public_calls == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for %zu tool calls", p->call_count);
    for (size_t i = 0; i < p->call_count; i++) {
        const hth_call_record *c = &p->calls[i];
        p->public_calls[i] = (hearth_output_call){.name = at_or_empty(&p->names, c->name.from),
                                                  .name_size = c->name.to - c->name.from,
                                                  .arguments = at_or_empty(&p->arguments, c->arguments.from),
                                                  .arguments_size = c->arguments.to - c->arguments.from,
                                                  .id = at_or_empty(&p->names, c->id.from),
                                                  .id_size = c->id.to - c->id.from,
                                                  .fault = c->fault};
    }
    return HEARTH_OK;
}

/* With `ended` set no step waits for more, so that each phase comes to its own end; then the text phase has the rest.
 */
static hearth_status end(hth_parser *p, hearth_error *err) {
    hth_step did = HTH_TURN;
    HTH_TRY(advance(p, err));
    while (did == HTH_TURN) {
        if (p->phase == HTH_PHASE_TEXT) did = hth_output_text_end(p);
        else if (p->phase == HTH_PHASE_HEADER) did = hth_output_header_end(p);
        else did = hth_output_call_end(p);
        if (did == HTH_TURN) HTH_TRY(advance(p, err));
    }
    if (did != HTH_NO_MEMORY) return HEARTH_OK;
    p->failed = true;
    return hth_fail(err, HEARTH_NO_MEMORY, "no memory to finish an answer of %zu bytes", p->text.size);
}

hearth_status hearth_output_parser_finish(hearth_output_parser *parser, hearth_output_sink sink, void *context,
                                          hearth_output_result *out, hearth_error *err) {
    hth_parser *p = parser;
    HTH_TRY(check_usable(p, err));
    p->ended = true;
    p->sink = sink;
    p->context = context;
    HTH_TRY(end(p, err));
    HTH_TRY(fill_calls(p, err));
    *out = (hearth_output_result){.text = at_or_empty(&p->text, 0),
                                  .text_size = p->text.size,
                                  .content = at_or_empty(&p->content, 0),
                                  .content_size = p->content.size,
                                  .reasoning = at_or_empty(&p->reasoning, 0),
                                  .reasoning_size = p->reasoning.size,
                                  .calls = p->public_calls,
                                  .call_count = p->call_count,
                                  .spans = p->spans,
                                  .span_count = p->span_count,
                                  .faults = p->faults,
                                  .reasoning_open = p->is_reasoning};
    return HEARTH_OK;
}
