/* Split sets: <prefix>-00001-of-00003.gguf and its fellows, and the split.* keys that each shard carries. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gguf/internal.h"

#define SUFFIX_FORMAT "-%05" PRIu64 "-of-%05" PRIu64 ".gguf"
#define SUFFIX_BYTES  (sizeof "-00001-of-00003.gguf" - 1)
#define MAX_SHARDS    4096 /* each takes a mapping, of which a process has some ten thousand */

/* An integer key of a part, with `absent` when it is not there. */
static hearth_status part_u64(const hth_gguf_part *part, const char *key, uint64_t max, uint64_t absent, uint64_t *out,
                              hearth_error *err) {
    uint32_t i;
    *out = absent;
    if (!hth_strmap_find(&part->keys, key, strlen(key), &i)) return HEARTH_OK;
    return hth_gguf_kv_u64(&part->kvs[i], &part->file, 0, max, out, err);
}

hearth_status hth_gguf_split_read(const hth_gguf_part *part, const char *path, hth_gguf_split *split,
                                  hearth_error *err) {
    *split = (hth_gguf_split){.count = 1, .tensors = part->tensor_count};
    uint64_t count, no;
    HTH_TRY(part_u64(part, "split.count", UINT16_MAX, 1, &count, err));
    if (count <= 1) return HEARTH_OK;
    if (!path) return hth_fail(err, HEARTH_UNSUPPORTED, "a split set cannot be opened from memory");
    if (count > MAX_SHARDS)
        return hth_fail(err, HEARTH_UNSUPPORTED,
                        "key \"split.count\": %" PRIu64 " shards are over Hearth's limit of %d (%s)", count, MAX_SHARDS,
                        path);
    HTH_TRY(part_u64(part, "split.no", UINT16_MAX, 0, &no, err));
    if (no != 0)
        return hth_fail(err, HEARTH_BAD_FILE,
                        "%s is shard %" PRIu64 " of %" PRIu64 " of a split set (split.no %" PRIu64
                        "): open the first one",
                        path, no + 1, count, no);
    HTH_TRY(part_u64(part, "split.tensors.count", INT32_MAX, UINT64_MAX, &split->tensors, err));
    if (split->tensors == UINT64_MAX)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"split.tensors.count\" is missing from the split set of %s", path);
    split->count = count;

    char suffix[64];
    size_t length = strlen(path);
    snprintf(suffix, sizeof suffix, SUFFIX_FORMAT, UINT64_C(1), count);
    if (length < SUFFIX_BYTES || strcmp(path + length - SUFFIX_BYTES, suffix) != 0)
        return hth_fail(err, HEARTH_BAD_FILE,
                        "a split set of %" PRIu64
                        " is found by name, so its first shard must end in \"%s\" (%s does not)",
                        count, suffix, path);
    return HEARTH_OK;
}

void hth_gguf_split_name(char *path, uint64_t index) {
    char number[32];
    snprintf(number, sizeof number, "%05" PRIu64, index + 1);
    memcpy(path + strlen(path) - SUFFIX_BYTES + 1, number, 5);
}

hearth_status hth_gguf_split_check(const hth_gguf_part *part, uint64_t index, uint64_t count, hearth_error *err) {
    uint64_t no, own_count;
    HTH_TRY(part_u64(part, "split.no", UINT16_MAX, UINT64_MAX, &no, err));
    HTH_TRY(part_u64(part, "split.count", UINT16_MAX, UINT64_MAX, &own_count, err));
    if (no == UINT64_MAX || own_count == UINT64_MAX)
        return hth_fail(err, HEARTH_BAD_FILE, "%s has no \"split.no\" and \"split.count\": it is no shard of the set",
                        part->file.path);
    if (no != index)
        return hth_fail(err, HEARTH_BAD_FILE, "key \"split.no\" is %" PRIu64 " where its name says %" PRIu64 " (%s)",
                        no, index, part->file.path);
    if (own_count != count)
        return hth_fail(err, HEARTH_BAD_FILE,
                        "key \"split.count\" is %" PRIu64 " where the first shard says %" PRIu64 " (%s)", own_count,
                        count, part->file.path);
    return HEARTH_OK;
}
