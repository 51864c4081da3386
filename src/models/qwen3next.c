/* qwen3next: Qwen3-Next. */
#include "models/hybrid.h"
#include "models/recipes.h"

static hth_tensor_id forward(hth_reading *r) {
    return hth_hybrid_forward(r, HTH_HEADS_GROUPED, true);
}

hearth_status hth_recipe_qwen3next(const hth_gguf *g, hth_program **out, hearth_error *err) {
    return hth_read_model(g, "qwen3next", forward, out, err);
}
