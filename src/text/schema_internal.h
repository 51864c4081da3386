/* What the parts of the schema compiler share. */
#ifndef HTH_TEXT_SCHEMA_INTERNAL_H
#define HTH_TEXT_SCHEMA_INTERNAL_H

#include <jansson.h>

#include "text/grammar.h"

/* The types of JSON, as bits. A number is any number; INTEGER is one of those. */
enum {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_INTEGER = 4,
    SCHEMA_NUMBER = 8,
    SCHEMA_STRING = 16,
    SCHEMA_ARRAY = 32,
    SCHEMA_OBJECT = 64
};

typedef struct schema_property {
    const char *name;
    char *spelled;  /* as JSON, with its quotes; owned */
    json_t *schema; /* NULL: any value */
    bool required;
} schema_property;

/* An object with its properties in the order in which they are written. */
typedef struct schema_object {
    uint32_t rule;      /* of the schema */
    const char **names; /* [count] what the properties' names are spelled like, in order */
    schema_property *properties;
    size_t count, leading; /* all, and the optional ones before the first required one */
    bool more;             /* others may follow */
    json_t *more_schema;   /* NULL: of any value */
    uint32_t more_key;     /* rule of their names */
    uint32_t *tails;       /* [count + 1] rules, 0 where there is none yet */
    struct schema_object *next;
} schema_object;

/* A rule that is yet to be written. */
typedef struct schema_job {
    enum { SCHEMA_JOB_VALUE, SCHEMA_JOB_TAIL, SCHEMA_JOB_KEY } kind;
    uint32_t rule;
    json_t *schema;        /* VALUE */
    schema_object *object; /* TAIL, KEY */
    size_t first, end;     /* TAIL: the properties from `first` on. KEY: names[first .. end) */
    size_t depth;          /* KEY: share so many bytes */
} schema_job;

typedef struct schema_compiler {
    hth_grammar *g;
    json_t *document;
    json_t *merged; /* an array that keeps the schemas made from allOf */
    schema_job *jobs;
    size_t n_jobs, job_capacity;
    schema_object *objects;
    uint32_t rule; /* being written */
    uint32_t at;   /* its place, for errors */
    uint32_t made; /* rules without a pointer */
    uint32_t white, value, string, key_rest, number, integer;
} schema_compiler;

#define SCHEMA_FAIL(s, status, ...) hth_grammar_fail((s)->g, HEARTH_##status, (s)->at, __VA_ARGS__)

/* Short forms of what is put most. */
void hth_schema_text(schema_compiler *s, const char *text);
void hth_schema_call(schema_compiler *s, uint32_t rule);
void hth_schema_sequence(schema_compiler *s, size_t count);
void hth_schema_choice(schema_compiler *s, size_t count);
void hth_schema_repeat(schema_compiler *s, uint32_t min, uint32_t max);
void hth_schema_nothing(schema_compiler *s); /* a value that no text matches */

/* Put off a rule that has no pointer. */
uint32_t hth_schema_put_off(schema_compiler *s, schema_job job);
/* The rule of the schema under a rule's own: at "/key", or at "/key/name" when name is not NULL. NULL: any value. */
uint32_t hth_schema_rule_under(schema_compiler *s, uint32_t parent, const char *key, const char *name, json_t *schema);

/* A value as JSON in its one spelling; the caller frees it. NULL without memory. */
char *hth_schema_spell(const json_t *value);

/* A number of times: 0 and `otherwise` when the keyword is absent. Refuses what is no such number. */
uint32_t hth_schema_count(schema_compiler *s, const json_t *schema, const char *keyword, uint32_t otherwise);
bool hth_schema_has(const json_t *schema, const char *keyword);

/* Each puts one value. */
void hth_schema_put_string(schema_compiler *s, const json_t *schema);
void hth_schema_put_integer(schema_compiler *s, const json_t *schema);
void hth_schema_put_number(schema_compiler *s, const json_t *schema);
void hth_schema_put_array(schema_compiler *s, json_t *schema);
void hth_schema_put_object(schema_compiler *s, json_t *schema);
void hth_schema_put_all_of(schema_compiler *s, json_t *schema);
void hth_schema_put_one_of(schema_compiler *s, json_t *schema);
void hth_schema_put_tail(schema_compiler *s, const schema_job *job);
void hth_schema_put_key(schema_compiler *s, const schema_job *job);
void hth_schema_objects_free(schema_object *objects);
/* The content of a string that a regular expression matches, without quotes. `regex` is NUL-terminated UTF-8. */
void hth_schema_put_pattern(schema_compiler *s, const char *regex);

/* The schema that a reference leads to, and its rule's name into `name`; NULL after a failure. */
enum { SCHEMA_MAX_POINTER = 2048 };
json_t *hth_schema_resolve(schema_compiler *s, const char *reference, char name[SCHEMA_MAX_POINTER]);
/* What a schema that is an object, without its references, says: put it. */
void hth_schema_put(schema_compiler *s, json_t *schema);
/* The types that "type" allows, all when there is none; and the type of a value. */
unsigned hth_schema_types(schema_compiler *s, const json_t *schema);
unsigned hth_schema_type_of_value(const json_t *value);
/* The alternatives under a keyword. */
void hth_schema_put_alternatives(schema_compiler *s, json_t *schema, const char *keyword);
/* Whether a keyword says nothing about which values are valid. */
bool hth_schema_is_annotation(const char *keyword);

#endif
