/* F32, F16 and BF16 weights: tiles of rows by columns, whose sums have the sixteen stripes of an output in their lanes.
 * Weights are widened on their way into a register, where all rows of the tile use them.
 *
 * Few rows: some columns at a time over all of k. The weights come from memory once and as one stream: while some
 * columns are multiplied, those behind them are asked for in the order of addresses.
 *
 * Many rows: blocks of rows, columns and k, such that the activations of a tile stay in the first-level cache while the
 * columns of the block pass over them, and the block in the second. Between two blocks of k the sums of a tile wait in
 * the scratch: adding goes on where it stopped, so the order is the same.
 */
#include <stdbool.h>

#include "backends/cpu/x86/avx512/avx512.h"
#include "backends/cpu/x86/avx512/lanes.h"

enum {
    LANES = 16,
    ROWS = 6, /* of a tile: with four columns 24 sums, four weights and an activation, of 32 registers */
    COLUMNS = 4,
    FEW_ROWS = 3 * ROWS,

    /* One row takes two columns at a time as long as they and the next two fit the first-level cache: side by side,
     * more rows of weights are slower to read. Longer ones need four, since the activations no longer stay there. */
    SHORT_ROW = 6144, /* bytes of weights */
    AHEAD = 8192,     /* bytes between what is asked for and the end of what is multiplied */

    /* A block. 6 x 1152 activations are 27 KiB; the sums of 96 x 32 outputs 192 KiB. */
    BLOCK_ROWS = 16 * ROWS,
    BLOCK_COLUMNS = 8 * COLUMNS,
    BLOCK_K = 1152,
};

typedef __m512 sums[ROWS][COLUMNS];

_Static_assert(BLOCK_ROWS *BLOCK_COLUMNS * sizeof(__m512) <= HTH_LINEAR_SCRATCH, "a block's sums fit in the scratch");

/* The first `left` of sixteen weights at w as floats; the others are +0 and not touched. `part` is a constant. */
typedef __m512 widen_fn(const char *w, bool part, int64_t left);

HTH_INLINE __m512 widen_f32(const char *w, bool part, int64_t left) {
    return part ? hth_load_avx512((const float *)w, left) : _mm512_loadu_ps(w);
}

HTH_INLINE __m256i halves(const char *w, bool part, int64_t left) {
    return part ? _mm256_maskz_loadu_epi16(hth_mask_avx512(left), w) : _mm256_loadu_si256((const __m256i *)w);
}

HTH_INLINE __m512 widen_f16(const char *w, bool part, int64_t left) {
    return _mm512_cvtph_ps(halves(w, part, left));
}

HTH_INLINE __m512 widen_bf16(const char *w, bool part, int64_t left) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves(w, part, left)), 16));
}

/* ---- Sums ---- */

HTH_INLINE void step(widen_fn *widen, int rows, int columns, const char *const *w, int64_t at, const float *const *x,
                     int64_t k, bool part, int64_t left, sums sum) {
    __m512 e[COLUMNS];
    HTH_UNROLL for (int c = 0; c < columns; c++) e[c] = widen(w[c] + at, part, left);
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        __m512 v = part ? hth_load_avx512(x[r] + k, left) : _mm512_loadu_ps(x[r] + k);
        HTH_UNROLL for (int c = 0; c < columns; c++) sum[r][c] = _mm512_fmadd_ps(e[c], v, sum[r][c]);
    }
}

/* Add k products to the sums of a tile that is at w and x. `ahead`, if not 0, is where to ask for as many bytes as this
 * tile reads; nothing is read there, so it may be any address. */
HTH_INLINE void add_products(widen_fn *widen, int size, int rows, int columns, const char *const w[COLUMNS],
                             const float *const x[ROWS], int64_t k, uintptr_t ahead, sums sum) {
    const bool ask = ahead != 0;
    const int bytes = columns * LANES * size;
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES, ahead += (uintptr_t)bytes) {
        if (ask)
            for (int b = 0; b < bytes; b += 64) _mm_prefetch((const char *)(ahead + (uintptr_t)b), _MM_HINT_T0);
        step(widen, rows, columns, w, i * size, x, i, false, LANES, sum);
    }
    if (i < k) step(widen, rows, columns, w, i * size, x, i, true, k - i, sum);
}

/* ---- Results ---- */

