/* Tags: what is open waits on a stack of blocks, and code comes out as they are read. */
#include "text/template_parser.h"

#include <string.h>

typedef enum block_kind { IF, FOR, FOR_ELSE, MACRO, CALL, SET, FILTER, WITH, GENERATION } block_kind;

struct hth_block {
    block_kind kind;
    uint32_t at;
    uint32_t jump;  /* IF: the jump over the branch that is read, +1; FOR: its NEXT; FOR_ELSE: the FOR_NONE */
    uint32_t exits; /* IF, FOR: jumps to the end, +1, each holding the one before it */
    bool has_else;
    int64_t macro, outer;  /* MACRO, CALL: which, and the one around it */
    hth_instruction *kept; /* SET, FILTER: filters; CALL: the call; for the end of the block */
    uint32_t n_kept;
    int64_t name;      /* SET: what to set... */
    int64_t attribute; /* ...or the attribute of it, -1 none */
};

static const char *const end_names[] = {
    [IF] = "endif",   [FOR] = "endfor",       [FOR_ELSE] = "endfor", [MACRO] = "endmacro",           [CALL] = "endcall",
    [SET] = "endset", [FILTER] = "endfilter", [WITH] = "endwith",    [GENERATION] = "endgeneration",
};

/* ---- tokens ---- */

bool hth_parser_next(hth_parser *p) {
    return hth_lexer_next(&p->lexer, &p->token);
}

bool hth_parser_fail(hth_parser *p, hearth_status status, const char *what) {
    return hth_lexer_fail(&p->lexer, p->token.at, status, "%s", what);
}

bool hth_parser_unexpected(hth_parser *p, const char *wanted) {
    const hth_lexed *t = &p->token;
    const char *what = "the end of the template", *data = p->lexer.source + t->at;
    size_t size = 0;
    if (t->kind == HTH_T_TAG_END) what = "the end of the tag";
    else if (t->kind == HTH_T_PRINT_END) what = "the end of the expression";
    else if (t->kind == HTH_T_TEXT || t->kind == HTH_T_TAG || t->kind == HTH_T_PRINT) what = "text";
    else if (t->kind != HTH_T_END) size = p->lexer.at > t->at ? p->lexer.at - t->at : 1;
    if (size > 40) size = 40;
    if (size > 0)
        return hth_lexer_fail(&p->lexer, t->at, HEARTH_BAD_FILE, "unexpected '%.*s'%s%s", (int)size, data,
                              wanted ? " in place of " : "", wanted ? wanted : "");
    return hth_lexer_fail(&p->lexer, t->at, HEARTH_BAD_FILE, "unexpected: %s%s%s", what, wanted ? " in place of " : "",
                          wanted ? wanted : "");
}

bool hth_parser_is(const hth_parser *p, const char *name) {
    return p->token.kind == HTH_T_NAME && strlen(name) == p->token.size &&
           memcmp(name, p->token.data, p->token.size) == 0;
}

bool hth_parser_sign(const hth_parser *p, hth_sign sign) {
    return p->token.kind == HTH_T_SIGN && p->token.sign == sign;
}

static bool accept_sign(hth_parser *p, hth_sign sign, const char *wanted) {
    return hth_parser_sign(p, sign) ? hth_parser_next(p) : hth_parser_unexpected(p, wanted);
}

static bool end_tag(hth_parser *p) {
    return p->token.kind == HTH_T_TAG_END ? hth_parser_next(p) : hth_parser_unexpected(p, "the end of the tag");
}

/* ---- code ---- */

bool hth_emit(hth_parser *p, hth_op op, int64_t a, uint32_t at) {
    hth_code *c = p->code;
    if (p->work->status != HEARTH_OK) return false;
    if (a > INT32_MAX || a < INT32_MIN || c->count > INT32_MAX / 2)
        return hth_work_fail(p->work, HEARTH_TOO_LONG, "the template is too long");
    if (!HTH_WORK_ROOM(p->work, c->instructions, c->count, c->capacity)) return false;
    c->instructions[c->count++] = (hth_instruction){.op = (uint8_t)op, .a = (int32_t)a, .at = at};
    return true;
}

