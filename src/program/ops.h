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
    X(ATTENTION, "attention")   /* out[heads*dv, ROWS] from in0 = queries [heads*dk, ROWS] and the KV state */         \
    X(GLU, "glu")               /* out = act(in0) * in1, imm.act */                                                    \
    X(ACT, "act")               /* out = act(in0), imm.act */                                                          \
    X(ADD, "add")               /* out = in0 + in1 */                                                                  \
    X(SCALE, "scale")           /* out = in0 * imm.scale */                                                            \
    X(SOFTCAP, "softcap")       /* out = c * tanh(in0 / c), c = imm.softcap */                                         \
    X(SELECT, "select")         /* out[n, OUTS] = rows in1 = OUT_ROWS of in0[n, ROWS] */

typedef enum hth_opcode {
#define X(name, text) HTH_OP_##name,
    HTH_OPCODE_LIST(X)
#undef X
        HTH_OPCODES
} hth_opcode;

/* The same numbers as hth_activation in backends/cpu/kernels.h. */
typedef enum hth_act_kind { HTH_ACT_SILU, HTH_ACT_GELU_TANH } hth_act_kind;

typedef struct hth_attention_imm {
    int64_t heads, kv_heads, dk, dv;
    int64_t window; /* 0: full causal; else keys j of query p with p - j < window */
    float scale;
    float softcap; /* 0: none */
} hth_attention_imm;

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
    float scale;
    float softcap;
} hth_immediates;

/* "linear" …; static storage. */
const char *hth_opcode_name(hth_opcode opcode);

#endif
