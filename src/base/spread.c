#include "base/spread.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == HTH_SPREAD_CPUS / 8, "a mask of the kernel's is an array of words, a bit a CPU");

static bool take(hth_spread *s, int cpu) {
    const uint64_t bit = UINT64_C(1) << (cpu % 64);
    return (atomic_fetch_or(&s->taken[cpu / 64], bit) & bit) == 0;
}

int hth_spread_take(hth_spread *s, const uint64_t allowed[HTH_SPREAD_CPUS / 64], int cpu) {
    for (int i = 0; i < HTH_SPREAD_CPUS; i++) {
        const int at = (cpu + i) % HTH_SPREAD_CPUS;
        if ((allowed[at / 64] >> (at % 64) & 1) && take(s, at)) return at;
    }
    return -1;
}

void hth_spread_begin(hth_spread *s) {
    for (size_t i = 0; i < sizeof s->taken / sizeof *s->taken; i++) atomic_store(&s->taken[i], 0);
    const int cpu = sched_getcpu();
    if (cpu >= 0 && cpu < HTH_SPREAD_CPUS) (void)take(s, cpu);
}

void hth_spread_join(hth_spread *s) {
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= HTH_SPREAD_CPUS || take(s, cpu)) return;
    cpu_set_t mask, one;
    uint64_t allowed[HTH_SPREAD_CPUS / 64];
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    memcpy(allowed, &mask, sizeof allowed);
    const int free_one = hth_spread_take(s, allowed, cpu);
    if (free_one < 0) return;
    CPU_ZERO(&one);
    CPU_SET(free_one, &one);
    /* The first moves the thread at once, the second lets it move on. */
    if (sched_setaffinity(0, sizeof one, &one) == 0) (void)sched_setaffinity(0, sizeof mask, &mask);
}
