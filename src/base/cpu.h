/* What the machine is: instruction sets, cores that this process may use, processor time that it is allowed. */
#ifndef HTH_BASE_CPU_H
#define HTH_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#define HTH_CPU_MAX 8192 /* logical CPUs looked at */

typedef struct hth_cpu {
    char name[64]; /* "AMD EPYC 7763"; "unknown" where the machine does not say */
    bool avx2;     /* AVX2, FMA, F16C and BMI2, and the system saves the registers: the least x86 tier */
    bool avxvnni;  /* avx2 and AVX-VNNI */
    bool avx512;   /* avx2 and AVX-512 F, BW, DQ, VL and VNNI */
    int logical;   /* logical CPUs in the affinity mask */
    int cores;     /* physical cores in the affinity mask */
    double quota;  /* CPUs that the control groups allow; 0: no limit */
    int threads;   /* default number of threads: cores, or fewer when the quota allows fewer; at least 1 */
    uint16_t
        core_of[HTH_CPU_MAX]; /* the first CPU of the same core, of those in the affinity mask; its own elsewhere */
} hth_cpu;

void hth_cpu_probe(hth_cpu *cpu);

/* Write the first logical CPU of each physical core of the affinity mask, in increasing order, at most `max` of them;
 * returns how many were written. What --pin binds workers to. */
int hth_cpu_core_list(int *cpus, int max);

/* The parts of the probe that read the system's files, under a root ("" for the system's own) so that a test can lay
 * out another machine's. `mask` has a bit a logical CPU; core_of (hth_cpu) may be NULL, and is whole where `max` is not
 * reached. */
typedef struct hth_cpu_mask {
    unsigned long bits[HTH_CPU_MAX / (8 * sizeof(unsigned long))];
} hth_cpu_mask;
int hth_cpu_core_list_at(const char *root, const hth_cpu_mask *mask, int *cpus, int max, uint16_t *core_of);
double hth_cpu_quota_at(const char *root);

#endif
