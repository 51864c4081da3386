/* A template as it is run: a linear program for a stack machine, its constants, names and macros.
 *
 * Jumps are relative to their own place, so that code can be moved; each instruction knows the byte of the source that
 * it stands for. Nothing of it changes once it is made: any number of threads may run it. */
#ifndef HTH_TEXT_TEMPLATE_CODE_H
#define HTH_TEXT_TEMPLATE_CODE_H

#include "text/template_value.h"

enum { HTH_MAX_PARAMS = 64 }; /* of a macro */

/* What is on the stack before -> after, the top to the right. `a`, `b`, `c` are fields of the instruction. */
typedef enum hth_op {
    HTH_OP_CONST,      /* -> constant a */
    HTH_OP_NAME,       /* -> the variable of name a */
    HTH_OP_STORE,      /* v -> ; sets name a in the innermost scope */
    HTH_OP_STORE_ATTR, /* v ns -> ; sets attribute (constant a) of a namespace */
    HTH_OP_ATTR,       /* v -> v.(constant a) */
    HTH_OP_ITEM,       /* v key -> v[key] */
    HTH_OP_SLICE,      /* v start stop step -> v[start:stop:step]; none where left out */
    HTH_OP_CALL,       /* f b positional, c pairs of name and value -> result */
    HTH_OP_FILTER,     /* v and arguments as of CALL -> result; a: the filter */
    HTH_OP_TEST,       /* the same; a: the test */
    HTH_OP_NO_FILTER,  /* the same; a: constant, the name of a filter that is not known: fails */
    HTH_OP_NO_TEST,
    HTH_OP_BINARY,  /* x y -> x (sign b) y */
    HTH_OP_COMPARE, /* x y -> truth; b: hth_compare */
    HTH_OP_CHAIN,   /* x y -> y, or false and jump by a; b: hth_compare */
    HTH_OP_NEGATE,
    HTH_OP_PLUS,
    HTH_OP_NOT,
    HTH_OP_AND, /* v -> , or jump by a and keep v when it is false */
    HTH_OP_OR,
    HTH_OP_JUMP,
    HTH_OP_JUMP_FALSE, /* v -> ; jump by a when it is false */
    HTH_OP_LIST,       /* a values -> list */
    HTH_OP_TUPLE,
    HTH_OP_DICT,   /* a pairs of key and value -> dict */
    HTH_OP_UNPACK, /* v -> its a items, the first on top */
    HTH_OP_POP,
    HTH_OP_TEXT,  /* write constant a */
    HTH_OP_PRINT, /* v -> ; write it */
    HTH_OP_SCOPE, /* enter a scope */
    HTH_OP_SCOPE_END,
    HTH_OP_CAPTURE,     /* what is written from here on is kept apart */
    HTH_OP_CAPTURE_END, /* -> what was kept apart, as a string */
    HTH_OP_FOR,         /* v -> ; begin a loop over it */
    HTH_OP_FOR_LOOK, /* -> item, in a new scope; or jump by a when all were looked at, with those kept to loop over */
    HTH_OP_FOR_KEEP, /* v -> ; keep the item looked at if true; leaves its scope */
    HTH_OP_FOR_NEXT, /* -> item, in a new scope with `loop`; or jump by a at the end */
    HTH_OP_FOR_NONE, /* jump by a when there was an item */
    HTH_OP_FOR_END,
    HTH_OP_MACRO,   /* -> macro a, closed over the scope; jumps over its body */
    HTH_OP_DEFAULT, /* jump by a when argument c was given */
    HTH_OP_RETURN,  /* from a macro */
    HTH_OP_END
} hth_op;

typedef enum hth_compare {
    HTH_C_EQ,
    HTH_C_NE,
    HTH_C_LT,
    HTH_C_LE,
    HTH_C_GT,
    HTH_C_GE,
    HTH_C_IN,
    HTH_C_NOT_IN
} hth_compare;

typedef struct hth_instruction {
    uint8_t op, b;
    uint16_t c;
    int32_t a;
    uint32_t at; /* byte of the source */
} hth_instruction;

typedef struct hth_macro_code {
    const hth_str *name;
    uint32_t *params; /* names */
    uint32_t n_params, capacity;
    uint32_t body;                /* first instruction */
    uint32_t end;                 /* behind it */
    bool varargs, kwargs, caller; /* it reads them */
} hth_macro_code;

typedef struct hth_code {
    hth_instruction *instructions;
    uint32_t count, capacity;
    hth_value *constants;
    uint32_t n_constants, constant_capacity;
    const hth_str **names;
    uint32_t n_names, name_capacity;
    hth_dict *name_index; /* name -> its number */
    hth_macro_code *macros;
    uint32_t n_macros, macro_capacity;
    const char *source; /* normalised; for places in errors */
    size_t source_size;
} hth_code;

/* The code of a template, in `w`. False has failed the work, with line and column. */
bool hth_template_parse(hth_work *w, const char *text, size_t size, hth_code *out);

#endif
