/* Expressions, without recursion: operators and brackets that are open wait on a stack, and code for the stack machine
 * comes out in the order in which it is run.
 *
 *   operand: reads what a value begins with, then value;
 *   value:   reads what can follow one: a suffix (then value again), an operator (then operand), the end of a bracket.
 *
 * A binary operator first closes those that bind tighter or as tight. `x if c else y` is the one form whose parts run
 * in another order than they are written: the code of x is moved behind that of c. */
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_parser.h"

typedef enum pending_kind {
    /* Brackets: what is inside belongs to them. */
    ROOT,
    PAREN,
    LIST,
    DICT_KEY,
    DICT_VALUE,
    CALL,
    FILTER,
    TEST,
    INDEX,
    TEST_VALUE, /* the argument of a test without brackets: suffixes only */
    /* Operators. */
    COND,      /* behind `if` */
    COND_ELSE, /* behind `else` */
    OR,
    AND,
    NOT,
    COMPARE,
    BINARY,
    UNARY
} pending_kind;

/* How tight an operator binds. */
enum { BIND_COND, BIND_OR, BIND_AND, BIND_NOT, BIND_COMPARE, BIND_ADD, BIND_TILDE, BIND_MUL, BIND_POW, BIND_UNARY };

struct hth_pending {
    pending_kind kind;
    int bind;
    uint8_t sign;     /* hth_sign, hth_compare, or for UNARY '-' or '+' */
    bool comma;       /* PAREN, ROOT: a tuple */
    bool negate;      /* TEST, TEST_VALUE */
    bool keyword;     /* CALL...: the value that is read has a name */
    bool filtered;    /* what was read last is behind a filter or test: no more suffixes */
    uint32_t at;      /* in the source */
    uint32_t start;   /* first instruction of the element that is read; COND: of x */
    uint32_t middle;  /* COND: first instruction of c; COND_ELSE, AND, OR, COMPARE: the jump to patch, 0 none */
    uint32_t count;   /* elements; INDEX: colons */
    uint32_t n_named; /* CALL...: arguments with a name */
    int64_t id;       /* FILTER, TEST: which; -1: not known, `name` is its constant */
    int64_t name;
};

enum { MORE, DONE, FAILED };

static hth_pending *top(hth_parser *p) {
    return &p->pending[p->n_pending - 1];
}

static hth_pending *push(hth_parser *p, pending_kind kind, int bind) {
    if (p->n_pending >= HTH_MAX_NESTING) {
        hth_parser_fail(p, HEARTH_OVER_BUDGET, "expressions are nested too deeply");
        return NULL;
    }
    if (!HTH_WORK_ROOM(p->work, p->pending, p->n_pending, p->pending_capacity)) return NULL;
    hth_pending *e = &p->pending[p->n_pending++];
    *e = (hth_pending){.kind = kind, .bind = bind, .at = p->token.at, .start = p->code->count, .id = -1, .name = -1};
    return e;
}

/* ---- closing what waits ---- */

/* The code is x c: make it c, jump-if-false, x, jump. The jumps stand before and behind x; `middle` becomes the first.
 */
static bool move_condition(hth_parser *p, hth_pending *e) {
    uint32_t n_x = e->middle - e->start, n_c = p->code->count - e->middle, n;
    hth_instruction *c = hth_cut_code(p, e->middle, &n);
    if (c == NULL || !hth_emit(p, HTH_OP_JUMP, 0, e->at) || !hth_emit(p, HTH_OP_JUMP, 0, e->at) ||
        !hth_put_code(p, c, n_c) || !hth_work_charge(p->work, n_x + n_c))
        return false;
    /* Now x, two places, c. c goes to the front. */
    hth_instruction *code = p->code->instructions + e->start;
    memmove(code + n_c + 1, code, n_x * sizeof *code);
    memcpy(code, c, n_c * sizeof *code);
    code[n_c] = (hth_instruction){.op = HTH_OP_JUMP_FALSE, .at = e->at};
    code[n_c + 1 + n_x] = (hth_instruction){.op = HTH_OP_JUMP, .at = e->at};
    p->code->count = e->start + n_c + n_x + 2;
    hth_jump_here(p, e->start + n_c);
    e->middle = p->code->count - 1;
    return true;
}

