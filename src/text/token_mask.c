#include "text/token_mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/grammar_similar.h"
#include "text/grow.h"

/* The sets that a text up to a node's byte leads to, and what to put back to return to them. */
typedef struct frame {
    uint32_t begin, end;           /* of the rule and what it calls */
    uint32_t outside, outside_end; /* behind the rule, in any of its callers */
    uint32_t n_records, n_links, n_configs;
    bool ends, outside_ends; /* the text up to here ends the rule, or with it the whole text */
} frame;

typedef struct builder {
    const hth_automaton *automaton;
    const hearth_token_index *index;
    hth_token_masks *out;
    hearth_constraint_limits limits;
    hth_run run;
    frame *frames;           /* [longest + 1] */
    uint64_t *mask;          /* [words], of the state at hand, and how many are in it */
    uint32_t *unsure, *list; /* [n_tokens] */
    uint32_t n_allowed, n_unsure;
    uint32_t *slots; /* [n_slots] set + 1 by its content */
    size_t n_slots;
    hth_hash_key key;
    hearth_error *err;
} builder;

static const hth_run_size run_size = {.records = 1 << 14, .links = 1 << 16, .configs = 1 << 18, .width = 1 << 13};

/* ---- Sets ---- */

size_t hth_token_masks_bytes(const hth_token_masks *m, const hth_automaton *a) {
    return m->n_words * sizeof *m->words + m->n_sets * sizeof *m->sets + a->n_states * sizeof *m->states;
}

static bool grow_slots(builder *b) {
    size_t n = b->n_slots ? 2 * b->n_slots : 256;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < b->n_slots; i++) {
        if (b->slots[i] == 0) continue;
        const hth_token_set *set = &b->out->sets[b->slots[i] - 1];
        size_t words = set->is_mask ? b->index->words : (set->count + (size_t)1) / 2;
        size_t k = (size_t)hth_hash(b->key, b->out->words + set->at, words * sizeof(uint64_t)) & (n - 1);
        while (slots[k] != 0) k = (k + 1) & (n - 1);
        slots[k] = b->slots[i];
    }
    free(b->slots);
    b->slots = slots;
    b->n_slots = n;
    return true;
}

/* Keep a set whose content stands behind the words that are kept already. */
static hearth_status keep_set(builder *b, size_t words, uint32_t count, bool is_mask, uint32_t *id) {
    hth_token_masks *m = b->out;
    if (2 * (m->n_sets + 1) > b->n_slots && !grow_slots(b)) goto no_memory;
    const uint64_t *content = m->words + m->n_words;
    size_t k = (size_t)hth_hash(b->key, content, words * sizeof *content) & (b->n_slots - 1);
    for (; b->slots[k] != 0; k = (k + 1) & (b->n_slots - 1)) {
        const hth_token_set *set = &m->sets[b->slots[k] - 1];
        *id = b->slots[k] - 1;
        if (set->is_mask == is_mask && set->count == count &&
            memcmp(m->words + set->at, content, words * sizeof *content) == 0)
            return HEARTH_OK;
    }
    if (!hth_grow(&m->sets, &m->set_capacity, m->n_sets + 1, sizeof *m->sets)) goto no_memory;
    m->sets[m->n_sets] = (hth_token_set){m->n_words, count, is_mask};
    m->n_words += words;
    *id = (uint32_t)m->n_sets++;
    b->slots[k] = *id + 1;
    size_t bytes = hth_token_masks_bytes(m, b->automaton);
    if (bytes > b->limits.bytes)
        return hth_fail(b->err, HEARTH_OVER_BUDGET,
                        "the constraint takes more than the %zu bytes allowed: its states differ in too many ways",
                        b->limits.bytes);
    return HEARTH_OK;

no_memory:
    return hth_fail(b->err, HEARTH_NO_MEMORY, "no memory for the tokens of a constraint");
}

static bool reserve_words(builder *b, size_t words) {
    return hth_grow(&b->out->words, &b->out->word_capacity, b->out->n_words + words, sizeof *b->out->words);
}

