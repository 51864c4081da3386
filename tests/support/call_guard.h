/* Counts what calls into the system a stretch of a program makes while it is armed: allocations by anyone in the
 * process, the C library too, and mappings by the objects linked into it (hearth_call_guard(target) in CMake wraps
 * those). Any number of threads. Not with a sanitizer, which brings an allocator of its own. */
#ifndef HTH_TESTS_CALL_GUARD_H
#define HTH_TESTS_CALL_GUARD_H

#include <stdbool.h>

typedef struct call_counts {
    long allocations; /* malloc, calloc, realloc, aligned_alloc and the like */
    long frees;
    long mappings; /* mmap, munmap, mremap, mprotect, madvise, brk */
    long threads;  /* pthread_create */
    long faults;   /* page faults of the whole process, minor and major */
} call_counts;

void call_guard_arm(void);
call_counts call_guard_disarm(void); /* what has happened since it was armed */

/* Allocated and not freed, in bytes. */
long call_guard_live(void);

#endif
