/* Tensor records: names, shapes, dtypes, and where the data lies. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "gguf/internal.h"

/* Ids that GGUF once gave to formats which are gone. */
static bool removed_dtype(uint32_t id) {
    return id == 4 || id == 5 || (id >= 31 && id <= 33) || (id >= 36 && id <= 38);
}

static hearth_status read_dims(hth_reader *r, hth_gguf_tensor *t) {
    uint64_t at = r->at;
    uint32_t n_dims;
    HTH_TRY(hth_reader_u32(r, "a tensor's number of dimensions", &n_dims));
    if (n_dims > HTH_GGUF_MAX_DIMS)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "tensor \"%.*s\": %" PRIu32 " dimensions, at most %d are allowed", SHOWN(t->name),
                               n_dims, HTH_GGUF_MAX_DIMS);
    t->n_dims = (int)n_dims;
    uint64_t elements = 1;
    for (int i = 0; i < HTH_GGUF_MAX_DIMS; i++) {
        t->dims[i] = 1;
        if (i >= t->n_dims) continue;
        at = r->at;
        HTH_TRY(hth_reader_u64(r, "a tensor's dimensions", &t->dims[i]));
        if (t->dims[i] == 0)
            return hth_reader_fail(r, HEARTH_BAD_FILE, at, "tensor \"%.*s\": dimension %d is 0", SHOWN(t->name), i);
        if (!hth_mul_u64(elements, t->dims[i], &elements) || elements > INT64_MAX)
            return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                                   "tensor \"%.*s\": dimension %d of %" PRIu64 " makes it larger than 2^63-1 elements",
                                   SHOWN(t->name), i, t->dims[i]);
    }
    return HEARTH_OK;
}

static hearth_status read_dtype(hth_reader *r, hth_gguf_tensor *t) {
    uint64_t at = r->at;
    uint32_t id;
    HTH_TRY(hth_reader_u32(r, "a tensor's type", &id));
    const hth_dtype_info *info = hth_dtype_find(id);
    if (!info)
        return hth_reader_fail(r, HEARTH_UNSUPPORTED, at, "tensor \"%.*s\": type %" PRIu32 " is %s; supported: %s",
                               SHOWN(t->name), id, removed_dtype(id) ? "one that GGUF has removed" : "unknown",
                               hth_dtype_computed_names());
    t->dtype = (hth_dtype)id;
    if (t->dims[0] % (uint64_t)info->block != 0)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "tensor \"%.*s\": rows of %" PRIu64 " elements are not whole %s blocks of %d",
                               SHOWN(t->name), t->dims[0], info->name, info->block);
    uint64_t rows = t->dims[1] * t->dims[2] * t->dims[3]; /* at most the elements, which are checked */
    if (!hth_mul_u64(t->dims[0] / (uint64_t)info->block, (uint64_t)info->bytes, &t->bytes) ||
        !hth_mul_u64(t->bytes, rows, &t->bytes))
        return hth_reader_fail(r, HEARTH_BAD_FILE, at, "tensor \"%.*s\": its size in bytes does not fit 64 bits",
                               SHOWN(t->name));
    return HEARTH_OK;
}

/* Reads the record; offset is still relative to the data section. */
static hearth_status read_tensor(hth_reader *r, hth_gguf_tensor *t) {
    HTH_TRY(hth_reader_string(r, "a tensor's name", MAX_NAME_BYTES, &t->name));
    HTH_TRY(read_dims(r, t));
    HTH_TRY(read_dtype(r, t));
    return hth_reader_u64(r, "a tensor's offset", &t->offset);
}

/* Turn the relative offset into one from the start of the file, and point at the data. */
static hearth_status place_tensor(const hth_reader *r, const hth_gguf_file *file, hth_gguf_tensor *t) {
    uint64_t at = (uint64_t)((const unsigned char *)t->name.data - r->base);
    if (t->offset % file->alignment != 0)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "tensor \"%.*s\": data offset %" PRIu64 " is not a multiple of the alignment %" PRIu32,
                               SHOWN(t->name), t->offset, file->alignment);
    uint64_t start, end;
    if (!hth_add_u64(file->data_offset, t->offset, &start) || !hth_add_u64(start, t->bytes, &end) || end > r->size)
        return hth_reader_fail(r, HEARTH_BAD_FILE, at,
                               "tensor \"%.*s\": %" PRIu64 " bytes at data offset %" PRIu64
                               " end after the file of %" PRIu64 " bytes: it is cut short or damaged",
                               SHOWN(t->name), t->bytes, t->offset, r->size);
    t->offset = start;
    t->data = r->base + start;
    return HEARTH_OK;
}

static int by_offset(const void *a, const void *b) {
    const hth_gguf_tensor *x = *(const hth_gguf_tensor *const *)a, *y = *(const hth_gguf_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* No two tensors share a byte. Gaps are harmless and allowed. */
static hearth_status check_overlap(const hth_reader *r, const hth_gguf_tensor *tensors, uint64_t count) {
    const hth_gguf_tensor **order = calloc((size_t)count, sizeof *order);
    if (!order) return hth_fail(r->err, HEARTH_NO_MEMORY, "no memory to sort %" PRIu64 " tensors", count);
    bool sorted = true;
    for (uint64_t i = 0; i < count; i++) {
        order[i] = &tensors[i];
        if (i > 0 && tensors[i].offset < tensors[i - 1].offset) sorted = false;
    }
    if (!sorted) qsort(order, (size_t)count, sizeof *order, by_offset);
    hearth_status status = HEARTH_OK;
    for (uint64_t i = 1; i < count && status == HEARTH_OK; i++) {
        const hth_gguf_tensor *a = order[i - 1], *b = order[i];
        if (a->offset + a->bytes > b->offset)
            status = hth_reader_fail(r, HEARTH_BAD_FILE, b->offset, "tensors \"%.*s\" and \"%.*s\" overlap",
                                     SHOWN(a->name), SHOWN(b->name));
    }
    free(order);
    return status;
}

hearth_status hth_gguf_read_tensors(hth_reader *r, uint64_t count, hth_gguf_part *part) {
    if (count == 0) {
        part->file.data_offset = r->at;
        return HEARTH_OK;
    }
    part->tensors = calloc((size_t)count, sizeof *part->tensors);
    if (!part->tensors) return hth_fail(r->err, HEARTH_NO_MEMORY, "no memory for %" PRIu64 " tensor records", count);
    part->tensor_count = count;
    for (uint64_t i = 0; i < count; i++) HTH_TRY(read_tensor(r, &part->tensors[i]));
    if (!hth_round_up_u64(r->at, part->file.alignment, &part->file.data_offset))
        return hth_reader_fail(r, HEARTH_BAD_FILE, r->at, "the data section's offset does not fit 64 bits");
    for (uint64_t i = 0; i < count; i++) HTH_TRY(place_tensor(r, &part->file, &part->tensors[i]));
    return check_overlap(r, part->tensors, count);
}
