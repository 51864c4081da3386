/* Objects and arrays.
 *
 * Properties come in the order of the schema, and a comma stands in front of each but the first that is there. So while
 * nothing is there yet, which of the leading optional properties is the first is a choice, and what may follow it is a
 * rule of its own: a tail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/grow.h"
#include "text/schema_internal.h"

enum { SHORT_ESCAPE = 0x40000000 }; /* a unit that is written as a backslash and this letter */

/* ---- The properties of an object ---- */

static void add_property(schema_compiler *s, schema_object *o, size_t *capacity, const char *name, json_t *schema) {
    if (hth_grammar_failed(s->g)) return;
    json_t *text = json_string(name);
    char *spelled = text ? hth_schema_spell(text) : NULL;
    json_decref(text);
    if (spelled == NULL || !hth_grow(&o->properties, capacity, o->count + 1, sizeof *o->properties)) {
        free(spelled);
        SCHEMA_FAIL(s, NO_MEMORY, "no memory");
        return;
    }
    o->properties[o->count++] = (schema_property){name, spelled, schema, false};
}

/* The names under "required" by a table: there may be thousands. */
static json_t *required_names(schema_compiler *s, const json_t *schema) {
    json_t *names = json_object(), *required = json_object_get(schema, "required"), *one;
    size_t i;
    if (required != NULL && !json_is_array(required)) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"required\" is no array");
    json_array_foreach(required, i, one) {
        if (!json_is_string(one)) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"required\" has something that is no string");
        else json_object_set(names, json_string_value(one), json_true());
    }
    return names;
}

static void find_properties(schema_compiler *s, schema_object *o, json_t *schema) {
    json_t *properties = json_object_get(schema, "properties"), *more = json_object_get(schema, "additionalProperties");
    json_t *required = required_names(s, schema), *value;
    const char *name;
    size_t i, capacity = 0;
    if (properties != NULL && !json_is_object(properties)) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"properties\" is no object");
    json_object_foreach(properties, name, value) {
        add_property(s, o, &capacity, name, value);
        if (o->count > 0) o->properties[o->count - 1].required = json_object_get(required, name) != NULL;
    }
    o->more = more == NULL ? o->count == 0 : !json_is_false(more);
    o->more_schema = json_is_object(more) ? more : NULL;
    if (more != NULL && !json_is_object(more) && !json_is_boolean(more))
        SCHEMA_FAIL(s, BAD_ARGUMENT, "\"additionalProperties\" is no schema");
    json_array_foreach(json_object_get(schema, "required"), i, value) {
        name = json_string_value(value);
        if (hth_grammar_failed(s->g) || json_object_get(properties, name) != NULL) continue;
        if (json_is_false(more))
            SCHEMA_FAIL(s, BAD_ARGUMENT, "the property \"%.60s\" is required and not allowed", name);
        if (json_is_false(json_object_get(required, name))) continue; /* named twice */
        json_object_set(required, name, json_false());
        add_property(s, o, &capacity, name, o->more_schema);
        if (o->count > 0) o->properties[o->count - 1].required = true;
    }
    while (o->leading < o->count && !o->properties[o->leading].required) o->leading++;
    json_decref(required);
}

/* ---- Names that are none of the properties' ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What a spelled name has at a place: a character, or an escape of two letters. Its size, 0 at the closing quote. */
static size_t unit_at(const char *text, uint32_t *unit) {
    if (*text == '"') return 0;
    if (*text != '\\') return (size_t)hth_utf8_decode(text, strlen(text), unit);
    *unit = SHORT_ESCAPE | (unsigned char)text[1];
    return 2;
}

