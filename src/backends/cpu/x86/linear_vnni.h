/* Many rows with `dpbusd`: tiles of rows by one or two panels, in exact 32-bit sums of unsigned bytes times signed
 * ones.
 *
 * Signed weights are made unsigned by a bias of 128 (panel.h); what a bias adds is taken off through the sums of the
 * activations, where the sums of products start. The largest sum of a block, 256 * 255 * 127 * 32 for IQ4_XS, fits.
 *
 * Included once by each tier that has it, after
 *   enum { STRIP, MOST_ROWS, PANELS }  as linear_many.h wants them; HEIGHT_LIST(X, ...) calls X(1, ...), X(2, ...) …
 *   enum { VECTORS }                   the vectors side by side in a tile;
 *   ints, floats                       the types of a vector, and the primitives that are declared below. */
#include "backends/cpu/x86/panel.h"

enum { KIND = PRODUCTS_32, IN_PANEL = VECTORS / PANELS, STEP = 16 / IN_PANEL };

#include "backends/cpu/x86/linear_many.h"

/* ---- Defined by the including file ---- */

HTH_INLINE ints zero(void);
HTH_INLINE ints load_ints(const void *p);
HTH_INLINE floats load_floats(const float *p);
HTH_INLINE void store_floats(float *p, floats v);
/* What lies at p, at any address, in all lanes. */
HTH_INLINE ints every4(const void *p);
HTH_INLINE floats every_float(const float *p);
/* acc + the four products of unsigned bytes w with signed bytes q, of each lane. */
HTH_INLINE ints add_bytes(ints acc, ints w, ints q);
/* acc + the two products of 16-bit integers, of each lane. */
HTH_INLINE ints add_halves(ints acc, ints a, ints b);
HTH_INLINE ints add_scaled(ints acc, ints v, ints scale);
HTH_INLINE floats to_floats(ints v);
HTH_INLINE floats multiply(floats a, floats b);
HTH_INLINE floats multiply_add(floats a, floats b, floats c);

/* ---- Tiles ---- */

/* The rows of a tile: every third one has a pointer, and those between are reached by the stride, since there are not
 * registers enough for a pointer each. */
typedef struct tile_q {
    const int8_t *third[(MOST_ROWS + 2) / 3];
    int64_t stride;
} tile_q;

HTH_INLINE void begin(tile_q *q, const tile_rows *x, int rows) {
    q->stride = x->q_stride;
    HTH_UNROLL for (int r = 0; r < rows; r += 3) q->third[r / 3] = x->q + r * x->q_stride;
}

HTH_INLINE void advance(tile_q *q, int rows, int64_t n) {
    HTH_UNROLL for (int r = 0; r < rows; r += 3) q->third[r / 3] += n;
}

/* Where vector v has its part of an array of the first panel. */
#define OF_VECTOR(array, v)                                                                                            \
    ((const void *)((const char *)(array)[(v) % IN_PANEL] + (v) / IN_PANEL * (ptrdiff_t)PANEL_BYTES))

/* Where it has the sums of row r. */
HTH_INLINE float *sums_of(float *sums, int r, int v) {
    return sums + v / IN_PANEL * ROWS * PANEL + r * PANEL + v % IN_PANEL * STEP;
}

/* s[r][v] += products of n bytes of each column with those of each row. */
HTH_INLINE void dot(const uint8_t w[][2][32], const tile_q *q, int n, int rows, ints s[MOST_ROWS][VECTORS]) {
    HTH_UNROLL for (int i = 0; i < n; i += 4) {
        ints bytes[VECTORS];
        HTH_UNROLL for (int v = 0; v < VECTORS; v++) bytes[v] = load_ints(OF_VECTOR(w[i / 4], v));
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            ints x = every4(q->third[r / 3] + r % 3 * q->stride + i);
            HTH_UNROLL for (int v = 0; v < VECTORS; v++) s[r][v] = add_bytes(s[r][v], bytes[v], x);
        }
    }
}

/* Blocks of 32, with a minimum or else with a bias. */
HTH_INLINE void tile32(bool has_min, const panel32 *p, int64_t blocks, const tile_rows *x, int rows, float *sums) {
    floats acc[MOST_ROWS][VECTORS];
    tile_q q;
    begin(&q, x, rows);
    HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] =
        load_floats(sums_of(sums, r, v));
    for (int64_t b = 0; b < blocks; b++, p++) {
        ints s[MOST_ROWS][VECTORS];
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            ints start = has_min ? zero() : every4(&x->sides[r * SIDES + b]);
            HTH_UNROLL for (int v = 0; v < VECTORS; v++) s[r][v] = start;
        }
        fetch_step(x, b);
        dot(p->w, &q, 32, rows, s);
        advance(&q, rows, 32);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            floats dy = every_float(x->d + r * x->d_stride + b), total = dy;
            if (has_min) total = every_float(&x->sides[r * SIDES + b].total);
            HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
                floats f = to_floats(s[r][v]), d = load_floats(OF_VECTOR(p->d, v));
                if (has_min) f = multiply_add(f, d, multiply(load_floats(OF_VECTOR(p->m, v)), total));
                else f = multiply(f, d);
                acc[r][v] = multiply_add(f, dy, acc[r][v]);
            }
        }
    }
    HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int v = 0; v < VECTORS; v++)
        store_floats(sums_of(sums, r, v), acc[r][v]);
}

