/* Many rows (prefill): columns by a slice of k are unpacked into panels in the scratch, and all rows pass over them.
 *
 * A panel (16 columns) and a strip of rows stay in the first cache together, the panels of a group and the sums in the
 * second. This is the walk; the tiles, which do the work, are the including tier's: one for each way to multiply
 * and each height, shared by the formats that multiply alike.
 *
 * Included once by each tier that has it, after
 *   enum { KIND, STRIP }                 how its tiles multiply (a products_kind), and the rows of a strip;
 *   enum { MOST_ROWS, PANELS }           tiles have 1 to MOST_ROWS rows and PANELS (1 or 2) panels side by side;
 *   enum { GROUP }                       panels that a strip passes over in turn: a multiple of PANELS, at most 4;
 *   many_format32, many_format256        what it unpacks a format by, and
 *   #define MANY_FORMAT(name)            that of a format. */
#include <string.h>

#include "backends/cpu/x86/linear.h"
#include "backends/cpu/x86/panel.h"

enum {
    PANEL = 16,  /* columns of a panel */
    SLICE = 512, /* k of a panel, at most */
    ROWS = 512,  /* rows whose sums the scratch holds from slice to slice */
    SIDES = SLICE / 32,
    SLICE_BYTES = SLICE / 32 * HTH_Q8_0_BYTES /* of a column's weights, at most */
};

enum { PANEL32_BYTES = SLICE / 32 * sizeof(panel32), PANEL256_BYTES = SLICE / 256 * sizeof(panel256) };
enum { PANEL_BYTES = (int)PANEL32_BYTES > (int)PANEL256_BYTES ? (int)PANEL32_BYTES : (int)PANEL256_BYTES };
enum { SIDES_BYTES = 2 * STRIP * SIDES * sizeof(int32_t), SUMS_BYTES = ROWS * PANEL * sizeof(float) };
_Static_assert(GROUP *(PANEL_BYTES + SUMS_BYTES) + SIDES_BYTES <= HTH_LINEAR_SCRATCH, "scratch");

/* What goes with a block of 32 of a row beside its q. */
typedef union side {
    int32_t start; /* without a minimum: -bias * sum of q */
    float total;   /* with one: the sum of q */
} side;

/* A slice of some rows, from the first row of a tile. */
typedef struct tile_rows {
    const int8_t *q;
    const side *sides;   /* blocks of 32; row r's at sides + r * SIDES */
    const int16_t *sums; /* blocks of 256: sum16 for sub-blocks of 16, else sum32 */
    const float *d;
    int64_t q_stride, sums_stride, d_stride;
    const char *ahead;  /* what the tile fetches meanwhile, */
    int64_t ahead_step; /* so many bytes with each block of 32 or quarter of a block of 256 */
} tile_rows;

/* The part of a tile's share that goes with step i. */
HTH_INLINE void fetch_step(const tile_rows *x, int64_t i) {
    const uintptr_t at = (uintptr_t)x->ahead + (uintptr_t)(i * x->ahead_step);
    fetch((const char *)((at + 63) & ~(uintptr_t)63), (const char *)(at + (uintptr_t)x->ahead_step));
}

HTH_INLINE int64_t steps_of(int64_t blocks, int block) {
    return block == 256 ? 4 * blocks : blocks;
}

/* Add the blocks of PANELS panels, PANEL_BYTES apart, to sums[panel * ROWS * PANEL + row * PANEL + column], in order.
 */
typedef void tile_fn(const void *panels, int64_t blocks, const tile_rows *x, float *sums);

/* Blocks of sixteen columns into a panel: the first column's at w, each other's `stride` bytes behind those before. */
typedef void unpack_fn(const uint8_t *w, int64_t stride, int64_t blocks, void *panel);

/* One block of sixteen columns; defined by the including file. */
HTH_INLINE void fill32(const many_format32 *f, const uint8_t *const column[PANEL], panel32 *p);
HTH_INLINE void fill256(const many_format256 *f, const uint8_t *const column[PANEL], panel256 *p);