/* The operator on top has its operands: emit it. */
static bool close_operator(hth_parser *p) {
    hth_pending e = *top(p);
    p->n_pending--;
    switch (e.kind) {
    case UNARY: return hth_emit(p, e.sign == '-' ? HTH_OP_NEGATE : HTH_OP_PLUS, 0, e.at);
    case NOT: return hth_emit(p, HTH_OP_NOT, 0, e.at);
    case BINARY:
        if (!hth_emit(p, HTH_OP_BINARY, 0, e.at)) return false;
        hth_last(p)->b = e.sign;
        return true;
    case COMPARE:
        if (!hth_emit(p, HTH_OP_COMPARE, 0, e.at)) return false;
        hth_last(p)->b = e.sign;
        while (e.middle != 0) { /* the links of a chain, each holding the one before it */
            uint32_t before = (uint32_t)p->code->instructions[e.middle - 1].a;
            hth_jump_here(p, e.middle - 1);
            e.middle = before;
        }
        return true;
    case COND: /* without else: nothing there */
        if (!move_condition(p, &e)) return false;
        if (!hth_emit(p, HTH_OP_CONST, hth_constant(p, hth_nothing()), e.at)) return false;
        hth_jump_here(p, e.middle);
        return true;
    default: /* AND, OR, COND_ELSE */ hth_jump_here(p, e.middle); return true;
    }
}

static bool close_tighter(hth_parser *p, int bind) {
    while (top(p)->kind >= COND && top(p)->bind >= bind)
        if (!close_operator(p)) return false;
    return true;
}

/* Filters and tests bind tighter than all but a sign, which they follow. */
static bool close_signs(hth_parser *p) {
    return close_tighter(p, BIND_UNARY);
}

/* ---- filters and tests ---- */

/* name(.name)* at the token; *name its constant. */
static bool read_dotted(hth_parser *p, hth_build *b) {
    while (p->token.kind == HTH_T_NAME) {
        if (!hth_build_bytes(b, p->token.data, p->token.size, false) || !hth_parser_next(p)) return false;
        if (!hth_parser_sign(p, HTH_S_DOT)) return true;
        if (!hth_build_text(b, ".") || !hth_parser_next(p)) return false;
    }
    return hth_parser_unexpected(p, "a name");
}

static bool emit_named(hth_parser *p, const hth_pending *e) {
    bool test = e->kind == TEST || e->kind == TEST_VALUE;
    hth_op op = e->id >= 0 ? (test ? HTH_OP_TEST : HTH_OP_FILTER) : test ? HTH_OP_NO_TEST : HTH_OP_NO_FILTER;
    if (e->count > UINT8_MAX || e->n_named > UINT8_MAX)
        return hth_parser_fail(p, HEARTH_UNSUPPORTED, "more than 255 arguments");
    if (!hth_emit(p, op, e->id >= 0 ? e->id : e->name, e->at)) return false;
    hth_last(p)->b = (uint8_t)(e->count - e->n_named);
    hth_last(p)->c = (uint16_t)e->n_named;
    return !e->negate || hth_emit(p, HTH_OP_NOT, 0, e->at);
}

static bool begins_argument(const hth_parser *p) {
    switch (p->token.kind) {
    case HTH_T_NAME: return !hth_parser_is(p, "else") && !hth_parser_is(p, "or") && !hth_parser_is(p, "and");
    case HTH_T_STRING:
    case HTH_T_INT:
    case HTH_T_FLOAT: return true;
    case HTH_T_SIGN: return hth_parser_sign(p, HTH_S_LBRACKET) || hth_parser_sign(p, HTH_S_LBRACE);
    default: return false;
    }
}

