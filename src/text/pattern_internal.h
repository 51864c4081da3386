/* What the two halves of the pattern compiler share: pattern_parse.c turns the text into a small nondeterministic
 * program, pattern.c turns that into a table and runs it. */
#ifndef HTH_TEXT_PATTERN_INTERNAL_H
#define HTH_TEXT_PATTERN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "text/unicode.h"

enum {
    PATTERN_MAX_SETS = 64, /* a character's membership in all of them is one 64-bit word */
    PATTERN_MAX_RANGES = 512,
    PATTERN_MAX_TREE = 1024,
    PATTERN_MAX_STEPS = 4096
};

typedef struct pattern_range {
    uint32_t first, last;
} pattern_range;

/* A set of characters: those of some categories, white space, and some ranges; or all others. */
typedef struct pattern_set {
    uint32_t categories; /* bit c: category c */
    bool space, negated;
    uint16_t first_range, range_count;
} pattern_set;

/* One step of the program. A program runs over the text as many threads at once, in order of preference. */
typedef enum pattern_op {
    PATTERN_TAKE, /* the character is in set `arg`: go to `next` behind it */
    PATTERN_FORK, /* go to `next`, and with lower preference to `arg` */
    PATTERN_NOT,  /* the character is not in set `arg`, or the text ends: go to `next` in front of it */
    PATTERN_END,  /* the text ends: go to `next` */
    PATTERN_MATCH
} pattern_op;

typedef struct pattern_step {
    pattern_op op;
    uint16_t arg, next;
} pattern_step;

typedef struct pattern_program {
    pattern_set sets[PATTERN_MAX_SETS];
    pattern_range ranges[PATTERN_MAX_RANGES];
    pattern_step steps[PATTERN_MAX_STEPS];
    unsigned set_count, range_count, step_count;
    unsigned start;
} pattern_program;

hearth_status hth_pattern_parse(const char *regex, pattern_program *out, hearth_error *err);

/* Whether a character, by value and category, is in a set. */
bool hth_pattern_set_has(const pattern_program *program, const pattern_set *set, uint32_t c, hth_category category);

#endif
