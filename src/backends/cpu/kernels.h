/* The kernel types of the CPU backend and the table that a tier fills.
 *
 * The contract of a kernel stands here, once, on its function type: shapes, layouts, edges that may be read, and the
 * ORDER of every float reduction. Every tier (ref, avx2, avxvnni, avx512) follows the order exactly, so its results are
 * equal to ref's bit for bit, whatever the number of rows, the split over threads or the tail. tests/kernels holds them
 * to it with memcmp.
 *
 * Shared rules. All float arithmetic is IEEE binary32, round to nearest even, subnormals kept. `fma` is one rounding.
 * a*b+c written with `*` and `+` is two roundings (the build forbids contraction). exp, tanh and friends are those of
 * base/math.h. "Striped" sums: sixteen partial sums, partial s takes the elements whose index is s mod 16 in increasing
 * order, starting at +0; a tail shorter than sixteen continues with elements that count as +0 (so a partial that would
 * be -0 becomes +0 there); then the tree: p[s] += p[s+8] for s < 8, p[s] += p[s+4] for s < 4, p[s] += p[s+2] for s < 2,
 * p[0] += p[1]. NaN payloads are outside the contract; whether a result is NaN is inside it.
 *
 * No kernel allocates, locks, or reads past the last byte of a weight row range, activation row or table it was given
 * (weights end at the end of a file mapping). Pointers need no alignment beyond that of their element type unless said
 * otherwise. Rows and columns are counted in int64_t; all sizes may be odd.
 */
#ifndef HTH_BACKENDS_CPU_KERNELS_H
#define HTH_BACKENDS_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* ---- Quantized activations --------------------------------------------------------------------------------------- */

/* Rows of activations as int8 with one float scale a block, made once per pass and read by every linear of the same
 * input.
 *
 * q[row * q_stride + i], i < k: values in -127..127, natural order. q_stride is k rounded up to 64 and kept
 * off multiples of 1,024; bytes from k to q_stride are zero. d[row * blocks + b]: scale of block b. sum16[row *
 * sum16_stride + j]: sum of q over elements 16j..16j+15; sum32 likewise over 32. k is a multiple of `block`. q, sum16,
 * sum32 and each row of them are 64-byte aligned. */
typedef struct hth_qact {
    int64_t k;
    int block;                                    /* 32 or 256 */
    int64_t blocks;                               /* k / block */
    int64_t q_stride, sum16_stride, sum32_stride; /* in elements; sum strides are k/16 and k/32 rounded up to 32 */
    int8_t *q;
    float *d;
    int16_t *sum16;
    int16_t *sum32;
} hth_qact;

/* Bytes that hth_qact_carve needs for `rows` rows of k elements (a multiple of 64). */
size_t hth_qact_bytes(int64_t rows, int64_t k);
/* Lay out *a for `rows` rows in `base` (64-byte aligned, hth_qact_bytes large). Touches nothing. */
void hth_qact_carve(hth_qact *a, int64_t rows, int64_t k, int block, void *base);
/* The rows of *a from `row` on, as rows from 0 on. */
hth_qact hth_qact_from(const hth_qact *a, int64_t row);
/* Copy row `from` of *a to row `to` of *b, which is laid out for the same k and block. */
void hth_qact_copy_row(const hth_qact *a, int64_t from, const hth_qact *b, int64_t to);

/* Quantize rows row0..row1-1 of x (row r at x + r*ldx) into the same rows of *out.
 *   amax = max |x| over the block, where a NaN counts as larger than infinity;
 *   if amax < 2^-100: d = 0, q = 0;  else: d = amax / 127, id = 127 / amax,
 *   t = x * id; t = t < 127 ? t : 127; t = t > -127 ? t : -127 (so NaN becomes 127); q = t rounded to nearest even.
 * A NaN in x gives d = NaN; an infinite amax gives d = inf and id = 0. Either poisons the row's results, as it should.
 */
typedef void hth_quantize_fn(const float *x, int64_t ldx, int64_t row0, int64_t row1, const hth_qact *out);

/* ---- Linear ------------------------------------------------------------------------------------------------------ */

