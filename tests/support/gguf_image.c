#include "support/gguf_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "gguf_image: %s\n", what);
    abort();
}

void gguf_image_free(gguf_image *im) {
    free(im->data);
    free(im->fields);
    *im = (gguf_image){0};
}

static void reserve(gguf_image *im, size_t size) {
    if (im->capacity - im->size >= size) return;
    im->capacity = (im->size + size) * 2;
    im->data = realloc(im->data, im->capacity);
    check(im->data != NULL, "no memory");
}

void gguf_put(gguf_image *im, const void *data, size_t size) {
    if (size == 0) return;
    reserve(im, size);
    memcpy(im->data + im->size, data, size);
    im->size += size;
}

static void record(gguf_image *im, const char *name, size_t size) {
    if (!name) return;
    if (im->field_count == im->field_capacity) {
        im->field_capacity = im->field_capacity ? im->field_capacity * 2 : 64;
        im->fields = realloc(im->fields, im->field_capacity * sizeof *im->fields);
        check(im->fields != NULL, "no memory");
    }
    im->fields[im->field_count++] = (gguf_field){name, im->size, size};
}

void gguf_put_u32(gguf_image *im, const char *field, uint32_t value) {
    record(im, field, sizeof value);
    gguf_put(im, &value, sizeof value);
}

void gguf_put_u64(gguf_image *im, const char *field, uint64_t value) {
    record(im, field, sizeof value);
    gguf_put(im, &value, sizeof value);
}

void gguf_put_string(gguf_image *im, const char *field, const char *text) {
    gguf_put_u64(im, field, strlen(text));
    gguf_put(im, text, strlen(text));
}

void gguf_put_zeros(gguf_image *im, size_t size) {
    if (size == 0) return;
    reserve(im, size);
    memset(im->data + im->size, 0, size);
    im->size += size;
}

void gguf_put_padding(gguf_image *im, size_t align) {
    gguf_put_zeros(im, (align - im->size % align) % align);
}

void gguf_put_header(gguf_image *im, uint32_t version, uint64_t tensors, uint64_t kvs) {
    gguf_put(im, "GGUF", 4);
    gguf_put_u32(im, "version", version);
    gguf_put_u64(im, "tensor_count", tensors);
    gguf_put_u64(im, "kv_count", kvs);
}

void gguf_put_key(gguf_image *im, const char *key, uint32_t type) {
    gguf_put_string(im, "key length", key);
    gguf_put_u32(im, "type", type);
}

void gguf_put_kv_u32(gguf_image *im, const char *key, uint32_t value) {
    gguf_put_key(im, key, HTH_GGUF_U32);
    gguf_put_u32(im, "value", value);
}

void gguf_put_kv_string(gguf_image *im, const char *key, const char *value) {
    gguf_put_key(im, key, HTH_GGUF_STRING);
    gguf_put_string(im, "string length", value);
}

void gguf_put_kv_array(gguf_image *im, const char *key, uint32_t element, uint64_t count) {
    gguf_put_key(im, key, HTH_GGUF_ARRAY);
    gguf_put_u32(im, "element type", element);
    gguf_put_u64(im, "array count", count);
}

void gguf_put_tensor(gguf_image *im, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t dtype,
                     uint64_t offset) {
    gguf_put_string(im, "name length", name);
    gguf_put_u32(im, "n_dims", n_dims);
    for (uint32_t i = 0; i < n_dims && i < 16; i++) gguf_put_u64(im, "dim", dims[i]);
    gguf_put_u32(im, "dtype", dtype);
    gguf_put_u64(im, "offset", offset);
}

