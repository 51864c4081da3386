/* F32, F16 and BF16 weights: tiles of rows by columns, the sixteen stripes of each output in two registers.
 *
 * Rows are taken in blocks that stay in the second-level cache while all columns pass over them. */
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/x86/avx2/avx2.h"
#include "backends/cpu/x86/avx2/linear.h"

enum {
    ROWS = 3,                 /* of a tile */
    COLUMNS = 2,              /* of a tile: 3 x 2 x 2 sums leave four registers for operands */
    ROW_COLUMNS = 4,          /* of a tile of one row: enough sums to hide the latency of an addition */
    CACHE_FLOATS = 48 * 1024, /* of activations kept near */
    FEW_ROWS = 16,
    AHEAD = 4096, /* bytes between what is asked for and the end of what is multiplied */
};

/* Sixteen weights at w as floats. */
typedef void widen_fn(const void *w, __m256 out[2]);

HTH_INLINE void widen_f32(const void *w, __m256 out[2]) {
    out[0] = _mm256_loadu_ps(w);
    out[1] = _mm256_loadu_ps((const float *)w + 8);
}

HTH_INLINE void widen_f16(const void *w, __m256 out[2]) {
    out[0] = _mm256_cvtph_ps(load128(w));
    out[1] = _mm256_cvtph_ps(load128((const char *)w + 16));
}

HTH_INLINE void widen_bf16(const void *w, __m256 out[2]) {
    for (int i = 0; i < 2; i++)
        out[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128((const char *)w + 16 * i)), 16));
}

/* p[s] += p[s+8], then +4, +2, +1. */
HTH_INLINE float tree(const __m256 p[2]) {
    __m256 sum8 = _mm256_add_ps(p[0], p[1]);
    __m128 sum4 = _mm_add_ps(_mm256_castps256_ps128(sum8), _mm256_extractf128_ps(sum8, 1));
    __m128 sum2 = _mm_add_ps(sum4, _mm_movehl_ps(sum4, sum4));
    return _mm_cvtss_f32(_mm_add_ss(sum2, _mm_shuffle_ps(sum2, sum2, 1)));
}

HTH_INLINE void accumulate(int rows, int columns, __m256 w[ROW_COLUMNS][2], __m256 x[ROWS][2],
                           __m256 sum[ROWS][ROW_COLUMNS][2]) {
    HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int c = 0; c < columns; c++)
        HTH_UNROLL for (int h = 0; h < 2; h++) sum[r][c][h] = _mm256_fmadd_ps(w[c][h], x[r][h], sum[r][c][h]);
}

/* What to ask for while some columns are multiplied: those from c on, which are next, and from there a little further,
 * since short rows are over before memory answers. 0 when there are none. */
static uintptr_t weights_after(const hth_linear *a, int64_t c, int64_t c1) {
    return c < c1 ? (uintptr_t)a->w + (uintptr_t)(c * a->row_bytes + AHEAD) : 0;
}

/* One tile. A tail shorter than sixteen is copied and filled up with zeros. `ahead`, if not 0, is where to ask for as
 * many bytes as the tile reads; nothing is read there. */
HTH_INLINE void tile(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int columns, int64_t r0, int rows,
                     uintptr_t ahead) {
    const char *w0 = (const char *)a->w + c0 * a->row_bytes;
    const float *x0 = a->f + r0 * a->ldf;
    __m256 sum[ROWS][ROW_COLUMNS][2], w[ROW_COLUMNS][2], x[ROWS][2];
    HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int c = 0; c < columns; c++) sum[r][c][0] = sum[r][c][1] =
        _mm256_setzero_ps();
    const bool ask = ahead != 0;
    int64_t k = 0;
    for (const int bytes = columns * 16 * size; k + 16 <= a->k; k += 16, ahead += (uintptr_t)bytes) {
        if (ask)
            for (int b = 0; b < bytes; b += 64) _mm_prefetch((const char *)(ahead + (uintptr_t)b), _MM_HINT_T0);
        HTH_UNROLL for (int c = 0; c < columns; c++) widen(w0 + c * a->row_bytes + k * size, w[c]);
        HTH_UNROLL for (int r = 0; r < rows; r++) widen_f32(x0 + r * a->ldf + k, x[r]);
        accumulate(rows, columns, w, x, sum);
    }
    if (k < a->k) {
        float filled[16] = {0};
        size_t n = (size_t)(a->k - k);
        HTH_UNROLL for (int c = 0; c < columns; c++) {
            memset(filled, 0, sizeof filled);
            widen(memcpy(filled, w0 + c * a->row_bytes + k * size, n * (size_t)size), w[c]);
        }
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            memset(filled, 0, sizeof filled);
            widen_f32(memcpy(filled, x0 + r * a->ldf + k, n * sizeof(float)), x[r]);
        }
        accumulate(rows, columns, w, x, sum);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float y = tree(sum[r][c]);
            if (a->bias) y += a->bias[c0 + c];
            if (a->add) y += a->add[(r0 + r) * a->ldadd + c0 + c];
            a->y[(r0 + r) * a->ldy + c0 + c] = y;
        }
}

/* One row over all columns. */
HTH_INLINE void row(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r) {
    int64_t c = c0;
    for (; c + ROW_COLUMNS <= c1; c += ROW_COLUMNS)
        tile(widen, size, a, c, ROW_COLUMNS, r, 1, weights_after(a, c + ROW_COLUMNS, c1));
    for (; c < c1; c++) tile(widen, size, a, c, 1, r, 1, 0);
}

/* All columns over rows r0..r1-1, which fit the cache. Few: they are all the rows there are, and wait for memory. */
HTH_INLINE void block(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                      bool few) {
    int64_t tiled_rows = (r1 - r0) / ROWS * ROWS, tiled_columns = (c1 - c0) / COLUMNS * COLUMNS;
    for (int64_t c = c0; c < c0 + tiled_columns && tiled_rows > 0; c += COLUMNS) {
        int64_t r = r0;
        if (few) {
            tile(widen, size, a, c, COLUMNS, r, ROWS, weights_after(a, c + COLUMNS, c1));
            r += ROWS;
        }
        for (; r < r0 + tiled_rows; r += ROWS) tile(widen, size, a, c, COLUMNS, r, ROWS, 0);
    }
    for (int64_t r = r0; r < r0 + tiled_rows && c0 + tiled_columns < c1; r++)
        row(widen, size, a, c0 + tiled_columns, c1, r);
    for (int64_t r = r0 + tiled_rows; r < r1; r++) row(widen, size, a, c0, c1, r);
}

HTH_INLINE void linear(widen_fn *widen, int size, const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1) {
    int64_t rows = CACHE_FLOATS / (a->k > 0 ? a->k : 1) / ROWS * ROWS;
    if (rows < ROWS) rows = ROWS;
    for (int64_t r = r0; r < r1; r += rows)
        block(widen, size, a, c0, c1, r, r1 - r < rows ? r1 : r + rows, r1 - r0 <= FEW_ROWS);
}

#define DEFINE(name, size)                                                                                             \
    static void linear_##name(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {    \
        (void)scratch;                                                                                                 \
        linear(widen_##name, size, a, c0, c1, r0, r1);                                                                 \
    }
DEFINE(f32, 4)
DEFINE(f16, 2)
DEFINE(bf16, 2)

void hth_avx2_init_linear_float(hth_kernels *t) {
    t->linear[HTH_F32] = linear_f32;
    t->linear[HTH_F16] = linear_f16;
    t->linear[HTH_BF16] = linear_bf16;
}