/* Put the characters that begin none of these names: as they are, and as short escapes. */
static void put_other_units(schema_compiler *s, const uint32_t *units, size_t count) {
    hth_character_range *ranges = malloc((count + 3) * sizeof *ranges);
    hth_character_range letters[7];
    size_t n_ranges = 3, n_letters = 0;
    if (ranges == NULL) {
        SCHEMA_FAIL(s, NO_MEMORY, "no memory");
        return;
    }
    ranges[0] = (hth_character_range){0, 0x1F};
    ranges[1] = (hth_character_range){'"', '"'};
    ranges[2] = (hth_character_range){'\\', '\\'};
    for (size_t i = 0; i < count; i++)
        if (!(units[i] & SHORT_ESCAPE)) ranges[n_ranges++] = (hth_character_range){units[i], units[i]};
    for (const char *letter = "\"\\bfnrt"; *letter != '\0'; letter++) {
        bool taken = false;
        for (size_t i = 0; i < count; i++) taken |= units[i] == (SHORT_ESCAPE | (unsigned char)*letter);
        if (!taken) letters[n_letters++] = (hth_character_range){(unsigned char)*letter, (unsigned char)*letter};
    }
    hth_grammar_set(s->g, ranges, n_ranges, true, s->at);
    hth_schema_text(s, "\\");
    hth_grammar_set(s->g, letters, n_letters, false, s->at);
    hth_schema_sequence(s, 2);
    hth_schema_choice(s, 2);
    free(ranges);
}

/* The rest of a name, behind what names[first .. end) begin with: it leaves them all, or follows some of them on. */
void hth_schema_put_key(schema_compiler *s, const schema_job *job) {
    const schema_object *o = job->object;
    uint32_t unit, *units = malloc((job->end - job->first + 1) * sizeof *units);
    size_t count = 0, choices = 1;
    bool ends = false;
    if (units == NULL) {
        SCHEMA_FAIL(s, NO_MEMORY, "no memory");
        return;
    }
    for (size_t i = job->first, end; i < job->end; i = end) {
        const char *name = o->names[i] + job->depth;
        size_t size = unit_at(name, &unit);
        for (end = i + 1; end < job->end && strncmp(o->names[end] + job->depth, name, size ? size : 1) == 0;) end++;
        if (size == 0) {
            ends = true;
            continue;
        }
        units[count++] = unit;
        schema_job next = {.kind = SCHEMA_JOB_KEY, .object = job->object, .first = i, .end = end};
        next.depth = job->depth + size;
        hth_grammar_literal(s->g, name, size, s->at);
        hth_schema_call(s, hth_schema_put_off(s, next));
        hth_schema_sequence(s, 2);
        choices++;
    }
    put_other_units(s, units, count);
    hth_schema_call(s, s->key_rest);
    hth_schema_sequence(s, 2);
    if (!ends) hth_schema_text(s, "\""), choices++;
    hth_schema_choice(s, choices);
    free(units);
}

/* The rule for names of further properties, without the quote in front. */
static uint32_t more_key_rule(schema_compiler *s, schema_object *o) {
    o->names = malloc((o->count + 1) * sizeof *o->names);
    if (o->names == NULL) {
        SCHEMA_FAIL(s, NO_MEMORY, "no memory");
        return 0;
    }
    size_t count = 0;
    for (size_t i = 0; i < o->count; i++) /* a name with other escapes cannot come up */
        if (strstr(o->properties[i].spelled, "\\u") == NULL) o->names[count++] = o->properties[i].spelled + 1;
    qsort(o->names, count, sizeof *o->names, by_text);
    return hth_schema_put_off(s, (schema_job){.kind = SCHEMA_JOB_KEY, .object = o, .first = 0, .end = count});
}

/* ---- Members ---- */

/* "name": value and the white space behind it. */
static void put_member(schema_compiler *s, const schema_object *o, size_t i) {
    const schema_property *p = &o->properties[i];
    const char *key = p->schema != NULL && p->schema == o->more_schema ? "additionalProperties" : "properties";
    hth_schema_text(s, p->spelled);
    hth_schema_call(s, s->white);
    hth_schema_text(s, ":");
    hth_schema_call(s, s->white);
    hth_schema_call(s, hth_schema_rule_under(s, o->rule, key, key[0] == 'a' ? NULL : p->name, p->schema));
    hth_schema_call(s, s->white);
    hth_schema_sequence(s, 6);
}

static void put_more_member(schema_compiler *s, const schema_object *o) {
    hth_schema_text(s, "\"");
    hth_schema_call(s, o->more_key);
    hth_schema_call(s, s->white);
    hth_schema_text(s, ":");
    hth_schema_call(s, s->white);
    hth_schema_call(s, hth_schema_rule_under(s, o->rule, "additionalProperties", NULL, o->more_schema));
    hth_schema_call(s, s->white);
    hth_schema_sequence(s, 7);
}

