/* What this process's page tables say about its memory. False where the system does not tell: before Linux 6.7, or
 * without /proc. Ranges are whole pages, but for the end. To look costs below a millisecond a gigabyte. */
#ifndef HTH_BASE_PAGEMAP_H
#define HTH_BASE_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many of the bytes huge pages map, be it a file or memory of our own. */
bool hth_huge_bytes(const void *base, size_t size, uint64_t *bytes);

/* How many would fault when they are touched. */
bool hth_absent_bytes(const void *base, size_t size, uint64_t *bytes);

#endif
