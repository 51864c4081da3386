/* Tiles of up to four rows by sixteen columns, in 16-bit products.
 *
 * `maddubs` gives 16-bit sums of two products. As many of them as fit exactly are added in 16 bits before one `madd`
 * widens them and multiplies by the scale of their sub-block: eight for 4-bit weights. Signed 8-bit weights are
 * multiplied as |w| times q with w's sign, and widened at once. */
#include "backends/cpu/x86/avx2/linear.h"
#include "backends/cpu/x86/panel.h"

enum { KIND = PRODUCTS_16, STRIP = 16, MOST_ROWS = 4, PANELS = 1, GROUP = 4 };

typedef format32 many_format32;
typedef format256 many_format256;
#define MANY_FORMAT(name) format_##name

#include "backends/cpu/x86/linear_many.h"

#include "backends/cpu/x86/panel256.h"

/* A way to multiply, a constant where tiles are made. */
typedef struct way {
    int max;        /* largest weight byte */
    bool is_signed; /* bytes are signed */
    bool has_min;
    bool has_bias; /* blocks of 256: there are terms; blocks of 32: bias is not 0 */
    int sub;       /* elements with a scale of their own */
} way;

HTH_INLINE __m256i aligned256(const void *p) {
    return _mm256_load_si256((const __m256i *)p);
}

/* How many `maddubs` results with weights 0..max add up inside 16 bits, at most n: a power of two. */
HTH_INLINE int chain_of(int max, int n) {
    int fit = 32767 / (2 * 127 * max);
    return fit >= 8 && n >= 8 ? 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
}

/* c[r][g] = (first ? 0 : c[r][g]) + products of four k: w against the four bytes of each row `at` bytes behind q. */
HTH_INLINE void step(const uint8_t w[2][32], const int8_t *const q[MOST_ROWS], int64_t at, int rows, bool first,
                     __m256i c[MOST_ROWS][2]) {
    __m256i w0 = aligned256(w[0]), w1 = aligned256(w[1]);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m256i x = broadcast32(q[r] + at);
        __m256i p0 = _mm256_maddubs_epi16(w0, x), p1 = _mm256_maddubs_epi16(w1, x);
        c[r][0] = first ? p0 : in_order(_mm256_add_epi16(c[r][0], p0));
        c[r][1] = first ? p1 : in_order(_mm256_add_epi16(c[r][1], p1));
    }
}

HTH_INLINE void step_signed(const uint8_t w[2][32], const int8_t *const q[MOST_ROWS], int64_t at, int rows,
                            __m256i scale0, __m256i scale1, __m256i s[MOST_ROWS][2]) {
    __m256i w0 = aligned256(w[0]), w1 = aligned256(w[1]), a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m256i x = broadcast32(q[r] + at);
        __m256i p0 = _mm256_maddubs_epi16(a0, _mm256_sign_epi8(x, w0));
        __m256i p1 = _mm256_maddubs_epi16(a1, _mm256_sign_epi8(x, w1));
        s[r][0] = in_order(_mm256_add_epi32(s[r][0], _mm256_madd_epi16(p0, scale0)));
        s[r][1] = in_order(_mm256_add_epi32(s[r][1], _mm256_madd_epi16(p1, scale1)));
    }
}

/* s[r][g] += scale * dot over one sub-block. */
HTH_INLINE void sub_block(way v, const uint8_t w[][2][32], const int8_t *const q[MOST_ROWS], int64_t at, int rows,
                          __m256i scale0, __m256i scale1, __m256i s[MOST_ROWS][2]) {
    const int steps = v.sub / 4, chain = chain_of(v.max, steps);
    if (v.is_signed) {
        HTH_UNROLL for (int i = 0; i < steps; i++) step_signed(w[i], q, at + 4 * i, rows, scale0, scale1, s);
        return;
    }
    HTH_UNROLL for (int begin = 0; begin < steps; begin += chain) {
        __m256i c[MOST_ROWS][2];
        HTH_UNROLL for (int i = 0; i < chain; i++) step(w[begin + i], q, at + 4 * (begin + i), rows, i == 0, c);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            s[r][0] = in_order(_mm256_add_epi32(s[r][0], _mm256_madd_epi16(c[r][0], scale0)));
            s[r][1] = in_order(_mm256_add_epi32(s[r][1], _mm256_madd_epi16(c[r][1], scale1)));
        }
    }
}

