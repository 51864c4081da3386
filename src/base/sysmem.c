#include "base/sysmem.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cgroup.h"

/* The least limit of the groups; "max" and the like are none. */
static void take_limit(void *context, const char *dir, bool v2) {
    uint64_t *least = context;
    char path[PATH_MAX + 32], line[64];
    unsigned long long limit;
    snprintf(path, sizeof path, "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (hth_read_line(path, line, sizeof line) && sscanf(line, "%llu", &limit) == 1 && limit < *least) *least = limit;
}

/* "MemAvailable:   23771136 kB" in bytes; 0 when the file does not say. */
static uint64_t available(const char *root) {
    char path[PATH_MAX], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    fclose(f);
    return kib * 1024;
}

uint64_t hth_memory_allowed_at(const char *root) {
    uint64_t bytes = available(root);
    if (bytes == 0) bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    hth_cgroup_visit(root, "memory", take_limit, &bytes);
    return bytes;
}
