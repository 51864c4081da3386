/* An answer that is a row of messages, each with a header that says who it is to, or on which channel.
 *
 *   harmony  <|start|>ROLE to=RECIPIENT<|channel|>CHANNEL <|constrain|>json<|message|>TEXT<|end|>
 *   atem     <|start|>ROLE to=RECIPIENT<|message|>TEXT<|eom|>
 *
 * The prompt ends with "<|start|>assistant", so the first header lacks that. The recipient stands before the channel or
 * after it. Text where a header should be is content. */
#include "text/output_internal.h"

enum { MAX_HEADER = 512 };

void hth_output_header_begin(hth_parser *p, size_t start) {
    p->phase = HTH_PHASE_HEADER;
    p->at = p->kept = p->call_start = start;
    p->is_reasoning = false;
    p->fault = p->fault_close = NULL;
    p->blank = p->after_marker = false;
}

static hth_match begins_header(hth_parser *p) {
    const hth_output_headers *h = p->syntax->headers;
    const char *const parts[] = {h->start, h->message, h->parts[0], h->parts[1], h->parts[2]};
    hth_match best = HTH_MATCH_NONE;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hth_match match = parts[i] == NULL ? HTH_MATCH_NONE : hth_output_match(p, p->at, parts[i]);
        if (match > best) best = match;
    }
    return best;
}

/* What follows `key` in the header, up to white space or a marker. */
static hth_range find_word(const hth_parser *p, hth_range header, const char *key) {
    const char *text = p->text.data, *found = memmem(text + header.from, header.to - header.from, key, strlen(key));
    if (found == NULL) return (hth_range){0, 0};
    size_t from = (size_t)(found - text) + strlen(key), to = from;
    while (to < header.to && !hth_output_is_space(text[to]) && text[to] != '<') to++;
    return (hth_range){from, to};
}

static bool is_word(const hth_parser *p, hth_range r, const char *word) {
    return r.to - r.from == strlen(word) && memcmp(p->text.data + r.from, word, r.to - r.from) == 0;
}

static hth_step header_ended(hth_parser *p, hth_range header) {
    const hth_output_headers *h = p->syntax->headers;
    hth_range to = find_word(p, header, "to=");
    bool is_call = h->call != NULL && to.to > to.from;
    for (size_t i = 0; i < sizeof h->persons / sizeof *h->persons && is_call; i++)
        is_call = h->persons[i] == NULL || !is_word(p, to, h->persons[i]);
    if (!is_call) {
        hth_output_text_begin(p, is_word(p, find_word(p, header, h->key), h->reasoning), true);
        return HTH_TURN;
    }
    size_t size = strlen(h->prefix);
    if (to.to - to.from > size && memcmp(p->text.data + to.from, h->prefix, size) == 0) to.from += size;
    p->call = h->call;
    p->open = NULL;
    p->begun = false;
    p->name = to;
    p->id = (hth_range){0, 0};
    p->phase = HTH_PHASE_ARGUMENTS;
    hth_json_start(&p->json);
    return HTH_TURN;
}

hth_step hth_output_header_step(hth_parser *p) {
    const char *end = p->syntax->headers->message;
    size_t start = p->call_start;
    if (p->at == start) {
        hth_step space = hth_output_skip_space(p);
        hth_match match = p->at == p->text.size ? HTH_MATCH_PARTIAL : begins_header(p);
        if (space != HTH_NEXT || match != HTH_MATCH_FULL) p->at = start;
        if (space != HTH_NEXT || match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_NONE) {
            hth_output_text_begin(p, false, start > 0);
            return HTH_TURN;
        }
    }
    for (; p->at < p->text.size; p->at++) {
        hth_match match = hth_output_match(p, p->at, end);
        if (match == HTH_MATCH_PARTIAL) return HTH_WAIT;
        if (match == HTH_MATCH_FULL) {
            hth_range header = {start, p->at};
            p->at += strlen(end);
            return header_ended(p, header);
        }
        p->call = NULL;
        p->open = NULL;
        if (p->at - start >= MAX_HEADER) return hth_output_call_fail(p, "a message's header does not end");
    }
    return HTH_WAIT;
}

hth_step hth_output_header_end(hth_parser *p) {
    size_t at = p->call_start;
    while (at < p->text.size && hth_output_is_space(p->text.data[at])) at++;
    if (at == p->text.size) return HTH_WAIT;
    p->at = p->text.size;
    return hth_output_call_fail(p, "the answer ends inside a message's header");
}
