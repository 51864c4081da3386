/* Pattern text to a tree, and the tree to steps. The text is this library's own (the tables of pretokenizer.c), nested
 * a few groups deep, so plain recursive descent is bounded. */
#include <stdlib.h>
#include <string.h>

#include "text/pattern_internal.h"

typedef enum tree_kind { TREE_EMPTY, TREE_SET, TREE_NOT, TREE_END, TREE_CAT, TREE_ALT, TREE_REPEAT } tree_kind;

enum { UNBOUNDED = -1 };

typedef struct tree_node {
    tree_kind kind;
    uint16_t set;         /* SET, NOT */
    uint16_t left, right; /* CAT, ALT; REPEAT: left */
    int min, max;         /* REPEAT */
} tree_node;

typedef struct parser {
    const char *text, *at;
    pattern_program *out;
    bool fold;         /* inside (?i: ) */
    const char *wrong; /* what is wrong, once something is */
    unsigned tree_count;
    tree_node tree[PATTERN_MAX_TREE];
} parser;

static uint16_t fail(parser *p, const char *what) {
    if (p->wrong == NULL) p->wrong = what;
    return 0;
}

static uint16_t add_node(parser *p, tree_node node) {
    if (p->tree_count == PATTERN_MAX_TREE) return fail(p, "is too large");
    p->tree[p->tree_count] = node;
    return (uint16_t)p->tree_count++;
}

static bool accept(parser *p, const char *token) {
    size_t size = strlen(token);
    if (strncmp(p->at, token, size) != 0) return false;
    p->at += size;
    return true;
}

/* ---- sets ---- */

static void add_range(parser *p, pattern_set *set, uint32_t first, uint32_t last) {
    if (p->out->range_count == PATTERN_MAX_RANGES) {
        fail(p, "has too many ranges");
        return;
    }
    if (last < first) fail(p, "has a range that ends before it begins");
    p->out->ranges[p->out->range_count++] = (pattern_range){first, last};
    set->range_count++;
}

/* A character, and under (?i: ) its other forms: simple case folding also joins U+017F to s and U+212A to k. */
static void add_character(parser *p, pattern_set *set, uint32_t c) {
    add_range(p, set, c, c);
    if (!p->fold) return;
    uint32_t lower = c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (lower < 'a' || lower > 'z') return;
    uint32_t other = lower == c ? c - 32 : lower;
    add_range(p, set, other, other);
    if (lower == 's') add_range(p, set, 0x17F, 0x17F);
    if (lower == 'k') add_range(p, set, 0x212A, 0x212A);
}

static pattern_set new_set(const parser *p) {
    return (pattern_set){.first_range = (uint16_t)p->out->range_count};
}

static bool same_sets(const parser *p, const pattern_set *a, const pattern_set *b) {
    const pattern_range *ranges = p->out->ranges;
    return a->categories == b->categories && a->space == b->space && a->negated == b->negated &&
           a->range_count == b->range_count &&
           memcmp(ranges + a->first_range, ranges + b->first_range, a->range_count * sizeof *ranges) == 0;
}

/* The index of a set whose ranges are the last ones; a set that is there already is not kept twice. */
static uint16_t keep_set(parser *p, pattern_set set) {
    for (unsigned i = 0; i < p->out->set_count; i++) {
        if (!same_sets(p, &p->out->sets[i], &set)) continue;
        p->out->range_count = set.first_range;
        return (uint16_t)i;
    }
    if (p->out->set_count == PATTERN_MAX_SETS) return fail(p, "has too many sets");
    p->out->sets[p->out->set_count] = set;
    return (uint16_t)p->out->set_count++;
}

static uint32_t hexadecimal(parser *p) {
    uint32_t c = 0;
    if (!accept(p, "{")) return fail(p, "has \\x without {");
    while (*p->at != '}' && c <= 0x10FFFF) {
        char digit = *p->at;
        if (digit >= '0' && digit <= '9') c = c * 16 + (uint32_t)(digit - '0');
        else if (digit >= 'A' && digit <= 'F') c = c * 16 + (uint32_t)(digit - 'A' + 10);
        else return fail(p, "has a bad digit in \\x{}");
        p->at++;
    }
    if (!accept(p, "}") || c > 0x10FFFF) return fail(p, "has a bad number in \\x{}");
    return c;
}

