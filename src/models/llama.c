/* llama: Llama 1 to 3, SmolLM, Mistral, and what was built like them; with experts, Mixtral. */
#include <inttypes.h>

#include "models/decoder.h"
#include "models/moe.h"
#include "models/recipes.h"
#include "models/rope.h"

enum { NEOX = 0 }; /* pairs are neighbours: the converter permutes q and k */

typedef struct llama {
    hth_decoder d;
    hth_moe moe; /* experts 0: dense */
    int64_t window;
    hth_tensor_id angles;
} llama;

static void read_params(hth_reading *r, llama *m) {
    const char *eps = "attention.layer_norm_rms_epsilon";
    m->moe = (hth_moe){.router = HTH_ROUTER_NORMALIZED};
    if (hth_moe_wanted(r)) {
        hth_decoder_read_trunk(r, eps, &m->d);
        hth_moe_read(r, &m->d, &m->moe);
        hth_moe_default_ff(r, &m->moe, m->moe.dense_ff);
    } else {
        hth_decoder_read(r, eps, &m->d);
    }
    m->window = hth_param_int_or(r, "attention.sliding_window", 0, HTH_MAX_CONTEXT, 0);
}

static hth_tensor_id block(hth_reading *r, const llama *m, int i, hth_tensor_id x) {
    const hth_decoder *d = &m->d;
    hth_build_scope(r->b, "blk.%d.", i);
    hth_tensor_id a = hth_decoder_rms_norm(r, d, "attn_norm", x);
    hth_qkv h = hth_decoder_qkv(r, d, i, a, HTH_BIAS_OPTIONAL);
    h.q = hth_emit_rope(r->b, "attn_q_rope", h.q, m->angles, d->dk, NEOX);
    h.k = hth_emit_rope(r->b, "attn_k_rope", h.k, m->angles, d->dk, NEOX);
    hth_tensor_id o = hth_decoder_attention(r, d, i, h, m->window, hth_decoder_scale(d->dk), 0);
    hth_decoder_select(r, d, i, &x, &o);
    o = hth_decoder_linear(r, "attn_output", o, d->embd, HTH_BIAS_OPTIONAL);
    x = hth_emit_add(r->b, "attn_residual", x, o);

    hth_tensor_id f = hth_decoder_rms_norm(r, d, "ffn_norm", x);
    f = m->moe.experts > 0 ? hth_moe_ffn(r, d, &m->moe, i, f)
                           : hth_decoder_glu_ffn(r, d, i, f, HTH_ACT_SILU, HTH_BIAS_OPTIONAL);
    return hth_emit_add(r->b, "ffn_residual", x, f);
}

static hth_tensor_id forward(hth_reading *r) {
    llama m;
    read_params(r, &m);
    const hth_decoder *d = &m.d;
    int64_t n_rot = hth_rope_dims(r, d);
    if (n_rot != d->dk)
        hth_builder_fail(r->b, HEARTH_UNSUPPORTED,
                         "key \"llama.rope.dimension_count\" is %" PRId64 ", and only whole heads of %" PRId64
                         " are supported",
                         n_rot, d->dk);
    m.angles = hth_rope_angles(r, d, "rope_angles", n_rot, hth_rope_base(r, "rope.freq_base", 10000));

    hth_tensor_id embd = hth_decoder_token_embd(r, d);
    hth_tensor_id x = hth_emit_embed(r->b, "token_embd", hth_build_input(r->b, HTH_INPUT_TOKENS), embd, 1);
    for (int i = 0; i < d->layers; i++) x = block(r, &m, i, x);
    hth_build_scope_end(r->b);
    x = hth_decoder_rms_norm(r, d, "output_norm", x);
    return hth_decoder_logits(r, d, x, embd, 0);
}

hearth_status hth_recipe_llama(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "llama", forward, out, err);
}
