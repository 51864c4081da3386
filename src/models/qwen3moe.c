/* qwen3moe: qwen3 with a mixture of experts for its feed-forward network. */
#include "models/qwen.h"
#include "models/recipes.h"

static hth_tensor_id forward(hth_reading *r) {
    hth_decoder d;
    /* No key says whether the weights are normalised; all published models do it. */
    hth_moe m = {.router = HTH_ROUTER_NORMALIZED};
    hth_decoder_read_trunk(r, "attention.layer_norm_rms_epsilon", &d);
    hth_moe_read(r, &d, &m);
    hth_moe_default_ff(r, &m, m.dense_ff / m.used[0]);
    return hth_qwen3_model(r, &d, &m);
}

hearth_status hth_recipe_qwen3moe(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "qwen3moe", forward, out, err);
}