/* y[r, c] = sum over k of w[c, k] * x[r, k]   (+ bias[c])   (+ add[r, c])
 *
 * Weight row c starts at w + c * row_bytes and is in GGUF layout. x is q (quantized weight dtypes) or f (F32 F16 BF16).
 *
 * Order, quantized dtypes. The activation block is the weight block: 256 for Q2_K..Q6_K and IQ4_XS, 32 for the others.
 * Within a block everything is an exact int32 in any order:
 *   S = sum over sub-blocks of scale_j * dot_j (dot_j: integer weights times q), M = sum over sub-blocks of min_j *
 * sum_j. with mins of the K kind (Q2_K Q4_K Q5_K):  f = fma(S, d, -(dmin * M)) with a float minimum (Q4_1 Q5_1): f =
 * fma(S, d, m * M), M = sum of q over the block without:                                   f = S * d where S and M are
 * converted to float (round to nearest even), d, dmin and m are the block's F16 values as float (MXFP4: the scale
 * 2^(e-128)), and the integer weights are the format's own: Q4_0 q-8, Q5_0 q-16, Q3_K -4..3 times (scale-32), Q6_K q-32
 * times the int8 scale, IQ4_NL, IQ4_XS (times ls-32) and MXFP4 their tables. Then over blocks in increasing k, one
 * accumulator a output, starting at +0:  acc = fma(f, dy, acc), dy = x's scale.
 *
 * Order, float dtypes. w is converted to float exactly; striped sum over k of fma(w, x, partial).
 *
 * Epilogue, in this order and only where given: y = acc + bias[c]; y = y + add[r, c].
 * `add` may be `y` itself (in place). */
typedef struct hth_linear {
    const void *w;
    int64_t row_bytes;
    int64_t k;
    const hth_qact *q; /* quantized weights: the activations */
    const float *f;    /* float weights: the activations, row r at f + r * ldf */
    int64_t ldf;
    float *y; /* y[r * ldy + c] */
    int64_t ldy;
    const float *bias; /* [columns] or NULL */
    const float *add;  /* add[r * ldadd + c] or NULL */
    int64_t ldadd;
    const void *next; /* the weights that this thread multiplies by next; NULL: those behind the columns, if any.
                       * They may be fetched ahead, never read */
} hth_linear;

/* Compute columns c0..c1-1 of rows r0..r1-1. c0 is a multiple of 16; c1 too unless it is the last column. `scratch` is
 * this thread's, 64-byte aligned, HTH_LINEAR_SCRATCH bytes, contents undefined. With many rows a tier unpacks a panel
 * of columns into the scratch once and reuses it for all rows; with few it unpacks in registers. */
typedef void hth_linear_fn(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch);

#define HTH_LINEAR_SCRATCH ((size_t)256 * 1024)

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Dequantize n elements of one row into y, times scale: y = value * scale (one rounding; scale 1 leaves the bits). */
typedef void hth_embed_fn(const void *row, float *y, int64_t n, float scale);

/* y = x / sqrt(mean(x^2) + eps) * w over n elements. ss = striped sum of fma(x, x, partial);
 * r = 1 / sqrt(ss / n + eps) with n as float; y = (x * r) * w; w NULL: y = x * r. y may be x. */
typedef void hth_rms_norm_fn(const float *x, const float *w, float *y, int64_t n, float eps);

/* y = (x - mean) / sqrt(var + eps) * w + b. mean = striped sum of partial + x, / n; c = x - mean;
 * ss = striped sum of fma(c, c, partial); r = 1 / sqrt(ss / n + eps); y = fma(c * r, w, b). b NULL: y = (c * r) * w.
 * y may be x. */
typedef void hth_layer_norm_fn(const float *x, const float *w, const float *b, float *y, int64_t n, float eps);

/* Rotate `heads` vectors of head_dim in place. angles: cos for the n_rot/2 pairs, then sin for them. Pair i is
 * (i, i + n_rot/2) when neox, else (2i, 2i+1); elements from n_rot on stay.
 * (a, b) -> (fma(a, cos, -(b * sin)), fma(a, sin, b * cos)). */
