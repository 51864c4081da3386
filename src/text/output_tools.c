#include "text/output_tools.h"

#include "base/status.h"
#include "text/output_bytes.h"
#include "text/output_json.h"

/* What the container at some depth holds. */
typedef enum role {
    OTHER,
    TOOLS,      /* the array */
    TOOL,       /* an element of it, or its "function" */
    SCHEMA,     /* of all parameters */
    PROPERTIES, /* of that */
    PARAMETER,  /* the schema of one */
    TYPES,      /* an array of types */
    CHOICES     /* an array of schemas of one parameter */
} role;

typedef struct name_range {
    size_t from, size;
} name_range;

typedef struct tool {
    name_range name;
    size_t parameters; /* the first of its own; they go on to the next tool's */
} tool;

typedef struct parameter {
    name_range name;
    unsigned types;
    bool open; /* not to be known: a choice or a reference without a type */
} parameter;

struct hth_output_tools {
    hth_bytes names, tools, parameters; /* the last two hold tool and parameter */
};

typedef struct reader {
    hth_output_tools *out;
    const char *text;
    hth_json json;
    uint8_t roles[HTH_JSON_MAX_DEPTH + 1]; /* of the container at a depth */
    name_range key;                        /* in `text` */
    size_t string_at;
} reader;

static tool *tools_of(const hth_output_tools *t, size_t *count) {
    *count = t->tools.size / sizeof(tool);
    return (tool *)(void *)t->tools.data;
}

static parameter *parameters_of(const hth_output_tools *t, size_t *count) {
    *count = t->parameters.size / sizeof(parameter);
    return (parameter *)(void *)t->parameters.data;
}

static bool is(const char *text, name_range r, const char *word) {
    return r.size == strlen(word) && memcmp(text + r.from, word, r.size) == 0;
}

