#include "base/strmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

hearth_status hth_strmap_init(hth_strmap *map, size_t capacity, hearth_error *err) {
    assert(capacity <= (size_t)1 << 31);
    *map = (hth_strmap){.key = hth_hash_new_key(), .capacity = capacity};
    size_t slots = 8;
    while (slots < capacity * 2) slots *= 2; /* at most half full: a probe sequence stays short and always ends */
    map->slots = calloc(slots, sizeof *map->slots);
    if (!map->slots) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for an index of %zu names", capacity);
    map->mask = slots - 1;
    return HEARTH_OK;
}

void hth_strmap_free(hth_strmap *map) {
    free(map->slots);
    *map = (hth_strmap){0};
}

/* The slot that holds the string, or the free one where it belongs. */
static hth_strmap_slot *probe(const hth_strmap *map, const char *data, size_t size) {
    size_t i = (size_t)hth_hash(map->key, data, size) & map->mask;
    for (;; i = (i + 1) & map->mask) {
        hth_strmap_slot *slot = &map->slots[i];
        if (!slot->data || (slot->size == size && memcmp(slot->data, data, size) == 0)) return slot;
    }
}

bool hth_strmap_add(hth_strmap *map, const char *data, size_t size, uint32_t value, uint32_t *existing) {
    assert(data && size <= UINT32_MAX && map->slots);
    hth_strmap_slot *slot = probe(map, data, size);
    if (slot->data) {
        if (existing) *existing = slot->value;
        return false;
    }
    assert(map->count < map->capacity);
    map->count++;
    *slot = (hth_strmap_slot){data, (uint32_t)size, value};
    return true;
}

bool hth_strmap_find(const hth_strmap *map, const char *data, size_t size, uint32_t *value) {
    if (!map->slots) return false;
    const hth_strmap_slot *slot = probe(map, data, size);
    if (!slot->data) return false;
    *value = slot->value;
    return true;
}
