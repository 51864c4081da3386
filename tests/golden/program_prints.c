/* Holds the program and memory plan of a tiny model of each architecture against its golden print.
 *
 * usage: golden_programs FOLDER [--write]    --write makes the files anew: read the difference before committing it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"
#include "program/print.h"
#include "support/tiny_model.h"

/* ---- The models -------------------------------------------------------------------------------------------------- */

/* Llama 3.1 with everything optional: a fused projection with bias, biases, rope factors, an output matrix. */
static void llama_full(tiny_model *m) {
    static const char *const roles[] = {"attn_q", "attn_k", "attn_v"};
    char name[64];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, roles[j]);
            tiny_remove(m, name);
        }
        snprintf(name, sizeof name, "blk.%d.attn_qkv.weight", i);
        tiny_add(m, name, HTH_Q8_0, 64, 128);
        snprintf(name, sizeof name, "blk.%d.attn_qkv.bias", i);
        tiny_add(m, name, HTH_F32, 128, 0);
        snprintf(name, sizeof name, "blk.%d.attn_output.bias", i);
        tiny_add(m, name, HTH_F32, 64, 0);
        snprintf(name, sizeof name, "blk.%d.ffn_down.bias", i);
        tiny_add(m, name, HTH_F32, 64, 0);
    }
    tiny_add(m, "rope_freqs.weight", HTH_F32, 8, 0);
    tiny_add(m, "output.weight", HTH_Q4_0, 64, 80);
}

/* Mistral with a window, heads that are not the embedding's share, values narrower than keys, and YaRN. */
static void llama_yarn(tiny_model *m) {
    tiny_set_u32(m, "attention.sliding_window", 32);
    tiny_set_u32(m, "attention.key_length", 16);
    tiny_set_u32(m, "attention.value_length", 8);
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.attn_v.weight", i);
        tiny_find(m, name)->dims[1] = 16;
        snprintf(name, sizeof name, "blk.%d.attn_output.weight", i);
        tiny_find(m, name)->dims[0] = 32;
    }
    tiny_set_text(m, "rope.scaling.type", "yarn");
    tiny_set_f32(m, "rope.scaling.factor", 4);
    tiny_set_u32(m, "rope.scaling.original_context_length", 64);
}

/* A file whose layers differ: heads, KV heads and feed-forward widths are arrays. */
static void llama_per_layer(tiny_model *m) {
    static const uint32_t heads[] = {4, 2}, kv_heads[] = {2, 1}, ff[] = {96, 32};
    tiny_set_array(m, "attention.head_count", HTH_GGUF_U32, 2, heads);
    tiny_set_array(m, "attention.head_count_kv", HTH_GGUF_U32, 2, kv_heads);
    tiny_set_array(m, "feed_forward_length", HTH_GGUF_U32, 2, ff);
    tiny_find(m, "blk.1.attn_q.weight")->dims[1] = 32;
    tiny_find(m, "blk.1.attn_k.weight")->dims[1] = 16;
    tiny_find(m, "blk.1.attn_v.weight")->dims[1] = 16;
    tiny_find(m, "blk.1.attn_output.weight")->dims[0] = 32;
    tiny_find(m, "blk.1.ffn_gate.weight")->dims[1] = 32;
    tiny_find(m, "blk.1.ffn_up.weight")->dims[1] = 32;
    tiny_find(m, "blk.1.ffn_down.weight")->dims[0] = 32;
}

/* The window pattern as a list, linear scaling on the full layers, a soft cap on the logits. */
static void gemma3_listed(tiny_model *m) {
    static const uint32_t pattern[] = {1, 1, 0, 1, 0, 1};
    tiny_set_array(m, "attention.sliding_window_pattern", HTH_GGUF_BOOL, 6, pattern);
    tiny_set_text(m, "rope.scaling.type", "linear");
    tiny_set_f32(m, "rope.scaling.factor", 8);
    tiny_set_f32(m, "final_logit_softcapping", 20);
}

