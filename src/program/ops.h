/* The op vocabulary: opcodes, typed immediates, and what each op means.
 *
 * Shapes are fastest dimension first; [n, ROWS] is ROWS rows of n contiguous floats. docs/adding.md says what a
 * new op needs besides a line here.
 */
#ifndef HTH_PROGRAM_OPS_H
#define HTH_PROGRAM_OPS_H

#include <stdint.h>

/* name, print name */
#define HTH_OPCODE_LIST(X)                                                                                             \
    /* out[n, ROWS] = row in0[r] of weight0 [n, V] times imm.embed.scale; in0: TOKENS or POSITIONS. A position beyond  \
       the table is refused by the engine before the pass (context). */                                                \
    X(EMBED, "embed")                                                                                                  \
    /* out[n_rot, ROWS]: cos then sin of the n_rot/2 angles of in0 = POSITIONS; weight0: constant [n_rot/2] of         \
       frequencies. angle = (float)position * frequency rounded to float32; both times imm.rope_angles.magnitude. */   \
    X(ROPE_ANGLES, "rope_angles")                                                                                      \
    X(RMS_NORM, "rms_norm")     /* out[n, R] = rms_norm(in0[n, R]) * weight0[n]; R is ROWS or OUTS */                  \
    X(LAYER_NORM, "layer_norm") /* out = layer_norm(in0) * weight0 + weight1 */                                        \
    X(HEAD_NORM, "head_norm")   /* rms_norm of each imm.head_norm.head_dim slice of in0 with weight0[head_dim] */      \
    X(LINEAR, "linear")         /* out[n, R] = weight0[k, n] in0[k, R] (+ weight1[n]) */                               \
    X(ROPE, "rope")             /* out = in0 rotated by in1 = angles, imm.rope */                                      \
    X(KV_APPEND, "kv_append")   /* store in0 = keys [heads*dk, ROWS], in1 = values [heads*dv, ROWS] in the KV state */ \
    /* out[heads*dv, ROWS] from in0 = queries [heads*dk, ROWS] and the KV state; weight0, where given: a sink a head,  \
       a score that takes part in the softmax and has no value */                                                      \
    X(ATTENTION, "attention")                                                                                          \
    X(GLU, "glu")         /* out = act(in0) * in1, imm.act */                                                          \
    X(ACT, "act")         /* out = act(in0), imm.act */                                                                \
    X(ADD, "add")         /* out = in0 + in1 */                                                                        \
    X(SCALE, "scale")     /* out = in0 * imm.scale */                                                                  \
    X(SOFTCAP, "softcap") /* out = c * tanh(in0 / c), c = imm.softcap */                                               \
    X(SLICE, "slice")     /* out[g * count, R]: elements first .. first+count-1 of each group of in0, imm.slice */     \
    X(GATE, "gate")       /* out = in0 * sigmoid(in1); in1 is as wide as in0, or one element a row */                  \
    /* out = head_norm(in0; weight0[head_dim]) * silu(in1), imm.head_norm */                                           \
    X(GATED_NORM, "gated_norm")                                                                                        \
    X(SELECT, "select") /* out[n, OUTS] = rows in1 = OUT_ROWS of in0[n, ROWS] */                                       \
    /* out[n, ROWS] = silu of a causal convolution of each element of in0[n, ROWS] along its sequence: weight0 is      \
       float32 [K, n], tap K-1 for the row itself. State [n, K-1]: the last K-1 rows of in0, oldest first, zeros       \
       before the sequence's start. */                                                                                 \
    X(CONV_RING, "conv_ring")                                                                                          \
    /* The gated delta rule (arXiv 2412.06464), imm.delta. in0 = u [2 dk key_heads + dv value_heads, ROWS]: queries,   \
       keys, values; in1 = alpha, in2 = b, both [value_heads, ROWS]; weight0 = a, weight1 = dt, both [value_heads].    \
       For value head h with key head kappa: q, k divided by sqrt(sum of squares + eps), q also times dk^-1/2;         \
       S *= exp(a softplus(alpha + dt)); d = sigmoid(b) (v - S^T k); S += k d^T; out[dv value_heads, ROWS] = S^T q.    \
       State [dv, dk, value_heads]. */                                                                                 \
    X(DELTA_RULE, "delta_rule")                                                                                        \
    /* out[2 k, R]: for each row the ids of the k largest of in0 = logits [E, R], increasing (as floats, which hold    \
       them exactly), then their weights, imm.router. Equal logits: the lower id. A row with a logit that is not       \
       finite is reported as a fault of its sequence; its ids are 0 .. k-1 and its weights NaN. */                     \
    X(ROUTER, "router")                                                                                                \
    /* out[n, R] = sum over in1 = routing [2 k, R] of weight * down_e(glu(gate_e x, up_e x)), in increasing expert id, \
       x = in0 [n, R]. weight0, weight1: gate and up, slabs [n, F, E]; weight2: down [F, n, E]; weight3..5: their      \
       biases, tables [F, E], [F, E], [n, E], or nothing. imm.experts. */                                              \
    X(EXPERTS, "experts")

typedef enum hth_opcode {
#define X(name, text) HTH_OP_##name,
    HTH_OPCODE_LIST(X)
#undef X
        HTH_OPCODES
} hth_opcode;

/* The same numbers as hth_activation in backends/cpu/kernels.h. */
typedef enum hth_act_kind {
    HTH_ACT_SILU,
    HTH_ACT_GELU_TANH,
    HTH_ACT_SWIGLU_CLAMPED, /* of GLU only: gate at most 7, up within 7: gate * sigmoid(1.702 gate) * (up + 1) */
    HTH_ACT_KINDS
} hth_act_kind;

/* How the weights of the chosen experts follow from the router's logits. */
typedef enum hth_router_kind {
    HTH_ROUTER_SOFTMAX,     /* softmax over all */
    HTH_ROUTER_NORMALIZED,  /* the same, divided by the sum of the chosen (at least 2^-14) */
    HTH_ROUTER_OVER_CHOSEN, /* softmax over the chosen */
    HTH_ROUTER_KINDS
} hth_router_kind;

typedef struct hth_attention_imm {
    int64_t heads, kv_heads, dk, dv;
    int64_t window; /* 0: full causal; else keys j of query p with p - j < window */
    float scale;
    float softcap; /* 0: none */
} hth_attention_imm;

typedef struct hth_delta_imm {
    int64_t key_heads, value_heads, dk, dv;
    int tiled; /* value head h reads key head h mod key_heads; else h / (value_heads / key_heads) */
    float eps;
} hth_delta_imm;

typedef union hth_immediates {
    struct {
        float scale;
    } embed;
    struct {
        float magnitude;
    } rope_angles;
    struct {
        float eps;
    } norm; /* RMS_NORM, LAYER_NORM */
    struct {
        float eps;
        int64_t head_dim;
    } head_norm;
    struct {
        int64_t head_dim, n_rot;
        int neox;
    } rope;
    hth_attention_imm attention;
    struct {
        hth_act_kind kind;
    } act; /* GLU, ACT */
    struct {
        int64_t group, first, count;
    } slice;
    hth_delta_imm delta;
    struct {
        int64_t used; /* k */
        hth_router_kind kind;
    } router;
    struct {
        int64_t used; /* k */
        hth_act_kind act;
    } experts;
    float scale;
    float softcap;
} hth_immediates;

/* "linear" …; static storage. */
const char *hth_opcode_name(hth_opcode opcode);

#endif