static hearth_status keep_list(builder *b, const uint32_t *list, uint32_t count, uint32_t *id) {
    size_t words = (count + (size_t)1) / 2;
    if (!reserve_words(b, words + 1)) return hth_fail(b->err, HEARTH_NO_MEMORY, "no memory for a constraint");
    uint64_t *to = b->out->words + b->out->n_words;
    if (words > 0) to[words - 1] = 0; /* an odd number leaves half a word */
    if (count > 0) memcpy(to, list, count * sizeof *list);
    return keep_set(b, words, count, false, id);
}

/* The mask at hand, as a list where that is smaller. */
static hearth_status keep_allowed(builder *b, uint32_t *id) {
    uint32_t words = b->index->words, count = 0;
    if (b->n_allowed / 2 >= words) {
        if (!reserve_words(b, words)) return hth_fail(b->err, HEARTH_NO_MEMORY, "no memory for a constraint");
        memcpy(b->out->words + b->out->n_words, b->mask, words * sizeof *b->mask);
        return keep_set(b, words, b->n_allowed, true, id);
    }
    for (uint32_t w = 0; w < words && count < b->n_allowed; w++)
        for (uint64_t bits = b->mask[w]; bits != 0; bits &= bits - 1)
            b->list[count++] = w * 64 + (uint32_t)__builtin_ctzll(bits);
    return keep_list(b, b->list, count, id);
}

/* ---- One state ---- */

/* Take the byte of a node from the frame at its depth. */
static const frame *step_to(builder *b, uint32_t node, uint32_t rule) {
    const frame *f = &b->frames[b->index->depths[node]];
    unsigned class = b->automaton->class_of[b->index->bytes[node]];
    hth_run *run = &b->run;
    frame next = {.begin = f->n_configs};
    run->n_records = f->n_records;
    run->n_links = f->n_links;
    run->n_configs = f->n_configs;
    hth_run_step(run, f->begin, f->end, class, HTH_RECORD_NONE);
    next.end = next.outside = next.outside_end = run->n_configs;
    next.ends = run->base_returned;
    if (next.ends || f->outside < f->outside_end) {
        hth_run_step(run, f->outside, f->outside_end, class, next.ends ? 1 + rule : HTH_RECORD_NONE);
        next.outside_end = run->n_configs;
        next.outside_ends = run->base_returned;
    }
    next.n_records = run->n_records;
    next.n_links = run->n_links;
    next.n_configs = run->n_configs;
    b->out->steps++;
    b->frames[b->index->depths[node] + 1] = next;
    return &b->frames[b->index->depths[node] + 1];
}

static hearth_status find_tokens(builder *b, uint32_t state) {
    const hearth_token_index *x = b->index;
    uint32_t rule = b->automaton->states[state].rule;
    hth_run *run = &b->run;
    memset(b->mask, 0, x->words * sizeof *b->mask);
    b->n_allowed = b->n_unsure = 0;
    run->configs[0] = (hth_run_config){state, HTH_RECORD_BASE};
    b->frames[0].n_configs = b->frames[0].end = 1;
    for (uint32_t node = 0; node < x->n_nodes;) {
        const frame *f = step_to(b, node, rule);
        bool sure = f->begin < f->end || f->ends, unsure = f->outside < f->outside_end || f->outside_ends;
        uint32_t first = x->first[node], end = x->first[node + 1];
        for (uint32_t rank = first; rank < end && sure; rank++) hth_mask_add(b->mask, (uint32_t)x->ids[rank]);
        for (uint32_t rank = first; rank < end && unsure && !sure; rank++) b->unsure[b->n_unsure++] = rank;
        if (sure) b->n_allowed += end - first;
        node = f->begin < f->outside_end ? node + 1 : x->next[node];
    }
    if (run->overflow)
        return hth_fail(b->err, HEARTH_TOO_LONG, "the grammar is too ambiguous: a token can be read in too many ways");
    if (b->out->steps > b->limits.steps)
        return hth_fail(b->err, HEARTH_OVER_BUDGET, "compiling the constraint takes more than the %llu steps allowed",
                        (unsigned long long)b->limits.steps);
    HTH_TRY(keep_allowed(b, &b->out->states[state].allowed));
    return keep_list(b, b->unsure, b->n_unsure, &b->out->states[state].unsure);
}

