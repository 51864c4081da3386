#include "text/template_marks.h"

/* The request's variables with the first n messages and without generation prompt; NULL has failed the work. */
static const hth_dict *first_messages(hth_work *w, const hth_request *request, uint32_t n) {
    hth_dict *variables = hth_dict_new(w);
    hth_items *messages = HTH_WORK_NEW(w, hth_items);
    const hth_str *prompt = hth_str_text(w, "add_generation_prompt");
    if (variables == NULL || messages == NULL || prompt == NULL) return NULL;
    for (uint32_t i = 0; i < request->variables->count; i++) {
        const hth_entry *e = &request->variables->entries[i];
        if (!hth_dict_put(w, variables, e->key, e->value)) return NULL;
    }
    *messages = (hth_items){.fixed = true, .items = request->messages->items, .count = n, .capacity = n};
    *hth_dict_find_text(variables, "messages") = hth_list_value(messages);
    return hth_dict_put(w, variables, hth_string_value(prompt), hth_truth(false)) ? variables : NULL;
}

/* Hold the text of the first n messages against the full one. What it makes is freed at once; steps count on. The
 * answer is HEARTH_OK, or why there is no such text. */
static hearth_status measure(hth_work *shared, const hth_code *code, const hth_request *request,
                             const hth_run_inputs *inputs, uint32_t n, const hth_str *full,
                             hearth_template_mark *mark) {
    hth_work w = *shared;
    w.chunks = w.open = NULL;
    hth_run_inputs prefix = *inputs;
    const hth_str *text;
    prefix.variables = first_messages(&w, request, n);
    if (prefix.variables != NULL && hth_template_run(&w, code, &prefix, &text) &&
        hth_work_charge(&w, text->size / 64)) {
        size_t same = 0;
        while (same < text->size && same < full->size && text->data[same] == full->data[same]) same++;
        bool stable = same == text->size;
        while (same > 0 && same < full->size && ((unsigned char)full->data[same] & 0xC0) == 0x80) same--;
        *mark = (hearth_template_mark){.message = n, .offset = same, .stable = stable};
    }
    hth_work_end(&w);
    shared->steps = w.steps;
    shared->next_look = w.next_look;
    return w.status;
}

bool hth_render_marked(hth_work *w, const hth_code *code, const hth_request *request, const hth_run_inputs *inputs,
                       uint32_t marks, const hth_str **text, hearth_rendering *r) {
    hth_run_inputs full = *inputs;
    full.variables = request->variables;
    uint32_t n = request->messages->count;
    const hth_value *prompt = hth_dict_find_text(request->variables, "add_generation_prompt");
    bool generates = prompt != NULL && hth_value_true(*prompt);
    uint32_t last = generates ? n + 1 : n, count = marks < last ? marks : last;
    hearth_template_mark *found = hth_work_take_array(w, count, sizeof *found);
    if (found == NULL || !hth_template_run(w, code, &full, text)) return false;
    /* From the newest back; kept at the end of the array, so that they come out in order. */
    uint32_t first = count;
    for (uint32_t i = 0; i < count; i++) {
        hearth_template_mark *mark = &found[first - 1];
        hearth_status status = measure(w, code, request, inputs, last - 1 - i, *text, mark);
        if (status == HEARTH_NO_MEMORY) return hth_work_fail(w, status, "no memory to find where messages begin");
        if (status == HEARTH_OVER_BUDGET) break; /* the limits allow no more of them */
        if (status != HEARTH_OK) continue;       /* the template refuses these messages */
        first--;
        /* A message begins no later than the next one, also where a template thinks otherwise. */
        if (first + 1 < count && mark->offset > mark[1].offset) {
            mark->offset = mark[1].offset;
            mark->stable = 0;
        }
    }
    r->marks = found + first;
    r->n_marks = count - first;
    return true;
}
