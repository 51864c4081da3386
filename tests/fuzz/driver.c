/* Runs a fuzz target over saved inputs: each argument is a file, or a folder of files. Needs no fuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long inputs;

static int run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        if (f) fclose(f);
        return 1;
    }
    /* A block of exactly the input's size, so that a sanitizer sees a read past its end. */
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    int bad = !data || fread(data, 1, size, f) != size;
    if (bad) perror(path);
    else LLVMFuzzerTestOneInput(data, size);
    inputs++;
    free(data);
    fclose(f);
    return bad;
}

static int run_folder(const char *folder) {
    int bad = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        bad |= run_file(path);
    }
    closedir(dir);
    return bad;
}

int main(int argc, char **argv) {
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        int is_folder = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
        bad |= is_folder ? run_folder(argv[i]) : run_file(argv[i]);
    }
    printf("%ld inputs\n", inputs);
    return bad || inputs == 0;
}
