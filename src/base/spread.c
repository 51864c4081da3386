#include "base/spread.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == HTH_SPREAD_CPUS / 8, "a mask of the kernel's is an array of words, a bit a CPU");

static bool take(_Atomic uint64_t *taken, int i) {
    const uint64_t bit = UINT64_C(1) << (i % 64);
    return (atomic_fetch_or(&taken[i / 64], bit) & bit) == 0;
}

static bool take_core(hth_spread *s, int cpu) {
    return take(s->cores, s->core_of[cpu]) && take(s->cpus, cpu);
}

void hth_spread_init(hth_spread *s, const uint16_t *core_of) {
    for (int i = 0; i < HTH_SPREAD_CPUS; i++)
        s->core_of[i] = core_of && core_of[i] < HTH_SPREAD_CPUS ? core_of[i] : (uint16_t)i;
}

int hth_spread_take(hth_spread *s, const uint64_t allowed[HTH_SPREAD_WORDS], int cpu) {
    for (int i = 0; i < 2 * HTH_SPREAD_CPUS; i++) {
        const int at = (cpu + i) % HTH_SPREAD_CPUS;
        if (!(allowed[at / 64] >> (at % 64) & 1)) continue;
        if (i < HTH_SPREAD_CPUS ? take_core(s, at) : take(s->cpus, at)) return at;
    }
    return -1;
}

void hth_spread_begin(hth_spread *s) {
    for (int i = 0; i < HTH_SPREAD_WORDS; i++) {
        atomic_store(&s->cpus[i], 0);
        atomic_store(&s->cores[i], 0);
    }
    const int cpu = sched_getcpu();
    if (cpu >= 0 && cpu < HTH_SPREAD_CPUS) (void)take_core(s, cpu);
}

/* Move the calling thread to `cpu` at once, and let it move on from there. What sched_getaffinity tells is `before`
 * also where nobody has bound the thread; to set that would bind it to what its control group has now, whatever that
 * group is given later. So all CPUs are set first, which leaves those of the group. */
static void move_to(int cpu, const cpu_set_t *before) {
    cpu_set_t one, all, after;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    memset(&all, 0xFF, sizeof all);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return;
    if (sched_setaffinity(0, sizeof all, &all) == 0 && sched_getaffinity(0, sizeof after, &after) == 0 &&
        CPU_EQUAL(&after, before))
        return;
    (void)sched_setaffinity(0, sizeof *before, before);
}

void hth_spread_join(hth_spread *s) {
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= HTH_SPREAD_CPUS || take_core(s, cpu)) return;
    cpu_set_t mask;
    uint64_t allowed[HTH_SPREAD_WORDS];
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    memcpy(allowed, &mask, sizeof allowed);
    const int free_one = hth_spread_take(s, allowed, cpu);
    if (free_one >= 0 && free_one != cpu) move_to(free_one, &mask);
}