typedef void hth_rope_fn(float *x, int64_t heads, int64_t head_dim, int64_t n_rot, int neox, const float *angles);

/* Activations: silu(z) = z / (1 + exp(-z)); gelu_tanh(z) = (0.5*z) * (1 + tanh(z * fma(AB, z*z, A))) with A =
 * sqrt(2/pi) rounded to float and AB = A * 0.044715f. */
#define HTH_GELU_A  0x1.988454p-1f
#define HTH_GELU_AB 0x1.2444f2p-5f
typedef enum hth_activation { HTH_SILU, HTH_GELU_TANH, HTH_SWIGLU_CLAMPED, HTH_ACTIVATION_COUNT } hth_activation;

/* y = act(gate) * up, n elements. y may be either input. HTH_SWIGLU_CLAMPED: g = gate > 7 ? 7 : gate;
 * u = up > 7 ? 7 : up < -7 ? -7 : up; y = (g / (1 + exp(-(1.702f * g)))) * (u + 1). */
typedef void hth_glu_fn(const float *gate, const float *up, float *y, int64_t n);
/* y = x * (1 / (1 + exp(-g))), n elements. y may be either input. */
typedef void hth_gate_fn(const float *x, const float *g, float *y, int64_t n);
/* y = fma(x, s, y), n elements. */
typedef void hth_add_scaled_fn(const float *x, float s, float *y, int64_t n);
/* y = act(x). y may be x. */
typedef void hth_act_fn(const float *x, float *y, int64_t n);
/* y = a + b. y may be either. */
typedef void hth_add_fn(const float *a, const float *b, float *y, int64_t n);
/* y = x * s. y may be x. */
typedef void hth_scale_fn(const float *x, float s, float *y, int64_t n);
/* y = c * tanh(x / c). y may be x. */
typedef void hth_softcap_fn(const float *x, float c, float *y, int64_t n);

/* ---- KV cache and attention -------------------------------------------------------------------------------------- */

/* Positions of one KV block. A block of one layer holds, for each kv head: K, dimension-major, k[dim * HTH_KV_BLOCK +
 * slot], then V, key-major, v[slot * dv + dim]; elements are F16 or F32. The slot of position p is p mod HTH_KV_BLOCK.
 */
#define HTH_KV_BLOCK 64

/* Store one position's key (dk floats) and value (dv floats) of one kv head at `slot`; to F16 by round to nearest even.
 */
typedef void hth_kv_append_fn(const float *key, const float *value, int64_t dk, int64_t dv, void *k, void *v, int slot);

/* One tile (the part of one KV block that is visible) against a set of queries: `rows` rows of one session times
 * `heads` query heads that share the kv head. Query (r, h) is q + r*ldq + h*dk; it sees slots lo[r] <= j < hi[r], hi >
 * lo (a tile without a visible key is never passed). Slots outside hold anything, also NaN, and are skipped, not
 * multiplied. s_j = dot(q, k_j): one accumulator, dims in increasing order, starting at +0: s = fma(q_i, k_ji, s); s_j
 * = s_j * scale;  softcap != 0: s_j = softcap * tanh(s_j / softcap); m = max s_j (a zero maximum is +0);  p_j = exp(s_j
 * - m); l = striped sum of p over the block's slots 0..63 (invisible ones +0); o_i = keys in increasing order, starting
 * at +0: o_i = fma(p_j, v_ji, o_i). If l is NaN, so is m: that is when a visible s_j is NaN, or the maximum is
 * infinite. Then o is NaN as well. Results, index n = r*heads + h: m[n], l[n], o[n*dv + i]. scratch: this thread's,
 * HTH_ATTENTION_SCRATCH(dk, dv) bytes, 64-byte aligned. */
typedef struct hth_attention {
    const void *k; /* [dk][HTH_KV_BLOCK] */
    const void *v; /* [HTH_KV_BLOCK][dv] */
    int64_t dk, dv;
    const float *q;
    int64_t ldq;
    int64_t rows, heads;
    const int32_t *lo, *hi; /* [rows] */
    float scale, softcap;
    float *m, *l, *o;
    const void *next; /* the K of the tile that this thread takes next, or NULL: it may be fetched ahead, never read */
} hth_attention;
typedef void hth_attention_tile_fn(const hth_attention *a, void *scratch);

