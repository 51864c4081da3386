#include "models/decoder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- Hyper-parameters -------------------------------------------------------------------------------------------- */

/* key_length or value_length; absent, the embedding is shared out among the heads. */
static int64_t head_dim(hth_reading *r, const hth_decoder *d, const char *suffix) {
    int64_t dim = hth_param_int_or(r, suffix, 1, HTH_MAX_HEAD_DIM, 0);
    if (dim > 0 || hth_builder_failed(r->b)) return dim;
    dim = d->embd / d->heads[0];
    if (d->embd % d->heads[0] != 0 || dim > HTH_MAX_HEAD_DIM)
        hth_builder_fail(r->b, HEARTH_BAD_FILE,
                         "key \"%s.attention.head_count\": an embedding of %" PRId64
                         " cannot be shared out among %" PRId64 " heads of 1 to %d",
                         r->architecture, d->embd, d->heads[0], HTH_MAX_HEAD_DIM);
    return dim;
}

void hth_decoder_read_trunk(hth_reading *r, const char *eps_suffix, hth_decoder *d) {
    d->layers = (int)hth_param_int(r, "block_count", 1, HTH_MAX_LAYERS);
    d->embd = hth_param_int(r, "embedding_length", 1, HTH_MAX_EMBD);
    d->context = hth_param_int(r, "context_length", 1, HTH_MAX_CONTEXT);
    d->eps = (float)hth_param_float(r, eps_suffix, 0, 1);
    hth_param_per_layer(r, "attention.head_count", d->layers, 1, HTH_MAX_HEADS, d->heads);
    if (hth_param_has(r, "attention.head_count_kv"))
        hth_param_per_layer(r, "attention.head_count_kv", d->layers, 1, HTH_MAX_HEADS, d->kv_heads);
    else
        for (int i = 0; i < d->layers; i++) d->kv_heads[i] = d->heads[i];
    for (int i = 0; i < d->layers; i++)
        if (d->heads[i] % d->kv_heads[i] != 0)
            hth_builder_fail(r->b, HEARTH_BAD_FILE,
                             "key \"%s.attention.head_count_kv\": layer %d has %" PRId64 " heads, which %" PRId64
                             " KV heads do not divide",
                             r->architecture, i, d->heads[i], d->kv_heads[i]);
    d->dk = head_dim(r, d, "attention.key_length");
    d->dv = head_dim(r, d, "attention.value_length");
    d->vocab = hth_bind_rows(r, "token_embd.weight", HTH_MAX_VOCAB);
    hth_build_facts(r->b, d->layers, d->embd, d->context);
}

void hth_decoder_read(hth_reading *r, const char *eps_suffix, hth_decoder *d) {
    hth_decoder_read_trunk(r, eps_suffix, d);
    hth_param_per_layer(r, "feed_forward_length", d->layers, 1, HTH_MAX_EMBD, d->ff);
    hth_param_refuse(r, "expert_count", "a mixture of experts");
    hth_param_refuse(r, "nextn_predict_layers", "a layer that predicts further tokens");
}

float hth_decoder_scale(int64_t n) {
    return (float)(1.0 / sqrt((double)n));
}

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

static const char *suffixed(const char *name, const char *suffix, char out[64]) {
    snprintf(out, 64, "%s%s", name, suffix);
    return out;
}

static bool wants_bias(const hth_reading *r, const char *bias_name, hth_bias bias) {
    return bias == HTH_BIAS_REQUIRED || (bias == HTH_BIAS_OPTIONAL && hth_bind_has(r, bias_name));
}

static int64_t width(const hth_reading *r, hth_tensor_id x) {
    const hth_tensor *t = hth_build_tensor(r->b, x);
    return t ? t->dims[0].n : 0;
}

hth_tensor_id hth_decoder_linear(hth_reading *r, const char *name, hth_tensor_id x, int64_t out, hth_bias bias) {
    char weight_name[64], bias_name[64];
    suffixed(name, ".bias", bias_name);
    hth_tensor_id w = hth_bind_matrix(r, suffixed(name, ".weight", weight_name), width(r, x), out);
    hth_tensor_id b = wants_bias(r, bias_name, bias) ? hth_bind_vector(r, bias_name, out) : HTH_NONE;
    return hth_emit_linear(r->b, name, x, w, b);
}

hth_tensor_id hth_decoder_rms_norm(hth_reading *r, const hth_decoder *d, const char *name, hth_tensor_id x) {
    char weight_name[64];
    hth_tensor_id w = hth_bind_vector(r, suffixed(name, ".weight", weight_name), width(r, x));
    return hth_emit_rms_norm(r->b, name, x, w, d->eps);
}

hth_tensor_id hth_decoder_head_norm(hth_reading *r, const hth_decoder *d, const char *name, hth_tensor_id x) {
    char weight_name[64];
    hth_tensor_id w = hth_bind_vector(r, suffixed(name, ".weight", weight_name), d->dk);
    return hth_emit_head_norm(r->b, name, x, w, d->dk, d->eps);
}

