#include "text/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar_parse.h"
#include "text/grow.h"
#include "text/schema_internal.h"

/* What every schema may need. White space is bounded, so that a model cannot write it for ever; a number has the digits
 * that a double can tell apart, and stays finite as one. */
static const char shared_rules[] =
    "white ::= ( \" \" | \"\\n\"{1,2} [ \\t]{0,20} )?\n"
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" white ( member ( \",\" white member )* )? \"}\"\n"
    "member ::= string white \":\" white value white\n"
    "array ::= \"[\" white ( value white ( \",\" white value white )* )? \"]\"\n"
    "string ::= \"\\\"\" ( [^\"\\\\\\x00-\\x1F] | \"\\\\\" ( [\"\\\\bfnrt] | \"u\" escaped ) )* \"\\\"\"\n"
    "escaped ::= ( [0-9a-cefA-CEF] hex | [dD] [0-7] ) hex hex"
    " | [dD] [89abAB] hex hex \"\\\\u\" [dD] [c-fC-F] hex hex\n"
    "hex ::= [0-9a-fA-F]\n"
    "key-rest ::= ( [^\"\\\\\\x00-\\x1F] | \"\\\\\" [\"\\\\bfnrt] )* \"\\\"\"\n"
    "integer ::= \"-\"? ( \"0\" | [1-9] [0-9]{0,15} )\n"
    "number ::= integer ( \".\" [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,2} )?\n";

/* ---- Short forms ---- */

void hth_schema_text(schema_compiler *s, const char *text) {
    hth_grammar_literal(s->g, text, strlen(text), s->at);
}

void hth_schema_call(schema_compiler *s, uint32_t rule) {
    hth_grammar_call(s->g, rule, s->at);
}

void hth_schema_sequence(schema_compiler *s, size_t count) {
    hth_grammar_sequence(s->g, (uint32_t)count, s->at);
}

void hth_schema_choice(schema_compiler *s, size_t count) {
    hth_grammar_choice(s->g, (uint32_t)count, s->at);
}

void hth_schema_repeat(schema_compiler *s, uint32_t min, uint32_t max) {
    hth_grammar_repeat(s->g, min, max, s->at);
}

void hth_schema_nothing(schema_compiler *s) {
    hth_grammar_set(s->g, NULL, 0, false, s->at);
}

bool hth_schema_has(const json_t *schema, const char *keyword) {
    return json_object_get(schema, keyword) != NULL;
}

uint32_t hth_schema_count(schema_compiler *s, const json_t *schema, const char *keyword, uint32_t otherwise) {
    const json_t *value = json_object_get(schema, keyword);
    if (value == NULL) return otherwise;
    double number = json_number_value(value);
    if (json_is_number(value) && number >= 0 && number < HTH_GRAMMAR_MANY && number == (double)(uint32_t)number)
        return (uint32_t)number;
    SCHEMA_FAIL(s, BAD_ARGUMENT, "%s is no whole number from 0 to %u", keyword, HTH_GRAMMAR_MANY - 1);
    return 0;
}

char *hth_schema_spell(const json_t *value) {
    /* The fewest digits that give each number back. */
    for (size_t digits = 15; digits < 17; digits++) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(digits));
        json_t *back = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
        bool same = back && json_equal(back, value);
        json_decref(back);
        if (same) return text;
        free(text);
    }
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
}

/* ---- Rules ---- */

static void put_off(schema_compiler *s, schema_job job) {
    if (hth_grammar_failed(s->g)) return;
    if (!hth_grow(&s->jobs, &s->job_capacity, s->n_jobs + 1, sizeof *s->jobs)) SCHEMA_FAIL(s, NO_MEMORY, "no memory");
    else s->jobs[s->n_jobs++] = job;
}

uint32_t hth_schema_put_off(schema_compiler *s, schema_job job) {
    char name[16];
    int size = snprintf(name, sizeof name, "%%%u", s->made++);
    job.rule = hth_grammar_rule_named(s->g, name, (size_t)size, s->at);
    put_off(s, job);
    return job.rule;
}

/* The rule of a schema by its pointer. */
static uint32_t rule_of(schema_compiler *s, const char *pointer, size_t size, json_t *schema) {
    size_t known = s->g->n_rules;
    uint32_t rule = hth_grammar_rule_named(s->g, pointer, size, s->at);
    if (rule == known) put_off(s, (schema_job){.kind = SCHEMA_JOB_VALUE, .rule = rule, .schema = schema});
    return rule;
}

