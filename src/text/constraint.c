/* Constraints and matchers: what include/hearth/constraint.h offers, over a grammar's automata and token masks. */
#include "hearth/constraint.h"

#include <stdlib.h>
#include <string.h>

#include "text/grammar_parse.h"
#include "text/grammar_run.h"
#include "text/schema.h"
#include "text/token_mask.h"
#include "text/tokenizer_internal.h"

#define DEFAULT_BYTES ((size_t)256 << 20)
#define DEFAULT_STEPS (UINT64_C(1) << 31)

/* What a matcher has room for. One step of nesting takes a record and a link. */
static const hth_run_size run_size = {.records = 1 << 14, .links = 1 << 15, .configs = 1 << 15, .width = 1 << 12};

struct hearth_constraint {
    const hearth_token_index *index;
    hth_automaton automaton;
    hth_token_masks masks;
};

/* Where a walk along a token's bytes stands after some of them, and what to put back to return there. */
typedef struct frame {
    uint32_t begin, end;
    uint32_t n_records, n_links, n_configs;
} frame;

struct hearth_matcher {
    const hearth_constraint *constraint;
    hth_run run; /* configs[0 .. n_configs) are the text's, in order of state */
    bool complete;
    bool has_mask; /* mask and match are those of the text */
    hearth_match match;
    uint64_t *mask; /* [words] */
    frame *frames;  /* [longest + 1] */
};

/* ---- Constraint ---- */

static hearth_status compile(hth_grammar *g, const hearth_token_index *index, const hearth_constraint_limits *limits,
                             hearth_constraint *c, hearth_error *err) {
    hearth_constraint_limits most = {DEFAULT_BYTES, DEFAULT_STEPS};
    hth_grammar_facts facts = {NULL, NULL};
    hth_grammar_program program = {NULL, 0, 0, NULL};
    if (limits != NULL && limits->bytes != 0) most.bytes = limits->bytes;
    if (limits != NULL && limits->steps != 0) most.steps = limits->steps;
    hearth_status status = hth_grammar_check(g, &facts, err);
    if (status == HEARTH_OK) status = hth_grammar_compile(g, &facts, &program, err);
    if (status == HEARTH_OK) status = hth_automaton_build(g, &facts, &program, &c->automaton, err);
    hth_grammar_facts_free(&facts);
    hth_grammar_program_free(&program);
    if (status == HEARTH_OK) status = hth_token_masks_build(&c->automaton, index, most, &c->masks, err);
    return status;
}

/* Fills an initialised grammar. */
typedef hearth_status front_end(hth_grammar *g, const char *text, size_t size, hearth_error *err);

