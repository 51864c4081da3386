/* How much memory this process may count on. */
#ifndef HTH_BASE_SYSMEM_H
#define HTH_BASE_SYSMEM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that the system has free or can free without swapping, or the least limit of the process's control groups where
 * that is less. root: "" for the system's own files. */
uint64_t hth_memory_allowed_at(const char *root);

/* Bytes of the mappings in base .. base + size that huge pages map, of files or not; 0 where the system does not tell.
 * Walks their page tables: some milliseconds a gigabyte on small pages. */
uint64_t hth_memory_huge_bytes(const void *base, size_t size);

#endif
