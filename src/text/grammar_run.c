#include "text/grammar_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NO_LINK UINT32_MAX

/* owner: NONE for a config, else the record whose link it is. */
struct hth_run_slot {
    uint64_t step;
    uint32_t state, record, owner;
};

/* ---- Memory ---- */

static uint32_t slots_for(uint32_t width) {
    uint32_t slots = 64;
    while (slots < 2 * width) slots *= 2;
    return slots;
}

size_t hth_run_bytes(const hth_automaton *a, hth_run_size size) {
    return size.records * (sizeof(hth_run_record) + 2 * sizeof(uint32_t)) + 2 * size.links * sizeof(hth_run_link) +
           size.configs * sizeof(hth_run_config) + slots_for(size.width) * sizeof(hth_run_slot) +
           a->n_rules * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(hth_run_config));
}

static void add_places(hth_run *run) {
    const hth_automaton *a = run->automaton;
    for (uint32_t r = 0; r < a->n_rules; r++) {
        hth_run_record *record = &run->records[run->n_records++];
        *record = (hth_run_record){.link = NO_LINK};
        for (uint32_t i = 0; i < a->rules[r].n_sites; i++) {
            const hth_automaton_site *site = &a->sites[a->rules[r].sites + i];
            run->links[run->n_links] = (hth_run_link){site->next, 1 + site->rule, record->link};
            record->link = run->n_links++;
        }
    }
}

hearth_status hth_run_init(hth_run *run, const hth_automaton *a, hth_run_size size, bool places, hearth_error *err) {
    if (places) {
        size.records += a->n_rules;
        size.links += (uint32_t)a->n_sites;
    }
    *run = (hth_run){.automaton = a,
                     .record_room = size.records,
                     .link_room = size.links,
                     .config_room = size.configs,
                     .places = places,
                     .slot_mask = slots_for(size.width) - 1};
    run->records = calloc(size.records, sizeof *run->records);
    run->links = malloc(size.links * sizeof *run->links);
    run->spare_links = malloc(size.links * sizeof *run->spare_links);
    run->configs = malloc(size.configs * sizeof *run->configs);
    run->called_in = calloc(a->n_rules, sizeof *run->called_in);
    run->called_record = malloc(a->n_rules * sizeof *run->called_record);
    run->called = malloc(a->n_rules * sizeof *run->called);
    run->work = malloc(size.records * sizeof *run->work);
    run->returns = malloc(size.records * sizeof *run->returns);
    run->slots = calloc((size_t)run->slot_mask + 1, sizeof *run->slots);
    if (!run->records || !run->links || !run->spare_links || !run->configs || !run->called_in || !run->called_record ||
        !run->called || !run->work || !run->returns || !run->slots) {
        hth_run_free(run);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory to run a grammar");
    }
    run->records[run->n_records++] = (hth_run_record){.link = NO_LINK};
    if (places) add_places(run);
    return HEARTH_OK;
}

void hth_run_free(hth_run *run) {
    free(run->records);
    free(run->links);
    free(run->spare_links);
    free(run->configs);
    free(run->called_in);
    free(run->called_record);
    free(run->called);
    free(run->work);
    free(run->returns);
    free(run->slots);
    *run = (hth_run){0};
}

/* ---- A step ---- */

/* False when it was added in this step before, or there is no room. */
static bool is_new(hth_run *run, uint32_t owner, uint32_t state, uint32_t record) {
    uint32_t hash = (state * 0x9E3779B1u ^ record * 0x85EBCA6Bu ^ owner * 0xC2B2AE35u);
    hash ^= hash >> 15;
    for (uint32_t i = hash;; i++) {
        hth_run_slot *slot = &run->slots[i & run->slot_mask];
        if (slot->step != run->step) {
            if (run->n_slots_used > run->slot_mask / 2) {
                run->overflow = true;
                return false;
            }
            run->n_slots_used++;
            *slot = (hth_run_slot){run->step, state, record, owner};
            return true;
        }
        if (slot->state == state && slot->record == record && slot->owner == owner) return false;
    }
}

