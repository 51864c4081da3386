/* One or two rows on 512-bit vectors: sixteen blocks of 32 at a time, two in a vector, or eight of 256. */
#include "backends/cpu/x86/avx512/lanes.h"
#include "backends/cpu/x86/avx512/linear.h"
#include "backends/cpu/x86/avx512/unpack512.h"

enum {
    MAX_ROWS = HTH_AVX512_FEW_ROWS,
    GROUP_32 = HTH_AVX512_GROUP_32,
    GROUP_256 = HTH_AVX512_GROUP_256,
    SIDE_SUB_32 = 16,
    PREFETCH = 12288
};
#define FEW_ROWS(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3) X(__VA_ARGS__, 4)
#define FEW_FORMAT(name) wide_##name
typedef wide32 few_format32;
typedef wide256 few_format256;

#include "backends/cpu/x86/linear_few.h"

/* ---- Sums across lanes ---- */

/* In each 128-bit lane: words 0 + 2 and 1 + 3 of a, then of b. */
HTH_INLINE __m512i add_halves_of_lanes(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* In each 128-bit lane: words 0 + 1 and 2 + 3 of a, then of b. */
HTH_INLINE __m512i add_pairs_of_lanes(__m512i a, __m512i b) {
    __m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xDD)));
}

/* In each 128-bit lane: its sum in a, b, c and d. */
HTH_INLINE __m512i add_lanes(__m512i a, __m512i b, __m512i c, __m512i d) {
    return add_pairs_of_lanes(add_halves_of_lanes(a, b), add_halves_of_lanes(c, d));
}

/* The 128-bit lanes 0 + 1 and 2 + 3. */
HTH_INLINE __m256i add_lane_pairs(__m512i v) {
    __m512i even = _mm512_shuffle_i32x4(v, v, HTH_LANES(0, 2, 0, 2)),
            odd = _mm512_shuffle_i32x4(v, v, HTH_LANES(1, 3, 1, 3));
    return _mm256_add_epi32(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd));
}

/* ---- Blocks of 32 ---- */

/* Word 2i + h: the sum of half h of v[i]. */
HTH_INLINE __m512i sums_of_halves(const __m512i v[8]) {
    __m512i a = add_lanes(v[0], v[1], v[2], v[3]), b = add_lanes(v[4], v[5], v[6], v[7]);
    __m512i s = _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, HTH_LANES(0, 2, 0, 2)),
                                 _mm512_shuffle_i32x4(a, b, HTH_LANES(1, 3, 1, 3)));
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15), s);
}

/* The 16-bit words at b, b + n, b + 2n and b + 3n: from two vectors that lie inside these blocks. */
HTH_INLINE __m128i first_words(const uint8_t *b, int n) {
    const int second = n >= 32 ? 2 * n : 4 * n - 64; /* where the second vector begins */
    const long long two = n / 2, three = 32 + (2 * n - second) / 2, four = 32 + (3 * n - second) / 2;
    const __m512i at = _mm512_castsi128_si512(_mm_cvtsi64_si128(two << 16 | three << 32 | four << 48));
    return _mm512_castsi512_si128(_mm512_permutex2var_epi16(_mm512_loadu_si512(b), at, _mm512_loadu_si512(b + second)));
}

/* The same with 32-bit words; n is a multiple of 4, at most 32. */
HTH_INLINE __m128i first_doubles(const uint8_t *b, int n) {
    const int second = 4 * n - 64;
    const __m512i at =
        _mm512_castsi128_si512(_mm_setr_epi32(0, n / 4, 16 + (2 * n - second) / 4, 16 + (3 * n - second) / 4));
    return _mm512_castsi512_si128(_mm512_permutex2var_epi32(_mm512_loadu_si512(b), at, _mm512_loadu_si512(b + second)));
}

/* The scales of sixteen blocks of MXFP4. Of four blocks, 17 bytes apart, the
 * second and the fourth exponent are upper bytes of 16-bit words. */
HTH_INLINE __m512 e8m0_of_stream(const uint8_t *b) {
    const __m512i at = _mm512_castsi128_si512(_mm_setr_epi16(0, 8, 17, 25, 0, 0, 0, 0));
    __m128i words[4];
    HTH_UNROLL for (int i = 0; i < 4; i++) words[i] =
        _mm512_castsi512_si128(_mm512_permutexvar_epi16(at, _mm512_loadu_si512(b + 4 * HTH_MXFP4_BYTES * i)));
    __m256i all = _mm256_set_m128i(_mm_unpacklo_epi64(words[2], words[3]), _mm_unpacklo_epi64(words[0], words[1]));
    all = _mm256_blend_epi16(all, _mm256_srli_epi16(all, 8), 0xAA);
    return e8m0_scales_512(_mm512_cvtepi16_epi32(_mm256_and_si256(all, _mm256_set1_epi16(255))));
}

