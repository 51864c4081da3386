#include "models/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define NAME_SIZE sizeof((hth_tensor){0}.name)

/* The tensor's whole name. One that is too long for a tensor is cut, and so found in no file. */
static const char *full_name(const hth_reading *r, const char *name, char full[NAME_SIZE]) {
    if (snprintf(full, NAME_SIZE, "%s%s", hth_builder_scope(r->b), name) >= (int)NAME_SIZE) full[0] = 0;
    return full;
}

bool hth_bind_has(const hth_reading *r, const char *name) {
    char full[NAME_SIZE];
    return hth_gguf_find_tensor(r->g, full_name(r, name, full)) != NULL;
}

#define SHAPE_SIZE 96

static void shape_text(int n_dims, const uint64_t *dims, char out[SHAPE_SIZE]) {
    size_t n = 0;
    for (int i = 0; i < n_dims; i++)
        n += (size_t)snprintf(out + n, SHAPE_SIZE - n, "%s%" PRIu64, i == 0 ? "[" : ", ", dims[i]);
    snprintf(out + n, SHAPE_SIZE - n, n_dims ? "]" : "[]");
}

static bool has_shape(const hth_gguf_tensor *t, int n_dims, const int64_t *dims) {
    for (int i = 0; i < HTH_GGUF_MAX_DIMS; i++)
        if (t->dims[i] != (i < n_dims ? (uint64_t)dims[i] : 1)) return false;
    return true;
}

static const hth_gguf_tensor *find_by_name_and_shape(hth_reading *r, const char *full, int n_dims,
                                                     const int64_t *dims) {
    const hth_gguf_tensor *t = hth_reading_tensor(r, full);
    if (!t) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "tensor %s is missing", full);
        return NULL;
    }
    if (has_shape(t, n_dims, dims)) return t;
    char is[SHAPE_SIZE], must[SHAPE_SIZE];
    uint64_t wanted[HTH_GGUF_MAX_DIMS];
    for (int i = 0; i < n_dims; i++) wanted[i] = (uint64_t)dims[i];
    shape_text(t->n_dims, t->dims, is);
    shape_text(n_dims, wanted, must);
    hth_builder_fail(r->b, HEARTH_BAD_FILE, "tensor %s is %s, must be %s", full, is, must);
    return NULL;
}

/* The tensor, of this shape; NULL after an error. */
static const hth_gguf_tensor *find(hth_reading *r, const char *full, int n_dims, const int64_t *dims) {
    if (hth_builder_failed(r->b)) return NULL;
    const uint64_t start = hth_now_ns();
    const hth_gguf_tensor *t = find_by_name_and_shape(r, full, n_dims, dims);
    r->bind_ns += hth_now_ns() - start;
    return t;
}

static bool is_computed(hth_reading *r, const hth_gguf_tensor *t, const char *full) {
    const hth_dtype_info *info = hth_dtype_find((uint32_t)t->dtype);
    if (info && info->computed) return true;
    hth_builder_fail(r->b, HEARTH_UNSUPPORTED, "tensor %s is %s, which is not supported; supported are %s", full,
                     hth_dtype_name(t->dtype), hth_dtype_computed_names());
    return false;
}

static bool is_float32(hth_reading *r, const hth_gguf_tensor *t, const char *full) {
    if (t->dtype == HTH_F32) return true;
    hth_builder_fail(r->b, HEARTH_UNSUPPORTED, "tensor %s is %s; norms, biases, taps and rope factors must be F32",
                     full, hth_dtype_name(t->dtype));
    return false;
}

/* The name a part goes by: "blk.0.attn_qkv.weight[576:768]"; the whole keeps its own. */
static void part_name(char full[NAME_SIZE], int64_t all, int64_t first, int64_t count) {
    size_t n = strlen(full);
    if (count != all) snprintf(full + n, NAME_SIZE - n, "[%" PRId64 ":%" PRId64 "]", first, first + count);
}

