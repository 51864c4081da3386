#include "cli/chat_prompt.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/verbs.h"

/* ---- Pasts ---- */

static void free_past(hth_past *p) {
    free(p->text.data);
    free(p->tokens.ids);
}

bool hth_pasts_add(hth_pasts *p, size_t messages, hth_text prompt, hth_tokens prompt_tokens, hth_text answer,
                   hth_tokens answer_tokens) {
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 16;
        hth_past *grown = realloc(p->items, capacity * sizeof *grown);
        if (!grown) return false;
        p->items = grown;
        p->capacity = capacity;
    }
    hth_past past = {.messages = messages};
    past.text.data = malloc(prompt.size + answer.size + 1);
    past.tokens.ids = malloc((prompt_tokens.count + answer_tokens.count + 1) * sizeof *past.tokens.ids);
    if (!past.text.data || !past.tokens.ids) {
        free_past(&past);
        return false;
    }
    memcpy(past.text.data, prompt.data, prompt.size);
    if (answer.size > 0) memcpy(past.text.data + prompt.size, answer.data, answer.size);
    past.text.size = prompt.size + answer.size;
    memcpy(past.tokens.ids, prompt_tokens.ids, prompt_tokens.count * sizeof *past.tokens.ids);
    memcpy(past.tokens.ids + prompt_tokens.count, answer_tokens.ids, answer_tokens.count * sizeof *past.tokens.ids);
    past.tokens.count = prompt_tokens.count + answer_tokens.count;
    p->items[p->count++] = past;
    return true;
}

void hth_pasts_cut(hth_pasts *p, size_t messages) {
    while (p->count > 0 && p->items[p->count - 1].messages > messages) free_past(&p->items[--p->count]);
}

void hth_pasts_free(hth_pasts *p) {
    while (p->count > 0) free_past(&p->items[--p->count]);
    free(p->items);
    *p = (hth_pasts){.count = 0};
}

/* ---- Prompt ---- */

static bool is_content(const hearth_rendering *r, size_t offset) {
    for (size_t i = 0; i < r->n_segments; i++)
        if (offset >= r->segments[i].begin && offset < r->segments[i].end) return r->segments[i].content != 0;
    return false;
}

bool hth_is_control_token(const hearth_tokenizer *tokenizer, hearth_token id) {
    const char *data;
    size_t shown = 0, hidden = 0;
    return hearth_tokenizer_piece(tokenizer, id, 1, &data, &shown, NULL) == HEARTH_OK &&
           hearth_tokenizer_piece(tokenizer, id, 0, &data, &hidden, NULL) == HEARTH_OK && shown > 0 && hidden == 0;
}

static int prepend(hth_chat_prompt *p, const hth_past *past, const hth_tokens *rest) {
    size_t count = past->tokens.count + rest->count;
    p->tokens.ids = malloc((count + 1) * sizeof *p->tokens.ids);
    if (!p->tokens.ids) return hth_out_of_memory();
    memcpy(p->tokens.ids, past->tokens.ids, past->tokens.count * sizeof *p->tokens.ids);
    memcpy(p->tokens.ids + past->tokens.count, rest->ids, rest->count * sizeof *p->tokens.ids);
    p->tokens.count = count;
    p->reused = past->tokens.count;
    return HTH_EXIT_OK;
}

/* The prompt's tokens as a past and those of the text behind it; *fits: whether they can be. */
static int encode_behind(const hearth_tokenizer *tokenizer, const hth_past *past, hth_chat_prompt *p, bool *fits) {
    const hearth_rendering *r = p->rendering;
    hth_tokens rest = {NULL, 0};
    size_t from = past->text.size;
    *fits = from < r->size && memcmp(r->text, past->text.data, from) == 0 && !is_content(r, from);
    if (!*fits) return HTH_EXIT_OK;
    int status = hth_encode_rendering(tokenizer, r, from, &rest, p->positions);
    *fits = status == HTH_EXIT_OK && rest.count > 0 && hth_is_control_token(tokenizer, rest.ids[0]);
    if (*fits) status = prepend(p, past, &rest);
    for (size_t i = 0; *fits && i < r->n_marks; i++)
        if (r->marks[i].offset >= from) p->positions[i] += p->reused;
    free(rest.ids);
    return status;
}

static int encode(const hearth_tokenizer *tokenizer, const hth_pasts *pasts, hth_chat_prompt *p) {
    bool fits = false;
    int status = HTH_EXIT_OK;
    for (size_t i = pasts->count; i-- > 0 && !fits && status == HTH_EXIT_OK;)
        status = encode_behind(tokenizer, &pasts->items[i], p, &fits);
    if (status == HTH_EXIT_OK && !fits)
        status = hth_encode_rendering(tokenizer, p->rendering, 0, &p->tokens, p->positions);
    return status;
}

static void add_mark(hth_chat_prompt *p, size_t position, hth_mark_kind kind) {
    hth_chat_mark *last = p->n_marks > 0 ? &p->marks[p->n_marks - 1] : NULL;
    if (last && (int64_t)position <= last->position) {
        if (kind > last->kind && (int64_t)position == last->position) last->kind = kind;
        return;
    }
    p->marks[p->n_marks++] = (hth_chat_mark){.position = (int64_t)position, .kind = kind};
}

/* Where users' messages begin, where the answer's header does, and the last row but one: from there the same prompt is
 * answered again with one row. */
static void collect_marks(hth_chat_prompt *p, const hth_conversation *c) {
    const hearth_rendering *r = p->rendering;
    size_t first = 0;
    while (first < c->count && c->messages[first].role != HTH_USER) first++;
    for (size_t i = 0; i < r->n_marks; i++) {
        size_t message = r->marks[i].message;
        bool user = message < c->count && c->messages[message].role == HTH_USER;
        bool inside = p->positions[i] > 0 && p->positions[i] < p->tokens.count;
        if ((!user && message != r->n_messages) || !inside) continue;
        hth_mark_kind kind = !user ? HTH_MARK_PROMPT : message == first ? HTH_MARK_FIRST_MESSAGE : HTH_MARK_MESSAGE;
        add_mark(p, p->positions[i], kind);
    }
    if (p->tokens.count > 1) add_mark(p, p->tokens.count - 1, HTH_MARK_PROMPT);
}

int hth_chat_prompt_make(const hth_chat_template *t, const hearth_tokenizer *tokenizer, const hth_conversation *c,
                         const hth_pasts *pasts, bool all_marks, hth_chat_prompt *out) {
    enum { NEWEST = 8 };
    hth_text request;
    *out = (hth_chat_prompt){.rendering = NULL};
    if (!hth_conversation_request(c, &request)) return hth_out_of_memory();
    int marks = all_marks ? (int)(c->count < 10000 ? c->count + 1 : 10000) : NEWEST;
    int status = hth_chat_template_render(t, request, marks, &out->rendering);
    free(request.data);
    if (status != HTH_EXIT_OK) return status;
    out->positions = calloc(out->rendering->n_marks + 1, sizeof *out->positions);
    out->marks = calloc(out->rendering->n_marks + 2, sizeof *out->marks);
    status = out->positions && out->marks ? encode(tokenizer, pasts, out) : hth_out_of_memory();
    if (status == HTH_EXIT_OK) collect_marks(out, c);
    return status;
}

void hth_chat_prompt_free(hth_chat_prompt *p) {
    hearth_rendering_free(&p->rendering);
    free(p->tokens.ids);
    free(p->positions);
    free(p->marks);
    *p = (hth_chat_prompt){.rendering = NULL};
}