hth_instruction *hth_last(hth_parser *p) {
    return &p->code->instructions[p->code->count - 1];
}

void hth_jump_to(hth_parser *p, uint32_t from, uint32_t to) {
    p->code->instructions[from].a = (int32_t)(to - from);
}

void hth_jump_here(hth_parser *p, uint32_t from) {
    hth_jump_to(p, from, p->code->count);
}

int64_t hth_constant(hth_parser *p, hth_value v) {
    hth_code *c = p->code;
    if (!HTH_WORK_ROOM(p->work, c->constants, c->n_constants, c->constant_capacity)) return -1;
    c->constants[c->n_constants] = v;
    return c->n_constants++;
}

int64_t hth_text_constant(hth_parser *p, const char *data, size_t size) {
    const hth_str *s = hth_str_new(p->work, data, size, false);
    return s == NULL ? -1 : hth_constant(p, hth_string_value(s));
}

int64_t hth_name(hth_parser *p, const char *data, size_t size) {
    hth_code *c = p->code;
    hth_str key = {.data = data, .size = (uint32_t)size};
    hth_value *known = hth_dict_find(c->name_index, hth_string_value(&key));
    if (known != NULL) return known->integer;
    const hth_str *s = hth_str_new(p->work, data, size, false);
    if (s == NULL || !HTH_WORK_ROOM(p->work, c->names, c->n_names, c->name_capacity) ||
        !hth_dict_put(p->work, c->name_index, hth_string_value(s), hth_int(c->n_names)))
        return -1;
    c->names[c->n_names] = s;
    return c->n_names++;
}

hth_instruction *hth_cut_code(hth_parser *p, uint32_t from, uint32_t *count) {
    *count = p->code->count - from;
    while (p->moved_capacity < *count || p->moved_capacity == 0) {
        uint32_t before = p->moved_capacity;
        p->moved = hth_work_larger(p->work, p->moved, &p->moved_capacity, sizeof *p->moved);
        if (p->moved_capacity == before) return NULL;
    }
    memcpy(p->moved, p->code->instructions + from, *count * sizeof *p->moved);
    p->code->count = from;
    return p->moved;
}

bool hth_put_code(hth_parser *p, const hth_instruction *code, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!hth_emit(p, (hth_op)code[i].op, code[i].a, code[i].at)) return false;
        hth_last(p)->b = code[i].b;
        hth_last(p)->c = code[i].c;
    }
    return true;
}

/* ---- blocks ---- */

static hth_block *top(hth_parser *p) {
    return p->n_blocks > 0 ? &p->blocks[p->n_blocks - 1] : NULL;
}

static hth_block *open_block(hth_parser *p, block_kind kind, uint32_t at) {
    if (p->n_blocks >= HTH_MAX_NESTING) {
        hth_parser_fail(p, HEARTH_OVER_BUDGET, "tags are nested too deeply");
        return NULL;
    }
    if (!HTH_WORK_ROOM(p->work, p->blocks, p->n_blocks, p->block_capacity)) return NULL;
    hth_block *b = &p->blocks[p->n_blocks++];
    *b = (hth_block){.kind = kind, .at = at, .macro = -1, .attribute = -1};
    return b;
}

/* Keep the code from `from` on for the end of the block. */
static bool keep_code(hth_parser *p, hth_block *b, uint32_t from) {
    hth_instruction *cut = hth_cut_code(p, from, &b->n_kept);
    if (cut == NULL) return false;
    b->kept = hth_work_take_array(p->work, b->n_kept, sizeof *b->kept);
    if (b->kept == NULL) return false;
    if (b->n_kept > 0) memcpy(b->kept, cut, b->n_kept * sizeof *cut);
    return true;
}

/* A jump to the end of the block, which is not known yet. */
static bool emit_exit(hth_parser *p, hth_block *b, uint32_t at) {
    if (!hth_emit(p, HTH_OP_JUMP, b->exits, at)) return false;
    b->exits = p->code->count;
    return true;
}