/* The scales of sixteen blocks, and their minimums if they have them. */
HTH_INLINE void scales_of_stream(const format32 *f, const uint8_t *b, __m512 *d, __m512 *m) {
    const int n = f->bytes;
    *m = _mm512_setzero_ps();
    if (f->is_e8m0) {
        *d = e8m0_of_stream(b);
    } else if (f->has_min) {
        __m512i x = in_lanes(first_doubles(b, n), first_doubles(b + 4 * n, n), first_doubles(b + 8 * n, n),
                             first_doubles(b + 12 * n, n));
        *d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
        *m = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
    } else {
        __m128i lo = _mm_unpacklo_epi64(first_words(b, n), first_words(b + 4 * n, n));
        __m128i hi = _mm_unpacklo_epi64(first_words(b + 8 * n, n), first_words(b + 12 * n, n));
        *d = _mm512_cvtph_ps(_mm256_set_m128i(hi, lo));
    }
}

HTH_INLINE void group32(const wide32 *f, const uint8_t *w, const char *ahead, const input *in, int rows, int64_t at,
                        int64_t to) {
    const int n = f->format->bytes;
    fetch(ahead, ahead + GROUP_32 * n);
    __m512 d, m;
    __m512i weights[8], p[8];
    HTH_UNROLL for (int i = 0; i < 8; i++) weights[i] = f->weights(w + 2 * i * n, w + (2 * i + 1) * n);
    scales_of_stream(f->format, w, &d, &m);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        const int8_t *q = in[r].q + 32 * at;
        const char *side = (const char *)in[r].side + 4 * at;
        HTH_UNROLL for (int i = 0; i < 8; i++) p[i] =
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), weights[i], _mm512_loadu_si512(q + 64 * i));
        __m512i s = sums_of_halves(p);
        __m512 v;
        if (f->format->has_min) {
            v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s), d, _mm512_mul_ps(m, _mm512_loadu_ps(side)));
        } else {
            s = _mm512_sub_epi32(s, _mm512_loadu_si512(side));
            v = _mm512_mul_ps(_mm512_cvtepi32_ps(s), d);
        }
        _mm512_storeu_ps(in[r].f + to, v);
    }
}

/* ---- Blocks of 256 ---- */

/* How many blocks share a vector of scales. */
HTH_INLINE int blocks_of_scales(const wide256 *f) {
    return f->format->sub == 16 ? 2 : 4;
}

/* Of the scales of some blocks, those of weights(j) of block i, each in the 16-bit words that it multiplies. */
HTH_INLINE __m512i scale_words(int sub, __m512i scales, int i, int j) {
    const int at = 256 / sub * i + 64 / sub * j, step = sub == 16 ? 1 : 0;
    const int a = at * 0x10001, b = (at + step) * 0x10001, c = (at + 2 * step + !step) * 0x10001,
              d = c + step * 0x10001;
    const __m512i index = _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
    return _mm512_permutexvar_epi16(index, scales);
}

/* s + the exact products of block b of the stream, as partial sums. Bytes of up to 63 make 16-bit sums of two products,
 * which meet their scales in one more step; larger ones make 32-bit sums first. */
HTH_INLINE void add_block(const wide256 *f, const uint8_t *w, __m512i scales, int i, const input *in, int rows,
                          int64_t at, __m512i s[MAX_ROWS]) {
    HTH_UNROLL for (int j = 0; j < 4; j++) {
        __m512i weights = f->weights(w, j), scale = scale_words(f->format->sub, scales, i, j);
        if (f->format->max > 63) scale = _mm512_srai_epi32(scale, 16);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            __m512i q = _mm512_loadu_si512(in[r].q + 256 * at + 64 * j);
            if (f->format->max > 63) {
                q = _mm512_dpbusd_epi32(_mm512_setzero_si512(), weights, q);
                s[r] = _mm512_add_epi32(s[r], _mm512_mullo_epi32(q, scale));
            } else {
                s[r] = _mm512_dpwssd_epi32(s[r], _mm512_maddubs_epi16(weights, q), scale);
            }
        }
    }
}

/* Scales for the products with weights(): the low halves of weights are raised here, where it costs one multiplication
 * for two blocks. */
HTH_INLINE __m512i raised_scales(const wide256 *f, __m512i scale) {
    if (f->raised == 0) return scale;
    const long long one = 0x0001000100000000, raised = 0x0000000000010001; /* of the four sub-blocks of 64 elements */
    return _mm512_mullo_epi16(scale, _mm512_set1_epi64(raised << f->raised | one));
}

/* What the bias of block i added, as partial sums: of the products of its scales and the sums of q, which lie in the
 * words of t that block i has. */
HTH_INLINE __m512i without_bias(const wide256 *f, __m512i t, int i) {
    const int words = 16 / blocks_of_scales(f);
    const __mmask16 mine = (__mmask16)(((1 << words) - 1) << words * i);
    int shift = 0;
    while (1 << shift < f->bias) shift++;
    return _mm512_maskz_sub_epi32(mine, _mm512_setzero_si512(), _mm512_slli_epi32(t, (unsigned)(shift + f->raised)));
}

/* Four blocks of the stream: in each 128-bit lane of s[r] its sums of the four, raised; of m[r] with minimums, the
 * products of these with the sums of q: those of block i in lane i, or, with sub-blocks of 16, of blocks 0 and 2 in the
 * low half and of 1 and 3 in the high one, two words of each in a lane. */
