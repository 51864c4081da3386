/* The mixture of experts that stands in a block where a dense model has its feed-forward network: its hyper-parameters,
 * and its forward pass under the field's tensor names.
 *
 * A recipe fills in what no key says (router, act, bias), reads the rest, and calls hth_moe_ffn in each block.
 */
#ifndef HTH_MODELS_MOE_H
#define HTH_MODELS_MOE_H

#include "models/decoder.h"

#define HTH_MAX_EXPERTS 4096 /* of a layer */

typedef struct hth_moe {
    hth_router_kind router;
    hth_act_kind act;
    hth_bias bias; /* of the router and of the experts */
    int64_t experts;
    int64_t used[HTH_MAX_LAYERS]; /* experts that a row of a layer goes to */
    int64_t ff, shared_ff;        /* width of an expert, and of the shared one (0: there is none) */
    int64_t dense_ff;             /* feed_forward_length; 0 when the file does not say */
} hth_moe;

/* Whether the file's key expert_count says that it has experts. */
bool hth_moe_wanted(const hth_reading *r);

/* Read expert_count, expert_used_count (one for each layer, or one for all) and expert_feed_forward_length. */
void hth_moe_read(hth_reading *r, const hth_decoder *d, hth_moe *m);
/* Where the file does not say how wide an expert is, it is `width`. 0: the file must say. */
void hth_moe_default_ff(hth_reading *r, hth_moe *m, int64_t width);
/* There is a shared expert: read expert_shared_feed_forward_length; absent, it is `absent`. */
void hth_moe_read_shared(hth_reading *r, hth_moe *m, int64_t absent);

/* The experts' sum of layer i, and where there is a shared expert, sigmoid(ffn_gate_inp_shexp x) times its output
 * added. The experts are ffn_gate_exps, ffn_up_exps and ffn_down_exps; gate and up may be one ffn_gate_up_exps, gate's
 * rows first. */
hth_tensor_id hth_moe_ffn(hth_reading *r, const hth_decoder *d, const hth_moe *m, int i, hth_tensor_id x);

#endif
