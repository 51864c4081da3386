/* Hostile and unsupported hyper-parameters: each is refused by a text that names the key, and what is harmless is not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/models.h"
#include "support/tiny_program.h"

static void good_models(void **state) {
    (void)state;
    for (int i = 0; tiny_architectures[i]; i++) {
        tiny_model m;
        tiny_make(&m, tiny_architectures[i]);
        tiny_expect(&m, HEARTH_OK, NULL);
    }
}

/* ---- Keys every recipe reads ------------------------------------------------------------------------------------- */

/* A key that is for dense models alone, or that these read otherwise (models_experts.c,
 * models_hybrid.c). */
static bool is_read_otherwise(const char *architecture, const char *suffix) {
    if (strcmp(architecture, "llama") == 0) return strcmp(suffix, "expert_count") == 0;
    if (tiny_is_hybrid(architecture) &&
        (strcmp(suffix, "nextn_predict_layers") == 0 || strcmp(suffix, "full_attention_interval") == 0 ||
         strcmp(suffix, "ssm.conv_kernel") == 0))
        return true;
    if (!tiny_is_mixture(architecture)) return false;
    return strcmp(suffix, "feed_forward_length") == 0 || strcmp(suffix, "expert_count") == 0 ||
           strcmp(suffix, "expert_used_count") == 0 || strcmp(suffix, "nextn_predict_layers") == 0;
}

/* Each architecture with one key changed, removed, or of another type. */
static void dimensions(void **state) {
    (void)state;
    static const struct {
        const char *suffix;
        int64_t value; /* -1: the key is missing; -2: a string */
        const char *text;
    } cases[] = {
        {"block_count", -1, "key \"%s.block_count\" is missing"},
        {"block_count", 0, "key \"%s.block_count\" is 0, must be 1 to 1024"},
        {"block_count", 1025, "key \"%s.block_count\" is 1025, must be 1 to 1024"},
        {"block_count", UINT32_MAX, "key \"%s.block_count\" is 4294967295, must be 1 to 1024"},
        {"block_count", -2, "key \"%s.block_count\" holds string where an integer is wanted"},
        {"embedding_length", -1, "key \"%s.embedding_length\" is missing"},
        {"embedding_length", 0, "key \"%s.embedding_length\" is 0, must be 1 to 1048576"},
        {"embedding_length", 1048577, "key \"%s.embedding_length\" is 1048577, must be 1 to 1048576"},
        {"context_length", -1, "key \"%s.context_length\" is missing"},
        {"context_length", 0, "key \"%s.context_length\" is 0, must be 1 to"},
        {"feed_forward_length", -1, "key \"%s.feed_forward_length\" is missing"},
        {"feed_forward_length", 0, "key \"%s.feed_forward_length\" is 0, must be 1 to 1048576"},
        {"feed_forward_length", 1048577, "key \"%s.feed_forward_length\" is 1048577, must be"},
        {"feed_forward_length", -2, "key \"%s.feed_forward_length\" holds string where an integer is wanted"},
        {"attention.head_count", -1, "key \"%s.attention.head_count\" is missing"},
        {"attention.head_count", 0, "key \"%s.attention.head_count\" is 0, must be 1 to 4096"},
        {"attention.head_count", 4097, "key \"%s.attention.head_count\" is 4097, must be 1 to 4096"},
        {"attention.head_count_kv", 0, "key \"%s.attention.head_count_kv\" is 0, must be 1 to 4096"},
        {"attention.head_count_kv", 3, "key \"%s.attention.head_count_kv\": layer 0 has 4 heads, which 3 KV heads"},
        {"attention.head_count_kv", 8, "key \"%s.attention.head_count_kv\": layer 0 has 4 heads, which 8 KV heads"},
        {"attention.key_length", 0, "key \"%s.attention.key_length\" is 0, must be 1 to 1024"},
        {"attention.key_length", 1025, "key \"%s.attention.key_length\" is 1025, must be 1 to 1024"},
        {"attention.value_length", 1025, "key \"%s.attention.value_length\" is 1025, must be 1 to 1024"},
        {"expert_count", 8, "key \"%s.expert_count\" is 8: a mixture of experts is not supported"},
        {"nextn_predict_layers", 1, "key \"%s.nextn_predict_layers\" is 1: a layer that predicts"},
    };
    for (int a = 0; tiny_architectures[a]; a++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tiny_model m;
            char text[160];
            if (is_read_otherwise(tiny_architectures[a], cases[i].suffix)) continue;
            tiny_make(&m, tiny_architectures[a]);
            if (cases[i].value == -1) tiny_remove_key(&m, cases[i].suffix);
            else if (cases[i].value == -2) tiny_set_text(&m, cases[i].suffix, "many");
            else tiny_set_u32(&m, cases[i].suffix, (uint32_t)cases[i].value);
            const char *verb = strstr(cases[i].text, "%s");
            snprintf(text, sizeof text, "%.*s%s%s", (int)(verb - cases[i].text), cases[i].text, tiny_architectures[a],
                     verb + 2);
            tiny_expect(
                &m, strstr(text, "not supported") || strstr(text, "predicts") ? HEARTH_UNSUPPORTED : HEARTH_BAD_FILE,
                text);
        }
}

