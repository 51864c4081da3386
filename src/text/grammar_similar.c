/* Partition refinement (E. F. Moore's): states are together in round d when texts of d bytes do not tell them apart.
 * In a round only those are looked at again that lead to a state whose class has changed in the round before. */
#include "text/grammar_similar.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/grow.h"

enum { MAX_WORK = 1 << 26 };

#define NONE UINT32_MAX

typedef struct finder {
    const hth_automaton *a;
    uint32_t *class, *next_class; /* [n_states] after a round, and after the next */
    uint32_t *members, *again;    /* [n_states] of a class: how many, and how many of them are looked at again */
    bool *kept;                   /* [n_states] some of the class keep its number */
    uint32_t n_classes;
    uint32_t *targets, *first_target; /* state s leads to targets[first_target[s] .. first_target[s + 1]) */
    size_t n_targets, target_capacity;
    bool *changed, *dirty;         /* [n_states] */
    uint32_t *list;                /* [n_states] the dirty ones */
    uint32_t *slots, *row, *other; /* [n_slots] state + 1; what tells states apart in a round */
    size_t n_slots;
    hth_hash_key key;
    uint64_t work;
} finder;

static uint32_t class_of(const finder *f, uint32_t state) {
    return state == HTH_STATE_NONE ? state : f->class[state];
}

/* What a state is (in the first round), or was and does, in the classes of the round before: how many numbers. */
static size_t describe(finder *f, uint32_t state, bool first, uint32_t *row) {
    const hth_automaton *a = f->a;
    const hth_automaton_state *s = &a->states[state];
    size_t size = 0;
    if (first) {
        row[size++] = s->rule;
        row[size++] = (uint32_t)s->final << 1 | hth_automaton_is_end(s);
        return size;
    }
    row[size++] = f->class[state];
    row[size++] = s->n_calls;
    for (uint32_t c = 0; c < a->n_classes; c++) {
        uint32_t cell = a->next[(size_t)state * a->n_classes + c];
        bool single = cell == HTH_STATE_NONE || !(cell & HTH_STATE_LIST);
        row[size++] = single ? class_of(f, cell) : cell; /* of lists only the same one is alike */
    }
    f->work += a->n_classes;
    return size;
}

static bool calls_alike(const finder *f, uint32_t x, uint32_t y) {
    const hth_automaton_state *s = &f->a->states[x], *t = &f->a->states[y];
    for (uint32_t i = 0; i < s->n_calls; i++) {
        const hth_automaton_call *a = &f->a->calls[s->calls + i], *b = &f->a->calls[t->calls + i];
        if (a->rule != b->rule || class_of(f, a->next) != class_of(f, b->next)) return false;
    }
    return true;
}

/* The first state in this round that is like this one; itself when there is none yet. */
static uint32_t find_like(finder *f, uint32_t state, bool first) {
    size_t size = describe(f, state, first, f->row);
    size_t i = (size_t)hth_hash(f->key, f->row, size * sizeof *f->row) & (f->n_slots - 1);
    for (; f->slots[i] != 0; i = (i + 1) & (f->n_slots - 1)) {
        uint32_t there = f->slots[i] - 1;
        describe(f, there, first, f->other);
        if (memcmp(f->row, f->other, size * sizeof *f->row) == 0 && (first || calls_alike(f, state, there)))
            return there;
    }
    f->slots[i] = state + 1;
    return state;
}

/* ---- Rounds ---- */

static void first_round(finder *f) {
    for (uint32_t state = 0; state < f->a->n_states; state++) {
        uint32_t like = find_like(f, state, true);
        f->class[state] = like == state ? f->n_classes++ : f->class[like];
    }
}

/* The states that lead to a changed one; all, when none has been described by what it does. */
static uint32_t find_dirty(finder *f, bool all) {
    uint32_t count = 0;
    for (uint32_t state = 0; state < f->a->n_states; state++) {
        bool dirty = all;
        for (uint32_t i = f->first_target[state]; i < f->first_target[state + 1] && !dirty; i++)
            dirty = f->changed[f->targets[i]];
        f->dirty[state] = dirty;
        if (dirty) f->list[count++] = state;
    }
    f->work += f->n_targets;
    return count;
}

/* Those that are looked at again leave their class, in groups that are alike, unless all of the class are: then the
 * first group keeps its number. What is not looked at again stays. False when nothing has changed. */
