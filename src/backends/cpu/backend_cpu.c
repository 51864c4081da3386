/* The CPU backend's face: tiers, threads, and the table that the engine calls through. */
#include "backends/cpu/backend_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/executable.h"
#include "base/cpu.h"

/* Each tier is filled over those before it in its row. */
static const struct {
    const char *name;
    void (*fill[3])(hth_kernels *t);
} tiers[] = {
#if defined(__x86_64__)
    {"avx512", {hth_kernels_ref, hth_kernels_avx2, hth_kernels_avx512}},
    {"avxvnni", {hth_kernels_ref, hth_kernels_avx2, hth_kernels_avxvnni}},
    {"avx2", {hth_kernels_ref, hth_kernels_avx2}},
#endif
    {"ref", {hth_kernels_ref}},
};

static bool has_tier(const hth_cpu *cpu, const char *name) {
    if (strcmp(name, "avx512") == 0) return cpu->avx512;
    if (strcmp(name, "avxvnni") == 0) return cpu->avxvnni;
    if (strcmp(name, "avx2") == 0) return cpu->avx2;
    return true;
}

static hearth_status choose_kernels(const hth_cpu *cpu, const char *wanted, hth_kernels *out, hearth_error *err) {
    bool automatic = strcmp(wanted, "auto") == 0;
#if defined(__x86_64__)
    if (!cpu->avx2)
        return hth_fail(err, HEARTH_UNSUPPORTED, "this machine (%s) lacks AVX2, FMA, F16C or BMI2, the least needed",
                        cpu->name);
#endif
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        if (!automatic && strcmp(tiers[i].name, wanted) != 0) continue;
        if (!has_tier(cpu, tiers[i].name)) {
            if (automatic) continue;
            break;
        }
        for (size_t k = 0; k < 3 && tiers[i].fill[k]; k++) tiers[i].fill[k](out);
        return HEARTH_OK;
    }
    return hth_fail(err, HEARTH_UNSUPPORTED, "this machine (%s) has no %s kernels", cpu->name, wanted);
}

static hearth_status start_pool(hth_backend *b, const hth_backend_config *config, const hth_cpu *cpu,
                                hearth_error *err) {
    int pins[HTH_POOL_MAX];
    b->threads = config->threads > 0 ? config->threads : cpu->threads;
    hth_pool_options options = {.threads = b->threads, .core_of = cpu->core_of, .spin_us = HTH_POOL_SPIN_US};
    if (config->pin) {
        int cores = hth_cpu_core_list(pins, HTH_POOL_MAX);
        if (b->threads > cores)
            return hth_fail(err, HEARTH_BAD_OPTION, "pin: %d threads do not fit %d physical cores", b->threads, cores);
        options.pin = pins;
    }
    return hth_pool_create(&b->pool, &options, err);
}

static void close_cpu(hth_backend **backend) {
    if (!*backend) return;
    hth_pool_free(&(*backend)->pool);
    free(*backend);
    *backend = NULL;
}

static hearth_status open_cpu(const hth_backend_config *config, hth_backend **out, hearth_error *err) {
    *out = NULL;
    hth_backend *b = calloc(1, sizeof *b);
    if (!b) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the CPU backend");
    hth_cpu cpu;
    hth_cpu_probe(&cpu);
    hearth_status status = choose_kernels(&cpu, config->kernels ? config->kernels : "auto", &b->kernels, err);
    if (status == HEARTH_OK) status = start_pool(b, config, &cpu, err);
    if (status != HEARTH_OK) {
        close_cpu(&b);
        return status;
    }
    *out = b;
    return HEARTH_OK;
}

static int threads_of(const hth_backend *b) {
    return b->threads;
}
static const char *kernels_of(const hth_backend *b) {
    return b->kernels.name;
}
static hearth_status peaks(hth_backend *b, uint64_t memory, hth_peaks *rows, size_t count, hearth_error *err) {
    return hth_cpu_peaks(b->pool, &b->kernels, memory, rows, count, err);
}
static const hth_plan *plan_of(const hth_executable *exe) {
    return &exe->plan;
}
static const float *logits_of(const hth_executable *exe) {
    return exe->logits;
}

static const char *kernel_name(const void *context, int op) {
    return ((const hth_executable *)context)->kernel_names[op];
}

static void restore(hth_executable *exe, int32_t mark_slot, int32_t state_slot) {
    memcpy(exe->state_base + (uint64_t)state_slot * exe->slot_bytes,
           exe->mark_base + (uint64_t)mark_slot * exe->slot_bytes, exe->slot_bytes);
}

static void copy_block(hth_executable *exe, int32_t from, int32_t to) {
    for (int i = 0; i < exe->n_kv; i++) {
        const hth_kv_pool *kv = &exe->kv[i];
        memcpy(kv->base + (uint64_t)to * kv->block_bytes, kv->base + (uint64_t)from * kv->block_bytes, kv->block_bytes);
    }
}

static bool has_state(const hth_executable *exe) {
    return exe->n_states > 0;
}

const hth_backend_type hth_backend_cpu = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_cpu,
    .threads = threads_of,
    .kernels = kernels_of,
    .peaks = peaks,
    .lower = hth_cpu_lower,
    .terms = hth_cpu_terms,
    .plan = plan_of,
    .kernel_name = kernel_name,
    .commit = hth_cpu_commit,
    .link = hth_cpu_link,
    .warm = hth_cpu_warm,
    .run = hth_cpu_run,
    .logits = logits_of,
    .work = hth_cpu_work,
    .clock = hth_cpu_clock,
    .restore = restore,
    .copy_block = copy_block,
    .has_state = has_state,
    .free = hth_cpu_free,
};
