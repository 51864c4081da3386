/* The recipes that registry.c lists. */
#ifndef HTH_MODELS_RECIPES_H
#define HTH_MODELS_RECIPES_H

#include "models/models.h"

hearth_status hth_recipe_llama(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen2(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen3(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen2moe(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen3moe(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen35(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen35moe(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_qwen3next(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_olmoe(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_gptoss(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_gemma2(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_gemma3(const hth_gguf *g, hth_program **out, hearth_error *err);
hearth_status hth_recipe_gpt2(const hth_gguf *g, hth_program **out, hearth_error *err);

#endif
