#include "text/grammar_program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/grow.h"

enum {
    INLINE_SIZE = 48,                      /* steps of a rule that is copied into several callers, at most */
    INLINE_ROOM = HTH_GRAMMAR_MAX_CODE / 4 /* copying stops when the programs have this size together */
};

typedef struct compiler {
    hth_grammar *g;
    const hth_grammar_facts *facts;
    hth_grammar_program *out;
    uint32_t *end;    /* [n_rules], of the programs that are there */
    uint32_t *values; /* [n_ops + 1]: where the values on the stack begin; they lie one behind the other */
    uint32_t depth;
    uint32_t at; /* of the operation being compiled, for errors */
} compiler;

/* Room for `more` steps at the end; the first of them. */
static hth_grammar_step *extend(compiler *c, uint64_t more) {
    hth_grammar_program *p = c->out;
    if (hth_grammar_failed(c->g)) return NULL;
    if (more > HTH_GRAMMAR_MAX_CODE - p->size) {
        hth_grammar_fail(c->g, HEARTH_TOO_LONG, c->at,
                         "the grammar is too large: with its repetitions written out it has more than %d steps",
                         HTH_GRAMMAR_MAX_CODE);
        return NULL;
    }
    if (!hth_grow(&p->code, &p->capacity, p->size + more, sizeof *p->code)) {
        hth_grammar_fail(c->g, HEARTH_NO_MEMORY, c->at, "no memory for the grammar");
        return NULL;
    }
    p->size += more;
    return p->code + p->size - more;
}

static void put(compiler *c, hth_grammar_step step) {
    hth_grammar_step *s = extend(c, 1);
    if (s != NULL) *s = step;
}

/* Copy steps from anywhere in the code to its end. */
static void copy(compiler *c, uint32_t begin, uint32_t end) {
    if (begin == end) return;
    hth_grammar_step *s = extend(c, end - begin);
    if (s != NULL) memcpy(s, c->out->code + begin, (end - begin) * sizeof *s);
}

/* ---- Sets of characters ---- */

/* Characters of which the encodings differ in the last bytes only, and take all values there: one range a byte. */
typedef struct utf8_ranges {
    int size;
    uint8_t low[4], high[4];
} utf8_ranges;

static void encode(uint32_t c, int size, uint8_t out[4]) {
    static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = size; i-- > 1; c >>= 6) out[i] = (uint8_t)(0x80 | (c & 0x3F));
    out[0] = (uint8_t)(lead[size] | c);
}

/* The largest such set that begins with `first` and ends at or before `last`; *next is the character behind it. */
static utf8_ranges leading_ranges(uint32_t first, uint32_t last, uint32_t *next) {
    utf8_ranges r = {.size = first < 0x80 ? 1 : first < 0x800 ? 2 : first < 0x10000 ? 3 : 4};
    static const uint32_t limits[5] = {0, 0x7F, 0x7FF, 0xFFFF, HTH_MAX_CHARACTER};
    if (last > limits[r.size]) last = limits[r.size];
    /* Where the bits above differ, those below have to run through all of their values. */
    for (int bits = 6; bits < 6 * r.size; bits += 6) {
        uint32_t mask = (1u << bits) - 1;
        if ((first & ~mask) == (last & ~mask)) break;
        if ((first & mask) != 0) last = first | mask;
        else if ((last & mask) != mask) last = (last & ~mask) - 1;
    }
    encode(first, r.size, r.low);
    encode(last, r.size, r.high);
    *next = last + 1;
    return r;
}

static void put_set(compiler *c, const hth_character_range *ranges, uint32_t count) {
    uint32_t begin = (uint32_t)c->out->size;
    if (count == 0) put(c, (hth_grammar_step){.kind = HTH_STEP_FAIL});
    for (uint32_t i = 0; i < count && !hth_grammar_failed(c->g); i++) {
        for (uint32_t next = ranges[i].first; next <= ranges[i].last && !hth_grammar_failed(c->g);) {
            utf8_ranges r = leading_ranges(next, ranges[i].last, &next);
            bool final = i + 1 == count && next > ranges[i].last;
            if (!final) put(c, (hth_grammar_step){.kind = HTH_STEP_FORK, .to = r.size + 2});
            for (int k = 0; k < r.size; k++)
                put(c, (hth_grammar_step){.kind = HTH_STEP_BYTE, .low = r.low[k], .high = r.high[k]});
            if (!final) put(c, (hth_grammar_step){.kind = HTH_STEP_JUMP, .to = 0}); /* to the end: below */
        }
    }
    for (size_t i = begin; i < c->out->size; i++)
        if (c->out->code[i].kind == HTH_STEP_JUMP) c->out->code[i].to = (int32_t)(c->out->size - i);
}

/* ---- Operations ---- */

static void put_literal(compiler *c, const char *bytes, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        put(c, (hth_grammar_step){.kind = HTH_STEP_BYTE, .low = byte, .high = byte});
    }
}

static void put_call(compiler *c, uint32_t rule) {
    const hth_rule_facts *f = &c->facts->rules[rule];
    uint32_t begin = c->out->begin[rule], end = c->end[rule];
    bool small = f->uses == 1 || end - begin <= INLINE_SIZE;
    if (!f->recursive && small && c->out->size + (end - begin) <= INLINE_ROOM) copy(c, begin, end - 1); /* not END */
    else put(c, (hth_grammar_step){.kind = HTH_STEP_CALL, .to = (int32_t)rule});
}

