/* A bump arena: the same carving code first counts and then carves.
 *
 * A plan is a function that takes an arena and reserves everything it needs from it. It runs twice: over a counting
 * arena (no memory behind it, every pointer it returns is NULL), which says how many bytes are needed, and over a
 * mapped one. Both runs must ask for the same things in the same order; hth_arena_map's owner asserts `used == planned`
 * after the second.
 *
 *     base                                                         base + capacity
 *     | object | gap | object | gap |  ...  | object | gap |       |
 *              ^ at least HTH_ARENA_GAP bytes that belong to nobody: under AddressSanitizer they are poisoned,
 *                and they are there in every build, so that a plan has the same size in all of them.
 */
#ifndef HTH_BASE_ARENA_H
#define HTH_BASE_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/thread.h"

#define HTH_ARENA_ALIGN 64 /* the least alignment an object gets: a cache line */
#define HTH_ARENA_GAP   64

typedef struct hth_arena {
    unsigned char *base; /* NULL: counting */
    size_t capacity;     /* SIZE_MAX when counting */
    size_t used;         /* bytes reserved so far, gaps included */
    bool overflow;       /* a reservation did not fit in a size_t (counting) or in the capacity */
    size_t mapped;       /* bytes of the mapping behind base; 0 when the arena owns none */
} hth_arena;

/* An arena that only counts. */
hth_arena hth_arena_counting(void);

/* An arena over memory of the caller's, which stays his. base is aligned to HTH_ARENA_ALIGN. The caller calls
 * hth_arena_over_end before he uses the memory for something else. */
hth_arena hth_arena_over(void *base, size_t bytes);
void hth_arena_over_end(hth_arena *arena);

/* Reserve `bytes` at a multiple of `align` (a power of two up to 4096; 0 means HTH_ARENA_ALIGN). The memory is as the
 * mapping left it: zero the first time. NULL when counting, and when the reservation does not fit; then `overflow` is
 * set and stays set. Zero bytes are a valid request. */
void *hth_arena_take(hth_arena *arena, size_t bytes, size_t align);

/* hth_arena_take(count * size), the product checked. */
void *hth_arena_take_array(hth_arena *arena, size_t count, size_t size, size_t align);

#define HTH_ARENA_NEW(arena, type, count) ((type *)hth_arena_take_array((arena), (count), sizeof(type), _Alignof(type)))

/* Map `bytes` of anonymous memory, on huge pages where the system gives them, with every page present before the call
 * returns. On failure HEARTH_NO_MEMORY, the text naming `what` ("the KV pool"), and *arena is empty. */
hearth_status hth_arena_map(hth_arena *arena, size_t bytes, const char *what, hearth_error *err);

/* Who makes pages present, and until when. */
typedef struct hth_arena_help {
    hth_pool *pool;          /* its threads share the work; NULL: the calling thread alone */
    const atomic_bool *stop; /* HEARTH_CANCELLED when it becomes true on the way; NULL: never */
} hth_arena_help;

/* The same with help. */
hearth_status hth_arena_map_with(hth_arena *arena, size_t bytes, hth_arena_help help, const char *what,
                                 hearth_error *err);

/* The same without memory behind it: pages come as they are written. */
hearth_status hth_arena_reserve(hth_arena *arena, size_t bytes, const char *what, hearth_error *err);

/* Give the mapping back and empty *arena. An empty arena and one that owns no mapping are allowed. */
void hth_arena_unmap(hth_arena *arena);

#endif
