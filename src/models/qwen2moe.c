/* qwen2moe: qwen2 with a mixture of experts and a gated shared expert for its feed-forward network. */
#include "models/qwen.h"
#include "models/recipes.h"

static hth_tensor_id forward(hth_reading *r) {
    hth_decoder d;
    hth_moe m = {.router = HTH_ROUTER_SOFTMAX};
    hth_decoder_read_trunk(r, "attention.layer_norm_rms_epsilon", &d);
    hth_moe_read(r, &d, &m);
    hth_moe_default_ff(r, &m, m.dense_ff / m.used[0]);
    hth_moe_read_shared(r, &m, m.dense_ff);
    return hth_qwen2_model(r, &d, &m);
}

hearth_status hth_recipe_qwen2moe(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "qwen2moe", forward, out, err);
}