/* At the name of a filter or test. *operand: an argument follows. */
static bool begin_named(hth_parser *p, bool test, bool *operand) {
    hth_pending e = {.kind = test ? TEST : FILTER, .at = p->token.at, .id = -1};
    hth_build b = {.work = p->work};
    *operand = false;
    if (test && hth_parser_is(p, "not")) {
        e.negate = true;
        if (!hth_parser_next(p)) return false;
    }
    if (!read_dotted(p, &b)) return false;
    e.id = test ? hth_test_id(b.data, b.size) : hth_filter_id(b.data, b.size);
    if (e.id < 0 && (e.name = hth_text_constant(p, b.data, b.size)) < 0) return false;
    bool bracket = hth_parser_sign(p, HTH_S_LPAREN);
    if (!bracket && !(test && begins_argument(p))) return emit_named(p, &e);
    if (test && hth_parser_is(p, "is")) return hth_parser_fail(p, HEARTH_BAD_FILE, "tests cannot follow each other");
    hth_pending *pushed = push(p, bracket ? e.kind : TEST_VALUE, 0);
    if (pushed == NULL) return false;
    pushed->at = e.at;
    pushed->id = e.id;
    pushed->name = e.name;
    pushed->negate = e.negate;
    *operand = true;
    return !bracket || hth_parser_next(p);
}

/* ---- operands ---- */

static bool emit_constant(hth_parser *p, hth_value v) {
    int64_t c = hth_constant(p, v);
    return c >= 0 && hth_emit(p, HTH_OP_CONST, c, p->token.at);
}

static bool read_strings(hth_parser *p) {
    hth_build b = {.work = p->work};
    uint32_t at = p->token.at;
    while (p->token.kind == HTH_T_STRING)
        if (!hth_build_bytes(&b, p->token.data, p->token.size, false) || !hth_parser_next(p)) return false;
    int64_t c = hth_text_constant(p, b.data != NULL ? b.data : "", b.size);
    return c >= 0 && hth_emit(p, HTH_OP_CONST, c, at);
}

static bool read_name(hth_parser *p) {
    static const struct {
        const char *name;
        hth_value value;
    } words[] = {{"true", {.kind = HTH_BOOL, .truth = true}},
                 {"True", {.kind = HTH_BOOL, .truth = true}},
                 {"false", {.kind = HTH_BOOL}},
                 {"False", {.kind = HTH_BOOL}},
                 {"none", {.kind = HTH_NONE}},
                 {"None", {.kind = HTH_NONE}}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hth_parser_is(p, words[i].name)) return emit_constant(p, words[i].value) && hth_parser_next(p);
    if (p->macro >= 0) {
        hth_macro_code *m = &p->code->macros[p->macro];
        m->varargs |= hth_parser_is(p, "varargs");
        m->kwargs |= hth_parser_is(p, "kwargs");
        m->caller |= hth_parser_is(p, "caller");
    }
    int64_t name = hth_name(p, p->token.data, p->token.size);
    return name >= 0 && hth_emit(p, HTH_OP_NAME, name, p->token.at) && hth_parser_next(p);
}

/* `name=` of an argument; both tokens are read when it is one. */
static bool read_keyword(hth_parser *p, bool *is_keyword) {
    hth_parser before = *p;
    *is_keyword = false;
    if (p->token.kind != HTH_T_NAME) return true;
    if (!hth_parser_next(p)) return false;
    if (!hth_parser_sign(p, HTH_S_ASSIGN)) {
        p->lexer.at = before.lexer.at;
        p->lexer.n_brackets = before.lexer.n_brackets;
        p->lexer.mode = before.lexer.mode;
        p->lexer.after_dot = before.lexer.after_dot;
        p->lexer.line_start = before.lexer.line_start;
        p->token = before.token;
        return true;
    }
    *is_keyword = true;
    int64_t c = hth_text_constant(p, before.token.data, before.token.size);
    return c >= 0 && hth_emit(p, HTH_OP_CONST, c, before.token.at) && hth_parser_next(p);
}

static bool close_bracket(hth_parser *p);

static bool is_call(const hth_pending *e) {
    return e->kind == CALL || e->kind == FILTER || e->kind == TEST;
}

