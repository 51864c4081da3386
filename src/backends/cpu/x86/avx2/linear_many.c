/* Many rows (prefill): columns by a slice of k are unpacked into panels in the scratch, and all rows pass over them.
 * Lanes are output columns: a 32-bit lane holds four k of its column, and four k of a row are broadcast to all lanes,
 * so there is no shuffle and no horizontal sum.
 *
 * `maddubs` gives 16-bit sums of two products. As many of them as fit exactly are added in 16 bits before one `madd`
 * widens them and multiplies by the scale of their sub-block: eight for 4-bit weights. Signed 8-bit weights are
 * multiplied as |w| times q with w's sign, and widened at once.
 *
 * A panel (16 columns) and a strip of 16 rows stay in the first cache together, the four panels of a group and the sums
 * in the second. */
#include "backends/cpu/x86/avx2/linear.h"
#include "backends/cpu/x86/unpack256.h"

enum {
    PANEL = 16,  /* columns of a panel: two registers */
    GROUP = 4,   /* panels that a strip of rows passes over in turn */
    TILE = 4,    /* rows of a tile */
    STRIP = 16,  /* rows of a strip */
    SLICE = 512, /* k of a panel, at most */
    ROWS = 512,  /* rows whose sums the scratch holds from slice to slice */
};

typedef struct panel32 {
    uint8_t w[8][2][32]; /* [k / 4][column / 8][column % 8 * 4 + k % 4] */
    float d[2][8], m[2][8];
} panel32;

typedef struct panel256 {
    uint8_t w[64][2][32];
    int16_t scale[16][2][16]; /* of a sub-block, twice a lane */
    int16_t term[8][2][16];   /* minimums or biased scales of two sub-blocks a lane */
    float d[2][8], m[2][8];
} panel256;

enum { PANEL32_BYTES = SLICE / 32 * sizeof(panel32), PANEL256_BYTES = SLICE / 256 * sizeof(panel256) };
enum { PANEL_BYTES = (int)PANEL32_BYTES > (int)PANEL256_BYTES ? (int)PANEL32_BYTES : (int)PANEL256_BYTES };
_Static_assert(GROUP *(PANEL_BYTES + ROWS * PANEL * sizeof(float)) <= HTH_LINEAR_SCRATCH, "scratch");

HTH_INLINE void store256(void *p, __m256i v) {
    _mm256_store_si256((__m256i *)p, v);
}

HTH_INLINE __m256i aligned256(const void *p) {
    return _mm256_load_si256((const __m256i *)p);
}

/* How many `maddubs` results with weights 0..max add up inside 16 bits, at most n: a power of two. */
HTH_INLINE int chain_of(int max, int n) {
    int fit = 32767 / (2 * 127 * max);
    return fit >= 8 && n >= 8 ? 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
}

/* ---- Panels ---- */

/* Block b of eight columns into half g of a panel. */
HTH_INLINE void unpack32(const format32 *f, const uint8_t *const column[8], panel32 *p, int g) {
    __m256i v[8];
    HTH_UNROLL for (int c = 0; c < 8; c++) v[c] = f->weights(column[c]);
    transpose8x8(v);
    HTH_UNROLL for (int i = 0; i < 8; i++) store256(p->w[i][g], v[i]);
    if (f->is_e8m0) {
        _mm256_store_ps(p->d[g], e8m0_scales(_mm256_setr_epi32(*column[0], *column[1], *column[2], *column[3],
                                                               *column[4], *column[5], *column[6], *column[7])));
    } else {
        _mm256_store_ps(p->d[g], halves_at(column, 0));
    }
    if (f->has_min) _mm256_store_ps(p->m[g], halves_at(column, 2));
}

