#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static hearth_status map_descriptor(hth_map *map, int fd, const char *path, hearth_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return hth_fail(err, HEARTH_IO, "cannot stat %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return hth_fail(err, HEARTH_IO, "%s is a directory", path);
    if (!S_ISREG(st.st_mode)) return hth_fail(err, HEARTH_IO, "%s is not a regular file", path);
    if (st.st_size == 0) return hth_fail(err, HEARTH_BAD_FILE, "%s is empty", path);
    if ((uintmax_t)st.st_size > PTRDIFF_MAX)
        return hth_fail(err, HEARTH_IO, "%s is too large to map (%jd bytes)", path, (intmax_t)st.st_size);
    size_t size = (size_t)st.st_size;
    void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        hearth_status status = errno == ENOMEM ? HEARTH_NO_MEMORY : HEARTH_IO;
        return hth_fail(err, status, "cannot map %s (%zu bytes): %s", path, size, strerror(errno));
    }
    (void)madvise(data, size, MADV_HUGEPAGE); /* also for what is read first: pages stay as they were read */
    *map = (hth_map){
        .data = data, .size = size, .device = st.st_dev, .inode = st.st_ino, .watch = hth_watch_add(data, size)};
    if (map->watch) return HEARTH_OK;
    hth_map_close(map);
    return hth_fail(err, HEARTH_NO_MEMORY, "no memory to watch the mapping of %s", path);
}

hearth_status hth_map_open(hth_map *map, const char *path, hearth_error *err) {
    *map = (hth_map){0};
    /* O_NONBLOCK: a named pipe must be refused, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        hearth_status status = errno == ENOENT || errno == ENOTDIR ? HEARTH_NOT_FOUND : HEARTH_IO;
        return hth_fail(err, status, "cannot open %s: %s", path, strerror(errno));
    }
    hearth_status status = map_descriptor(map, fd, path, err);
    close(fd);
    return status;
}

bool hth_map_lost(const hth_map *map) {
    return map->watch && hth_watch_lost(map->watch);
}

void hth_map_close(hth_map *map) {
    hth_watch_remove(map->watch);
    if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (hth_map){0};
}