/* Where an operand is wanted: signs and opening brackets stay here. *value: a value is on the stack. */
static bool read_sign_operand(hth_parser *p, bool *value) {
    hth_pending *e = top(p);
    bool none_yet = p->code->count == e->start;
    hth_sign sign = p->token.sign;
    if (sign == HTH_S_SUB || sign == HTH_S_ADD) {
        hth_pending *unary = push(p, UNARY, BIND_UNARY);
        if (unary == NULL) return false;
        unary->sign = sign == HTH_S_SUB ? '-' : '+';
        return hth_parser_next(p);
    }
    if (sign == HTH_S_LPAREN || sign == HTH_S_LBRACKET || sign == HTH_S_LBRACE)
        return push(p,
                    sign == HTH_S_LPAREN     ? PAREN
                    : sign == HTH_S_LBRACKET ? LIST
                                             : DICT_KEY,
                    0) != NULL &&
               hth_parser_next(p);
    if (sign == HTH_S_COLON && e->kind == INDEX && none_yet && e->count < 2) {
        e->count++;
        if (!emit_constant(p, hth_none()) || !hth_parser_next(p)) return false;
        top(p)->start = p->code->count;
        return true;
    }
    /* An empty bracket, or one with a comma at its end. */
    bool ends = (sign == HTH_S_RPAREN && (e->kind == PAREN || is_call(e))) ||
                (sign == HTH_S_RBRACKET && (e->kind == LIST || (e->kind == INDEX && e->count > 0))) ||
                (sign == HTH_S_RBRACE && e->kind == DICT_KEY);
    if (!ends || !none_yet || (is_call(e) && e->keyword)) return hth_parser_unexpected(p, NULL);
    if (e->kind == PAREN) e->comma = true;
    if (e->kind == INDEX && !emit_constant(p, hth_none())) return false;
    *value = true;
    return close_bracket(p);
}

static bool read_operand(hth_parser *p, bool *value) {
    hth_pending *e = top(p);
    e->filtered = false;
    if (is_call(e) && p->code->count == e->start) {
        bool keyword;
        if (!read_keyword(p, &keyword)) return false;
        e = top(p);
        if (!keyword && e->n_named > 0 && !hth_parser_sign(p, HTH_S_RPAREN))
            return hth_parser_fail(p, HEARTH_BAD_FILE, "an argument without a name behind one with a name");
        e->keyword = keyword;
        e->start = p->code->count;
        if (!keyword && (hth_parser_sign(p, HTH_S_MUL) || hth_parser_sign(p, HTH_S_POW)))
            return hth_parser_fail(p, HEARTH_UNSUPPORTED, "arguments out of a list or dict (*, **) are not supported");
    }
    switch (p->token.kind) {
    case HTH_T_NAME:
        if (hth_parser_is(p, "not") && e->kind != TEST_VALUE) {
            if (e->kind >= COND && e->bind > BIND_NOT) return hth_parser_unexpected(p, NULL);
            return push(p, NOT, BIND_NOT) != NULL && hth_parser_next(p);
        }
        *value = true;
        return read_name(p);
    case HTH_T_STRING: *value = true; return read_strings(p);
    case HTH_T_INT: *value = true; return emit_constant(p, hth_int(p->token.integer)) && hth_parser_next(p);
    case HTH_T_FLOAT: *value = true; return emit_constant(p, hth_real(p->token.real)) && hth_parser_next(p);
    case HTH_T_SIGN: return read_sign_operand(p, value);
    default: return hth_parser_unexpected(p, "a value");
    }
}

/* ---- behind a value ---- */

/* The closing bracket is the token, and the elements are on the stack. */
static bool close_bracket(hth_parser *p) {
    hth_pending e = *top(p);
    bool more = p->code->count > e.start; /* an element behind the last comma */
    p->n_pending--;
    if (!hth_parser_next(p)) return false;
    switch (e.kind) {
    case PAREN:
        if (e.comma && !hth_emit(p, HTH_OP_TUPLE, e.count + more, e.at)) return false;
        break;
    case LIST:
        if (!hth_emit(p, HTH_OP_LIST, e.count + more, e.at)) return false;
        break;
    case DICT_KEY:
    case DICT_VALUE:
        if (!hth_emit(p, HTH_OP_DICT, e.count + more, e.at)) return false;
        break;
    case INDEX:
        if (e.count == 0) {
            if (!hth_emit(p, HTH_OP_ITEM, 0, e.at)) return false;
            break;
        }
        if (e.count == 1 && !emit_constant(p, hth_none())) return false;
        if (!hth_emit(p, HTH_OP_SLICE, 0, e.at)) return false;
        break;
    case CALL:
        e.count += more;
        e.n_named += more && e.keyword;
        if (e.count > UINT8_MAX) return hth_parser_fail(p, HEARTH_UNSUPPORTED, "more than 255 arguments");
        if (!hth_emit(p, HTH_OP_CALL, 0, e.at)) return false;
        hth_last(p)->b = (uint8_t)(e.count - e.n_named);
        hth_last(p)->c = (uint16_t)e.n_named;
        break;
    default: /* FILTER, TEST */
        e.count += more;
        e.n_named += more && e.keyword;
        if (!emit_named(p, &e)) return false;
        if (p->n_pending > 0) top(p)->filtered = true;
        break;
    }
    return true;
}