static void will_return(hth_run *run, uint32_t record) {
    if (run->records[record].returned == run->step) return;
    run->records[record].returned = run->step;
    run->returns[run->n_returns++] = record;
}

/* A return to it is told by base_returned, and has to stay one. */
static bool is_base(const hth_run *run, uint32_t record) {
    return record == HTH_RECORD_BASE || (record == 1 && run->places);
}

static void add_config(hth_run *run, uint32_t state, uint32_t record) {
    const hth_automaton_state *s = &run->automaton->states[state];
    if (s->final) will_return(run, record);
    if (hth_automaton_is_end(s) || !is_new(run, HTH_RECORD_NONE, state, record)) return;
    if (run->n_configs == run->config_room) run->overflow = true;
    else run->configs[run->n_configs++] = (hth_run_config){state, record};
}

static void add_link(hth_run *run, uint32_t record, uint32_t state, uint32_t caller) {
    if (!is_new(run, record, state, caller)) return;
    if (run->n_links == run->link_room) {
        run->overflow = true;
        return;
    }
    run->links[run->n_links] = (hth_run_link){state, caller, run->records[record].link};
    run->records[record].link = run->n_links++;
}

/* Let a record return where another, complete one does. */
static void copy_links(hth_run *run, uint32_t record, uint32_t from) {
    uint32_t depth = 0;
    run->copy++;
    run->records[from].copied = run->copy;
    run->work[depth++] = from;
    while (depth > 0) {
        uint32_t i = run->records[run->work[--depth]].link;
        for (; i != NO_LINK; i = run->links[i].next) {
            hth_run_link link = run->links[i];
            if (link.state != HTH_STATE_NONE || is_base(run, link.record)) {
                add_link(run, record, link.state, link.record);
            } else if (run->records[link.record].copied != run->copy) {
                run->records[link.record].copied = run->copy;
                run->work[depth++] = link.record;
            }
        }
    }
}

static void make_call(hth_run *run, const hth_automaton_call *call, uint32_t caller) {
    uint32_t rule = call->rule;
    if (run->called_in[rule] != run->step) {
        if (run->n_records == run->record_room) {
            run->overflow = true;
            return;
        }
        run->called_in[rule] = run->step;
        run->called_record[rule] = run->n_records;
        run->records[run->n_records] = (hth_run_record){.link = NO_LINK};
        run->called[run->n_called++] = (hth_run_config){run->automaton->rules[rule].start, run->n_records++};
    }
    uint32_t record = run->called_record[rule];
    bool complete = caller < run->first_record; /* what is called in this step may get more links yet */
    if (call->next == HTH_STATE_NONE && complete && !is_base(run, caller)) copy_links(run, record, caller);
    else add_link(run, record, call->next, caller);
}

/* The ways on from one config: successors, and calls of rules that can begin so. */
static void move(hth_run *run, hth_run_config config, unsigned class) {
    const hth_automaton *a = run->automaton;
    const hth_automaton_state *s = &a->states[config.state];
    uint32_t cell = a->next[(size_t)config.state * a->n_classes + class];
    if (cell != HTH_STATE_NONE && !(cell & HTH_STATE_LIST)) {
        add_config(run, cell, config.record);
    } else if (cell != HTH_STATE_NONE) {
        const uint32_t *list = a->lists + (cell & ~HTH_STATE_LIST);
        for (uint32_t i = 1; i <= list[0]; i++) add_config(run, list[i], config.record);
    }
    for (uint32_t i = 0; i < s->n_calls; i++) {
        const hth_automaton_call *call = &a->calls[s->calls + i];
        if (hth_automaton_begins(a, call->rule, class)) make_call(run, call, config.record);
    }
}

