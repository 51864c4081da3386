#include "models/hybrid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "models/decoder.h"
#include "models/moe.h"
#include "models/rope.h"

enum { NEOX = 1, MAX_TAPS = 64 };

typedef struct hybrid {
    hth_decoder d;
    hth_moe moe;
    bool has_experts;
    bool recurrent[HTH_MAX_LAYERS];
    hth_delta_imm delta;
    int64_t taps;
    hth_tensor_id angles;
} hybrid;

/* ---- Hyper-parameters -------------------------------------------------------------------------------------------- */

static void read_experts(hth_reading *r, hybrid *m) {
    m->moe = (hth_moe){.router = HTH_ROUTER_NORMALIZED};
    hth_moe_read(r, &m->d, &m->moe);
    hth_moe_default_ff(r, &m->moe, 0);
    hth_moe_read_shared(r, &m->moe, m->moe.ff);
}

static void read_delta(hth_reading *r, hybrid *m, hth_head_order heads) {
    hth_delta_imm *delta = &m->delta;
    int64_t values = hth_param_int(r, "ssm.inner_size", 1, HTH_MAX_EMBD);
    delta->key_heads = hth_param_int(r, "ssm.group_count", 1, HTH_MAX_HEADS);
    delta->value_heads = hth_param_int(r, "ssm.time_step_rank", 1, HTH_MAX_HEADS);
    delta->dk = hth_param_int(r, "ssm.state_size", 1, HTH_MAX_HEAD_DIM);
    delta->dv = values / delta->value_heads;
    delta->tiled = heads == HTH_HEADS_TILED;
    delta->eps = 1e-6f; /* a constant of the models; their norms' epsilon is a hyper-parameter */
    m->taps = hth_param_int(r, "ssm.conv_kernel", 2, MAX_TAPS);
    if (delta->value_heads % delta->key_heads != 0)
        hth_builder_fail(r->b, HEARTH_BAD_FILE,
                         "key \"%s.ssm.time_step_rank\" is %" PRId64 ", which the %" PRId64
                         " key heads of ssm.group_count do not divide",
                         r->architecture, delta->value_heads, delta->key_heads);
    if (values % delta->value_heads != 0)
        hth_builder_fail(r->b, HEARTH_BAD_FILE,
                         "key \"%s.ssm.inner_size\" is %" PRId64 ", which the %" PRId64
                         " value heads of ssm.time_step_rank do not divide",
                         r->architecture, values, delta->value_heads);
}

/* Which way a pair of dimensions turns with time, height and width matters for images: the positions of text are the
 * same in all three. */
static void read_sections(hth_reading *r) {
    int64_t sections[4];
    if (hth_param_has(r, "rope.dimension_sections"))
        hth_param_per_layer(r, "rope.dimension_sections", 4, 0, HTH_MAX_HEAD_DIM, sections);
}

static void read_params(hth_reading *r, hybrid *m, hth_head_order heads) {
    hth_decoder *d = &m->d;
    hth_decoder_read_trunk(r, "attention.layer_norm_rms_epsilon", d);
    if (d->dv != d->dk)
        hth_builder_fail(r->b, HEARTH_BAD_FILE,
                         "key \"%s.attention.value_length\" is %" PRId64 ", must be key_length, %" PRId64,
                         r->architecture, d->dv, d->dk);
    int64_t interval = hth_param_int_or(r, "full_attention_interval", 1, HTH_MAX_LAYERS, 4);
    hth_param_window_pattern(r, "attention.recurrent_layers", d->layers, interval, m->recurrent);
    if (m->has_experts) {
        read_experts(r, m);
    } else {
        hth_param_per_layer(r, "feed_forward_length", d->layers, 1, HTH_MAX_EMBD, d->ff);
        hth_param_refuse(r, "expert_count", "a mixture of experts");
    }
    read_delta(r, m, heads);
    read_sections(r);
}

/* ---- Layers that predict further tokens -------------------------------------------------------------------------- */

/* Count every tensor of block i as read. */
static int accept_block(hth_reading *r, int i) {
    char prefix[32], name[128];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "blk.%d.", i);
    int found = 0;
    for (uint64_t k = 0; k < hth_gguf_tensor_count(r->g); k++) {
        hth_string s = hth_gguf_tensor_at(r->g, k)->name;
        if (s.size < n || s.size >= sizeof name || memcmp(s.data, prefix, n) != 0) continue;
        memcpy(name, s.data, s.size);
        name[s.size] = 0;
        found += hth_reading_tensor(r, name) != NULL;
    }
    return found;
}

