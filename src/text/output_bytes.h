/* Bytes that grow at their end. */
#ifndef HTH_TEXT_OUTPUT_BYTES_H
#define HTH_TEXT_OUTPUT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct hth_bytes {
    char *data; /* NULL while nothing was ever appended */
    size_t size, capacity;
} hth_bytes;

/* Append `size` bytes; false, and nothing changed, when there is no memory. */
static inline bool hth_bytes_append(hth_bytes *b, const char *data, size_t size) {
    if (size == 0) return true;
    if (b->capacity - b->size < size) {
        if (size > SIZE_MAX / 4 || b->size > SIZE_MAX / 4) return false;
        size_t capacity = 2 * (b->size + size) + 64;
        char *grown = realloc(b->data, capacity);
        if (grown == NULL) return false;
        b->data = grown;
        b->capacity = capacity;
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return true;
}

static inline void hth_bytes_free(hth_bytes *b) {
    free(b->data);
    *b = (hth_bytes){0};
}

#endif
