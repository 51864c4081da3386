/* The builder a recipe emits its program with.
 *
 * Errors stick: once a call fails (a missing weight, a shape that does not fit), later calls do nothing and return
 * HTH_NONE, and hth_builder_finish answers the first error. So a recipe reads as the model's forward pass, without a
 * check on every line. Sites and KV names get the scope's prefix: after hth_build_scope(b, "blk.%d.", 7), "attn_q" is
 * the site "blk.7.attn_q".
 */
#ifndef HTH_PROGRAM_BUILD_H
#define HTH_PROGRAM_BUILD_H

#include "program/program.h"

typedef struct hth_builder hth_builder;

hearth_status hth_builder_create(const char *architecture, hth_builder **out, hearth_error *err);
void hth_builder_free(hth_builder **b);

/* Record an error (the first one sticks). The text names file key or tensor. */
void hth_builder_fail(hth_builder *b, hearth_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool hth_builder_failed(const hth_builder *b);

/* Set the prefix of the sites that follow, or none. hth_builder_scope gives it back, valid until the next change. */
void hth_build_scope(hth_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hth_build_scope_end(hth_builder *b);
const char *hth_builder_scope(const hth_builder *b);

/* Facts for reports: layers, width of the residual stream, and the positions the model was made for. */
void hth_build_facts(hth_builder *b, int64_t layers, int64_t embd, int64_t context);

/* Tell the user of something in the file that the program leaves unused; explain prints it. */
void hth_build_note(hth_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A declared tensor (for its dims), or NULL for HTH_NONE; valid until the next declaration or emission. */
const hth_tensor *hth_build_tensor(const hth_builder *b, hth_tensor_id id);

/* Declare tensors. */
hth_tensor_id hth_build_weight(hth_builder *b, const char *name, hth_dtype dtype, int n_dims, const int64_t *dims,
                               hth_weight where);
hth_tensor_id hth_build_constant(hth_builder *b, const char *name, const float *data, int64_t n); /* data is copied */
hth_tensor_id hth_build_input(hth_builder *b, hth_input input); /* the same id each time */
hth_tensor_id hth_build_kv(hth_builder *b, const char *name, hth_kv_shape shape);
/* A recurrent state, and with it the tensor that its checkpoints go to. */
hth_tensor_id hth_build_state(hth_builder *b, const char *name, int n_dims, const int64_t *dims);

/* Emit ops. Each returns its output tensor. `site` is printed into the op and its output; it must be unique. */
hth_tensor_id hth_emit_embed(hth_builder *b, const char *site, hth_tensor_id ids, hth_tensor_id table, float scale);
hth_tensor_id hth_emit_rope_angles(hth_builder *b, const char *site, hth_tensor_id frequencies, float magnitude);
hth_tensor_id hth_emit_rms_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w, float eps);
hth_tensor_id hth_emit_layer_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w,
                                  hth_tensor_id bias, float eps);
hth_tensor_id hth_emit_head_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w, int64_t head_dim,
                                 float eps);
hth_tensor_id hth_emit_linear(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w, hth_tensor_id bias);
hth_tensor_id hth_emit_rope(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id angles, int64_t head_dim,
                            int neox);
void hth_emit_kv_append(hth_builder *b, const char *site, hth_tensor_id keys, hth_tensor_id values, hth_tensor_id kv);
hth_tensor_id hth_emit_attention(hth_builder *b, const char *site, hth_tensor_id q, hth_tensor_id kv,
                                 hth_tensor_id sinks, const hth_attention_imm *imm); /* sinks: HTH_NONE without */
hth_tensor_id hth_emit_glu(hth_builder *b, const char *site, hth_tensor_id gate, hth_tensor_id up, hth_act_kind kind);
hth_tensor_id hth_emit_act(hth_builder *b, const char *site, hth_tensor_id x, hth_act_kind kind);
hth_tensor_id hth_emit_add(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id y);
hth_tensor_id hth_emit_scale(hth_builder *b, const char *site, hth_tensor_id x, float s);
hth_tensor_id hth_emit_softcap(hth_builder *b, const char *site, hth_tensor_id x, float c);
hth_tensor_id hth_emit_slice(hth_builder *b, const char *site, hth_tensor_id x, int64_t group, int64_t first,
                             int64_t count);
hth_tensor_id hth_emit_gate(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id gate);
hth_tensor_id hth_emit_gated_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id z, hth_tensor_id w,
                                  int64_t head_dim, float eps);
hth_tensor_id hth_emit_conv_ring(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id taps,
                                 hth_tensor_id state);

typedef struct hth_delta_operands {
    hth_tensor_id u, alpha, b; /* rows */
    hth_tensor_id a, dt;       /* vectors */
} hth_delta_operands;
hth_tensor_id hth_emit_delta_rule(hth_builder *b, const char *site, const hth_delta_operands *operands,
                                  hth_tensor_id state, const hth_delta_imm *imm);

hth_tensor_id hth_emit_router(hth_builder *b, const char *site, hth_tensor_id logits, int64_t used,
                              hth_router_kind kind);

typedef struct hth_expert_weights {
    hth_tensor_id gate, up, down;                /* slabs */
    hth_tensor_id gate_bias, up_bias, down_bias; /* tables, HTH_NONE without */
} hth_expert_weights;
hth_tensor_id hth_emit_experts(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id routing,
                               const hth_expert_weights *w, int64_t used, hth_act_kind act);
hth_tensor_id hth_emit_select(hth_builder *b, const char *site, hth_tensor_id x); /* rows of OUT_ROWS */

/* Declare `x` the program's logits, check everything and hand the program over; the builder is freed either way. */
hearth_status hth_builder_finish(hth_builder **b, hth_tensor_id logits, hth_program **out, hearth_error *err);

#endif