static void exits_here(hth_parser *p, uint32_t exits) {
    while (exits != 0) {
        uint32_t before = (uint32_t)p->code->instructions[exits - 1].a;
        hth_jump_here(p, exits - 1);
        exits = before;
    }
}

/* ---- what is assigned to ---- */

typedef struct targets {
    hth_instruction *code; /* stores, to be run with the value on the stack */
    uint32_t count;
    int64_t name, attribute; /* of a single one */
    bool single;
} targets;

static bool is_constant_name(const hth_parser *p) {
    return hth_parser_is(p, "true") || hth_parser_is(p, "True") || hth_parser_is(p, "false") ||
           hth_parser_is(p, "False") || hth_parser_is(p, "none") || hth_parser_is(p, "None");
}

static bool read_target(hth_parser *p, bool attributes, targets *t) {
    if (p->token.kind != HTH_T_NAME || is_constant_name(p)) return hth_parser_unexpected(p, "a name to assign to");
    uint32_t at = p->token.at;
    t->name = hth_name(p, p->token.data, p->token.size);
    t->attribute = -1;
    if (t->name < 0 || !hth_parser_next(p)) return false;
    if (!attributes || !hth_parser_sign(p, HTH_S_DOT)) return hth_emit(p, HTH_OP_STORE, t->name, at);
    if (!hth_parser_next(p)) return false;
    if (p->token.kind != HTH_T_NAME) return hth_parser_unexpected(p, "the name of an attribute");
    t->attribute = hth_text_constant(p, p->token.data, p->token.size);
    return t->attribute >= 0 && hth_emit(p, HTH_OP_NAME, t->name, at) &&
           hth_emit(p, HTH_OP_STORE_ATTR, t->attribute, p->token.at) && hth_parser_next(p);
}

enum { MAX_TUPLES = 16 }; /* in tuples of what is assigned to */

/* name, name.attribute, or a tuple of these and of tuples in brackets. The stores come out as code, which is cut out.
 */
static bool read_targets(hth_parser *p, bool attributes, targets *t) {
    uint32_t from = p->code->count, open[MAX_TUPLES], counts[MAX_TUPLES], depth = 0;
    *t = (targets){.name = -1, .attribute = -1};
    /* The outermost tuple has no brackets; it is one only if there is a comma. */
    open[0] = p->code->count;
    counts[0] = 0;
    if (!hth_emit(p, HTH_OP_UNPACK, 0, p->token.at)) return false;
    bool comma = false, outer_comma = false;
    for (;;) {
        while (hth_parser_sign(p, HTH_S_LPAREN)) {
            if (++depth == MAX_TUPLES) return hth_parser_fail(p, HEARTH_UNSUPPORTED, "tuples nested this deeply");
            open[depth] = p->code->count;
            counts[depth] = 0;
            if (!hth_emit(p, HTH_OP_UNPACK, 0, p->token.at) || !hth_parser_next(p)) return false;
        }
        if (!(comma && (hth_parser_sign(p, HTH_S_ASSIGN) || hth_parser_is(p, "in")) && depth == 0)) {
            if (!read_target(p, attributes, t)) return false;
            counts[depth]++;
        }
        while (depth > 0 && hth_parser_sign(p, HTH_S_RPAREN)) {
            p->code->instructions[open[depth]].a = (int32_t)counts[depth];
            counts[--depth]++;
            if (!hth_parser_next(p)) return false;
        }
        comma = hth_parser_sign(p, HTH_S_COMMA);
        if (!comma) break;
        outer_comma |= depth == 0;
        if (!hth_parser_next(p)) return false;
    }
    if (depth > 0) return hth_parser_unexpected(p, "')'");
    t->single = !outer_comma && p->code->instructions[from + 1].op != HTH_OP_UNPACK;
    p->code->instructions[open[0]].a = (int32_t)counts[0];
    uint32_t n;
    hth_instruction *cut = hth_cut_code(p, from, &n);
    if (cut == NULL) return false;
    uint32_t skip = outer_comma ? 0 : 1; /* the unpacking of a tuple that is none */
    t->count = n - skip;
    t->code = hth_work_take_array(p->work, n, sizeof *cut);
    if (t->code == NULL) return false;
    memcpy(t->code, cut + skip, t->count * sizeof *cut);
    return true;
}