/* Two pointers and multiples of the stride stay in registers; a pointer for each column would not. */
#define UNPACK(name, dtype, block)                                                                                     \
    static void unpack_##name(const uint8_t *w, int64_t stride, int64_t blocks, void *panel) {                         \
        const uint8_t *half = w + PANEL / 2 * stride;                                                                  \
        for (int64_t b = 0; b < blocks; b++, w += format_##name.bytes, half += format_##name.bytes) {                  \
            const uint8_t *column[PANEL];                                                                              \
            HTH_UNROLL for (int i = 0; i < PANEL; i++) column[i] =                                                     \
                (i < PANEL / 2 ? w : half) + i % (PANEL / 2) * stride;                                                 \
            fill##block(&MANY_FORMAT(name), column, (panel##block *)panel + b);                                        \
        }                                                                                                              \
    }
HTH_QUANTIZED_FORMATS(UNPACK)
#undef UNPACK

typedef struct many_format {
    unpack_fn *unpack;
    tile_fn *const *tiles; /* [MOST_ROWS]: of 1, 2, … rows */
    int bytes;
    int sub;
    int bias; /* blocks of 32: weight = byte - bias */
    bool has_min;
} many_format;

/* Where a strip stands. */
typedef struct place {
    int64_t r0, r1, c, columns; /* columns: at most those of a tile */
    int64_t b, blocks;          /* the slice */
    const char *ahead;          /* what its tiles fetch */
    int64_t ahead_step;
} place;

/* The sides of a strip. Reads and writes by eights: rows of sums are padded, and the last of equal slices lacks less
 * than all of them together. */
static void strip_sides(const many_format *f, const hth_qact *q, place at, side *sides) {
    for (int64_t r = at.r0; r < at.r1; r++, sides += SIDES) {
        const int16_t *sums = q->sum32 + r * q->sum32_stride + at.b;
        for (int64_t b = 0; b < at.blocks; b += 8) {
            __m256i v = _mm256_cvtepi16_epi32(load128(sums + b));
            if (f->has_min) v = _mm256_castps_si256(_mm256_cvtepi32_ps(v));
            else v = _mm256_mullo_epi32(v, _mm256_set1_epi32(-f->bias));
            _mm256_storeu_si256((__m256i *)(sides + b), v);
        }
    }
}

/* The tiles of a strip: of equal height or nearly. */
static int64_t tiles_of(int64_t rows) {
    return (rows + MOST_ROWS - 1) / MOST_ROWS;
}

/* A strip of rows over the panels of a tile. Returns what to fetch next. */
static const char *strip(const many_format *f, const hth_linear *a, const void *panels, const side *sides, place at,
                         float *sums) {
    const hth_qact *q = a->q;
    const int16_t *all = f->sub == 16 ? q->sum16 : q->sum32;
    const int64_t stride = f->sub == 16 ? q->sum16_stride : q->sum32_stride;
    const bool first = at.b == 0, last = at.b + at.blocks == q->blocks;
    int64_t left = tiles_of(at.r1 - at.r0);
    for (int64_t r = at.r0, rows; r < at.r1; r += rows, sums += rows * PANEL, left--) {
        rows = (at.r1 - r + left - 1) / left;
        const tile_rows x = {q->q + r * q->q_stride + at.b * q->block,
                             sides + (r - at.r0) * SIDES,
                             all + r * stride + at.b * q->block / f->sub,
                             q->d + r * q->blocks + at.b,
                             q->q_stride,
                             stride,
                             q->blocks,
                             at.ahead,
                             at.ahead_step};
        at.ahead += at.ahead_step * steps_of(at.blocks, q->block);
        if (first)
            for (int p = 0; p < PANELS; p++) memset(sums + p * ROWS * PANEL, 0, (size_t)(rows * PANEL) * sizeof *sums);
        f->tiles[rows - 1](panels, at.blocks, &x, sums);
        for (int64_t i = 0; last && i < rows; i++)
            for (int64_t c = 0; c < at.columns; c += 8) {
                const float *of = sums + c / PANEL * ROWS * PANEL + i * PANEL + c % PANEL;
                finish8(a, r + i, at.c + c, at.columns - c, _mm256_load_ps(of));
            }
    }
    return at.ahead;
}