static void put_comma(schema_compiler *s) {
    hth_schema_text(s, ",");
    hth_schema_call(s, s->white);
}

/* The rule of the tail from a property on. */
static uint32_t tail_rule(schema_compiler *s, schema_object *o, size_t first) {
    if (o->tails == NULL && (o->tails = calloc(o->count + 1, sizeof *o->tails)) == NULL)
        SCHEMA_FAIL(s, NO_MEMORY, "no memory");
    if (hth_grammar_failed(s->g)) return 0;
    if (o->tails[first] == 0) /* rule 0 is one of those that all schemas share */
        o->tails[first] = hth_schema_put_off(s, (schema_job){.kind = SCHEMA_JOB_TAIL, .object = o, .first = first});
    return o->tails[first];
}

/* All that may follow when something is there: from the property `first` on. How many values it puts. */
static size_t put_followers(schema_compiler *s, const schema_object *o, size_t first) {
    for (size_t i = first; i < o->count; i++) {
        put_comma(s);
        put_member(s, o, i);
        hth_schema_sequence(s, 3);
        if (!o->properties[i].required) hth_schema_repeat(s, 0, 1);
    }
    if (!o->more) return o->count - first;
    put_comma(s);
    put_more_member(s, o);
    hth_schema_sequence(s, 3);
    hth_schema_repeat(s, 0, HTH_GRAMMAR_MANY);
    return o->count - first + 1;
}

/* Behind an optional property that is the first one there. Up to the first required one a tail ends with the next
 * tail. */
void hth_schema_put_tail(schema_compiler *s, const schema_job *job) {
    const schema_object *o = job->object;
    if (job->first >= o->leading) {
        hth_schema_sequence(s, put_followers(s, o, job->first));
        return;
    }
    put_comma(s);
    put_member(s, o, job->first);
    hth_schema_sequence(s, 3);
    hth_schema_repeat(s, 0, 1);
    hth_schema_call(s, tail_rule(s, job->object, job->first + 1));
    hth_schema_sequence(s, 2);
}

static void put_members(schema_compiler *s, schema_object *o) {
    size_t choices = 0, first = o->leading;
    for (size_t i = 0; i < first; i++, choices++) {
        put_member(s, o, i);
        hth_schema_call(s, tail_rule(s, o, i + 1));
        hth_schema_sequence(s, 2);
    }
    if (first < o->count) {
        put_member(s, o, first);
        hth_schema_sequence(s, 1 + put_followers(s, o, first + 1));
        choices++;
    } else {
        if (o->more) {
            put_more_member(s, o);
            hth_schema_sequence(s, 1 + put_followers(s, o, o->count));
            choices++;
        }
        hth_schema_sequence(s, 0);
        choices++;
    }
    hth_schema_choice(s, choices);
}

/* The bounds on the number of properties, where those with names do not count. */
static void put_counted_members(schema_compiler *s, schema_object *o, const json_t *schema) {
    uint32_t min = hth_schema_count(s, schema, "minProperties", 0);
    uint32_t max = hth_schema_count(s, schema, "maxProperties", HTH_GRAMMAR_MANY);
    if (o->count > 0)
        SCHEMA_FAIL(s, UNSUPPORTED,
                    "\"minProperties\" and \"maxProperties\" beside names of properties are not supported");
    if (min > 1) SCHEMA_FAIL(s, UNSUPPORTED, "\"minProperties\" above 1 is not supported: names could come up twice");
    if (max < min || (min > 0 && !o->more)) SCHEMA_FAIL(s, BAD_ARGUMENT, "no object has so many properties");
    if (max == 0 || !o->more || hth_grammar_failed(s->g)) {
        hth_schema_sequence(s, 0);
        return;
    }
    put_more_member(s, o);
    put_comma(s);
    put_more_member(s, o);
    hth_schema_sequence(s, 3);
    hth_schema_repeat(s, 0, max == HTH_GRAMMAR_MANY ? max : max - 1);
    hth_schema_sequence(s, 2);
    if (min == 0) hth_schema_repeat(s, 0, 1);
}

