/* The public view of a GGUF file (include/hearth/file.h). */
#include "hearth/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/dequant.h"
#include "gguf/internal.h"

struct hearth_file {
    hth_gguf *gguf;
};

hearth_status hearth_file_open(const char *path, hearth_file **out, hearth_error *err) {
    if (!out) return hth_fail(err, HEARTH_BAD_ARGUMENT, "hearth_file_open: out is NULL");
    *out = NULL;
    if (!path) return hth_fail(err, HEARTH_BAD_ARGUMENT, "hearth_file_open: path is NULL");
    hearth_file *file = calloc(1, sizeof *file);
    if (!file) return hth_fail(err, HEARTH_NO_MEMORY, "no memory to open %s", path);
    hearth_status status = hth_gguf_open(path, &file->gguf, err);
    if (status == HEARTH_OK) *out = file;
    else free(file);
    return status;
}

void hearth_file_close(hearth_file **file) {
    if (!file || !*file) return;
    hth_gguf_close(&(*file)->gguf);
    free(*file);
    *file = NULL;
}

int hearth_file_shards(const hearth_file *file) {
    return hth_gguf_file_count(file->gguf);
}

const char *hearth_file_path(const hearth_file *file, int shard) {
    return shard >= 0 && shard < file->gguf->file_count ? file->gguf->files[shard].path : NULL;
}

uint64_t hearth_file_bytes(const hearth_file *file) {
    uint64_t bytes = 0; /* no overflow: all of it is mapped */
    for (int i = 0; i < file->gguf->file_count; i++) bytes += file->gguf->files[i].size;
    return bytes;
}

uint32_t hearth_file_version(const hearth_file *file) {
    return file->gguf->files[0].version;
}

uint32_t hearth_file_alignment(const hearth_file *file) {
    return file->gguf->files[0].alignment;
}

uint64_t hearth_file_tensor_count(const hearth_file *file) {
    return file->gguf->tensor_count;
}

static void describe(const hth_gguf_tensor *t, hearth_file_tensor *out) {
    const hth_dtype_info *info = hth_dtype_find((uint32_t)t->dtype);
    *out = (hearth_file_tensor){
        .name = t->name.data,
        .name_size = t->name.size,
        .dtype = info->name,
        .supported = info->computed,
        .n_dims = t->n_dims,
        .bytes = t->bytes,
        .shard = t->file,
        .offset = t->offset,
        .data = t->data,
    };
    memcpy(out->dims, t->dims, sizeof out->dims);
}

hearth_status hearth_file_tensor_at(const hearth_file *file, uint64_t i, hearth_file_tensor *out, hearth_error *err) {
    if (i >= file->gguf->tensor_count)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "tensor %" PRIu64 " of a file that has %" PRIu64, i,
                        file->gguf->tensor_count);
    describe(&file->gguf->tensors[i], out);
    return HEARTH_OK;
}

hearth_status hearth_file_find_tensor(const hearth_file *file, const char *name, hearth_file_tensor *out,
                                      hearth_error *err) {
    const hth_gguf_tensor *t = name ? hth_gguf_find_tensor(file->gguf, name) : NULL;
    if (!t) return hth_fail(err, HEARTH_NOT_FOUND, "no tensor is called \"%s\"", name ? name : "");
    describe(t, out);
    return HEARTH_OK;
}

/* The row is found again by the tensor's name, so a structure that the caller has changed reads nothing else. */
hearth_status hearth_file_read_row(const hearth_file *file, const hearth_file_tensor *tensor, uint64_t row, float *out,
                                   hearth_error *err) {
    uint32_t i;
    if (!tensor || !tensor->name || !out || tensor->name_size > MAX_NAME_BYTES ||
        !hth_strmap_find(&file->gguf->names, tensor->name, tensor->name_size, &i))
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "hearth_file_read_row: not a tensor of this file");
    const hth_gguf_tensor *t = &file->gguf->tensors[i];
    const hth_dtype_info *info = hth_dtype_find((uint32_t)t->dtype);
    uint64_t rows = t->dims[1] * t->dims[2] * t->dims[3];
    if (row >= rows)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "row %" PRIu64 " of tensor \"%.*s\", which has %" PRIu64, row,
                        SHOWN(t->name), rows);
    hth_dequant *dequant = hth_dequant_find(t->dtype);
    if (!dequant)
        return hth_fail(err, HEARTH_UNSUPPORTED, "tensor \"%.*s\" is %s; supported: %s", SHOWN(t->name), info->name,
                        hth_dtype_computed_names());
    dequant(t->data + row * hth_row_bytes(info, t->dims[0]), out, t->dims[0]);
    return HEARTH_OK;
}

