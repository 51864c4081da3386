/* Few rows (decode): the weights are read once, in file order, and unpacked in registers.
 *
 * The rows of the matrix lie one after the other, so sixteen columns are one stream of 16 * blocks blocks, and it is
 * taken eight blocks at a time wherever the rows end: short rows (18 blocks, say) cost no more than long ones. The
 * activations are copied with eight blocks of wrap-around, so that they can be read at any position of the stream.
 * Eight blocks give eight exact integers, reduced together, and eight floats f. The ordered sums follow in a second,
 * small pass over the f of sixteen columns, which run in the lanes of two registers.
 *
 * Included once by each tier that has it, which defines the primitives. */
#include <string.h>

#include "backends/cpu/x86/linear.h"
#include "backends/cpu/x86/unpack256.h"

/* ---- Defined by the including file ---- */

/* The products of unsigned bytes w (0..max, constant) with q as partial sums for add_partials: in 16-bit lanes or
 * 32-bit ones. */
HTH_INLINE __m256i products(__m256i w, __m256i q, int max);
/* Lane i: the sum of all lanes of v[i], products with weights up to max. */
HTH_INLINE __m256i sum_products(const __m256i v[8], int max);
/* acc + a0 * b0 + a1 * b1 over pairs of 16-bit lanes. */
HTH_INLINE __m256i add_pairs(__m256i acc, __m256i a, __m256i b);

/* ---- Scratch ---- */

enum {
    GROUP = HTH_FEW_GROUP,
    COLUMNS = HTH_FEW_COLUMNS,
    MAX_ROWS = HTH_FEW_ROWS,
    PREFETCH = 3072, /* bytes ahead of the stream */
    TAIL_BYTES = GROUP * HTH_Q6_K_BYTES + 32
};

/* A row in the scratch. */
typedef struct input {
    const int8_t *q;
    const void *side; /* blocks of 32: a float or int32 a block; blocks of 256: sixteen int16 a block */
    const float *dy;
    float *f; /* [COLUMNS * blocks + GROUP] */
} input;

/* Fill dst[n..n + extra) with copies of what dst[0..n) holds, one after the other. */
static void wrap(uint8_t *dst, int64_t n, int64_t extra) {
    for (int64_t i = 0; i < extra; i += n) memcpy(dst + n + i, dst, (size_t)(extra - i < n ? extra - i : n));
}

/* ---- Blocks of 32 ---- */

/* For each block a float sum for a minimum, else the integer that a bias takes off. Reads and writes by eights: the
 * rows of sums are padded, and so is the wrap-around that follows in `side`. */
static void side32(bool has_min, int bias, const int16_t *sum32, int64_t blocks, uint8_t *side) {
    for (int64_t b = 0; b < blocks; b += 8) {
        __m256i sum = _mm256_cvtepi16_epi32(load128(sum32 + b));
        if (has_min) sum = _mm256_castps_si256(_mm256_cvtepi32_ps(sum));
        else sum = _mm256_mullo_epi32(sum, _mm256_set1_epi32(bias));
        _mm256_storeu_si256((__m256i *)(side + 4 * b), sum);
    }
    wrap(side, 4 * blocks, 4 * GROUP);
}

/* |w| times q with w's sign for signed weights. */
HTH_INLINE __m256i multiply(bool is_signed, int max, __m256i w, __m256i q) {
    return is_signed ? products(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w), max) : products(w, q, max);
}

/* The scales of eight blocks of the stream, and with has_min their minimums. */
HTH_INLINE void scales_of_stream(const format32 *f, const uint8_t *b, __m256 *d, __m256 *m) {
    const int n = f->bytes;
    *m = _mm256_setzero_ps();
    if (f->is_e8m0) {
        *d = e8m0_scales(_mm256_setr_epi32(b[0], b[n], b[2 * n], b[3 * n], b[4 * n], b[5 * n], b[6 * n], b[7 * n]));
        return;
    }
    __m256i x = words8(b, n), low = _mm256_and_si256(x, _mm256_set1_epi32(0xFFFF));
    if (!f->has_min) {
        *d = _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
        return;
    }
    x = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, _mm256_srli_epi32(x, 16)), 0xD8);
    *d = _mm256_cvtph_ps(_mm256_castsi256_si128(x));
    *m = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
}

/* f of eight consecutive blocks of the stream for each row; `at` is the stream's position in the activations. */
HTH_INLINE void group32(const format32 *f, const uint8_t *w, const input *in, int rows, int64_t at, int64_t to) {
    __m256i weights[GROUP], p[GROUP];
    for (int line = 0; line < GROUP * f->bytes; line += 64)
        _mm_prefetch((const char *)w + PREFETCH + line, _MM_HINT_T0);
    HTH_UNROLL for (int i = 0; i < GROUP; i++) weights[i] = f->weights(w + i * f->bytes);
    __m256 d, m;
    scales_of_stream(f, w, &d, &m);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        const int8_t *q = in[r].q + 32 * at;
        HTH_UNROLL for (int i = 0; i < GROUP; i++) p[i] =
            multiply(f->is_signed, f->max, weights[i], load256(q + 32 * i));
        __m256i s = sum_products(p, f->max);
        const char *side = (const char *)in[r].side + 4 * at;
        __m256 v;
        if (f->has_min) {
            v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s), d, _mm256_mul_ps(m, _mm256_loadu_ps((const float *)side)));
        } else {
            if (f->bias) s = _mm256_sub_epi32(s, load256(side));
            v = _mm256_mul_ps(_mm256_cvtepi32_ps(s), d);
        }
        _mm256_storeu_ps(in[r].f + to, v);
    }
}

