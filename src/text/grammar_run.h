/* Running a grammar's automata over bytes: all ways at once, their stacks shared.
 *
 * A config is a state and a record. A record stands for the calls of one rule from one place in the text; its links say
 * where those calls return to: a state, and the record of the caller. So stacks that have a part in common share it (a
 * graph-structured stack), and the number of configs is that of states times places, never of ways.
 *
 * A set of configs lies in configs[begin .. end), in states in which a byte was just consumed: calls are made when a
 * byte comes that they can begin with, and returns are followed as soon as a rule's end is reached. A call that nothing
 * follows in its caller returns to where the caller returns, so that a list written as right recursion needs no stack.
 *
 * Everything is on stacks of fixed size: to forget what a step added, put the three counts back.
 */
#ifndef HTH_TEXT_GRAMMAR_RUN_H
#define HTH_TEXT_GRAMMAR_RUN_H

#include "text/grammar_automaton.h"

#define HTH_RECORD_NONE UINT32_MAX
#define HTH_RECORD_BASE 0u /* nothing is known of what called it */

typedef struct hth_run_config {
    uint32_t state, record;
} hth_run_config;

typedef struct hth_run_link {
    uint32_t state;  /* behind the call; HTH_STATE_NONE: where the caller returns to */
    uint32_t record; /* of the caller */
    uint32_t next;   /* link of the same record, or UINT32_MAX */
} hth_run_link;

typedef struct hth_run_record {
    uint32_t link;
    uint64_t returned, copied; /* the step, and the copy, in which that was done last */
} hth_run_record;

typedef struct hth_run_slot hth_run_slot;

typedef struct hth_run {
    const hth_automaton *automaton;
    hth_run_record *records;
    hth_run_link *links, *spare_links;
    hth_run_config *configs;
    uint32_t n_records, n_links, n_configs;
    uint32_t record_room, link_room, config_room;
    bool overflow; /* one of them was too small since this was last cleared; the step's result is not valid */

    uint64_t step, copy;     /* they count */
    uint64_t *called_in;     /* [rules]: the step that called the rule last */
    uint32_t *called_record; /* [rules] */
    hth_run_config *called;  /* [rules]: starts of the rules that this step calls */
    uint32_t n_called, first_record;
    uint32_t *work; /* [record_room] */
    uint32_t *returns, n_returns;
    hth_run_slot *slots; /* configs and links of this step */
    uint32_t n_slots_used, slot_mask;
    bool places;
    bool base_returned; /* a rule that BASE called, or the root that its place called, came to its end in this step */
} hth_run;

typedef struct hth_run_size {
    uint32_t records, links, configs;
    uint32_t width; /* configs and links that one step may add */
} hth_run_size;

/* A run with record BASE and no configs. With `places`, also a record 1 + r for each rule r that returns to wherever
 * the rule is called from: it stands for all callers that r can have. */
hearth_status hth_run_init(hth_run *run, const hth_automaton *automaton, hth_run_size size, bool places,
                           hearth_error *err);
void hth_run_free(hth_run *run); /* a zeroed one is valid to free */
/* Bytes that hth_run_init takes. */
size_t hth_run_bytes(const hth_automaton *automaton, hth_run_size size);

/* Append the set that a byte of a class leads to from a set. `returning` is a record from which rules return as well
 * with this byte, or NONE. */
void hth_run_step(hth_run *run, uint32_t begin, uint32_t end, unsigned class, uint32_t returning);

/* Drop the records that a set does not need. */
void hth_run_compact(hth_run *run, uint32_t begin, uint32_t end);

/* Make a run of the same automaton and size hold what another does: its records, links and configs. */
void hth_run_copy(hth_run *to, const hth_run *from);

#endif
