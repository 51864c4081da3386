#include "support/temp_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

const char *temp_folder_make(void) {
    snprintf(folder, sizeof folder, "/tmp/hearth-test-XXXXXX");
    if (mkdtemp(folder)) return folder;
    perror(folder);
    abort();
}

const char *temp_path(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void temp_folder_remove(void) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        const char *path = temp_path(entry->d_name);
        if (unlink(path) != 0) rmdir(path);
    }
    closedir(dir);
    rmdir(folder);
}
