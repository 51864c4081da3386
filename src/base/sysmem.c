#include "base/sysmem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"

/* The number in a file of one line; `none` where there is no such file or no number ("max"). */
static uint64_t read_number(const char *dir, const char *name, uint64_t none) {
    char path[PATH_MAX + 32], line[64];
    unsigned long long number;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return hth_read_line(path, line, sizeof line) && sscanf(line, "%llu", &number) == 1 ? number : none;
}

/* The sum of the numbers behind the names, each at the beginning of a line; 0 where the file does not say. */
static uint64_t sum_of(const char *dir, const char *file, const char *const *names, int count) {
    char path[PATH_MAX + 32], line[256];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        for (int i = 0; i < count; i++) {
            const size_t size = strlen(names[i]);
            if (strncmp(line, names[i], size) == 0 && line[size] == ' ') sum += strtoull(line + size, NULL, 10);
        }
    if (f) fclose(f);
    return sum;
}

/* What a group's limit leaves. The group can free its pages of files, but nothing else without swapping. Above
 * memory.high it is not refused memory but slowed down until it hardly runs. */
static void take_limit(void *context, const char *dir, bool v2) {
    static const char *const files[] = {"inactive_file", "active_file"};
    static const char *const files_v1[] = {"total_inactive_file", "total_active_file"};
    uint64_t *least = context, limit = read_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", UINT64_MAX);
    const uint64_t high = v2 ? read_number(dir, "memory.high", UINT64_MAX) : UINT64_MAX;
    if (high < limit) limit = high;
    if (limit == UINT64_MAX) return;
    const uint64_t used = read_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes", 0);
    const uint64_t freeable = sum_of(dir, "memory.stat", v2 ? files : files_v1, 2);
    const uint64_t kept = used > freeable ? used - freeable : 0, left = limit > kept ? limit - kept : 0;
    if (left < *least) *least = left;
}

uint64_t hth_memory_allowed_at(const char *root) {
    static const char *const name = "MemAvailable:"; /* in kB */
    char proc[PATH_MAX];
    snprintf(proc, sizeof proc, "%s/proc", root);
    uint64_t bytes = sum_of(proc, "meminfo", &name, 1) * 1024;
    if (bytes == 0) bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    hth_cgroup_visit(root, "memory", take_limit, &bytes);
    return bytes;
}
