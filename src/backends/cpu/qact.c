#include <string.h>

#include "backends/cpu/kernels.h"

static int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

int hth_activation_block(hth_dtype dtype) {
    switch (dtype) {
    case HTH_F32:
    case HTH_F16:
    case HTH_BF16: return 0;
    case HTH_Q2_K:
    case HTH_Q3_K:
    case HTH_Q4_K:
    case HTH_Q5_K:
    case HTH_Q6_K:
    case HTH_IQ4_XS: return 256;
    default: return 32;
    }
}

/* Bytes from row to row of q. Kernels keep 512 bytes of some rows in the first cache together; at a multiple of 1,024
 * these would fall into a half of its sets, or less. */
static int64_t row_stride(int64_t k) {
    int64_t stride = round_up(k, 64);
    return stride % 1024 == 0 ? stride + 512 : stride;
}

/* The four areas of a hth_qact, one after the other, each a multiple of 64 bytes: q, d, sum16, sum32. The scales are
 * counted for blocks of 32, the larger number, so that the size does not depend on the block. */
size_t hth_qact_bytes(int64_t rows, int64_t k) {
    size_t q = (size_t)(rows * row_stride(k));
    size_t d = (size_t)round_up(rows * (k / 32) * (int64_t)sizeof(float), 64);
    size_t sums = (size_t)(rows * (round_up(k / 16, 32) + round_up(k / 32, 32))) * sizeof(int16_t);
    return q + d + sums;
}

void hth_qact_carve(hth_qact *a, int64_t rows, int64_t k, int block, void *base) {
    *a = (hth_qact){
        .k = k,
        .block = block,
        .blocks = k / block,
        .q_stride = row_stride(k),
        .sum16_stride = round_up(k / 16, 32),
        .sum32_stride = round_up(k / 32, 32),
    };
    char *at = base;
    a->q = (int8_t *)at;
    at += rows * a->q_stride;
    a->d = (float *)at;
    at += round_up(rows * (k / 32) * (int64_t)sizeof(float), 64);
    a->sum16 = (int16_t *)at;
    at += rows * a->sum16_stride * (int64_t)sizeof(int16_t);
    a->sum32 = (int16_t *)at;
}

hth_qact hth_qact_from(const hth_qact *a, int64_t row) {
    hth_qact rows = *a;
    rows.q += row * a->q_stride;
    rows.d += row * a->blocks;
    rows.sum16 += row * a->sum16_stride;
    rows.sum32 += row * a->sum32_stride;
    return rows;
}

void hth_qact_copy_row(const hth_qact *a, int64_t from, const hth_qact *b, int64_t to) {
    hth_qact x = hth_qact_from(a, from), y = hth_qact_from(b, to);
    memcpy(y.q, x.q, (size_t)a->q_stride);
    memcpy(y.d, x.d, (size_t)a->blocks * sizeof *y.d);
    memcpy(y.sum16, x.sum16, (size_t)a->sum16_stride * sizeof *y.sum16);
    memcpy(y.sum32, x.sum32, (size_t)a->sum32_stride * sizeof *y.sum32);
}