HTH_INLINE void unpack256(const format256 *f, const uint8_t *const column[8], panel256 *p, int g) {
    for (int j = 0; j < 8; j++) {
        __m256i v[8];
        HTH_UNROLL for (int c = 0; c < 8; c++) v[c] = f->weights(column[c], j);
        transpose8x8(v);
        HTH_UNROLL for (int i = 0; i < 8; i++) store256(p->w[8 * j + i][g], v[i]);
    }
    __m256i low[8], high[8], term[8];
    HTH_UNROLL for (int c = 0; c < 8; c++) {
        __m256i scale;
        f->scales(column[c], &scale, &term[c]);
        __m128i first = _mm256_castsi256_si128(scale), last = _mm256_extracti128_si256(scale, 1);
        low[c] = _mm256_set_m128i(_mm_unpackhi_epi16(first, first), _mm_unpacklo_epi16(first, first));
        high[c] = _mm256_set_m128i(_mm_unpackhi_epi16(last, last), _mm_unpacklo_epi16(last, last));
    }
    /* Sub-block 2j of 16 is the low half of weights(j), 2j + 1 the high one; one of 32 is both. */
    transpose8x8(low);
    HTH_UNROLL for (int j = 0; j < 8; j++) store256(p->scale[32 / f->sub * j][g], low[j]);
    if (f->sub == 16) {
        transpose8x8(high);
        HTH_UNROLL for (int j = 0; j < 8; j++) store256(p->scale[2 * j + 1][g], high[j]);
    }
    if (f->has_min || f->bias) {
        transpose8x8(term);
        HTH_UNROLL for (int j = 0; j < 128 / f->sub; j++) store256(p->term[j][g], term[j]);
    }
    _mm256_store_ps(p->d[g], halves_at(column, f->d_at));
    if (f->has_min) _mm256_store_ps(p->m[g], negative(halves_at(column, f->dmin_at)));
}

/* ---- Tiles: `rows` (a constant) rows by sixteen columns over the blocks of a panel ---- */

typedef struct rows_at {
    const int8_t *q;
    const int16_t *sums; /* sum16 for sub-blocks of 16, else sum32 */
    const float *d;
    int64_t q_stride, sums_stride, d_stride;
} rows_at;

/* c[r][g] = (first ? 0 : c[r][g]) + products of four k: w against four bytes of each row at q. */
HTH_INLINE void step(const uint8_t w[2][32], const int8_t *q, int64_t q_stride, int rows, bool first,
                     __m256i c[TILE][2]) {
    __m256i w0 = aligned256(w[0]), w1 = aligned256(w[1]);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m256i x = broadcast32(q + r * q_stride);
        __m256i p0 = _mm256_maddubs_epi16(w0, x), p1 = _mm256_maddubs_epi16(w1, x);
        c[r][0] = first ? p0 : in_order(_mm256_add_epi16(c[r][0], p0));
        c[r][1] = first ? p1 : in_order(_mm256_add_epi16(c[r][1], p1));
    }
}

HTH_INLINE void step_signed(const uint8_t w[2][32], const int8_t *q, int64_t q_stride, int rows, __m256i scale0,
                            __m256i scale1, __m256i s[TILE][2]) {
    __m256i w0 = aligned256(w[0]), w1 = aligned256(w[1]), a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m256i x = broadcast32(q + r * q_stride);
        __m256i p0 = _mm256_maddubs_epi16(a0, _mm256_sign_epi8(x, w0));
        __m256i p1 = _mm256_maddubs_epi16(a1, _mm256_sign_epi8(x, w1));
        s[r][0] = in_order(_mm256_add_epi32(s[r][0], _mm256_madd_epi16(p0, scale0)));
        s[r][1] = in_order(_mm256_add_epi32(s[r][1], _mm256_madd_epi16(p1, scale1)));
    }
}

/* s[r][g] += scale * dot of `steps` times four k. */
HTH_INLINE void sub_block(const uint8_t w[][2][32], const int8_t *q, int64_t q_stride, int rows, int steps, int max,
                          bool is_signed, __m256i scale0, __m256i scale1, __m256i s[TILE][2]) {
    if (is_signed) {
        HTH_UNROLL for (int i = 0; i < steps; i++) step_signed(w[i], q + 4 * i, q_stride, rows, scale0, scale1, s);
        return;
    }
    const int chain = chain_of(max, steps);
    HTH_UNROLL for (int begin = 0; begin < steps; begin += chain) {
        __m256i c[TILE][2];
        HTH_UNROLL for (int i = 0; i < chain; i++) step(w[begin + i], q + 4 * (begin + i), q_stride, rows, i == 0, c);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            s[r][0] = in_order(_mm256_add_epi32(s[r][0], _mm256_madd_epi16(c[r][0], scale0)));
            s[r][1] = in_order(_mm256_add_epi32(s[r][1], _mm256_madd_epi16(c[r][1], scale1)));
        }
    }
}

