/* What the two halves of the parser share: template_parser.c reads tags, template_expression.c what stands in them. */
#ifndef HTH_TEXT_TEMPLATE_PARSER_H
#define HTH_TEXT_TEMPLATE_PARSER_H

#include "text/template_code.h"
#include "text/template_lexer.h"

typedef struct hth_block hth_block;
typedef struct hth_pending hth_pending;

typedef struct hth_parser {
    hth_work *work;
    hth_lexer lexer;
    hth_lexed token; /* the one to look at */
    hth_code *code;

    hth_block *blocks; /* tags that are open, innermost last */
    uint32_t n_blocks, block_capacity;
    hth_pending *pending; /* operators and brackets of an expression that are open */
    uint32_t n_pending, pending_capacity;
    hth_instruction *moved; /* code on its way to another place */
    uint32_t moved_capacity;
    int64_t macro; /* whose body is read; -1: none */
} hth_parser;

bool hth_parser_next(hth_parser *p);
bool hth_parser_fail(hth_parser *p, hearth_status status, const char *what); /* at the token */
bool hth_parser_unexpected(hth_parser *p, const char *wanted);               /* "unexpected X", ", not Y" if wanted */
bool hth_parser_is(const hth_parser *p, const char *name);
bool hth_parser_sign(const hth_parser *p, hth_sign sign);

/* Code. Numbers are of the instruction, constant or name. */
bool hth_emit(hth_parser *p, hth_op op, int64_t a, uint32_t at);
hth_instruction *hth_last(hth_parser *p);
void hth_jump_here(hth_parser *p, uint32_t from); /* the jump at `from` goes to the next instruction */
void hth_jump_to(hth_parser *p, uint32_t from, uint32_t to);
int64_t hth_constant(hth_parser *p, hth_value v); /* -1 has failed */
int64_t hth_text_constant(hth_parser *p, const char *data, size_t size);
int64_t hth_name(hth_parser *p, const char *data, size_t size);
/* Copy the instructions from `from` on out of the code, to be put somewhere else. */
hth_instruction *hth_cut_code(hth_parser *p, uint32_t from, uint32_t *count);
bool hth_put_code(hth_parser *p, const hth_instruction *code, uint32_t count);

enum {
    HTH_EXPR_TUPLE = 1,   /* commas make a tuple */
    HTH_EXPR_COND = 2,    /* may be `x if c else y` */
    HTH_EXPR_FILTERS = 4, /* the value is there: only filters, each behind a | */
    HTH_EXPR_FILTER = 8   /* the same, the first without its | */
};
/* Reads up to the first token that does not belong to the expression. */
bool hth_parse_expression(hth_parser *p, unsigned flags);

#endif