/* p[s] += p[s+8], then p[s] += p[s+4], for the four columns of a row: column c's four partial sums are in quarter c. */
HTH_INLINE __m512 quarters(const __m512 p[COLUMNS]) {
    __m512 a = _mm512_add_ps(_mm512_shuffle_f32x4(p[0], p[1], 0x44), _mm512_shuffle_f32x4(p[0], p[1], 0xEE));
    __m512 b = _mm512_add_ps(_mm512_shuffle_f32x4(p[2], p[3], 0x44), _mm512_shuffle_f32x4(p[2], p[3], 0xEE));
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
}

/* The rest of the tree for two rows: a quarter holds the two last partial sums of the first and of the second. */
HTH_INLINE __m512 halves_of_quarters(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
}

/* The results of up to four rows from row r of a tile on; quarter i is row r + i. */
HTH_INLINE __m512 results(int rows, sums sum, int r) {
    const __m512i transposed = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512 q0 = quarters(sum[r]), q1 = r + 1 < rows ? quarters(sum[r + 1]) : q0;
    __m512 a = halves_of_quarters(q0, q1), b = a;
    if (r + 2 < rows) {
        __m512 q2 = quarters(sum[r + 2]), q3 = r + 3 < rows ? quarters(sum[r + 3]) : q2;
        b = halves_of_quarters(q2, q3);
    }
    __m512 y = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
    return _mm512_permutexvar_ps(transposed, y);
}

/* The epilogue for `columns` columns from c of row r. */
HTH_INLINE void finish_row(const hth_linear *a, int64_t r, int64_t c, int64_t columns, __m128 y) {
    const float *add = a->add ? a->add + r * a->ldadd + c : NULL;
    if (columns == COLUMNS) {
        if (a->bias) y = _mm_add_ps(y, _mm_loadu_ps(a->bias + c));
        if (add) y = _mm_add_ps(y, _mm_loadu_ps(add));
        _mm_storeu_ps(a->y + r * a->ldy + c, y);
        return;
    }
    const __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32((int)columns), _mm_setr_epi32(0, 1, 2, 3));
    if (a->bias) y = _mm_add_ps(y, _mm_maskload_ps(a->bias + c, mask));
    if (add) y = _mm_add_ps(y, _mm_maskload_ps(add, mask));
    _mm_maskstore_ps(a->y + r * a->ldy + c, mask, y);
}

HTH_INLINE void finish(int rows, const hth_linear *a, int64_t r0, int64_t c, int64_t columns, sums sum) {
    HTH_UNROLL for (int r = 0; r < rows; r += 4) {
        __m512 y = results(rows, sum, r);
        finish_row(a, r0 + r, c, columns, _mm512_castps512_ps128(y));
        if (r + 1 < rows) finish_row(a, r0 + r + 1, c, columns, _mm512_extractf32x4_ps(y, 1));
        if (r + 2 < rows) finish_row(a, r0 + r + 2, c, columns, _mm512_extractf32x4_ps(y, 2));
        if (r + 3 < rows) finish_row(a, r0 + r + 3, c, columns, _mm512_extractf32x4_ps(y, 3));
    }
}

/* ---- Tiles ---- */

/* A tile and its part of k. The last of its columns stands in for those that are missing. */
typedef struct place {
    int64_t r, c, columns;
    int64_t k0, k1;
    __m512 *kept; /* its sums, before and after this part of k; unused when the part is all of k */
    uintptr_t ahead;
} place;

HTH_INLINE void tile(widen_fn *widen, int size, int rows, int columns, const hth_linear *a, const place *at) {
    const char *w[COLUMNS];
    const float *x[ROWS];
    sums sum;
    HTH_UNROLL for (int c = 0; c < columns; c++) w[c] =
        (const char *)a->w + (at->c + (c < at->columns ? c : at->columns - 1)) * a->row_bytes + at->k0 * size;
    HTH_UNROLL for (int r = 0; r < rows; r++) {
        x[r] = a->f + (at->r + r) * a->ldf + at->k0;
        HTH_UNROLL for (int c = 0; c < columns; c++) sum[r][c] =
            at->k0 > 0 ? _mm512_load_ps(at->kept + r * COLUMNS + c) : _mm512_setzero_ps();
    }
    add_products(widen, size, rows, columns, w, x, at->k1 - at->k0, at->ahead, sum);
    if (at->k1 == a->k) {
        HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int c = columns; c < COLUMNS; c++) sum[r][c] =
            sum[r][c - columns];
        finish(rows, a, at->r, at->c, at->columns, sum);
        return;
    }
    HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int c = 0; c < columns; c++)
        _mm512_store_ps(at->kept + r * COLUMNS + c, sum[r][c]);
}

