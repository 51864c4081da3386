#include "base/cpu.h"

#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/cgroup.h"

/* ---- Cores ---- */

#define WORD_BITS ((int)(8 * sizeof(unsigned long)))

static bool mask_has(const hth_cpu_mask *mask, int cpu) {
    return cpu < HTH_CPU_MAX && mask->bits[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1;
}

static void mask_read(hth_cpu_mask *mask) {
    memset(mask, 0, sizeof *mask);
    if (sched_getaffinity(0, sizeof *mask, (cpu_set_t *)mask) == 0) return;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < online && i < HTH_CPU_MAX; i++) mask->bits[i / WORD_BITS] |= 1ul << (i % WORD_BITS);
}

static int mask_count(const hth_cpu_mask *mask) {
    int count = 0;
    for (size_t i = 0; i < sizeof mask->bits / sizeof mask->bits[0]; i++) count += __builtin_popcountl(mask->bits[i]);
    return count;
}

/* The first CPU in the mask that a list such as "0-3,64" names, if it is below `cpu`; else `cpu`. What cannot be parsed
 * names nobody. */
static int first_sibling(const char *list, int cpu, const hth_cpu_mask *mask) {
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list) return cpu;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        for (long i = first < 0 ? 0 : first; i <= last && i < cpu; i++)
            if (mask_has(mask, (int)i)) return (int)i;
        if (*end != ',') return cpu;
        list = end + 1;
    }
    return cpu;
}

int hth_cpu_core_list_at(const char *root, const hth_cpu_mask *mask, int *cpus, int max, uint16_t *core_of) {
    int count = 0;
    for (int cpu = 0; core_of && cpu < HTH_CPU_MAX; cpu++) core_of[cpu] = (uint16_t)cpu;
    for (int cpu = 0; cpu < HTH_CPU_MAX && count < max; cpu++) {
        if (!mask_has(mask, cpu)) continue;
        char path[PATH_MAX], list[512];
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, cpu);
        const int first = hth_read_line(path, list, sizeof list) ? first_sibling(list, cpu, mask) : cpu;
        if (core_of) core_of[cpu] = (uint16_t)first;
        if (first == cpu) cpus[count++] = cpu;
    }
    return count;
}

int hth_cpu_core_list(int *cpus, int max) {
    hth_cpu_mask mask;
    mask_read(&mask);
    return hth_cpu_core_list_at("", &mask, cpus, max, NULL);
}

/* ---- Control groups ---- */

static double smaller_quota(double a, double b) {
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* The quota written in one group's directory; 0: none. */
static double group_quota(const char *dir, bool v2) {
    char path[PATH_MAX + 32], line[128];
    long long quota = 0, period = 0;
    if (v2) {
        snprintf(path, sizeof path, "%s/cpu.max", dir);
        if (!hth_read_line(path, line, sizeof line) || sscanf(line, "%lld %lld", &quota, &period) != 2) return 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
        if (!hth_read_line(path, line, sizeof line) || sscanf(line, "%lld", &quota) != 1) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
        if (!hth_read_line(path, line, sizeof line) || sscanf(line, "%lld", &period) != 1) return 0;
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

typedef struct least_quota {
    double cpus;
} least_quota;

static void take_quota(void *context, const char *dir, bool v2) {
    least_quota *least = context;
    least->cpus = smaller_quota(group_quota(dir, v2), least->cpus);
}

double hth_cpu_quota_at(const char *root) {
    least_quota least = {0};
    hth_cgroup_visit(root, "cpu", take_quota, &least);
    return least.cpus;
}

/* ---- Instruction sets ---- */

#if defined(__x86_64__)
static bool bit(unsigned word, int n) {
    return word >> n & 1;
}

/* Which register files the system saves on a context switch. */
static uint64_t saved_state(void) {
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static void probe_isa(hth_cpu *cpu) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    bool fma = bit(c, 12), osxsave = bit(c, 27), avx = bit(c, 28), f16c = bit(c, 29);
    if (!osxsave || !avx) return;
    uint64_t saved = saved_state();
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    cpu->avx2 = fma && f16c && bit(b, 5) && bit(b, 8);
    /* F (16), DQ (17), BW (30), VL (31) in ebx, VNNI (11) in ecx; opmask and both halves of the zmm registers saved. */
    bool f512 = bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31) && bit(c, 11);
    cpu->avx512 = cpu->avx2 && f512 && (saved & 0xE6) == 0xE6;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) cpu->avxvnni = cpu->avx2 && bit(a, 4);
}

static void probe_name(char *name) {
    unsigned words[12];
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]))
            return;
    char brand[sizeof words + 1] = {0};
    memcpy(brand, words, sizeof words);
    char *start = brand + strspn(brand, " "), *end = start + strlen(start);
    while (end > start && end[-1] == ' ') *--end = 0;
    if (*start) memcpy(name, start, strlen(start) + 1);
}
#else
static void probe_isa(hth_cpu *cpu) {
    (void)cpu;
}
static void probe_name(char *name) {
    (void)name;
}
#endif

void hth_cpu_probe(hth_cpu *cpu) {
    memset(cpu, 0, sizeof *cpu);
    memcpy(cpu->name, "unknown", sizeof "unknown");
    probe_name(cpu->name);
    probe_isa(cpu);
    hth_cpu_mask mask;
    mask_read(&mask);
    int cpus[HTH_CPU_MAX];
    cpu->logical = mask_count(&mask);
    cpu->cores = hth_cpu_core_list_at("", &mask, cpus, HTH_CPU_MAX, cpu->core_of);
    cpu->quota = hth_cpu_quota_at("");
    /* A quota of 2.5 CPUs runs two threads at full rate; a third would have all of them throttled together. */
    cpu->threads = cpu->quota > 0 && cpu->quota < cpu->cores ? (int)cpu->quota : cpu->cores;
    if (cpu->threads < 1) cpu->threads = 1;
}