static bool next_round(finder *f, bool all) {
    uint32_t count = find_dirty(f, all);
    bool any = false;
    memset(f->members, 0, f->n_classes * sizeof *f->members);
    memset(f->again, 0, f->n_classes * sizeof *f->again);
    memset(f->kept, 0, f->n_classes * sizeof *f->kept);
    memset(f->slots, 0, f->n_slots * sizeof *f->slots);
    for (uint32_t state = 0; state < f->a->n_states; state++) {
        f->members[f->class[state]]++;
        f->again[f->class[state]] += f->dirty[state];
        f->changed[state] = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t state = f->list[i], like = find_like(f, state, false), class = f->class[state];
        if (like != state) {
            f->next_class[state] = f->next_class[like];
        } else if (f->again[class] == f->members[class] && !f->kept[class]) {
            f->kept[class] = true;
            f->next_class[state] = class;
        } else {
            f->next_class[state] = f->n_classes++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t state = f->list[i];
        f->changed[state] = f->next_class[state] != f->class[state];
        any |= f->changed[state];
        f->class[state] = f->next_class[state];
    }
    return any;
}

static void find(finder *f, uint32_t depth, uint32_t *same) {
    uint32_t n = f->a->n_states, *first = f->list;
    first_round(f);
    for (uint32_t round = 0; round < depth && f->work <= MAX_WORK; round++)
        if (!next_round(f, round == 0)) break;
    for (uint32_t c = 0; c < f->n_classes; c++) first[c] = NONE;
    for (uint32_t state = 0; state < n; state++) {
        uint32_t class = f->class[state];
        if (first[class] == NONE || f->work > MAX_WORK) first[class] = state;
        same[state] = first[class];
    }
}

/* ---- What leads where ---- */

static bool add_target(finder *f, uint32_t state, uint32_t from) {
    if (state == HTH_STATE_NONE) return true;
    for (size_t i = f->n_targets; i > from; i--)
        if (f->targets[i - 1] == state) return true;
    if (!hth_grow(&f->targets, &f->target_capacity, f->n_targets + 1, sizeof *f->targets)) return false;
    f->targets[f->n_targets++] = state;
    return true;
}

static bool find_targets(finder *f) {
    const hth_automaton *a = f->a;
    bool fits = true;
    for (uint32_t state = 0; state < a->n_states && fits; state++) {
        uint32_t from = f->first_target[state] = (uint32_t)f->n_targets, last = HTH_STATE_NONE;
        for (uint32_t c = 0; c < a->n_classes && fits; c++) {
            uint32_t cell = a->next[(size_t)state * a->n_classes + c];
            if (cell == last) continue;
            last = cell;
            if (cell == HTH_STATE_NONE || cell & HTH_STATE_LIST) continue; /* of a list nothing changes */
            fits = add_target(f, cell, from);
        }
        const hth_automaton_state *s = &a->states[state];
        for (uint32_t i = 0; i < s->n_calls && fits; i++) fits = add_target(f, a->calls[s->calls + i].next, from);
    }
    f->first_target[a->n_states] = (uint32_t)f->n_targets;
    return fits;
}

hearth_status hth_automaton_find_similar(const hth_automaton *a, uint32_t depth, uint32_t *same, hearth_error *err) {
    size_t n = a->n_states, row = a->n_classes + (size_t)2;
    finder f = {.a = a, .n_slots = 64, .key = hth_hash_new_key()};
    while (f.n_slots < 2 * n) f.n_slots *= 2;
    f.class = malloc(n * sizeof *f.class);
    f.next_class = malloc(n * sizeof *f.next_class);
    f.members = malloc(n * sizeof *f.members);
    f.again = malloc(n * sizeof *f.again);
    f.kept = malloc(n * sizeof *f.kept);
    f.first_target = malloc((n + 1) * sizeof *f.first_target);
    f.changed = malloc(n * sizeof *f.changed);
    f.dirty = malloc(n * sizeof *f.dirty);
    f.list = malloc(n * sizeof *f.list);
    f.slots = calloc(f.n_slots, sizeof *f.slots);
    f.row = malloc(row * sizeof *f.row);
    f.other = malloc(row * sizeof *f.other);
    bool fits = f.class && f.next_class && f.members && f.again && f.kept && f.first_target && f.changed && f.dirty &&
                f.list && f.slots && f.row && f.other && find_targets(&f);
    if (fits) find(&f, depth, same);
    free(f.class);
    free(f.next_class);
    free(f.members);
    free(f.again);
    free(f.kept);
    free(f.first_target);
    free(f.targets);
    free(f.changed);
    free(f.dirty);
    free(f.list);
    free(f.slots);
    free(f.row);
    free(f.other);
    return fits ? HEARTH_OK : hth_fail(err, HEARTH_NO_MEMORY, "no memory for a grammar");
}
