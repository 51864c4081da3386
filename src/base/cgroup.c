#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

bool hth_read_line(const char *path, char *line, int size) {
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(line, size, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = 0;
    return ok;
}

static void visit_path(const char *mount, const char *group, bool v2, hth_cgroup_fn *visit, void *context) {
    char dir[PATH_MAX];
    if (snprintf(dir, sizeof dir, "%s%s", mount, group) >= (int)sizeof dir) return;
    for (;;) {
        visit(context, dir, v2);
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= strlen(mount) || !slash) return;
        *slash = 0;
    }
}

/* Whether a comma-separated list holds the word. */
static bool list_has(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        if (strncmp(s, word, n) == 0 && (s[n] == 0 || s[n] == ',')) return true;
    return false;
}

void hth_cgroup_visit(const char *root, const char *controller, hth_cgroup_fn *visit, void *context) {
    char path[PATH_MAX], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        /* hierarchy:controllers:path; version 2 is hierarchy 0 without controllers. */
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        controllers++;
        char mount[PATH_MAX];
        bool v2 = *controllers == 0;
        if (!v2 && !list_has(controllers, controller)) continue;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, v2 ? "" : "/", v2 ? "" : controller);
        visit_path(mount, group, v2, visit, context);
    }
    fclose(f);
}