static hearth_status create(const hearth_token_index *index, front_end *read, const char *text, size_t size,
                            const hearth_constraint_limits *limits, hearth_constraint **out, hearth_error *err) {
    hth_grammar g;
    hearth_constraint *c = *out = calloc(1, sizeof *c);
    if (c == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a constraint");
    c->index = index;
    hth_grammar_init(&g, read == hth_grammar_parse ? text : NULL);
    hearth_status status = read(&g, text, size, err);
    if (status == HEARTH_OK) status = compile(&g, index, limits, c, err);
    hth_grammar_free(&g);
    if (status != HEARTH_OK) hearth_constraint_free(out);
    return status;
}

hearth_status hearth_constraint_grammar(const hearth_token_index *index, const char *text, size_t size,
                                        const hearth_constraint_limits *limits, hearth_constraint **out,
                                        hearth_error *err) {
    return create(index, hth_grammar_parse, text, size, limits, out, err);
}

hearth_status hearth_constraint_schema(const hearth_token_index *index, const char *text, size_t size,
                                       const hearth_constraint_limits *limits, hearth_constraint **out,
                                       hearth_error *err) {
    return create(index, hth_schema_parse, text, size, limits, out, err);
}

void hearth_constraint_free(hearth_constraint **constraint) {
    hearth_constraint *c = *constraint;
    if (c == NULL) return;
    hth_automaton_free(&c->automaton);
    hth_token_masks_free(&c->masks);
    free(c);
    *constraint = NULL;
}

void hearth_constraint_get_info(const hearth_constraint *c, hearth_constraint_info *out) {
    const hth_automaton *a = &c->automaton;
    size_t frames = c->index->longest + (size_t)1;
    *out = (hearth_constraint_info){
        .states = a->n_states,
        .rules = a->n_rules,
        .masks = (uint32_t)c->masks.n_sets,
        .bytes = hth_token_masks_bytes(&c->masks, a) + hth_automaton_bytes(a),
        .matcher_bytes = sizeof(hearth_matcher) + hth_run_bytes(a, run_size) + c->index->words * sizeof(uint64_t) +
                         frames * sizeof(frame),
        .steps = c->masks.steps,
    };
}

/* ---- Matcher ---- */

hearth_status hearth_matcher_create(const hearth_constraint *constraint, hearth_matcher **out, hearth_error *err) {
    hearth_matcher *m = *out = calloc(1, sizeof *m);
    if (m == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a matcher");
    m->constraint = constraint;
    m->mask = malloc(constraint->index->words * sizeof *m->mask);
    m->frames = malloc((constraint->index->longest + (size_t)1) * sizeof *m->frames);
    hearth_status status =
        m->mask && m->frames ? HEARTH_OK : hth_fail(err, HEARTH_NO_MEMORY, "no memory for a matcher");
    if (status == HEARTH_OK) status = hth_run_init(&m->run, &constraint->automaton, run_size, false, err);
    if (status == HEARTH_OK) hearth_matcher_reset(m);
    else hearth_matcher_free(out);
    return status;
}

void hearth_matcher_free(hearth_matcher **matcher) {
    hearth_matcher *m = *matcher;
    if (m == NULL) return;
    hth_run_free(&m->run);
    free(m->mask);
    free(m->frames);
    free(m);
    *matcher = NULL;
}

int32_t hearth_matcher_vocab(const hearth_matcher *matcher) {
    return (int32_t)matcher->constraint->index->vocab;
}

void hearth_matcher_reset(hearth_matcher *m) {
    const hth_automaton *a = &m->constraint->automaton;
    m->run.n_records = 1;
    m->run.n_links = 0;
    m->run.configs[0] = (hth_run_config){a->rules[0].start, HTH_RECORD_BASE};
    m->run.n_configs = 1;
    m->complete = a->nullable;
    m->has_mask = false;
}

hearth_status hearth_matcher_copy(hearth_matcher *to, const hearth_matcher *from, hearth_error *err) {
    if (to->constraint != from->constraint)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "the matchers are of different constraints");
    if (to == from) return HEARTH_OK;
    hth_run_copy(&to->run, &from->run);
    to->complete = from->complete;
    to->has_mask = false;
    return HEARTH_OK;
}

int hearth_matcher_is_complete(const hearth_matcher *matcher) {
    return matcher->complete;
}

/* ---- A walk along tokens ---- */

static void put_back(hth_run *run, const frame *f) {
    run->n_records = f->n_records;
    run->n_links = f->n_links;
    run->n_configs = f->n_configs;
}

static frame here(const hth_run *run, uint32_t begin, uint32_t end) {
    return (frame){begin, end, run->n_records, run->n_links, run->n_configs};
}

/* Take bytes[from .. size), each from the frame of what is before it to the next. The answer is how many of all the
 * bytes were taken: `size`, or up to the first with which no text goes on. */
static uint32_t walk(hearth_matcher *m, const unsigned char *bytes, uint32_t from, uint32_t size) {
    hth_run *run = &m->run;
    for (uint32_t i = from; i < size; i++) {
        const frame *f = &m->frames[i];
        put_back(run, f);
        hth_run_step(run, f->begin, f->end, run->automaton->class_of[bytes[i]], HTH_RECORD_NONE);
        m->frames[i + 1] = here(run, f->n_configs, run->n_configs);
        if (run->n_configs == f->n_configs && !run->base_returned) return i;
    }
    return size;
}

static hth_string piece_of(const hearth_matcher *m, hearth_token id) {
    return hth_tokenizer_piece(m->constraint->index->tokenizer, id, true);
}

static hearth_status fail_overflow(hearth_matcher *m, hearth_error *err) {
    m->run.overflow = false;
    return hth_fail(err, HEARTH_TOO_LONG,
                    "the text is nested too deep, or the grammar too ambiguous: the ways to read it are too many");
}

/* Of the tokens whose fate depends on the stack, add those that these configs of one state take. */
static void add_unsure(hearth_matcher *m, const hth_token_set *unsure, uint32_t begin, uint32_t end) {
    const hearth_token_index *x = m->constraint->index;
    const uint32_t *ranks = hth_token_set_list(&m->constraint->masks, unsure);
    hth_string path = {"", 0}; /* the token walked last; its first `taken` bytes have frames */
    uint32_t taken = 0;
    m->frames[0] = here(&m->run, begin, end);
    for (uint32_t i = 0; i < unsure->count; i++) {
        uint32_t id = (uint32_t)x->ids[ranks[i]], same = 0;
        if (hth_mask_has(m->mask, id)) continue;
        hth_string piece = piece_of(m, (hearth_token)id);
        while (same < taken && same < piece.size && piece.data[same] == path.data[same]) same++;
        bool fails = same == taken && taken < path.size && same < piece.size && piece.data[same] == path.data[same];
        if (fails) continue; /* like the one before, at the same byte */
        taken = walk(m, (const unsigned char *)piece.data, same, (uint32_t)piece.size);
        path = piece;
        if (taken == piece.size) hth_mask_add(m->mask, id);
    }
    put_back(&m->run, &m->frames[0]);
}

static void add_allowed(hearth_matcher *m, const hth_token_set *set) {
    const hth_token_masks *masks = &m->constraint->masks;
    const uint64_t *words = masks->words + set->at;
    const uint32_t *ids = hth_token_set_list(masks, set);
    if (set->is_mask)
        for (uint32_t w = 0; w < masks->index->words; w++) m->mask[w] |= words[w];
    else
        for (uint32_t i = 0; i < set->count; i++) hth_mask_add(m->mask, ids[i]);
}

/* All that is sure comes first, so that less is left to be walked. */
static void fill_mask(hearth_matcher *m) {
    const hth_token_masks *masks = &m->constraint->masks;
    const hearth_token_index *x = m->constraint->index;
    const hth_run_config *set = m->run.configs;
    uint32_t count = m->run.n_configs;
    memset(m->mask, 0, x->words * sizeof *m->mask);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || set[i].state != set[i - 1].state)
            add_allowed(m, &masks->sets[masks->states[set[i].state].allowed]);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && set[end].state == set[i].state;) end++;
        add_unsure(m, &masks->sets[masks->states[set[i].state].unsure], i, end);
    }
    uint64_t any = 0;
    for (uint32_t w = 0; w < x->words; w++) any |= m->mask[w];
    m->match = any ? HEARTH_MATCH_OPEN : m->complete ? HEARTH_MATCH_COMPLETE : HEARTH_MATCH_STUCK;
    for (uint32_t w = 0; w < x->words && m->complete; w++) m->mask[w] |= x->ends[w];
}