HTH_INLINE void load_sums(const float *sums, int rows, __m256 acc[MOST_ROWS][2]) {
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        acc[r][0] = _mm256_load_ps(sums + r * PANEL);
        acc[r][1] = _mm256_load_ps(sums + r * PANEL + 8);
    }
}

HTH_INLINE void store_sums(float *sums, int rows, __m256 acc[MOST_ROWS][2]) {
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        _mm256_store_ps(sums + r * PANEL, acc[r][0]);
        _mm256_store_ps(sums + r * PANEL + 8, acc[r][1]);
    }
}

HTH_INLINE void tile32(way v, const panel32 *p, int64_t blocks, const tile_rows *x, int rows, float *sums) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256 acc[MOST_ROWS][2];
    const int8_t *q[MOST_ROWS];
    HTH_UNROLL for (int r = 0; r < rows; r++) q[r] = x->q + r * x->q_stride;
    load_sums(sums, rows, acc);
    for (int64_t b = 0; b < blocks; b++, p++) {
        __m256i s[MOST_ROWS][2];
        HTH_UNROLL for (int r = 0; r < rows; r++) s[r][0] = s[r][1] =
            v.has_bias ? broadcast32(&x->sides[r * SIDES + b]) : _mm256_setzero_si256();
        fetch_step(x, b);
        sub_block(v, p->w, q, 0, rows, one, one, s);
        HTH_UNROLL for (int r = 0; r < rows; r++) q[r] += 32;
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            __m256 total = _mm256_broadcast_ss(&x->sides[r * SIDES + b].total);
            __m256 dy = _mm256_broadcast_ss(x->d + r * x->d_stride + b);
            HTH_UNROLL for (int g = 0; g < 2; g++) {
                __m256 f = _mm256_cvtepi32_ps(s[r][g]), d = _mm256_load_ps(p->d[g]);
                if (v.has_min) f = _mm256_fmadd_ps(f, d, _mm256_mul_ps(_mm256_load_ps(p->m[g]), total));
                else f = _mm256_mul_ps(f, d);
                acc[r][g] = _mm256_fmadd_ps(f, dy, acc[r][g]);
            }
        }
    }
    store_sums(sums, rows, acc);
}

/* t[r][g]: the sums of q times the terms of the sub-blocks. */
HTH_INLINE void terms(way v, const panel256 *p, const int16_t *sums, int64_t stride, int rows,
                      __m256i t[MOST_ROWS][2]) {
    HTH_UNROLL for (int r = 0; r < rows; r++) t[r][0] = t[r][1] = _mm256_setzero_si256();
    if (!v.has_min && !v.has_bias) return;
    HTH_UNROLL for (int j = 0; j < 128 / v.sub; j++) {
        __m256i m0 = aligned256(p->term[j][0]), m1 = aligned256(p->term[j][1]);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            __m256i two = broadcast32(sums + r * stride + 2 * j);
            t[r][0] = _mm256_add_epi32(t[r][0], _mm256_madd_epi16(m0, two));
            t[r][1] = _mm256_add_epi32(t[r][1], _mm256_madd_epi16(m1, two));
        }
    }
}

