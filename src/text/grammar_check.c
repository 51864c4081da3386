#include "text/grammar_check.h"

#include <assert.h>
#include <stdlib.h>

enum { NO_NUMBER = 0, MAX_WORK = 1 << 27 };

/* A value of a rule's operations while they are walked. The rules that it can begin with a call of are
 * left[begin ...) up to the begin of the next value. */
typedef struct value {
    bool nullable, productive;
    uint32_t begin;
} value;

typedef struct visit {
    uint32_t rule, next; /* the operation, or the edge, to look at */
} visit;

typedef struct checker {
    hth_grammar *g;
    hth_rule_facts *facts;
    uint32_t *order, n_order;
    value *values;                                    /* [n_ops + 1] */
    uint32_t *left;                                   /* [n_ops] */
    visit *path;                                      /* [n_rules], of a walk through the calls */
    uint32_t *number, *low, *stack, numbers, n_stack; /* of Tarjan's algorithm; the numbers count from 1 */
    bool *on_stack;
    uint32_t *edges, *first_edge; /* rule r can begin with a call of edges[first_edge[r] .. first_edge[r + 1]) */
    uint64_t work;
} checker;

/* ---- One rule ---- */

/* Take `count` values off and push what they make. */
static value sequence_of(const value *v, uint32_t count, uint32_t *n_left) {
    value all = {true, true, count > 0 ? v[0].begin : *n_left};
    bool begins = true; /* everything before can be empty */
    for (uint32_t i = 0; i < count; i++) {
        if (begins && !v[i].nullable) {
            begins = false;
            if (i + 1 < count) *n_left = v[i + 1].begin;
        }
        all.nullable &= v[i].nullable;
        all.productive &= v[i].productive;
    }
    return all;
}

static value choice_of(const value *v, uint32_t count) {
    value all = {false, false, v[0].begin};
    for (uint32_t i = 0; i < count; i++) {
        all.nullable |= v[i].nullable;
        all.productive |= v[i].productive;
    }
    return all;
}

static value repeat_of(checker *c, const hth_grammar_op *op, value v, uint32_t *n_left) {
    if (op->b == HTH_GRAMMAR_MANY && v.nullable)
        hth_grammar_fail(c->g, HEARTH_BAD_ARGUMENT, op->at,
                         "what is repeated without limit can be empty, so nothing says how often it is there");
    if (op->b == 0) *n_left = v.begin;
    return (value){op->a == 0 || v.nullable, op->a == 0 || v.productive, v.begin};
}

/* Walk a rule with what is known of the others. The rules it can begin with are left[0 .. *n_left). */
static value walk(checker *c, uint32_t rule, uint32_t *n_left) {
    const hth_grammar_rule *r = &c->g->rules[rule];
    uint32_t depth = 0;
    *n_left = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const hth_grammar_op *op = &c->g->ops[r->first + i];
        value v = {false, true, *n_left};
        switch (op->kind) {
        case HTH_GRAMMAR_LITERAL: v.nullable = op->b == 0; break;
        case HTH_GRAMMAR_SET: v.productive = op->b > 0; break;
        case HTH_GRAMMAR_CALL:
            v.nullable = c->facts[op->a].nullable;
            v.productive = c->facts[op->a].productive;
            c->left[(*n_left)++] = op->a;
            break;
        case HTH_GRAMMAR_SEQUENCE:
            depth -= op->a;
            v = sequence_of(c->values + depth, op->a, n_left);
            break;
        case HTH_GRAMMAR_CHOICE:
            depth -= op->a;
            v = choice_of(c->values + depth, op->a);
            break;
        case HTH_GRAMMAR_REPEAT: v = repeat_of(c, op, c->values[--depth], n_left); break;
        }
        c->values[depth++] = v;
    }
    assert(depth == 1);
    c->work += r->count;
    return c->values[0];
}

/* ---- Facts, callees first ---- */