/* ---- tags that open a block, or are one by themselves ---- */

static bool read_if(hth_parser *p, uint32_t at) {
    if (!hth_parse_expression(p, HTH_EXPR_TUPLE)) return false;
    hth_block *b = open_block(p, IF, at);
    if (b == NULL || !hth_emit(p, HTH_OP_JUMP_FALSE, 0, at)) return false;
    b->jump = p->code->count;
    return end_tag(p);
}

static bool read_for(hth_parser *p, uint32_t at) {
    targets t;
    if (!read_targets(p, false, &t)) return false;
    if (!hth_parser_is(p, "in")) return hth_parser_unexpected(p, "'in'");
    if (!hth_parser_next(p) || !hth_parse_expression(p, HTH_EXPR_TUPLE)) return false;
    if (!hth_emit(p, HTH_OP_FOR, 0, at)) return false;
    if (hth_parser_is(p, "if")) {
        uint32_t look = p->code->count;
        if (!hth_parser_next(p) || !hth_emit(p, HTH_OP_FOR_LOOK, 0, at) || !hth_put_code(p, t.code, t.count) ||
            !hth_parse_expression(p, HTH_EXPR_COND) || !hth_emit(p, HTH_OP_FOR_KEEP, 0, at) ||
            !hth_emit(p, HTH_OP_JUMP, 0, at))
            return false;
        hth_jump_to(p, p->code->count - 1, look);
        hth_jump_here(p, look);
    }
    if (hth_parser_is(p, "recursive"))
        return hth_parser_fail(p, HEARTH_UNSUPPORTED, "recursive loops are not supported");
    hth_block *b = open_block(p, FOR, at);
    if (b == NULL) return false;
    b->jump = p->code->count;
    return hth_emit(p, HTH_OP_FOR_NEXT, 0, at) && hth_put_code(p, t.code, t.count) && end_tag(p);
}

/* Parameters in brackets, with the code that sets those left out. */
static bool read_params(hth_parser *p, int64_t macro) {
    bool defaults = false;
    if (!accept_sign(p, HTH_S_LPAREN, "'('")) return false;
    while (!hth_parser_sign(p, HTH_S_RPAREN)) {
        hth_macro_code *m = &p->code->macros[macro];
        if (p->token.kind != HTH_T_NAME || is_constant_name(p)) return hth_parser_unexpected(p, "a name");
        uint32_t at = p->token.at;
        int64_t name = hth_name(p, p->token.data, p->token.size);
        if (name < 0 || !HTH_WORK_ROOM(p->work, m->params, m->n_params, m->capacity) || !hth_parser_next(p))
            return false;
        if (m->n_params == HTH_MAX_PARAMS)
            return hth_parser_fail(p, HEARTH_UNSUPPORTED, "a macro with this many parameters");
        m->params[m->n_params++] = (uint32_t)name;
        if (hth_parser_sign(p, HTH_S_ASSIGN)) {
            uint32_t given = p->code->count;
            if (!hth_emit(p, HTH_OP_DEFAULT, 0, at)) return false;
            hth_last(p)->c = (uint16_t)(m->n_params - 1);
            if (!hth_parser_next(p) || !hth_parse_expression(p, HTH_EXPR_COND) || !hth_emit(p, HTH_OP_STORE, name, at))
                return false;
            hth_jump_here(p, given);
            defaults = true;
        } else if (defaults) {
            return hth_parser_fail(p, HEARTH_BAD_FILE, "a parameter without a default behind one with a default");
        }
        if (!hth_parser_sign(p, HTH_S_COMMA)) break;
        if (!hth_parser_next(p)) return false;
    }
    return accept_sign(p, HTH_S_RPAREN, "')'");
}

