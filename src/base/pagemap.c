#include "base/pagemap.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of linux/fs.h, which knows them since Linux 6.7. */
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, n_regions, max_pages;
    uint64_t inverted, all_of, any_of, wanted; /* categories */
};
struct region {
    uint64_t start, end, categories;
};
_Static_assert(sizeof(struct scan) == 96 && sizeof(struct region) == 24, "the kernel's layout");
#define SCAN       _IOWR('f', 16, struct scan)
#define IS_PRESENT (UINT64_C(1) << 3)
#define IS_HUGE    (UINT64_C(1) << 6)

/* The bytes of pages that are of `category`, or of those that are not. */
static bool count(const void *base, size_t size, uint64_t category, bool inverted, uint64_t *bytes) {
    enum { REGIONS = 32 };
    struct region regions[REGIONS];
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)base;
    struct scan scan = {.size = sizeof scan,
                        .start = start,
                        .end = (start + size + page - 1) / page * page,
                        .regions = (uintptr_t)regions,
                        .n_regions = REGIONS,
                        .inverted = inverted ? category : 0,
                        .all_of = category,
                        .wanted = category};
    *bytes = 0;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    int found = 0;
    for (; scan.start < scan.end && found >= 0; scan.start = scan.walk_end) {
        found = ioctl(fd, SCAN, &scan);
        for (int i = 0; i < found; i++) *bytes += regions[i].end - regions[i].start;
    }
    close(fd);
    return found >= 0;
}

bool hth_huge_bytes(const void *base, size_t size, uint64_t *bytes) {
    return count(base, size, IS_HUGE, false, bytes);
}

bool hth_absent_bytes(const void *base, size_t size, uint64_t *bytes) {
    return count(base, size, IS_PRESENT, true, bytes);
}