/* The last nextn_predict_layers blocks draft tokens beyond the next one. The trunk does without them. */
static void leave_out_nextn(hth_reading *r, hth_decoder *d) {
    int nextn = (int)hth_param_int_or(r, "nextn_predict_layers", 0, HTH_MAX_LAYERS, 0), all = d->layers;
    if (nextn == 0 || hth_builder_failed(r->b)) return;
    int found = 0;
    for (int i = nextn < all ? all - nextn : 0; i < all; i++) {
        int tensors = accept_block(r, i);
        found += tensors;
        if (tensors > 0) hth_build_note(r->b, "blk.%d is a multi-token-prediction layer: left unused", i);
    }
    if (nextn >= all || (found > 0 && !hth_bind_has(r, "blk.0.attn_norm.weight"))) {
        hth_builder_fail(r->b, HEARTH_UNSUPPORTED,
                         "key \"%s.nextn_predict_layers\" is %d: the file holds multi-token-prediction layers and not "
                         "the model that they predict for",
                         r->architecture, nextn);
        return;
    }
    d->layers = all - nextn;
    hth_build_facts(r->b, d->layers, d->embd, d->context);
}

/* ---- Full attention ---------------------------------------------------------------------------------------------- */

static hth_tensor_id fused_linear(hth_reading *r, const char *site, hth_tensor_id x, int64_t in, int64_t rows,
                                  int64_t first, int64_t count) {
    hth_tensor_id w = hth_bind_matrix_part(r, "attn_qkv.weight", in, rows, first, count);
    return hth_emit_linear(r->b, site, x, w, HTH_NONE);
}

/* h.q: for each head its query, then its gate. */
static hth_qkv gated_qkv(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x) {
    int64_t q = 2 * d->heads[i] * d->dk, k = d->kv_heads[i] * d->dk, all = q + 2 * k;
    hth_qkv h;
    if (hth_bind_has(r, "attn_qkv.weight")) {
        h.q = fused_linear(r, "attn_q", x, d->embd, all, 0, q);
        h.k = fused_linear(r, "attn_k", x, d->embd, all, q, k);
        h.v = fused_linear(r, "attn_v", x, d->embd, all, q + k, k);
    } else {
        h.q = hth_decoder_linear(r, "attn_q", x, q, HTH_BIAS_NONE);
        h.k = hth_decoder_linear(r, "attn_k", x, k, HTH_BIAS_NONE);
        h.v = hth_decoder_linear(r, "attn_v", x, k, HTH_BIAS_NONE);
    }
    return h;
}

static hth_tensor_id full_attention(hth_reading *r, const hybrid *m, int i, hth_tensor_id x) {
    const hth_decoder *d = &m->d;
    hth_qkv h = gated_qkv(r, d, i, x);
    hth_tensor_id gate = hth_emit_slice(r->b, "attn_q_gate", h.q, 2 * d->dk, d->dk, d->dk);
    h.q = hth_emit_slice(r->b, "attn_q_head", h.q, 2 * d->dk, 0, d->dk);
    h.q = hth_decoder_head_norm(r, d, "attn_q_norm", h.q);
    h.k = hth_decoder_head_norm(r, d, "attn_k_norm", h.k);
    h.q = hth_emit_rope(r->b, "attn_q_rope", h.q, m->angles, d->dk, NEOX);
    h.k = hth_emit_rope(r->b, "attn_k_rope", h.k, m->angles, d->dk, NEOX);
    hth_tensor_id o = hth_decoder_attention(r, d, i, h, 0, hth_decoder_scale(d->dk), 0);
    return hth_emit_gate(r->b, "attn_gated", o, gate);
}

/* ---- Gated DeltaNet ---------------------------------------------------------------------------------------------- */

/* alpha and b, whose fused tensor has for each key head the b of its value heads, then their alpha. */
static void gates(hth_reading *r, const hybrid *m, hth_tensor_id x, hth_delta_operands *out) {
    int64_t n = m->delta.value_heads, each = n / m->delta.key_heads;
    if (!m->delta.tiled && !hth_bind_has(r, "ssm_alpha.weight")) {
        hth_tensor_id ba = hth_decoder_linear(r, "ssm_ba", x, 2 * n, HTH_BIAS_NONE);
        out->b = hth_emit_slice(r->b, "ssm_beta", ba, 2 * each, 0, each);
        out->alpha = hth_emit_slice(r->b, "ssm_alpha", ba, 2 * each, each, each);
    } else {
        out->alpha = hth_decoder_linear(r, "ssm_alpha", x, n, HTH_BIAS_NONE);
        out->b = hth_decoder_linear(r, "ssm_beta", x, n, HTH_BIAS_NONE);
    }
}