/* Begin the body of a macro; its parameters are read when `params`. */
static hth_block *begin_macro(hth_parser *p, block_kind kind, const hth_str *name, uint32_t at, bool params) {
    hth_code *c = p->code;
    if (!HTH_WORK_ROOM(p->work, c->macros, c->n_macros, c->macro_capacity)) return NULL;
    int64_t macro = c->n_macros++;
    c->macros[macro] = (hth_macro_code){.name = name};
    hth_block *b = open_block(p, kind, at);
    if (b == NULL || !hth_emit(p, HTH_OP_MACRO, macro, at)) return NULL;
    b->macro = macro;
    b->outer = p->macro;
    p->macro = macro;
    c->macros[macro].body = c->count;
    return !params || read_params(p, macro) ? b : NULL;
}

static bool end_macro(hth_parser *p, const hth_block *b, uint32_t at) {
    if (!hth_emit(p, HTH_OP_RETURN, 0, at)) return false;
    p->code->macros[b->macro].end = p->code->count;
    p->macro = b->outer;
    return true;
}

static bool read_macro(hth_parser *p, uint32_t at) {
    if (p->token.kind != HTH_T_NAME || is_constant_name(p)) return hth_parser_unexpected(p, "a name");
    int64_t name = hth_name(p, p->token.data, p->token.size);
    if (name < 0 || !hth_parser_next(p)) return false;
    hth_block *b = begin_macro(p, MACRO, p->code->names[name], at, true);
    if (b == NULL) return false;
    b->name = name;
    return end_tag(p);
}

/* The body is a macro that the call gets as `caller`. The call is read first and run last. */
static bool read_call(hth_parser *p, uint32_t at) {
    const hth_str *name = hth_str_text(p->work, "caller");
    if (name == NULL) return false;
    hth_block *b = begin_macro(p, CALL, name, at, hth_parser_sign(p, HTH_S_LPAREN));
    if (b == NULL) return false;
    uint32_t call = p->code->count;
    /* The call belongs to the code around the body. */
    int64_t inner = p->macro;
    p->macro = b->outer;
    if (!hth_parse_expression(p, 0)) return false;
    p->macro = inner;
    if (p->code->count == call || hth_last(p)->op != HTH_OP_CALL || hth_last(p)->c == UINT8_MAX)
        return hth_parser_fail(p, HEARTH_BAD_FILE, "a call block needs a call");
    b = top(p);
    return keep_code(p, b, call) && end_tag(p);
}

static bool read_set(hth_parser *p, uint32_t at) {
    targets t;
    if (!read_targets(p, true, &t)) return false;
    if (hth_parser_sign(p, HTH_S_ASSIGN))
        return hth_parser_next(p) && hth_parse_expression(p, HTH_EXPR_TUPLE | HTH_EXPR_COND) &&
               hth_put_code(p, t.code, t.count) && end_tag(p);
    if (!t.single) return hth_parser_unexpected(p, "'='");
    uint32_t from = p->code->count;
    if (hth_parser_sign(p, HTH_S_PIPE) && !hth_parse_expression(p, HTH_EXPR_FILTERS)) return false;
    hth_block *b = open_block(p, SET, at);
    if (b == NULL || !keep_code(p, b, from)) return false;
    b->name = t.name;
    b->attribute = t.attribute;
    return hth_emit(p, HTH_OP_SCOPE, 0, at) && hth_emit(p, HTH_OP_CAPTURE, 0, at) && end_tag(p);
}

static bool read_filter(hth_parser *p, uint32_t at) {
    uint32_t from = p->code->count;
    if (!hth_parse_expression(p, HTH_EXPR_FILTER)) return false;
    hth_block *b = open_block(p, FILTER, at);
    return b != NULL && keep_code(p, b, from) && hth_emit(p, HTH_OP_SCOPE, 0, at) &&
           hth_emit(p, HTH_OP_CAPTURE, 0, at) && end_tag(p);
}