#define HTH_ATTENTION_SCRATCH(dk, dv) ((((size_t)(dk) + (size_t)(dv)) * HTH_KV_BLOCK + 4096) * sizeof(float))

/* Merge n partial results into n running ones (tiles in increasing order), which start as m = -inf, l = 0, o = 0, or,
 * where the head has a sink, as m = sink, l = 1, o = 0:
 *   M = m > pm ? m : pm (NaN if either is); a = exp(m - M); b = exp(pm - M);
 *   l = fma(l, a, pl * b); o = fma(o, a, po * b); m = M. */
typedef void hth_attention_merge_fn(float *m, float *l, float *o, const float *pm, const float *pl, const float *po,
                                    int64_t n, int64_t dv);

/* y = o * (1 / l), dv elements each: y[i] for i < n*dv. */
typedef void hth_attention_finish_fn(const float *l, const float *o, float *y, int64_t n, int64_t dv);

/* ---- Mixture of experts ------------------------------------------------------------------------------------------ */

/* Choose the `used` largest of n logits z, equal ones by lower index: their indices in increasing order, as floats, to
 * out[0 .. used-1], their weights to out[used .. 2 used - 1]. m = the largest z; p_i = exp(z_i - m).
 *   HTH_ROUTER_SOFTMAX: w = p / (striped sum of p over all n);
 *   HTH_ROUTER_NORMALIZED: w as before, then w = w / s, s = sum of the chosen w in increasing index, starting at +0,
 *   at least 2^-14;
 *   HTH_ROUTER_OVER_CHOSEN: w = p / (sum of the chosen p in increasing index, starting at +0).
 * False when a logit is not finite: then the indices are 0 .. used-1 and the weights NaN. One definition for all tiers
 * (ref/router.c); kind as in program/ops.h. scratch: n floats. */
bool hth_route(const float *z, int64_t n, int64_t used, int kind, float *out, float *scratch);

/* ---- Recurrences ------------------------------------------------------------------------------------------------- */

#define HTH_CONV_TAPS 16

/* Some rows of one sequence through a causal convolution, channels c0 .. c1-1 of `channels`.
 *   s = sum over taps j = 0 .. taps-1, in this order, starting at +0, of fma(w[c * taps + j], x_{t - (taps-1) + j}, s);
 *   y_t = s / (1 + exp(-s)).
 * Rows before the first are those of `ring`, oldest first: ring[j * channels + c], j < taps - 1. It is then moved on to
 * the last taps - 1 inputs (where rows < taps - 1, older ones stay). */
typedef struct hth_conv {
    const float *x;
    int64_t ldx;
    int64_t rows, channels, taps; /* 2 <= taps <= HTH_CONV_TAPS */
    const float *w;               /* [channels][taps] */
    float *ring;                  /* [taps - 1][channels] */
    float *y;                     /* y[t * ldy + c] */
    int64_t ldy;
} hth_conv;
typedef void hth_conv_fn(const hth_conv *a, int64_t c0, int64_t c1);

/* Some rows of one sequence through the gated delta rule of one value head, one row after the other.
 *   r = 1 / sqrt(striped sum of fma(q_i, q_i, partial) + eps); q_i = (q_i * r) * scale;  k_i = k_i * r of its own;
 *   decay and beta are given;
 *   S_ij = S_ij * decay;  u_j = sum over i in increasing order, starting at +0, of fma(S_ij, k_i, u_j);
 *   d_j = beta * (v_j - u_j);  S_ij = fma(k_i, d_j, S_ij);
 *   y_j = sum over i in increasing order, starting at +0, of fma(S_ij, q_i, y_j).
 * The lanes j are independent; cutting the rows into calls changes nothing. scratch: this thread's, 64-byte aligned,
 * HTH_DELTA_SCRATCH(dk) bytes. */
