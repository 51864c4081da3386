/* How much memory this process may count on. */
#ifndef HTH_BASE_SYSMEM_H
#define HTH_BASE_SYSMEM_H

#include <stdint.h>

/* Bytes that the system has free or can free without swapping, or what the limits of the process's control groups leave
 * of them, by the same measure, where that is less. root: "" for the system's own files. */
uint64_t hth_memory_allowed_at(const char *root);

#endif