/* ---- All states ---- */

/* The states that a text can stop in: the start, and those behind a byte or a call. */
static void find_stops(const hth_automaton *a, bool *stops) {
    stops[a->rules[0].start] = true;
    for (size_t i = 0; i < (size_t)a->n_states * a->n_classes; i++) {
        uint32_t cell = a->next[i];
        if (cell == HTH_STATE_NONE) continue;
        if (!(cell & HTH_STATE_LIST)) {
            stops[cell] = true;
            continue;
        }
        const uint32_t *list = a->lists + (cell & ~HTH_STATE_LIST);
        for (uint32_t k = 1; k <= list[0]; k++) stops[list[k]] = true;
    }
    for (size_t i = 0; i < a->n_calls; i++)
        if (a->calls[i].next != HTH_STATE_NONE) stops[a->calls[i].next] = true;
    for (uint32_t state = 0; state < a->n_states; state++)
        if (hth_automaton_is_end(&a->states[state])) stops[state] = false; /* nothing can follow there */
}

/* What holds of a state holds of all that no token can tell from it. */
static hearth_status build_all(builder *b, const uint32_t *same, bool *stops) {
    hth_state_tokens *tokens = b->out->states;
    uint32_t empty;
    HTH_TRY(keep_list(b, NULL, 0, &empty));
    b->frames[0] = (frame){.n_records = b->run.n_records, .n_links = b->run.n_links};
    find_stops(b->automaton, stops);
    for (uint32_t state = 0; state < b->automaton->n_states; state++) {
        if (!stops[state]) continue;
        if (same[state] != state && stops[same[state]]) tokens[state] = tokens[same[state]];
        else HTH_TRY(find_tokens(b, state));
    }
    return HEARTH_OK;
}

hearth_status hth_token_masks_build(const hth_automaton *automaton, const hearth_token_index *index,
                                    hearth_constraint_limits limits, hth_token_masks *out, hearth_error *err) {
    *out = (hth_token_masks){.index = index, .states = calloc(automaton->n_states, sizeof *out->states)};
    builder b = {
        .automaton = automaton, .index = index, .out = out, .limits = limits, .key = hth_hash_new_key(), .err = err};
    hearth_status status = hth_run_init(&b.run, automaton, run_size, true, err);
    if (status != HEARTH_OK) return status;
    b.frames = calloc(index->longest + (size_t)1, sizeof *b.frames);
    b.mask = malloc(index->words * sizeof *b.mask);
    b.unsure = malloc((index->n_tokens + (size_t)1) * sizeof *b.unsure);
    b.list = malloc((index->n_tokens + (size_t)1) * sizeof *b.list);
    bool *stops = calloc(automaton->n_states, sizeof *stops);
    uint32_t *same = malloc(automaton->n_states * sizeof *same);
    if (out->states && b.frames && b.mask && b.unsure && b.list && stops && same) {
        status = hth_automaton_find_similar(automaton, index->longest, same, err);
        if (status == HEARTH_OK) status = build_all(&b, same, stops);
    } else status = hth_fail(err, HEARTH_NO_MEMORY, "no memory for the tokens of a constraint");
    hth_run_free(&b.run);
    free(b.frames);
    free(b.mask);
    free(b.unsure);
    free(b.list);
    free(b.slots);
    free(stops);
    free(same);
    return status;
}

void hth_token_masks_free(hth_token_masks *m) {
    free(m->states);
    free(m->sets);
    free(m->words);
    *m = (hth_token_masks){.index = NULL};
}
