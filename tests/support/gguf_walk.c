#include "support/gguf_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dequant.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                              \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint64_t sum_bytes(const void *data, size_t size) {
    const unsigned char *p = data;
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + p[i];
    return sum;
}

/* A NUL-terminated copy, as the lookups want it; NULL when the string has a NUL inside. */
static char *c_string(hth_string s) {
    if (s.size && memchr(s.data, 0, s.size)) return NULL;
    char *copy = malloc(s.size + 1);
    CHECK(copy);
    if (s.size) memcpy(copy, s.data, s.size);
    copy[s.size] = 0;
    return copy;
}

static uint64_t walk_kv(const hth_gguf *g, const hth_gguf_kv *kv) {
    uint64_t sum = sum_bytes(kv->key.data, kv->key.size);
    CHECK(kv->key.size > 0);
    CHECK((kv->type == HTH_GGUF_ARRAY && kv->element == HTH_GGUF_STRING) == (kv->offsets != NULL));
    for (uint64_t i = 0; i < kv->count; i++) {
        int64_t integer = 0;
        uint64_t natural = 0;
        double real = 0;
        hth_string string = {0};
        int fits = (hth_gguf_int_at(kv, i, &integer, NULL) == HEARTH_OK) +
                   (hth_gguf_uint_at(kv, i, &natural, NULL) == HEARTH_OK) +
                   (hth_gguf_float_at(kv, i, &real, NULL) == HEARTH_OK) +
                   (hth_gguf_string_at(kv, i, &string, NULL) == HEARTH_OK);
        CHECK(fits > 0);
        sum += (uint64_t)integer + natural + sum_bytes(&real, sizeof real) + sum_bytes(string.data, string.size);
    }
    char *key = c_string(kv->key);
    if (!key) return sum;
    CHECK(hth_gguf_find(g, key) == kv);
    uint64_t natural;
    double real;
    bool truth;
    hth_string string;
    hearth_error err;
    hth_gguf_get_u64(g, key, 1, 100, &natural, &err);
    hth_gguf_get_f64(g, key, &real, &err);
    hth_gguf_get_bool(g, key, &truth, &err);
    hth_gguf_get_string(g, key, &string, &err);
    free(key);
    return sum;
}

static uint64_t walk_tensor(const hth_gguf *g, const hth_gguf_tensor *t) {
    const hth_gguf_file *file = hth_gguf_file_at(g, t->file);
    CHECK(t->offset >= file->data_offset && t->bytes > 0);
    CHECK(t->offset <= file->size && t->bytes <= file->size - t->offset);
    CHECK((t->offset - file->data_offset) % file->alignment == 0);
    CHECK(t->data == file->base + t->offset);
    uint64_t sum = sum_bytes(t->name.data, t->name.size) + t->data[0] + t->data[t->bytes - 1];
    char *name = c_string(t->name);
    if (name) CHECK(hth_gguf_find_tensor(g, name) == t);
    free(name);
    if (!hth_dequant_find(t->dtype) || t->dims[0] > 65536) return sum;
    float *row = malloc((size_t)t->dims[0] * sizeof *row);
    CHECK(row);
    hth_dequant_row(t->dtype, t->data, row, t->dims[0]);
    sum += sum_bytes(row, (size_t)t->dims[0] * sizeof *row);
    free(row);
    return sum;
}

uint64_t gguf_walk(const hth_gguf *g) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < hth_gguf_kv_count(g); i++) sum += walk_kv(g, hth_gguf_kv_at(g, i));
    for (uint64_t i = 0; i < hth_gguf_tensor_count(g); i++) sum += walk_tensor(g, hth_gguf_tensor_at(g, i));
    return sum;
}