static void integers_of_every_type(void **state) {
    (void)state;
    static const uint32_t types[] = {HTH_GGUF_U8,  HTH_GGUF_I8,  HTH_GGUF_U16, HTH_GGUF_I16,
                                     HTH_GGUF_U32, HTH_GGUF_I32, HTH_GGUF_U64, HTH_GGUF_I64};
    tiny_model m;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tiny_make(&m, "llama");
        tiny_set_int(&m, "block_count", types[i], 2);
        tiny_expect(&m, HEARTH_OK, NULL);
    }
    tiny_set_int(&m, "block_count", HTH_GGUF_I32, (uint64_t)-2);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.block_count\" is -2, must be 1 to 1024");
    tiny_set_int(&m, "block_count", HTH_GGUF_U64, UINT64_MAX);
    tiny_expect(&m, HEARTH_BAD_FILE, "llama.block_count");
    tiny_set_f32(&m, "block_count", 2);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.block_count\" holds f32 where an integer is wanted");
    tiny_set_int(&m, "block_count", HTH_GGUF_BOOL, 1);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.block_count\" holds bool where an integer is wanted");
}

static void epsilon(void **state) {
    (void)state;
    static const float bad[] = {-1e-6f, 2, (float)INFINITY, -(float)INFINITY, (float)NAN};
    for (int a = 0; tiny_architectures[a]; a++) {
        const char *suffix = strcmp(tiny_architectures[a], "gpt2") == 0 ? "attention.layer_norm_epsilon"
                                                                        : "attention.layer_norm_rms_epsilon";
        tiny_model m;
        tiny_make(&m, tiny_architectures[a]);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            tiny_set_f32(&m, suffix, bad[i]);
            tiny_expect(&m, HEARTH_BAD_FILE, suffix);
        }
        tiny_set_text(&m, suffix, "small");
        tiny_expect(&m, HEARTH_BAD_FILE, suffix);
        tiny_remove_key(&m, suffix);
        tiny_expect(&m, HEARTH_BAD_FILE, suffix);
    }
}

static void one_for_each_layer(void **state) {
    (void)state;
    static const uint32_t two[] = {96, 96}, three[] = {96, 96, 96}, zero[] = {96, 0};
    tiny_model m;
    tiny_make(&m, "llama");
    tiny_set_array(&m, "feed_forward_length", HTH_GGUF_U32, 2, two);
    tiny_expect(&m, HEARTH_OK, NULL);
    tiny_set_array(&m, "feed_forward_length", HTH_GGUF_U32, 3, three);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.feed_forward_length\" has 3 elements for 2 layers");
    tiny_set_array(&m, "feed_forward_length", HTH_GGUF_U32, 0, two);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.feed_forward_length\" has 0 elements for 2 layers");
    tiny_set_array(&m, "feed_forward_length", HTH_GGUF_U32, 2, zero);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.feed_forward_length\" is 0, must be 1 to");
    tiny_set_array(&m, "feed_forward_length", HTH_GGUF_F32, 2, two);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.feed_forward_length\" holds an array of f32");
    tiny_make(&m, "llama");
    tiny_set_array(&m, "block_count", HTH_GGUF_U32, 2, two);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.block_count\" holds array where an integer is wanted");
}