/* Members of a cycle of calls depend on each other: walk them until nothing new is found. */
static void find_facts(checker *c, const uint32_t *members, uint32_t count) {
    for (bool changed = true; changed && !hth_grammar_failed(c->g);) {
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t n_left;
            hth_rule_facts *f = &c->facts[members[i]];
            value v = walk(c, members[i], &n_left);
            if (v.nullable == f->nullable && v.productive == f->productive) continue;
            f->nullable = v.nullable;
            f->productive = v.productive;
            changed = count > 1 || f->recursive;
        }
        if (c->work > MAX_WORK)
            hth_grammar_fail(c->g, HEARTH_TOO_LONG, c->g->rules[members[0]].at,
                             "the rules depend on each other too much");
    }
}

/* The next call of the rule that a visit is at. */
static bool next_call(const checker *c, visit *v, uint32_t *callee) {
    const hth_grammar_rule *r = &c->g->rules[v->rule];
    while (v->next < r->count) {
        const hth_grammar_op *op = &c->g->ops[r->first + v->next++];
        if (op->kind != HTH_GRAMMAR_CALL) continue;
        *callee = op->a;
        return true;
    }
    return false;
}

static void enter(checker *c, uint32_t rule, uint32_t *depth) {
    c->path[(*depth)++] = (visit){rule, 0};
    c->number[rule] = c->low[rule] = ++c->numbers;
    c->stack[c->n_stack++] = rule;
    c->on_stack[rule] = true;
}

/* The component that ends with a rule whose lowest number is its own. */
static void close_component(checker *c, uint32_t rule) {
    uint32_t begin = c->n_order;
    for (uint32_t member = rule + 1; member != rule;) {
        member = c->stack[--c->n_stack];
        c->on_stack[member] = false;
        c->order[c->n_order++] = member;
    }
    uint32_t count = c->n_order - begin;
    if (count > 1)
        for (uint32_t i = 0; i < count; i++) c->facts[c->order[begin + i]].recursive = true;
    find_facts(c, c->order + begin, count);
}

/* R. E. Tarjan's strongly connected components, from one rule on, without recursion. */
static void find_components(checker *c, uint32_t from) {
    uint32_t depth = 0;
    enter(c, from, &depth);
    while (depth > 0 && !hth_grammar_failed(c->g)) {
        visit *v = &c->path[depth - 1];
        uint32_t rule = v->rule, callee;
        if (next_call(c, v, &callee)) {
            if (callee == rule) c->facts[rule].recursive = true;
            if (c->number[callee] == NO_NUMBER) enter(c, callee, &depth);
            else if (c->on_stack[callee] && c->number[callee] < c->low[rule]) c->low[rule] = c->number[callee];
            continue;
        }
        depth--;
        if (depth > 0) {
            uint32_t caller = c->path[depth - 1].rule;
            if (c->low[rule] < c->low[caller]) c->low[caller] = c->low[rule];
        }
        if (c->low[rule] == c->number[rule]) close_component(c, rule);
    }
}

/* ---- Left recursion ---- */

static void find_left_calls(checker *c) {
    size_t count = 0;
    for (uint32_t rule = 0; rule < c->g->n_rules; rule++) {
        uint32_t n_left;
        walk(c, rule, &n_left);
        c->first_edge[rule] = (uint32_t)count;
        for (uint32_t i = 0; i < n_left; i++) c->edges[count++] = c->left[i];
    }
    c->first_edge[c->g->n_rules] = (uint32_t)count;
}

/* A cycle among the left calls, by a depth-first walk: number is 0 for rules not seen, 1 on the path, 2 when done. */
static void refuse_left_recursion(checker *c) {
    for (uint32_t i = 0; i < c->g->n_rules; i++) c->number[i] = 0;
    for (uint32_t from = 0; from < c->g->n_rules; from++) {
        uint32_t depth = 0;
        if (c->number[from] != 0) continue;
        c->path[depth++] = (visit){from, c->first_edge[from]};
        c->number[from] = 1;
        while (depth > 0) {
            visit *v = &c->path[depth - 1];
            if (v->next == c->first_edge[v->rule + 1]) {
                c->number[v->rule] = 2;
                depth--;
                continue;
            }
            uint32_t callee = c->edges[v->next++];
            if (c->number[callee] == 1) {
                hth_grammar_fail(c->g, HEARTH_BAD_ARGUMENT, c->g->rules[callee].at,
                                 "the rule %.*s is left-recursive: it can begin with itself",
                                 HTH_RULE_NAME(c->g, callee));
                return;
            }
            if (c->number[callee] == 2) continue;
            c->number[callee] = 1;
            c->path[depth++] = (visit){callee, c->first_edge[callee]};
        }
    }
}

