/* Counts what a program allocates, and makes a chosen allocation fail. Works on the objects linked into a test program
 * (hearth_alloc_guard(target) in CMake wraps their calls), not on shared libraries. Not thread-safe. */
#ifndef HTH_TESTS_ALLOC_GUARD_H
#define HTH_TESTS_ALLOC_GUARD_H

#include <stddef.h>

/* Start counting from here: calls 0, peak = what is live now, nothing fails. */
void alloc_guard_reset(void);

/* Make the nth call from now (1 is the next) fail, once; 0: none. */
void alloc_guard_fail_at(long n);

long alloc_guard_calls(void);  /* since the reset */
size_t alloc_guard_live(void); /* bytes allocated and not freed */
size_t alloc_guard_peak(void); /* the most that was live at once since the reset, less what was live at the reset */

#endif