/* A llama with four experts, two for each row, of which the first layer takes one. */
static void mixtral(tiny_model *m) {
    static const char *const dense[] = {"ffn_gate", "ffn_up", "ffn_down"};
    static const uint32_t used[] = {1, 2};
    char name[64];
    tiny_set_u32(m, "expert_count", 4);
    tiny_set_array(m, "expert_used_count", HTH_GGUF_U32, 2, used);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, dense[j]);
            tiny_remove(m, name);
        }
        snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", i);
        tiny_add(m, name, HTH_F32, 64, 4);
        tiny_add_experts(m, i, 64, 96, 4);
    }
}

/* Gate and up of the experts in one tensor, of another dtype than down. */
static void qwen3moe_fused(tiny_model *m) {
    char name[64];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "blk.%d.ffn_gate_exps.weight", i);
        tiny_remove(m, name);
        snprintf(name, sizeof name, "blk.%d.ffn_up_exps.weight", i);
        tiny_remove(m, name);
        snprintf(name, sizeof name, "blk.%d.ffn_gate_up_exps.weight", i);
        tiny_add_slabs(m, name, HTH_Q8_0, 64, 64, 4);
    }
}

/* MXFP4 experts, YaRN, and sliding layers that turn slower. */
static void gptoss_mxfp4(tiny_model *m) {
    static const char *const roles[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, roles[j]);
            tiny_find(m, name)->dtype = HTH_MXFP4;
        }
    tiny_set_f32(m, "rope.freq_base", 150000);
    tiny_set_f32(m, "rope.freq_base_swa", 10000);
    tiny_set_text(m, "rope.scaling.type", "yarn");
    tiny_set_f32(m, "rope.scaling.factor", 4);
    tiny_set_u32(m, "rope.scaling.original_context_length", 64);
}

/* A layer that predicts further tokens, a layer pattern as a list, and a fused projection with the gates of queries. */
static void qwen35_mtp(tiny_model *m) {
    static const char *const roles[] = {"attn_q", "attn_k", "attn_v"};
    static const uint32_t recurrent[] = {1, 0, 0};
    char name[64];
    for (int j = 0; j < 3; j++) {
        snprintf(name, sizeof name, "blk.1.%s.weight", roles[j]);
        tiny_remove(m, name);
    }
    tiny_add(m, "blk.1.attn_qkv.weight", HTH_Q8_0, 64, 192);
    tiny_add(m, "blk.2.nextn.eh_proj.weight", HTH_F32, 128, 64);
    tiny_add(m, "blk.2.attn_norm.weight", HTH_F32, 64, 0);
    tiny_set_u32(m, "block_count", 3);
    tiny_set_u32(m, "nextn_predict_layers", 1);
    tiny_set_u32(m, "full_attention_interval", 4);
    tiny_set_array(m, "attention.recurrent_layers", HTH_GGUF_BOOL, 3, recurrent);
}

/* The last layer recurrent. */
static void qwen3next_listed(tiny_model *m) {
    static const uint32_t recurrent[] = {0, 1};
    tiny_set_array(m, "attention.recurrent_layers", HTH_GGUF_BOOL, 2, recurrent);
    for (int i = 0; i < m->n_tensors; i++) /* the blocks change places */
        if (strncmp(m->tensors[i].name, "blk.", 4) == 0)
            m->tensors[i].name[4] = m->tensors[i].name[4] == '0' ? '1' : '0';
}

