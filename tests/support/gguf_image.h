/* GGUF images made field by field, right or wrong, for tests. Every number that is written is recorded as a field, so
 * that a test can damage each of them. Running out of memory ends the test program. */
#ifndef HTH_TESTS_GGUF_IMAGE_H
#define HTH_TESTS_GGUF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "gguf/gguf.h"

typedef struct gguf_field {
    const char *name; /* static storage */
    size_t at, size;
} gguf_field;

typedef struct gguf_image {
    unsigned char *data;
    size_t size, capacity;
    gguf_field *fields;
    size_t field_count, field_capacity;
} gguf_image;

void gguf_image_free(gguf_image *im);

/* Raw material; a field name of NULL records nothing. */
void gguf_put(gguf_image *im, const void *data, size_t size);
void gguf_put_u32(gguf_image *im, const char *field, uint32_t value);
void gguf_put_u64(gguf_image *im, const char *field, uint64_t value);
void gguf_put_string(gguf_image *im, const char *field, const char *text);
void gguf_put_zeros(gguf_image *im, size_t size);
void gguf_put_padding(gguf_image *im, size_t align);

/* Records. */
void gguf_put_header(gguf_image *im, uint32_t version, uint64_t tensors, uint64_t kvs);
void gguf_put_key(gguf_image *im, const char *key, uint32_t type);
void gguf_put_kv_u32(gguf_image *im, const char *key, uint32_t value);
void gguf_put_kv_string(gguf_image *im, const char *key, const char *value);
void gguf_put_kv_array(gguf_image *im, const char *key, uint32_t element, uint64_t count); /* elements follow */
void gguf_put_tensor(gguf_image *im, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t dtype,
                     uint64_t offset);

/* A small valid file: every metadata type, an array of each kind, five tensors of four dtypes and 0 to 4 dimensions. */
#define GGUF_SAMPLE_KVS     18
#define GGUF_SAMPLE_TENSORS 5
void gguf_image_sample(gguf_image *im);

/* Overwrite the numbers at a field (4 or 8 bytes of `value`). */
void gguf_set_field(gguf_image *im, const gguf_field *field, uint64_t value);

/* The nth field of that name (from 0); a missing one ends the test program. */
const gguf_field *gguf_field_named(const gguf_image *im, const char *name, int n);

/* Write the image to a file. */
void gguf_image_write(const gguf_image *im, const char *path);

#endif
