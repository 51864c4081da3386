/* Opening and closing: one file, a split set, or an image in memory; and the directory's accessors. */
#include "gguf/gguf.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gguf/internal.h"

static hth_gguf *allocate(int file_count) {
    hth_gguf *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->files = calloc((size_t)file_count, sizeof *g->files);
    g->maps = calloc((size_t)file_count, sizeof *g->maps);
    if (g->files && g->maps) return g;
    hth_gguf_close(&g);
    return NULL;
}

void hth_gguf_close(hth_gguf **gp) {
    hth_gguf *g = *gp;
    if (!g) return;
    *gp = NULL;
    for (int i = 0; i < g->file_count; i++) {
        free((void *)(uintptr_t)g->files[i].path);
        hth_map_close(&g->maps[i]);
    }
    free(g->files);
    free(g->maps);
    hth_gguf_free_kvs(g->kvs, g->kv_count);
    hth_strmap_free(&g->keys);
    free(g->tensors);
    hth_strmap_free(&g->names);
    free(g);
}

/* Take over a parsed image as the next file: its tensors always, its metadata when it is the first. On failure the
 * part is still the caller's. */
static hearth_status append(hth_gguf *g, hth_gguf_part *part, hearth_error *err) {
    if (part->tensor_count > MAX_RECORDS - g->tensor_count)
        return hth_fail(err, HEARTH_UNSUPPORTED, "the split set has more tensors than Hearth's limit of %" PRIu64,
                        MAX_RECORDS);
    uint64_t total = g->tensor_count + part->tensor_count;
    char *path = strdup(part->file.path);
    hth_gguf_tensor *tensors = reallocarray(g->tensors, total ? (size_t)total : 1, sizeof *tensors);
    if (tensors) g->tensors = tensors;
    if (!path || !tensors) {
        free(path);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the directory of %s", part->file.path);
    }
    for (uint64_t i = 0; i < part->tensor_count; i++) {
        g->tensors[g->tensor_count + i] = part->tensors[i];
        g->tensors[g->tensor_count + i].file = g->file_count;
    }
    g->tensor_count = total;
    if (g->file_count == 0) {
        g->kvs = part->kvs;
        g->kv_count = part->kv_count;
        g->keys = part->keys;
        part->kvs = NULL;
        part->kv_count = 0;
        part->keys = (hth_strmap){0};
    }
    g->files[g->file_count] = part->file;
    g->files[g->file_count].path = path;
    g->file_count++;
    return HEARTH_OK;
}

/* Every tensor's name is known once, over all files. */
static hearth_status index_names(hth_gguf *g, hearth_error *err) {
    HTH_TRY(hth_strmap_init(&g->names, (size_t)g->tensor_count, err));
    for (uint64_t i = 0; i < g->tensor_count; i++) {
        const hth_gguf_tensor *t = &g->tensors[i];
        uint32_t first;
        if (hth_strmap_add(&g->names, t->name.data, t->name.size, (uint32_t)i, &first)) continue;
        const hth_gguf_file *file = &g->files[t->file];
        return hth_fail(err, HEARTH_BAD_FILE, "tensor \"%.*s\" occurs twice (offset %" PRIu64 " of %s; first in %s)",
                        SHOWN(t->name), (uint64_t)((const unsigned char *)t->name.data - file->base), file->path,
                        g->files[g->tensors[first].file].path);
    }
    return HEARTH_OK;
}

/* Map, parse and append the file at PATH, and check that it is shard `index` of `count`. */
static hearth_status append_shard(hth_gguf *g, const char *path, uint64_t index, uint64_t count, hearth_error *err) {
    hth_map map;
    hth_gguf_part part;
    HTH_TRY(hth_map_open(&map, path, err));
    hearth_status status = hth_gguf_part_parse(&part, path, map.data, map.size, err);
    if (status == HEARTH_OK) status = hth_gguf_split_check(&part, index, count, err);
    if (status == HEARTH_OK) status = append(g, &part, err);
    if (status == HEARTH_OK) g->maps[g->file_count - 1] = map;
    else hth_map_close(&map);
    hth_gguf_part_free(&part);
    return status;
}

/* The first file is open: open the others of its set. */
static hearth_status append_rest(hth_gguf *g, const hth_gguf_split *split, hearth_error *err) {
    const char *first = g->files[0].path;
    char *path = strdup(first);
    if (!path) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the name of a shard");
    hearth_status status = HEARTH_OK;
    for (uint64_t i = 1; i < split->count && status == HEARTH_OK; i++) {
        hth_gguf_split_name(path, i);
        status = append_shard(g, path, i, split->count, err);
    }
    free(path);
    if (status == HEARTH_OK && g->tensor_count != split->tensors)
        return hth_fail(err, HEARTH_BAD_FILE,
                        "key \"split.tensors.count\" is %" PRIu64 " but the %d shards of %s hold %" PRIu64 " tensors",
                        split->tensors, g->file_count, first, g->tensor_count);
    return status;
}

