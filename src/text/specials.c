#include "text/specials.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    const hth_special *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    if (order != 0) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void hth_specials_index(hth_specials *specials) {
    hth_special *list = specials->list;
    if (specials->count > 0) qsort(list, specials->count, sizeof *list, compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < specials->count; i++) {
        bool again = kept > 0 && list[kept - 1].size == list[i].size &&
                     memcmp(list[kept - 1].text, list[i].text, list[i].size) == 0;
        if (!again) kept++;
        list[kept - 1] = list[i];
    }
    specials->count = kept;
    uint32_t at = 0;
    for (unsigned b = 0; b <= 256; b++) {
        while (at < kept && (unsigned char)list[at].text[0] < b) at++;
        specials->first[b] = at;
    }
}

/* The first of list[low, high), all longer than `depth`, whose byte at `depth` is at least `byte`. */
static uint32_t lower_bound(const hth_special *list, uint32_t low, uint32_t high, uint32_t depth, unsigned byte) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((unsigned char)list[middle].text[depth] < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

const hth_special *hth_specials_at(const hth_specials *specials, const char *bytes, size_t size, bool control) {
    const unsigned char *text = (const unsigned char *)bytes;
    const hth_special *list = specials->list, *best = NULL;
    uint32_t low = specials->first[text[0]], high = specials->first[text[0] + 1];
    for (uint32_t depth = 1; low < high; depth++) {
        /* All of [low, high) begin with the `depth` bytes seen. */
        if (list[low].size == depth) {
            if (control || !list[low].control) best = &list[low];
            low++;
        }
        if (depth == size) break;
        low = lower_bound(list, low, high, depth, text[depth]);
        high = lower_bound(list, low, high, depth, text[depth] + 1u);
    }
    return best;
}

const hth_special *hth_specials_find(const hth_specials *specials, const char *text, size_t size, size_t from,
                                     bool control, size_t *begin) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (specials->count == 0) return NULL;
    for (size_t at = from; at < size; at++) {
        if (specials->first[bytes[at]] == specials->first[bytes[at] + 1]) continue;
        const hth_special *found = hth_specials_at(specials, text + at, size - at, control);
        if (found == NULL) continue;
        *begin = at;
        return found;
    }
    return NULL;
}
