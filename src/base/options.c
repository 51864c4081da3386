#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

enum { MAX_NAME = 64, MAX_LINE = 4096 };

static const hearth_option_info table[] = {
#define X(id, name, other, type, scope, fallback, min, max, choices, unit, help)                                       \
    {name, other, HEARTH_OPTION_##type, HEARTH_SCOPE_##scope, fallback, min, max, choices, unit, help},
    HTH_OPTION_LIST(X)
#undef X
};

/* Variables of the project's scripts: they share the prefix and are no options. */
static const char *const script_variables[] = {"HEARTH_WHEELS"};

typedef struct option_value {
    union {
        int64_t whole; /* INT, BOOL */
        double real;   /* FLOAT */
        char *text;    /* TEXT, CHOICE; owned when set */
    } as;
    bool set;
} option_value;

struct hearth_options {
    option_value values[HTH_OPTION_COUNT];
};

/* ---- Names ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t hth_name_distance(const char *a, const char *b) {
    size_t m = strlen(a), n = strlen(b);
    if (m >= MAX_NAME || n >= MAX_NAME) return SIZE_MAX;
    size_t row[3][MAX_NAME]; /* two rows back, one row back, this row */
    for (size_t j = 0; j <= n; j++) row[1][j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[2][0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t d = least(row[1][j] + 1, row[2][j - 1] + 1);
            d = least(d, row[1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d = least(d, row[0][j - 2] + 1);
            row[2][j] = d;
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
    }
    return row[1][n];
}

bool hth_name_is_near(const char *name, size_t distance) {
    size_t length = strlen(name);
    return distance < length && distance <= (length < 5 ? 1 : length < 9 ? 2 : 3);
}

static bool is_name(const char *known, const char *name, size_t size) {
    return size > 0 && strlen(known) == size && memcmp(known, name, size) == 0;
}

const hearth_option_info *hth_option_find(const char *name, size_t size) {
    for (size_t i = 0; i < HTH_OPTION_COUNT; i++)
        if (is_name(table[i].name, name, size) || is_name(table[i].other_name, name, size)) return &table[i];
    return NULL;
}

static hearth_status fail_unknown(const char *name, hearth_error *err) {
    size_t best = SIZE_MAX;
    const char *nearest = NULL;
    for (size_t i = 0; i < HTH_OPTION_COUNT; i++) {
        const char *names[2] = {table[i].name, table[i].other_name};
        for (int k = 0; k < 2; k++) {
            size_t d = names[k][0] ? hth_name_distance(name, names[k]) : SIZE_MAX;
            if (d < best) best = d, nearest = names[k];
        }
    }
    if (nearest && hth_name_is_near(name, best))
        return hth_fail(err, HEARTH_BAD_OPTION, "no option is named '%.80s'; did you mean '%s'?", name, nearest);
    return hth_fail(err, HEARTH_BAD_OPTION, "no option is named '%.80s'", name);
}

static hearth_status find(const char *name, size_t *index, hearth_error *err) {
    const hearth_option_info *info = hth_option_find(name, strlen(name));
    if (!info) return fail_unknown(name, err);
    *index = (size_t)(info - table);
    return HEARTH_OK;
}

/* ---- Values ---- */

static bool byte_suffix(const char *s, int *shift) {
    static const char letters[] = "kmgt";
    const char *letter = *s ? strchr(letters, *s | 0x20) : NULL;
    if (!letter) return false;
    const char *rest = s + 1;
    if ((rest[0] | 0x20) == 'i' && (rest[1] | 0x20) == 'b') rest += 2;
    else if ((rest[0] | 0x20) == 'b') rest += 1;
    *shift = 10 * (int)(letter - letters + 1);
    return *rest == '\0';
}

bool hth_parse_int(const char *text, bool bytes, int64_t *out) {
    const char *s = text + (*text == '-' || *text == '+');
    if (*s < '0' || *s > '9') return false; /* strtoll would skip blanks and take a second sign */
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno == ERANGE) return false;
    if (*end) {
        int shift;
        if (!bytes || !byte_suffix(end, &shift)) return false;
        if (__builtin_mul_overflow(value, 1LL << shift, &value)) return false;
    }
    *out = value;
    return true;
}

bool hth_parse_float(const char *text, double *out) {
    if (!*text || text[strspn(text, "+-.0123456789eE")]) return false; /* no blanks, hexadecimal, inf or nan */
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c) return false;
    char *end;
    double value = strtod_l(text, &end, c);
    freelocale(c);
    if (*end || !isfinite(value)) return false;
    *out = value;
    return true;
}

static bool parse_bool(const char *text, int64_t *out) {
    static const char *const words[2][4] = {{"off", "false", "0", "no"}, {"on", "true", "1", "yes"}};
    for (int on = 0; on < 2; on++)
        for (int k = 0; k < 4; k++)
            if (strcmp(text, words[on][k]) == 0) {
                *out = on;
                return true;
            }
    return false;
}

static bool is_choice(const char *choices, const char *text) {
    for (const char *s = choices; *s;) {
        size_t length = strcspn(s, "|");
        if (is_name(text, s, length)) return true;
        s += length + (s[length] == '|');
    }
    return false;
}

static hearth_status fail_value(const hearth_option_info *info, const char *value, hearth_error *err) {
    const char *space = info->unit[0] ? " " : "";
    switch (info->type) {
    case HEARTH_OPTION_INT: {
        bool open = info->max >= 0x1p63;
        const char *hint = strcmp(info->unit, "bytes") == 0 ? " (k, m, g, t may follow)" : "";
        if (open)
            return hth_fail(err, HEARTH_BAD_OPTION, "option '%s': '%.80s' is not a whole number of at least %lld%s%s%s",
                            info->name, value, (long long)info->min, space, info->unit, hint);
        return hth_fail(err, HEARTH_BAD_OPTION, "option '%s': '%.80s' is not a whole number from %lld to %lld%s%s%s",
                        info->name, value, (long long)info->min, (long long)info->max, space, info->unit, hint);
    }
    case HEARTH_OPTION_FLOAT:
        return hth_fail(err, HEARTH_BAD_OPTION, "option '%s': '%.80s' is not a number from %g to %g%s%s", info->name,
                        value, info->min, info->max, space, info->unit);
    case HEARTH_OPTION_BOOL:
        return hth_fail(err, HEARTH_BAD_OPTION, "option '%s': '%.80s' is neither on nor off", info->name, value);
    case HEARTH_OPTION_CHOICE:
        return hth_fail(err, HEARTH_BAD_OPTION, "option '%s': '%.80s' is none of %s", info->name, value, info->choices);
    case HEARTH_OPTION_TEXT: break;
    }
    return hth_fail(err, HEARTH_BAD_OPTION, "option '%s': '%.80s' is not allowed", info->name, value);
}

/* Parse a value of a number-like type; text-like types only check it. */
static bool parse(const hearth_option_info *info, const char *text, option_value *out) {
    switch (info->type) {
    case HEARTH_OPTION_INT:
        return hth_parse_int(text, strcmp(info->unit, "bytes") == 0, &out->as.whole) &&
               out->as.whole >= (int64_t)info->min && (info->max >= 0x1p63 || out->as.whole <= (int64_t)info->max);
    case HEARTH_OPTION_FLOAT:
        return hth_parse_float(text, &out->as.real) && out->as.real >= info->min && out->as.real <= info->max;
    case HEARTH_OPTION_BOOL: return parse_bool(text, &out->as.whole);
    case HEARTH_OPTION_CHOICE: return is_choice(info->choices, text);
    case HEARTH_OPTION_TEXT: return true;
    }
    return false;
}

static bool is_text(hearth_option_type type) {
    return type == HEARTH_OPTION_TEXT || type == HEARTH_OPTION_CHOICE;
}

static hearth_status set_value(hearth_options *options, size_t i, const char *text, hearth_error *err) {
    const hearth_option_info *info = &table[i];
    if (!text) {
        if (info->type != HEARTH_OPTION_BOOL)
            return hth_fail(err, HEARTH_BAD_OPTION, "option '%s' needs a value", info->name);
        text = "on";
    }
    option_value value = {.set = true};
    if (!parse(info, text, &value)) return fail_value(info, text, err);
    if (is_text(info->type)) {
        value.as.text = strdup(text);
        if (!value.as.text) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for option '%s'", info->name);
        free(options->values[i].as.text);
    }
    options->values[i] = value;
    return HEARTH_OK;
}

hearth_status hearth_options_create(hearth_options **out, hearth_error *err) {
    *out = calloc(1, sizeof **out);
    if (!*out) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the options");
    return HEARTH_OK;
}

void hearth_options_free(hearth_options **options) {
    if (!options || !*options) return;
    for (size_t i = 0; i < HTH_OPTION_COUNT; i++)
        if (is_text(table[i].type)) free((*options)->values[i].as.text);
    free(*options);
    *options = NULL;
}

hearth_status hth_options_copy(const hearth_options *options, hearth_options **out, hearth_error *err) {
    HTH_TRY(hearth_options_create(out, err));
    for (size_t i = 0; options && i < HTH_OPTION_COUNT; i++) {
        option_value value = options->values[i];
        if (is_text(table[i].type) && value.set && !(value.as.text = strdup(value.as.text))) {
            hearth_options_free(out);
            return hth_fail(err, HEARTH_NO_MEMORY, "no memory for option '%s'", table[i].name);
        }
        (*out)->values[i] = value;
    }
    return HEARTH_OK;
}

hearth_status hearth_options_set(hearth_options *options, const char *name, const char *value, hearth_error *err) {
    if (!options || !name) return hth_fail(err, HEARTH_BAD_ARGUMENT, "an option needs an options object and a name");
    size_t i = 0;
    HTH_TRY(find(name, &i, err));
    return set_value(options, i, value, err);
}

/* The value in force: what was set, or the table's default. */
static option_value in_force(const hearth_options *options, size_t i) {
    if (options && options->values[i].set) return options->values[i];
    option_value value = {.set = false};
    bool parsed = parse(&table[i], table[i].fallback, &value);
    assert(parsed && "a default in the table must be allowed by its own row");
    (void)parsed;
    return value;
}

/* ---- Environment and file ---- */

/* "HEARTH_CPU_MASK" to "cpu-mask"; false when a name of the table cannot look like this. */
static bool variable_to_name(const char *variable, size_t size, char *name) {
    if (size == 0 || size >= MAX_NAME) return false;
    for (size_t i = 0; i < size; i++) {
        char c = variable[i];
        if (c == '_') name[i] = '-';
        else if (c >= 'A' && c <= 'Z') name[i] = (char)(c | 0x20);
        else if (c >= '0' && c <= '9') name[i] = c;
        else return false;
    }
    name[size] = '\0';
    return true;
}

static bool is_script_variable(const char *variable, size_t size) {
    for (size_t i = 0; i < sizeof script_variables / sizeof *script_variables; i++)
        if (is_name(script_variables[i], variable, size)) return true;
    return false;
}

static hearth_status set_from_variable(hearth_options *options, const char *entry, hearth_error *err) {
    static const size_t prefix = sizeof "HEARTH_" - 1;
    size_t size = strcspn(entry, "=");
    if (entry[size] != '=' || entry[size + 1] == '\0' || is_script_variable(entry, size)) return HEARTH_OK;
    char name[MAX_NAME];
    hearth_error inner = {HEARTH_OK, ""};
    hearth_status status;
    if (variable_to_name(entry + prefix, size - prefix, name))
        status = hearth_options_set(options, name, entry + size + 1, &inner);
    else status = hth_fail(&inner, HEARTH_BAD_OPTION, "it names no option");
    if (status == HEARTH_OK) return HEARTH_OK;
    return hth_fail(err, status, "environment variable %.*s: %s", (int)least(size, MAX_NAME), entry, inner.text);
}

/* The folder of fetched models, when nothing has named one: where the system keeps caches. */
static hearth_status set_cache_folder(hearth_options *options, hearth_error *err) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *folder;
    int size;
    if (options->values[HTH_OPTION_CACHE].set) return HEARTH_OK;
    if (xdg && xdg[0]) size = asprintf(&folder, "%s/hearth", xdg);
    else if (home && home[0]) size = asprintf(&folder, "%s/.cache/hearth", home);
    else return HEARTH_OK;
    if (size < 0) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the name of a folder");
    hearth_status status = set_value(options, HTH_OPTION_CACHE, folder, err);
    free(folder);
    return status;
}

