/* The control groups that this process is in. */
#ifndef HTH_BASE_CGROUP_H
#define HTH_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* Called with the directory of a group; v2: of the unified hierarchy. */
typedef void hth_cgroup_fn(void *context, const char *directory, bool v2);

/* Visit the groups that limit `controller` ("cpu", "memory"): each one that the process is in, and those around it up
 * to the mount, since a parent's limit holds for its children. A group that is not visible under the mount (a container
 * without its own namespace) leaves the mount's own files. root: "" for the system's own files, so that a test can lay
 * out another machine's. */
void hth_cgroup_visit(const char *root, const char *controller, hth_cgroup_fn *visit, void *context);

/* The first line of a file, without its end; false when it cannot be read. */
bool hth_read_line(const char *path, char *line, int size);

#endif
