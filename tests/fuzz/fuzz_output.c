/* Three bytes of choices (format, options, how to cut), then an answer: parsed at once, in the pieces that the choices
 * say, and byte by byte. All must agree, and the result must hold together. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/output_log.h"
#include "text/output_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SIZE = 4096, WORK_PER_BYTE = 128 };

static void die(const char *what, const char *lines) {
    fprintf(stderr, "%s\n%s\n", what, lines);
    abort();
}

static void check(hearth_output_format format, unsigned options, const char *text, size_t size, const size_t *sizes,
                  size_t count, output_log *log) {
    static const char tools[] = "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"type\": \"string\"}, "
                                "\"b\": {\"type\": [\"integer\", \"null\"]}}}}]";
    hearth_output_options o = {
        .starts_in_reasoning = options & 1, .keep_reasoning = (options & 2) != 0, .max_calls = 8};
    hearth_output_parser *parser;
    hearth_output_result result;
    hearth_error err;
    if ((options & 4) != 0) o.tools = tools;
    if ((options & 4) != 0) o.tools_size = sizeof tools - 1;
    if (hearth_output_parser_create(format, &o, &parser, &err) != HEARTH_OK) die(err.text, "");
    if (output_parse(parser, text, size, sizes, count, log, &result, &err) != HEARTH_OK) die(err.text, "");
    if (log->wrong != NULL) die(log->wrong, log->lines.data);
    const char *wrong = output_check(format, &result);
    if (wrong != NULL) die(wrong, log->lines.data);
    if (parser->work > WORK_PER_BYTE * (size + 64)) die("too much work", log->lines.data);
    hearth_output_parser_free(&parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static size_t ones[MAX_SIZE], some[64];
    output_log logs[3] = {0};
    if (size < 3 || size > MAX_SIZE) return 0;
    hearth_output_format format = (hearth_output_format)(data[0] % HEARTH_OUTPUT_FORMAT_COUNT);
    const char *text = (const char *)data + 3;
    size -= 3;
    for (size_t i = 0; i < MAX_SIZE; i++) ones[i] = 1;
    for (size_t i = 0; i < 64; i++) some[i] = (data[2] * (i + 1) ^ i) % 23;
    check(format, data[1], text, size, NULL, 0, &logs[0]);
    check(format, data[1], text, size, some, 64, &logs[1]);
    check(format, data[1], text, size, ones, size, &logs[2]);
    for (int i = 1; i < 3; i++) {
        if (strcmp(logs[0].lines.data, logs[i].lines.data) == 0) continue;
        die("at once:", logs[0].lines.data);
    }
    for (int i = 0; i < 3; i++) output_log_free(&logs[i]);
    return 0;
}