static void follow_returns(hth_run *run) {
    while (run->n_returns > 0) {
        uint32_t record = run->returns[--run->n_returns];
        if (is_base(run, record)) run->base_returned = true;
        for (uint32_t i = run->records[record].link; i != NO_LINK; i = run->links[i].next) {
            hth_run_link link = run->links[i];
            if (link.state == HTH_STATE_NONE) will_return(run, link.record);
            else add_config(run, link.state, link.record);
        }
    }
}

/* One config, one successor, and nothing called or returned: what a step inside a string or a word is. */
static bool step_simply(hth_run *run, uint32_t begin, uint32_t end, unsigned class) {
    const hth_automaton *a = run->automaton;
    if (end - begin != 1 || run->n_configs == run->config_room) return false;
    hth_run_config config = run->configs[begin];
    uint32_t cell = a->next[(size_t)config.state * a->n_classes + class];
    if (a->states[config.state].n_calls > 0) return false;
    if (cell == HTH_STATE_NONE) return true;
    if (cell & HTH_STATE_LIST || a->states[cell].final) return false;
    run->configs[run->n_configs++] = (hth_run_config){cell, config.record};
    return true;
}

void hth_run_step(hth_run *run, uint32_t begin, uint32_t end, unsigned class, uint32_t returning) {
    run->base_returned = false;
    if (returning == HTH_RECORD_NONE && step_simply(run, begin, end, class)) return;
    run->step++;
    run->n_slots_used = run->n_called = run->n_returns = 0;
    run->first_record = run->n_records;
    if (returning != HTH_RECORD_NONE) will_return(run, returning);
    for (uint32_t i = begin; i < end; i++) move(run, run->configs[i], class);
    for (uint32_t i = 0; i < run->n_called; i++) move(run, run->called[i], class);
    follow_returns(run); /* last: by now each record has all of its links */
}

/* ---- Housekeeping ---- */

static void keep(hth_run *run, uint32_t record, uint32_t *depth) {
    if (run->records[record].copied == run->copy) return;
    run->records[record].copied = run->copy;
    run->work[(*depth)++] = record;
}

void hth_run_compact(hth_run *run, uint32_t begin, uint32_t end) {
    uint32_t depth = 0, n_records = 0, n_links = 0, *moved = run->returns;
    run->copy++;
    keep(run, HTH_RECORD_BASE, &depth);
    for (uint32_t i = begin; i < end; i++) keep(run, run->configs[i].record, &depth);
    while (depth > 0) {
        uint32_t i = run->records[run->work[--depth]].link;
        for (; i != NO_LINK; i = run->links[i].next) keep(run, run->links[i].record, &depth);
    }
    for (uint32_t r = 0; r < run->n_records; r++)
        if (run->records[r].copied == run->copy) moved[r] = n_records++;
    for (uint32_t r = 0; r < run->n_records; r++) {
        if (run->records[r].copied != run->copy) continue;
        uint32_t last = NO_LINK;
        for (uint32_t i = run->records[r].link; i != NO_LINK; i = run->links[i].next) {
            run->spare_links[n_links] = (hth_run_link){run->links[i].state, moved[run->links[i].record], last};
            last = n_links++;
        }
        run->records[moved[r]] = (hth_run_record){.link = last}; /* moved[r] <= r: read already */
    }
    for (uint32_t i = begin; i < end; i++) run->configs[i].record = moved[run->configs[i].record];
    hth_run_link *links = run->links;
    run->links = run->spare_links;
    run->spare_links = links;
    run->n_records = n_records;
    run->n_links = n_links;
}

void hth_run_copy(hth_run *to, const hth_run *from) {
    assert(to->automaton == from->automaton && to->record_room == from->record_room);
    to->n_records = from->n_records;
    to->n_links = from->n_links;
    to->n_configs = from->n_configs;
    for (uint32_t i = 0; i < from->n_records; i++) to->records[i] = (hth_run_record){.link = from->records[i].link};
    memcpy(to->links, from->links, from->n_links * sizeof *to->links);
    memcpy(to->configs, from->configs, from->n_configs * sizeof *to->configs);
}
