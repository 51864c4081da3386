/* The GGUF container: mapped, checked, and read in place.
 *
 * hth_gguf_open maps the file (and, for a split set, every shard), checks every count, length, offset, dimension and
 * product against the file's size, and builds a directory of metadata and tensors whose strings and data point into the
 * mapping. Nothing is copied but the directory; nothing computes here. A file that does not hold is refused with an
 * error that names the field and the file offset. Versions 2 and 3, little-endian.
 *
 * Ownership: everything reached from a hth_gguf is valid until hth_gguf_close. Threads: read-only after open, so any
 * number of threads may read. Strings are byte strings: not NUL-terminated, possibly not UTF-8, possibly with NUL
 * inside.
 */
#ifndef HTH_GGUF_GGUF_H
#define HTH_GGUF_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/dtype.h"
#include "base/status.h"

typedef struct hth_string {
    const char *data;
    size_t size;
} hth_string;

typedef enum hth_gguf_type {
    HTH_GGUF_U8,
    HTH_GGUF_I8,
    HTH_GGUF_U16,
    HTH_GGUF_I16,
    HTH_GGUF_U32,
    HTH_GGUF_I32,
    HTH_GGUF_F32,
    HTH_GGUF_BOOL,
    HTH_GGUF_STRING,
    HTH_GGUF_ARRAY,
    HTH_GGUF_U64,
    HTH_GGUF_I64,
    HTH_GGUF_F64,
    HTH_GGUF_TYPE_COUNT
} hth_gguf_type;

/* One metadata record. A scalar is read with the typed getters below; an array with hth_gguf_array_*. */
typedef struct hth_gguf_kv {
    hth_string key;
    hth_gguf_type type;         /* of the value */
    hth_gguf_type element;      /* of the elements, when type is ARRAY */
    uint64_t count;             /* elements of an array; 1 otherwise */
    const unsigned char *value; /* in the mapping; for a string: its first byte */
    uint64_t size;              /* bytes of the value; for a string: its length */
    const uint64_t *offsets;    /* array of strings: count + 1 offsets from `value` of each length field; else NULL */
} hth_gguf_kv;

#define HTH_GGUF_MAX_DIMS 4

typedef struct hth_gguf_tensor {
    hth_string name;                  /* unique over all shards */
    hth_dtype dtype;                  /* an id that hth_dtype_find knows */
    int n_dims;                       /* as written, 0..4 */
    uint64_t dims[HTH_GGUF_MAX_DIMS]; /* fastest first; missing trailing dimensions are 1 */
    uint64_t bytes;                   /* size of the data */
    int file;                         /* shard index */
    uint64_t offset;                  /* of the data from the start of that shard's file */
    const unsigned char *data;        /* in the mapping */
} hth_gguf_tensor;

/* One mapped shard. */
typedef struct hth_gguf_file {
    const char *path;          /* NUL-terminated, as opened */
    const unsigned char *base; /* the mapping */
    uint64_t size;             /* bytes of the file and of the mapping */
    uint32_t version;
    uint32_t alignment;
    uint64_t data_offset; /* where the data section starts */
    uint64_t tensor_count;
} hth_gguf_file;

typedef struct hth_gguf hth_gguf;

/* Open PATH, or the split set whose first shard it is. *out is NULL on failure. */
hearth_status hth_gguf_open(const char *path, hth_gguf **out, hearth_error *err);

/* Check and index a file image that the caller keeps alive (tests, fuzzing); split sets are refused here. */
hearth_status hth_gguf_open_memory(const void *data, size_t size, hth_gguf **out, hearth_error *err);

/* Unmap and free; *g becomes NULL. A NULL is ignored. */
void hth_gguf_close(hth_gguf **g);

/* What opening took: mapping the first file, and the rest. 0 for an image in memory. */
void hth_gguf_cost(const hth_gguf *g, uint64_t *map_ns, uint64_t *directory_ns);

/* Bytes of the directory itself: records, and where the strings of arrays begin. */
uint64_t hth_gguf_directory_bytes(const hth_gguf *g);

int hth_gguf_file_count(const hth_gguf *g);
const hth_gguf_file *hth_gguf_file_at(const hth_gguf *g, int i);
/* Whether this is the status of shard i as it was mapped: the same file, as long as it was. */
bool hth_gguf_is_file(const hth_gguf *g, int i, const struct stat *status);

/* The first shard of which a part could no longer be read, so that zeros are in its place (base/sigbus.h); NULL when
 * all are whole. What was computed from the file since the last answer of NULL is not to be trusted. */
const hth_gguf_file *hth_gguf_lost_file(const hth_gguf *g);

uint64_t hth_gguf_kv_count(const hth_gguf *g);
const hth_gguf_kv *hth_gguf_kv_at(const hth_gguf *g, uint64_t i); /* in file order; of a split set, the first shard's */
const hth_gguf_kv *hth_gguf_find(const hth_gguf *g, const char *key); /* NULL when absent; O(1) */

uint64_t hth_gguf_tensor_count(const hth_gguf *g);
const hth_gguf_tensor *hth_gguf_tensor_at(const hth_gguf *g, uint64_t i);         /* in file order */
const hth_gguf_tensor *hth_gguf_find_tensor(const hth_gguf *g, const char *name); /* NULL when absent; O(1) */

/* Typed scalars. HEARTH_NOT_FOUND (no error text) when the key is absent: *out is then left as it was, so a caller sets
 * the default first. HEARTH_BAD_FILE with a text that names the key when the type does not fit. An integer is taken
 * from any integer type whose value fits the range asked for; a float from F32, F64 or an integer; a bool from BOOL or
 * an integer 0 or 1. */
hearth_status hth_gguf_get_u64(const hth_gguf *g, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                               hearth_error *err);
hearth_status hth_gguf_get_f64(const hth_gguf *g, const char *key, double *out, hearth_error *err);
hearth_status hth_gguf_get_bool(const hth_gguf *g, const char *key, bool *out, hearth_error *err);
hearth_status hth_gguf_get_string(const hth_gguf *g, const char *key, hth_string *out, hearth_error *err);

/* One element (or the scalar itself, i = 0) as an integer, double or string. i < kv->count is asserted. The integer
 * forms answer HEARTH_BAD_FILE for values outside int64 or uint64; they read BOOL as 0 or 1. */
hearth_status hth_gguf_int_at(const hth_gguf_kv *kv, uint64_t i, int64_t *out, hearth_error *err);
hearth_status hth_gguf_uint_at(const hth_gguf_kv *kv, uint64_t i, uint64_t *out, hearth_error *err);
hearth_status hth_gguf_float_at(const hth_gguf_kv *kv, uint64_t i, double *out, hearth_error *err);
hearth_status hth_gguf_string_at(const hth_gguf_kv *kv, uint64_t i, hth_string *out, hearth_error *err);

/* "u32", "[string]" … of a record; static storage. */
const char *hth_gguf_type_name(hth_gguf_type type);

static inline bool hth_string_equals(hth_string a, const char *b) {
    size_t i = 0;
    for (; i < a.size; i++)
        if (b[i] == 0 || a.data[i] != b[i]) return false;
    return b[i] == 0;
}

#endif
