/* Block layouts of the quantized dtypes, as they lie in a GGUF file.
 *
 * A row is a sequence of blocks; `d`, `m` and `dmin` are binary16 bit patterns (base/half.h). The structures are
 * packed: a block may start at any byte. hth_dequant_row (base/dequant.h) is the plain statement of what each block
 * means.
 */
#ifndef HTH_BASE_BLOCK_H
#define HTH_BASE_BLOCK_H

#include <stdint.h>

#include "base/dtype.h"

#define PACKED __attribute__((packed))

/* Blocks of 32. Nibbles: the low ones of the 16 bytes are elements 0..15, the high ones 16..31; bit i of qh is the
 * fifth bit of element i. */

typedef struct PACKED hth_block_q4_0 { /* d * (q - 8) */
    uint16_t d;
    uint8_t qs[16];
} hth_block_q4_0;

typedef struct PACKED hth_block_q4_1 { /* d * q + m */
    uint16_t d, m;
    uint8_t qs[16];
} hth_block_q4_1;

typedef struct PACKED hth_block_q5_0 { /* d * (q - 16) */
    uint16_t d;
    uint32_t qh;
    uint8_t qs[16];
} hth_block_q5_0;

typedef struct PACKED hth_block_q5_1 { /* d * q + m */
    uint16_t d, m;
    uint32_t qh;
    uint8_t qs[16];
} hth_block_q5_1;

typedef struct PACKED hth_block_q8_0 { /* d * q */
    uint16_t d;
    int8_t qs[32];
} hth_block_q8_0;

typedef struct PACKED hth_block_iq4_nl { /* d * HTH_IQ4_VALUES[q] */
    uint16_t d;
    uint8_t qs[16];
} hth_block_iq4_nl;

typedef struct PACKED hth_block_mxfp4 { /* 2^(e - 128) * HTH_MXFP4_VALUES[q] */
    uint8_t e;
    uint8_t qs[16];
} hth_block_mxfp4;

/* Blocks of 256: sixteen groups of 16 or eight groups of 32, each with a scale (and a minimum) of its own. */

typedef struct PACKED hth_block_q2_k { /* d * scale * q - dmin * min */
    uint8_t scales[16];                /* a group of 16: scale in the low nibble, min in the high one */
    uint8_t qs[64];                    /* element 128h + 32s + l: bits 2s.. of byte 32h + l */
    uint16_t d, dmin;
} hth_block_q2_k;

typedef struct PACKED hth_block_q3_k { /* d * (scale - 32) * (q - 4) */
    uint8_t hmask[32];                 /* element 128h + 32s + l: its third bit is bit 4h + s of byte l */
    uint8_t qs[64];                    /* as in Q2_K */
    uint8_t scales[12];                /* sixteen of 6 bits: low four in the nibbles of 0..7, high two in 8..11 */
    uint16_t d;
} hth_block_q3_k;

typedef struct PACKED hth_block_q4_k { /* d * scale * q - dmin * min */
    uint16_t d, dmin;
    uint8_t scales[12]; /* eight pairs of 6 bits, see hth_k4_scale and hth_k4_min */
    uint8_t qs[128];    /* groups 2g and 2g + 1: low and high nibbles of bytes 32g..32g + 31 */
} hth_block_q4_k;

typedef struct PACKED hth_block_q5_k { /* d * scale * q - dmin * min */
    uint16_t d, dmin;
    uint8_t scales[12]; /* as in Q4_K */
    uint8_t qh[32];     /* element 32g + l: its fifth bit is bit g of byte l */
    uint8_t qs[128];    /* as in Q4_K */
} hth_block_q5_k;

typedef struct PACKED hth_block_q6_k { /* d * scale * (q - 32) */
    uint8_t ql[128];   /* element 128h + 32s + l: a nibble (low for s < 2) of byte 64h + 32(s & 1) + l */
    uint8_t qh[64];    /* its upper two bits: bits 2s.. of byte 32h + l */
    int8_t scales[16]; /* of each group of 16 */
    uint16_t d;
} hth_block_q6_k;

