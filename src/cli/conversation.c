#include "cli/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/utf8.h"

const char *hth_role_name(hth_role role) {
    static const char *const names[] = {"system", "user", "assistant", "tool"};
    return names[role];
}

/* ---- Messages ---- */

/* A copy, for which what is no UTF-8 becomes U+FFFD byte by byte. */
static bool copy_text(hth_text *out, const char *text, size_t size) {
    static const char replacement[] = "\xEF\xBF\xBD";
    uint32_t ignored;
    char *to = malloc(3 * size + 1);
    *out = (hth_text){to, 0};
    if (!to) return false;
    for (size_t i = 0; i < size;) {
        int n = hth_utf8_decode(text + i, size - i, &ignored);
        memcpy(to + out->size, n > 0 ? text + i : replacement, n > 0 ? (size_t)n : 3);
        out->size += n > 0 ? (size_t)n : 3;
        i += n > 0 ? (size_t)n : 1;
    }
    return true;
}

static void free_message(hth_message *m) {
    free(m->content.data);
    free(m->reasoning.data);
    for (size_t i = 0; i < m->n_calls; i++) {
        free(m->calls[i].name.data);
        free(m->calls[i].arguments.data);
        free(m->calls[i].id.data);
    }
    free(m->calls);
}

static hth_message *add_message(hth_conversation *c, hth_role role) {
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 16;
        hth_message *grown = realloc(c->messages, capacity * sizeof *grown);
        if (!grown) return NULL;
        c->messages = grown;
        c->capacity = capacity;
    }
    c->messages[c->count] = (hth_message){.role = role};
    return &c->messages[c->count++];
}

bool hth_conversation_add(hth_conversation *c, hth_role role, const char *text, size_t size) {
    hth_message *m = add_message(c, role);
    if (!m) return false;
    if (copy_text(&m->content, text, size)) return true;
    hth_conversation_cut(c, c->count - 1);
    return false;
}

/* Some templates take ids of nine letters and digits only. */
static bool copy_id(hth_text *out, const hearth_output_call *call, size_t number) {
    char id[16];
    if (call->id_size > 0) return copy_text(out, call->id, call->id_size);
    snprintf(id, sizeof id, "call%05zu", number % 100000);
    return copy_text(out, id, strlen(id));
}

/* The calls that are complete; before: how many the conversation has. */
static bool copy_calls(hth_message *m, const hearth_output_result *answer, size_t before) {
    m->calls = calloc(answer->call_count + 1, sizeof *m->calls);
    if (!m->calls) return false;
    for (size_t i = 0; i < answer->call_count; i++) {
        const hearth_output_call *call = &answer->calls[i];
        if (call->fault) continue;
        hth_call *to = &m->calls[m->n_calls++];
        if (!copy_text(&to->name, call->name, call->name_size) ||
            !copy_text(&to->arguments, call->arguments, call->arguments_size) ||
            !copy_id(&to->id, call, before + m->n_calls))
            return false;
    }
    return true;
}

bool hth_conversation_add_answer(hth_conversation *c, const hearth_output_result *answer) {
    size_t before = 0;
    for (size_t i = 0; i < c->count; i++) before += c->messages[i].n_calls;
    hth_message *m = add_message(c, HTH_ASSISTANT);
    if (!m) return false;
    if (copy_text(&m->content, answer->content, answer->content_size) &&
        copy_text(&m->reasoning, answer->reasoning, answer->reasoning_size) && copy_calls(m, answer, before))
        return true;
    hth_conversation_cut(c, c->count - 1);
    return false;
}

const hth_call *hth_conversation_open_call(const hth_conversation *c) {
    size_t results = 0;
    while (results < c->count && c->messages[c->count - 1 - results].role == HTH_TOOL) results++;
    if (results == c->count) return NULL;
    const hth_message *answer = &c->messages[c->count - 1 - results];
    return results < answer->n_calls ? &answer->calls[results] : NULL;
}

bool hth_conversation_add_result(hth_conversation *c, const char *text, size_t size) {
    const hth_call *call = hth_conversation_open_call(c);
    if (!hth_conversation_add(c, HTH_TOOL, text, size)) return false;
    c->messages[c->count - 1].result_of = call;
    return true;
}

bool hth_conversation_set_system(hth_conversation *c, const char *text, size_t size) {
    hth_message m = {.role = HTH_SYSTEM};
    bool has = c->count > 0 && c->messages[0].role == HTH_SYSTEM;
    if (text && (!copy_text(&m.content, text, size) || (!has && !add_message(c, HTH_SYSTEM)))) {
        free_message(&m);
        return false;
    }
    if (has) free_message(&c->messages[0]);
    if (text && !has) memmove(c->messages + 1, c->messages, (c->count - 1) * sizeof m);
    if (text) c->messages[0] = m;
    else if (has) memmove(c->messages, c->messages + 1, --c->count * sizeof m);
    return true;
}

void hth_conversation_cut(hth_conversation *c, size_t count) {
    while (c->count > count) free_message(&c->messages[--c->count]);
}

void hth_conversation_free(hth_conversation *c) {
    hth_conversation_cut(c, 0);
    free(c->messages);
    *c = (hth_conversation){.count = 0};
}

/* ---- Request ---- */

static void write_message(hth_json *json, const hth_message *m) {
    hth_json_open(json, NULL, '{');
    hth_json_text(json, "role", hth_role_name(m->role));
    hth_json_bytes(json, "content", m->content.data, m->content.size);
    if (m->reasoning.size > 0) hth_json_bytes(json, "reasoning_content", m->reasoning.data, m->reasoning.size);
    if (m->result_of) hth_json_bytes(json, "name", m->result_of->name.data, m->result_of->name.size);
    if (m->result_of) hth_json_bytes(json, "tool_call_id", m->result_of->id.data, m->result_of->id.size);
    if (m->n_calls > 0) hth_json_open(json, "tool_calls", '[');
    for (size_t i = 0; i < m->n_calls; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_bytes(json, "id", m->calls[i].id.data, m->calls[i].id.size);
        hth_json_text(json, "type", "function");
        hth_json_open(json, "function", '{');
        hth_json_bytes(json, "name", m->calls[i].name.data, m->calls[i].name.size);
        hth_json_value(json, "arguments", m->calls[i].arguments.data, m->calls[i].arguments.size);
        hth_json_close(json, '}');
        hth_json_close(json, '}');
    }
    if (m->n_calls > 0) hth_json_close(json, ']');
    hth_json_close(json, '}');
}

bool hth_conversation_request(const hth_conversation *c, hth_text *out) {
    *out = (hth_text){NULL, 0};
    FILE *memory = open_memstream(&out->data, &out->size);
    if (!memory) return false;
    hth_json json = {.out = memory, .one_line = true};
    hth_json_open(&json, NULL, '{');
    hth_json_open(&json, "messages", '[');
    for (size_t i = 0; i < c->count; i++) write_message(&json, &c->messages[i]);
    hth_json_close(&json, ']');
    hth_json_bool(&json, "add_generation_prompt", true);
    hth_json_close(&json, '}');
    bool written = !ferror(memory);
    if (fclose(memory) == 0 && written) return true;
    free(out->data);
    *out = (hth_text){NULL, 0};
    return false;
}
