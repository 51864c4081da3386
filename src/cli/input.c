#include "cli/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/utf8.h"
#include "cli/say.h"
#include "cli/verbs.h"

/* ---- Text ---- */

static void free_text(hth_text *text) {
    free(text->data);
    *text = (hth_text){NULL, 0};
}

static int read_all(FILE *file, const char *name, size_t most, hth_text *out) {
    size_t capacity = 0;
    *out = (hth_text){NULL, 0};
    do {
        if (out->size == capacity) {
            capacity = capacity ? capacity * 2 : 1 << 16;
            char *grown = realloc(out->data, capacity);
            if (!grown) {
                free_text(out);
                return hth_out_of_memory();
            }
            out->data = grown;
        }
        errno = 0;
        out->size += fread(out->data + out->size, 1, capacity - out->size, file);
    } while (!feof(file) && !ferror(file) && out->size <= most);
    if (!ferror(file) && out->size <= most) return HTH_EXIT_OK;
    if (ferror(file)) hth_complain("cannot read %s: %s", name, strerror(errno));
    else hth_complain("%s has more than %zu bytes", name, most);
    free_text(out);
    return HTH_EXIT_FAILED;
}

int hth_read_text(const char *text, const char *file, size_t most, hth_text *out) {
    *out = (hth_text){NULL, 0};
    if (text && file) {
        hth_complain("the text comes from --prompt or from --file, not from both");
        return HTH_EXIT_USAGE;
    }
    if (text) {
        out->data = strdup(text);
        out->size = strlen(text);
        return out->data ? HTH_EXIT_OK : hth_out_of_memory();
    }
    if (!file || strcmp(file, "-") == 0) {
        if (isatty(STDIN_FILENO))
            hth_note("reading the text from the terminal; end it with Ctrl-D on a line of its own");
        return read_all(stdin, "standard input", most, out);
    }
    FILE *opened = fopen(file, "re");
    if (!opened) {
        hth_complain("cannot open %s: %s", file, strerror(errno));
        return HTH_EXIT_FAILED;
    }
    int status = read_all(opened, file, most, out);
    fclose(opened);
    return status;
}

int hth_read_text_or_file(const char *given, hth_text *out) {
    bool file = given[0] == '@' && given[1] != '@';
    int status = file ? hth_read_text(NULL, given + 1, HTH_MOST_TEXT, out)
                      : hth_read_text(given + (given[0] == '@'), NULL, HTH_MOST_TEXT, out);
    if (status != HTH_EXIT_OK) return status;
    if (file && out->size > 0 && out->data[out->size - 1] == '\n') out->size--;
    if (hth_utf8_is_valid(out->data, out->size)) return HTH_EXIT_OK;
    hth_complain("%s is not UTF-8", file ? given + 1 : "the text");
    free_text(out);
    return HTH_EXIT_FAILED;
}

/* ---- Numbers ---- */

static const char separators[] = " \t\r\n,[]";

/* One number at *at, which then stands behind it; false with a message when it is none or out of range. */
static bool parse_number(const char *what, const char **at, const char *end, int64_t min, int64_t max, int64_t *out) {
    char word[32];
    size_t size = 0;
    while (*at + size < end && !memchr(separators, (*at)[size], sizeof separators - 1)) size++;
    const char *start = *at;
    *at += size;
    if (size < sizeof word) {
        memcpy(word, start, size);
        word[size] = '\0';
        if (strlen(word) == size && hth_parse_int(word, false, out) && *out >= min && *out <= max) return true;
    }
    hth_complain("%s: '%.*s' is not a whole number from %lld to %lld", what, (int)(size < 40 ? size : 40), start,
                 (long long)min, (long long)max);
    return false;
}

static void free_numbers(int64_t **numbers, size_t *count) {
    free(*numbers);
    *numbers = NULL;
    *count = 0;
}

/* What lies at *at between numbers; false with a message when a comma in it has no number in front of it (*numbers is
 * how many there are since the last one) or behind it. */
static bool skip_separators(const char *what, const char **at, const char *end, size_t *numbers) {
    bool comma = false;
    for (; *at < end && memchr(separators, **at, sizeof separators - 1); ++*at) {
        if (**at != ',') continue;
        if (*numbers == 0) {
            hth_complain("%s: there is no number in front of a comma", what);
            return false;
        }
        *numbers = 0;
        comma = true;
    }
    if (!comma || *at < end) return true;
    hth_complain("%s: there is no number behind the last comma", what);
    return false;
}

static int parse_numbers(const char *what, const char *text, size_t size, int64_t min, int64_t max, int64_t **out,
                         size_t *count) {
    const char *end = text + size;
    size_t capacity = 0, since_comma = 0;
    *out = NULL;
    *count = 0;
    for (const char *s = text;;) {
        if (!skip_separators(what, &s, end, &since_comma)) {
            free_numbers(out, count);
            return HTH_EXIT_USAGE;
        }
        if (s == end) break;
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            int64_t *grown = realloc(*out, capacity * sizeof *grown);
            if (!grown) {
                free_numbers(out, count);
                return hth_out_of_memory();
            }
            *out = grown;
        }
        if (!parse_number(what, &s, end, min, max, &(*out)[*count])) {
            free_numbers(out, count);
            return HTH_EXIT_USAGE;
        }
        ++*count;
        since_comma++;
    }
    return HTH_EXIT_OK;
}

int hth_parse_numbers(const char *what, const char *text, int64_t min, int64_t max, int64_t **out, size_t *count) {
    int status = parse_numbers(what, text, strlen(text), min, max, out, count);
    if (status != HTH_EXIT_OK || *count > 0) return status;
    hth_complain("%s: no number is given", what);
    free_numbers(out, count);
    return HTH_EXIT_USAGE;
}

int hth_parse_tokens(const char *text, size_t size, hth_tokens *out) {
    int64_t *numbers;
    *out = (hth_tokens){NULL, 0};
    int status = parse_numbers("token ids", text, size, 0, INT32_MAX, &numbers, &out->count);
    if (status != HTH_EXIT_OK) return status;
    out->ids = malloc((out->count ? out->count : 1) * sizeof *out->ids);
    if (out->ids)
        for (size_t i = 0; i < out->count; i++) out->ids[i] = (hearth_token)numbers[i];
    free(numbers);
    return out->ids ? HTH_EXIT_OK : hth_out_of_memory();
}

int hth_encode(const hearth_tokenizer *tokenizer, hth_text text, unsigned flags, hth_tokens *out) {
    hearth_error err = {HEARTH_OK, ""};
    size_t capacity = text.size / 2 + 16; /* enough for most text; what is longer is encoded once more */
    for (int attempt = 0; attempt < 2; attempt++) {
        out->ids = malloc(capacity * sizeof *out->ids);
        if (!out->ids) return hth_out_of_memory();
        hearth_status status =
            hearth_tokenizer_encode(tokenizer, text.data, text.size, flags, out->ids, capacity, &out->count, &err);
        if (status == HEARTH_OK) return HTH_EXIT_OK;
        free(out->ids);
        out->ids = NULL;
        if (status != HEARTH_TOO_LONG) break;
        capacity = out->count;
    }
    return hth_complain_error(&err);
}