static hth_tensor_id delta_net(hth_reading *r, const hybrid *m, hth_tensor_id x) {
    const hth_delta_imm *delta = &m->delta;
    int64_t values = delta->value_heads * delta->dv, channels = 2 * delta->key_heads * delta->dk + values;
    if (hth_bind_has(r, "ssm_in.weight"))
        hth_builder_fail(r->b, HEARTH_UNSUPPORTED,
                         "tensor %sssm_in.weight mixes the rows of attn_qkv and attn_gate: only files that have these "
                         "two are supported",
                         hth_builder_scope(r->b));
    hth_delta_operands operands;
    operands.u = hth_decoder_linear(r, "attn_qkv", x, channels, HTH_BIAS_NONE);
    hth_tensor_id z = hth_decoder_linear(r, "attn_gate", x, values, HTH_BIAS_NONE);
    gates(r, m, x, &operands);
    operands.a = hth_bind_vector(r, "ssm_a", delta->value_heads);
    operands.dt = hth_bind_vector(r, "ssm_dt.bias", delta->value_heads);

    hth_tensor_id taps = hth_bind_table(r, "ssm_conv1d.weight", m->taps, channels);
    hth_tensor_id ring = hth_build_state(r->b, "conv_ring", 2, (const int64_t[]){channels, m->taps - 1});
    operands.u = hth_emit_conv_ring(r->b, "ssm_conv1d", operands.u, taps, ring);
    const int64_t dims[] = {delta->dv, delta->dk, delta->value_heads};
    hth_tensor_id state = hth_build_state(r->b, "delta_state", 3, dims);
    hth_tensor_id o = hth_emit_delta_rule(r->b, "ssm_delta", &operands, state, delta);
    hth_tensor_id norm = hth_bind_vector(r, "ssm_norm.weight", delta->dv);
    return hth_emit_gated_norm(r->b, "ssm_norm", o, z, norm, delta->dv, m->d.eps);
}

/* ---- The forward pass -------------------------------------------------------------------------------------------- */

static hth_tensor_id block(hth_reading *r, const hybrid *m, int i, hth_tensor_id x) {
    const hth_decoder *d = &m->d;
    hth_build_scope(r->b, "blk.%d.", i);
    hth_tensor_id a = hth_decoder_rms_norm(r, d, "attn_norm", x);
    hth_tensor_id o = m->recurrent[i] ? delta_net(r, m, a) : full_attention(r, m, i, a);
    hth_decoder_select(r, d, i, &x, &o);
    o = hth_decoder_linear(r, m->recurrent[i] ? "ssm_out" : "attn_output", o, d->embd, HTH_BIAS_NONE);
    x = hth_emit_add(r->b, "attn_residual", x, o);

    hth_tensor_id f = hth_decoder_rms_norm(r, d, "post_attention_norm", x);
    f = m->has_experts ? hth_moe_ffn(r, d, &m->moe, i, f)
                       : hth_decoder_glu_ffn(r, d, i, f, HTH_ACT_SILU, HTH_BIAS_NONE);
    return hth_emit_add(r->b, "ffn_residual", x, f);
}

hth_tensor_id hth_hybrid_forward(hth_reading *r, hth_head_order heads, bool has_experts) {
    hybrid m = {.has_experts = has_experts};
    hth_decoder *d = &m.d;
    read_params(r, &m, heads);
    leave_out_nextn(r, d);
    m.angles = hth_rope_angles(r, d, "rope_angles", hth_rope_dims(r, d), hth_rope_base(r, "rope.freq_base", 0));

    hth_tensor_id embd = hth_decoder_token_embd(r, d);
    hth_tensor_id x = hth_emit_embed(r->b, "token_embd", hth_build_input(r->b, HTH_INPUT_TOKENS), embd, 1);
    for (int i = 0; i < d->layers; i++) x = block(r, &m, i, x);
    hth_build_scope_end(r->b);
    x = hth_decoder_rms_norm(r, d, "output_norm", x);
    return hth_decoder_logits(r, d, x, embd, 0);
}
