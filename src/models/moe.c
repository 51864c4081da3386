#include "models/moe.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Hyper-parameters -------------------------------------------------------------------------------------------- */

bool hth_moe_wanted(const hth_reading *r) {
    char key[HTH_KEY_TEXT];
    int64_t count;
    snprintf(key, sizeof key, "%s.expert_count", r->architecture);
    const hth_gguf_kv *kv = hth_gguf_find(r->g, key);
    /* A value that is no integer is wanted too, so that reading it names it. */
    return kv && (kv->count != 1 || hth_gguf_int_at(kv, 0, &count, NULL) != HEARTH_OK || count != 0);
}

void hth_moe_read(hth_reading *r, const hth_decoder *d, hth_moe *m) {
    m->experts = hth_param_int(r, "expert_count", 1, HTH_MAX_EXPERTS);
    hth_param_per_layer(r, "expert_used_count", d->layers, 1, m->experts, m->used);
    m->ff = hth_param_int_or(r, "expert_feed_forward_length", 0, HTH_MAX_EMBD, 0);
    m->dense_ff = hth_param_int_or(r, "feed_forward_length", 0, HTH_MAX_EMBD, 0);
    m->shared_ff = 0;
}

void hth_moe_default_ff(hth_reading *r, hth_moe *m, int64_t width) {
    if (m->ff == 0) m->ff = width;
    if (m->ff == 0) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s.expert_feed_forward_length\" is missing", r->architecture);
        m->ff = 1;
    }
}

void hth_moe_read_shared(hth_reading *r, hth_moe *m, int64_t absent) {
    m->shared_ff = hth_param_int_or(r, "expert_shared_feed_forward_length", 0, HTH_MAX_EMBD, 0);
    if (m->shared_ff == 0) m->shared_ff = absent;
    if (m->shared_ff == 0) {
        hth_builder_fail(r->b, HEARTH_BAD_FILE, "key \"%s.expert_shared_feed_forward_length\" is missing",
                         r->architecture);
        m->shared_ff = 1;
    }
}

/* ---- The forward pass -------------------------------------------------------------------------------------------- */

/* Files that hold each expert as a tensor of its own would need one op an expert. */
static void refuse_separate_experts(hth_reading *r) {
    static const char *const names[] = {"ffn_gate.0.weight", "ffn_up.0.weight", "ffn_down.0.weight"};
    for (int i = 0; i < 3; i++)
        if (hth_bind_has(r, names[i])) {
            hth_builder_fail(r->b, HEARTH_UNSUPPORTED,
                             "tensor %s%s is one expert: only files that hold the experts of a layer in one tensor "
                             "are supported",
                             hth_builder_scope(r->b), names[i]);
            return;
        }
}

static hth_tensor_id bias_of(hth_reading *r, const hth_moe *m, const char *name, int64_t width) {
    bool wanted = m->bias == HTH_BIAS_REQUIRED || (m->bias == HTH_BIAS_OPTIONAL && hth_bind_has(r, name));
    return wanted ? hth_bind_table(r, name, width, m->experts) : HTH_NONE;
}

static hth_expert_weights bind_experts(hth_reading *r, const hth_decoder *d, const hth_moe *m) {
    hth_expert_weights w;
    refuse_separate_experts(r);
    if (hth_bind_has(r, "ffn_gate_up_exps.weight")) {
        w.gate = hth_bind_slabs_part(r, "ffn_gate_up_exps.weight", d->embd, 2 * m->ff, m->experts, 0, m->ff);
        w.up = hth_bind_slabs_part(r, "ffn_gate_up_exps.weight", d->embd, 2 * m->ff, m->experts, m->ff, m->ff);
    } else {
        w.gate = hth_bind_slabs(r, "ffn_gate_exps.weight", d->embd, m->ff, m->experts);
        w.up = hth_bind_slabs(r, "ffn_up_exps.weight", d->embd, m->ff, m->experts);
    }
    w.down = hth_bind_slabs(r, "ffn_down_exps.weight", m->ff, d->embd, m->experts);
    w.gate_bias = bias_of(r, m, "ffn_gate_exps.bias", m->ff);
    w.up_bias = bias_of(r, m, "ffn_up_exps.bias", m->ff);
    w.down_bias = bias_of(r, m, "ffn_down_exps.bias", d->embd);
    return w;
}

/* What the shared expert reads of x goes beside the router's logits: linears of one input are one step. */
typedef struct shared_inputs {
    hth_tensor_id gate, up, weight;
} shared_inputs;

static shared_inputs emit_shared_inputs(hth_reading *r, const hth_moe *m, hth_tensor_id x) {
    shared_inputs s;
    s.gate = hth_decoder_linear(r, "ffn_gate_shexp", x, m->shared_ff, HTH_BIAS_NONE);
    s.up = hth_decoder_linear(r, "ffn_up_shexp", x, m->shared_ff, HTH_BIAS_NONE);
    s.weight = hth_decoder_linear(r, "ffn_gate_inp_shexp", x, 1, HTH_BIAS_NONE);
    return s;
}

static hth_tensor_id emit_shared(hth_reading *r, const hth_decoder *d, const hth_moe *m, shared_inputs s) {
    hth_tensor_id hidden = hth_emit_glu(r->b, "ffn_glu_shexp", s.gate, s.up, m->act);
    hth_tensor_id y = hth_decoder_linear(r, "ffn_down_shexp", hidden, d->embd, HTH_BIAS_NONE);
    return hth_emit_gate(r->b, "ffn_shexp", y, s.weight);
}

hth_tensor_id hth_moe_ffn(hth_reading *r, const hth_decoder *d, const hth_moe *m, int i, hth_tensor_id x) {
    shared_inputs s = {HTH_NONE, HTH_NONE, HTH_NONE};
    hth_tensor_id logits = hth_decoder_linear(r, "ffn_gate_inp", x, m->experts, m->bias);
    if (m->shared_ff > 0) s = emit_shared_inputs(r, m, x);
    hth_tensor_id routing = hth_emit_router(r->b, "ffn_router", logits, m->used[i], m->router);
    hth_expert_weights w = bind_experts(r, d, m);
    hth_tensor_id y = hth_emit_experts(r->b, "ffn_experts", x, routing, &w, m->used[i], m->act);
    return m->shared_ff > 0 ? hth_emit_add(r->b, "ffn_moe", y, emit_shared(r, d, m, s)) : y;
}