hth_tensor_id hth_bind_matrix_part(hth_reading *r, const char *name, int64_t in, int64_t out, int64_t first,
                                   int64_t count) {
    char full[NAME_SIZE];
    const hth_gguf_tensor *t = find(r, full_name(r, name, full), 2, (const int64_t[]){in, out});
    if (!t || !is_computed(r, t, full)) return HTH_NONE;
    uint64_t row_bytes = hth_row_bytes(hth_dtype_find((uint32_t)t->dtype), (uint64_t)in);
    hth_weight where = {t->file, t->offset + (uint64_t)first * row_bytes, (uint64_t)count * row_bytes, 0};
    part_name(full, out, first, count);
    return hth_build_weight(r->b, full, t->dtype, 2, (const int64_t[]){in, count}, where);
}

hth_tensor_id hth_bind_matrix(hth_reading *r, const char *name, int64_t in, int64_t out) {
    return hth_bind_matrix_part(r, name, in, out, 0, out);
}

hth_tensor_id hth_bind_slabs_part(hth_reading *r, const char *name, int64_t in, int64_t out, int64_t slabs,
                                  int64_t first, int64_t count) {
    char full[NAME_SIZE];
    const hth_gguf_tensor *t = find(r, full_name(r, name, full), 3, (const int64_t[]){in, out, slabs});
    if (!t || !is_computed(r, t, full)) return HTH_NONE;
    uint64_t row_bytes = hth_row_bytes(hth_dtype_find((uint32_t)t->dtype), (uint64_t)in);
    uint64_t stride = (uint64_t)out * row_bytes;
    hth_weight where = {t->file, t->offset + (uint64_t)first * row_bytes,
                        (uint64_t)(slabs - 1) * stride + (uint64_t)count * row_bytes, stride};
    part_name(full, out, first, count);
    return hth_build_weight(r->b, full, t->dtype, 3, (const int64_t[]){in, count, slabs}, where);
}

hth_tensor_id hth_bind_slabs(hth_reading *r, const char *name, int64_t in, int64_t out, int64_t slabs) {
    return hth_bind_slabs_part(r, name, in, out, slabs, 0, out);
}

hth_tensor_id hth_bind_table(hth_reading *r, const char *name, int64_t in, int64_t out) {
    char full[NAME_SIZE];
    const hth_gguf_tensor *t = find(r, full_name(r, name, full), 2, (const int64_t[]){in, out});
    if (!t || !is_float32(r, t, full)) return HTH_NONE;
    hth_weight where = {t->file, t->offset, (uint64_t)(in * out) * sizeof(float), 0};
    return hth_build_weight(r->b, full, HTH_F32, 2, (const int64_t[]){in, out}, where);
}

hth_tensor_id hth_bind_vector_part(hth_reading *r, const char *name, int64_t n, int64_t first, int64_t count) {
    char full[NAME_SIZE];
    const hth_gguf_tensor *t = find(r, full_name(r, name, full), 1, &n);
    if (!t || !is_float32(r, t, full)) return HTH_NONE;
    hth_weight where = {t->file, t->offset + (uint64_t)first * sizeof(float), (uint64_t)count * sizeof(float), 0};
    part_name(full, n, first, count);
    return hth_build_weight(r->b, full, HTH_F32, 1, &count, where);
}

hth_tensor_id hth_bind_vector(hth_reading *r, const char *name, int64_t n) {
    return hth_bind_vector_part(r, name, n, 0, n);
}

int64_t hth_bind_rows(hth_reading *r, const char *name, int64_t max) {
    char full[NAME_SIZE];
    if (hth_builder_failed(r->b)) return 0;
    const hth_gguf_tensor *t = hth_reading_tensor(r, full_name(r, name, full));
    if (!t) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "tensor %s is missing", full);
        return 0;
    }
    if (t->dims[1] >= 1 && t->dims[1] <= (uint64_t)max) return (int64_t)t->dims[1];
    hth_builder_fail(r->b, HEARTH_BAD_FILE, "tensor %s has %" PRIu64 " rows, must have 1 to %" PRId64, full, t->dims[1],
                     max);
    return 0;
}

bool hth_bind_copy(hth_reading *r, const char *name, int64_t n, float *out) {
    char full[NAME_SIZE];
    const hth_gguf_tensor *t = find(r, full_name(r, name, full), 1, &n);
    if (!t || !is_float32(r, t, full)) return false;
    memcpy(out, t->data, (size_t)n * sizeof *out);
    return true;
}
