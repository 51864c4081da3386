#include "text/grammar.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/grow.h"

void hth_grammar_init(hth_grammar *g, const char *source) {
    *g = (hth_grammar){.source = source, .key = hth_hash_new_key()};
}

void hth_grammar_free(hth_grammar *g) {
    free(g->ops);
    free(g->rules);
    free(g->ranges);
    free(g->bytes);
    free(g->slots);
    *g = (hth_grammar){0};
}

/* ---- Failures ---- */

hth_grammar_place hth_grammar_place_of(const hth_grammar *g, uint32_t at) {
    hth_grammar_place place = {""};
    if (g->source == NULL) {
        if (at > 0) snprintf(place.text, sizeof place.text, "%.*s: ", HTH_RULE_NAME(g, at - 1));
        return place;
    }
    unsigned line = 1, column = 1;
    for (uint32_t i = 0; i < at; i++) {
        if (g->source[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)g->source[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    snprintf(place.text, sizeof place.text, "line %u, column %u: ", line, column);
    return place;
}

void hth_grammar_fail(hth_grammar *g, hearth_status status, uint32_t at, const char *format, ...) {
    char text[400];
    if (hth_grammar_failed(g)) return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hth_fail(&g->failure, status, "%s%s", hth_grammar_place_of(g, at).text, text);
}

hearth_status hth_grammar_end(const hth_grammar *g, hearth_error *err) {
    if (hth_grammar_failed(g) && err != NULL) *err = g->failure;
    return g->failure.status;
}

/* Room for `more` elements behind `count`, at most `limit` in all. */
static bool reserve(hth_grammar *g, void *array, size_t *capacity, size_t count, size_t more, size_t limit, size_t size,
                    const char *what, uint32_t at) {
    if (hth_grammar_failed(g)) return false;
    if (more > limit - count) {
        hth_grammar_fail(g, HEARTH_TOO_LONG, at, "the grammar has more than %zu %s", limit, what);
        return false;
    }
    if (hth_grow(array, capacity, count + more, size)) return true;
    hth_grammar_fail(g, HEARTH_NO_MEMORY, at, "no memory for the grammar");
    return false;
}

/* ---- Rules ---- */

static size_t slot_of(const hth_grammar *g, const char *name, size_t size) {
    size_t i = (size_t)hth_hash(g->key, name, size) & (g->n_slots - 1);
    for (; g->slots[i] != 0; i = (i + 1) & (g->n_slots - 1)) {
        const hth_grammar_rule *rule = &g->rules[g->slots[i] - 1];
        if (rule->name_size == size && memcmp(g->bytes + rule->name, name, size) == 0) break;
    }
    return i;
}

uint32_t hth_grammar_rule_named(hth_grammar *g, const char *name, size_t size, uint32_t at) {
    if (g->slots == NULL) {
        g->n_slots = 2 * (size_t)HTH_GRAMMAR_MAX_RULES;
        g->slots = calloc(g->n_slots, sizeof *g->slots);
        if (g->slots == NULL) hth_grammar_fail(g, HEARTH_NO_MEMORY, at, "no memory for the grammar");
    }
    if (hth_grammar_failed(g)) return 0;
    size_t slot = slot_of(g, name, size);
    if (g->slots[slot] != 0) return g->slots[slot] - 1;
    if (!reserve(g, &g->rules, &g->rule_capacity, g->n_rules, 1, HTH_GRAMMAR_MAX_RULES, sizeof *g->rules, "rules",
                 at) ||
        !reserve(g, &g->bytes, &g->byte_capacity, g->n_bytes, size, HTH_GRAMMAR_MAX_TEXT, 1, "bytes of text", at))
        return 0;
    if (size > 0) memcpy(g->bytes + g->n_bytes, name, size);
    g->rules[g->n_rules] = (hth_grammar_rule){(uint32_t)g->n_bytes, (uint32_t)size, 0, 0, at};
    g->n_bytes += size;
    g->slots[slot] = (uint32_t)++g->n_rules;
    return (uint32_t)g->n_rules - 1;
}

void hth_grammar_begin(hth_grammar *g, uint32_t rule) {
    if (hth_grammar_failed(g)) return;
    assert(g->rules[rule].count == 0);
    g->rule = rule;
    g->rules[rule].first = (uint32_t)g->n_ops;
}

void hth_grammar_finish(hth_grammar *g) {
    if (hth_grammar_failed(g)) return;
    hth_grammar_rule *rule = &g->rules[g->rule];
    rule->count = (uint32_t)g->n_ops - rule->first;
    assert(rule->count > 0);
}

/* ---- Operations ---- */

static void put(hth_grammar *g, hth_grammar_kind kind, size_t a, size_t b, uint32_t at) {
    if (!reserve(g, &g->ops, &g->op_capacity, g->n_ops, 1, HTH_GRAMMAR_MAX_OPS, sizeof *g->ops, "parts", at)) return;
    g->ops[g->n_ops++] = (hth_grammar_op){kind, (uint32_t)a, (uint32_t)b, at};
}

void hth_grammar_literal(hth_grammar *g, const char *bytes, size_t size, uint32_t at) {
    if (!reserve(g, &g->bytes, &g->byte_capacity, g->n_bytes, size, HTH_GRAMMAR_MAX_TEXT, 1, "bytes of text", at))
        return;
    if (size > 0) memcpy(g->bytes + g->n_bytes, bytes, size);
    put(g, HTH_GRAMMAR_LITERAL, g->n_bytes, size, at);
    g->n_bytes += size;
}

static size_t encode(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> size & 0xF0) | c);
    return size;
}

void hth_grammar_append(hth_grammar *g, uint32_t c) {
    char bytes[4];
    size_t size = encode(c, bytes);
    if (hth_grammar_failed(g)) return;
    hth_grammar_op *literal = &g->ops[g->n_ops - 1];
    assert(literal->kind == HTH_GRAMMAR_LITERAL && literal->a + literal->b == g->n_bytes);
    if (!reserve(g, &g->bytes, &g->byte_capacity, g->n_bytes, size, HTH_GRAMMAR_MAX_TEXT, 1, "bytes of text",
                 literal->at))
        return;
    memcpy(g->bytes + g->n_bytes, bytes, size);
    g->n_bytes += size;
    literal->b += (uint32_t)size;
}

static int by_first(const void *a, const void *b) {
    const hth_character_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Sort and join the ranges from `first` on; those that are left are disjoint and apart. */
static void join_ranges(hth_grammar *g, size_t first) {
    hth_character_range *r = g->ranges + first;
    size_t count = g->n_ranges - first, kept = 0;
    qsort(r, count, sizeof *r, by_first);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && r[i].first <= r[kept - 1].last + 1) {
            if (r[i].last > r[kept - 1].last) r[kept - 1].last = r[i].last;
        } else {
            r[kept++] = r[i];
        }
    }
    g->n_ranges = first + kept;
}

