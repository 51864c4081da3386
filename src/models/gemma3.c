/* gemma3: five sliding layers to a full one, each kind with its own rope base, norms of query and key heads. */
#include <math.h>

#include "models/decoder.h"
#include "models/recipes.h"
#include "models/rope.h"

enum { NEOX = 1 };

typedef struct gemma3 {
    hth_decoder d;
    bool slides[HTH_MAX_LAYERS];
    int64_t window;
    float scale, logit_softcap;
    hth_tensor_id full_angles, sliding_angles;
} gemma3;

static void read_params(hth_reading *r, gemma3 *m) {
    hth_decoder_read(r, "attention.layer_norm_rms_epsilon", &m->d);
    m->window = hth_param_int_or(r, "attention.sliding_window", 0, HTH_MAX_CONTEXT, 0);
    hth_param_window_pattern(r, "attention.sliding_window_pattern", m->d.layers, 6, m->slides);
    if (m->window == 0)
        for (int i = 0; i < m->d.layers; i++) m->slides[i] = false;
    m->logit_softcap = (float)hth_param_float_or(r, "final_logit_softcapping", 0, 1e6, 0);
    /* No key holds the scale. Only the 27B, which its 62 layers tell, does not go by the head's size. */
    m->scale = hth_decoder_scale(m->d.layers == 62 ? m->d.embd / m->d.heads[0] : m->d.dk);
}

static hth_tensor_id block(hth_reading *r, const gemma3 *m, int i, hth_tensor_id x) {
    const hth_decoder *d = &m->d;
    hth_tensor_id angles = m->slides[i] ? m->sliding_angles : m->full_angles;
    hth_build_scope(r->b, "blk.%d.", i);
    hth_tensor_id a = hth_decoder_rms_norm(r, d, "attn_norm", x);
    hth_qkv h = hth_decoder_qkv(r, d, i, a, HTH_BIAS_NONE);
    h.q = hth_decoder_head_norm(r, d, "attn_q_norm", h.q);
    h.k = hth_decoder_head_norm(r, d, "attn_k_norm", h.k);
    h.q = hth_emit_rope(r->b, "attn_q_rope", h.q, angles, d->dk, NEOX);
    h.k = hth_emit_rope(r->b, "attn_k_rope", h.k, angles, d->dk, NEOX);
    hth_tensor_id o = hth_decoder_attention(r, d, i, h, m->slides[i] ? m->window : 0, m->scale, 0);
    hth_decoder_select(r, d, i, &x, &o);
    o = hth_decoder_linear(r, "attn_output", o, d->embd, HTH_BIAS_NONE);
    o = hth_decoder_rms_norm(r, d, "post_attention_norm", o);
    x = hth_emit_add(r->b, "attn_residual", x, o);

    hth_tensor_id f = hth_decoder_rms_norm(r, d, "ffn_norm", x);
    f = hth_decoder_glu_ffn(r, d, i, f, HTH_ACT_GELU_TANH, HTH_BIAS_NONE);
    f = hth_decoder_rms_norm(r, d, "post_ffw_norm", f);
    return hth_emit_add(r->b, "ffn_residual", x, f);
}

static hth_tensor_id forward(hth_reading *r) {
    gemma3 m;
    read_params(r, &m);
    const hth_decoder *d = &m.d;
    int64_t n_rot = hth_rope_dims(r, d);
    /* Scaling is for the full layers: a window's distances are those of training, however long the context. */
    m.full_angles = hth_rope_angles(r, d, "rope_angles", n_rot, hth_rope_base(r, "rope.freq_base", 0));
    double sliding_base = hth_rope_base(r, "rope.freq_base_swa", 10000);
    m.sliding_angles = HTH_NONE;
    for (int i = 0; i < d->layers && m.sliding_angles == HTH_NONE; i++)
        if (m.slides[i]) m.sliding_angles = hth_rope_plain_angles(r, "rope_angles_swa", n_rot, sliding_base);

    hth_tensor_id embd = hth_decoder_token_embd(r, d);
    float embd_scale = (float)sqrt((double)d->embd);
    hth_tensor_id x = hth_emit_embed(r->b, "token_embd", hth_build_input(r->b, HTH_INPUT_TOKENS), embd, embd_scale);
    for (int i = 0; i < d->layers; i++) x = block(r, &m, i, x);
    hth_build_scope_end(r->b);
    x = hth_decoder_rms_norm(r, d, "output_norm", x);
    return hth_decoder_logits(r, d, x, embd, m.logit_softcap);
}

hearth_status hth_recipe_gemma3(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "gemma3", forward, out, err);
}