/* ---- All of it ---- */

static void refuse_undefined(hth_grammar *g) {
    for (uint32_t rule = 0; rule < g->n_rules; rule++)
        if (g->rules[rule].count == 0)
            hth_grammar_fail(g, HEARTH_BAD_ARGUMENT, g->rules[rule].at, "the rule %.*s is not defined",
                             HTH_RULE_NAME(g, rule));
}

static void find_reachable(checker *c) {
    const hth_grammar *g = c->g;
    uint32_t depth = 0;
    c->facts[g->root].reachable = true;
    c->stack[depth++] = g->root;
    while (depth > 0) {
        visit v = {c->stack[--depth], 0};
        for (uint32_t callee; next_call(c, &v, &callee);) {
            c->facts[callee].uses++;
            if (c->facts[callee].reachable) continue;
            c->facts[callee].reachable = true;
            c->stack[depth++] = callee;
        }
    }
}

static bool allocate(checker *c) {
    size_t rules = c->g->n_rules + 1, ops = c->g->n_ops + 1;
    c->values = malloc(ops * sizeof *c->values);
    c->left = malloc(ops * sizeof *c->left);
    c->edges = malloc(ops * sizeof *c->edges);
    c->path = malloc(rules * sizeof *c->path);
    c->number = calloc(rules, sizeof *c->number);
    c->low = calloc(rules, sizeof *c->low);
    c->stack = malloc(rules * sizeof *c->stack);
    c->on_stack = calloc(rules, sizeof *c->on_stack);
    c->first_edge = malloc((rules + 1) * sizeof *c->first_edge);
    return c->values && c->left && c->edges && c->path && c->number && c->low && c->stack && c->on_stack &&
           c->first_edge;
}

static void free_scratch(checker *c) {
    free(c->values);
    free(c->left);
    free(c->edges);
    free(c->path);
    free(c->number);
    free(c->low);
    free(c->stack);
    free(c->on_stack);
    free(c->first_edge);
}

hearth_status hth_grammar_check(hth_grammar *g, hth_grammar_facts *facts, hearth_error *err) {
    *facts = (hth_grammar_facts){calloc(g->n_rules + 1, sizeof *facts->rules),
                                 malloc((g->n_rules + 1) * sizeof *facts->order)};
    checker c = {.g = g, .facts = facts->rules, .order = facts->order};
    if (!facts->rules || !facts->order || !allocate(&c)) {
        free_scratch(&c);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the grammar");
    }
    refuse_undefined(g);
    for (uint32_t rule = 0; rule < g->n_rules && !hth_grammar_failed(g); rule++)
        if (c.number[rule] == NO_NUMBER) find_components(&c, rule);
    if (!hth_grammar_failed(g)) {
        find_left_calls(&c);
        refuse_left_recursion(&c);
    }
    if (!hth_grammar_failed(g)) {
        find_reachable(&c);
        if (!facts->rules[g->root].productive)
            hth_grammar_fail(g, HEARTH_BAD_ARGUMENT, g->rules[g->root].at,
                             "the rule %.*s matches no text: it never ends", HTH_RULE_NAME(g, g->root));
    }
    free_scratch(&c);
    return hth_grammar_end(g, err);
}

void hth_grammar_facts_free(hth_grammar_facts *facts) {
    free(facts->rules);
    free(facts->order);
    *facts = (hth_grammar_facts){NULL, NULL};
}
