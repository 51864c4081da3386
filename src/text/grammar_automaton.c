/* Rules become automata by the subset construction: a state is a set of steps of the rule's program, the bytes, calls
 * and end that can come next. */
#include "text/grammar_automaton.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/grow.h"

enum { MAX_WORK = 1 << 28, SLOTS = 2 * HTH_AUTOMATON_MAX_STATES };

#define NO_RULE UINT32_MAX

/* The steps of a state, in increasing order: pool[begin .. begin + count). */
typedef struct step_set {
    uint32_t begin, count;
    bool end;
} step_set;

typedef struct builder {
    const hth_grammar *g;
    const hth_grammar_facts *facts;
    const hth_grammar_program *program;
    hth_automaton *out;
    hearth_error *err;
    uint32_t *rules;                                /* [n_rules] grammar rule of an automaton's rule */
    uint32_t *live;                                 /* [n_rules] automaton's rule of a grammar rule, or NO_RULE */
    bool *reaches_end;                              /* [code] */
    uint32_t *mark, now;                            /* [code], of a closure */
    uint32_t *stack, *seeds, *last_seeds, *targets; /* [code + 1] */
    uint32_t *pool;
    step_set *sets;  /* [states] */
    uint32_t *slots; /* [SLOTS] state + 1, by its rule and set */
    size_t n_pool, pool_capacity, set_capacity, next_capacity, state_capacity, call_capacity, list_capacity;
    uint64_t work;
    uint32_t rule, base; /* the rule at hand and its first state */
    bool deterministic;
    hth_hash_key key;
} builder;

static hearth_status no_memory(builder *b) {
    return hth_fail(b->err, HEARTH_NO_MEMORY, "no memory for the grammar");
}

static const hth_grammar_step *step_at(const builder *b, uint32_t pc) {
    return &b->program->code[pc];
}

/* ---- Rules and classes ---- */

/* The rules that calls still reach, the root first. */
static void find_live_rules(builder *b) {
    hth_automaton *a = b->out;
    for (uint32_t i = 0; i < b->g->n_rules; i++) b->live[i] = NO_RULE;
    b->rules[0] = b->g->root;
    b->live[b->g->root] = 0;
    a->n_rules = 1;
    for (uint32_t i = 0; i < a->n_rules; i++) {
        const hth_grammar_step *s = step_at(b, b->program->begin[b->rules[i]]);
        for (; s->kind != HTH_STEP_END; s++) {
            if (s->kind != HTH_STEP_CALL || b->live[s->to] != NO_RULE) continue;
            b->live[s->to] = a->n_rules;
            b->rules[a->n_rules++] = (uint32_t)s->to;
        }
    }
}

static void find_classes(builder *b) {
    bool cut[257] = {true};
    for (uint32_t i = 0; i < b->out->n_rules; i++) {
        const hth_grammar_step *s = step_at(b, b->program->begin[b->rules[i]]);
        for (; s->kind != HTH_STEP_END; s++)
            if (s->kind == HTH_STEP_BYTE) cut[s->low] = cut[s->high + 1] = true;
    }
    unsigned class = 0;
    for (unsigned byte = 1; byte < 256; byte++) {
        if (cut[byte]) class ++;
        b->out->class_of[byte] = (uint8_t) class;
    }
    b->out->n_classes = class + 1;
}

/* From which steps of a rule its end can be reached. Most jumps lead forward, so a few passes from the back do. */
static void find_dead_ends(builder *b, uint32_t begin, uint32_t end) {
    bool *live = b->reaches_end;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t pc = end + 1; pc-- > begin;) {
            const hth_grammar_step *s = step_at(b, pc);
            bool now = false;
            switch ((hth_grammar_step_kind)s->kind) {
            case HTH_STEP_BYTE: now = live[pc + 1]; break;
            case HTH_STEP_CALL: now = b->facts->rules[s->to].productive && live[pc + 1]; break;
            case HTH_STEP_FORK: now = live[pc + 1] || live[(uint32_t)((int32_t)pc + s->to)]; break;
            case HTH_STEP_JUMP: now = live[(uint32_t)((int32_t)pc + s->to)]; break;
            case HTH_STEP_FAIL: break;
            case HTH_STEP_END: now = true; break;
            }
            changed |= now != live[pc];
            live[pc] = now;
        }
        b->work += end - begin;
    }
}