/* ---- Blocks of 256 ---- */

static void side256(int sub, const hth_qact *x, int64_t r, uint8_t *side) {
    const int16_t *sum16 = x->sum16 + r * x->sum16_stride, *sum32 = x->sum32 + r * x->sum32_stride;
    for (int64_t b = 0; b < x->blocks; b++) {
        __m256i sums = sub == 16 ? load256(sum16 + 16 * b) : _mm256_zextsi128_si256(load128(sum32 + 8 * b));
        _mm256_storeu_si256((__m256i *)(side + 32 * b), sums);
    }
    wrap(side, 32 * x->blocks, 32 * GROUP);
}

/* Lane j of each half of the scales in every lane of that half. */
HTH_INLINE __m256i scale_of(__m256i scale, int j) {
    return _mm256_shuffle_epi8(scale, _mm256_set1_epi16((short)(0x0100 + 0x0202 * j)));
}

/* The partial sums of S, and of M with a minimum, of one block for each row. */
HTH_INLINE void block256(const format256 *f, const uint8_t *w, const input *in, int rows, int64_t at,
                         __m256i s[MAX_ROWS], __m256i m[MAX_ROWS]) {
    __m256i weights[8], scale, term;
    f->scales(w, &scale, &term);
    HTH_UNROLL for (int j = 0; j < 8; j++) weights[j] = f->weights(w, j);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        const int8_t *q = in[r].q + 256 * at;
        const __m256i zero = _mm256_setzero_si256();
        s[r] = zero;
        if (f->has_min || f->bias) {
            __m256i t = add_pairs(zero, term, load256((const char *)in[r].side + 32 * at));
            if (f->has_min) m[r] = t;
            else s[r] = t;
        }
        HTH_UNROLL for (int j = 0; j < 8; j++) {
            __m256i x = load256(q + 32 * j), p;
            if (f->is_signed) p = _mm256_maddubs_epi16(_mm256_abs_epi8(weights[j]), _mm256_sign_epi8(x, weights[j]));
            else p = _mm256_maddubs_epi16(weights[j], x);
            s[r] = in_order(add_pairs(s[r], p, scale_of(scale, j)));
        }
    }
}

/* Two blocks, as the first level of sums32. */
HTH_INLINE void pair256(const format256 *f, const uint8_t *w, const input *in, int rows, int64_t at,
                        __m256i s[MAX_ROWS], __m256i m[MAX_ROWS]) {
    __m256i s1[MAX_ROWS], m1[MAX_ROWS];
    for (int line = 0; line < 2 * f->bytes; line += 64) _mm_prefetch((const char *)w + PREFETCH + line, _MM_HINT_T0);
    block256(f, w, in, rows, at, s, m);
    block256(f, w + f->bytes, in, rows, at + 1, s1, m1);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        s[r] = add_halves32(s[r], s1[r]);
        if (f->has_min) m[r] = add_halves32(m[r], m1[r]);
    }
}

HTH_INLINE void group256(const format256 *f, const uint8_t *w, const input *in, int rows, int64_t at, int64_t to) {
    __m256i s[2][MAX_ROWS], m[2][MAX_ROWS];
    for (int h = 0; h < 2; h++) {
        const uint8_t *b = w + 4 * h * f->bytes;
        __m256i s0[MAX_ROWS], s1[MAX_ROWS], m0[MAX_ROWS], m1[MAX_ROWS];
        pair256(f, b, in, rows, at + 4 * h, s0, m0);
        pair256(f, b + 2 * f->bytes, in, rows, at + 4 * h + 2, s1, m1);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            s[h][r] = _mm256_add_epi32(evens32(s0[r], s1[r]), odds32(s0[r], s1[r]));
            if (f->has_min) m[h][r] = _mm256_add_epi32(evens32(m0[r], m1[r]), odds32(m0[r], m1[r]));
        }
    }
    __m256 d = halves8(w + f->d_at, f->bytes), dmin = _mm256_setzero_ps();
    if (f->has_min) dmin = negative(halves8(w + f->dmin_at, f->bytes));
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m256 v = _mm256_cvtepi32_ps(join_halves(s[0][r], s[1][r]));
        if (f->has_min)
            v = _mm256_fmadd_ps(v, d, _mm256_mul_ps(dmin, _mm256_cvtepi32_ps(join_halves(m[0][r], m[1][r]))));
        else v = _mm256_mul_ps(v, d);
        _mm256_storeu_ps(in[r].f + to, v);
    }
}

/* ---- The stream ---- */