static unsigned type_of_word(const char *text, name_range r) {
    static const struct {
        const char *word;
        unsigned type;
    } words[] = {{"string", HTH_TYPE_STRING},   {"number", HTH_TYPE_NUMBER}, {"integer", HTH_TYPE_NUMBER},
                 {"boolean", HTH_TYPE_BOOLEAN}, {"null", HTH_TYPE_NULL},     {"object", HTH_TYPE_OBJECT},
                 {"array", HTH_TYPE_ARRAY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(text, r, words[i].word)) return words[i].type;
    return 0;
}

/* The string text[r], decoded, at the end of the names. */
static bool keep_name(reader *r, name_range in, name_range *out) {
    hth_json_decoder decoder = {0};
    size_t from = r->out->names.size;
    if (!hth_json_decode(&decoder, r->text + in.from, in.size, &r->out->names)) return false;
    *out = (name_range){from, r->out->names.size - from};
    return true;
}

static role role_inside(const reader *r, role outer, bool object) {
    bool keyed = outer != TOOLS && outer != CHOICES && outer != TYPES;
    if (outer == TOOLS) return object ? TOOL : OTHER;
    if (outer == CHOICES) return object ? PARAMETER : OTHER;
    if (!keyed || outer == OTHER) return OTHER;
    const char *text = r->text;
    if (outer == TOOL && object && is(text, r->key, "function")) return TOOL;
    if (outer == TOOL && object && (is(text, r->key, "parameters") || is(text, r->key, "input_schema"))) return SCHEMA;
    if (outer == SCHEMA && object && is(text, r->key, "properties")) return PROPERTIES;
    if (outer == PROPERTIES && object) return PARAMETER;
    if (outer == PARAMETER && !object && is(text, r->key, "type")) return TYPES;
    if (outer == PARAMETER && !object && (is(text, r->key, "anyOf") || is(text, r->key, "oneOf"))) return CHOICES;
    return OTHER;
}

static bool opened(reader *r) {
    uint32_t depth = r->json.depth;
    bool object = hth_json_in_object(&r->json);
    role outer = r->roles[depth - 1], inside = role_inside(r, outer, object);
    if (depth == 1) inside = TOOLS;
    r->roles[depth] = (uint8_t)inside;
    size_t count;
    parameters_of(r->out, &count);
    if (outer == TOOLS && inside == TOOL) {
        tool fresh = {.parameters = count};
        return hth_bytes_append(&r->out->tools, (const char *)&fresh, sizeof fresh);
    }
    if (outer == PROPERTIES && inside == PARAMETER) {
        parameter fresh = {.types = 0};
        return keep_name(r, r->key, &fresh.name) &&
               hth_bytes_append(&r->out->parameters, (const char *)&fresh, sizeof fresh);
    }
    return true;
}

static bool string_ended(reader *r, size_t at) {
    name_range string = {r->string_at, at - r->string_at};
    role inside = r->roles[r->json.depth];
    size_t count;
    if (inside == TOOL && is(r->text, r->key, "name")) {
        tool *tools = tools_of(r->out, &count);
        return keep_name(r, string, &tools[count - 1].name);
    }
    parameter *parameters = parameters_of(r->out, &count);
    bool type = inside == TYPES || (inside == PARAMETER && is(r->text, r->key, "type"));
    if (type) parameters[count - 1].types |= type_of_word(r->text, string);
    if (inside == PARAMETER && is(r->text, r->key, "$ref")) parameters[count - 1].open = true;
    return true;
}

/* One byte that the scanner has taken; false when there is no memory. */
static bool take(reader *r, size_t at) {
    switch (r->json.event) {
    case HTH_JSON_OPEN: return opened(r);
    case HTH_JSON_KEY_BEGIN:
    case HTH_JSON_STRING_BEGIN: r->string_at = at + 1; return true;
    case HTH_JSON_KEY_END: r->key = (name_range){r->string_at, at - r->string_at}; return true;
    case HTH_JSON_STRING_END: return string_ended(r, at);
    default: return true;
    }
}

hearth_status hth_output_tools_read(const char *text, size_t size, hth_output_tools **out, hearth_error *err) {
    hth_output_tools *t = calloc(1, sizeof *t);
    *out = t;
    if (t == NULL) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for a request's tools");
    reader r = {.out = t, .text = text};
    hth_json_start(&r.json);
    for (size_t i = 0; i < size; i++) {
        bool good = hth_json_take(&r.json, text[i]);
        bool top = r.json.event == HTH_JSON_OPEN && r.json.depth == 1;
        bool list = r.json.event == HTH_JSON_NOTHING || r.json.depth > 0 || r.json.event == HTH_JSON_CLOSE;
        if (good && list && !(top && text[i] == '{') && take(&r, i)) continue;
        hearth_status status = HEARTH_BAD_ARGUMENT;
        if (r.json.too_deep) hth_fail(err, status, "tools: nested deeper than %d at byte %zu", HTH_JSON_MAX_DEPTH, i);
        else if (!good) hth_fail(err, status, "tools: not JSON at byte %zu", i);
        else if (!list || top) hth_fail(err, status, "tools: not a JSON array");
        else status = hth_fail(err, HEARTH_NO_MEMORY, "no memory for a request's tools of %zu bytes", size);
        hth_output_tools_free(out);
        return status;
    }
    if (hth_json_is_whole(&r.json)) return HEARTH_OK;
    hth_output_tools_free(out);
    return hth_fail(err, HEARTH_BAD_ARGUMENT, "tools: the JSON text ends too early, after %zu bytes", size);
}

void hth_output_tools_free(hth_output_tools **tools) {
    hth_output_tools *t = *tools;
    if (t == NULL) return;
    hth_bytes_free(&t->names);
    hth_bytes_free(&t->tools);
    hth_bytes_free(&t->parameters);
    free(t);
    *tools = NULL;
}

static bool is_name(const hth_output_tools *t, name_range r, const char *name, size_t size) {
    return r.size == size && (size == 0 || memcmp(t->names.data + r.from, name, size) == 0);
}

/* The tool's place; the number of tools when there is none of this name. */
static size_t find(const hth_output_tools *t, const char *name, size_t size) {
    size_t count, i = 0;
    const tool *tools = tools_of(t, &count);
    while (i < count && !is_name(t, tools[i].name, name, size)) i++;
    return i;
}

bool hth_output_tools_have(const hth_output_tools *tools, const char *name, size_t size) {
    return tools != NULL && find(tools, name, size) < tools->tools.size / sizeof(tool);
}

unsigned hth_output_tools_types(const hth_output_tools *tools, const char *name, size_t size,
                                const char *parameter_name, size_t parameter_size) {
    if (tools == NULL) return 0;
    size_t count, parameter_count, at = find(tools, name, size);
    const tool *all = tools_of(tools, &count);
    const parameter *parameters = parameters_of(tools, &parameter_count);
    if (at >= count) return 0;
    size_t to = at + 1 < count ? all[at + 1].parameters : parameter_count;
    for (size_t i = all[at].parameters; i < to; i++)
        if (is_name(tools, parameters[i].name, parameter_name, parameter_size))
            return parameters[i].open ? 0 : parameters[i].types;
    return 0;
}