/* The letters in \p{..} as a mask of categories. */
static uint32_t property(parser *p) {
    static const char names[HTH_CATEGORY_COUNT][3] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                      "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                      "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
    const char *end = *p->at == '{' ? strchr(p->at, '}') : NULL;
    size_t size = end == NULL ? 0 : (size_t)(end - p->at - 1);
    uint32_t mask = 0;
    if (size == 1 || size == 2)
        for (unsigned i = 0; i < HTH_CATEGORY_COUNT; i++)
            if (memcmp(names[i], p->at + 1, size) == 0) mask |= UINT32_C(1) << i;
    if (mask == 0) fail(p, "has an unknown \\p");
    else p->at = end + 1;
    return mask;
}

/* One character of the pattern text. */
static uint32_t literal(parser *p) {
    unsigned char c = (unsigned char)*p->at;
    if (c == 0) return fail(p, "ends too early");
    if (c >= 0x80) return fail(p, "has a character beyond ASCII; write \\x{}");
    p->at++;
    return c;
}

/* What follows a backslash. True: a single character, in *c. False: a class, added to the set. */
static bool escape(parser *p, pattern_set *set, uint32_t *c) {
    switch (*p->at++) {
    case 'r': *c = '\r'; return true;
    case 'n': *c = '\n'; return true;
    case 't': *c = '\t'; return true;
    case 'x': *c = hexadecimal(p); return true;
    case 's': set->space = true; return false;
    case 'd': set->categories |= UINT32_C(1) << HTH_ND; return false;
    case 'p': set->categories |= property(p); return false;
    default:
        p->at--;
        *c = literal(p);
        if ((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z'))
            fail(p, "has an unknown escape");
        return true;
    }
}

/* One member of a bracketed set: a class, a character or a range. */
static void set_member(parser *p, pattern_set *set) {
    uint32_t first, last;
    if (!accept(p, "\\")) first = literal(p);
    else if (!escape(p, set, &first)) return;
    if (p->at[0] != '-' || p->at[1] == ']') {
        add_character(p, set, first);
        return;
    }
    p->at++;
    if (!accept(p, "\\")) last = literal(p);
    else if (!escape(p, set, &last)) last = fail(p, "has a class at the end of a range");
    add_range(p, set, first, last);
}

/* A set at this place, if one stands here: [..], an escape, or a plain character. */
static bool parse_set(parser *p, uint16_t *index) {
    pattern_set set = new_set(p);
    uint32_t c;
    if (*p->at == 0 || strchr("|()*+?{}^$.", *p->at) != NULL) return false;
    if (accept(p, "[")) {
        set.negated = accept(p, "^");
        while (*p->at != ']' && *p->at != 0 && p->wrong == NULL) set_member(p, &set);
        if (!accept(p, "]")) fail(p, "has a set without an end");
    } else if (accept(p, "\\S")) {
        set.space = set.negated = true;
    } else if (!accept(p, "\\")) {
        add_character(p, &set, literal(p));
    } else if (escape(p, &set, &c)) {
        add_character(p, &set, c);
    }
    *index = keep_set(p, set);
    return true;
}

/* ---- the tree ---- */

static uint16_t alternation(parser *p);

static uint16_t group(parser *p) {
    bool outer = p->fold;
    if (accept(p, "?i:")) p->fold = true;
    else if (!accept(p, "?:") && *p->at == '?') return fail(p, "has an unknown group");
    uint16_t node = alternation(p);
    if (!accept(p, ")")) fail(p, "has a group without an end");
    p->fold = outer;
    return node;
}

static uint16_t atom(parser *p) {
    tree_node node = {.kind = TREE_SET};
    if (accept(p, "(?!")) {
        node.kind = TREE_NOT;
        if (!parse_set(p, &node.set) || !accept(p, ")")) return fail(p, "has (?! ) around more than a set");
        return add_node(p, node);
    }
    if (accept(p, "(")) return group(p);
    if (accept(p, "$")) return add_node(p, (tree_node){.kind = TREE_END});
    if (!parse_set(p, &node.set)) return fail(p, "has an operator without an operand");
    return add_node(p, node);
}

static int number(parser *p) {
    int n = 0;
    if (*p->at < '0' || *p->at > '9') fail(p, "has a bad {}");
    while (*p->at >= '0' && *p->at <= '9' && n < PATTERN_MAX_STEPS) n = n * 10 + (*p->at++ - '0');
    return n;
}

static uint16_t repeated(parser *p) {
    tree_node node = {.kind = TREE_REPEAT, .left = atom(p), .max = UNBOUNDED};
    if (accept(p, "*")) return add_node(p, node);
    if (accept(p, "?")) {
        node.max = 1;
        return add_node(p, node);
    }
    if (accept(p, "+")) {
        node.min = 1;
        return add_node(p, node);
    }
    if (!accept(p, "{")) return node.left;
    node.min = node.max = number(p);
    if (accept(p, ",")) node.max = number(p);
    if (!accept(p, "}") || node.max < node.min) fail(p, "has a bad {}");
    return add_node(p, node);
}

static uint16_t sequence(parser *p) {
    if (*p->at == '|' || *p->at == ')' || *p->at == 0) return add_node(p, (tree_node){.kind = TREE_EMPTY});
    uint16_t node = repeated(p);
    while (*p->at != '|' && *p->at != ')' && *p->at != 0 && p->wrong == NULL) {
        uint16_t next = repeated(p);
        node = add_node(p, (tree_node){.kind = TREE_CAT, .left = node, .right = next});
    }
    return node;
}

static uint16_t alternation(parser *p) {
    uint16_t node = sequence(p);
    while (p->wrong == NULL && accept(p, "|")) {
        uint16_t next = sequence(p);
        node = add_node(p, (tree_node){.kind = TREE_ALT, .left = node, .right = next});
    }
    return node;
}

/* ---- steps: each function answers the step to begin with, given the one that follows ---- */

static uint16_t add_step(parser *p, pattern_op op, uint16_t arg, uint16_t next) {
    if (p->out->step_count == PATTERN_MAX_STEPS) return fail(p, "is too large");
    p->out->steps[p->out->step_count] = (pattern_step){op, arg, next};
    return (uint16_t)p->out->step_count++;
}

static uint16_t emit(parser *p, const tree_node *node, uint16_t next);

static uint16_t emit_repeat(parser *p, const tree_node *node, uint16_t next) {
    const tree_node *body = &p->tree[node->left];
    if (node->max == UNBOUNDED) {
        uint16_t loop = add_step(p, PATTERN_FORK, next, 0);
        uint16_t inside = emit(p, body, loop);
        p->out->steps[loop].next = inside;
        next = loop;
    } else {
        uint16_t behind = next;
        for (int i = node->min; i < node->max && p->wrong == NULL; i++) {
            uint16_t inside = emit(p, body, next);
            next = add_step(p, PATTERN_FORK, behind, inside);
        }
    }
    for (int i = 0; i < node->min && p->wrong == NULL; i++) next = emit(p, body, next);
    return next;
}

static uint16_t emit(parser *p, const tree_node *node, uint16_t next) {
    switch (node->kind) {
    case TREE_SET: return add_step(p, PATTERN_TAKE, node->set, next);
    case TREE_NOT: return add_step(p, PATTERN_NOT, node->set, next);
    case TREE_END: return add_step(p, PATTERN_END, 0, next);
    case TREE_CAT: return emit(p, &p->tree[node->left], emit(p, &p->tree[node->right], next));
    case TREE_ALT: {
        uint16_t right = emit(p, &p->tree[node->right], next);
        uint16_t left = emit(p, &p->tree[node->left], next);
        return add_step(p, PATTERN_FORK, right, left);
    }
    case TREE_REPEAT: return emit_repeat(p, node, next);
    case TREE_EMPTY: break;
    }
    return next;
}

hearth_status hth_pattern_parse(const char *regex, pattern_program *out, hearth_error *err) {
    parser *p = calloc(1, sizeof *p);
    if (p == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory to compile a pattern");
    p->text = p->at = regex;
    p->out = out;
    out->set_count = out->range_count = out->step_count = 0;
    uint16_t root = alternation(p);
    if (p->wrong == NULL && *p->at != 0) fail(p, "has an unmatched )");
    if (p->wrong == NULL) out->start = emit(p, &p->tree[root], add_step(p, PATTERN_MATCH, 0, 0));
    hearth_status status = HEARTH_OK;
    if (p->wrong != NULL)
        status = hth_fail(err, HEARTH_UNSUPPORTED, "the pattern \"%.200s\" %s at byte %zu", regex, p->wrong,
                          (size_t)(p->at - p->text));
    free(p);
    return status;
}

bool hth_pattern_set_has(const pattern_program *program, const pattern_set *set, uint32_t c, hth_category category) {
    bool has = (set->categories >> category & 1) != 0 || (set->space && hth_is_space(c, category));
    for (unsigned i = 0; i < set->range_count && !has; i++) {
        pattern_range range = program->ranges[set->first_range + i];
        has = c >= range.first && c <= range.last;
    }
    return has != set->negated;
}