HTH_INLINE void quad256(const wide256 *f, const uint8_t *w, const char *ahead, const input *in, int rows, int64_t at,
                        __m512i s[MAX_ROWS], __m512i m[MAX_ROWS]) {
    const int n = f->format->bytes, together = blocks_of_scales(f);
    __m512i scale, min, block[4][MAX_ROWS], t[4][MAX_ROWS];
    fetch(ahead, ahead + 4 * n);
    HTH_UNROLL for (int i = 0; i < 4; i++) {
        const int in_scales = i % together, group = i / together;
        if (in_scales == 0) {
            f->scales(w + i * n, &scale, &min);
            HTH_UNROLL for (int r = 0; r < rows; r++) t[group][r] =
                _mm512_dpwssd_epi32(_mm512_setzero_si512(), f->format->has_min ? min : scale,
                                    _mm512_loadu_si512((const char *)in[r].side + 64 / together * (at + i)));
            scale = raised_scales(f, scale);
        }
        HTH_UNROLL for (int r = 0; r < rows; r++) block[i][r] =
            f->bias ? without_bias(f, t[group][r], in_scales) : _mm512_setzero_si512();
        add_block(f, w + i * n, scale, in_scales, in, rows, at + i, block[i]);
    }
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        s[r] = add_lanes(block[0][r], block[1][r], block[2][r], block[3][r]);
        if (f->format->has_min) m[r] = together == 4 ? t[0][r] : add_halves_of_lanes(t[0][r], t[1][r]);
    }
}

/* Word i: the sum of block i of eight, from the m of quad256. */
HTH_INLINE __m256i sums_of_minimums(int sub, __m512i a, __m512i b) {
    __m512i m = add_pairs_of_lanes(a, b);
    if (sub == 16) return _mm256_permutevar8x32_epi32(add_lane_pairs(m), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    m = add_pairs_of_lanes(m, m);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, m));
}

HTH_INLINE void group256(const wide256 *f, const uint8_t *w, const char *ahead, const input *in, int rows, int64_t at,
                         int64_t to) {
    const int n = f->format->bytes;
    __m512i s[2][MAX_ROWS], m[2][MAX_ROWS];
    if (f->raised) { /* few bits: bound by instructions, so that the sums stay in registers */
        quad256(f, w, ahead, in, rows, at, s[0], m[0]);
        quad256(f, w + 4 * n, ahead + 4 * n, in, rows, at + 4, s[1], m[1]);
    } else { /* bound by memory: in one body, all that is fetched would be asked for at once */
        for (int h = 0; h < 2; h++) quad256(f, w + 4 * h * n, ahead + 4 * h * n, in, rows, at + 4 * h, s[h], m[h]);
    }
    __m256 d = halves8(w + f->format->d_at, n), dmin = _mm256_setzero_ps();
    if (f->format->has_min) dmin = negative(halves8(w + f->format->dmin_at, n));
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m512i sum = _mm512_add_epi32(_mm512_shuffle_i32x4(s[0][r], s[1][r], HTH_LANES(0, 1, 0, 1)),
                                       _mm512_shuffle_i32x4(s[0][r], s[1][r], HTH_LANES(2, 3, 2, 3)));
        __m256 v = _mm256_cvtepi32_ps(_mm256_srai_epi32(add_lane_pairs(sum), (unsigned)f->raised));
        if (f->format->has_min) {
            __m256 minimum = _mm256_cvtepi32_ps(sums_of_minimums(f->format->sub, m[0][r], m[1][r]));
            v = _mm256_fmadd_ps(v, d, _mm256_mul_ps(dmin, minimum));
        } else {
            v = _mm256_mul_ps(v, d);
        }
        _mm256_storeu_ps(in[r].f + to, v);
    }
}

/* ---- Columns ---- */

HTH_INLINE void finish_columns(const hth_linear *a, int64_t r, int64_t c, int64_t n, const float *f, const float *dy,
                               int64_t blocks) {
    const __mmask16 mask = hth_mask_avx512(n);
    __m512 acc = _mm512_setzero_ps();
    for (int64_t b = 0; b < blocks; b += 8) {
        __m512i v[8];
        HTH_UNROLL for (int i = 0; i < 8; i++) v[i] =
            join256(load256(f + first_of_pair(i) * blocks + b), load256(f + second_of_pair(i) * blocks + b));
        columns_to_words(v);
        HTH_UNROLL for (int i = 0; i < 8; i++) {
            if (i >= blocks - b) break;
            acc = _mm512_fmadd_ps(_mm512_castsi512_ps(v[i]), _mm512_set1_ps(dy[b + i]), acc);
        }
    }
    if (a->bias) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, a->bias + c));
    if (a->add) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, a->add + r * a->ldadd + c));
    _mm512_mask_storeu_ps(a->y + r * a->ldy + c, mask, acc);
}

#define DEFINE(name, dtype, block) FEW(hth_avx512, name, block)
HTH_QUANTIZED_FORMATS(DEFINE)
