/* A template, a zero byte, and a request; without a zero byte the template meets a request of its own kind. What must
 * hold: rendering ends within its limits, twice with the same result; segments cover the text; marks are in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hearth/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NEVER(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char usual[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"S \\u00e9\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
    "\"text\":\"U\"}]},{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"R\",\"tool_calls\":[{\"id\":"
    "\"abcdefgh1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1,\"b\":[true,2.5]}}}]},"
    "{\"role\":\"tool\",\"content\":\"T\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],"
    "\"add_generation_prompt\":true,\"bos_token\":\"<s>\"}";

static void check(const hearth_rendering *r) {
    size_t end = 0;
    for (size_t i = 0; i < r->n_segments; i++) {
        NEVER(r->segments[i].begin != end || r->segments[i].end <= end);
        end = r->segments[i].end;
    }
    NEVER(end != r->size);
    for (size_t i = 0; i < r->n_marks; i++) {
        NEVER(r->marks[i].offset > r->size || r->marks[i].message > r->n_messages);
        NEVER(i > 0 && (r->marks[i].offset < r->marks[i - 1].offset || r->marks[i].message <= r->marks[i - 1].message));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const hearth_template_options options = {.now = "2025-02-01T09:05:00",
                                             .max_steps = 100000,
                                             .max_ms = 60000,
                                             .max_memory = 32 << 20,
                                             .max_output = 1 << 20,
                                             .marks = 4};
    const char *text = (const char *)data, *zero = size > 0 ? memchr(text, 0, size) : NULL;
    size_t template_size = zero == NULL ? size : (size_t)(zero - text);
    const char *request = zero == NULL ? usual : zero + 1;
    size_t request_size = zero == NULL ? sizeof usual - 1 : size - template_size - 1;
    hearth_template *t = NULL;
    hearth_rendering *first = NULL, *second = NULL;
    hearth_error err = {HEARTH_OK, ""};
    if (hearth_template_create(text, template_size, &t, &err) != HEARTH_OK) {
        NEVER(t != NULL || err.status == HEARTH_OK);
        return 0;
    }
    hearth_status status = hearth_template_render(t, request, request_size, &options, &first, &err);
    hearth_status again = hearth_template_render(t, request, request_size, &options, &second, NULL);
    NEVER(status != again || (status == HEARTH_OK) != (first != NULL) || (first != NULL) != (second != NULL));
    if (first != NULL) {
        check(first);
        NEVER(first->size != second->size || memcmp(first->text, second->text, first->size) != 0);
    }
    hearth_rendering_free(&first);
    hearth_rendering_free(&second);
    hearth_template_free(&t);
    return 0;
}
