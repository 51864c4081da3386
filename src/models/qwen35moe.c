/* qwen35moe: the models of Qwen 3.5 and 3.6 that are mixtures of experts. */
#include "models/hybrid.h"
#include "models/recipes.h"

static hth_tensor_id forward(hth_reading *r) {
    return hth_hybrid_forward(r, HTH_HEADS_TILED, true);
}

hearth_status hth_recipe_qwen35moe(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "qwen35moe", forward, out, err);
}
