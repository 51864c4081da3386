/* A map from byte strings to 32-bit numbers: open addressing under a keyed hash, of a capacity fixed when it is made.
 *
 * The strings are not copied: they must outlive the map. A zeroed hth_strmap is an empty map that holds nothing.
 */
#ifndef HTH_BASE_STRMAP_H
#define HTH_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

typedef struct hth_strmap_slot {
    const char *data; /* NULL: the slot is free */
    uint32_t size;
    uint32_t value;
} hth_strmap_slot;

typedef struct hth_strmap {
    hth_hash_key key;
    hth_strmap_slot *slots;
    size_t mask;     /* slots - 1 */
    size_t capacity; /* strings it may hold */
    size_t count;
} hth_strmap;

/* Make room for `capacity` strings (at most 2^31). */
hearth_status hth_strmap_init(hth_strmap *map, size_t capacity, hearth_error *err);

/* Zero the map and free its slots. */
void hth_strmap_free(hth_strmap *map);

/* Add a string; at most `capacity` of them, each shorter than 4 GiB, data not NULL. When it is there already, nothing
 * changes, *existing (if not NULL) gets its value, and the answer is false. */
bool hth_strmap_add(hth_strmap *map, const char *data, size_t size, uint32_t value, uint32_t *existing);

/* False, with *value left alone, when the string is not there. */
bool hth_strmap_find(const hth_strmap *map, const char *data, size_t size, uint32_t *value);

#endif