static hearth_status open_all(const char *path, hth_map *map, hth_gguf_part *part, hth_gguf **g, hearth_error *err) {
    hth_gguf_split split;
    HTH_TRY(hth_gguf_split_read(part, path, &split, err));
    *g = allocate((int)split.count);
    if (!*g) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the directory of %s", path);
    HTH_TRY(append(*g, part, err));
    (*g)->maps[0] = *map;
    *map = (hth_map){0};
    if (split.count > 1) HTH_TRY(append_rest(*g, &split, err));
    return index_names(*g, err);
}

hearth_status hth_gguf_open(const char *path, hth_gguf **out, hearth_error *err) {
    *out = NULL;
    hth_map map;
    hth_gguf_part part;
    const uint64_t start = hth_now_ns();
    HTH_TRY(hth_map_open(&map, path, err));
    const uint64_t mapped = hth_now_ns();
    hearth_status status = hth_gguf_part_parse(&part, path, map.data, map.size, err);
    if (status == HEARTH_OK) status = open_all(path, &map, &part, out, err);
    if (status != HEARTH_OK) hth_gguf_close(out);
    hth_gguf_part_free(&part);
    hth_map_close(&map);
    if (status == HEARTH_OK) {
        (*out)->map_ns = mapped - start;
        (*out)->directory_ns = hth_now_ns() - mapped;
    }
    return status;
}

void hth_gguf_cost(const hth_gguf *g, uint64_t *map_ns, uint64_t *directory_ns) {
    *map_ns = g->map_ns;
    *directory_ns = g->directory_ns;
}

hearth_status hth_gguf_open_memory(const void *data, size_t size, hth_gguf **out, hearth_error *err) {
    *out = NULL;
    hth_gguf_part part;
    hth_map none = {0};
    HTH_TRY(hth_gguf_part_parse(&part, "memory", data, size, err));
    hearth_status status = open_all(NULL, &none, &part, out, err);
    if (status != HEARTH_OK) hth_gguf_close(out);
    hth_gguf_part_free(&part);
    return status;
}

uint64_t hth_gguf_directory_bytes(const hth_gguf *g) {
    uint64_t bytes = g->kv_count * sizeof *g->kvs + g->tensor_count * sizeof *g->tensors;
    for (uint64_t i = 0; i < g->kv_count; i++)
        if (g->kvs[i].offsets) bytes += (g->kvs[i].count + 1) * sizeof *g->kvs[i].offsets;
    return bytes;
}

int hth_gguf_file_count(const hth_gguf *g) {
    return g->file_count;
}

const hth_gguf_file *hth_gguf_file_at(const hth_gguf *g, int i) {
    assert(i >= 0 && i < g->file_count);
    return &g->files[i];
}

bool hth_gguf_is_file(const hth_gguf *g, int i, const struct stat *status) {
    const hth_map *map = &g->maps[i];
    return status->st_dev == map->device && status->st_ino == map->inode && (uintmax_t)status->st_size == map->size;
}

const hth_gguf_file *hth_gguf_lost_file(const hth_gguf *g) {
    for (int i = 0; i < g->file_count; i++)
        if (hth_map_lost(&g->maps[i])) return &g->files[i];
    return NULL;
}

uint64_t hth_gguf_kv_count(const hth_gguf *g) {
    return g->kv_count;
}

const hth_gguf_kv *hth_gguf_kv_at(const hth_gguf *g, uint64_t i) {
    assert(i < g->kv_count);
    return &g->kvs[i];
}

const hth_gguf_kv *hth_gguf_find(const hth_gguf *g, const char *key) {
    uint32_t i;
    return hth_strmap_find(&g->keys, key, strlen(key), &i) ? &g->kvs[i] : NULL;
}

uint64_t hth_gguf_tensor_count(const hth_gguf *g) {
    return g->tensor_count;
}

const hth_gguf_tensor *hth_gguf_tensor_at(const hth_gguf *g, uint64_t i) {
    assert(i < g->tensor_count);
    return &g->tensors[i];
}

const hth_gguf_tensor *hth_gguf_find_tensor(const hth_gguf *g, const char *name) {
    uint32_t i;
    return hth_strmap_find(&g->names, name, strlen(name), &i) ? &g->tensors[i] : NULL;
}