HTH_INLINE void tile32(const format32 *f, const panel32 *p, int64_t blocks, const rows_at *x, int rows,
                       __m256 acc[TILE][2]) {
    const __m256i one = _mm256_set1_epi16(1), minus_bias = _mm256_set1_epi32(-f->bias & 0xFFFF);
    for (int64_t b = 0; b < blocks; b++, p++) {
        __m256i s[TILE][2];
        HTH_UNROLL for (int r = 0; r < rows; r++) s[r][0] = s[r][1] = _mm256_setzero_si256();
        sub_block(p->w, x->q + 32 * b, x->q_stride, rows, 8, f->max, f->is_signed, one, one, s);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            /* The sum in both halves of a lane; the multiplier picks one of them. */
            __m256i sum = _mm256_set1_epi16(x->sums[r * x->sums_stride + b]);
            __m256 dy = _mm256_broadcast_ss(x->d + r * x->d_stride + b);
            __m256 total = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum, _mm256_set1_epi32(1)));
            HTH_UNROLL for (int g = 0; g < 2; g++) {
                __m256 v, d = _mm256_load_ps(p->d[g]);
                if (f->bias) s[r][g] = _mm256_add_epi32(s[r][g], _mm256_madd_epi16(sum, minus_bias));
                v = _mm256_cvtepi32_ps(s[r][g]);
                if (f->has_min) v = _mm256_fmadd_ps(v, d, _mm256_mul_ps(_mm256_load_ps(p->m[g]), total));
                else v = _mm256_mul_ps(v, d);
                acc[r][g] = _mm256_fmadd_ps(v, dy, acc[r][g]);
            }
        }
    }
}

HTH_INLINE void tile256(const format256 *f, const panel256 *p, int64_t blocks, const rows_at *x, int rows,
                        __m256 acc[TILE][2]) {
    const int subs = 256 / f->sub, steps = f->sub / 4;
    for (int64_t b = 0; b < blocks; b++, p++) {
        __m256i s[TILE][2], t[TILE][2];
        HTH_UNROLL for (int r = 0; r < rows; r++) s[r][0] = s[r][1] = t[r][0] = t[r][1] = _mm256_setzero_si256();
        for (int j = 0; j < subs; j++)
            sub_block(p->w + steps * j, x->q + 256 * b + f->sub * j, x->q_stride, rows, steps, f->max, f->is_signed,
                      aligned256(p->scale[j][0]), aligned256(p->scale[j][1]), s);
        if (f->has_min || f->bias) HTH_UNROLL for (int j = 0; j < subs / 2; j++) {
                __m256i m0 = aligned256(p->term[j][0]), m1 = aligned256(p->term[j][1]);
                HTH_UNROLL for (int r = 0; r < rows; r++) {
                    __m256i sums = broadcast32(x->sums + r * x->sums_stride + subs * b + 2 * j);
                    t[r][0] = _mm256_add_epi32(t[r][0], _mm256_madd_epi16(m0, sums));
                    t[r][1] = _mm256_add_epi32(t[r][1], _mm256_madd_epi16(m1, sums));
                }
            }
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            __m256 dy = _mm256_broadcast_ss(x->d + r * x->d_stride + b);
            HTH_UNROLL for (int g = 0; g < 2; g++) {
                __m256 v, d = _mm256_load_ps(p->d[g]);
                if (f->has_min) {
                    v = _mm256_mul_ps(_mm256_load_ps(p->m[g]), _mm256_cvtepi32_ps(t[r][g]));
                    v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[r][g]), d, v);
                } else {
                    v = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(s[r][g], t[r][g])), d);
                }
                acc[r][g] = _mm256_fmadd_ps(v, dy, acc[r][g]);
            }
        }
    }
}

/* ---- Both ---- */

/* One of two: the format whose pointer is not NULL. Every call has constant formats, so all of this dissolves. */
typedef struct format {
    const format32 *f32;
    const format256 *f256;
} format;

/* Where a tile stands. */
typedef struct place {
    const hth_linear *a;
    int64_t r, c, columns; /* columns: 1..16 */
    int64_t b, blocks;     /* the slice */
} place;

HTH_INLINE void tile(format f, const void *panel, const rows_at *x, int rows, const place *at, float *sums) {
    __m256 acc[TILE][2];
    const bool first = at->b == 0, last = at->b + at->blocks == at->a->q->blocks;
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        acc[r][0] = first ? _mm256_setzero_ps() : _mm256_load_ps(sums + r * PANEL);
        acc[r][1] = first ? _mm256_setzero_ps() : _mm256_load_ps(sums + r * PANEL + 8);
    }
    if (f.f32) tile32(f.f32, panel, at->blocks, x, rows, acc);
    else tile256(f.f256, panel, at->blocks, x, rows, acc);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        if (last) {
            finish8(at->a, at->r + r, at->c, at->columns, acc[r][0]);
            if (at->columns > 8) finish8(at->a, at->r + r, at->c + 8, at->columns - 8, acc[r][1]);
        } else {
            _mm256_store_ps(sums + r * PANEL, acc[r][0]);
            _mm256_store_ps(sums + r * PANEL + 8, acc[r][1]);
        }
    }
}

