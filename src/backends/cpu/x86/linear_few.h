/* Few rows (decode): the weights are read once, in file order, and unpacked in registers.
 *
 * The rows of the matrix lie one after the other, so sixteen columns are one stream of 16 * blocks blocks, and it is
 * taken a group of blocks at a time wherever the rows end: short rows (18 blocks, say) cost no more than long ones. The
 * activations are copied with a group of wrap-around, so that they can be read at any position of the stream. A group
 * gives as many exact integers, reduced together, and as many floats f. The ordered sums follow in a second, small pass
 * over the f of sixteen columns, which run in the lanes of two registers.
 *
 * This is the walk; the groups are the including file's (few256.h, or avx512/linear_few.c). Included once by each tier
 * that has it, after
 *   enum { MAX_ROWS, GROUP_32, GROUP_256 }  the most rows (up to 4), and the blocks of a group (multiples of 8);
 *   enum { SIDE_SUB_32 }                    32 when the eight sums of a block are followed by zeros, else 16;
 *   enum { PREFETCH }                       bytes that groups fetch ahead of the stream: what hides memory, and fits
 *                                           the first cache beside the activations;
 *   #define FEW_ROWS(X, ...)                X(…, rows) for each number of rows;
 *   few_format32, few_format256             what its groups know of a format (at least a bias), and
 *   #define FEW_FORMAT(name)                that of a format. */
#include <string.h>

#include "backends/cpu/x86/linear.h"
#include "backends/cpu/x86/unpack256.h"

/* ---- Scratch ---- */

enum {
    COLUMNS = HTH_FEW_COLUMNS,
    TAIL_32 = GROUP_32 * HTH_Q8_0_BYTES,
    TAIL_256 = GROUP_256 * HTH_Q6_K_BYTES,
    TAIL_BYTES = ((int)TAIL_32 > (int)TAIL_256 ? (int)TAIL_32 : (int)TAIL_256) + 32
};

/* A row in the scratch. */
typedef struct input {
    const int8_t *q;
    const void *side; /* of each block: side32's or side256's */
    const float *dy;
    float *f; /* [COLUMNS * blocks + a group] */
} input;

/* Fill dst[n..n + extra) with copies of what dst[0..n) holds, one after the other. */
static void wrap(uint8_t *dst, int64_t n, int64_t extra) {
    for (int64_t i = 0; i < extra; i += n) memcpy(dst + n + i, dst, (size_t)(extra - i < n ? extra - i : n));
}

/* ---- Sums of the activations ---- */

/* For each block a float sum for a minimum, else the integer that a bias takes off. Reads and writes by eights: the
 * rows of sums are padded, and so is the wrap-around that follows in `side`. */
static void side32(bool has_min, int bias, const int16_t *sum32, int64_t blocks, uint8_t *side) {
    for (int64_t b = 0; b < blocks; b += 8) {
        __m256i sum = _mm256_cvtepi16_epi32(load128(sum32 + b));
        if (has_min) sum = _mm256_castps_si256(_mm256_cvtepi32_ps(sum));
        else sum = _mm256_mullo_epi32(sum, _mm256_set1_epi32(bias));
        _mm256_storeu_si256((__m256i *)(side + 4 * b), sum);
    }
    wrap(side, 4 * blocks, 4 * GROUP_32);
}

/* The sums over sub-blocks as they are, sixteen or eight a block; SIDE_SUB_32 bytes for the eight. */
static void side256(int sub, const hth_qact *x, int64_t r, uint8_t *side) {
    const int16_t *sum16 = x->sum16 + r * x->sum16_stride, *sum32 = x->sum32 + r * x->sum32_stride;
    const int64_t bytes = sub == 16 ? 32 : SIDE_SUB_32;
    for (int64_t b = 0; b < x->blocks; b++) {
        __m256i sums = sub == 16 ? load256(sum16 + 16 * b) : _mm256_zextsi128_si256(load128(sum32 + 8 * b));
        _mm256_storeu_si256((__m256i *)(side + bytes * b), sums);
    }
    wrap(side, bytes * x->blocks, bytes * GROUP_256);
}

/* ---- Defined by the including file ---- */

/* f of a group of consecutive blocks of the stream for each of `rows` rows (constant), to in[r].f + to; `at` is the
 * stream's position in the activations. As many bytes from `ahead` on are fetched. */
HTH_INLINE void group32(const few_format32 *f, const uint8_t *w, const char *ahead, const input *in, int rows,
                        int64_t at, int64_t to);
HTH_INLINE void group256(const few_format256 *f, const uint8_t *w, const char *ahead, const input *in, int rows,
                         int64_t at, int64_t to);

/* The result in row r of n (1..16) columns from c on: acc = fma(f, dy, acc) over the blocks in order, a column a lane,
 * and the epilogue. Column i's f are at f + i * blocks. Loads run over the end of a column into what follows in the
 * scratch; such lanes are not used. */
