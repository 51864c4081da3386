/* What this machine can do at most, measured in the same run as the rates that are compared with it: on the check's
 * threads, in the instructions of the tier under test. */
#ifndef HEARTH_TESTS_KERNELS_LIMITS_H
#define HEARTH_TESTS_KERNELS_LIMITS_H

#include "kernels/check.h"

double limit_read_gbs(check *c);     /* bytes read a second from memory far larger than the caches, GB/s */
double limit_int8_gops(check *c);    /* int8 multiply-adds, 2 operations each, GOP/s */
double limit_float_gflops(check *c); /* float32 multiply-adds, 2 operations each, GFLOP/s */

#endif
