#include "support/output_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/output_format.h"
#include "text/output_json.h"

static void put(hth_bytes *b, const char *text, size_t size) {
    if (!hth_bytes_append(b, text, size)) abort();
}

static void put_text(hth_bytes *b, const char *text) {
    put(b, text, strlen(text));
}

static void end_line(output_log *log) {
    if (!log->any) return;
    log->any = false;
    if (log->kind == HEARTH_OUTPUT_CONTENT || log->kind == HEARTH_OUTPUT_REASONING) {
        bool broken = log->fault != NULL;
        put_text(&log->lines, log->kind == HEARTH_OUTPUT_REASONING ? "reasoning \""
                              : broken                             ? "broken \""
                                                                   : "content \"");
        if (!hth_json_escape(log->text.data, log->text.size, &log->lines)) abort();
        put_text(&log->lines, broken ? "\" ! " : "\"");
        if (broken) put_text(&log->lines, log->fault);
        put_text(&log->lines, "\n");
    }
    log->text.size = 0;
}

static void take_call(output_log *log, const hearth_output_event *e) {
    if (e->kind == HEARTH_OUTPUT_CALL) {
        if (e->call != log->calls++ || log->in_call) log->wrong = "a call begins out of order";
        log->in_call = true;
        put(&log->text, e->text, e->size);
        put_text(&log->text, " ");
        return;
    }
    if (!log->in_call || e->call != log->calls - 1) log->wrong = "an event of a call that is not open";
    if (e->kind == HEARTH_OUTPUT_ARGUMENTS) {
        if (e->size == 0 || !hth_utf8_is_valid(e->text, e->size)) log->wrong = "arguments are no whole characters";
        put(&log->text, e->text, e->size);
        return;
    }
    log->in_call = false;
    put(&log->all_calls, log->text.data, log->text.size);
    put(&log->all_calls, e->id, e->id_size);
    put_text(&log->all_calls, e->fault != NULL ? e->fault : "");
    put_text(&log->lines, e->fault == NULL ? "call " : "withdrawn ");
    put(&log->lines, log->text.data, log->text.size);
    if (e->id_size > 0) put_text(&log->lines, " id=");
    put(&log->lines, e->id, e->id_size);
    if (e->fault != NULL) put_text(&log->lines, " ! ");
    if (e->fault != NULL) put_text(&log->lines, e->fault);
    put_text(&log->lines, "\n");
    log->text.size = 0;
}

void output_log_take(void *context, const hearth_output_event *e) {
    output_log *log = context;
    bool is_text = e->kind == HEARTH_OUTPUT_CONTENT || e->kind == HEARTH_OUTPUT_REASONING;
    log->events++;
    if (log->any && (log->kind != e->kind || log->fault != e->fault)) end_line(log);
    if (!is_text) {
        take_call(log, e);
        return;
    }
    if (e->size == 0) log->wrong = "an event without text";
    if (log->in_call) log->wrong = "text inside a call";
    log->any = true;
    log->kind = e->kind;
    log->fault = e->fault;
    put(&log->text, e->text, e->size);
    put(e->kind == HEARTH_OUTPUT_CONTENT ? &log->content : &log->reasoning, e->text, e->size);
}

void output_log_free(output_log *log) {
    hth_bytes_free(&log->lines);
    hth_bytes_free(&log->content);
    hth_bytes_free(&log->reasoning);
    hth_bytes_free(&log->all_calls);
    hth_bytes_free(&log->text);
    *log = (output_log){0};
}

static bool same(const hth_bytes *b, const char *text, size_t size) {
    return b->size == size && (size == 0 || memcmp(b->data, text, size) == 0);
}

/* Hold the result to what the events said. */
static void compare(output_log *log, const hearth_output_result *r) {
    hth_bytes calls = {0};
    for (size_t i = 0; i < r->call_count; i++) {
        const hearth_output_call *c = &r->calls[i];
        put(&calls, c->name, c->name_size);
        put_text(&calls, " ");
        put(&calls, c->arguments, c->arguments_size);
        put(&calls, c->id, c->id_size);
        put_text(&calls, c->fault != NULL ? c->fault : "");
    }
    if (log->in_call) log->wrong = "a call that does not end";
    if (!same(&log->content, r->content, r->content_size)) log->wrong = "the content is not what the events said";
    if (!same(&log->reasoning, r->reasoning, r->reasoning_size)) log->wrong = "nor is the reasoning";
    if (!same(&log->all_calls, calls.data, calls.size)) log->wrong = "the calls are not what the events said";
    hth_bytes_free(&calls);
}