HTH_INLINE void finish_columns(const hth_linear *a, int64_t r, int64_t c, int64_t n, const float *f, const float *dy,
                               int64_t blocks);

/* ---- The stream ---- */

/* Where the weights of a call end, and what is read after them: so many bytes further on. */
typedef struct stream_end {
    uintptr_t at, jump;
} stream_end;

/* What to fetch while the stream stands at w. */
HTH_INLINE const char *ahead_of(const uint8_t *w, const stream_end *end) {
    uintptr_t ahead = (uintptr_t)w + PREFETCH;
    return (const char *)(ahead < end->at ? ahead : ahead + end->jump);
}

/* f of n blocks that follow each other in memory, the first of which begins a column. */
typedef void stream_fn(const uint8_t *w, const stream_end *end, const input *in, int64_t blocks, int64_t n, int64_t to);

#define STREAM(name, block, rows)                                                                                      \
    static void stream_##name##_##rows(const uint8_t *w, const stream_end *end, const input *in, int64_t blocks,       \
                                       int64_t n, int64_t to) {                                                        \
        const int64_t bytes = format_##name.bytes;                                                                     \
        uint8_t tail[TAIL_BYTES];                                                                                      \
        for (int64_t at = 0, i = 0; i < n; i += GROUP_##block) {                                                       \
            const uint8_t *b = w + i * bytes;                                                                          \
            const char *ahead = ahead_of(b, end);                                                                      \
            if (n - i < GROUP_##block) { /* the last blocks: a copy, filled up with zeros, keeps loads inside */       \
                memset(tail, 0, sizeof tail);                                                                          \
                b = memcpy(tail, b, (size_t)((n - i) * bytes));                                                        \
            }                                                                                                          \
            group##block(&FEW_FORMAT(name), b, ahead, in, rows, at, to + i);                                           \
            for (at += GROUP_##block; at >= blocks;) at -= blocks;                                                     \
        }                                                                                                              \
    }
#define STREAMS(name, dtype, block) FEW_ROWS(STREAM, name, block)
HTH_QUANTIZED_FORMATS(STREAMS)
#undef STREAMS
#undef STREAM

/* What the driver knows of a format. */
typedef struct few_format {
    stream_fn *stream[MAX_ROWS]; /* of 1, 2, … rows */
    int bytes;
    int sub; /* 16 or 32 */
    int bias;
    bool has_min;
} few_format;

static void few(const few_format *f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                uint8_t *scratch) {
    const hth_qact *x = a->q;
    const int64_t blocks = x->blocks;
    const int group = x->block == 32 ? (int)GROUP_32 : (int)GROUP_256;
    const hth_few_layout layout = few_layout(x->k, x->block, group);
    input in[MAX_ROWS];
    const char *begin = (const char *)a->w + c0 * a->row_bytes; /* behind it, groups fetch for themselves */
    const int64_t near = (c1 - c0) * a->row_bytes < PREFETCH ? (c1 - c0) * a->row_bytes : PREFETCH;
    for (int64_t i = 0; i < near; i += 64) _mm_prefetch(begin + i, _MM_HINT_T0);
    stream_end end = {.at = (uintptr_t)a->w + (uintptr_t)(c1 * a->row_bytes)};
    end.jump = (uintptr_t)next_weights(a, c1) - end.at;
    for (int64_t r = r0; r < r1; r++, scratch += few_row_bytes(x->k, x->block, group)) {
        uint8_t *side = scratch + layout.q;
        memcpy(scratch, x->q + r * x->q_stride, (size_t)x->k);
        wrap(scratch, x->k, (int64_t)group * x->block);
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
            f->stream[r1 - r0 - 1](w + i * a->row_bytes, &end, in, blocks, run * blocks, i * blocks);
        for (int64_t r = r0; r < r1; r++) finish_columns(a, r, c, n, in[r - r0].f, in[r - r0].dy, blocks);
    }
}

#define SUB_32(name)                   32
#define SUB_256(name)                  format_##name.sub
#define STREAM_NAME(name, block, rows) stream_##name##_##rows,
/* A hth_linear_fn for up to MAX_ROWS rows, for which few_rows holds. */
#define FEW(prefix, name, block)                                                                                       \
    void prefix##_few_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {     \
        const few_format f = {                                                                                         \
            {FEW_ROWS(STREAM_NAME, name, block)},                                                                      \
            format_##name.bytes,                                                                                       \
            SUB_##block(name),                                                                                         \
            FEW_FORMAT(name).bias,                                                                                     \
            format_##name.has_min,                                                                                     \
        };                                                                                                             \
        few(&f, a, c0, c1, r0, r1, scratch);                                                                           \
    }