/* ---- States ---- */

static int by_value(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* Add to the pool the steps that are reached from some seeds without a byte. */
static hearth_status close_seeds(builder *b, const uint32_t *seeds, uint32_t count, step_set *set) {
    uint32_t depth = 0;
    *set = (step_set){.begin = (uint32_t)b->n_pool};
    b->now++;
    for (uint32_t i = 0; i < count; i++) {
        b->stack[depth++] = seeds[i];
        while (depth > 0) {
            uint32_t pc = b->stack[--depth];
            if (b->mark[pc] == b->now || !b->reaches_end[pc]) continue;
            b->mark[pc] = b->now;
            b->work++;
            const hth_grammar_step *s = step_at(b, pc);
            uint32_t to = (uint32_t)((int32_t)pc + s->to);
            if (s->kind == HTH_STEP_END) set->end = true;
            else if (s->kind == HTH_STEP_JUMP) b->stack[depth++] = to;
            else if (s->kind == HTH_STEP_FORK) b->stack[depth++] = to, b->stack[depth++] = pc + 1;
            else {
                if (!hth_grow(&b->pool, &b->pool_capacity, b->n_pool + 1, sizeof *b->pool)) return no_memory(b);
                b->pool[b->n_pool++] = pc;
                set->count++;
                if (s->kind == HTH_STEP_CALL && b->facts->rules[s->to].nullable) b->stack[depth++] = pc + 1;
            }
        }
    }
    if (set->count > 1) qsort(b->pool + set->begin, set->count, sizeof *b->pool, by_value);
    return HEARTH_OK;
}

static hearth_status add_state(builder *b, step_set set, uint32_t *state) {
    hth_automaton *a = b->out;
    size_t n = a->n_states, cells = (n + 1) * a->n_classes;
    if (n == HTH_AUTOMATON_MAX_STATES || cells > HTH_AUTOMATON_MAX_CELLS || b->work > MAX_WORK)
        return hth_fail(b->err, HEARTH_TOO_LONG, "the grammar is too large: its automaton takes more than %zu states",
                        n);
    if (!hth_grow(&b->sets, &b->set_capacity, n + 1, sizeof *b->sets) ||
        !hth_grow(&a->next, &b->next_capacity, cells, sizeof *a->next) ||
        !hth_grow(&a->states, &b->state_capacity, n + 1, sizeof *a->states))
        return no_memory(b);
    b->sets[n] = set;
    a->states[n] = (hth_automaton_state){.rule = b->rule, .final = set.end};
    *state = a->n_states++;
    return HEARTH_OK;
}

/* The state of the set that was closed last, made if there is none; an empty set has none. */
static hearth_status intern(builder *b, step_set set, uint32_t *state) {
    *state = HTH_STATE_NONE;
    if (set.count == 0 && !set.end) return HEARTH_OK;
    const uint32_t *steps = b->pool + set.begin;
    uint64_t hash = hth_hash(b->key, steps, set.count * sizeof *steps) + 2 * (uint64_t)b->rule + set.end;
    for (size_t i = hash % SLOTS;; i = (i + 1) % SLOTS) {
        if (b->slots[i] == 0) {
            HTH_TRY(add_state(b, set, state));
            b->slots[i] = *state + 1;
            return HEARTH_OK;
        }
        const step_set *there = &b->sets[b->slots[i] - 1];
        if (there->count != set.count || there->end != set.end || b->out->states[b->slots[i] - 1].rule != b->rule ||
            memcmp(b->pool + there->begin, steps, set.count * sizeof *steps) != 0)
            continue;
        b->n_pool = set.begin;
        *state = b->slots[i] - 1;
        return HEARTH_OK;
    }
}

/* The states that some seeds lead to: one, or where sets would be too many, one a seed. */
static hearth_status find_targets(builder *b, const uint32_t *seeds, uint32_t n_seeds, uint32_t *count) {
    uint32_t at_once = b->deterministic ? n_seeds : 1;
    *count = 0;
    for (uint32_t i = 0; i < n_seeds; i += at_once) {
        step_set set;
        uint32_t state, k = 0;
        HTH_TRY(close_seeds(b, seeds + i, at_once, &set));
        HTH_TRY(intern(b, set, &state));
        while (k < *count && b->targets[k] != state) k++;
        if (state != HTH_STATE_NONE && k == *count) b->targets[(*count)++] = state;
    }
    return HEARTH_OK;
}

/* ---- Transitions ---- */

/* What stands in the table for the targets found last. */
static hearth_status cell_of(builder *b, uint32_t count, uint32_t *cell) {
    hth_automaton *a = b->out;
    *cell = count == 0 ? HTH_STATE_NONE : b->targets[0];
    if (count < 2) return HEARTH_OK;
    if (a->n_lists + count >= HTH_AUTOMATON_MAX_CELLS)
        return hth_fail(b->err, HEARTH_TOO_LONG, "the grammar is too large: too many ways lead on in it");
    if (!hth_grow(&a->lists, &b->list_capacity, a->n_lists + count + 1, sizeof *a->lists)) return no_memory(b);
    *cell = HTH_STATE_LIST | (uint32_t)a->n_lists;
    a->lists[a->n_lists++] = count;
    memcpy(a->lists + a->n_lists, b->targets, count * sizeof *b->targets);
    a->n_lists += count;
    return HEARTH_OK;
}

static hearth_status add_moves(builder *b, uint32_t state) {
    const hth_automaton *a = b->out;
    uint32_t n_last = 0, cell = HTH_STATE_NONE, low = 0;
    for (uint32_t class = 0; class < a->n_classes; class ++) {
        uint32_t n_seeds = 0, count;
        while (a->class_of[low] != class) low++; /* classes are runs of bytes, in order */
        for (uint32_t i = 0; i < b->sets[state].count; i++) {
            uint32_t pc = b->pool[b->sets[state].begin + i];
            const hth_grammar_step *s = step_at(b, pc);
            if (s->kind == HTH_STEP_BYTE && s->low <= low && low <= s->high) b->seeds[n_seeds++] = pc + 1;
        }
        b->work += b->sets[state].count;
        bool same = n_seeds == n_last && memcmp(b->seeds, b->last_seeds, n_seeds * sizeof *b->seeds) == 0;
        if (!same) {
            HTH_TRY(find_targets(b, b->seeds, n_seeds, &count));
            HTH_TRY(cell_of(b, count, &cell));
            memcpy(b->last_seeds, b->seeds, n_seeds * sizeof *b->seeds);
            n_last = n_seeds;
        }
        b->out->next[(size_t)state * a->n_classes + class] = cell;
        if (cell != HTH_STATE_NONE) b->out->states[state].moves = true;
    }
    return HEARTH_OK;
}

static hearth_status add_calls_of(builder *b, uint32_t state, uint32_t rule, uint32_t n_seeds) {
    hth_automaton *a = b->out;
    uint32_t count;
    HTH_TRY(find_targets(b, b->seeds, n_seeds, &count));
    if (!hth_grow(&a->calls, &b->call_capacity, a->n_calls + count, sizeof *a->calls)) return no_memory(b);
    for (uint32_t i = 0; i < count; i++) a->calls[a->n_calls++] = (hth_automaton_call){rule, b->targets[i]};
    a->states[state].n_calls += count;
    return HEARTH_OK;
}

static hearth_status add_calls(builder *b, uint32_t state) {
    step_set set = b->sets[state];
    b->out->states[state].calls = (uint32_t)b->out->n_calls;
    for (uint32_t i = 0; i < set.count; i++) {
        const hth_grammar_step *s = step_at(b, b->pool[set.begin + i]);
        uint32_t n_seeds = 0;
        bool seen = s->kind != HTH_STEP_CALL;
        for (uint32_t k = 0; k < i && !seen; k++) {
            const hth_grammar_step *other = step_at(b, b->pool[set.begin + k]);
            seen = other->kind == HTH_STEP_CALL && other->to == s->to;
        }
        if (seen) continue;
        for (uint32_t k = i; k < set.count; k++) {
            uint32_t pc = b->pool[set.begin + k];
            if (step_at(b, pc)->kind == HTH_STEP_CALL && step_at(b, pc)->to == s->to) b->seeds[n_seeds++] = pc + 1;
        }
        b->work += set.count;
        HTH_TRY(add_calls_of(b, state, b->live[s->to], n_seeds));
    }
    return HEARTH_OK;
}

/* ---- Rules ---- */

/* The states of the rule, from `most` on given up (*done false). */
static hearth_status explore(builder *b, uint32_t begin, uint32_t most, bool *done) {
    hth_automaton *a = b->out;
    step_set set;
    uint32_t start;
    HTH_TRY(close_seeds(b, &begin, 1, &set));
    set.end = false;                    /* callers pass over a rule that can be empty */
    HTH_TRY(add_state(b, set, &start)); /* in no slot: nothing leads back to it */
    a->rules[b->rule].start = start;
    for (uint32_t state = start; state < a->n_states; state++) {
        HTH_TRY(add_moves(b, state));
        HTH_TRY(add_calls(b, state));
        *done = a->n_states - b->base <= most;
        if (!*done) return HEARTH_OK;
    }
    return HEARTH_OK;
}

static hearth_status build_rule(builder *b, uint32_t rule) {
    hth_automaton *a = b->out;
    uint32_t begin = b->program->begin[b->rules[rule]], end = begin;
    size_t n_pool = b->n_pool, n_calls = a->n_calls, n_lists = a->n_lists;
    bool done;
    while (step_at(b, end)->kind != HTH_STEP_END) end++;
    find_dead_ends(b, begin, end);
    b->rule = rule;
    b->base = a->n_states;
    b->deterministic = true;
    HTH_TRY(explore(b, begin, 4 * (end - begin) + 64, &done));
    if (done) return HEARTH_OK;
    /* A deterministic automaton may need exponentially many states; the other never has more than the program. */
    a->n_states = b->base;
    a->n_calls = n_calls;
    a->n_lists = n_lists;
    b->n_pool = n_pool;
    b->deterministic = false;
    for (size_t i = 0; i < SLOTS; i++)
        if (b->slots[i] > b->base) b->slots[i] = 0; /* nothing was found behind them but others of this rule */
    return explore(b, begin, UINT32_MAX, &done);
}

/* ---- What is known once all states are there ---- */

/* The bytes that a rule's texts can begin with: its own, and those of what it can begin with a call of. */
static void find_first_bytes(hth_automaton *a) {
    for (uint32_t r = 0; r < a->n_rules; r++)
        for (uint32_t c = 0; c < a->n_classes; c++)
            if (a->next[(size_t)a->rules[r].start * a->n_classes + c] != HTH_STATE_NONE)
                a->rules[r].first[c / 64] |= UINT64_C(1) << c % 64;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t r = a->n_rules; r-- > 0;) {
            const hth_automaton_state *s = &a->states[a->rules[r].start];
            for (uint32_t i = 0; i < s->n_calls; i++)
                for (int w = 0; w < 4; w++) {
                    uint64_t more = a->rules[a->calls[s->calls + i].rule].first[w] & ~a->rules[r].first[w];
                    a->rules[r].first[w] |= more;
                    changed |= more != 0;
                }
        }
    }
}

