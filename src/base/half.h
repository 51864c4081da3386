/* 16-bit floats as bit patterns, in plain C: exact, independent of the rounding mode and of flush-to-zero, and equal
 * bit for bit to what F16C instructions give (a signalling NaN comes out quiet, with its payload's upper bits kept).
 */
#ifndef HTH_BASE_HALF_H
#define HTH_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hth_f32_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float hth_f32_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* IEEE binary16 to binary32; every value is representable. */
static inline float hth_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = (uint32_t)(h >> 10) & 31;
    uint32_t mantissa = h & 0x3FF;
    if (exponent == 0) /* zero or denormal: a multiple of 2^-24, which is a normal binary32 */
        return hth_f32_from_bits(sign | hth_f32_bits((float)mantissa * 0x1p-24f));
    if (exponent == 31) return hth_f32_from_bits(sign | 0x7F800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
    return hth_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* Binary32 to binary16, to nearest, ties to even; beyond 65504 + half a step it is infinity. */
static inline uint16_t hth_f32_to_f16(float f) {
    uint32_t bits = hth_f32_bits(f);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* rounds to 65536 or more */
    if (magnitude < 0x33000000) return sign;                       /* below 2^-25 */
    uint32_t value, shift;
    if (magnitude >= 0x38800000) { /* normal: rebias, drop 13 bits */
        value = magnitude - (UINT32_C(112) << 23);
        shift = 13;
    } else { /* denormal: the mantissa with its leading one, in units of 2^-24 */
        value = (magnitude & 0x7FFFFF) | 0x800000;
        shift = 126 - (magnitude >> 23);
    }
    uint32_t rest = value & ((UINT32_C(1) << shift) - 1), half = UINT32_C(1) << (shift - 1);
    value >>= shift;
    value += rest > half || (rest == half && (value & 1)); /* a carry into the exponent is the right next value */
    return (uint16_t)(sign | value);
}

/* bfloat16 is the upper half of a binary32. */
static inline float hth_bf16_to_f32(uint16_t h) {
    return hth_f32_from_bits((uint32_t)h << 16);
}

/* To nearest, ties to even; a NaN stays one, quiet. */
static inline uint16_t hth_f32_to_bf16(float f) {
    uint32_t bits = hth_f32_bits(f);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
