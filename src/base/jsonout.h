/* JSON written as it is produced: a report may hold a vocabulary, which is no reason to hold it twice in memory.
 *
 * Strings that are valid UTF-8 become JSON strings; other byte strings become {"hex": "ff00"}. Floats that JSON cannot
 * write become the strings "NaN", "Infinity" and "-Infinity". Inside an object each value has a key; inside an array
 * the key is NULL.
 */
#ifndef HTH_BASE_JSONOUT_H
#define HTH_BASE_JSONOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct hth_json {
    FILE *out;
    int depth;
    bool started;  /* the innermost container has a value already */
    bool one_line; /* set by the user of it: no line breaks inside */
} hth_json;

/* bracket: '{' or '['; close with '}' or ']'. Closing the outermost one ends the line. */
void hth_json_open(hth_json *json, const char *key, char bracket);
void hth_json_close(hth_json *json, char bracket);

void hth_json_bytes(hth_json *json, const char *key, const char *data, size_t size);
/* A value that is JSON already. */
void hth_json_value(hth_json *json, const char *key, const char *data, size_t size);
void hth_json_text(hth_json *json, const char *key, const char *text);
void hth_json_int(hth_json *json, const char *key, int64_t value);
void hth_json_uint(hth_json *json, const char *key, uint64_t value);
void hth_json_bool(hth_json *json, const char *key, bool value);
void hth_json_double(hth_json *json, const char *key, double value);
void hth_json_float(hth_json *json, const char *key, float value);

/* The shortest decimal text that reads back as the same value; at most 31 characters. */
void hth_format_double(char text[32], double value);
void hth_format_float(char text[32], float value);

#endif