static bool read_with(hth_parser *p, uint32_t at) {
    /* All values are computed outside, then set, the last one first. */
    targets t[MAX_TUPLES];
    int n = 0;
    while (p->token.kind != HTH_T_TAG_END) {
        if (n == MAX_TUPLES) return hth_parser_fail(p, HEARTH_UNSUPPORTED, "this many names in one tag");
        if (n > 0 && !accept_sign(p, HTH_S_COMMA, "','")) return false;
        uint32_t here = p->code->count;
        if (!read_target(p, false, &t[n]) || !accept_sign(p, HTH_S_ASSIGN, "'='")) return false;
        p->code->count = here; /* the store comes later */
        if (!hth_parse_expression(p, HTH_EXPR_COND)) return false;
        n++;
    }
    if (open_block(p, WITH, at) == NULL || !hth_emit(p, HTH_OP_SCOPE, 0, at)) return false;
    while (n-- > 0)
        if (!hth_emit(p, HTH_OP_STORE, t[n].name, at)) return false;
    return end_tag(p);
}

static bool read_generation(hth_parser *p, uint32_t at) {
    return open_block(p, GENERATION, at) != NULL && hth_emit(p, HTH_OP_SCOPE, 0, at) && end_tag(p);
}

static bool read_do(hth_parser *p, uint32_t at) {
    return hth_parse_expression(p, HTH_EXPR_TUPLE | HTH_EXPR_COND) && hth_emit(p, HTH_OP_POP, 0, at) && end_tag(p);
}

/* break and continue: leave the scopes between here and the body of the loop. */
static bool read_jump(hth_parser *p, uint32_t at, bool is_break) {
    for (uint32_t i = p->n_blocks; i-- > 0;) {
        hth_block *b = &p->blocks[i];
        switch (b->kind) {
        case IF: break;
        case FOR_ELSE:
        case WITH:
            if (!hth_emit(p, HTH_OP_SCOPE_END, 0, at)) return false;
            if (b->kind == FOR_ELSE && !hth_emit(p, HTH_OP_FOR_END, 0, at)) return false;
            break;
        case FOR:
            if (is_break) return emit_exit(p, b, at) && end_tag(p);
            if (!hth_emit(p, HTH_OP_JUMP, 0, at)) return false;
            hth_jump_to(p, p->code->count - 1, b->jump);
            return end_tag(p);
        default:
            return hth_lexer_fail(&p->lexer, at, HEARTH_BAD_FILE,
                                  "%s cannot leave a block that is a macro, a call, "
                                  "a set, a filter or a generation",
                                  is_break ? "break" : "continue");
        }
    }
    return hth_lexer_fail(&p->lexer, at, HEARTH_BAD_FILE, "%s outside of a loop", is_break ? "break" : "continue");
}

static bool read_break(hth_parser *p, uint32_t at) {
    return read_jump(p, at, true);
}

static bool read_continue(hth_parser *p, uint32_t at) {
    return read_jump(p, at, false);
}

/* ---- tags that go on with a block, or end it ---- */

static bool read_elif(hth_parser *p, uint32_t at) {
    hth_block *b = top(p);
    if (b == NULL || b->kind != IF || b->has_else)
        return hth_lexer_fail(&p->lexer, at, HEARTH_BAD_FILE, "elif without if");
    if (!emit_exit(p, b, at)) return false;
    hth_jump_here(p, b->jump - 1);
    if (!hth_parse_expression(p, HTH_EXPR_TUPLE) || !hth_emit(p, HTH_OP_JUMP_FALSE, 0, at)) return false;
    top(p)->jump = p->code->count;
    return end_tag(p);
}

static bool read_else(hth_parser *p, uint32_t at) {
    hth_block *b = top(p);
    if (b != NULL && b->kind == IF && !b->has_else) {
        if (!emit_exit(p, b, at)) return false;
        hth_jump_here(p, b->jump - 1);
        b->has_else = true;
        return end_tag(p);
    }
    if (b == NULL || b->kind != FOR) return hth_lexer_fail(&p->lexer, at, HEARTH_BAD_FILE, "else without if or for");
    if (!hth_emit(p, HTH_OP_JUMP, 0, at)) return false;
    hth_jump_to(p, p->code->count - 1, b->jump);
    hth_jump_here(p, b->jump);
    exits_here(p, b->exits);
    b->kind = FOR_ELSE;
    b->jump = p->code->count;
    return hth_emit(p, HTH_OP_FOR_NONE, 0, at) && hth_emit(p, HTH_OP_SCOPE, 0, at) && end_tag(p);
}

