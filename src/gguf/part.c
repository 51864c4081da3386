/* One file image: header, then metadata, then tensors. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/internal.h"

#define HEADER_BYTES     24
#define MIN_KV_BYTES     14 /* length, a key of one byte, type, a value of one byte */
#define MIN_TENSOR_BYTES 24 /* length of an empty name, number of dimensions, type, offset */

static hearth_status check_magic(const hth_reader *r) {
    static const char lfs[] = "version https://git-lfs";
    if (r->size >= 4 && memcmp(r->base, "GGUF", 4) == 0) return HEARTH_OK;
    if (r->size >= sizeof lfs - 1 && memcmp(r->base, lfs, sizeof lfs - 1) == 0)
        return hth_fail(r->err, HEARTH_BAD_FILE, "%s is a Git LFS pointer, not the GGUF file it stands for", r->path);
    return hth_fail(r->err, HEARTH_BAD_FILE, "%s is not a GGUF file: it does not start with \"GGUF\"", r->path);
}

static hearth_status check_version(const hth_reader *r, uint32_t version) {
    const uint64_t at = 4;
    if (version == 2 || version == 3) return HEARTH_OK;
    if (version != 0 && (version & 0xFFFF) == 0)
        return hth_reader_fail(r, HEARTH_UNSUPPORTED, at,
                               "the file is big-endian (version 0x%08" PRIx32 "); only little-endian GGUF is read",
                               version);
    if (version == 1) return hth_reader_fail(r, HEARTH_UNSUPPORTED, at, "GGUF version 1 is too old; 2 and 3 are read");
    return hth_reader_fail(r, HEARTH_UNSUPPORTED, at, "GGUF version %" PRIu32 " is not known; 2 and 3 are read",
                           version);
}

/* A count is compared with the least its records can take before anything is allocated for them. */
static hearth_status check_count(const hth_reader *r, uint64_t at, const char *what, uint64_t count, uint64_t least) {
    uint64_t left = r->size - HEADER_BYTES;
    if (count > left / least)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "%s %" PRIu64 " is more than the %" PRIu64 " bytes left can hold", what, count, left);
    if (count > MAX_RECORDS)
        return hth_reader_fail(r, HEARTH_UNSUPPORTED, at, "%s %" PRIu64 " is over Hearth's limit of %" PRIu64, what,
                               count, MAX_RECORDS);
    return HEARTH_OK;
}

static hearth_status parse(hth_reader *r, hth_gguf_part *part) {
    uint64_t tensor_count, kv_count;
    HTH_TRY(check_magic(r));
    r->at = 4;
    HTH_TRY(hth_reader_u32(r, "the version", &part->file.version));
    HTH_TRY(check_version(r, part->file.version));
    HTH_TRY(hth_reader_u64(r, "tensor_count", &tensor_count));
    HTH_TRY(hth_reader_u64(r, "kv_count", &kv_count));
    HTH_TRY(check_count(r, 8, "tensor_count", tensor_count, MIN_TENSOR_BYTES));
    HTH_TRY(check_count(r, 16, "kv_count", kv_count, MIN_KV_BYTES));
    HTH_TRY(hth_gguf_read_metadata(r, kv_count, part));
    HTH_TRY(hth_gguf_read_tensors(r, tensor_count, part));
    part->file.tensor_count = tensor_count;
    return HEARTH_OK;
}

hearth_status hth_gguf_part_parse(hth_gguf_part *part, const char *path, const void *data, uint64_t size,
                                  hearth_error *err) {
    *part = (hth_gguf_part){.file = {.path = path, .base = data, .size = size}};
    hth_reader reader = {.base = data, .size = size, .path = path, .err = err};
    hearth_status status = parse(&reader, part);
    if (status != HEARTH_OK) hth_gguf_part_free(part);
    return status;
}

void hth_gguf_part_free(hth_gguf_part *part) {
    hth_gguf_free_kvs(part->kvs, part->kv_count);
    hth_strmap_free(&part->keys);
    free(part->tensors);
    *part = (hth_gguf_part){0};
}