HTH_INLINE void tile_rows(widen_fn *widen, int size, int rows, const hth_linear *a, const place *at) {
    switch (rows) {
    case 1: tile(widen, size, 1, COLUMNS, a, at); break;
    case 2: tile(widen, size, 2, COLUMNS, a, at); break;
    case 3: tile(widen, size, 3, COLUMNS, a, at); break;
    case 4: tile(widen, size, 4, COLUMNS, a, at); break;
    case 5: tile(widen, size, 5, COLUMNS, a, at); break;
    default: tile(widen, size, 6, COLUMNS, a, at); break;
    }
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* How to cut n into parts of about the same size, at most `most`. */
static int64_t even_part(int64_t n, int64_t most) {
    int64_t parts = (n + most - 1) / most;
    return parts > 1 ? (n + parts - 1) / parts : n;
}

/* Rows r0..r1-1 by columns c0..c1-1 over part k0..k1-1, a tile of rows after the other. */
HTH_INLINE void block(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                      int64_t k0, int64_t k1, __m512 *kept) {
    int64_t height = even_part(r1 - r0, ROWS);
    place at = {.k0 = k0, .k1 = k1, .kept = kept};
    for (at.r = r0; at.r < r1; at.r += height) {
        int rows = (int)least(height, r1 - at.r);
        for (at.c = c0; at.c < c1; at.c += COLUMNS, at.kept += ROWS * COLUMNS) {
            at.columns = least(COLUMNS, c1 - at.c);
            tile_rows(widen, size, rows, a, &at);
        }
    }
}

HTH_INLINE void many(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                     __m512 *kept) {
    const int64_t part = (even_part(a->k, BLOCK_K) + LANES - 1) / LANES * LANES;
    for (int64_t r = r0; r < r1; r += BLOCK_ROWS)
        for (int64_t c = c0; c < c1; c += BLOCK_COLUMNS)
            for (int64_t k = 0; k < a->k; k += part)
                block(widen, size, a, c, least(c + BLOCK_COLUMNS, c1), r, least(r + BLOCK_ROWS, r1), k,
                      least(k + part, a->k), kept);
}

/* What to ask for while `columns` columns from c on are multiplied: the ones behind them, and from there a little
 * further, since short rows are over before memory answers. 0 when there are none. */
static uintptr_t weights_after(const hth_linear *a, int64_t c, int64_t columns, int64_t c1) {
    return c + columns < c1 ? (uintptr_t)a->w + (uintptr_t)((c + columns) * a->row_bytes + AHEAD) : 0;
}

HTH_INLINE void one(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r, __m512 *kept) {
    const int64_t width = a->row_bytes <= SHORT_ROW ? COLUMNS / 2 : COLUMNS;
    place at = {.r = r, .k0 = 0, .k1 = a->k, .kept = kept};
    for (at.c = c0; at.c < c1; at.c += width) {
        at.columns = least(width, c1 - at.c);
        at.ahead = weights_after(a, at.c, width, c1);
        if (width < COLUMNS) tile(widen, size, 1, COLUMNS / 2, a, &at);
        else tile(widen, size, 1, COLUMNS, a, &at);
    }
}

HTH_INLINE void few(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                    __m512 *kept) {
    const int64_t height = even_part(r1 - r0, ROWS);
    place at = {.k0 = 0, .k1 = a->k, .kept = kept};
    for (at.c = c0; at.c < c1; at.c += COLUMNS) {
        at.columns = least(COLUMNS, c1 - at.c);
        at.ahead = weights_after(a, at.c, COLUMNS, c1);
        for (at.r = r0; at.r < r1; at.r += height, at.ahead = 0)
            tile_rows(widen, size, (int)least(height, r1 - at.r), a, &at);
    }
}

#define DEFINE(name, size)                                                                                             \
    static void linear_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {    \
        if (r1 - r0 == 1) one(widen_##name, size, a, c0, c1, r0, scratch);                                             \
        else if (r1 - r0 <= FEW_ROWS) few(widen_##name, size, a, c0, c1, r0, r1, scratch);                             \
        else many(widen_##name, size, a, c0, c1, r0, r1, scratch);                                                     \
    }
DEFINE(f32, 4)
DEFINE(f16, 2)
DEFINE(bf16, 2)

void hth_avx512_init_linear_float(hth_kernels *t) {
    t->linear[HTH_F32] = linear_f32;
    t->linear[HTH_F16] = linear_f16;
    t->linear[HTH_BF16] = linear_bf16;
}