bool hth_environment_has_colours(void) {
    const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(refused && refused[0]) && terminal && terminal[0] && strcmp(terminal, "dumb") != 0;
}

hearth_status hearth_options_read_environment(hearth_options *options, hearth_error *err) {
    if (!options) return hth_fail(err, HEARTH_BAD_ARGUMENT, "no options object to read the environment into");
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, "HEARTH_", 7) == 0) HTH_TRY(set_from_variable(options, *entry, err));
    return set_cache_folder(options, err);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char *trim(char *s) {
    while (is_blank(*s)) s++;
    size_t n = strlen(s);
    while (n > 0 && is_blank(s[n - 1])) s[--n] = '\0';
    return s;
}

static void cut_comment(char *line) {
    for (char *s = line; *s; s++)
        if (*s == '#' && (s == line || is_blank(s[-1]))) {
            *s = '\0';
            return;
        }
}

static hearth_status set_from_line(hearth_options *options, char *line, hearth_error *err) {
    cut_comment(line);
    char *name = trim(line);
    if (!*name) return HEARTH_OK;
    char *equals = strchr(name, '=');
    if (!equals) return hearth_options_set(options, name, NULL, err);
    *equals = '\0';
    return hearth_options_set(options, trim(name), trim(equals + 1), err);
}