/* A comma or colon behind an element. *mine: it belongs to the bracket. */
static bool read_separator(hth_parser *p, unsigned flags, bool *mine) {
    if (!close_tighter(p, BIND_COND)) return false;
    hth_pending *e = top(p);
    bool comma = p->token.sign == HTH_S_COMMA;
    *mine = true;
    if (comma && (e->kind == LIST || e->kind == PAREN || is_call(e) || e->kind == DICT_VALUE)) {
        e->comma = true;
        e->count++;
        if (is_call(e)) e->n_named += e->keyword;
        if (e->kind == DICT_VALUE) e->kind = DICT_KEY;
    } else if (comma && e->kind == ROOT && (flags & HTH_EXPR_TUPLE) != 0) {
        e->comma = true;
        e->count++;
    } else if (!comma && e->kind == DICT_KEY) {
        e->kind = DICT_VALUE;
    } else if (!comma && e->kind == INDEX && e->count < 2) {
        e->count++;
    } else if (comma && e->kind == INDEX) {
        return hth_parser_fail(p, HEARTH_UNSUPPORTED, "several indices are not supported");
    } else {
        *mine = false;
        return true;
    }
    e->start = p->code->count;
    return hth_parser_next(p);
}

/* .name, .0, [ or ( behind a value that takes one. */
static bool read_suffix(hth_parser *p, bool *operand) {
    hth_sign sign = p->token.sign;
    uint32_t at = p->token.at;
    *operand = sign != HTH_S_DOT;
    if (sign != HTH_S_DOT) return push(p, sign == HTH_S_LPAREN ? CALL : INDEX, 0) != NULL && hth_parser_next(p);
    if (!hth_parser_next(p)) return false;
    if (p->token.kind == HTH_T_INT)
        return emit_constant(p, hth_int(p->token.integer)) && hth_emit(p, HTH_OP_ITEM, 0, at) && hth_parser_next(p);
    if (p->token.kind != HTH_T_NAME) return hth_parser_unexpected(p, "a name or number");
    int64_t c = hth_text_constant(p, p->token.data, p->token.size);
    return c >= 0 && hth_emit(p, HTH_OP_ATTR, c, at) && hth_parser_next(p);
}

typedef struct binary {
    hth_sign sign;
    int bind, compare;
} binary;

static const binary *binary_of(hth_sign sign) {
    static const binary list[] = {
        {HTH_S_ADD, BIND_ADD, -1},          {HTH_S_SUB, BIND_ADD, -1},          {HTH_S_TILDE, BIND_TILDE, -1},
        {HTH_S_MUL, BIND_MUL, -1},          {HTH_S_DIV, BIND_MUL, -1},          {HTH_S_FLOORDIV, BIND_MUL, -1},
        {HTH_S_MOD, BIND_MUL, -1},          {HTH_S_POW, BIND_POW, -1},          {HTH_S_EQ, BIND_COMPARE, HTH_C_EQ},
        {HTH_S_NE, BIND_COMPARE, HTH_C_NE}, {HTH_S_LT, BIND_COMPARE, HTH_C_LT}, {HTH_S_LE, BIND_COMPARE, HTH_C_LE},
        {HTH_S_GT, BIND_COMPARE, HTH_C_GT}, {HTH_S_GE, BIND_COMPARE, HTH_C_GE},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].sign == sign) return &list[i];
    return NULL;
}

