/* What one reading or rendering of a template may use: memory, steps and time, each with a limit, and the first error.
 *
 * Everything made on the way lives in chunks that are freed together. Nothing here aborts: what does not fit fails the
 * work, whose functions then answer NULL or false, and whose error stays the first one. */
#ifndef HTH_TEXT_TEMPLATE_WORK_H
#define HTH_TEXT_TEMPLATE_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct hth_work_chunk hth_work_chunk;

typedef struct hth_work {
    hth_work_chunk *chunks; /* newest first; small objects are carved from `open` */
    hth_work_chunk *open;
    size_t bytes, max_bytes; /* asked of the system */
    uint64_t steps, max_steps;
    uint64_t deadline_ns; /* of the monotonic clock; 0: none */
    uint64_t next_look;   /* at this many steps the clock is read again */
    hearth_status status; /* of the first failure */
    char text[sizeof((hearth_error *)0)->text];
} hth_work;

/* max_ms 0: no limit of time. */
void hth_work_begin(hth_work *w, size_t max_bytes, uint64_t max_steps, uint64_t max_ms);
/* Frees all that was made; the limits, counts and the error stay. */
void hth_work_end(hth_work *w);

/* Aligned to 16 bytes, not zeroed; NULL has failed the work. Sizes are sums and products of numbers that were checked
 * against the work's limits, or come with their factors. */
void *hth_work_take(hth_work *w, size_t bytes);
void *hth_work_take_array(hth_work *w, size_t count, size_t size);
/* A larger place with what was in `p`, of which `old` bytes had been asked for; large places move without being held
 * twice. `p` may be NULL. NULL has failed the work, and p is as it was. */
void *hth_work_grow(hth_work *w, void *p, size_t old, size_t bytes);

#define HTH_WORK_NEW(w, type) ((type *)hth_work_take((w), sizeof(type)))

/* Make room in an array for one more; false has failed the work, and the array is as it was. */
#define HTH_WORK_ROOM(w, items, count, capacity)                                                                       \
    ((count) < (capacity) ||                                                                                           \
     ((items) = hth_work_larger((w), (items), &(capacity), sizeof *(items)), (count) < (capacity)))
void *hth_work_larger(hth_work *w, void *items, uint32_t *capacity, size_t size);

/* Charge work done or about to be done. False once a limit is passed. */
bool hth_work_charge(hth_work *w, uint64_t steps);

/* Fail the work, unless it has failed already. Always false, so that a caller can return it. */
bool hth_work_fail(hth_work *w, hearth_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Hand the failure out. HEARTH_OK when there is none. */
hearth_status hth_work_report(const hth_work *w, hearth_error *err);

#endif