static hearth_status find_sites(builder *b) {
    hth_automaton *a = b->out;
    a->sites = calloc(a->n_calls + 1, sizeof *a->sites);
    if (a->sites == NULL) return no_memory(b);
    for (size_t i = 0; i < a->n_calls; i++) {
        hth_automaton_call *call = &a->calls[i];
        if (hth_automaton_is_end(&a->states[call->next])) call->next = HTH_STATE_NONE;
        a->rules[call->rule].n_sites++;
    }
    for (uint32_t r = 0; r < a->n_rules; r++) {
        a->rules[r].sites = (uint32_t)a->n_sites;
        a->n_sites += a->rules[r].n_sites;
        a->rules[r].n_sites = 0;
    }
    for (uint32_t state = 0; state < a->n_states; state++) {
        const hth_automaton_state *s = &a->states[state];
        for (uint32_t i = 0; i < s->n_calls; i++) {
            const hth_automaton_call *call = &a->calls[s->calls + i];
            hth_automaton_rule *callee = &a->rules[call->rule];
            a->sites[callee->sites + callee->n_sites++] = (hth_automaton_site){s->rule, call->next};
        }
    }
    return HEARTH_OK;
}

static hearth_status build_all(builder *b) {
    hth_automaton *a = b->out;
    find_live_rules(b);
    find_classes(b);
    a->nullable = b->facts->rules[b->g->root].nullable;
    a->rules = calloc(a->n_rules, sizeof *a->rules);
    if (a->rules == NULL) return no_memory(b);
    for (uint32_t rule = 0; rule < a->n_rules; rule++) HTH_TRY(build_rule(b, rule));
    find_first_bytes(a);
    return find_sites(b);
}

