#include "base/jsonout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Containers nested this deep are written on one line. */
#define INLINE_DEPTH 2

/* Valid UTF-8 as a JSON string; what could reach a terminal as a control is escaped, though JSON would allow it. */
static void write_string(FILE *out, const char *data, size_t size) {
    putc('"', out);
    for (size_t i = 0; i < size;) {
        uint32_t c = 0;
        int n = hth_utf8_decode(data + i, size - i, &c);
        if (c == '"' || c == '\\') fprintf(out, "\\%c", (char)c);
        else if (c == '\n') fputs("\\n", out);
        else if (hth_is_control(c)) fprintf(out, "\\u%04" PRIx32, c);
        else fwrite(data + i, 1, (size_t)n, out);
        i += (size_t)n;
    }
    putc('"', out);
}

static void next_line(hth_json *json) {
    fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

static void begin_value(hth_json *json, const char *key) {
    if (json->started) putc(',', json->out);
    if (json->depth > 0 && json->depth <= INLINE_DEPTH && !json->one_line) next_line(json);
    else if (json->started) putc(' ', json->out);
    json->started = true;
    if (!key) return;
    write_string(json->out, key, strlen(key)); /* keys are our own */
    fputs(": ", json->out);
}

void hth_json_open(hth_json *json, const char *key, char bracket) {
    begin_value(json, key);
    putc(bracket, json->out);
    json->depth++;
    json->started = false;
}

void hth_json_close(hth_json *json, char bracket) {
    bool any = json->started;
    json->depth--;
    if (any && json->depth < INLINE_DEPTH && !json->one_line) next_line(json);
    putc(bracket, json->out);
    json->started = true;
    if (json->depth == 0) putc('\n', json->out);
}

void hth_json_bytes(hth_json *json, const char *key, const char *data, size_t size) {
    begin_value(json, key);
    if (hth_utf8_is_valid(data, size)) {
        write_string(json->out, data, size);
        return;
    }
    fputs("{\"hex\": \"", json->out);
    for (size_t i = 0; i < size; i++) fprintf(json->out, "%02x", (unsigned char)data[i]);
    fputs("\"}", json->out);
}

void hth_json_value(hth_json *json, const char *key, const char *data, size_t size) {
    begin_value(json, key);
    fwrite(data, 1, size, json->out);
}

void hth_json_text(hth_json *json, const char *key, const char *text) {
    hth_json_bytes(json, key, text, strlen(text));
}

void hth_json_int(hth_json *json, const char *key, int64_t value) {
    begin_value(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void hth_json_uint(hth_json *json, const char *key, uint64_t value) {
    begin_value(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void hth_json_bool(hth_json *json, const char *key, bool value) {
    begin_value(json, key);
    fputs(value ? "true" : "false", json->out);
}

void hth_format_double(char text[32], double value) {
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void hth_format_float(char text[32], float value) {
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, 32, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) return;
    }
}

/* `text` is what printf makes of a finite value. */
static void write_number(hth_json *json, const char *key, double value, const char *text) {
    if (isfinite(value)) {
        begin_value(json, key);
        fputs(text, json->out);
    } else {
        hth_json_text(json, key, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    }
}

void hth_json_double(hth_json *json, const char *key, double value) {
    char text[32];
    hth_format_double(text, value);
    write_number(json, key, value, text);
}

void hth_json_float(hth_json *json, const char *key, float value) {
    char text[32];
    hth_format_float(text, value);
    write_number(json, key, (double)value, text);
}