static void heads_that_do_not_share(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "llama");
    tiny_set_u32(&m, "embedding_length", 66);
    tiny_expect(&m, HEARTH_BAD_FILE, "an embedding of 66 cannot be shared out among 4 heads");
    tiny_make(&m, "llama");
    tiny_set_u32(&m, "attention.head_count", 128);
    tiny_expect(&m, HEARTH_BAD_FILE, "an embedding of 64 cannot be shared out among 128 heads");
    tiny_make(&m, "llama");
    tiny_set_u32(&m, "embedding_length", 1048576);
    tiny_expect(&m, HEARTH_BAD_FILE, "an embedding of 1048576 cannot be shared out among 4 heads of 1 to 1024");
}

/* ---- Windows and caps -------------------------------------------------------------------------------------------- */

static void window_patterns(void **state) {
    (void)state;
    static const uint32_t listed[] = {1, 0, 1, 1, 1, 0}, twos[] = {2, 0, 1, 1, 1, 0};
    tiny_model m;
    tiny_make(&m, "gemma3");
    tiny_set_array(&m, "attention.sliding_window_pattern", HTH_GGUF_BOOL, 6, listed);
    tiny_expect(&m, HEARTH_OK, NULL);
    tiny_set_array(&m, "attention.sliding_window_pattern", HTH_GGUF_I32, 6, listed);
    tiny_expect(&m, HEARTH_OK, NULL);
    tiny_set_array(&m, "attention.sliding_window_pattern", HTH_GGUF_I32, 6, twos);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma3.attention.sliding_window_pattern\" is 2, must be 0 to 1");
    tiny_set_array(&m, "attention.sliding_window_pattern", HTH_GGUF_BOOL, 5, listed);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma3.attention.sliding_window_pattern\" has 5 elements for 6 layers");
    tiny_set_u32(&m, "attention.sliding_window_pattern", 2000);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma3.attention.sliding_window_pattern\" is 2000");
    tiny_set_text(&m, "attention.sliding_window_pattern", "often");
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma3.attention.sliding_window_pattern\" holds string");
    tiny_make(&m, "llama");
    tiny_set_int(&m, "attention.sliding_window", HTH_GGUF_I64, (uint64_t)-5);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.attention.sliding_window\" is -5");
}

static void soft_caps(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "gemma2");
    tiny_set_f32(&m, "attn_logit_softcapping", -50);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma2.attn_logit_softcapping\" is -50");
    tiny_set_f32(&m, "attn_logit_softcapping", (float)NAN);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma2.attn_logit_softcapping\" is");
    tiny_make(&m, "gemma3");
    tiny_set_f32(&m, "final_logit_softcapping", (float)INFINITY);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gemma3.final_logit_softcapping\" is inf");
}

/* ---- Rope -------------------------------------------------------------------------------------------------------- */

