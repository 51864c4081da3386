/* From the text of a template to tokens, with Jinja's rules for white space: trim_blocks and lstrip_blocks are on, and
 * one newline at the end of the template is dropped. */
#ifndef HTH_TEXT_TEMPLATE_LEXER_H
#define HTH_TEXT_TEMPLATE_LEXER_H

#include "text/template_value.h"

typedef enum hth_token_kind {
    HTH_T_TEXT,      /* outside of tags; never empty */
    HTH_T_PRINT,     /* {{ */
    HTH_T_PRINT_END, /* }} */
    HTH_T_TAG,       /* {% */
    HTH_T_TAG_END,   /* %} */
    HTH_T_END,       /* of the template */
    HTH_T_NAME,
    HTH_T_STRING, /* text: unescaped */
    HTH_T_INT,
    HTH_T_FLOAT,
    HTH_T_SIGN /* an operator or bracket */
} hth_token_kind;

typedef enum hth_sign {
    HTH_S_ADD,
    HTH_S_SUB,
    HTH_S_MUL,
    HTH_S_DIV,
    HTH_S_FLOORDIV,
    HTH_S_MOD,
    HTH_S_POW,
    HTH_S_TILDE,
    HTH_S_EQ,
    HTH_S_NE,
    HTH_S_LT,
    HTH_S_LE,
    HTH_S_GT,
    HTH_S_GE,
    HTH_S_ASSIGN,
    HTH_S_DOT,
    HTH_S_COMMA,
    HTH_S_COLON,
    HTH_S_PIPE,
    HTH_S_SEMICOLON,
    HTH_S_LPAREN,
    HTH_S_RPAREN,
    HTH_S_LBRACKET,
    HTH_S_RBRACKET,
    HTH_S_LBRACE,
    HTH_S_RBRACE
} hth_sign;

typedef struct hth_lexed {
    hth_token_kind kind;
    hth_sign sign;
    uint32_t at;      /* byte in the source */
    const char *data; /* text, name, or string */
    size_t size;
    int64_t integer;
    double real;
} hth_lexed;

typedef struct hth_lexer {
    hth_work *work;
    const char *source; /* normalised */
    size_t size, at;
    hth_token_kind mode; /* TEXT, PRINT or TAG: where it stands */
    uint32_t mode_at;    /* where the tag that is open began */
    bool line_start;     /* nothing but what a line may begin with stands before `at` in its line */
    bool after_dot;      /* digits behind a point are an integer */
    char *brackets;      /* open inside of the tag, innermost last */
    uint32_t n_brackets, bracket_capacity;
} hth_lexer;

/* Checks the text to be UTF-8 and takes a copy with newlines normalised. */
bool hth_lexer_begin(hth_lexer *lexer, hth_work *w, const char *text, size_t size);
/* The next token; false has failed the work. Behind the end, the end again. */
bool hth_lexer_next(hth_lexer *lexer, hth_lexed *out);

/* "line 3, column 7" of a byte of the source, counted from 1 in code points. */
void hth_source_place(const char *source, size_t size, size_t at, uint32_t *line, uint32_t *column);
/* Fail with a place. */
bool hth_lexer_fail(hth_lexer *lexer, size_t at, hearth_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