static bool read_compare(hth_parser *p, int compare) {
    if (!close_tighter(p, BIND_COMPARE + 1)) return false;
    hth_pending *e = top(p);
    if (e->kind == COMPARE) { /* a < b < c: b stays for the next */
        if (!hth_emit(p, HTH_OP_CHAIN, e->middle, p->token.at)) return false;
        hth_last(p)->b = e->sign;
        e->middle = p->code->count;
    } else if ((e = push(p, COMPARE, BIND_COMPARE)) == NULL) {
        return false;
    }
    e->sign = (uint8_t)compare;
    return hth_parser_next(p);
}

static bool read_logic(hth_parser *p, bool is_and) {
    if (!close_tighter(p, is_and ? BIND_AND : BIND_OR)) return false;
    uint32_t jump = p->code->count;
    hth_pending *e = push(p, is_and ? AND : OR, is_and ? BIND_AND : BIND_OR);
    if (e == NULL || !hth_emit(p, is_and ? HTH_OP_AND : HTH_OP_OR, 0, p->token.at)) return false;
    e->middle = jump;
    return hth_parser_next(p);
}

/* The bracket, or the `else`, that what is read stands in. */
static const hth_pending *around(const hth_parser *p) {
    const hth_pending *e = &p->pending[p->n_pending - 1];
    while (e->kind >= OR || e->kind == COND) e--;
    return e;
}

/* if, else, or behind a value. *mine: it belongs to the expression. */
static bool read_word(hth_parser *p, unsigned flags, bool *operand, bool *mine) {
    *mine = *operand = true;
    if (hth_parser_is(p, "and") || hth_parser_is(p, "or")) return read_logic(p, hth_parser_is(p, "and"));
    if (hth_parser_is(p, "in")) return read_compare(p, HTH_C_IN);
    if (hth_parser_is(p, "not")) {
        if (!hth_parser_next(p)) return false;
        return hth_parser_is(p, "in") ? read_compare(p, HTH_C_NOT_IN) : hth_parser_unexpected(p, "'in'");
    }
    if (hth_parser_is(p, "is")) {
        if (!close_signs(p) || !hth_parser_next(p) || !begin_named(p, true, operand)) return false;
        if (!*operand) top(p)->filtered = true;
        return true;
    }
    bool conditions = around(p)->kind != ROOT || (flags & HTH_EXPR_COND) != 0;
    if (hth_parser_is(p, "if") && conditions) {
        if (!close_tighter(p, BIND_OR)) return false;
        if (top(p)->kind == COND) { /* x if c if d: what is there so far is the x of the second */
            uint32_t start = top(p)->start;
            if (!close_operator(p)) return false;
            hth_pending *e = push(p, COND, BIND_COND);
            if (e == NULL) return false;
            e->start = start;
            e->middle = p->code->count;
            return hth_parser_next(p);
        }
        uint32_t start = top(p)->start;
        hth_pending *e = push(p, COND, BIND_COND);
        if (e == NULL) return false;
        e->middle = e->start;
        e->start = start;
        return hth_parser_next(p);
    }
    if (hth_parser_is(p, "else")) {
        if (!close_tighter(p, BIND_OR)) return false;
        hth_pending *e = top(p);
        while (e->kind == COND_ELSE) { /* the else of one further out */
            if (!close_operator(p)) return false;
            e = top(p);
        }
        if (e->kind == COND) {
            if (!move_condition(p, e)) return false;
            e->kind = COND_ELSE;
            e->start = p->code->count;
            return hth_parser_next(p);
        }
    }
    *mine = false;
    return true;
}

static bool takes_suffix(hth_parser *p, unsigned flags) {
    const hth_pending *e = top(p);
    hth_sign sign = p->token.sign;
    if (e->kind == ROOT && (flags & (HTH_EXPR_FILTERS | HTH_EXPR_FILTER)) != 0) return false;
    return sign == HTH_S_LPAREN || (!e->filtered && (sign == HTH_S_DOT || sign == HTH_S_LBRACKET));
}

