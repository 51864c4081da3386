/* What decoder-only transformers share: their hyper-parameters, and pieces of a forward pass under the field's tensor
 * names.
 *
 * A piece binds its weights in the builder's scope and emits its ops; a recipe puts pieces together, and so reads as
 * the model's forward pass. A piece that only one architecture has belongs in that architecture's recipe.
 */
#ifndef HTH_MODELS_DECODER_H
#define HTH_MODELS_DECODER_H

#include "models/bind.h"
#include "models/params.h"

typedef struct hth_decoder {
    int layers;
    int64_t embd, vocab, context;
    int64_t dk, dv; /* elements of a head's key (and query) and of its value */
    float eps;      /* of every norm */
    int64_t heads[HTH_MAX_LAYERS], kv_heads[HTH_MAX_LAYERS];
    int64_t ff[HTH_MAX_LAYERS]; /* width of the feed-forward network */
} hth_decoder;

/* Read them for a dense model; eps_suffix names the norm's epsilon. */
void hth_decoder_read(hth_reading *r, const char *eps_suffix, hth_decoder *d);
/* All but the feed-forward network's: ff stays unset. */
void hth_decoder_read_trunk(hth_reading *r, const char *eps_suffix, hth_decoder *d);

/* Whether a projection may have a bias. One that the file has and the recipe does not want is refused as unknown. */
typedef enum hth_bias { HTH_BIAS_NONE, HTH_BIAS_OPTIONAL, HTH_BIAS_REQUIRED } hth_bias;

/* NAME.weight [width of x, out] x (+ NAME.bias) */
hth_tensor_id hth_decoder_linear(hth_reading *r, const char *name, hth_tensor_id x, int64_t out, hth_bias bias);
/* rms_norm(x) * NAME.weight */
hth_tensor_id hth_decoder_rms_norm(hth_reading *r, const hth_decoder *d, const char *name, hth_tensor_id x);
/* The same over each head of x, dk elements. */
hth_tensor_id hth_decoder_head_norm(hth_reading *r, const hth_decoder *d, const char *name, hth_tensor_id x);

typedef struct hth_qkv {
    hth_tensor_id q, k, v;
} hth_qkv;

/* Queries, keys and values of layer i: attn_q, attn_k, attn_v, or one fused attn_qkv whose rows are q, k, v. */
hth_qkv hth_decoder_qkv(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x, hth_bias bias);
/* The same where only the fused tensor will do. */
hth_qkv hth_decoder_fused_qkv(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x, hth_bias bias);
/* Append keys and values of layer i, then attend; window 0: full causal, softcap 0: none. */
hth_tensor_id hth_decoder_attention(hth_reading *r, const hth_decoder *d, int i, hth_qkv h, int64_t window, float scale,
                                    float softcap);
/* The same with a sink to each query head, attn_sinks.weight, and no soft cap. */
hth_tensor_id hth_decoder_sink_attention(hth_reading *r, const hth_decoder *d, int i, hth_qkv h, int64_t window,
                                         float scale);
/* After the last layer's attention, go on with the rows whose logits are wanted: nothing reads the others any more.
 * Before that it does nothing. x is the residual stream, o what attention gave. */
void hth_decoder_select(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id *x, hth_tensor_id *o);
/* ffn_down (act(ffn_gate x) * ffn_up x) */
hth_tensor_id hth_decoder_glu_ffn(hth_reading *r, const hth_decoder *d, int i, hth_tensor_id x, hth_act_kind act,
                                  hth_bias bias);

/* token_embd, bound once: the table that embed reads and that tied logits are made with. */
hth_tensor_id hth_decoder_token_embd(hth_reading *r, const hth_decoder *d);
/* output.weight x, or the tied embedding when the file has none; softcap 0: none. */
hth_tensor_id hth_decoder_logits(hth_reading *r, const hth_decoder *d, hth_tensor_id x, hth_tensor_id token_embd,
                                 float softcap);

/* 1/sqrt(n), the usual scale of attention scores. */
float hth_decoder_scale(int64_t n);

#endif
