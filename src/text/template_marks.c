#include "text/template_marks.h"

#include <string.h>

#include "base/utf8.h"

/* Render the first n messages without generation prompt, and hold the text against the full one. False: there is no
 * such text. */
static bool measure(hth_work *shared, const hth_code *code, const hth_request *request, const hth_run_inputs *inputs,
                    uint32_t n, const hth_str *full, hearth_template_mark *mark) {
    hth_work w = *shared;
    w.chunks = w.open = NULL;
    hth_dict *variables = hth_dict_new(&w);
    hth_items *messages = HTH_WORK_NEW(&w, hth_items);
    const hth_str *text = NULL, *name = hth_str_text(&w, "add_generation_prompt");
    bool ok = variables != NULL && messages != NULL && name != NULL;
    for (uint32_t i = 0; ok && i < request->variables->count; i++)
        ok = hth_dict_put(&w, variables, request->variables->entries[i].key, request->variables->entries[i].value);
    if (ok) {
        *messages = (hth_items){.kind = HTH_A_LIST, .items = request->messages->items, .count = n, .capacity = n};
        *hth_dict_find_text(variables, "messages") = hth_list_value(messages);
        ok = hth_dict_put(&w, variables, hth_string_value(name), hth_truth(false));
    }
    hth_run_inputs prefix = *inputs;
    prefix.variables = variables;
    ok = ok && hth_template_run(&w, code, &prefix, &text);
    if (ok) {
        size_t same = 0;
        while (same < text->size && same < full->size && text->data[same] == full->data[same]) same++;
        bool stable = same == text->size;
        while (same < full->size && same > 0 && ((unsigned char)full->data[same] & 0xC0) == 0x80) same--;
        *mark = (hearth_template_mark){.message = n, .offset = same, .stable = stable};
    }
    hth_work_end(&w);
    shared->steps = w.steps;
    shared->next_look = w.next_look;
    return ok;
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
    for (uint32_t i = 0; i < count && w->steps < w->max_steps; i++) {
        if (measure(w, code, request, inputs, last - 1 - i, *text, &found[first - 1])) {
            first--;
            /* A message begins no later than the next one, also where a template thinks otherwise. */
            if (first + 1 < count && found[first].offset > found[first + 1].offset)
                found[first] = (hearth_template_mark){found[first].message, found[first + 1].offset, 0};
        }
    }
    r->marks = found + first;
    r->n_marks = count - first;
    return true;
}
