/* Threads that compute together, each on a core of its own, or at least on a CPU.
 *
 * A thread that wakes from sleep may be put on the CPU of another that it is going to compute with, while a CPU beside
 * is idle: a kernel that has just seen both busy does not look for one, and then leaves two threads that hand a CPU to
 * each other where they are for some ten milliseconds, since they look warm there. That is a first call at half speed.
 * So where one of them has slept, each takes the CPU it finds itself on, and who comes second to a core moves to one
 * that nobody has taken. Nothing is bound: a thread may run where it might before.
 */
#ifndef HTH_BASE_SPREAD_H
#define HTH_BASE_SPREAD_H

#include <stdatomic.h>
#include <stdint.h>

#define HTH_SPREAD_CPUS  1024 /* as many as a cpu_set_t holds */
#define HTH_SPREAD_WORDS (HTH_SPREAD_CPUS / 64)

typedef struct hth_spread {
    _Atomic uint64_t cpus[HTH_SPREAD_WORDS];  /* taken, a bit a CPU */
    _Atomic uint64_t cores[HTH_SPREAD_WORDS]; /* the same of cores: a core has the bit of its first CPU */
    uint16_t core_of[HTH_SPREAD_CPUS];        /* that CPU, for each */
} hth_spread;

/* core_of: the first CPU of each CPU's core [HTH_SPREAD_CPUS]. NULL: each CPU is a core of its own. */
void hth_spread_init(hth_spread *spread, const uint16_t *core_of);

/* Forget who was where; the calling thread takes its CPU. Before others join. */
void hth_spread_begin(hth_spread *spread);

/* The calling thread takes its CPU or, when that core is taken, moves to a CPU that its affinity mask allows and whose
 * core is not; else to one that is not taken itself. Where there is none it stays. */
void hth_spread_join(hth_spread *spread);

/* Take the first CPU upwards of `cpu`, around the end, of those in `allowed` (a bit a CPU) whose core is free; when no
 * core is, the first that is free itself. Which; -1: none is. */
int hth_spread_take(hth_spread *spread, const uint64_t allowed[HTH_SPREAD_WORDS], int cpu);

#endif
