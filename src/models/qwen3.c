/* qwen3: as qwen2 without biases, with a norm of each query and key head before it is rotated. */
#include "models/decoder.h"
#include "models/qwen.h"
#include "models/recipes.h"
#include "models/rope.h"

enum { NEOX = 1 };

/* moe: NULL when dense. */
static hth_tensor_id block(hth_reading *r, const hth_decoder *d, const hth_moe *moe, int i, hth_tensor_id x,
                           hth_tensor_id angles) {
    hth_build_scope(r->b, "blk.%d.", i);
    hth_tensor_id a = hth_decoder_rms_norm(r, d, "attn_norm", x);
    hth_qkv h = hth_decoder_qkv(r, d, i, a, HTH_BIAS_NONE);
    h.q = hth_decoder_head_norm(r, d, "attn_q_norm", h.q);
    h.k = hth_decoder_head_norm(r, d, "attn_k_norm", h.k);
    h.q = hth_emit_rope(r->b, "attn_q_rope", h.q, angles, d->dk, NEOX);
    h.k = hth_emit_rope(r->b, "attn_k_rope", h.k, angles, d->dk, NEOX);
    hth_tensor_id o = hth_decoder_attention(r, d, i, h, 0, hth_decoder_scale(d->dk), 0);
    hth_decoder_select(r, d, i, &x, &o);
    o = hth_decoder_linear(r, "attn_output", o, d->embd, HTH_BIAS_NONE);
    x = hth_emit_add(r->b, "attn_residual", x, o);

    hth_tensor_id f = hth_decoder_rms_norm(r, d, "ffn_norm", x);
    f = moe ? hth_moe_ffn(r, d, moe, i, f) : hth_decoder_glu_ffn(r, d, i, f, HTH_ACT_SILU, HTH_BIAS_NONE);
    return hth_emit_add(r->b, "ffn_residual", x, f);
}

hth_tensor_id hth_qwen3_model(hth_reading *r, const hth_decoder *d, const hth_moe *moe) {
    int64_t n_rot = hth_rope_dims(r, d);
    hth_tensor_id angles = hth_rope_angles(r, d, "rope_angles", n_rot, hth_rope_base(r, "rope.freq_base", 10000));

    hth_tensor_id embd = hth_decoder_token_embd(r, d);
    hth_tensor_id x = hth_emit_embed(r->b, "token_embd", hth_build_input(r->b, HTH_INPUT_TOKENS), embd, 1);
    for (int i = 0; i < d->layers; i++) x = block(r, d, moe, i, x, angles);
    hth_build_scope_end(r->b);
    x = hth_decoder_rms_norm(r, d, "output_norm", x);
    return hth_decoder_logits(r, d, x, embd, 0);
}

static hth_tensor_id forward(hth_reading *r) {
    hth_decoder d;
    hth_decoder_read(r, "attention.layer_norm_rms_epsilon", &d);
    return hth_qwen3_model(r, &d, NULL);
}

hearth_status hth_recipe_qwen3(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "qwen3", forward, out, err);
}
