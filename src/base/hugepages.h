/* Which memory huge pages map. */
#ifndef HTH_BASE_HUGEPAGES_H
#define HTH_BASE_HUGEPAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many of the `size` bytes from `base` (both whole pages, but for the end) huge pages map, be it a file or memory
 * of our own. False where the system does not tell: before Linux 6.7, or without /proc. Walks the page tables of the
 * range alone: below a millisecond a gigabyte of small pages. */
bool hth_huge_bytes(const void *base, size_t size, uint64_t *bytes);

#endif