typedef struct PACKED hth_block_iq4_xs { /* d * (scale - 32) * HTH_IQ4_VALUES[q] */
    uint16_t d;
    uint16_t scales_h;   /* group g of 32: upper two bits of its scale at bit 2g */
    uint8_t scales_l[4]; /* lower four: a nibble of byte g / 2 */
    uint8_t qs[128];     /* group g: nibbles of bytes 16g..16g + 15, low ones first */
} hth_block_iq4_xs;

#undef PACKED

/* HTH_Q4_K_BLOCK elements take HTH_Q4_K_BYTES bytes, and so on: constants of every dtype. */
enum {
#define X(name, id, block, bytes, computed) HTH_##name##_BLOCK = block, HTH_##name##_BYTES = bytes,
    HTH_DTYPE_LIST(X)
#undef X
};

#define CHECK_BLOCK(name, type) _Static_assert(sizeof(type) == HTH_##name##_BYTES, #name)
CHECK_BLOCK(Q4_0, hth_block_q4_0);
CHECK_BLOCK(Q4_1, hth_block_q4_1);
CHECK_BLOCK(Q5_0, hth_block_q5_0);
CHECK_BLOCK(Q5_1, hth_block_q5_1);
CHECK_BLOCK(Q8_0, hth_block_q8_0);
CHECK_BLOCK(Q2_K, hth_block_q2_k);
CHECK_BLOCK(Q3_K, hth_block_q3_k);
CHECK_BLOCK(Q4_K, hth_block_q4_k);
CHECK_BLOCK(Q5_K, hth_block_q5_k);
CHECK_BLOCK(Q6_K, hth_block_q6_k);
CHECK_BLOCK(IQ4_NL, hth_block_iq4_nl);
CHECK_BLOCK(IQ4_XS, hth_block_iq4_xs);
CHECK_BLOCK(MXFP4, hth_block_mxfp4);
#undef CHECK_BLOCK

/* Initializers, so that a kernel can lay its table out as it likes. MXFP4's are twice the E2M1 values, which is why its
 * exponent bias is 128. */
#define HTH_IQ4_VALUES   -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
#define HTH_MXFP4_VALUES 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12

/* Scale and minimum (0..63) of group j (0..7) in the twelve bytes of a Q4_K or Q5_K block: bytes 0..3 and 4..7 hold the
 * first four of each; the last four keep their low nibbles in bytes 8..11 and their upper two bits on top of the first
 * four. */
static inline int hth_k4_scale(const uint8_t scales[12], int j) {
    return j < 4 ? scales[j] & 63 : (scales[j + 4] & 15) | scales[j - 4] >> 6 << 4;
}

static inline int hth_k4_min(const uint8_t scales[12], int j) {
    return j < 4 ? scales[j + 4] & 63 : scales[j + 4] >> 4 | scales[j] >> 6 << 4;
}

/* Scale - 32 (-32..31) of group g (0..15) of a Q3_K block. */
static inline int hth_q3_k_scale(const uint8_t scales[12], int g) {
    int low = scales[g & 7] >> 4 * (g >> 3) & 15, high = scales[8 + (g & 3)] >> 2 * (g >> 2) & 3;
    return (low | high << 4) - 32;
}

/* Scale - 32 (-32..31) of group g (0..7) of an IQ4_XS block. */
static inline int hth_iq4_xs_scale(const hth_block_iq4_xs *b, int g) {
    int low = b->scales_l[g >> 1] >> 4 * (g & 1) & 15, high = b->scales_h >> 2 * g & 3;
    return (low | high << 4) - 32;
}

/* 2^(e - 128) as a binary32 bit pattern; the two smallest are denormal, and e = 255 is not special. */
static inline uint32_t hth_mxfp4_scale_bits(uint8_t e) {
    return e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23;
}

#endif
