/* Strings: any, of some lengths, of a pattern or of a format. */
#include <string.h>

#include "text/schema_internal.h"

/* Formats as patterns, exact or narrower: each text that matches is of the format. */
#define DATE                                                                                                           \
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])" \
    ")"                                                                                                                \
    "|([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
#define TIME  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,59}[A-Za-z0-9])?"
#define HOST  LABEL "(\\." LABEL "){0,3}"
#define BYTE  "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define HEX   "[0-9a-fA-F]"
#define H16   HEX "{1,4}"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^P([0-9]{1,9}W|([0-9]{1,9}D|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?)"
                 "(T([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))?"
                 "|T([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))$"},
    {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
    {"ipv4", "^" BYTE "(\\." BYTE "){3}$"},
    {"ipv6", "^((" H16 ":){7}" H16 "|(" H16 ":){1,6}:" H16 "|(" H16 ":){1,5}(:" H16 "){2}|(" H16 ":){1,4}(:" H16 "){3}"
             "|(" H16 ":){1,3}(:" H16 "){4}|(" H16 ":){1,2}(:" H16 "){5}|" H16 ":(:" H16 "){6}|(" H16 ":){1,7}:"
             "|:(:" H16 "){1,7}|::)$"},
    {"hostname", "^" HOST "$"},
    {"email", "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,31})?@" HOST "$"},
};

/* Characters as they are or with a short escape: one spelling each, so that they can be counted. */
static void put_characters(schema_compiler *s, uint32_t min, uint32_t max) {
    static const hth_character_range not_plain[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    static const hth_character_range letters[] = {{'"', '"'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'},
                                                  {'n', 'n'}, {'r', 'r'},   {'t', 't'}};
    hth_grammar_set(s->g, not_plain, 3, true, s->at);
    hth_schema_text(s, "\\");
    hth_grammar_set(s->g, letters, sizeof letters / sizeof *letters, false, s->at);
    hth_schema_sequence(s, 2);
    hth_schema_choice(s, 2);
    hth_schema_repeat(s, min, max);
}

static const char *text_of(schema_compiler *s, const json_t *schema, const char *keyword) {
    const json_t *value = json_object_get(schema, keyword);
    if (value != NULL && !json_is_string(value)) SCHEMA_FAIL(s, BAD_ARGUMENT, "\"%s\" is no string", keyword);
    return json_string_value(value);
}

static const char *pattern_of_format(schema_compiler *s, const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].pattern;
    SCHEMA_FAIL(s, UNSUPPORTED, "the format \"%.60s\" is not supported", name);
    return NULL;
}

void hth_schema_put_string(schema_compiler *s, const json_t *schema) {
    const char *pattern = text_of(s, schema, "pattern"), *format = text_of(s, schema, "format");
    uint32_t min = hth_schema_count(s, schema, "minLength", 0),
             max = hth_schema_count(s, schema, "maxLength", HTH_GRAMMAR_MANY);
    bool counted = hth_schema_has(schema, "minLength") || hth_schema_has(schema, "maxLength");
    if ((pattern != NULL) + (format != NULL) + counted > 1)
        SCHEMA_FAIL(s, UNSUPPORTED, "only one of \"pattern\", \"format\" and the bounds of a length is supported");
    if (max < min) SCHEMA_FAIL(s, BAD_ARGUMENT, "no string has at least %u and at most %u characters", min, max);
    if (format != NULL) pattern = pattern_of_format(s, format);
    if (hth_grammar_failed(s->g)) return;
    if (pattern == NULL && !counted) {
        hth_schema_call(s, s->string);
        return;
    }
    hth_schema_text(s, "\"");
    if (pattern != NULL) hth_schema_put_pattern(s, pattern);
    else put_characters(s, min, max);
    hth_schema_text(s, "\"");
    hth_schema_sequence(s, 3);
}
