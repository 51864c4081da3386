/* What this machine can do at most, for 1..N threads and each instruction set: bytes read a second, int8 dot products,
 * float multiply-adds. The same measurement as in `hearth bench` and the kernel benches.
 *
 *   limits [--threads N] [--json]     N: as many as the engine would take by itself
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

enum { MAX_THREADS = 64 };
#define MEMORY ((uint64_t)4 << 30)

typedef struct flags {
    int threads; /* 0: the default */
    bool json;
} flags;

static bool parse(int argc, char **argv, flags *f) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) f->json = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) f->threads = (int)strtol(argv[++i], NULL, 10);
        else return false;
    }
    return f->threads >= 0 && f->threads <= MAX_THREADS;
}

static void print(const char *tier, const hth_peaks *rows, int count, bool json, bool first) {
    for (int i = 0; i < count; i++) {
        const hth_peaks *r = &rows[i];
        if (json)
            printf("%s  {\"kernels\": \"%s\", \"threads\": %d, \"read_bytes_per_s\": %.0f, \"read_bytes\": %llu, "
                   "\"read_cached\": %s, \"int8_ops_per_s\": %.0f, \"float_ops_per_s\": %.0f}",
                   first && i == 0 ? "[\n" : ",\n", tier, r->threads, r->read_bytes_per_s,
                   (unsigned long long)r->read_bytes, r->read_cached ? "true" : "false", r->int8_ops_per_s,
                   r->float_ops_per_s);
        else
            printf("%-8s %8d %11.1f%s %14.1f %16.1f\n", tier, r->threads, r->read_bytes_per_s * 1e-9,
                   r->read_cached ? "*" : " ", r->int8_ops_per_s * 1e-9, r->float_ops_per_s * 1e-9);
    }
    fflush(stdout);
}

static hearth_status measure(const hth_backend_type *type, hth_backend *backend, const flags *f, bool first,
                             hearth_error *err) {
    hth_peaks rows[MAX_THREADS];
    int count = type->threads(backend) < MAX_THREADS ? type->threads(backend) : MAX_THREADS;
    for (int i = 0; i < count; i++) rows[i] = (hth_peaks){.threads = i + 1};
    hearth_status status = type->peaks(backend, MEMORY, rows, (size_t)count, err);
    if (status == HEARTH_OK) print(type->kernels(backend), rows, count, f->json, first);
    return status;
}

int main(int argc, char **argv) {
    static const char *const tiers[] = {"avx512", "avxvnni", "avx2", "ref"};
    flags f = {0};
    const hth_backend_type *type;
    hearth_error err;
    bool first = true;
    if (!parse(argc, argv, &f)) {
        fprintf(stderr, "usage: limits [--threads N] [--json]     N: 1 to %d\n", MAX_THREADS);
        return 2;
    }
    if (hth_backend_find("cpu", &type, &err) != HEARTH_OK) abort();
    if (!f.json) printf("%-8s %8s %12s %14s %16s\n", "kernels", "threads", "read GB/s", "int8 GOP/s", "float GFLOP/s");
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        hth_backend *backend;
        hth_backend_config config = {.threads = f.threads, .kernels = tiers[i]};
        hearth_status status = type->open(&config, &backend, &err);
        if (status == HEARTH_UNSUPPORTED) continue; /* not on this machine */
        if (status == HEARTH_OK) status = measure(type, backend, &f, first, &err);
        type->close(&backend);
        first = false;
        if (status == HEARTH_OK) continue;
        fprintf(stderr, "limits: %s\n", err.text);
        return 1;
    }
    if (f.json) printf("\n]\n");
    return 0;
}
