/* References, and schemas made of others: allOf is merged into one where that says the same, oneOf is a choice where no
 * value can be of two alternatives. */
#include <stdlib.h>
#include <string.h>

#include "text/schema_internal.h"

enum { MAX_PARTS = 256, MAX_HOPS = 64, MAX_ALTERNATIVES = 256 };

/* ---- References ---- */

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next token of a pointer in a fragment, decoded; *at goes to the slash behind it or to the end. False when it is
 * malformed or too long. */
static bool next_token(const char **at, char *token, size_t room) {
    size_t size = 0;
    const char *p = *at;
    while (*p != '\0' && *p != '/') {
        char c = *p++;
        if (c == '%') {
            int high = hex_value(p[0]), low = high < 0 ? -1 : hex_value(p[1]);
            if (low <= 0 && high <= 0) return false; /* no digits, or a NUL */
            if (low < 0) return false;
            c = (char)(high * 16 + low);
            p += 2;
        }
        if (c == '~') {
            if (*p != '0' && *p != '1') return false;
            c = *p++ == '0' ? '~' : '/';
        }
        if (size + 1 == room) return false;
        token[size++] = c;
    }
    token[size] = '\0';
    *at = p;
    return true;
}

static json_t *element_at(json_t *array, const char *token) {
    size_t digits = strspn(token, "0123456789");
    if (digits == 0 || digits > 9 || token[digits] != '\0') return NULL;
    return json_array_get(array, (size_t)strtol(token, NULL, 10));
}

static bool append_token(char name[SCHEMA_MAX_POINTER], size_t *size, const char *token) {
    if (*size + 1 >= SCHEMA_MAX_POINTER) return false;
    name[(*size)++] = '/';
    for (; *token != '\0'; token++) {
        bool escaped = *token == '~' || *token == '/';
        if (*size + 2 >= SCHEMA_MAX_POINTER) return false;
        name[(*size)++] = escaped ? '~' : *token;
        if (escaped) name[(*size)++] = *token == '~' ? '0' : '1';
    }
    name[*size] = '\0';
    return true;
}

json_t *hth_schema_resolve(schema_compiler *s, const char *reference, char name[SCHEMA_MAX_POINTER]) {
    static const char where[] = "\"$ref\"";
    char token[SCHEMA_MAX_POINTER];
    json_t *target = s->document;
    size_t size = 1;
    const char *at = reference + 1;
    if (reference[0] != '#' || (reference[1] != '\0' && reference[1] != '/')) {
        SCHEMA_FAIL(s, UNSUPPORTED, "%s to \"%.100s\": only references into this document (#/...) are supported", where,
                    reference);
        return NULL;
    }
    memcpy(name, "#", 2);
    while (*at == '/') {
        at++;
        if (!next_token(&at, token, sizeof token) || !append_token(name, &size, token)) {
            SCHEMA_FAIL(s, BAD_ARGUMENT, "%s to \"%.100s\": it is no JSON pointer", where, reference);
            return NULL;
        }
        target = json_is_array(target) ? element_at(target, token) : json_object_get(target, token);
        if (target == NULL) break;
    }
    if (target == NULL) SCHEMA_FAIL(s, BAD_ARGUMENT, "%s to \"%.100s\", which is not there", where, reference);
    return target;
}

/* Follow a schema's reference, and that of what it leads to. NULL after a failure. */
static json_t *follow(schema_compiler *s, json_t *schema) {
    char name[SCHEMA_MAX_POINTER];
    for (int hops = 0; schema != NULL && hth_schema_has(schema, "$ref"); hops++) {
        const char *reference = json_string_value(json_object_get(schema, "$ref")), *keyword;
        json_t *value;
        json_object_foreach(schema, keyword, value) {
            if (strcmp(keyword, "$ref") != 0 && !hth_schema_is_annotation(keyword))
                SCHEMA_FAIL(s, UNSUPPORTED, "\"%s\" beside \"$ref\" is not supported", keyword);
        }
        if (reference == NULL || hops == MAX_HOPS) {
            SCHEMA_FAIL(s, BAD_ARGUMENT, reference == NULL ? "\"$ref\" is no string" : "\"$ref\" leads to itself");
            return NULL;
        }
        schema = hth_schema_resolve(s, reference, name);
    }
    return hth_grammar_failed(s->g) ? NULL : schema;
}