uint64_t hearth_file_entry_count(const hearth_file *file) {
    return file->gguf->kv_count;
}

hearth_status hearth_file_entry_at(const hearth_file *file, uint64_t i, hearth_file_entry *out, hearth_error *err) {
    if (i >= file->gguf->kv_count)
        return hth_fail(err, HEARTH_BAD_ARGUMENT, "metadata entry %" PRIu64 " of a file that has %" PRIu64, i,
                        file->gguf->kv_count);
    const hth_gguf_kv *kv = &file->gguf->kvs[i];
    *out = (hearth_file_entry){
        .key = kv->key.data,
        .key_size = kv->key.size,
        .type = hth_gguf_type_name(kv->type),
        .element = kv->type == HTH_GGUF_ARRAY ? hth_gguf_type_name(kv->element) : NULL,
        .count = kv->count,
    };
    return HEARTH_OK;
}

/* The record of entry i, if it has an element e; else NULL and a bad argument raised. */
static const hth_gguf_kv *find_element(const hearth_file *file, uint64_t i, uint64_t e, hearth_error *err) {
    hearth_file_entry ignored;
    if (hearth_file_entry_at(file, i, &ignored, err) != HEARTH_OK) return NULL;
    const hth_gguf_kv *kv = &file->gguf->kvs[i];
    if (e < kv->count) return kv;
    hth_fail(err, HEARTH_BAD_ARGUMENT, "element %" PRIu64 " of key \"%.*s\", which has %" PRIu64, e, SHOWN(kv->key),
             kv->count);
    return NULL;
}

/* That a well-formed value is not of the type asked for is the caller's fault here, not the file's. */
static hearth_status blame_caller(hearth_status status, hearth_error *err) {
    if (status != HEARTH_BAD_FILE) return status;
    if (err) err->status = HEARTH_BAD_ARGUMENT;
    return HEARTH_BAD_ARGUMENT;
}

hearth_status hearth_file_int(const hearth_file *file, uint64_t i, uint64_t e, int64_t *out, hearth_error *err) {
    const hth_gguf_kv *kv = find_element(file, i, e, err);
    if (!kv) return HEARTH_BAD_ARGUMENT;
    return blame_caller(hth_gguf_int_at(kv, e, out, err), err);
}

hearth_status hearth_file_uint(const hearth_file *file, uint64_t i, uint64_t e, uint64_t *out, hearth_error *err) {
    const hth_gguf_kv *kv = find_element(file, i, e, err);
    if (!kv) return HEARTH_BAD_ARGUMENT;
    return blame_caller(hth_gguf_uint_at(kv, e, out, err), err);
}

hearth_status hearth_file_float(const hearth_file *file, uint64_t i, uint64_t e, double *out, hearth_error *err) {
    const hth_gguf_kv *kv = find_element(file, i, e, err);
    if (!kv) return HEARTH_BAD_ARGUMENT;
    return blame_caller(hth_gguf_float_at(kv, e, out, err), err);
}

hearth_status hearth_file_string(const hearth_file *file, uint64_t i, uint64_t e, const char **data, size_t *size,
                                 hearth_error *err) {
    const hth_gguf_kv *kv = find_element(file, i, e, err);
    hth_string string;
    if (!kv) return HEARTH_BAD_ARGUMENT;
    HTH_TRY(blame_caller(hth_gguf_string_at(kv, e, &string, err), err));
    *data = string.data;
    *size = string.size;
    return HEARTH_OK;
}
