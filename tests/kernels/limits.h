/* What this machine can do at most, measured in the same run as the rates that are compared with it. */
#ifndef HEARTH_TESTS_KERNELS_LIMITS_H
#define HEARTH_TESTS_KERNELS_LIMITS_H

#include "kernels/check.h"

/* Bytes read a second from memory far larger than the caches, GB/s, with the check's threads. */
double limit_read_gbs(check *c);
/* int8 multiply-adds of the tier's instruction set on registers, 2 operations each, GOP/s: maddubs + madd + add for
 * avx2, dpbusd above. 0 for ref. */
double limit_int8_gops(check *c);

#endif