/* Turn joined ranges into what lies between them; there is room for one more. */
static void negate_ranges(hth_grammar *g, size_t first) {
    hth_character_range *r = g->ranges + first;
    size_t count = g->n_ranges - first, kept = 0;
    uint32_t from = 0;
    for (size_t i = 0; i < count; i++) {
        hth_character_range hole = r[i];
        if (hole.first > from) r[kept++] = (hth_character_range){from, hole.first - 1};
        from = hole.last + 1;
    }
    if (from <= HTH_MAX_CHARACTER) r[kept++] = (hth_character_range){from, HTH_MAX_CHARACTER};
    g->n_ranges = first + kept;
}

void hth_grammar_set(hth_grammar *g, const hth_character_range *ranges, size_t count, bool negated, uint32_t at) {
    size_t room = count + 3; /* one more each for negating twice, and for the surrogates that are cut out */
    if (!reserve(g, &g->ranges, &g->range_capacity, g->n_ranges, room, HTH_GRAMMAR_MAX_TEXT, sizeof *g->ranges,
                 "ranges of characters", at))
        return;
    size_t first = g->n_ranges;
    if (count > 0) memcpy(g->ranges + first, ranges, count * sizeof *ranges);
    g->n_ranges += count;
    static const hth_character_range surrogates = {0xD800, 0xDFFF};
    if (!negated) { /* all but (all but these, and surrogates) */
        join_ranges(g, first);
        negate_ranges(g, first);
    }
    g->ranges[g->n_ranges++] = surrogates;
    join_ranges(g, first);
    negate_ranges(g, first);
    put(g, HTH_GRAMMAR_SET, first, g->n_ranges - first, at);
}

void hth_grammar_call(hth_grammar *g, uint32_t rule, uint32_t at) {
    put(g, HTH_GRAMMAR_CALL, rule, 0, at);
}

void hth_grammar_sequence(hth_grammar *g, uint32_t count, uint32_t at) {
    if (count != 1) put(g, HTH_GRAMMAR_SEQUENCE, count, 0, at);
}

void hth_grammar_choice(hth_grammar *g, uint32_t count, uint32_t at) {
    assert(count >= 1 || hth_grammar_failed(g));
    if (count > 1) put(g, HTH_GRAMMAR_CHOICE, count, 0, at);
}

void hth_grammar_repeat(hth_grammar *g, uint32_t min, uint32_t max, uint32_t at) {
    assert(min <= max || hth_grammar_failed(g));
    put(g, HTH_GRAMMAR_REPEAT, min, max, at);
}