static void sample_metadata(gguf_image *im) {
    static const int64_t minus_three = -3;
    static const double quarter = 0.25;
    static const float half = 0.5f;
    static const unsigned char one_byte = 200, yes = 1;
    static const uint16_t two_bytes[3] = {1, 2, 65535};
    static const int32_t four_bytes[2] = {-1, 7};
    gguf_put_kv_string(im, "general.architecture", "sample");
    gguf_put_kv_u32(im, "general.alignment", 64);
    gguf_put_key(im, "sample.u8", HTH_GGUF_U8);
    gguf_put(im, &one_byte, 1);
    gguf_put_key(im, "sample.i8", HTH_GGUF_I8);
    gguf_put(im, &minus_three, 1);
    gguf_put_key(im, "sample.u16", HTH_GGUF_U16);
    gguf_put(im, two_bytes, 2);
    gguf_put_key(im, "sample.i16", HTH_GGUF_I16);
    gguf_put(im, &minus_three, 2);
    gguf_put_kv_u32(im, "sample.u32", 4000000000);
    gguf_put_key(im, "sample.i32", HTH_GGUF_I32);
    gguf_put(im, &minus_three, 4);
    gguf_put_key(im, "sample.f32", HTH_GGUF_F32);
    gguf_put(im, &half, 4);
    gguf_put_key(im, "sample.bool", HTH_GGUF_BOOL);
    gguf_put(im, &yes, 1);
    gguf_put_key(im, "sample.u64", HTH_GGUF_U64);
    gguf_put_u64(im, "value", UINT64_MAX);
    gguf_put_key(im, "sample.i64", HTH_GGUF_I64);
    gguf_put(im, &minus_three, 8);
    gguf_put_key(im, "sample.f64", HTH_GGUF_F64);
    gguf_put(im, &quarter, 8);
    gguf_put_kv_array(im, "sample.u16s", HTH_GGUF_U16, 3);
    gguf_put(im, two_bytes, 6);
    gguf_put_kv_array(im, "sample.i32s", HTH_GGUF_I32, 2);
    gguf_put(im, four_bytes, 8);
    gguf_put_kv_array(im, "sample.bools", HTH_GGUF_BOOL, 1);
    gguf_put(im, &yes, 1);
    gguf_put_kv_array(im, "sample.strings", HTH_GGUF_STRING, 3);
    gguf_put_string(im, "element length", "a");
    gguf_put_string(im, "element length", "");
    gguf_put_string(im, "element length", "\xff\xfe");
    gguf_put_kv_array(im, "sample.none", HTH_GGUF_STRING, 0);
}

void gguf_image_sample(gguf_image *im) {
    gguf_put_header(im, 3, GGUF_SAMPLE_TENSORS, GGUF_SAMPLE_KVS);
    sample_metadata(im);
    gguf_put_tensor(im, "scalar", 0, NULL, HTH_F32, 0);
    gguf_put_tensor(im, "vector", 1, (const uint64_t[]){3}, HTH_F32, 64);
    gguf_put_tensor(im, "matrix", 2, (const uint64_t[]){64, 2}, HTH_Q4_0, 128);
    gguf_put_tensor(im, "cube", 3, (const uint64_t[]){256, 1, 2}, HTH_Q6_K, 256);
    gguf_put_tensor(im, "tesseract", 4, (const uint64_t[]){2, 1, 3, 2}, HTH_BF16, 704);
    gguf_put_padding(im, 64);
    size_t start = im->size;
    for (int i = 0; i < 728; i++) gguf_put(im, &(unsigned char){(unsigned char)(i * 7)}, 1);
    check(im->size - start == 704 + 24, "the sample's data ends with its last tensor");
}

void gguf_set_field(gguf_image *im, const gguf_field *field, uint64_t value) {
    check(field->at + field->size <= im->size && field->size <= sizeof value, "not a field of this image");
    memcpy(im->data + field->at, &value, field->size);
}

const gguf_field *gguf_field_named(const gguf_image *im, const char *name, int n) {
    for (size_t i = 0; i < im->field_count; i++)
        if (strcmp(im->fields[i].name, name) == 0 && n-- == 0) return &im->fields[i];
    check(0, name);
    return NULL;
}

void gguf_image_write(const gguf_image *im, const char *path) {
    FILE *f = fopen(path, "wb");
    check(f != NULL, path);
    check(im->size == 0 || fwrite(im->data, 1, im->size, f) == im->size, path);
    check(fclose(f) == 0, path);
}