/* A strip of rows over one panel. */
HTH_INLINE void strip(format f, const void *panel, int64_t r1, place at, float *sums) {
    const hth_qact *q = at.a->q;
    const int64_t block = f.f32 ? 32 : 256, sub = f.f32 ? 32 : f.f256->sub;
    const int16_t *all = sub == 16 ? q->sum16 : q->sum32;
    const int64_t stride = sub == 16 ? q->sum16_stride : q->sum32_stride;
    for (int64_t rows; at.r < r1; at.r += rows, sums += rows * PANEL) {
        const rows_at x = {q->q + at.r * q->q_stride + at.b * block,
                           all + at.r * stride + at.b * block / sub,
                           q->d + at.r * q->blocks + at.b,
                           q->q_stride,
                           stride,
                           q->blocks};
        rows = r1 - at.r >= TILE ? TILE : r1 - at.r >= 2 ? 2 : 1;
        if (rows == TILE) tile(f, panel, &x, TILE, &at, sums);
        else if (rows == 2) tile(f, panel, &x, 2, &at, sums);
        else tile(f, panel, &x, 1, &at, sums);
    }
}

/* Columns c.. of blocks b0..; columns behind the last repeat it. */
HTH_INLINE void unpack(format f, const hth_linear *a, int64_t c, int64_t columns, int64_t b0, int64_t blocks,
                       void *panel) {
    const int64_t bytes = f.f32 ? f.f32->bytes : f.f256->bytes;
    for (int g = 0; g < 2; g++) {
        const uint8_t *column[8];
        for (int i = 0; i < 8; i++) {
            int64_t n = 8 * g + i < columns ? 8 * g + i : columns - 1;
            column[i] = (const uint8_t *)a->w + (c + n) * a->row_bytes + b0 * bytes;
        }
        for (int64_t b = 0; b < blocks; b++) {
            if (f.f32) unpack32(f.f32, column, (panel32 *)panel + b, g);
            else unpack256(f.f256, column, (panel256 *)panel + b, g);
            HTH_UNROLL for (int i = 0; i < 8; i++) column[i] += bytes;
        }
    }
}

/* Rows r0..r1-1 (at most ROWS) of a group of panels, slice by slice. */
HTH_INLINE void group(format f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, char *scratch) {
    float *sums = (float *)(scratch + GROUP * PANEL_BYTES);
    const int64_t blocks = a->q->blocks, most = SLICE / (f.f32 ? 32 : 256);
    for (int64_t b = 0, left = (blocks + most - 1) / most, n; b < blocks; b += n, left--) {
        n = (blocks - b + left - 1) / left; /* slices of equal length, not a short one at the end */
        for (int64_t c = c0, p = 0; c < c1; c += PANEL, p++)
            unpack(f, a, c, c1 - c < PANEL ? c1 - c : PANEL, b, n, scratch + p * PANEL_BYTES);
        for (int64_t r = r0; r < r1; r += STRIP)
            for (int64_t c = c0, p = 0; c < c1; c += PANEL, p++)
                strip(f, scratch + p * PANEL_BYTES, r1 - r < STRIP ? r1 : r + STRIP,
                      (place){a, r, c, c1 - c < PANEL ? c1 - c : PANEL, b, n}, sums + (p * ROWS + r - r0) * PANEL);
    }
}

HTH_INLINE void many(format f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {
    for (int64_t r = r0; r < r1; r += ROWS)
        for (int64_t c = c0; c < c1; c += GROUP * PANEL)
            group(f, a, c, c1 - c < GROUP * PANEL ? c1 : c + GROUP * PANEL, r, r1 - r < ROWS ? r1 : r + ROWS, scratch);
}

#define FORMAT_32(name)                                                                                                \
    { .f32 = &format_##name }
#define FORMAT_256(name)                                                                                               \
    { .f256 = &format_##name }
#define DEFINE(name, dtype, family)                                                                                    \
    void hth_avx2_many_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {    \
        const format f = FORMAT_##family(name);                                                                        \
        many(f, a, c0, c1, r0, r1, scratch);                                                                           \
    }
HTH_QUANTIZED_FORMATS(DEFINE)