/* A sign behind a value. */
static bool read_sign_value(hth_parser *p, unsigned flags, bool *operand, bool *mine) {
    hth_sign sign = p->token.sign;
    bool filters_only = (flags & (HTH_EXPR_FILTERS | HTH_EXPR_FILTER)) != 0 && top(p)->kind == ROOT;
    *mine = *operand = true;
    if (takes_suffix(p, flags)) return read_suffix(p, operand);
    if (sign == HTH_S_PIPE) {
        if (!close_signs(p) || !hth_parser_next(p) || !begin_named(p, false, operand)) return false;
        if (!*operand) top(p)->filtered = true;
        return true;
    }
    const binary *b = filters_only ? NULL : binary_of(sign);
    if (b != NULL && b->compare >= 0) return read_compare(p, b->compare);
    if (b != NULL) {
        if (!close_tighter(p, b->bind)) return false;
        hth_pending *e = push(p, BINARY, b->bind);
        if (e == NULL) return false;
        e->sign = (uint8_t)sign;
        return hth_parser_next(p);
    }
    if (sign == HTH_S_COMMA || sign == HTH_S_COLON) return read_separator(p, flags, mine);
    bool closes = sign == HTH_S_RPAREN || sign == HTH_S_RBRACKET || sign == HTH_S_RBRACE;
    *operand = false;
    *mine = closes;
    if (!closes) return true;
    if (!close_tighter(p, BIND_COND)) return false;
    pending_kind kind = top(p)->kind;
    bool fits = sign == HTH_S_RPAREN     ? kind == PAREN || is_call(top(p))
                : sign == HTH_S_RBRACKET ? kind == LIST || kind == INDEX
                                         : kind == DICT_VALUE;
    if (fits) return close_bracket(p);
    *mine = false;
    return true;
}

static bool read_value(hth_parser *p, unsigned flags, bool *operand, bool *mine) {
    hth_pending *e = top(p);
    bool suffix = p->token.kind == HTH_T_SIGN && takes_suffix(p, flags);
    if (e->kind == TEST_VALUE && !suffix) { /* the argument is complete */
        hth_pending test = *e;
        p->n_pending--;
        test.count = 1;
        *operand = false;
        *mine = true;
        if (!emit_named(p, &test)) return false;
        top(p)->filtered = true;
        return true;
    }
    if (p->token.kind == HTH_T_SIGN) return read_sign_value(p, flags, operand, mine);
    if (p->token.kind == HTH_T_NAME && !((flags & (HTH_EXPR_FILTERS | HTH_EXPR_FILTER)) != 0 && e->kind == ROOT))
        return read_word(p, flags, operand, mine);
    *mine = *operand = false;
    return true;
}

/* Nothing more belongs to the expression: close it. */
static bool end_expression(hth_parser *p, bool value) {
    if (!close_tighter(p, BIND_COND)) return false;
    hth_pending *e = top(p);
    if (e->kind != ROOT) return hth_parser_unexpected(p, NULL);
    if (e->comma && !hth_emit(p, HTH_OP_TUPLE, e->count + value, e->at)) return false;
    p->n_pending--;
    return true;
}

bool hth_parse_expression(hth_parser *p, unsigned flags) {
    bool operand = true, mine = true;
    uint32_t base = p->n_pending;
    if (push(p, ROOT, 0) == NULL) return false;
    if ((flags & HTH_EXPR_FILTER) != 0) {
        if (!begin_named(p, false, &operand)) return false;
    } else if ((flags & HTH_EXPR_FILTERS) != 0) {
        operand = false;
    }
    for (;;) {
        if (operand) {
            /* A tuple may end with its comma. */
            bool ends =
                p->token.kind == HTH_T_TAG_END || p->token.kind == HTH_T_PRINT_END || hth_parser_sign(p, HTH_S_ASSIGN);
            if (ends && top(p)->kind == ROOT && top(p)->comma) return end_expression(p, false);
            bool value = false;
            if (!read_operand(p, &value)) return false;
            operand = !value;
            continue;
        }
        if (!read_value(p, flags, &operand, &mine)) return false;
        if (!mine) break;
    }
    if (!end_expression(p, true)) return false;
    return p->n_pending == base;
}
