/* What the files of this folder share: the directory itself, and the parser of one file image. */
#ifndef HTH_GGUF_INTERNAL_H
#define HTH_GGUF_INTERNAL_H

#include "base/map.h"
#include "base/strmap.h"
#include "gguf/gguf.h"

/* Limits of this reader. The format has wider ones, no published model comes near these, and they bound the memory that
 * a hostile file can make us spend: a record costs at most a few times its bytes in the file. */
#define MAX_RECORDS       (UINT64_C(1) << 20) /* metadata records of a file; tensors of a model */
#define MAX_STRING_BYTES  (UINT64_C(1) << 30) /* one string */
#define MAX_ARRAY_COUNT   (UINT64_C(1) << 30) /* elements of one array */
#define MAX_ARRAY_STRINGS (UINT64_C(1) << 24) /* strings in all arrays of a file */
#define MAX_KEY_BYTES     65535
#define MAX_NAME_BYTES    63
#define MIN_ALIGNMENT     8 /* data is used in place, so it must be aligned for its elements */
#define MAX_ALIGNMENT     (UINT32_C(1) << 20)
#define DEFAULT_ALIGNMENT 32

/* How many bytes of a name an error text shows, and the name, for "%.*s". */
#define SHOWN(string) ((int)((string).size < 80 ? (string).size : 80)), (string).data

/* A cursor over a file image. `at` never passes `size`. */
typedef struct hth_reader {
    const unsigned char *base;
    uint64_t size;
    uint64_t at;
    const char *path;
    hearth_error *err;
} hth_reader;

/* Raise an error about the byte at offset `at`: the text, then "(offset N of PATH)". */
hearth_status hth_reader_fail(const hth_reader *r, hearth_status status, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline uint64_t hth_reader_left(const hth_reader *r) {
    return r->size - r->at;
}

/* Read a number; `what` names it for the error. */
hearth_status hth_reader_u32(hth_reader *r, const char *what, uint32_t *out);
hearth_status hth_reader_u64(hth_reader *r, const char *what, uint64_t *out);

/* Read a length and that many bytes, at most `max` of them. */
hearth_status hth_reader_string(hth_reader *r, const char *what, uint64_t max, hth_string *out);

/* One parsed file image. */
typedef struct hth_gguf_part {
    hth_gguf_file file; /* path is borrowed from the caller */
    hth_gguf_kv *kvs;
    uint64_t kv_count;
    hth_strmap keys; /* key -> index in kvs */
    hth_gguf_tensor *tensors;
    uint64_t tensor_count;
} hth_gguf_part;

/* Check and index one image. On failure *part is zeroed. */
hearth_status hth_gguf_part_parse(hth_gguf_part *part, const char *path, const void *data, uint64_t size,
                                  hearth_error *err);
void hth_gguf_part_free(hth_gguf_part *part);

/* The pieces of hth_gguf_part_parse: the reader stands at the first metadata record, then at the first tensor record.
 */
hearth_status hth_gguf_read_metadata(hth_reader *r, uint64_t count, hth_gguf_part *part);
hearth_status hth_gguf_read_tensors(hth_reader *r, uint64_t count, hth_gguf_part *part);

void hth_gguf_free_kvs(hth_gguf_kv *kvs, uint64_t count);

/* Bytes of a scalar type; 0 for strings and arrays. */
uint64_t hth_gguf_type_size(hth_gguf_type type);

/* What the first file says of the set it belongs to. */
typedef struct hth_gguf_split {
    uint64_t count;   /* shards; 1 for a file of its own */
    uint64_t tensors; /* over all shards */
} hth_gguf_split;

/* Read the split keys of a part that was opened as PATH (NULL: from memory), and check that PATH is the name of a first
 * shard. */
hearth_status hth_gguf_split_read(const hth_gguf_part *part, const char *path, hth_gguf_split *split,
                                  hearth_error *err);

/* Check that a part is shard `index` (from 0) of `count`. */
hearth_status hth_gguf_split_check(const hth_gguf_part *part, uint64_t index, uint64_t count, hearth_error *err);

/* Change the name of one shard, in place, into that of shard `index` (from 0). */
void hth_gguf_split_name(char *path, uint64_t index);

/* A scalar record as an integer in min..max. */
hearth_status hth_gguf_kv_u64(const hth_gguf_kv *kv, const hth_gguf_file *file, uint64_t min, uint64_t max,
                              uint64_t *out, hearth_error *err);

struct hth_gguf {
    hth_gguf_file *files; /* paths are owned */
    hth_map *maps;        /* one a file; zeroed ones for an image in the caller's memory */
    int file_count;
    hth_gguf_kv *kvs; /* of the first file */
    uint64_t kv_count;
    hth_strmap keys;
    hth_gguf_tensor *tensors; /* of all files */
    uint64_t tensor_count;
    hth_strmap names;
    uint64_t map_ns, directory_ns; /* what opening the file took */
};

#endif
