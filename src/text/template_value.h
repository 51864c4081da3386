/* The values a template works with, as Python has them: strings of code points, lists, dicts and the rest.
 *
 * All of them live in a hth_work and are shared by reference; strings never change once made. A string knows for each
 * byte whether it came from the request's content or from the template, so that a message that spells a control token
 * can be told from the template's own. */
#ifndef HTH_TEXT_TEMPLATE_VALUE_H
#define HTH_TEXT_TEMPLATE_VALUE_H

#include "base/hash.h"
#include "text/template_work.h"

enum { HTH_MAX_NESTING = 512 }; /* of values inside values, wherever they are walked */

typedef enum hth_kind {
    HTH_UNDEFINED, /* str: what is said when it is used; may be NULL */
    HTH_NONE,
    HTH_BOOL,
    HTH_INT,
    HTH_FLOAT,
    HTH_STRING,
    HTH_LIST,
    HTH_DICT,
    HTH_RANGE,
    HTH_NAMESPACE, /* dict */
    HTH_LOOP,
    HTH_MACRO,
    HTH_GLOBAL, /* integer: which one */
    HTH_METHOD  /* of a value */
} hth_kind;

/* How a list prints and compares; all hold their items. */
typedef enum hth_list_kind {
    HTH_A_LIST,
    HTH_A_TUPLE,
    HTH_A_KEYS,
    HTH_A_VALUES,
    HTH_AN_ITEMS,
    HTH_A_GENERATOR
} hth_list_kind;

typedef struct hth_str hth_str;
typedef struct hth_items hth_items;
typedef struct hth_dict hth_dict;
typedef struct hth_range hth_range;
typedef struct hth_loop hth_loop;
typedef struct hth_macro hth_macro;
typedef struct hth_method hth_method;

typedef struct hth_value {
    hth_kind kind;
    union {
        bool truth;
        int64_t integer;
        double real;
        const hth_str *str;
        hth_items *list;
        hth_dict *dict;
        const hth_range *range;
        hth_loop *loop;
        const hth_macro *macro;
        const hth_method *method;
    };
} hth_value;

/* A stretch of one origin, from the end of the one before. In a string that others were made from by appending, the
 * last run may end behind the string. */
typedef struct hth_run {
    uint32_t end;
    bool content;
} hth_run;

typedef struct hth_tail hth_tail;

struct hth_str {
    const char *data; /* valid UTF-8, not NUL-terminated */
    uint32_t size;    /* bytes */
    uint32_t chars;   /* code points */
    uint32_t n_runs;  /* 0: all of it is `content` or not */
    bool content;     /* some of it is from the request */
    bool markup;      /* as of the filter safe: what is added to it is escaped */
    const hth_run *runs;
    hth_tail *tail; /* the growing place it lies in, or NULL */
};

struct hth_items {
    hth_list_kind kind;
    bool fixed; /* part of the request, which a template cannot change: other renderings read it too */
    uint32_t count, capacity;
    hth_value *items;
};

typedef struct hth_entry {
    hth_value key, value;
    uint64_t hash;
} hth_entry;

struct hth_dict {
    bool fixed; /* as of a list */
    uint32_t count, capacity;
    hth_entry *entries;  /* in the order they were put */
    uint32_t *slots;     /* entry + 1, 0 free; NULL while there are few entries */
    uint32_t slot_count; /* a power of two */
    hth_hash_key key;    /* of the slots */
};

struct hth_range {
    int64_t start, stop, step;
    int64_t count; /* of numbers in it */
};

struct hth_method {
    hth_value self;
    const char *name; /* static */
    int id;
};

/* ---- plain values ---- */

