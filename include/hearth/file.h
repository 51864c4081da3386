/* A GGUF file opened for looking at: metadata and tensors of any file, supported architecture or not.
 *
 * Ownership: pointers handed out live until hearth_file_close. Threads: read-only after open; any thread may read.
 * Strings are byte strings (size given, not NUL-terminated, not necessarily UTF-8).
 */
#ifndef HEARTH_FILE_H
#define HEARTH_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "hearth/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_file hearth_file;

typedef struct hearth_file_tensor {
    const char *name; /* name_size bytes */
    size_t name_size;
    const char *dtype; /* "Q4_K", NUL-terminated */
    int supported;     /* 1 when Hearth computes with this dtype */
    int n_dims;        /* 0..4 */
    uint64_t dims[4];  /* elements, fastest dimension first; missing ones are 1 */
    uint64_t bytes;    /* size of the data */
    int shard;         /* which file of a split set */
    uint64_t offset;   /* bytes from the start of that file */
    const void *data;  /* the mapped bytes */
} hearth_file_tensor;

typedef struct hearth_file_entry {
    const char *key; /* key_size bytes */
    size_t key_size;
    const char *type;    /* "u32", "string", "array" …, NUL-terminated */
    const char *element; /* element type of an array, else NULL */
    uint64_t count;      /* elements of an array, else 1 */
} hearth_file_entry;

/* Map and check PATH (or the split set whose first shard it is). On failure *out is NULL. */
HEARTH_API hearth_status hearth_file_open(const char *path, hearth_file **out, hearth_error *err);
/* Release; *file becomes NULL. NULL is ignored. */
HEARTH_API void hearth_file_close(hearth_file **file);

HEARTH_API int hearth_file_shards(const hearth_file *file); /* files of a split set; 1 for a file of its own */
/* The path of a shard (0 to shards - 1) as it was opened, NUL-terminated; NULL when there is none of that number. */
HEARTH_API const char *hearth_file_path(const hearth_file *file, int shard);
HEARTH_API uint64_t hearth_file_bytes(const hearth_file *file);     /* of all shards */
HEARTH_API uint32_t hearth_file_version(const hearth_file *file);   /* of the GGUF format: 2 or 3 */
HEARTH_API uint32_t hearth_file_alignment(const hearth_file *file); /* of tensor data, in bytes */

HEARTH_API uint64_t hearth_file_tensor_count(const hearth_file *file); /* over all shards */
/* HEARTH_BAD_ARGUMENT when i is out of range. */
HEARTH_API hearth_status hearth_file_tensor_at(const hearth_file *file, uint64_t i, hearth_file_tensor *out,
                                               hearth_error *err);
/* HEARTH_NOT_FOUND when there is no such tensor. */
HEARTH_API hearth_status hearth_file_find_tensor(const hearth_file *file, const char *name, hearth_file_tensor *out,
                                                 hearth_error *err);
/* Dequantize row `row` (of dims[0] elements; rows are counted over dims[1..3]) into the dims[0] floats at `out`.
 * `tensor` must come from this file. HEARTH_UNSUPPORTED names a dtype that Hearth does not compute with. */
HEARTH_API hearth_status hearth_file_read_row(const hearth_file *file, const hearth_file_tensor *tensor, uint64_t row,
                                              float *out, hearth_error *err);

/* Metadata of the first shard, in file order. */
HEARTH_API uint64_t hearth_file_entry_count(const hearth_file *file);
/* HEARTH_BAD_ARGUMENT when i is out of range. */
HEARTH_API hearth_status hearth_file_entry_at(const hearth_file *file, uint64_t i, hearth_file_entry *out,
                                              hearth_error *err);
/* Values of entry i: element e (0 for a scalar). HEARTH_BAD_ARGUMENT when the type or an integer's value does not fit,
 * or i or e is out of range. The integer forms read a bool as 0 or 1; the float form takes integers too. A string is
 * handed out in place. */
HEARTH_API hearth_status hearth_file_int(const hearth_file *file, uint64_t i, uint64_t e, int64_t *out,
                                         hearth_error *err);
HEARTH_API hearth_status hearth_file_uint(const hearth_file *file, uint64_t i, uint64_t e, uint64_t *out,
                                          hearth_error *err);
HEARTH_API hearth_status hearth_file_float(const hearth_file *file, uint64_t i, uint64_t e, double *out,
                                           hearth_error *err);
HEARTH_API hearth_status hearth_file_string(const hearth_file *file, uint64_t i, uint64_t e, const char **data,
                                            size_t *size, hearth_error *err);

#ifdef __cplusplus
}
#endif
#endif
