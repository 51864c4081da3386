/* A context-free grammar as its front ends leave it: GBNF text (grammar_parse.h) and JSON schemas (schema.h).
 *
 * A rule is a postfix program: operands push a value (a set of texts), the others take values from the stack and push
 * one, and at its end one value is left. So nothing that reads a grammar, however deep its groups are, recurses.
 *
 * Building: begin a rule, put its operations, end it; a name may be used before its rule is there. The first thing that
 * goes wrong is kept, everything after it is ignored, and hth_grammar_end tells it.
 */
#ifndef HTH_TEXT_GRAMMAR_H
#define HTH_TEXT_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

#define HTH_GRAMMAR_MANY UINT32_MAX /* no upper limit */

enum {
    HTH_GRAMMAR_MAX_RULES = 1 << 14,
    HTH_GRAMMAR_MAX_OPS = 1 << 18,
    HTH_GRAMMAR_MAX_TEXT = 1 << 20, /* bytes of all literals and names, and ranges of all sets */
    HTH_GRAMMAR_MAX_DEPTH = 256,    /* groups in groups, values in schemas */
    HTH_MAX_CHARACTER = 0x10FFFF
};

typedef enum hth_grammar_kind {
    HTH_GRAMMAR_LITERAL,  /* bytes[a .. a + b) */
    HTH_GRAMMAR_SET,      /* one character of ranges[a .. a + b) */
    HTH_GRAMMAR_CALL,     /* rule a */
    HTH_GRAMMAR_SEQUENCE, /* the a values before, one behind the other; 0: the empty text */
    HTH_GRAMMAR_CHOICE,   /* one of the a >= 1 values before */
    HTH_GRAMMAR_REPEAT    /* the value before, a to b times */
} hth_grammar_kind;

typedef struct hth_grammar_op {
    hth_grammar_kind kind;
    uint32_t a, b;
    uint32_t at; /* where it stands in the source: a number of bytes */
} hth_grammar_op;

typedef struct hth_character_range {
    uint32_t first, last;
} hth_character_range;

typedef struct hth_grammar_rule {
    uint32_t name, name_size; /* in bytes */
    uint32_t first, count;    /* operations; 0 of them: not defined (yet) */
    uint32_t at;              /* where it is defined, or first used */
} hth_grammar_rule;

typedef struct hth_grammar {
    const char *source; /* not owned. NULL: it is no text, and a place in it is a rule + 1, or 0 for none. */
    hth_grammar_op *ops;
    hth_grammar_rule *rules;
    hth_character_range *ranges;
    char *bytes;
    hth_hash_key key;
    uint32_t *slots; /* rules by name: index + 1, open addressing */
    size_t n_ops, n_rules, n_ranges, n_bytes, n_slots;
    size_t op_capacity, rule_capacity, range_capacity, byte_capacity;
    uint32_t root;
    uint32_t rule; /* being built */
    hearth_error failure;
} hth_grammar;

/* The size and bytes of a rule's name, for "%.*s". */
#define HTH_RULE_NAME(g, rule)                                                                                         \
    (int)((g)->rules[rule].name_size < 100 ? (g)->rules[rule].name_size : 100), (g)->bytes + (g)->rules[rule].name

void hth_grammar_init(hth_grammar *g, const char *source);
void hth_grammar_free(hth_grammar *g); /* a zeroed one is valid to free */

/* The rule of a name, made undefined when it is new. */
uint32_t hth_grammar_rule_named(hth_grammar *g, const char *name, size_t size, uint32_t at);
/* Start the operations of a rule that has none. */
void hth_grammar_begin(hth_grammar *g, uint32_t rule);
void hth_grammar_finish(hth_grammar *g);

void hth_grammar_literal(hth_grammar *g, const char *bytes, size_t size, uint32_t at);
void hth_grammar_append(hth_grammar *g, uint32_t c); /* a character to the literal that was just put */
/* A set of characters: ranges in any order, surrogates left out; or all characters that are in none of them. */
void hth_grammar_set(hth_grammar *g, const hth_character_range *ranges, size_t count, bool negated, uint32_t at);
void hth_grammar_call(hth_grammar *g, uint32_t rule, uint32_t at);
void hth_grammar_sequence(hth_grammar *g, uint32_t count, uint32_t at);
void hth_grammar_choice(hth_grammar *g, uint32_t count, uint32_t at);
void hth_grammar_repeat(hth_grammar *g, uint32_t min, uint32_t max, uint32_t at);

/* Keep a failure, unless one is kept already; the place in the source goes in front of the text. */
void hth_grammar_fail(hth_grammar *g, hearth_status status, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static inline bool hth_grammar_failed(const hth_grammar *g) {
    return g->failure.status != HEARTH_OK;
}

/* What the building failed with, if it did. */
hearth_status hth_grammar_end(const hth_grammar *g, hearth_error *err);

/* "line 3, column 7: " of a place in the source, "RULE: " where that is no text, or "". */
typedef struct hth_grammar_place {
    char text[128];
} hth_grammar_place;
hth_grammar_place hth_grammar_place_of(const hth_grammar *g, uint32_t at);

#endif