/* One of the projections in a fused tensor: rows [first, first + count) of `rows`. */
static hth_tensor_id fused_linear(hth_reading *r, const char *site, hth_tensor_id x, int64_t rows, int64_t first,
                                  int64_t count, hth_bias bias) {
    hth_tensor_id w = hth_bind_matrix_part(r, "attn_qkv.weight", width(r, x), rows, first, count);
    hth_tensor_id b =
        wants_bias(r, "attn_qkv.bias", bias) ? hth_bind_vector_part(r, "attn_qkv.bias", rows, first, count) : HTH_NONE;
    return hth_emit_linear(r->b, site, x, w, b);
}

hth_qkv hth_decoder_fused_qkv(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x, hth_bias bias) {
    int64_t q = d->heads[i] * d->dk, k = d->kv_heads[i] * d->dk, v = d->kv_heads[i] * d->dv, all = q + k + v;
    hth_qkv h;
    h.q = fused_linear(r, "attn_q", x, all, 0, q, bias);
    h.k = fused_linear(r, "attn_k", x, all, q, k, bias);
    h.v = fused_linear(r, "attn_v", x, all, q + k, v, bias);
    return h;
}

hth_qkv hth_decoder_qkv(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x, hth_bias bias) {
    if (hth_bind_has(r, "attn_qkv.weight")) return hth_decoder_fused_qkv(r, d, i, x, bias);
    hth_qkv h;
    h.q = hth_decoder_linear(r, "attn_q", x, d->heads[i] * d->dk, bias);
    h.k = hth_decoder_linear(r, "attn_k", x, d->kv_heads[i] * d->dk, bias);
    h.v = hth_decoder_linear(r, "attn_v", x, d->kv_heads[i] * d->dv, bias);
    return h;
}

static hth_tensor_id append_and_attend(hth_reading *r, const hth_decoder *d, int i, hth_qkv h, int64_t window,
                                       float scale, float softcap, hth_tensor_id sinks) {
    hth_attention_imm imm = {.heads = d->heads[i],
                             .kv_heads = d->kv_heads[i],
                             .dk = d->dk,
                             .dv = d->dv,
                             .window = window,
                             .scale = scale,
                             .softcap = softcap};
    hth_tensor_id kv = hth_build_kv(r->b, "kv", (hth_kv_shape){d->kv_heads[i], d->dk, d->dv});
    hth_emit_kv_append(r->b, "kv_append", h.k, h.v, kv);
    return hth_emit_attention(r->b, "attention", h.q, kv, sinks, &imm);
}

hth_tensor_id hth_decoder_attention(hth_reading *r, const hth_decoder *d, int i, hth_qkv h, int64_t window, float scale,
                                    float softcap) {
    return append_and_attend(r, d, i, h, window, scale, softcap, HTH_NONE);
}

hth_tensor_id hth_decoder_sink_attention(hth_reading *r, const hth_decoder *d, int i, hth_qkv h, int64_t window,
                                         float scale) {
    hth_tensor_id sinks = hth_bind_vector(r, "attn_sinks.weight", d->heads[i]);
    return append_and_attend(r, d, i, h, window, scale, 0, sinks);
}

void hth_decoder_select(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id *x, hth_tensor_id *o) {
    if (i < d->layers - 1) return;
    *o = hth_emit_select(r->b, "attention_select", *o);
    *x = hth_emit_select(r->b, "residual_select", *x);
}

hth_tensor_id hth_decoder_glu_ffn(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x, hth_act_kind act,
                                  hth_bias bias) {
    hth_tensor_id gate = hth_decoder_linear(r, "ffn_gate", x, d->ff[i], bias);
    hth_tensor_id up = hth_decoder_linear(r, "ffn_up", x, d->ff[i], bias);
    hth_tensor_id hidden = hth_emit_glu(r->b, "ffn_glu", gate, up, act);
    return hth_decoder_linear(r, "ffn_down", hidden, d->embd, bias);
}

hth_tensor_id hth_decoder_token_embd(hth_reading *r, const hth_decoder *d) {
    return hth_bind_matrix(r, "token_embd.weight", d->embd, d->vocab);
}

hth_tensor_id hth_decoder_logits(hth_reading *r, const hth_decoder *d, hth_tensor_id x, hth_tensor_id token_embd,
                                 float softcap) {
    hth_tensor_id w =
        hth_bind_has(r, "output.weight") ? hth_bind_matrix(r, "output.weight", d->embd, d->vocab) : token_embd;
    hth_tensor_id logits = hth_emit_linear(r->b, "output", x, w, HTH_NONE);
    return softcap > 0 ? hth_emit_softcap(r->b, "output_softcap", logits, softcap) : logits;
}
