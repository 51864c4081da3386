/* What the integer linears of the x86 tiers share: the list of formats, the choice between the two shapes, the
 * epilogue.
 *
 * Few rows (decode) take the weights as they stream by (linear_few.h); more rows pass over unpacked panels
 * (linear_many.h). Both headers are written once, on 256-bit vectors, around primitives that the including tier
 * defines. */
#ifndef HTH_BACKENDS_CPU_X86_LINEAR_H
#define HTH_BACKENDS_CPU_X86_LINEAR_H

#include <stdbool.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/vec256.h"

/* Formats with an integer kernel, as X(lower-case name, dtype, block). */
#define HTH_QUANTIZED_FORMATS(X)                                                                                       \
    X(q4_0, HTH_Q4_0, 32)                                                                                              \
    X(q4_1, HTH_Q4_1, 32)                                                                                              \
    X(q5_0, HTH_Q5_0, 32)                                                                                              \
    X(q5_1, HTH_Q5_1, 32)                                                                                              \
    X(q8_0, HTH_Q8_0, 32)                                                                                              \
    X(iq4_nl, HTH_IQ4_NL, 32)                                                                                          \
    X(mxfp4, HTH_MXFP4, 32)                                                                                            \
    X(q2_k, HTH_Q2_K, 256)                                                                                             \
    X(q3_k, HTH_Q3_K, 256)                                                                                             \
    X(q4_k, HTH_Q4_K, 256)                                                                                             \
    X(q5_k, HTH_Q5_K, 256)                                                                                             \
    X(q6_k, HTH_Q6_K, 256)                                                                                             \
    X(iq4_xs, HTH_IQ4_XS, 256)

/* Columns whose ordered sums run together in linear_few.h. */
enum { HTH_FEW_COLUMNS = 16 };

/* The scratch of one row in linear_few.h, in this order; each part is a multiple of 32 bytes, the whole of 64. */
typedef struct hth_few_layout {
    int64_t q, side, values; /* bytes: activations and side values, each with its wrap-around, and f of the columns */
} hth_few_layout;

/* group: the blocks of the stream that a tier reduces together. */
static inline hth_few_layout few_layout(int64_t k, int block, int group) {
    const int64_t blocks = k / block, wrapped = blocks + group, side = block == 32 ? 4 : 32;
    return (hth_few_layout){.q = wrapped * block,
                            .side = (wrapped * side + 31) / 32 * 32,
                            .values = (HTH_FEW_COLUMNS * blocks + group) * (int64_t)sizeof(float)};
}

static inline int64_t few_row_bytes(int64_t k, int block, int group) {
    hth_few_layout l = few_layout(k, block, group);
    return (l.q + l.side + l.values + 63) / 64 * 64;
}

/* Whether rows go the way of linear_few.h: at most `most`, beyond which a panel pays; a k too long for the scratch goes
 * the other one. */
static inline bool few_rows(const hth_linear *a, int64_t r0, int64_t r1, int most, int group) {
    return r1 - r0 <= most && (r1 - r0) * few_row_bytes(a->k, a->q->block, group) <= (int64_t)HTH_LINEAR_SCRATCH;
}

/* Fetch lines that are read later; a few at a time, since they hold up loads. Nothing is read: any address will do. */
HTH_INLINE void fetch(const char *at, const char *end) {
    for (; at < end; at += 64) _mm_prefetch(at, _MM_HINT_T0);
}

/* What is read after columns up to c1. */
static inline const char *next_weights(const hth_linear *a, int64_t c1) {
    return a->next ? a->next : (const char *)a->w + c1 * a->row_bytes;
}

/* The epilogue for n (1..8) columns from c of row r. */
HTH_INLINE void finish8(const hth_linear *a, int64_t r, int64_t c, int64_t n, __m256 acc) {
    float *y = a->y + r * a->ldy + c;
    if (n >= 8) {
        if (a->bias) acc = _mm256_add_ps(acc, _mm256_loadu_ps(a->bias + c));
        if (a->add) acc = _mm256_add_ps(acc, _mm256_loadu_ps(a->add + r * a->ldadd + c));
        _mm256_storeu_ps(y, acc);
        return;
    }
    __m256i mask = lanes_mask(n);
    if (a->bias) acc = _mm256_add_ps(acc, _mm256_maskload_ps(a->bias + c, mask));
    if (a->add) acc = _mm256_add_ps(acc, _mm256_maskload_ps(a->add + r * a->ldadd + c, mask));
    _mm256_maskstore_ps(y, mask, acc);
}

#endif
