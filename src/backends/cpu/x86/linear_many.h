/* Many rows (prefill): columns by a slice of k are unpacked into panels in the scratch, and all rows pass over them.
 *
 * A panel (16 columns) and a strip of rows stay in the first cache together, the four panels of a group and the sums in
 * the second. This is the walk; the tiles, which do the work, are the including tier's: one for each way to multiply
 * and each height, shared by the formats that multiply alike.
 *
 * Included once by each tier that has it, after
 *   enum { KIND, HEIGHTS, STRIP }  how its tiles multiply (a products_kind), how many heights they come in, and the
 * rows of a strip; static const int heights[HEIGHTS]  the rows of its tiles, decreasing, down to 1. */
#include "backends/cpu/x86/linear.h"
#include "backends/cpu/x86/panel.h"

enum {
    PANEL = 16,  /* columns of a panel */
    GROUP = 4,   /* panels that a strip of rows passes over in turn */
    SLICE = 512, /* k of a panel, at most */
    ROWS = 512,  /* rows whose sums the scratch holds from slice to slice */
};

enum { PANEL32_BYTES = SLICE / 32 * sizeof(panel32), PANEL256_BYTES = SLICE / 256 * sizeof(panel256) };
enum { PANEL_BYTES = (int)PANEL32_BYTES > (int)PANEL256_BYTES ? (int)PANEL32_BYTES : (int)PANEL256_BYTES };
_Static_assert(GROUP *(PANEL_BYTES + ROWS * PANEL * sizeof(float)) <= HTH_LINEAR_SCRATCH, "scratch");

/* A slice of some rows, from the first row of a tile. */
typedef struct tile_rows {
    const int8_t *q;
    const int16_t *sums; /* sum16 for sub-blocks of 16, else sum32 */
    const float *d;
    int64_t q_stride, sums_stride, d_stride;
} tile_rows;

/* Add the blocks of a panel to sums[row * PANEL + column], in order. bias: weight = byte - bias, for blocks of 32. */
typedef void tile_fn(const void *panel, int64_t blocks, const tile_rows *x, int bias, float *sums);

/* Blocks b0.. of eight columns into half g of a panel. */
typedef void unpack_fn(const uint8_t *const columns[8], int64_t blocks, void *panel, int g);

#define UNPACK(name, dtype, block)                                                                                     \
    static void unpack_##name(const uint8_t *const columns[8], int64_t blocks, void *panel, int g) {                   \
        const uint8_t *column[8]; /* in registers: stores to the panel might change the caller's */                    \
        HTH_UNROLL for (int i = 0; i < 8; i++) column[i] = columns[i];                                                 \
        for (int64_t b = 0; b < blocks; b++) {                                                                         \
            unpack##block(&format_##name, (products_kind)KIND, column, (panel##block *)panel + b, g);                  \
            HTH_UNROLL for (int i = 0; i < 8; i++) column[i] += format_##name.bytes;                                   \
        }                                                                                                              \
    }
HTH_QUANTIZED_FORMATS(UNPACK)
#undef UNPACK

typedef struct many_format {
    unpack_fn *unpack;
    tile_fn *const *tiles; /* [HEIGHTS] */
    int bytes;
    int sub;
    int bias;
} many_format;

/* Where a strip stands. */
typedef struct place {
    int64_t r0, r1, c, columns; /* columns: 1..16 */
    int64_t b, blocks;          /* the slice */
} place;

/* A strip of rows over one panel. */
static void strip(const many_format *f, const hth_linear *a, const void *panel, place at, float *sums) {
    const hth_qact *q = a->q;
    const int16_t *all = f->sub == 16 ? q->sum16 : q->sum32;
    const int64_t stride = f->sub == 16 ? q->sum16_stride : q->sum32_stride;
    const bool first = at.b == 0, last = at.b + at.blocks == q->blocks;
    for (int64_t r = at.r0, h = 0; r < at.r1; r += heights[h], sums += heights[h] * PANEL) {
        while (heights[h] > at.r1 - r) h++;
        const tile_rows x = {q->q + r * q->q_stride + at.b * q->block,
                             all + r * stride + at.b * q->block / f->sub,
                             q->d + r * q->blocks + at.b,
                             q->q_stride,
                             stride,
                             q->blocks};
        for (int i = 0; first && i < heights[h] * PANEL; i += 8) _mm256_store_ps(sums + i, _mm256_setzero_ps());
        f->tiles[h](panel, at.blocks, &x, f->bias, sums);
        for (int i = 0; last && i < heights[h]; i++)
            for (int64_t c = 0; c < at.columns; c += 8)
                finish8(a, r + i, at.c + c, at.columns - c, _mm256_load_ps(sums + i * PANEL + c));
    }
}

/* A slice of a panel's columns; columns behind the last repeat it. */
static void unpack(const many_format *f, const hth_linear *a, place at, void *panel) {
    for (int g = 0; g < 2; g++) {
        const uint8_t *column[8];
        for (int i = 0; i < 8; i++) {
            int64_t n = 8 * g + i < at.columns ? 8 * g + i : at.columns - 1;
            column[i] = (const uint8_t *)a->w + (at.c + n) * a->row_bytes + at.b * f->bytes;
        }
        f->unpack(column, at.blocks, panel, g);
    }
}

/* Rows r0..r1-1 (at most ROWS) of a group of panels, slice by slice. */
static void group(const many_format *f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                  char *scratch) {
    float *sums = (float *)(scratch + GROUP * PANEL_BYTES);
    const int64_t blocks = a->q->blocks, most = SLICE / a->q->block;
    for (int64_t b = 0, left = (blocks + most - 1) / most, n; b < blocks; b += n, left--) {
        n = (blocks - b + left - 1) / left; /* slices of equal length, not a short one at the end */
        for (int64_t c = c0, p = 0; c < c1; c += PANEL, p++)
            unpack(f, a, (place){0, 0, c, c1 - c < PANEL ? c1 - c : PANEL, b, n}, scratch + p * PANEL_BYTES);
        for (int64_t r = r0; r < r1; r += STRIP)
            for (int64_t c = c0, p = 0; c < c1; c += PANEL, p++) {
                place at = {r, r1 - r < STRIP ? r1 : r + STRIP, c, c1 - c < PANEL ? c1 - c : PANEL, b, n};
                strip(f, a, scratch + p * PANEL_BYTES, at, sums + (p * ROWS + r - r0) * PANEL);
            }
    }
}

static void many(const many_format *f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                 void *scratch) {
    for (int64_t r = r0; r < r1; r += ROWS)
        for (int64_t c = c0; c < c1; c += GROUP * PANEL)
            group(f, a, c, c1 - c < GROUP * PANEL ? c1 : c + GROUP * PANEL, r, r1 - r < ROWS ? r1 : r + ROWS, scratch);
}

#define SUB_32(name)  32
#define SUB_256(name) format_##name.sub
/* A hth_linear_fn for any number of rows, with the tiles of one way to multiply. */
#define MANY(prefix, name, block, tiles)                                                                               \
    void prefix##_many_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {    \
        const many_format f = {                                                                                        \
            unpack_##name,                                                                                             \
            tiles,                                                                                                     \
            format_##name.bytes,                                                                                       \
            SUB_##block(name),                                                                                         \
            bias_for((products_kind)KIND, format_##name.is_signed, format_##name.bias),                                \
        };                                                                                                             \
        many(&f, a, c0, c1, r0, r1, scratch);                                                                          \
    }