/* A slice of the columns of a panel from c on; zeros stand for those from c1 on. */
static void unpack(const many_format *f, const hth_linear *a, int64_t c, int64_t c1, int64_t b, int64_t blocks,
                   void *panel) {
    const uint8_t *w = (const uint8_t *)a->w + c * a->row_bytes + b * f->bytes;
    if (c1 - c >= PANEL) {
        f->unpack(w, a->row_bytes, blocks, panel);
        return;
    }
    uint8_t filled[PANEL * SLICE_BYTES];
    memset(filled, 0, sizeof filled);
    for (int64_t i = 0; i < c1 - c; i++)
        memcpy(filled + i * SLICE_BYTES, w + i * a->row_bytes, (size_t)(blocks * f->bytes));
    f->unpack(filled, SLICE_BYTES, blocks, panel);
}

/* Up to so many rows a strip more is not worth passing over the panels again. */
static bool is_single_strip(int64_t rows) {
    return rows <= 2 * STRIP;
}

/* Rows r0..r1-1 (at most ROWS) of a group of panels, slice by slice. Memory is read in one stream: while tiles compute,
 * as much is fetched from `ahead` on, a little at each of their steps. */
static void group(const many_format *f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                  const char *ahead, char *scratch) {
    enum { TILE = PANELS * PANEL };
    float *sums = (float *)(scratch + GROUP * PANEL_BYTES);
    side *sides = (side *)(scratch + GROUP * (PANEL_BYTES + SUMS_BYTES));
    const int64_t blocks = a->q->blocks, most = SLICE / a->q->block, panels = (c1 - c0 + TILE - 1) / TILE * PANELS;
    const int64_t together = is_single_strip(r1 - r0) ? r1 - r0 : STRIP;
    const int64_t tiles = (r1 - r0) / together * tiles_of(together) + tiles_of((r1 - r0) % together);
    for (int64_t b = 0, left = (blocks + most - 1) / most, n; b < blocks; b += n, left--) {
        n = (blocks - b + left - 1) / left; /* slices of equal length, not a short one at the end */
        for (int64_t p = 0; p < panels; p++) unpack(f, a, c0 + p * PANEL, c1, b, n, scratch + p * PANEL_BYTES);
        const int64_t ahead_bytes = panels * PANEL * n * f->bytes;
        const int64_t steps = tiles * (panels / PANELS) * steps_of(n, a->q->block);
        place at = {.b = b, .blocks = n, .ahead = ahead, .ahead_step = (ahead_bytes + steps - 1) / steps};
        ahead += ahead_bytes;
        for (int64_t r = r0; r < r1; r += together) {
            at.r0 = r;
            at.r1 = r1 - r < together ? r1 : r + together;
            if (a->q->block == 32) strip_sides(f, a->q, at, sides);
            for (int64_t p = 0; p < panels; p += PANELS) {
                at.c = c0 + p * PANEL;
                at.columns = c1 - at.c < TILE ? c1 - at.c : TILE;
                at.ahead = strip(f, a, scratch + p * PANEL_BYTES, sides, at, sums + (p * ROWS + r - r0) * PANEL);
            }
        }
    }
}

/* A single strip passes over each panel once: then panels are best used while they are in the first cache. */
static void many(const many_format *f, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                 void *scratch) {
    const int64_t columns = (is_single_strip(r1 - r0) ? PANELS : GROUP) * PANEL;
    const char *w = (const char *)a->w, *first = w + c0 * a->row_bytes, *next = next_weights(a, c1);
    fetch(first, first + (c1 - c0 < columns ? c1 - c0 : columns) * a->row_bytes);
    for (int64_t r = r0, end; r < r1; r = end) {
        end = r1 - r < ROWS ? r1 : r + ROWS;
        for (int64_t c = c0, after; c < c1; c = after) {
            after = c1 - c < columns ? c1 : c + columns;
            const char *ahead = after < c1 ? w + after * a->row_bytes : end < r1 ? first : next;
            group(f, a, c, after, r, end, ahead, scratch);
        }
    }
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
            format_##name.has_min,                                                                                     \
        };                                                                                                             \
        many(&f, a, c0, c1, r0, r1, scratch);                                                                          \
    }