HTH_INLINE void tile256(way v, const panel256 *p, int64_t blocks, const tile_rows *x, int rows, float *sums) {
    const int subs = 256 / v.sub, steps = v.sub / 4;
    __m256 acc[MOST_ROWS][2];
    const int8_t *q[MOST_ROWS];
    HTH_UNROLL for (int r = 0; r < rows; r++) q[r] = x->q + r * x->q_stride;
    load_sums(sums, rows, acc);
    for (int64_t b = 0; b < blocks; b++, p++) {
        __m256i s[MOST_ROWS][2], t[MOST_ROWS][2];
        HTH_UNROLL for (int r = 0; r < rows; r++) s[r][0] = s[r][1] = _mm256_setzero_si256();
        for (int j = 0; j < subs; j++) {
            if (j % (64 / v.sub) == 0) fetch_step(x, 4 * b + j / (64 / v.sub));
            sub_block(v, p->w + steps * j, q, 256 * b + v.sub * j, rows, aligned256(p->scale[j][0]),
                      aligned256(p->scale[j][1]), s);
        }
        terms(v, p, x->sums + subs * b, x->sums_stride, rows, t);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            __m256 dy = _mm256_broadcast_ss(x->d + r * x->d_stride + b);
            HTH_UNROLL for (int g = 0; g < 2; g++) {
                __m256 f, d = _mm256_load_ps(p->d[g]);
                if (v.has_min) {
                    f = _mm256_mul_ps(_mm256_load_ps(p->m[g]), _mm256_cvtepi32_ps(t[r][g]));
                    f = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[r][g]), d, f);
                } else {
                    f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(s[r][g], t[r][g])), d);
                }
                acc[r][g] = _mm256_fmadd_ps(f, dy, acc[r][g]);
            }
        }
    }
    store_sums(sums, rows, acc);
}

#define TILE(name, block, rows, ...)                                                                                   \
    static void name##_##rows(const void *p, int64_t n, const tile_rows *x, float *sums) {                             \
        tile##block((way){__VA_ARGS__}, p, n, x, rows, sums);                                                          \
    }
#define TILES(name, block, ...)                                                                                        \
    TILE(name, block, 1, __VA_ARGS__)                                                                                  \
    TILE(name, block, 2, __VA_ARGS__)                                                                                  \
    TILE(name, block, 3, __VA_ARGS__)                                                                                  \
    TILE(name, block, 4, __VA_ARGS__)                                                                                  \
    static tile_fn *const name[MOST_ROWS] = {name##_1, name##_2, name##_3, name##_4};
TILES(bits4_bias, 32, .max = 15, .has_bias = true, .sub = 32)
TILES(bits4_min, 32, .max = 15, .has_min = true, .sub = 32)
TILES(bits5_bias, 32, .max = 31, .has_bias = true, .sub = 32)
TILES(bits5_min, 32, .max = 31, .has_min = true, .sub = 32)
TILES(bytes_signed, 32, .max = 128, .is_signed = true, .sub = 32)
TILES(k_bits2_min, 256, .max = 3, .has_min = true, .sub = 16)
TILES(k_bits3_bias, 256, .max = 7, .has_bias = true, .sub = 16)
TILES(k_bits4_min, 256, .max = 15, .has_min = true, .sub = 32)
TILES(k_bits5_min, 256, .max = 31, .has_min = true, .sub = 32)
TILES(k_bits6_bias, 256, .max = 63, .has_bias = true, .sub = 16)
TILES(k_bytes_signed, 256, .max = 128, .is_signed = true, .sub = 32)

MANY(hth_avx2, q4_0, 32, bits4_bias)
MANY(hth_avx2, q4_1, 32, bits4_min)
MANY(hth_avx2, q5_0, 32, bits5_bias)
MANY(hth_avx2, q5_1, 32, bits5_min)
MANY(hth_avx2, q8_0, 32, bytes_signed)
MANY(hth_avx2, iq4_nl, 32, bytes_signed)
MANY(hth_avx2, mxfp4, 32, bits5_bias)
MANY(hth_avx2, q2_k, 256, k_bits2_min)
MANY(hth_avx2, q3_k, 256, k_bits3_bias)
MANY(hth_avx2, q4_k, 256, k_bits4_min)
MANY(hth_avx2, q5_k, 256, k_bits5_min)
MANY(hth_avx2, q6_k, 256, k_bits6_bias)
MANY(hth_avx2, iq4_xs, 256, k_bytes_signed)
