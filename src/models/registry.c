#include <string.h>

#include "models/recipes.h"

/* architecture, recipe */
#define RECIPES(X)                                                                                                     \
    X("llama", hth_recipe_llama)                                                                                       \
    X("qwen2", hth_recipe_qwen2)                                                                                       \
    X("qwen3", hth_recipe_qwen3)                                                                                       \
    X("qwen2moe", hth_recipe_qwen2moe)                                                                                 \
    X("qwen3moe", hth_recipe_qwen3moe)                                                                                 \
    X("qwen35", hth_recipe_qwen35)                                                                                     \
    X("qwen35moe", hth_recipe_qwen35moe)                                                                               \
    X("qwen3next", hth_recipe_qwen3next)                                                                               \
    X("olmoe", hth_recipe_olmoe)                                                                                       \
    X("gpt-oss", hth_recipe_gptoss)                                                                                    \
    X("gemma2", hth_recipe_gemma2)                                                                                     \
    X("gemma3", hth_recipe_gemma3)                                                                                     \
    X("gpt2", hth_recipe_gpt2)

static const hth_recipe recipes[] = {
#define X(architecture, emit) {architecture, emit},
    RECIPES(X)
#undef X
};

const char *hth_recipe_names(void) {
    static const char names[] = ""
#define X(architecture, emit) " " architecture
        RECIPES(X)
#undef X
        ;
    return names + 1;
}

/* Shown of a string from a file, for "%.*s". */
#define SHOWN(s) (s).size < 60 ? (int)(s).size : 60, (s).data

hearth_status hth_recipe_find(const hth_gguf *g, const hth_recipe **out, hearth_error *err) {
    *out = NULL;
    hth_string type = {"model", 5}, architecture;
    hearth_status status = hth_gguf_get_string(g, "general.type", &type, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) return status;
    if (!hth_string_equals(type, "model"))
        return hth_fail(err, HEARTH_UNSUPPORTED,
                        "key \"general.type\" is \"%.*s\": only files of type model can be run", SHOWN(type));
    status = hth_gguf_get_string(g, "general.architecture", &architecture, err);
    if (status == HEARTH_NOT_FOUND) return hth_fail(err, HEARTH_BAD_FILE, "key \"general.architecture\" is missing");
    HTH_TRY(status);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (hth_string_equals(architecture, recipes[i].architecture)) {
            *out = &recipes[i];
            return HEARTH_OK;
        }
    return hth_fail(err, HEARTH_UNSUPPORTED, "architecture \"%.*s\" is not supported; supported are %s",
                    SHOWN(architecture), hth_recipe_names());
}