static const struct {
    const char *file, *architecture;
    void (*change)(tiny_model *m);
} cases[] = {
    {"llama", "llama", NULL},
    {"llama-full", "llama", llama_full},
    {"llama-yarn", "llama", llama_yarn},
    {"llama-per-layer", "llama", llama_per_layer},
    {"qwen2", "qwen2", NULL},
    {"qwen3", "qwen3", NULL},
    {"gemma2", "gemma2", NULL},
    {"gemma3", "gemma3", NULL},
    {"gemma3-listed", "gemma3", gemma3_listed},
    {"gpt2", "gpt2", NULL},
    {"mixtral", "llama", mixtral},
    {"qwen2moe", "qwen2moe", NULL},
    {"qwen3moe", "qwen3moe", NULL},
    {"qwen3moe-fused", "qwen3moe", qwen3moe_fused},
    {"olmoe", "olmoe", NULL},
    {"gpt-oss", "gpt-oss", NULL},
    {"gpt-oss-mxfp4", "gpt-oss", gptoss_mxfp4},
    {"qwen35", "qwen35", NULL},
    {"qwen35-mtp", "qwen35", qwen35_mtp},
    {"qwen35moe", "qwen35moe", NULL},
    {"qwen3next", "qwen3next", NULL},
    {"qwen3next-listed", "qwen3next", qwen3next_listed},
};

/* ---- Prints ------------------------------------------------------------------------------------------------------ */

static char *slurp(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, 0, file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* The print of a model, or NULL with the reason on standard error. */
static char *print_model(const tiny_model *m, const char *name) {
    gguf_image im;
    hth_gguf *g = NULL;
    const hth_recipe *recipe;
    hth_program *program = NULL;
    hth_plan plan = {0};
    hearth_error err = {0};
    const hth_extents extents = {{1, 8, 2, 1, 1}};
    char *text = NULL;
    size_t size;
    tiny_image(m, &im);
    if (hth_gguf_open_memory(im.data, im.size, &g, &err) == HEARTH_OK &&
        hth_recipe_find(g, &recipe, &err) == HEARTH_OK && recipe->emit(g, &program, &err) == HEARTH_OK &&
        hth_plan_make(program, &extents, &plan, &err) == HEARTH_OK) {
        FILE *out = open_memstream(&text, &size);
        hth_program_print(program, &plan, NULL, NULL, out);
        fclose(out);
        if (!hth_plan_is_valid(program, &plan)) {
            fprintf(stderr, "%s: the plan is not valid\n", name);
            free(text);
            text = NULL;
        }
    } else fprintf(stderr, "%s: %s\n", name, err.text);
    hth_plan_free(&plan);
    hth_program_free(&program);
    hth_gguf_close(&g);
    gguf_image_free(&im);
    return text;
}

/* Where two texts part, on standard error. */
static void report(const char *path, const char *golden, const char *text) {
    int line = 1;
    while (*golden && *golden == *text) {
        line += *golden == '\n';
        golden++;
        text++;
    }
    fprintf(stderr, "%s: differs in line %d, from \"%.*s\" on, which is now \"%.*s\"\n", path, line,
            (int)strcspn(golden, "\n"), golden, (int)strcspn(text, "\n"), text);
}

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    bool wrote = fputs(text, file) >= 0;
    return fclose(file) == 0 && wrote;
}

static bool check_case(const char *folder, size_t i, bool write) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.program", folder, cases[i].file);
    tiny_model m;
    tiny_make(&m, cases[i].architecture);
    if (cases[i].change) cases[i].change(&m);
    char *text = print_model(&m, cases[i].file);
    if (!text) return false;
    char *golden = write ? NULL : slurp(path);
    bool good = write ? write_text(path, text) : golden && strcmp(golden, text) == 0;
    if (!good && write) fprintf(stderr, "%s: cannot write\n", path);
    if (!good && !write) report(path, golden ? golden : "", text);
    free(golden);
    free(text);
    return good;
}

int main(int argc, char **argv) {
    bool write = argc == 3 && strcmp(argv[2], "--write") == 0;
    if (argc != 2 && !write) {
        fprintf(stderr, "usage: golden_programs FOLDER [--write]\n");
        return 2;
    }
    int bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) bad += !check_case(argv[1], i, write);
    return bad != 0;
}
