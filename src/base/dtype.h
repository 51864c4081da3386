/* Tensor dtypes and their block layouts (GGUF type ids, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 *
 * Every id that a GGUF file may carry is known by name, so that a file can be inspected; the subset that Hearth
 * computes with is marked. A quantized dtype stores `block` consecutive elements of a row in `bytes` bytes.
 */
#ifndef HTH_BASE_DTYPE_H
#define HTH_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* name, GGUF id, elements a block, bytes a block, computed with (1) or only known by name (0) */
#define HTH_DTYPE_LIST(X)                                                                                              \
    X(F32, 0, 1, 4, 1)                                                                                                 \
    X(F16, 1, 1, 2, 1)                                                                                                 \
    X(Q4_0, 2, 32, 18, 1)                                                                                              \
    X(Q4_1, 3, 32, 20, 1)                                                                                              \
    X(Q5_0, 6, 32, 22, 1)                                                                                              \
    X(Q5_1, 7, 32, 24, 1)                                                                                              \
    X(Q8_0, 8, 32, 34, 1)                                                                                              \
    X(Q8_1, 9, 32, 36, 0)                                                                                              \
    X(Q2_K, 10, 256, 84, 1)                                                                                            \
    X(Q3_K, 11, 256, 110, 1)                                                                                           \
    X(Q4_K, 12, 256, 144, 1)                                                                                           \
    X(Q5_K, 13, 256, 176, 1)                                                                                           \
    X(Q6_K, 14, 256, 210, 1)                                                                                           \
    X(Q8_K, 15, 256, 292, 0)                                                                                           \
    X(IQ2_XXS, 16, 256, 66, 0)                                                                                         \
    X(IQ2_XS, 17, 256, 74, 0)                                                                                          \
    X(IQ3_XXS, 18, 256, 98, 0)                                                                                         \
    X(IQ1_S, 19, 256, 50, 0)                                                                                           \
    X(IQ4_NL, 20, 32, 18, 1)                                                                                           \
    X(IQ3_S, 21, 256, 110, 0)                                                                                          \
    X(IQ2_S, 22, 256, 82, 0)                                                                                           \
    X(IQ4_XS, 23, 256, 136, 1)                                                                                         \
    X(I8, 24, 1, 1, 0)                                                                                                 \
    X(I16, 25, 1, 2, 0)                                                                                                \
    X(I32, 26, 1, 4, 0)                                                                                                \
    X(I64, 27, 1, 8, 0)                                                                                                \
    X(F64, 28, 1, 8, 0)                                                                                                \
    X(IQ1_M, 29, 256, 56, 0)                                                                                           \
    X(BF16, 30, 1, 2, 1)                                                                                               \
    X(TQ1_0, 34, 256, 54, 0)                                                                                           \
    X(TQ2_0, 35, 256, 66, 0)                                                                                           \
    X(MXFP4, 39, 32, 17, 1)                                                                                            \
    X(NVFP4, 40, 64, 36, 0)                                                                                            \
    X(Q1_0, 41, 128, 18, 0)                                                                                            \
    X(Q2_0, 42, 64, 18, 0)

typedef enum hth_dtype {
#define X(name, id, block, bytes, computed) HTH_##name = id,
    HTH_DTYPE_LIST(X)
#undef X
        HTH_DTYPE_MAX = 64 /* bound for tables indexed by dtype */
} hth_dtype;

typedef struct hth_dtype_info {
    const char *name; /* "Q4_K" */
    int block;        /* elements a block; 1 for plain types */
    int bytes;        /* bytes a block */
    bool computed;    /* Hearth computes with it */
} hth_dtype_info;

/* What is known of a type id from a file, or NULL for an id that no format defines. */
const hth_dtype_info *hth_dtype_find(uint32_t id);

/* The name of a dtype that hth_dtype_find knows; "?" otherwise. */
const char *hth_dtype_name(hth_dtype dtype);

/* Bytes of a row of n elements; n must be a multiple of the block. */
static inline uint64_t hth_row_bytes(const hth_dtype_info *info, uint64_t n) {
    return n / (uint64_t)info->block * (uint64_t)info->bytes;
}

/* "F32 F16 …": the names Hearth computes with, in id order; static storage. */
const char *hth_dtype_computed_names(void);

#endif