static bool end_call(hth_parser *p, const hth_block *b, uint32_t at) {
    /* The macro is on the stack; the call wants its name under it. Make it: callee and arguments, name, macro, call. */
    uint32_t n, start = p->code->macros[b->macro].body - 1;
    const hth_instruction call = b->kept[b->n_kept - 1];
    hth_instruction *macro = hth_cut_code(p, start, &n);
    if (macro == NULL) return false;
    hth_instruction *body = hth_work_take_array(p->work, n, sizeof *body);
    if (body == NULL) return false;
    memcpy(body, macro, n * sizeof *body);
    int64_t name = hth_text_constant(p, "caller", strlen("caller"));
    if (name < 0 || !hth_put_code(p, b->kept, b->n_kept - 1) || !hth_emit(p, HTH_OP_CONST, name, at)) return false;
    hth_macro_code *m = &p->code->macros[b->macro];
    uint32_t moved = p->code->count - start;
    m->body += moved;
    m->end += moved;
    /* Macros inside of the body move with it. */
    for (uint32_t i = (uint32_t)b->macro + 1; i < p->code->n_macros; i++) {
        p->code->macros[i].body += moved;
        p->code->macros[i].end += moved;
    }
    if (!hth_put_code(p, body, n) || !hth_emit(p, HTH_OP_CALL, 0, call.at)) return false;
    hth_last(p)->b = call.b;
    hth_last(p)->c = (uint16_t)(call.c + 1);
    return hth_emit(p, HTH_OP_PRINT, 0, at);
}

static bool end_capture(hth_parser *p, const hth_block *b, uint32_t at) {
    if (!hth_emit(p, HTH_OP_CAPTURE_END, 0, at) || !hth_emit(p, HTH_OP_SCOPE_END, 0, at) ||
        !hth_put_code(p, b->kept, b->n_kept))
        return false;
    if (b->kind == FILTER) return hth_emit(p, HTH_OP_PRINT, 0, at);
    if (b->attribute < 0) return hth_emit(p, HTH_OP_STORE, b->name, at);
    return hth_emit(p, HTH_OP_NAME, b->name, at) && hth_emit(p, HTH_OP_STORE_ATTR, b->attribute, at);
}

static bool end_block(hth_parser *p, uint32_t at) {
    hth_block b = *top(p);
    p->n_blocks--;
    bool ok = true;
    switch (b.kind) {
    case IF:
        if (!b.has_else) hth_jump_here(p, b.jump - 1);
        exits_here(p, b.exits);
        break;
    case FOR:
        ok = hth_emit(p, HTH_OP_JUMP, 0, at);
        if (!ok) break;
        hth_jump_to(p, p->code->count - 1, b.jump);
        hth_jump_here(p, b.jump);
        exits_here(p, b.exits);
        ok = hth_emit(p, HTH_OP_FOR_END, 0, at);
        break;
    case FOR_ELSE:
        ok = hth_emit(p, HTH_OP_SCOPE_END, 0, at);
        if (ok) hth_jump_here(p, b.jump);
        ok = ok && hth_emit(p, HTH_OP_FOR_END, 0, at);
        break;
    case MACRO: ok = end_macro(p, &b, at) && hth_emit(p, HTH_OP_STORE, b.name, at); break;
    case CALL: ok = end_macro(p, &b, at) && end_call(p, &b, at); break;
    case SET:
    case FILTER: ok = end_capture(p, &b, at); break;
    case WITH:
    case GENERATION: ok = hth_emit(p, HTH_OP_SCOPE_END, 0, at); break;
    }
    return ok && end_tag(p);
}

/* ---- the tags ---- */