static void rope_keys(void **state) {
    (void)state;
    static const char *const turning[] = {"llama", "qwen2", "qwen3", "gemma2", "gemma3"};
    for (int a = 0; a < 5; a++) {
        tiny_model m;
        tiny_make(&m, turning[a]);
        tiny_set_u32(&m, "rope.dimension_count", 7);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.dimension_count\" is 7, must be even and at most the head's 16");
        tiny_set_u32(&m, "rope.dimension_count", 18);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.dimension_count\" is 18, must be even and at most the head's 16");
        tiny_set_u32(&m, "rope.dimension_count", 0);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.dimension_count\" is 0, must be 2 to 1024");
        tiny_remove_key(&m, "rope.dimension_count");
        tiny_set_f32(&m, "rope.freq_base", 0);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.freq_base\" is 0");
        tiny_set_f32(&m, "rope.freq_base", (float)NAN);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.freq_base\" is");
        tiny_remove_key(&m, "rope.freq_base");
        if (strcmp(turning[a], "gemma3") == 0) tiny_expect(&m, HEARTH_BAD_FILE, "rope.freq_base\" is missing");
        tiny_set_f32(&m, "rope.freq_base", 10000);
        tiny_set_f32(&m, "rope.scaling.factor", -1);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.scaling.factor\" is -1");
        tiny_set_f32(&m, "rope.scaling.factor", 4);
        static const char *const kinds[] = {"longrope", "dynamic", "llama3", "su", ""};
        for (int k = 0; k < 5; k++) {
            tiny_set_text(&m, "rope.scaling.type", kinds[k]);
            tiny_expect(&m, HEARTH_UNSUPPORTED, "rope.scaling.type\" is \"");
        }
        tiny_set_u32(&m, "rope.scaling.type", 1);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.scaling.type\" holds u32");
        tiny_set_text(&m, "rope.scaling.type", "yarn");
        tiny_set_u32(&m, "rope.scaling.original_context_length", 0);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.scaling.original_context_length\" is 0");
        tiny_set_u32(&m, "rope.scaling.original_context_length", 64);
        tiny_set_f32(&m, "rope.scaling.yarn_beta_fast", 0);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.scaling.yarn_beta_fast\" is 0");
        tiny_remove_key(&m, "rope.scaling.yarn_beta_fast");
        tiny_set_f32(&m, "rope.freq_base", 1);
        tiny_expect(&m, HEARTH_BAD_FILE, "rope.freq_base\" is 1, which yarn scaling cannot use");
    }
}

static void llama_turns_whole_heads(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "llama");
    tiny_set_u32(&m, "rope.dimension_count", 8);
    tiny_expect(&m, HEARTH_UNSUPPORTED,
                "key \"llama.rope.dimension_count\" is 8, and only whole heads of 16 are supported");
    tiny_make(&m, "qwen3");
    tiny_set_u32(&m, "rope.dimension_count", 8);
    tiny_expect(&m, HEARTH_OK, NULL);
}

/* ---- Keys nobody asked for --------------------------------------------------------------------------------------- */

static void features_in_use(void **state) {
    (void)state;
    static const char *const numbers[] = {"attention.max_alibi_bias",
                                          "attention.clamp_kqv",
                                          "attention.scale",
                                          "attention.output_scale",
                                          "attention.temperature_scale",
                                          "logit_scale",
                                          "residual_scale",
                                          "embedding_scale",
                                          "rope.scaling.yarn_log_multiplier",
                                          "rope.scaling.yarn_ext_factor",
                                          "attention.a_later_invention"};
    static const char *const counts[] = {"attention.q_lora_rank",
                                         "attention.kv_lora_rank",
                                         "attention.key_length_mla",
                                         "attention.indexer.head_count",
                                         "attention.shared_kv_layers",
                                         "expert_used_count",
                                         "ssm.conv_kernel",
                                         "full_attention_interval",
                                         "pooling_type",
                                         "use_parallel_residual",
                                         "embedding_length_per_layer_input",
                                         "leading_dense_block_count"};
    for (int a = 0; tiny_architectures[a]; a++) {
        tiny_model m;
        char text[128];
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            tiny_make(&m, tiny_architectures[a]);
            tiny_set_f32(&m, numbers[i], 0.5f);
            snprintf(text, sizeof text, "key \"%s.%s\" is not known for architecture %s", tiny_architectures[a],
                     numbers[i], tiny_architectures[a]);
            tiny_expect(&m, HEARTH_UNSUPPORTED, text);
        }
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            if (is_read_otherwise(tiny_architectures[a], counts[i])) continue;
            tiny_make(&m, tiny_architectures[a]);
            tiny_set_u32(&m, counts[i], 4);
            snprintf(text, sizeof text, "key \"%s.%s\" is not known", tiny_architectures[a], counts[i]);
            tiny_expect(&m, HEARTH_UNSUPPORTED, text);
        }
        tiny_make(&m, tiny_architectures[a]);
        tiny_set_text(&m, "hidden_activation", "relu");
        tiny_expect(&m, HEARTH_UNSUPPORTED, "hidden_activation\" is not known");
        tiny_make(&m, tiny_architectures[a]);
        tiny_set_int(&m, "attention.causal", HTH_GGUF_BOOL, 0);
        tiny_expect(&m, HEARTH_UNSUPPORTED, "attention.causal\" is not known");
        static const uint32_t sections[] = {0, 4, 0, 0};
        if (tiny_is_hybrid(tiny_architectures[a])) continue;
        tiny_make(&m, tiny_architectures[a]);
        tiny_set_array(&m, "rope.dimension_sections", HTH_GGUF_I32, 4, sections);
        tiny_expect(&m, HEARTH_UNSUPPORTED, "rope.dimension_sections\" is not known");
    }
}