static inline hth_value hth_none(void) {
    return (hth_value){.kind = HTH_NONE};
}
static inline hth_value hth_truth(bool b) {
    return (hth_value){.kind = HTH_BOOL, .truth = b};
}
static inline hth_value hth_int(int64_t n) {
    return (hth_value){.kind = HTH_INT, .integer = n};
}
static inline hth_value hth_real(double x) {
    return (hth_value){.kind = HTH_FLOAT, .real = x};
}
static inline hth_value hth_string_value(const hth_str *s) {
    return (hth_value){.kind = HTH_STRING, .str = s};
}
static inline hth_value hth_list_value(hth_items *l) {
    return (hth_value){.kind = HTH_LIST, .list = l};
}
static inline hth_value hth_dict_value(hth_dict *d) {
    return (hth_value){.kind = HTH_DICT, .dict = d};
}
static inline hth_value hth_nothing(void) {
    return (hth_value){.kind = HTH_UNDEFINED};
}

/* ---- strings ---- */

/* Copies. NULL has failed the work. */
const hth_str *hth_str_new(hth_work *w, const char *data, size_t size, bool content);
const hth_str *hth_str_text(hth_work *w, const char *text); /* of the template's */
const hth_str *hth_str_as_markup(hth_work *w, const hth_str *s, bool markup);
/* a then b; costs the size of b when a grows for the first time from here. */
const hth_str *hth_str_join(hth_work *w, const hth_str *a, const hth_str *b);
/* The bytes [from, to), which are whole characters. */
const hth_str *hth_str_cut(hth_work *w, const hth_str *s, size_t from, size_t to);
/* Where code point `at` begins; the size when there are not as many. */
size_t hth_str_offset(const hth_str *s, size_t at);
bool hth_str_equal(const hth_str *a, const hth_str *b);
bool hth_str_is(const hth_str *s, const char *text);
/* By code points, which is the order of the bytes. */
int hth_str_compare(const hth_str *a, const hth_str *b);
/* Whether the byte at `at` is content. */
bool hth_str_content_at(const hth_str *s, size_t at);

/* A string being built. Zero it but for the work. A failed one stays usable: it answers false and builds nothing. */
typedef struct hth_build {
    hth_work *work;
    char *data;
    size_t size, capacity;
    size_t chars;
    hth_run *runs;
    uint32_t n_runs, run_capacity;
    size_t max_size; /* 0: as long as a string may be */
    bool markup;
} hth_build;

bool hth_build_bytes(hth_build *b, const char *data, size_t size, bool content);
bool hth_build_text(hth_build *b, const char *text);
bool hth_build_str(hth_build *b, const hth_str *s);
bool hth_build_cut(hth_build *b, const hth_str *s, size_t from, size_t to);
bool hth_build_char(hth_build *b, uint32_t character, bool content);
const hth_str *hth_build_end(hth_build *b); /* NULL has failed */

/* ---- lists and dicts ---- */

hth_items *hth_items_new(hth_work *w, hth_list_kind kind, size_t capacity);
bool hth_items_put(hth_work *w, hth_items *l, hth_value v);

hth_dict *hth_dict_new(hth_work *w);
/* A key that Python could not hash fails. */
bool hth_dict_put(hth_work *w, hth_dict *d, hth_value key, hth_value value);
/* NULL: not there, or a key that cannot be. */
hth_value *hth_dict_find(const hth_dict *d, hth_value key);
hth_value *hth_dict_find_text(const hth_dict *d, const char *key);
/* Take one out; false when it is not there. */
bool hth_dict_drop(hth_work *w, hth_dict *d, hth_value key);

/* ---- what Python says of them ---- */

bool hth_value_true(hth_value v);
const char *hth_kind_name(hth_value v); /* as Python names its type */
/* False has failed the work: nested too deeply. */
bool hth_value_equal(hth_work *w, hth_value a, hth_value b, bool *equal);
/* -1, 0, 1; false has failed: they have no order. */
bool hth_value_order(hth_work *w, hth_value a, hth_value b, int *order);
/* Whether it is a number, and which; true and false are 1 and 0. */
bool hth_value_number(hth_value v, double *out);

/* What it prints as (strings as they are), and how it is written inside a list. */
bool hth_value_print(hth_build *b, hth_value v);
bool hth_value_repr(hth_build *b, hth_value v);
/* Shortest text that reads back as the same double, as Python writes it; at most 31 characters. */
void hth_real_text(char text[32], double x);

#endif
