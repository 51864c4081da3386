/* Threads that compute together, each on a CPU of its own.
 *
 * A thread that wakes from sleep may be put on the CPU of another that it is going to compute with, while a CPU beside
 * is idle: a kernel that has just seen both busy does not look for one, and then leaves two threads that hand a CPU to
 * each other where they are for some ten milliseconds, since they look warm there. That is a first call at half speed.
 * So where one of them has slept, each takes the CPU it finds itself on, and who comes second moves to one that nobody
 * has taken. Nothing is bound: a thread's affinity mask is what it was before.
 */
#ifndef HTH_BASE_SPREAD_H
#define HTH_BASE_SPREAD_H

#include <stdatomic.h>
#include <stdint.h>

#define HTH_SPREAD_CPUS 1024 /* as many as a cpu_set_t holds */

typedef struct hth_spread {
    _Atomic uint64_t taken[HTH_SPREAD_CPUS / 64]; /* a bit a CPU */
} hth_spread;

/* Forget who was where; the calling thread takes its CPU. Before others join. */
void hth_spread_begin(hth_spread *spread);

/* The calling thread takes its CPU or, when that is taken, moves to one of those its affinity mask allows that is not.
 * Where there is none it stays. */
void hth_spread_join(hth_spread *spread);

/* Take `cpu`, or else the next free one upwards of it, around the end, of those in `allowed` (a bit a CPU): which, or
 * -1 when none is free. */
int hth_spread_take(hth_spread *spread, const uint64_t allowed[HTH_SPREAD_CPUS / 64], int cpu);

#endif
