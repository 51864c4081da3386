/* qwen35: the dense models of Qwen 3.5 and 3.6. */
#include "models/hybrid.h"
#include "models/recipes.h"

static hth_tensor_id forward(hth_reading *r) {
    return hth_hybrid_forward(r, HTH_HEADS_TILED, false);
}

hearth_status hth_recipe_qwen35(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "qwen35", forward, out, err);
}