static void features_turned_off(void **state) {
    (void)state;
    static const uint32_t zeros[] = {0, 0, 0, 0};
    for (int a = 0; tiny_architectures[a]; a++) {
        tiny_model m;
        tiny_make(&m, tiny_architectures[a]);
        if (!tiny_is_mixture(tiny_architectures[a])) {
            tiny_set_u32(&m, "expert_count", 0);
            tiny_set_u32(&m, "expert_used_count", 0);
        }
        tiny_set_u32(&m, "pooling_type", 0);
        tiny_set_f32(&m, "attention.max_alibi_bias", 0);
        tiny_set_f32(&m, "logit_scale", -0.0f);
        tiny_set_int(&m, "attention.causal", HTH_GGUF_BOOL, 1);
        tiny_set_int(&m, "use_parallel_residual", HTH_GGUF_BOOL, 0);
        tiny_set_f32(&m, "rope.scaling.yarn_attn_factor", 1);
        tiny_set_array(&m, "rope.dimension_sections", HTH_GGUF_I32, 4, zeros);
        tiny_set_u32(&m, "vocab_size", 500);
        tiny_set_text(&m, "tensor_data_layout", "Meta AI original pth");
        tiny_set_int(&m, "rope.scaling.finetuned", HTH_GGUF_BOOL, 1);
        tiny_set_u32(&m, "vision.block_count", 27);
        tiny_set_u32(&m, "mm.tokens_per_image", 256);
        tiny_set_global_text(&m, "other.block_count", "not ours");
        tiny_expect(&m, HEARTH_OK, NULL);
    }
}

/* ---- Files of another kind --------------------------------------------------------------------------------------- */

static void files_of_another_kind(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "llama");
    tiny_set_global_text(&m, "general.type", "model");
    tiny_expect(&m, HEARTH_OK, NULL);
    static const char *const kinds[] = {"adapter", "mmproj", "imatrix", "", "Model"};
    for (int i = 0; i < 5; i++) {
        tiny_set_global_text(&m, "general.type", kinds[i]);
        tiny_expect(&m, HEARTH_UNSUPPORTED, "key \"general.type\" is \"");
    }
    tiny_make(&m, "llama");
    snprintf(m.architecture, sizeof m.architecture, "lama");
    tiny_expect(&m, HEARTH_UNSUPPORTED, "architecture \"lama\" is not supported; supported are llama qwen2 ");
    snprintf(m.architecture, sizeof m.architecture, "%s", "llama\n\x1b[2J");
    tiny_expect(&m, HEARTH_UNSUPPORTED, "architecture \"llama??[2J\" is not supported");
    m.architecture[0] = 0;
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"general.architecture\" is missing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_models),
        cmocka_unit_test(dimensions),
        cmocka_unit_test(integers_of_every_type),
        cmocka_unit_test(epsilon),
        cmocka_unit_test(one_for_each_layer),
        cmocka_unit_test(heads_that_do_not_share),
        cmocka_unit_test(window_patterns),
        cmocka_unit_test(soft_caps),
        cmocka_unit_test(rope_keys),
        cmocka_unit_test(llama_turns_whole_heads),
        cmocka_unit_test(features_in_use),
        cmocka_unit_test(features_turned_off),
        cmocka_unit_test(files_of_another_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