/* Append to a pointer, with ~ and / escaped when it is a name. False when it has no room. */
static bool extend(char *pointer, size_t *size, const char *text, bool is_name) {
    for (; *text != '\0'; text++) {
        const char *put = is_name && *text == '~' ? "~0" : is_name && *text == '/' ? "~1" : NULL;
        size_t more = put != NULL ? 2 : 1;
        if (*size + more >= SCHEMA_MAX_POINTER) return false;
        memcpy(pointer + *size, put != NULL ? put : text, more);
        *size += more;
    }
    pointer[*size] = '\0';
    return true;
}

uint32_t hth_schema_rule_under(schema_compiler *s, uint32_t parent, const char *key, const char *name, json_t *schema) {
    char pointer[SCHEMA_MAX_POINTER];
    if (hth_grammar_failed(s->g)) return 0;
    if (schema == NULL) return s->value;
    size_t size = s->g->rules[parent].name_size;
    bool fits = size < sizeof pointer;
    if (fits) memcpy(pointer, s->g->bytes + s->g->rules[parent].name, size);
    fits = fits && extend(pointer, &size, "/", false) && extend(pointer, &size, key, false);
    if (name != NULL) fits = fits && extend(pointer, &size, "/", false) && extend(pointer, &size, name, true);
    if (fits) return rule_of(s, pointer, size, schema);
    SCHEMA_FAIL(s, TOO_LONG, "schemas are nested too deep: the JSON pointer of one has more than %d bytes",
                SCHEMA_MAX_POINTER - 1);
    return 0;
}

/* ---- Keywords ---- */

/* Those that say nothing about which values are valid. */
static const char *const annotations[] = {"title",     "description", "$comment",   "default",
                                          "examples",  "example",     "deprecated", "readOnly",
                                          "writeOnly", "$schema",     "$defs",      "definitions"};

/* Those that speak of values of one type, and are honoured (or refused where the type is compiled). */
static const struct {
    const char *name;
    unsigned types;
} assertions[] = {
    {"properties", SCHEMA_OBJECT},    {"required", SCHEMA_OBJECT},         {"additionalProperties", SCHEMA_OBJECT},
    {"minProperties", SCHEMA_OBJECT}, {"maxProperties", SCHEMA_OBJECT},    {"items", SCHEMA_ARRAY},
    {"prefixItems", SCHEMA_ARRAY},    {"minItems", SCHEMA_ARRAY},          {"maxItems", SCHEMA_ARRAY},
    {"uniqueItems", SCHEMA_ARRAY},    {"pattern", SCHEMA_STRING},          {"format", SCHEMA_STRING},
    {"minLength", SCHEMA_STRING},     {"maxLength", SCHEMA_STRING},        {"minimum", SCHEMA_NUMBER},
    {"maximum", SCHEMA_NUMBER},       {"exclusiveMinimum", SCHEMA_NUMBER}, {"exclusiveMaximum", SCHEMA_NUMBER},
    {"multipleOf", SCHEMA_NUMBER},
};

enum { ASSERTIONS = sizeof assertions / sizeof *assertions };

bool hth_schema_is_annotation(const char *keyword) {
    for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++)
        if (strcmp(annotations[i], keyword) == 0) return true;
    return false;
}

/* The types that the assertions of a schema speak of; *first becomes the first of them. */
static unsigned asserted_types(const json_t *schema, const char **first) {
    unsigned types = 0;
    for (size_t i = 0; i < ASSERTIONS; i++) {
        if (!hth_schema_has(schema, assertions[i].name)) continue;
        if (types == 0) *first = assertions[i].name;
        types |= assertions[i].types;
    }
    return types;
}

/* Refuse keywords that are not known, and those of `alone` that do not stand alone but for annotations. */
static void check_keywords(schema_compiler *s, json_t *schema) {
    static const char *const alone[] = {"$ref", "anyOf", "oneOf"};
    static const char *const others[] = {"type", "enum", "const", "allOf", "$ref", "anyOf", "oneOf"};
    const char *keyword, *owner = NULL, *other = NULL;
    json_t *value;
    for (size_t i = 0; i < sizeof alone / sizeof *alone && owner == NULL; i++)
        if (hth_schema_has(schema, alone[i])) owner = alone[i];
    json_object_foreach(schema, keyword, value) {
        if (hth_schema_is_annotation(keyword) || (strcmp(keyword, "$id") == 0 && schema == s->document)) continue;
        bool known = false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) known |= strcmp(others[i], keyword) == 0;
        for (size_t i = 0; i < ASSERTIONS; i++) known |= strcmp(assertions[i].name, keyword) == 0;
        if (!known) SCHEMA_FAIL(s, UNSUPPORTED, "the keyword \"%s\" is not supported", keyword);
        if (owner == NULL || strcmp(owner, keyword) != 0) other = keyword;
    }
    if (owner != NULL && other != NULL)
        SCHEMA_FAIL(s, UNSUPPORTED, "\"%s\" beside \"%s\" is not supported", other, owner);
}