hearth_status hth_automaton_build(const hth_grammar *g, const hth_grammar_facts *facts,
                                  const hth_grammar_program *program, hth_automaton *out, hearth_error *err) {
    *out = (hth_automaton){.n_classes = 0};
    size_t code = program->size + 1, rules = g->n_rules + 1;
    builder b = {.g = g, .facts = facts, .program = program, .out = out, .err = err, .key = hth_hash_new_key()};
    b.rules = malloc(rules * sizeof *b.rules);
    b.live = malloc(rules * sizeof *b.live);
    b.reaches_end = calloc(code, sizeof *b.reaches_end);
    b.mark = calloc(code, sizeof *b.mark);
    b.stack = malloc(2 * code * sizeof *b.stack);
    b.seeds = malloc(code * sizeof *b.seeds);
    b.last_seeds = malloc(code * sizeof *b.last_seeds);
    b.targets = malloc(code * sizeof *b.targets);
    b.slots = calloc(SLOTS, sizeof *b.slots);
    bool there =
        b.rules && b.live && b.reaches_end && b.mark && b.stack && b.seeds && b.last_seeds && b.targets && b.slots;
    hearth_status status = there ? build_all(&b) : no_memory(&b);
    free(b.rules);
    free(b.live);
    free(b.reaches_end);
    free(b.mark);
    free(b.stack);
    free(b.seeds);
    free(b.last_seeds);
    free(b.targets);
    free(b.slots);
    free(b.pool);
    free(b.sets);
    return status;
}

void hth_automaton_free(hth_automaton *a) {
    free(a->next);
    free(a->lists);
    free(a->states);
    free(a->calls);
    free(a->rules);
    free(a->sites);
    *a = (hth_automaton){.n_classes = 0};
}

size_t hth_automaton_bytes(const hth_automaton *a) {
    return (size_t)a->n_states * (a->n_classes * sizeof *a->next + sizeof *a->states) + a->n_lists * sizeof *a->lists +
           a->n_calls * sizeof *a->calls + a->n_rules * sizeof *a->rules + a->n_sites * sizeof *a->sites;
}