hearth_status hearth_options_read_file(hearth_options *options, const char *path, hearth_error *err) {
    if (!options || !path)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "an options file needs an options object and a path");
    FILE *file = fopen(path, "re");
    if (!file) {
        hearth_status status = errno == ENOENT ? HEARTH_NOT_FOUND : HEARTH_IO;
        return hth_fail(err, status, "options file '%s': %s", path, strerror(errno));
    }
    hearth_status status = HEARTH_OK;
    char line[MAX_LINE];
    for (int number = 1; status == HEARTH_OK && fgets(line, sizeof line, file); number++) {
        hearth_error inner = {HEARTH_OK, ""};
        size_t size = strlen(line);
        if (size == 0 || (line[size - 1] != '\n' && !feof(file)))
            status =
                hth_fail(&inner, HEARTH_BAD_OPTION, "the line is longer than %d bytes or holds a NUL", MAX_LINE - 2);
        else status = set_from_line(options, line, &inner);
        if (status != HEARTH_OK) hth_fail(err, status, "options file '%s', line %d: %s", path, number, inner.text);
    }
    if (status == HEARTH_OK && ferror(file))
        status = hth_fail(err, HEARTH_IO, "options file '%s': %s", path, strerror(errno));
    fclose(file);
    return status;
}

/* ---- Reading ---- */

