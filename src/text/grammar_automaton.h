/* A grammar as finite automata over bytes that call each other: what matching runs on.
 *
 * Each rule that is still called is one automaton; a state belongs to one of them. On a byte a state has one successor,
 * several where a deterministic automaton of the rule would be too large, or none. Beside them it may have calls: a
 * text of another rule leads to a state behind it. A final state may return to whatever called its rule. A rule that
 * can be empty is also passed over by its callers, so that its start is never final; and from every state the end of
 * the rule can be reached.
 *
 * Characters are matched byte by byte: a state may stand inside a character, so a token may end there.
 */
#ifndef HTH_TEXT_GRAMMAR_AUTOMATON_H
#define HTH_TEXT_GRAMMAR_AUTOMATON_H

#include "text/grammar_program.h"

enum {
    HTH_AUTOMATON_MAX_STATES = 1 << 16,
    HTH_AUTOMATON_MAX_CELLS = 1 << 23 /* of the table of successors */
};

#define HTH_STATE_NONE UINT32_MAX
#define HTH_STATE_LIST 0x80000000u /* in the table: several, at lists + the other bits: how many, then they */

typedef struct hth_automaton_call {
    uint32_t rule;
    uint32_t next; /* the state behind it; HTH_STATE_NONE: nothing follows but the return */
} hth_automaton_call;

typedef struct hth_automaton_state {
    uint32_t rule;
    uint32_t calls, n_calls;
    bool final;
    bool moves; /* has successors on bytes */
} hth_automaton_state;

typedef struct hth_automaton_rule {
    uint32_t start;
    uint32_t sites, n_sites; /* where a return from this rule may lead */
    uint64_t first[4];       /* bit c: a text of the rule can begin with a byte of class c */
} hth_automaton_rule;

/* A place behind a call. */
typedef struct hth_automaton_site {
    uint32_t rule; /* the caller */
    uint32_t next; /* as in the call */
} hth_automaton_site;

typedef struct hth_automaton {
    uint8_t class_of[256];                 /* bytes that nothing tells apart share a class */
    uint32_t n_classes, n_states, n_rules; /* rule 0 is the root */
    bool nullable;                         /* the empty text matches */
    uint32_t *next; /* [n_states][n_classes]: a state, HTH_STATE_NONE, or HTH_STATE_LIST and an index */
    uint32_t *lists;
    hth_automaton_state *states;
    hth_automaton_call *calls;
    hth_automaton_rule *rules;
    hth_automaton_site *sites;
    size_t n_lists, n_calls, n_sites;
} hth_automaton;

/* TOO_LONG when it would be larger than the limits above, or take too long to make. */
hearth_status hth_automaton_build(const hth_grammar *g, const hth_grammar_facts *facts,
                                  const hth_grammar_program *program, hth_automaton *out, hearth_error *err);
void hth_automaton_free(hth_automaton *a); /* a zeroed one is valid to free */

size_t hth_automaton_bytes(const hth_automaton *a);

static inline bool hth_automaton_begins(const hth_automaton *a, uint32_t rule, unsigned class) {
    return a->rules[rule].first[class / 64] >> class % 64 & 1;
}

/* Nothing can follow in the rule: only its return is left. */
static inline bool hth_automaton_is_end(const hth_automaton_state *s) {
    return s->final && !s->moves && s->n_calls == 0;
}

#endif