/* f of n blocks that follow each other in memory, the first of which begins a column. */
typedef void stream_fn(const uint8_t *w, const input *in, int64_t blocks, int64_t n, int64_t to);

#define STREAM(name, block, rows)                                                                                      \
    static void stream_##name##_##rows(const uint8_t *w, const input *in, int64_t blocks, int64_t n, int64_t to) {     \
        const int64_t bytes = format_##name.bytes;                                                                     \
        uint8_t tail[TAIL_BYTES];                                                                                      \
        for (int64_t at = 0, i = 0; i < n; i += GROUP) {                                                               \
            const uint8_t *b = w + i * bytes;                                                                          \
            if (n - i < GROUP) { /* the last blocks: a copy, filled up with zeros, keeps loads inside */               \
                memset(tail, 0, sizeof tail);                                                                          \
                b = memcpy(tail, b, (size_t)((n - i) * bytes));                                                        \
            }                                                                                                          \
            group##block(&format_##name, b, in, rows, at, to + i);                                                     \
            for (at += GROUP; at >= blocks;) at -= blocks;                                                             \
        }                                                                                                              \
    }
#define STREAMS(name, dtype, block) STREAM(name, block, 1) STREAM(name, block, 2)
HTH_QUANTIZED_FORMATS(STREAMS)
#undef STREAMS
#undef STREAM

/* acc = fma(f, dy, acc) over the blocks in order, a column a lane. Loads run over the end of a column into what follows
 * in the scratch; such lanes are not used. */
HTH_INLINE void ordered_sums(const float *f, const float *dy, int64_t blocks, __m256 acc[2]) {
    acc[0] = acc[1] = _mm256_setzero_ps();
    for (int64_t b = 0; b < blocks; b += 8) {
        __m256i v[2][8];
        HTH_UNROLL for (int c = 0; c < 16; c++) v[c / 8][c % 8] = load256(f + c * blocks + b);
        transpose8x8(v[0]);
        transpose8x8(v[1]);
        int64_t n = blocks - b < 8 ? blocks - b : 8;
        for (int64_t i = 0; i < n; i++) {
            __m256 d = _mm256_broadcast_ss(dy + b + i);
            acc[0] = _mm256_fmadd_ps(_mm256_castsi256_ps(v[0][i]), d, acc[0]);
            acc[1] = _mm256_fmadd_ps(_mm256_castsi256_ps(v[1][i]), d, acc[1]);
        }
    }
}

/* What the driver knows of a format. */
typedef struct few_format {
    stream_fn *stream[MAX_ROWS]; /* of 1, 2 rows */
    int bytes;
    int sub; /* 16 or 32 */
    int bias;
    bool has_min;
} few_format;

static void few(const few_format *f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                uint8_t *scratch) {
    const hth_qact *x = a->q;
    const int64_t blocks = x->blocks;
    const hth_few_layout layout = few_layout(x->k, x->block);
    input in[MAX_ROWS];
    for (int64_t r = r0; r < r1; r++, scratch += few_row_bytes(x->k, x->block)) {
        uint8_t *side = scratch + layout.q;
        memcpy(scratch, x->q + r * x->q_stride, (size_t)x->k);
        wrap(scratch, x->k, GROUP * x->block);
        if (x->block == 32) side32(f->has_min, f->bias, x->sum32 + r * x->sum32_stride, blocks, side);
        else side256(f->sub, x, r, side);
        in[r - r0] = (input){(const int8_t *)scratch, side, x->d + r * blocks, (float *)(side + layout.side)};
    }
    /* Rows of the matrix with a gap between them are streams of their own. */
    const bool packed = a->row_bytes == blocks * f->bytes;
    for (int64_t c = c0; c < c1; c += COLUMNS) {
        const uint8_t *w = (const uint8_t *)a->w + c * a->row_bytes;
        const int64_t n = c1 - c < COLUMNS ? c1 - c : COLUMNS, run = packed ? n : 1;
        for (int64_t i = 0; i < n; i += run)
            f->stream[r1 - r0 - 1](w + i * a->row_bytes, in, blocks, run * blocks, i * blocks);
        for (int64_t r = r0; r < r1; r++) {
            __m256 acc[2];
            ordered_sums(in[r - r0].f, in[r - r0].dy, blocks, acc);
            finish8(a, r, c, n, acc[0]);
            if (n > 8) finish8(a, r, c + 8, n - 8, acc[1]);
        }
    }
}

#define SUB_32(name)  32
#define SUB_256(name) format_##name.sub
/* A hth_linear_fn for up to HTH_FEW_ROWS rows, for which few_rows holds. */
#define FEW(prefix, name, block)                                                                                       \
    void prefix##_few_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {     \
        const few_format f = {                                                                                         \
            {stream_##name##_1, stream_##name##_2},                                                                    \
            format_##name.bytes,                                                                                       \
            SUB_##block(name),                                                                                         \
            format_##name.bias,                                                                                        \
            format_##name.has_min,                                                                                     \
        };                                                                                                             \
        few(&f, a, c0, c1, r0, r1, scratch);                                                                           \
    }