/* ---- allOf ---- */

static void merge_properties(schema_compiler *s, json_t *into, json_t *properties) {
    const char *name;
    json_t *value;
    json_object_foreach(properties, name, value) {
        const json_t *there = json_object_get(into, name);
        if (there == NULL) json_object_set(into, name, value);
        else if (!json_equal(there, value))
            SCHEMA_FAIL(s, UNSUPPORTED, "\"allOf\" with two schemas for the property \"%.60s\" is not supported", name);
    }
}

/* Add one part's keywords to a schema. */
static void merge(schema_compiler *s, json_t *into, json_t *part) {
    const char *keyword;
    json_t *value;
    json_object_foreach(part, keyword, value) {
        json_t *there = json_object_get(into, keyword);
        if (strcmp(keyword, "allOf") == 0 || hth_schema_is_annotation(keyword)) continue;
        if (strcmp(keyword, "$id") == 0 && part == s->document) continue;
        if (there == NULL) {
            json_t *copy = json_copy(value); /* it may be added to */
            json_object_set_new(into, keyword, copy);
        } else if (strcmp(keyword, "properties") == 0 && json_is_object(there)) {
            merge_properties(s, there, value);
        } else if (strcmp(keyword, "required") == 0 && json_is_array(there)) {
            json_array_extend(there, value);
        } else if (!json_equal(there, value)) {
            SCHEMA_FAIL(s, UNSUPPORTED, "\"allOf\" with two different \"%s\" is not supported", keyword);
        }
    }
}

/* What one part forbids beside its own properties, the merged schema would allow for those of the others. */
static void check_closed(schema_compiler *s, json_t *const *parts, size_t count) {
    size_t objects = 0;
    bool closed = false;
    for (size_t i = 0; i < count; i++) {
        const json_t *more = json_object_get(parts[i], "additionalProperties");
        objects += hth_schema_has(parts[i], "properties") || hth_schema_has(parts[i], "required");
        closed |= more != NULL && !json_is_true(more);
    }
    if (closed && objects > 1)
        SCHEMA_FAIL(s, UNSUPPORTED, "\"additionalProperties\" in an \"allOf\" of several objects is not supported");
}

void hth_schema_put_all_of(schema_compiler *s, json_t *schema) {
    json_t *parts[MAX_PARTS] = {schema};
    size_t count = 1;
    json_t *merged = json_object();
    if (merged == NULL || json_array_append_new(s->merged, merged) != 0) SCHEMA_FAIL(s, NO_MEMORY, "no memory");
    for (size_t i = 0; i < count && !hth_grammar_failed(s->g); i++) {
        json_t *all = json_object_get(parts[i], "allOf"), *one;
        size_t k;
        if (all != NULL && !json_is_array(all)) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"allOf\" is no array of schemas");
        json_array_foreach(all, k, one) {
            json_t *part = follow(s, one);
            if (part == NULL) return;
            if (json_is_true(part)) continue;
            if (!json_is_object(part)) SCHEMA_FAIL(s, UNSUPPORTED, "\"allOf\" of what is no object is not supported");
            else if (count == MAX_PARTS) SCHEMA_FAIL(s, TOO_LONG, "\"allOf\" has too many parts, or leads to itself");
            else parts[count++] = part;
        }
    }
    check_closed(s, parts, count);
    for (size_t i = 0; i < count && !hth_grammar_failed(s->g); i++) merge(s, merged, parts[i]);
    if (!hth_grammar_failed(s->g)) hth_schema_put(s, merged);
}