typedef struct hth_delta {
    const float *q, *k, *v; /* row t at + t * ld */
    int64_t ld;
    const float *decay, *beta; /* [rows] */
    int64_t rows, dk, dv;
    float eps, scale;
    float *state; /* [dk][dv] */
    float *y;     /* y[t * ldy + j] */
    int64_t ldy;
} hth_delta;
typedef void hth_delta_fn(const hth_delta *a, void *scratch);

/* Queries and keys of HTH_DELTA_ROWS rows, and HTH_DELTA_LANES columns of a state. */
#define HTH_DELTA_ROWS        16
#define HTH_DELTA_LANES       32
#define HTH_DELTA_SCRATCH(dk) ((2 * HTH_DELTA_ROWS + HTH_DELTA_LANES) * (size_t)(dk) * sizeof(float))

/* The gates of one head and row, computed in binary64 and rounded once at the end (recurrent.c):
 *   softplus(x) = x > 20 ? x : log(1 + exp(x));  *decay = exp(a * softplus((double)alpha + dt));
 *   *beta = 1 / (1 + exp(-b)). */
void hth_delta_gates(float alpha, float b, float a, float dt, float *decay, float *beta);

/* ---- Peaks ------------------------------------------------------------------------------------------------------- */

/* Loops that show what the tier's instructions can do at most; nothing computes with their results, which only keep the
 * compiler from leaving the work out.
 *
 * A peak repeats multiply-adds on registers, in enough independent chains to fill the units that multiply: `rounds`
 * rounds of `ops` operations each, 2 a multiply-add. */
typedef uint32_t hth_peak_fn(int64_t rounds);
typedef struct hth_peak {
    hth_peak_fn *run;
    double ops;
} hth_peak;

/* Read every byte once, in increasing order. p is 64-byte aligned, `bytes` a multiple of HTH_READ_UNIT. */
typedef uint64_t hth_read_fn(const void *p, size_t bytes);
#define HTH_READ_UNIT 512

/* ---- The table --------------------------------------------------------------------------------------------------- */

enum { HTH_KV_F16, HTH_KV_F32, HTH_KV_TYPES };

typedef struct hth_kernels {
    const char *name; /* "ref", "avx2", "avxvnni", "avx512" */
    hth_quantize_fn *quantize32, *quantize256;
    hth_linear_fn *linear[HTH_DTYPE_MAX]; /* NULL for dtypes that are not computed */
    hth_embed_fn *embed[HTH_DTYPE_MAX];
    hth_rms_norm_fn *rms_norm;
    hth_layer_norm_fn *layer_norm;
    hth_rope_fn *rope;
    hth_glu_fn *glu[HTH_ACTIVATION_COUNT];
    hth_act_fn *act[HTH_ACTIVATION_COUNT];
    hth_add_fn *add;
    hth_scale_fn *scale;
    hth_softcap_fn *softcap;
    hth_gate_fn *gate;
    hth_add_scaled_fn *add_scaled;
    hth_conv_fn *conv;
    hth_delta_fn *delta;
    hth_kv_append_fn *kv_append[HTH_KV_TYPES];
    hth_attention_tile_fn *attention_tile[HTH_KV_TYPES];
    hth_attention_merge_fn *attention_merge;
    hth_attention_finish_fn *attention_finish;
    hth_peak peak_int8;  /* int8 dot products summed in int32, as the quantized linears use them */
    hth_peak peak_float; /* float32 FMA */
    hth_read_fn *read;
} hth_kernels;

/* Elements of an activation block for a weight dtype: 32, 256, or 0 for float weights. */
int hth_activation_block(hth_dtype dtype);

/* Fill in a tier's kernels: ref fills all; a faster tier overwrites those it has (called on a table already filled by
 * the tiers below it: ref, then avx2, then avxvnni or avx512), and only on a machine that has its instructions, which
 * the filling itself may use. One init function a source file, so that a file is one noun. */
void hth_kernels_ref(hth_kernels *t);
void hth_kernels_avx2(hth_kernels *t);
void hth_kernels_avxvnni(hth_kernels *t);
void hth_kernels_avx512(hth_kernels *t);

#endif
