/* A file mapped whole, read-only.
 *
 * The mapping is shared with the system's page cache: it costs address space, not memory of our own. It asks for huge
 * pages: where the file system can, the page cache takes files in them whatever the order they are read in, and what is
 * read so once is mapped again in no time. If the file shrinks while it is mapped, touching what is gone raises SIGBUS.
 */
#ifndef HTH_BASE_MAP_H
#define HTH_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/sigbus.h"
#include "base/status.h"

typedef struct hth_map {
    const unsigned char *data; /* page-aligned; NULL when nothing is mapped */
    size_t size;
    dev_t device; /* which file it is, whatever has its name later */
    ino_t inode;
    hth_watch *watch;
} hth_map;

/* Map the regular file at PATH. HEARTH_NOT_FOUND: no such file. HEARTH_IO: a directory, a device, no permission …
 * HEARTH_BAD_FILE: an empty file. On failure *map is zeroed. */
hearth_status hth_map_open(hth_map *map, const char *path, hearth_error *err);

/* Part of the file could no longer be read, and zeros are in its place. False for a zeroed map. */
bool hth_map_lost(const hth_map *map);

/* Unmap and zero *map. A zeroed map is ignored. */
void hth_map_close(hth_map *map);

#endif