void hth_schema_put_object(schema_compiler *s, json_t *schema) {
    schema_object *o = calloc(1, sizeof *o);
    if (o == NULL) {
        SCHEMA_FAIL(s, NO_MEMORY, "no memory");
        return;
    }
    o->next = s->objects;
    s->objects = o;
    o->rule = s->rule;
    find_properties(s, o, schema);
    if (hth_grammar_failed(s->g)) return;
    if (o->more) o->more_key = more_key_rule(s, o);
    hth_schema_text(s, "{");
    hth_schema_call(s, s->white);
    if (hth_schema_has(schema, "minProperties") || hth_schema_has(schema, "maxProperties"))
        put_counted_members(s, o, schema);
    else put_members(s, o);
    hth_schema_text(s, "}");
    hth_schema_sequence(s, 4);
}

void hth_schema_objects_free(schema_object *objects) {
    for (schema_object *o = objects, *next; o != NULL; o = next) {
        next = o->next;
        for (size_t i = 0; i < o->count; i++) free(o->properties[i].spelled);
        free(o->properties);
        free(o->names);
        free(o->tails);
        free(o);
    }
}

/* ---- Arrays ---- */

/* An element, and the white space behind it. */
static void put_element(schema_compiler *s, json_t *prefix, size_t i, json_t *items) {
    char number[24];
    uint32_t rule;
    snprintf(number, sizeof number, "%zu", i);
    if (i < json_array_size(prefix))
        rule = hth_schema_rule_under(s, s->rule, "prefixItems", number, json_array_get(prefix, i));
    else rule = hth_schema_rule_under(s, s->rule, "items", NULL, items);
    hth_schema_call(s, rule);
    hth_schema_call(s, s->white);
    hth_schema_sequence(s, 2);
}

/* From `min` to `max` elements, those of the prefix one by one, each optional one with all behind it. */
static void put_elements(schema_compiler *s, json_t *prefix, json_t *items, uint32_t min, uint32_t max) {
    uint32_t single = (uint32_t)json_array_size(prefix);
    if (single == 0) single = 1; /* the first has no comma */
    if (single > max) single = max;
    for (uint32_t i = 0; i < single; i++) {
        if (i > 0) put_comma(s);
        put_element(s, prefix, i, items);
    }
    uint32_t more = max == HTH_GRAMMAR_MANY ? max : max - single, behind = 0;
    if (more > 0) {
        put_comma(s);
        put_element(s, prefix, single, items);
        hth_schema_sequence(s, 3);
        hth_schema_repeat(s, min > single ? min - single : 0, more);
        behind = 1;
    }
    for (uint32_t i = single; i-- > 0; behind = 1) {
        hth_schema_sequence(s, (i > 0 ? 3 : 1) + behind);
        if (i >= min) hth_schema_repeat(s, 0, 1);
    }
}

void hth_schema_put_array(schema_compiler *s, json_t *schema) {
    json_t *prefix = json_object_get(schema, "prefixItems"), *items = json_object_get(schema, "items");
    uint32_t min = hth_schema_count(s, schema, "minItems", 0),
             max = hth_schema_count(s, schema, "maxItems", HTH_GRAMMAR_MANY);
    const json_t *unique = json_object_get(schema, "uniqueItems");
    if (prefix != NULL && (!json_is_array(prefix) || json_array_size(prefix) == 0))
        SCHEMA_FAIL(s, BAD_ARGUMENT, "\"prefixItems\" is no array of schemas");
    if (json_is_array(items))
        SCHEMA_FAIL(s, UNSUPPORTED, "\"items\" that is an array is not supported: use \"prefixItems\"");
    if (unique != NULL && !json_is_false(unique)) SCHEMA_FAIL(s, UNSUPPORTED, "\"uniqueItems\" is not supported");
    if (json_is_false(items) && max > json_array_size(prefix)) max = (uint32_t)json_array_size(prefix);
    if (max < min) SCHEMA_FAIL(s, BAD_ARGUMENT, "no array has at least %u and at most %u elements", min, max);
    if (hth_grammar_failed(s->g)) return;
    hth_schema_text(s, "[");
    hth_schema_call(s, s->white);
    if (max == 0) hth_schema_sequence(s, 0);
    else put_elements(s, prefix, items, min, max);
    hth_schema_text(s, "]");
    hth_schema_sequence(s, 4);
}
