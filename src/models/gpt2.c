/* gpt2: learned positions, LayerNorm, one fused projection to q, k and v, biases everywhere. */
#include "models/decoder.h"
#include "models/recipes.h"

static hth_tensor_id layer_norm(hth_reading *r, const hth_decoder *d, const char *site, const char *weight,
                                const char *bias, hth_tensor_id x) {
    hth_tensor_id w = hth_bind_vector(r, weight, d->embd);
    return hth_emit_layer_norm(r->b, site, x, w, hth_bind_vector(r, bias, d->embd), d->eps);
}

static hth_tensor_id block(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x) {
    hth_build_scope(r->b, "blk.%d.", i);
    hth_tensor_id a = layer_norm(r, d, "attn_norm", "attn_norm.weight", "attn_norm.bias", x);
    hth_qkv h = hth_decoder_fused_qkv(r, d, i, a, HTH_BIAS_REQUIRED);
    hth_tensor_id o = hth_decoder_attention(r, d, i, h, 0, hth_decoder_scale(d->dk), 0);
    hth_decoder_select(r, d, i, &x, &o);
    o = hth_decoder_linear(r, "attn_output", o, d->embd, HTH_BIAS_REQUIRED);
    x = hth_emit_add(r->b, "attn_residual", x, o);

    hth_tensor_id f = layer_norm(r, d, "ffn_norm", "ffn_norm.weight", "ffn_norm.bias", x);
    f = hth_decoder_linear(r, "ffn_up", f, d->ff[i], HTH_BIAS_REQUIRED);
    f = hth_emit_act(r->b, "ffn_act", f, HTH_ACT_GELU_TANH);
    f = hth_decoder_linear(r, "ffn_down", f, d->embd, HTH_BIAS_REQUIRED);
    return hth_emit_add(r->b, "ffn_residual", x, f);
}

static hth_tensor_id forward(hth_reading *r) {
    hth_decoder d;
    hth_decoder_read(r, "attention.layer_norm_epsilon", &d);

    /* The position table has a row for each position there can be, so the context is its length and no longer. */
    hth_tensor_id embd = hth_decoder_token_embd(r, &d);
    hth_tensor_id table = hth_bind_matrix(r, "position_embd.weight", d.embd, d.context);
    hth_tensor_id x = hth_emit_embed(r->b, "token_embd", hth_build_input(r->b, HTH_INPUT_TOKENS), embd, 1);
    hth_tensor_id p = hth_emit_embed(r->b, "position_embd", hth_build_input(r->b, HTH_INPUT_POSITIONS), table, 1);
    x = hth_emit_add(r->b, "embd", x, p);
    for (int i = 0; i < d.layers; i++) x = block(r, &d, i, x);
    hth_build_scope_end(r->b);
    x = layer_norm(r, &d, "output_norm", "output_norm.weight", "output_norm.bias", x);
    return hth_decoder_logits(r, &d, x, embd, 0);
}

hearth_status hth_recipe_gpt2(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "gpt2", forward, out, err);
}
