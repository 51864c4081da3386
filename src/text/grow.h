/* Arrays that grow while a text is being compiled. */
#ifndef HTH_TEXT_GROW_H
#define HTH_TEXT_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Make room for `need` elements of `size` bytes at *array, which holds *capacity. False, with nothing changed, when the
 * system has no memory for them. */
static inline bool hth_grow(void *array, size_t *capacity, size_t need, size_t size) {
    void **pointer = (void **)array;
    if (need <= *capacity) return true;
    size_t wanted = *capacity < 16 ? 16 : *capacity + *capacity / 2, bytes;
    if (wanted < need) wanted = need;
    if (__builtin_mul_overflow(wanted, size, &bytes)) return false;
    void *grown = realloc(*pointer, bytes);
    if (grown == NULL) return false;
    *pointer = grown;
    *capacity = wanted;
    return true;
}

#endif