/* The last `count` values become a choice: in front of each but the last a fork, behind it a jump to the end. */
static void make_choice(compiler *c, uint32_t count) {
    uint32_t first = c->depth - count, end = (uint32_t)c->out->size;
    if (extend(c, 2 * (uint64_t)(count - 1)) == NULL) return;
    hth_grammar_step *code = c->out->code;
    uint32_t new_end = (uint32_t)c->out->size;
    for (uint32_t i = count; i-- > 0; end = c->values[first + i]) {
        uint32_t begin = c->values[first + i], size = end - begin, to = begin + 2 * i;
        bool last = i + 1 == count;
        memmove(code + to + !last, code + begin, size * sizeof *code);
        if (last) continue;
        code[to] = (hth_grammar_step){.kind = HTH_STEP_FORK, .to = (int32_t)size + 2};
        code[to + 1 + size] = (hth_grammar_step){.kind = HTH_STEP_JUMP, .to = (int32_t)(new_end - (to + 1 + size))};
    }
}

/* Put a step in front of the body that begins there. */
static void insert(compiler *c, uint32_t begin, hth_grammar_step step) {
    if (extend(c, 1) == NULL) return;
    hth_grammar_step *code = c->out->code + begin;
    memmove(code + 1, code, (c->out->size - 1 - begin) * sizeof *code);
    *code = step;
}

static void make_repeat(compiler *c, uint32_t min, uint32_t max) {
    uint32_t begin = c->values[c->depth - 1], size = (uint32_t)c->out->size - begin;
    int32_t length = (int32_t)size;
    bool endless = max == HTH_GRAMMAR_MANY;
    if (max == 0) {
        c->out->size = begin;
        return;
    }
    /* Refused before it is written out: the numbers come from outside. */
    uint64_t copies = endless ? (min > 0 ? min : 1) : max;
    if (copies * (size + 1) > HTH_GRAMMAR_MAX_CODE) {
        extend(c, HTH_GRAMMAR_MAX_CODE + (uint64_t)1);
        return;
    }
    if (min == 0 && endless) {
        insert(c, begin, (hth_grammar_step){.kind = HTH_STEP_FORK, .to = length + 2});
        put(c, (hth_grammar_step){.kind = HTH_STEP_JUMP, .to = -(length + 1)});
        return;
    }
    uint32_t optional = endless ? 0 : max - min, body = begin;
    for (uint32_t i = 1; i < min; i++) copy(c, begin, begin + size);
    if (endless) { /* a fork whose other way leads back into the last copy */
        put(c, (hth_grammar_step){.kind = HTH_STEP_FORK, .to = -length});
        return;
    }
    if (min == 0) {
        insert(c, begin, (hth_grammar_step){.kind = HTH_STEP_FORK, .to = (int32_t)(optional * (size + 1))});
        body = begin + 1;
        optional--;
    }
    for (; optional > 0; optional--) {
        put(c, (hth_grammar_step){.kind = HTH_STEP_FORK, .to = (int32_t)(optional * (size + 1))});
        copy(c, body, body + size);
    }
}

static void compile_op(compiler *c, const hth_grammar_op *op) {
    uint32_t here = (uint32_t)c->out->size;
    c->at = op->at;
    switch (op->kind) {
    case HTH_GRAMMAR_LITERAL: put_literal(c, c->g->bytes + op->a, op->b); break;
    case HTH_GRAMMAR_SET: put_set(c, c->g->ranges + op->a, op->b); break;
    case HTH_GRAMMAR_CALL: put_call(c, op->a); break;
    case HTH_GRAMMAR_SEQUENCE: /* the values lie behind each other already */
        c->depth -= op->a;
        if (op->a > 0) here = c->values[c->depth];
        break;
    case HTH_GRAMMAR_CHOICE:
        make_choice(c, op->a);
        c->depth -= op->a;
        here = c->values[c->depth];
        break;
    case HTH_GRAMMAR_REPEAT:
        make_repeat(c, op->a, op->b);
        here = c->values[--c->depth];
        break;
    }
    c->values[c->depth++] = here;
}

static void compile_rule(compiler *c, uint32_t rule) {
    const hth_grammar_rule *r = &c->g->rules[rule];
    c->out->begin[rule] = (uint32_t)c->out->size;
    c->depth = 0;
    for (uint32_t i = 0; i < r->count && !hth_grammar_failed(c->g); i++) compile_op(c, &c->g->ops[r->first + i]);
    put(c, (hth_grammar_step){.kind = HTH_STEP_END});
    c->end[rule] = (uint32_t)c->out->size;
}

hearth_status hth_grammar_compile(hth_grammar *g, const hth_grammar_facts *facts, hth_grammar_program *out,
                                  hearth_error *err) {
    *out = (hth_grammar_program){.begin = calloc(g->n_rules + 1, sizeof *out->begin)};
    compiler c = {.g = g,
                  .facts = facts,
                  .out = out,
                  .end = calloc(g->n_rules + 1, sizeof *c.end),
                  .values = malloc((g->n_ops + 1) * sizeof *c.values)};
    if (!out->begin || !c.end || !c.values) hth_grammar_fail(g, HEARTH_NO_MEMORY, 0, "no memory for the grammar");
    for (uint32_t i = 0; i < g->n_rules && !hth_grammar_failed(g); i++)
        if (facts->rules[facts->order[i]].reachable) compile_rule(&c, facts->order[i]);
    free(c.end);
    free(c.values);
    return hth_grammar_end(g, err);
}

void hth_grammar_program_free(hth_grammar_program *program) {
    free(program->code);
    free(program->begin);
    *program = (hth_grammar_program){0};
}