hearth_status hearth_matcher_mask(hearth_matcher *m, const uint64_t **mask, hearth_match *match, hearth_error *err) {
    if (!m->has_mask) fill_mask(m);
    if (m->run.overflow) return fail_overflow(m, err);
    m->has_mask = true;
    *mask = m->mask;
    if (match != NULL) *match = m->match;
    return HEARTH_OK;
}

/* ---- Accepting ---- */

static bool precedes(hth_run_config a, hth_run_config b) {
    return a.state < b.state || (a.state == b.state && a.record < b.record);
}

/* D. L. Shell's sort: the library's may allocate. */
static void sort_by_state(hth_run_config *set, uint32_t count) {
    for (uint32_t gap = count / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            hth_run_config moving = set[i];
            uint32_t k = i;
            for (; k >= gap && precedes(moving, set[k - gap]); k -= gap) set[k] = set[k - gap];
            set[k] = moving;
        }
}

static hearth_status fail_token(const hearth_matcher *m, hearth_token token, hearth_error *err) {
    hth_string piece = piece_of(m, token);
    return hth_fail(err, HEARTH_BAD_ARGUMENT, "token %d (\"%.*s\") is not allowed here", (int)token,
                    (int)(piece.size < 60 ? piece.size : 60), piece.data);
}

hearth_status hearth_matcher_accept(hearth_matcher *m, hearth_token token, hearth_error *err) {
    const hearth_token_index *x = m->constraint->index;
    hth_run *run = &m->run;
    if (token < 0 || (uint32_t)token >= x->vocab)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "token id %d: ids go from 0 to %u", (int)token, x->vocab - 1);
    if (hth_mask_has(x->ends, (uint32_t)token)) return m->complete ? HEARTH_OK : fail_token(m, token, err);
    if (!hth_mask_has(x->usable, (uint32_t)token)) return fail_token(m, token, err);
    hth_string piece = piece_of(m, token);
    m->frames[0] = here(run, 0, run->n_configs);
    uint32_t taken = walk(m, (const unsigned char *)piece.data, 0, (uint32_t)piece.size);
    if (taken < piece.size || run->overflow) {
        put_back(run, &m->frames[0]);
        return run->overflow ? fail_overflow(m, err) : fail_token(m, token, err);
    }
    const frame *last = &m->frames[piece.size];
    m->complete = run->base_returned;
    m->has_mask = false;
    run->n_configs = last->end - last->begin;
    memmove(run->configs, run->configs + last->begin, run->n_configs * sizeof *run->configs);
    sort_by_state(run->configs, run->n_configs);
    if (run->n_records > run->record_room / 2 || run->n_links > run->link_room / 2)
        hth_run_compact(run, 0, run->n_configs);
    return HEARTH_OK;
}