/* t[r][v] = the sums of q times the terms of the sub-blocks. */
HTH_INLINE void terms(int sub, const panel256 *p, const int16_t *sums, int64_t stride, int rows,
                      ints t[MOST_ROWS][VECTORS]) {
    HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int v = 0; v < VECTORS; v++) t[r][v] = zero();
    for (int j = 0; j < 128 / sub; j++) HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
            ints term = load_ints(OF_VECTOR(p->term[j], v));
            HTH_UNROLL for (int r = 0; r < rows; r++) t[r][v] =
                add_halves(t[r][v], term, every4(sums + r * stride + 2 * j));
        }
}

/* s[r][v] += scale * dot over the sub-blocks of block b. */
HTH_INLINE void scaled_dots(int sub, const panel256 *p, tile_q *q, const tile_rows *x, int64_t b, int rows,
                            ints s[MOST_ROWS][VECTORS]) {
    for (int j = 0; j < 256 / sub; j++) {
        if (j % (64 / sub) == 0) fetch_step(x, 4 * b + j / (64 / sub));
        ints c[MOST_ROWS][VECTORS];
        HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int v = 0; v < VECTORS; v++) c[r][v] = zero();
        dot(p->w + sub / 4 * j, q, sub, rows, c);
        advance(q, rows, sub);
        HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
            ints scale = load_ints(OF_VECTOR(p->scale[j], v));
            HTH_UNROLL for (int r = 0; r < rows; r++) s[r][v] = add_scaled(s[r][v], c[r][v], scale);
        }
    }
}

/* Blocks of 256, with minimums or else with a bias. The float sums stay in memory: they are needed once a block. */
HTH_INLINE void tile256(int sub, bool has_min, const panel256 *p, int64_t blocks, const tile_rows *x, int rows,
                        float *sums) {
    tile_q q;
    begin(&q, x, rows);
    for (int64_t b = 0; b < blocks; b++, p++) {
        const int16_t *sums_q = x->sums + 256 / sub * b;
        ints s[MOST_ROWS][VECTORS], t[MOST_ROWS][VECTORS];
        if (!has_min) terms(sub, p, sums_q, x->sums_stride, rows, s);
        else HTH_UNROLL for (int r = 0; r < rows; r++) HTH_UNROLL for (int v = 0; v < VECTORS; v++) s[r][v] = zero();
        scaled_dots(sub, p, &q, x, b, rows, s);
        if (has_min) terms(sub, p, sums_q, x->sums_stride, rows, t);
        HTH_UNROLL for (int r = 0; r < rows; r++) {
            floats dy = every_float(x->d + r * x->d_stride + b);
            HTH_UNROLL for (int v = 0; v < VECTORS; v++) {
                float *sum = sums_of(sums, r, v);
                floats f = to_floats(s[r][v]), d = load_floats(OF_VECTOR(p->d, v));
                if (has_min) f = multiply_add(f, d, multiply(load_floats(OF_VECTOR(p->m, v)), to_floats(t[r][v])));
                else f = multiply(f, d);
                store_floats(sum, multiply_add(f, dy, load_floats(sum)));
            }
        }
    }
}

#define TILE32(rows, name, has_min)                                                                                    \
    static void name##_##rows(const void *p, int64_t n, const tile_rows *x, float *sums) {                             \
        tile32(has_min, p, n, x, rows, sums);                                                                          \
    }
#define TILE256(rows, name, sub, has_min)                                                                              \
    static void name##_##rows(const void *p, int64_t n, const tile_rows *x, float *sums) {                             \
        tile256(sub, has_min, p, n, x, rows, sums);                                                                    \
    }
#define TILE_NAME(rows, name)    name##_##rows,
#define TILE_TABLE(name)         static tile_fn *const name[MOST_ROWS] = {HEIGHT_LIST(TILE_NAME, name)};
#define TILES32(name, has_min)   HEIGHT_LIST(TILE32, name, has_min) TILE_TABLE(name)
#define TILES256(name, sub, min) HEIGHT_LIST(TILE256, name, sub, min) TILE_TABLE(name)
TILES32(with_bias, false)
TILES32(with_min, true)
TILES256(sub16_bias, 16, false)
TILES256(sub16_min, 16, true)
TILES256(sub32_bias, 32, false)
TILES256(sub32_min, 32, true)

/* The linears for many rows of every format. */
#define VNNI_LINEARS(prefix)                                                                                           \
    MANY(prefix, q4_0, 32, with_bias)                                                                                  \
    MANY(prefix, q4_1, 32, with_min)                                                                                   \
    MANY(prefix, q5_0, 32, with_bias)                                                                                  \
    MANY(prefix, q5_1, 32, with_min)                                                                                   \
    MANY(prefix, q8_0, 32, with_bias)                                                                                  \
    MANY(prefix, iq4_nl, 32, with_bias)                                                                                \
    MANY(prefix, mxfp4, 32, with_bias)                                                                                 \
    MANY(prefix, q2_k, 256, sub16_min)                                                                                 \
    MANY(prefix, q3_k, 256, sub16_bias)                                                                                \
    MANY(prefix, q4_k, 256, sub32_min)                                                                                 \
    MANY(prefix, q5_k, 256, sub32_min)                                                                                 \
    MANY(prefix, q6_k, 256, sub16_bias)                                                                                \
    MANY(prefix, iq4_xs, 256, sub32_bias)
