/* Peaks of the reference: what the compiler makes of plain C. */
#include <math.h>
#include <string.h>

#include "backends/cpu/ref/ref.h"

enum { CHAINS = 8 };

static uint32_t multiply_int8(int64_t rounds) {
    int32_t sum[CHAINS], folded = 0, factor = (int8_t)(rounds | 1);
    for (int c = 0; c < CHAINS; c++) sum[c] = c;
    /* The sum is an operand of its own products: with constant ones the compiler would multiply once. */
    for (int64_t i = 0; i < rounds; i++)
        for (int c = 0; c < CHAINS; c++) sum[c] = (int32_t)((uint32_t)sum[c] + (uint32_t)((int8_t)sum[c] * factor));
    for (int c = 0; c < CHAINS; c++) folded ^= sum[c];
    return (uint32_t)folded;
}

static uint32_t multiply_float(int64_t rounds) {
    float sum[CHAINS], folded = 0;
    uint32_t bits;
    for (int c = 0; c < CHAINS; c++) sum[c] = (float)c;
    for (int64_t i = 0; i < rounds; i++)
        for (int c = 0; c < CHAINS; c++) sum[c] = fmaf(sum[c], 0.75f, 1.25f);
    for (int c = 0; c < CHAINS; c++) folded += sum[c];
    memcpy(&bits, &folded, sizeof bits);
    return bits;
}

static uint64_t read_all(const void *p, size_t bytes) {
    const uint64_t *at = p;
    uint64_t sum[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < bytes / sizeof *at; i += 4)
        for (size_t s = 0; s < 4; s++) sum[s] ^= at[i + s];
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

void hth_ref_init_peak(hth_kernels *t) {
    t->peak_int8 = (hth_peak){multiply_int8, CHAINS * 2};
    t->peak_float = (hth_peak){multiply_float, CHAINS * 2};
    t->read = read_all;
}