/* ---- oneOf ---- */

/* The values that a schema lists, as an array; NULL when it lists none. */
static json_t *listed(const json_t *schema, json_t *holder) {
    json_t *one = json_object_get(schema, "const"), *all = json_object_get(schema, "enum");
    if (one == NULL) return json_is_array(all) ? all : NULL;
    json_array_clear(holder);
    json_array_append(holder, one);
    return holder;
}

/* Equal as values: 1 and 1.0 are. */
static bool are_equal(const json_t *x, const json_t *y) {
    bool mixed = json_is_number(x) && json_is_number(y) && json_typeof(x) != json_typeof(y);
    return mixed ? json_number_value(x) == json_number_value(y) : json_equal(x, y);
}

static bool lists_are_apart(const json_t *a, const json_t *b) {
    const json_t *x, *y;
    size_t i, k;
    json_array_foreach(a, i, x) {
        json_array_foreach(b, k, y) {
            if (are_equal(x, y)) return false;
        }
    }
    return true;
}

static unsigned types_with_values(schema_compiler *s, const json_t *schema, const json_t *values) {
    unsigned types = 0;
    const json_t *value;
    size_t i;
    if (values == NULL) return hth_schema_types(s, schema);
    json_array_foreach(values, i, value) types |= hth_schema_type_of_value(value);
    return types;
}

static bool is_required(const json_t *schema, const char *name) {
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i, one) {
        if (json_is_string(one) && strcmp(json_string_value(one), name) == 0) return true;
    }
    return false;
}

/* No value can be of both. */
static bool are_apart(schema_compiler *s, json_t *a, json_t *b, json_t *holders[2]) {
    json_t *x = listed(a, holders[0]), *y = listed(b, holders[1]);
    if ((types_with_values(s, a, x) & types_with_values(s, b, y)) == 0) return true;
    if (x != NULL && y != NULL) return lists_are_apart(x, y);
    if (hth_schema_types(s, a) != SCHEMA_OBJECT || hth_schema_types(s, b) != SCHEMA_OBJECT) return false;
    const char *name;
    json_t *property;
    json_object_foreach(json_object_get(a, "properties"), name, property) {
        json_t *other = json_object_get(json_object_get(b, "properties"), name);
        if (other == NULL || !is_required(a, name) || !is_required(b, name)) continue;
        x = listed(property, holders[0]);
        y = listed(other, holders[1]);
        if (x != NULL && y != NULL && lists_are_apart(x, y)) return true;
    }
    return false;
}

void hth_schema_put_one_of(schema_compiler *s, json_t *schema) {
    json_t *all = json_object_get(schema, "oneOf"), *one;
    json_t *resolved[MAX_ALTERNATIVES], *holders[2] = {json_array(), json_array()};
    size_t i, count = 0;
    if (json_array_size(all) > MAX_ALTERNATIVES)
        SCHEMA_FAIL(s, TOO_LONG, "\"oneOf\" has more than %d alternatives", MAX_ALTERNATIVES);
    json_array_foreach(all, i, one) {
        if (hth_grammar_failed(s->g) || (resolved[count] = follow(s, one)) == NULL) break;
        count++;
    }
    for (i = 0; i < count && !hth_grammar_failed(s->g); i++)
        for (size_t k = 0; k < i; k++)
            if (!are_apart(s, resolved[i], resolved[k], holders))
                SCHEMA_FAIL(s, UNSUPPORTED,
                            "\"oneOf\" whose alternatives %zu and %zu may have a value in common is not supported: "
                            "their types or the constant of a required property have to differ, or use \"anyOf\"",
                            k, i);
    json_decref(holders[0]);
    json_decref(holders[1]);
    if (!hth_grammar_failed(s->g)) hth_schema_put_alternatives(s, schema, "oneOf");
}