hearth_status output_parse(hearth_output_parser *parser, const char *text, size_t size, const size_t *sizes,
                           size_t count, output_log *log, hearth_output_result *result, hearth_error *err) {
    size_t at = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t piece = i < count && sizes[i] <= size - at ? sizes[i] : size - at;
        /* A copy of just this size, so that a sanitizer sees a read past its end, or into an earlier piece. */
        char *copy = malloc(piece + 1);
        if (copy == NULL) abort();
        memcpy(copy, text + at, piece);
        hearth_status status = hearth_output_parser_feed(parser, copy, piece, output_log_take, log, err);
        free(copy);
        if (status != HEARTH_OK) return status;
        at += piece;
    }
    hearth_status status = hearth_output_parser_finish(parser, output_log_take, log, result, err);
    if (status != HEARTH_OK) return status;
    end_line(log);
    if (result->reasoning_open) put_text(&log->lines, "open\n");
    put(&log->lines, "", 1);
    compare(log, result);
    return HEARTH_OK;
}

/* The longest known marker at the start of a text. */
static size_t marker_size(const hth_output_syntax *s, const char *text, size_t size) {
    const char *known[64] = {s->think_open, s->think_close, "[", "]", ","};
    size_t count = 5, best = 0;
    for (int i = 0; i < HTH_OUTPUT_MAX_MARKERS; i++) {
        known[count++] = s->section_open[i];
        known[count++] = s->section_close[i];
        known[count++] = s->dropped[i];
    }
    for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES; i++) {
        known[count++] = s->calls[i].open; /* of an empty list of calls, with what closes it */
        known[count++] = s->calls[i].close[0];
    }
    for (size_t i = 0; i < count; i++) {
        size_t length = known[i] == NULL ? 0 : strlen(known[i]);
        if (length <= size && length > best && memcmp(text, known[i], length) == 0) best = length;
    }
    return best;
}

static bool is_markup(const hth_output_syntax *s, const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        size_t marker = memchr(" \t\r\n", text[at], 4) != NULL ? 1 : marker_size(s, text + at, size - at);
        if (marker == 0) return false;
        at += marker;
    }
    return true;
}

static bool is_object(const char *text, size_t size) {
    hth_json json;
    hth_json_start(&json);
    for (size_t i = 0; i < size; i++)
        if (!hth_json_take(&json, text[i])) return false;
    return size > 0 && text[0] == '{' && hth_json_is_whole(&json);
}

const char *output_check(hearth_output_format format, const hearth_output_result *r) {
    const hth_output_syntax *syntax = hth_output_syntax_of(format);
    size_t at = 0, content = 0, reasoning = 0, call = 0;
    for (size_t i = 0; i <= r->span_count; i++) {
        hearth_output_span end = {.offset = r->text_size};
        const hearth_output_span *s = i < r->span_count ? &r->spans[i] : &end;
        if (s->offset < at || s->size > r->text_size - s->offset) return "spans overlap, or leave the text";
        if (i < r->span_count && s->size == 0) return "a span is empty";
        if (syntax->headers == NULL && !is_markup(syntax, r->text + at, s->offset - at))
            return "text is lost between spans";
        at = s->offset + s->size;
        if (i == r->span_count) break;
        if (s->kind == HEARTH_OUTPUT_CALL) {
            if (s->call < call || s->call >= r->call_count || r->calls[s->call].fault != NULL)
                return "a span of no call";
            call = s->call + 1;
            continue;
        }
        bool is_content = s->kind == HEARTH_OUTPUT_CONTENT;
        size_t *from = is_content ? &content : &reasoning;
        if (s->size > (is_content ? r->content_size : r->reasoning_size) - *from) return "more spans than text";
        if (memcmp((is_content ? r->content : r->reasoning) + *from, r->text + s->offset, s->size) != 0)
            return "content or reasoning is not what its spans hold";
        *from += s->size;
    }
    if (content != r->content_size || reasoning != r->reasoning_size) return "text is in no span";
    for (size_t i = 0; i < r->call_count; i++)
        if (r->calls[i].fault == NULL && !is_object(r->calls[i].arguments, r->calls[i].arguments_size))
            return "a call's arguments are not a JSON object";
    return NULL;
}
