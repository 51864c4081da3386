/* Content and reasoning: shown as they come, but for what may yet be a marker, and white space that may yet stand
 * before one. */
#include "text/output_internal.h"

typedef enum role { THINK_OPEN, THINK_CLOSE, CALL_OPEN, SECTION_OPEN, FAULT_CLOSE, MESSAGE_END, DROPPED } role;

typedef struct marker {
    role role;
    const char *literal; /* NULL: none */
    int section;
} marker;

/* A marker is looked for with those that may come at this place: the longest that stands here in full, unless one could
 * still become longer. */
typedef struct finder {
    marker found;
    size_t size;
    bool partial;
} finder;

static void try_marker(hth_parser *p, finder *f, role as, const char *literal, int section) {
    if (literal == NULL) return;
    hth_match match = hth_output_match(p, p->at, literal);
    if (match == HTH_MATCH_PARTIAL) f->partial = true;
    if (match != HTH_MATCH_FULL || strlen(literal) <= f->size) return;
    f->size = strlen(literal);
    f->found = (marker){as, literal, section};
}

static hth_match find_marker(hth_parser *p, marker *out) {
    finder f = {.found = {.literal = NULL}};
    const hth_output_syntax *s = p->syntax;
    if (s->headers != NULL) {
        try_marker(p, &f, MESSAGE_END, s->headers->start, -1);
        for (size_t i = 0; i < sizeof s->headers->ends / sizeof *s->headers->ends; i++)
            try_marker(p, &f, MESSAGE_END, s->headers->ends[i], -1);
    }
    if (p->is_reasoning) {
        try_marker(p, &f, THINK_CLOSE, s->think_close, -1);
    } else {
        if (p->fault != NULL) try_marker(p, &f, FAULT_CLOSE, p->fault_close, -1);
        if (p->blank || s->think_anywhere) try_marker(p, &f, THINK_OPEN, s->think_open, -1);
        if (p->blank) try_marker(p, &f, DROPPED, s->think_close, -1); /* of reasoning that was never opened */
        for (int i = 0; i < HTH_OUTPUT_MAX_MARKERS; i++) {
            try_marker(p, &f, DROPPED, s->dropped[i], -1);
            if (p->fence.byte != 0) continue;
            try_marker(p, &f, SECTION_OPEN, s->section_open[i], i);
            try_marker(p, &f, DROPPED, s->section_close[i], -1);
        }
        for (int i = 0; i < HTH_OUTPUT_MAX_CALL_SYNTAXES && s->calls[i].open != NULL && p->fence.byte == 0; i++)
            try_marker(p, &f, CALL_OPEN, s->calls[i].open, -1);
    }
    *out = f.found;
    return f.partial ? HTH_MATCH_PARTIAL : f.found.literal != NULL ? HTH_MATCH_FULL : HTH_MATCH_NONE;
}

/* ---- fenced code ---- */

static void end_fence_line(hth_fence *f) {
    bool opens = !f->is_text && f->run >= 3 && f->byte == 0;
    bool closes = !f->is_text && f->run >= f->size && f->run_byte == f->byte && !f->has_info;
    char byte = opens ? f->run_byte : closes ? 0 : f->byte;
    *f = (hth_fence){.byte = byte, .size = opens ? f->run : f->size};
}

static void take_fence_byte(hth_fence *f, char c) {
    if (c == '\n') {
        end_fence_line(f);
    } else if (f->is_text) {
        return;
    } else if (f->run == 0) {
        f->is_text = c != '`' && c != '~' && (c != ' ' || ++f->indent > 3);
        if (c == ' ') return;
        f->run_byte = c;
        f->run = 1;
    } else if (c == f->run_byte && !f->run_ended) {
        f->run++;
    } else {
        f->run_ended = true;
        f->has_info |= !hth_output_is_space(c);
        f->is_text = c == '`'; /* ```code``` in one line */
    }
}

/* ---- the phase ---- */

void hth_output_text_begin(hth_parser *p, bool is_reasoning, bool after_marker) {
    p->phase = HTH_PHASE_TEXT;
    p->is_reasoning = is_reasoning;
    p->blank = true;
    p->after_marker = after_marker;
    p->kept = p->solid = p->at;
    p->fault = p->fault_close = NULL;
    p->fence = (hth_fence){0};
}

/* A marker of reasoning that stays in the text. */
static hth_step keep_marker(hth_parser *p, bool is_reasoning) {
    p->is_reasoning = is_reasoning;
    p->solid = p->at;
    p->blank = !is_reasoning;
    p->after_marker = false;
    return HTH_TURN;
}

static hth_step take_marker(hth_parser *p, const marker *m) {
    size_t start = p->at, size = strlen(m->literal);
    bool is_reasoning = m->role == THINK_OPEN;
    if (p->keep_reasoning && (m->role == THINK_OPEN || m->role == THINK_CLOSE)) {
        p->at += size;
        return keep_marker(p, is_reasoning);
    }
    if (m->role == FAULT_CLOSE) p->solid = start + size;
    if (!(p->blank && p->after_marker)) HTH_STEP(hth_output_show(p, p->solid));
    p->at += size;
    switch (m->role) {
    case CALL_OPEN:
        p->kept = p->blank && p->after_marker ? start : p->solid;
        return hth_output_call_open(p, start, m->literal);
    case SECTION_OPEN:
        p->kept = p->blank && p->after_marker ? start : p->solid;
        p->section = m->section;
        p->call_start = start;
        p->phase = HTH_PHASE_SECTION;
        return HTH_TURN;
    case MESSAGE_END:
        hth_output_header_begin(p, m->literal == p->syntax->headers->start ? start : p->at);
        return HTH_TURN;
    default: hth_output_text_begin(p, is_reasoning, true); return HTH_TURN;
    }
}

hth_step hth_output_text_step(hth_parser *p) {
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at];
        bool fences = !p->is_reasoning && p->fault == NULL;
        p->work++;
        if (hth_output_is_space(c)) {
            if (fences) take_fence_byte(&p->fence, c);
            continue;
        }
        if (p->starts[(unsigned char)c]) {
            marker m;
            hth_match match = find_marker(p, &m);
            if (match == HTH_MATCH_PARTIAL) break;
            if (match == HTH_MATCH_FULL) return take_marker(p, &m);
        }
        if (p->blank && p->after_marker) p->kept = p->at;
        if (p->blank && c == '{' && fences && p->syntax->whole_message_is_call)
            return hth_output_call_open(p, p->at, hth_output_bare_call.open);
        if (fences) take_fence_byte(&p->fence, c);
        p->blank = false;
        p->solid = p->at + 1;
    }
    size_t to = p->solid;
    if (to > p->kept && to == p->text.size) to = p->kept + hth_output_whole(p->text.data + p->kept, to - p->kept);
    HTH_STEP(hth_output_show(p, to));
    return HTH_WAIT;
}

hth_step hth_output_text_end(hth_parser *p) {
    if (!(p->blank && p->after_marker)) HTH_STEP(hth_output_show(p, p->text.size));
    return HTH_WAIT;
}
