/* gpt-oss: sliding and full layers in turn, a sink to each query head, biases everywhere, and a mixture of experts with
 * a clamped SwiGLU. */
#include "models/decoder.h"
#include "models/moe.h"
#include "models/recipes.h"
#include "models/rope.h"

enum { NEOX = 1 };

typedef struct gptoss {
    hth_decoder d;
    hth_moe moe;
    bool slides[HTH_MAX_LAYERS];
    int64_t window;
    hth_tensor_id full_angles, sliding_angles;
} gptoss;

static void read_params(hth_reading *r, gptoss *m) {
    m->moe = (hth_moe){.router = HTH_ROUTER_OVER_CHOSEN, .act = HTH_ACT_SWIGLU_CLAMPED, .bias = HTH_BIAS_REQUIRED};
    hth_decoder_read_trunk(r, "attention.layer_norm_rms_epsilon", &m->d);
    hth_moe_read(r, &m->d, &m->moe);
    hth_moe_default_ff(r, &m->moe, 0);
    m->window = hth_param_int(r, "attention.sliding_window", 1, HTH_MAX_CONTEXT);
    hth_param_window_pattern(r, "attention.sliding_window_pattern", m->d.layers, 2, m->slides);
}

/* The released models' YaRN does not round the pairs between which it blends, which no key says. llama.cpp rounds. */
static void emit_angles(hth_reading *r, gptoss *m) {
    int64_t n_rot = hth_rope_dims(r, &m->d);
    double base = hth_rope_base(r, "rope.freq_base", 10000), sliding = hth_rope_base(r, "rope.freq_base_swa", base);
    m->full_angles = hth_rope_unrounded_angles(r, &m->d, "rope_angles", n_rot, base);
    m->sliding_angles =
        sliding == base ? m->full_angles : hth_rope_unrounded_angles(r, &m->d, "rope_angles_swa", n_rot, sliding);
}

static hth_tensor_id block(hth_reading *r, const gptoss *m, int i, hth_tensor_id x) {
    const hth_decoder *d = &m->d;
    hth_tensor_id angles = m->slides[i] ? m->sliding_angles : m->full_angles;
    hth_build_scope(r->b, "blk.%d.", i);
    hth_tensor_id a = hth_decoder_rms_norm(r, d, "attn_norm", x);
    hth_qkv h = hth_decoder_qkv(r, d, i, a, HTH_BIAS_REQUIRED);
    h.q = hth_emit_rope(r->b, "attn_q_rope", h.q, angles, d->dk, NEOX);
    h.k = hth_emit_rope(r->b, "attn_k_rope", h.k, angles, d->dk, NEOX);
    hth_tensor_id o = hth_decoder_sink_attention(r, d, i, h, m->slides[i] ? m->window : 0, hth_decoder_scale(d->dk));
    hth_decoder_select(r, d, i, &x, &o);
    o = hth_decoder_linear(r, "attn_output", o, d->embd, HTH_BIAS_REQUIRED);
    x = hth_emit_add(r->b, "attn_residual", x, o);

    hth_tensor_id f = hth_decoder_rms_norm(r, d, "post_attention_norm", x); /* its name; it goes before the experts */
    f = hth_moe_ffn(r, d, &m->moe, i, f);
    return hth_emit_add(r->b, "ffn_residual", x, f);
}

static hth_tensor_id forward(hth_reading *r) {
    gptoss m;
    read_params(r, &m);
    const hth_decoder *d = &m.d;
    emit_angles(r, &m);
    hth_tensor_id embd = hth_decoder_token_embd(r, d);
    hth_tensor_id x = hth_emit_embed(r->b, "token_embd", hth_build_input(r->b, HTH_INPUT_TOKENS), embd, 1);
    for (int i = 0; i < d->layers; i++) x = block(r, &m, i, x);
    hth_build_scope_end(r->b);
    x = hth_decoder_rms_norm(r, d, "output_norm", x);
    return hth_decoder_logits(r, d, x, embd, 0);
}

hearth_status hth_recipe_gptoss(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "gpt-oss", forward, out, err);
}