static unsigned type_named(const char *name) {
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    for (unsigned i = 0; name != NULL && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return 1u << i;
    return 0;
}

/* The types that a schema allows; all when it names none. */
unsigned hth_schema_types(schema_compiler *s, const json_t *schema) {
    const json_t *type = json_object_get(schema, "type"), *element;
    const unsigned all = 2 * SCHEMA_OBJECT - 1;
    unsigned types = 0;
    size_t i;
    if (type == NULL) return all;
    if (json_is_string(type)) types = type_named(json_string_value(type));
    json_array_foreach(type, i, element) {
        unsigned one = type_named(json_string_value(element));
        if (one == 0) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"type\" names a type that is not known");
        types |= one;
    }
    if (types == 0) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"type\" names no type that is known");
    if (types & SCHEMA_NUMBER) types |= SCHEMA_INTEGER;
    return types;
}

/* ---- Values ---- */

unsigned hth_schema_type_of_value(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return SCHEMA_OBJECT;
    case JSON_ARRAY: return SCHEMA_ARRAY;
    case JSON_STRING: return SCHEMA_STRING;
    case JSON_INTEGER: return SCHEMA_INTEGER;
    case JSON_REAL: {
        double number = json_real_value(value);
        bool whole = number >= -0x1p62 && number <= 0x1p62 && number == (double)(int64_t)number;
        return whole ? SCHEMA_INTEGER : SCHEMA_NUMBER;
    }
    case JSON_TRUE:
    case JSON_FALSE: return SCHEMA_BOOLEAN;
    case JSON_NULL: break;
    }
    return SCHEMA_NULL;
}

static size_t put_value(schema_compiler *s, const json_t *value, unsigned types) {
    if (!(types & hth_schema_type_of_value(value))) return 0;
    char *text = hth_schema_spell(value);
    if (text == NULL) SCHEMA_FAIL(s, NO_MEMORY, "no memory");
    else hth_schema_text(s, text);
    free(text);
    return 1;
}

/* enum, const: of their values those of the type. */
static void put_values(schema_compiler *s, const json_t *schema, const char *keyword) {
    const json_t *values = json_object_get(schema, keyword), *value;
    unsigned types = hth_schema_types(s, schema);
    const char *other = NULL;
    size_t i, count = 0;
    if (hth_schema_has(schema, "const") && hth_schema_has(schema, "enum")) other = "enum";
    if (hth_schema_has(schema, "allOf")) other = "allOf";
    asserted_types(schema, &other);
    if (other != NULL) SCHEMA_FAIL(s, UNSUPPORTED, "\"%s\" beside \"%s\" is not supported", other, keyword);
    if (strcmp(keyword, "const") == 0) count = put_value(s, values, types);
    else if (!json_is_array(values)) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"enum\" is no array");
    json_array_foreach(strcmp(keyword, "const") == 0 ? NULL : values, i, value) count += put_value(s, value, types);
    if (count == 0) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"%s\" leaves no value of the type", keyword);
    else hth_schema_choice(s, count);
}

static void put_type(schema_compiler *s, json_t *schema, unsigned type) {
    switch (type) {
    case SCHEMA_NULL: hth_schema_text(s, "null"); break;
    case SCHEMA_BOOLEAN:
        hth_schema_text(s, "true");
        hth_schema_text(s, "false");
        hth_schema_choice(s, 2);
        break;
    case SCHEMA_INTEGER: hth_schema_put_integer(s, schema); break;
    case SCHEMA_NUMBER: hth_schema_put_number(s, schema); break;
    case SCHEMA_STRING: hth_schema_put_string(s, schema); break;
    case SCHEMA_ARRAY: hth_schema_put_array(s, schema); break;
    default: hth_schema_put_object(s, schema); break;
    }
}

/* Values of some types. A schema that names none and has assertions is taken to mean their types: fewer values than it
 * allows, and none that it does not. */
static void put_types(schema_compiler *s, json_t *schema) {
    const char *ignored = NULL;
    unsigned types = hth_schema_types(s, schema), asserted = asserted_types(schema, &ignored), count = 0;
    if (!hth_schema_has(schema, "type") && asserted == 0) {
        hth_schema_call(s, s->value);
        return;
    }
    if (!hth_schema_has(schema, "type")) types = asserted;
    if (types & SCHEMA_NUMBER) types &= ~(unsigned)SCHEMA_INTEGER;
    for (unsigned type = SCHEMA_NULL; type <= SCHEMA_OBJECT; type *= 2) {
        if (!(types & type)) continue;
        put_type(s, schema, type);
        count++;
    }
    hth_schema_choice(s, count);
}

