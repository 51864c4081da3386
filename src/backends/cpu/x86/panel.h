/* Weights unpacked for many rows: sixteen columns side by side, so that the lanes of a vector are output columns.
 *
 * A 32-bit lane holds four k of its column; four k of a row, broadcast to all lanes, multiply them without a shuffle
 * and without a horizontal sum. Sixteen columns are two 256-bit vectors or one of 512 bits. */
#ifndef HTH_BACKENDS_CPU_X86_PANEL_H
#define HTH_BACKENDS_CPU_X86_PANEL_H

#include "backends/cpu/x86/unpack256.h"

typedef struct panel32 {
    _Alignas(64) uint8_t w[8][2][32]; /* [k / 4][column / 8][column % 8 * 4 + k % 4] */
    float d[2][8], m[2][8];
} panel32;

typedef struct panel256 {
    _Alignas(64) uint8_t w[64][2][32];
    int32_t scale[16][2][8]; /* of a sub-block: an int32, or twice an int16 */
    int16_t term[8][2][16];  /* of two sub-blocks a lane: minimums, or biased scales */
    float d[2][8], m[2][8];
} panel256;

/* How a tier multiplies. Exact 16-bit sums of products want small unsigned bytes or signed ones, and scales for 16-bit
 * multiplication; 32-bit sums want unsigned bytes only, and scales for 32-bit multiplication. */
typedef enum products_kind { PRODUCTS_16, PRODUCTS_32 } products_kind;

/* What the bytes of a panel are larger by than the weights. */
HTH_INLINE int bias_for(products_kind kind, bool is_signed, int bias) {
    return kind == PRODUCTS_32 && is_signed ? 128 : bias;
}

#endif