static const struct {
    const char *name;
    bool (*read)(hth_parser *p, uint32_t at); /* NULL: known, and not supported */
} tags[] = {
    {"if", read_if},
    {"elif", read_elif},
    {"else", read_else},
    {"for", read_for},
    {"set", read_set},
    {"macro", read_macro},
    {"call", read_call},
    {"filter", read_filter},
    {"with", read_with},
    {"break", read_break},
    {"continue", read_continue},
    {"generation", read_generation},
    {"do", read_do},
    {"include", NULL},
    {"import", NULL},
    {"from", NULL},
    {"extends", NULL},
    {"block", NULL},
    {"autoescape", NULL},
    {"trans", NULL},
    {"debug", NULL},
};

static bool read_tag(hth_parser *p) {
    uint32_t at = p->token.at;
    if (!hth_parser_next(p)) return false;
    if (p->token.kind != HTH_T_NAME) return hth_parser_unexpected(p, "the name of a tag");
    hth_block *b = top(p);
    if (b != NULL && hth_parser_is(p, end_names[b->kind])) {
        if (!hth_parser_next(p)) return false;
        if (b->kind == MACRO && p->token.kind == HTH_T_NAME && !hth_parser_next(p)) return false;
        return end_block(p, at);
    }
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!hth_parser_is(p, tags[i].name)) continue;
        if (tags[i].read == NULL)
            return hth_lexer_fail(&p->lexer, at, HEARTH_UNSUPPORTED, "the tag '%s' is not supported", tags[i].name);
        return hth_parser_next(p) && tags[i].read(p, at);
    }
    int size = p->token.size < 40 ? (int)p->token.size : 40;
    if (p->token.size > 3 && memcmp(p->token.data, "end", 3) == 0) {
        if (b == NULL)
            return hth_lexer_fail(&p->lexer, at, HEARTH_BAD_FILE, "'%.*s' ends nothing", size, p->token.data);
        return hth_lexer_fail(&p->lexer, at, HEARTH_BAD_FILE, "'%.*s' where '%s' is due", size, p->token.data,
                              end_names[b->kind]);
    }
    return hth_lexer_fail(&p->lexer, at, HEARTH_UNSUPPORTED, "the tag '%.*s' is not known", size, p->token.data);
}

static bool read_print(hth_parser *p) {
    uint32_t at = p->token.at;
    if (!hth_parser_next(p) || !hth_parse_expression(p, HTH_EXPR_TUPLE | HTH_EXPR_COND)) return false;
    if (p->token.kind != HTH_T_PRINT_END) return hth_parser_unexpected(p, "the end of the expression");
    return hth_emit(p, HTH_OP_PRINT, 0, at) && hth_parser_next(p);
}

static bool read_text(hth_parser *p) {
    int64_t c = hth_text_constant(p, p->token.data, p->token.size);
    return c >= 0 && hth_emit(p, HTH_OP_TEXT, c, p->token.at) && hth_parser_next(p);
}

bool hth_template_parse(hth_work *w, const char *text, size_t size, hth_code *out) {
    hth_parser p = {.work = w, .code = out, .macro = -1};
    *out = (hth_code){.name_index = hth_dict_new(w)};
    if (out->name_index == NULL || !hth_lexer_begin(&p.lexer, w, text, size) || !hth_parser_next(&p)) return false;
    out->source = p.lexer.source;
    out->source_size = p.lexer.size;
    while (p.token.kind != HTH_T_END) {
        bool ok = p.token.kind == HTH_T_TEXT    ? read_text(&p)
                  : p.token.kind == HTH_T_PRINT ? read_print(&p)
                  : p.token.kind == HTH_T_TAG   ? read_tag(&p)
                                                : hth_parser_unexpected(&p, NULL);
        if (!ok) return false;
    }
    if (p.n_blocks > 0) {
        const hth_block *b = top(&p);
        return hth_lexer_fail(&p.lexer, b->at, HEARTH_BAD_FILE, "this tag has no '%s'", end_names[b->kind]);
    }
    return hth_emit(&p, HTH_OP_END, 0, (uint32_t)p.lexer.size);
}