void hth_schema_put_alternatives(schema_compiler *s, json_t *schema, const char *keyword) {
    json_t *all = json_object_get(schema, keyword), *one;
    char number[24];
    size_t i;
    if (!json_is_array(all) || json_array_size(all) == 0) {
        SCHEMA_FAIL(s, BAD_ARGUMENT, "\"%s\" is no array of schemas", keyword);
        return;
    }
    json_array_foreach(all, i, one) {
        snprintf(number, sizeof number, "%zu", i);
        hth_schema_call(s, hth_schema_rule_under(s, s->rule, keyword, number, one));
    }
    hth_schema_choice(s, json_array_size(all));
}

static void put_reference(schema_compiler *s, const json_t *schema) {
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    char pointer[SCHEMA_MAX_POINTER];
    json_t *target = NULL;
    if (reference == NULL) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"$ref\" is no string");
    else target = hth_schema_resolve(s, reference, pointer);
    if (target != NULL) hth_schema_call(s, rule_of(s, pointer, strlen(pointer), target));
}

void hth_schema_put(schema_compiler *s, json_t *schema) {
    if (json_is_true(schema)) {
        hth_schema_call(s, s->value);
        return;
    }
    if (json_is_false(schema)) {
        hth_schema_nothing(s);
        return;
    }
    if (!json_is_object(schema)) {
        SCHEMA_FAIL(s, BAD_ARGUMENT, "a schema is an object, true or false");
        return;
    }
    check_keywords(s, schema);
    if (hth_grammar_failed(s->g)) return;
    if (hth_schema_has(schema, "$ref")) put_reference(s, schema);
    else if (hth_schema_has(schema, "anyOf")) hth_schema_put_alternatives(s, schema, "anyOf");
    else if (hth_schema_has(schema, "oneOf")) hth_schema_put_one_of(s, schema);
    else if (hth_schema_has(schema, "const")) put_values(s, schema, "const");
    else if (hth_schema_has(schema, "enum")) put_values(s, schema, "enum");
    else if (hth_schema_has(schema, "allOf")) hth_schema_put_all_of(s, schema);
    else put_types(s, schema);
}

/* ---- The document ---- */

static void write_rule(schema_compiler *s, const schema_job *job) {
    s->rule = job->rule;
    s->at = job->kind == SCHEMA_JOB_VALUE ? job->rule + 1 : job->object->rule + 1;
    hth_grammar_begin(s->g, job->rule);
    switch (job->kind) {
    case SCHEMA_JOB_VALUE: hth_schema_put(s, job->schema); break;
    case SCHEMA_JOB_TAIL: hth_schema_put_tail(s, job); break;
    case SCHEMA_JOB_KEY: hth_schema_put_key(s, job); break;
    }
    hth_grammar_finish(s->g);
}

static uint32_t shared_rule(schema_compiler *s, const char *name) {
    return hth_grammar_rule_named(s->g, name, strlen(name), 0);
}

static void compile(schema_compiler *s) {
    hth_grammar *g = s->g;
    g->source = shared_rules; /* places are offsets in it, as long as it is read */
    hth_grammar_parse_rules(g, shared_rules, sizeof shared_rules - 1);
    g->source = NULL;
    for (size_t i = 0; i < g->n_ops; i++) g->ops[i].at = 0;
    s->white = shared_rule(s, "white");
    s->value = shared_rule(s, "value");
    s->string = shared_rule(s, "string");
    s->key_rest = shared_rule(s, "key-rest");
    s->integer = shared_rule(s, "integer");
    s->number = shared_rule(s, "number");
    g->root = rule_of(s, "#", 1, s->document);
    for (size_t i = 0; i < s->n_jobs && !hth_grammar_failed(g); i++) {
        schema_job job = s->jobs[i]; /* the list grows meanwhile */
        write_rule(s, &job);
    }
}

hearth_status hth_schema_parse(hth_grammar *g, const char *text, size_t size, hearth_error *err) {
    json_error_t error;
    if (size > HTH_GRAMMAR_MAX_TEXT)
        return hth_fail(err, HEARTH_TOO_LONG, "the schema has %zu bytes; %d are allowed", size, HTH_GRAMMAR_MAX_TEXT);
    schema_compiler s = {.g = g, .merged = json_array()};
    s.document = json_loadb(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (s.document == NULL)
        hth_grammar_fail(g, HEARTH_BAD_ARGUMENT, 0, "the schema is no JSON: line %d, column %d: %s", error.line,
                         error.column, error.text);
    else if (s.merged == NULL) hth_grammar_fail(g, HEARTH_NO_MEMORY, 0, "no memory for a schema");
    else compile(&s);
    hth_schema_objects_free(s.objects);
    free(s.jobs);
    json_decref(s.merged);
    json_decref(s.document);
    return hth_grammar_end(g, err);
}