static hearth_status get(const hearth_options *options, const char *name, unsigned types, const char *kind,
                         option_value *value, int *set, hearth_error *err) {
    if (!name) return hth_fail(err, HEARTH_BAD_ARGUMENT, "an option needs a name");
    size_t i = 0;
    HTH_TRY(find(name, &i, err));
    if (!(types >> table[i].type & 1)) return hth_fail(err, HEARTH_BAD_OPTION, "option '%s' is not %s", name, kind);
    *value = in_force(options, i);
    if (set) *set = value->set;
    return HEARTH_OK;
}

hearth_status hearth_options_get_int(const hearth_options *options, const char *name, int64_t *value, int *set,
                                     hearth_error *err) {
    option_value found;
    HTH_TRY(get(options, name, 1u << HEARTH_OPTION_INT | 1u << HEARTH_OPTION_BOOL, "a whole number or on/off", &found,
                set, err));
    *value = found.as.whole;
    return HEARTH_OK;
}

hearth_status hearth_options_get_float(const hearth_options *options, const char *name, double *value, int *set,
                                       hearth_error *err) {
    option_value found;
    HTH_TRY(get(options, name, 1u << HEARTH_OPTION_FLOAT, "a number with a fraction", &found, set, err));
    *value = found.as.real;
    return HEARTH_OK;
}

hearth_status hearth_options_get_text(const hearth_options *options, const char *name, const char **value, int *set,
                                      hearth_error *err) {
    option_value found;
    HTH_TRY(get(options, name, 1u << HEARTH_OPTION_TEXT | 1u << HEARTH_OPTION_CHOICE, "a text", &found, set, err));
    *value = found.set ? found.as.text : hth_option_find(name, strlen(name))->fallback;
    return HEARTH_OK;
}

size_t hearth_option_count(void) {
    return HTH_OPTION_COUNT;
}

const hearth_option_info *hearth_option_at(size_t i) {
    return i < HTH_OPTION_COUNT ? &table[i] : NULL;
}

int64_t hth_option_int(const hearth_options *options, hth_option id) {
    assert(id < HTH_OPTION_COUNT && table[id].type == HEARTH_OPTION_INT);
    return in_force(options, id).as.whole;
}

double hth_option_float(const hearth_options *options, hth_option id) {
    assert(id < HTH_OPTION_COUNT && table[id].type == HEARTH_OPTION_FLOAT);
    return in_force(options, id).as.real;
}

bool hth_option_bool(const hearth_options *options, hth_option id) {
    assert(id < HTH_OPTION_COUNT && table[id].type == HEARTH_OPTION_BOOL);
    return in_force(options, id).as.whole != 0;
}

const char *hth_option_text(const hearth_options *options, hth_option id) {
    assert(id < HTH_OPTION_COUNT && is_text(table[id].type));
    option_value value = in_force(options, id);
    return value.set ? value.as.text : table[id].fallback;
}

bool hth_option_is_set(const hearth_options *options, hth_option id) {
    assert(id < HTH_OPTION_COUNT);
    return options && options->values[id].set;
}
