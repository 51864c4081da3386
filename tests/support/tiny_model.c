#include "support/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const tiny_architectures[] = {"llama",  "qwen2",     "qwen3",     "gemma2", "gemma3",
                                          "gpt2",   "qwen2moe",  "qwen3moe",  "olmoe",  "gpt-oss",
                                          "qwen35", "qwen35moe", "qwen3next", NULL};

static void fail(const char *what, const char *name) {
    fprintf(stderr, "tiny_model: %s: %s\n", what, name);
    abort();
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

static tiny_key *key_named(tiny_model *m, const char *name) {
    for (int i = 0; i < m->n_keys; i++)
        if (strcmp(m->keys[i].name, name) == 0) return &m->keys[i];
    return NULL;
}

/* The key of this whole name, added if need be, as a scalar. */
static tiny_key *key_for(tiny_model *m, const char *name, uint32_t type) {
    tiny_key *key = key_named(m, name);
    if (!key) {
        if (m->n_keys == TINY_KEYS) fail("too many keys", name);
        key = &m->keys[m->n_keys++];
    }
    *key = (tiny_key){.type = type, .count = -1};
    snprintf(key->name, sizeof key->name, "%s", name);
    return key;
}

static const char *whole_name(const tiny_model *m, const char *suffix, char name[96]) {
    snprintf(name, 96, "%s.%s", m->architecture, suffix);
    return name;
}

void tiny_set_int(tiny_model *m, const char *suffix, uint32_t type, uint64_t value) {
    char name[96];
    key_for(m, whole_name(m, suffix, name), type)->whole = value;
}

void tiny_set_u32(tiny_model *m, const char *suffix, uint32_t value) {
    tiny_set_int(m, suffix, HTH_GGUF_U32, value);
}

void tiny_set_f32(tiny_model *m, const char *suffix, float value) {
    char name[96];
    key_for(m, whole_name(m, suffix, name), HTH_GGUF_F32)->real = value;
}

void tiny_set_global_text(tiny_model *m, const char *name, const char *value) {
    key_for(m, name, HTH_GGUF_STRING)->text = value;
}

void tiny_set_text(tiny_model *m, const char *suffix, const char *value) {
    char name[96];
    tiny_set_global_text(m, whole_name(m, suffix, name), value);
}

void tiny_set_array(tiny_model *m, const char *suffix, uint32_t element, int count, const uint32_t *values) {
    char name[96];
    if (count > TINY_ARRAY) fail("array too long", suffix);
    tiny_key *key = key_for(m, whole_name(m, suffix, name), element);
    key->count = count;
    memcpy(key->array, values, (size_t)count * sizeof *values);
}

void tiny_remove_key(tiny_model *m, const char *suffix) {
    char name[96];
    tiny_key *key = key_named(m, whole_name(m, suffix, name));
    if (!key) fail("no such key", suffix);
    *key = m->keys[--m->n_keys];
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

tiny_tensor *tiny_find(tiny_model *m, const char *name) {
    for (int i = 0; i < m->n_tensors; i++)
        if (strcmp(m->tensors[i].name, name) == 0) return &m->tensors[i];
    return NULL;
}

void tiny_add_slabs(tiny_model *m, const char *name, uint32_t dtype, uint64_t d0, uint64_t d1, uint64_t d2) {
    if (m->n_tensors == TINY_TENSORS) fail("too many tensors", name);
    tiny_tensor *t = &m->tensors[m->n_tensors++];
    *t = (tiny_tensor){.dtype = dtype, .n_dims = d2 ? 3 : d1 ? 2 : 1, .dims = {d0, d1 ? d1 : 1, d2 ? d2 : 1, 1}};
    snprintf(t->name, sizeof t->name, "%s", name);
}

void tiny_add(tiny_model *m, const char *name, uint32_t dtype, uint64_t d0, uint64_t d1) {
    tiny_add_slabs(m, name, dtype, d0, d1, 0);
}

void tiny_remove(tiny_model *m, const char *name) {
    tiny_tensor *t = tiny_find(m, name);
    if (!t) fail("no such tensor", name);
    memmove(t, t + 1, (size_t)(&m->tensors[m->n_tensors] - (t + 1)) * sizeof *t);
    m->n_tensors--;
}

/* ---- The models -------------------------------------------------------------------------------------------------- */

enum { EMBD = 64, HEADS = 4, KV_HEADS = 2, HEAD = 16, FF = 96, VOCAB = 80, CONTEXT = 256 };
enum { EXPERTS = 4, USED = 2, EXPERT_FF = 32, SHARED_FF = 64 };
enum { TAPS = 4, KEY_DIM = 16, VALUE_DIM = 8, KEY_HEADS = 2, VALUE_HEADS = 4 };

void tiny_add_experts(tiny_model *m, int block, uint64_t embd, uint64_t ff, uint64_t experts) {
    static const char *const roles[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", block, roles[i]);
        tiny_add_slabs(m, name, HTH_F32, i < 2 ? embd : ff, i < 2 ? ff : embd, experts);
    }
}

static void add_in_block(tiny_model *m, int i, const char *role, uint64_t d0, uint64_t d1) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", i, role);
    tiny_add(m, name, HTH_F32, d0, d1);
}

static bool is(const tiny_model *m, const char *architecture) {
    return strcmp(m->architecture, architecture) == 0;
}

bool tiny_is_mixture(const char *architecture) {
    static const char *const mixtures[] = {"qwen2moe", "qwen3moe", "olmoe", "gpt-oss", "qwen35moe", "qwen3next"};
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
        if (strcmp(architecture, mixtures[i]) == 0) return true;
    return false;
}

bool tiny_is_hybrid(const char *architecture) {
    return strncmp(architecture, "qwen35", 6) == 0 || strcmp(architecture, "qwen3next") == 0;
}

static void add_delta_net(tiny_model *m, int i) {
    enum { VALUES = VALUE_HEADS * VALUE_DIM, CHANNELS = 2 * KEY_HEADS * KEY_DIM + VALUES };
    add_in_block(m, i, "attn_norm.weight", EMBD, 0);
    add_in_block(m, i, "attn_qkv.weight", EMBD, CHANNELS);
    add_in_block(m, i, "attn_gate.weight", EMBD, VALUES);
    if (is(m, "qwen3next")) {
        add_in_block(m, i, "ssm_ba.weight", EMBD, 2 * VALUE_HEADS);
    } else {
        add_in_block(m, i, "ssm_alpha.weight", EMBD, VALUE_HEADS);
        add_in_block(m, i, "ssm_beta.weight", EMBD, VALUE_HEADS);
    }
    add_in_block(m, i, "ssm_a", VALUE_HEADS, 0);
    add_in_block(m, i, "ssm_dt.bias", VALUE_HEADS, 0);
    add_in_block(m, i, "ssm_conv1d.weight", TAPS, CHANNELS);
    add_in_block(m, i, "ssm_norm.weight", VALUE_DIM, 0);
    add_in_block(m, i, "ssm_out.weight", VALUES, EMBD);
    add_in_block(m, i, "post_attention_norm.weight", EMBD, 0);
}

static void add_gated_attention(tiny_model *m, int i) {
    add_in_block(m, i, "attn_norm.weight", EMBD, 0);
    add_in_block(m, i, "attn_q.weight", EMBD, 2 * HEADS * HEAD);
    add_in_block(m, i, "attn_k.weight", EMBD, KV_HEADS * HEAD);
    add_in_block(m, i, "attn_v.weight", EMBD, KV_HEADS * HEAD);
    add_in_block(m, i, "attn_q_norm.weight", HEAD, 0);
    add_in_block(m, i, "attn_k_norm.weight", HEAD, 0);
    add_in_block(m, i, "attn_output.weight", HEADS * HEAD, EMBD);
    add_in_block(m, i, "post_attention_norm.weight", EMBD, 0);
}

static void add_hybrid_keys(tiny_model *m) {
    static const uint32_t sections[] = {2, 1, 1, 0};
    if (!is(m, "qwen3next")) tiny_set_array(m, "rope.dimension_sections", HTH_GGUF_I32, 4, sections);
    tiny_set_u32(m, "rope.dimension_count", HEAD / 2);
    tiny_set_f32(m, "rope.freq_base", 1e7f);
    tiny_set_u32(m, "full_attention_interval", 2);
    tiny_set_u32(m, "ssm.conv_kernel", TAPS);
    tiny_set_u32(m, "ssm.state_size", KEY_DIM);
    tiny_set_u32(m, "ssm.group_count", KEY_HEADS);
    tiny_set_u32(m, "ssm.time_step_rank", VALUE_HEADS);
    tiny_set_u32(m, "ssm.inner_size", VALUE_HEADS * VALUE_DIM);
}

static void add_attention(tiny_model *m, int i) {
    bool biases = is(m, "qwen2") || is(m, "qwen2moe") || is(m, "gpt-oss");
    add_in_block(m, i, "attn_norm.weight", EMBD, 0);
    add_in_block(m, i, "attn_q.weight", EMBD, HEADS * HEAD);
    add_in_block(m, i, "attn_k.weight", EMBD, KV_HEADS * HEAD);
    add_in_block(m, i, "attn_v.weight", EMBD, KV_HEADS * HEAD);
    if (biases) {
        add_in_block(m, i, "attn_q.bias", HEADS * HEAD, 0);
        add_in_block(m, i, "attn_k.bias", KV_HEADS * HEAD, 0);
        add_in_block(m, i, "attn_v.bias", KV_HEADS * HEAD, 0);
    }
    if (is(m, "olmoe")) {
        add_in_block(m, i, "attn_q_norm.weight", HEADS * HEAD, 0);
        add_in_block(m, i, "attn_k_norm.weight", KV_HEADS * HEAD, 0);
    }
    if (is(m, "gpt-oss")) {
        add_in_block(m, i, "attn_sinks.weight", HEADS, 0);
        add_in_block(m, i, "attn_output.bias", EMBD, 0);
        add_in_block(m, i, "post_attention_norm.weight", EMBD, 0);
    }
    if (is(m, "qwen3") || is(m, "qwen3moe") || is(m, "gemma3")) {
        add_in_block(m, i, "attn_q_norm.weight", HEAD, 0);
        add_in_block(m, i, "attn_k_norm.weight", HEAD, 0);
    }
    add_in_block(m, i, "attn_output.weight", HEADS * HEAD, EMBD);
    if (is(m, "gemma2") || is(m, "gemma3")) add_in_block(m, i, "post_attention_norm.weight", EMBD, 0);
}

static void add_ffn(tiny_model *m, int i) {
    if (!tiny_is_hybrid(m->architecture)) add_in_block(m, i, "ffn_norm.weight", EMBD, 0);
    add_in_block(m, i, "ffn_gate.weight", EMBD, FF);
    add_in_block(m, i, "ffn_up.weight", EMBD, FF);
    add_in_block(m, i, "ffn_down.weight", FF, EMBD);
    if (is(m, "gemma2") || is(m, "gemma3")) add_in_block(m, i, "post_ffw_norm.weight", EMBD, 0);
}

static bool has_shared_expert(const tiny_model *m) {
    return is(m, "qwen2moe") || (tiny_is_hybrid(m->architecture) && tiny_is_mixture(m->architecture));
}

static void add_experts(tiny_model *m, int i) {
    uint64_t ff = is(m, "olmoe") ? FF : EXPERT_FF;
    if (!is(m, "gpt-oss") && !tiny_is_hybrid(m->architecture)) add_in_block(m, i, "ffn_norm.weight", EMBD, 0);
    add_in_block(m, i, "ffn_gate_inp.weight", EMBD, EXPERTS);
    tiny_add_experts(m, i, EMBD, ff, EXPERTS);
    if (is(m, "gpt-oss")) {
        add_in_block(m, i, "ffn_gate_inp.bias", EXPERTS, 0);
        add_in_block(m, i, "ffn_gate_exps.bias", ff, EXPERTS);
        add_in_block(m, i, "ffn_up_exps.bias", ff, EXPERTS);
        add_in_block(m, i, "ffn_down_exps.bias", EMBD, EXPERTS);
    }
    if (has_shared_expert(m)) {
        add_in_block(m, i, "ffn_gate_inp_shexp.weight", EMBD, 1);
        add_in_block(m, i, "ffn_gate_shexp.weight", EMBD, SHARED_FF);
        add_in_block(m, i, "ffn_up_shexp.weight", EMBD, SHARED_FF);
        add_in_block(m, i, "ffn_down_shexp.weight", SHARED_FF, EMBD);
    }
}

static void add_gpt2_block(tiny_model *m, int i) {
    static const struct {
        const char *role;
        uint64_t in, out;
    } parts[] = {
        {"attn_qkv", EMBD, 3 * EMBD}, {"attn_output", EMBD, EMBD}, {"ffn_up", EMBD, FF}, {"ffn_down", FF, EMBD}};
    char role[32];
    for (int j = 0; j < 4; j++) {
        snprintf(role, sizeof role, "%s.weight", parts[j].role);
        add_in_block(m, i, role, parts[j].in, parts[j].out);
        snprintf(role, sizeof role, "%s.bias", parts[j].role);
        add_in_block(m, i, role, parts[j].out, 0);
    }
    add_in_block(m, i, "attn_norm.weight", EMBD, 0);
    add_in_block(m, i, "attn_norm.bias", EMBD, 0);
    add_in_block(m, i, "ffn_norm.weight", EMBD, 0);
    add_in_block(m, i, "ffn_norm.bias", EMBD, 0);
}

static void add_gpt2(tiny_model *m, uint32_t layers) {
    tiny_set_f32(m, "attention.layer_norm_epsilon", 1e-5f);
    tiny_add(m, "position_embd.weight", HTH_F32, EMBD, CONTEXT);
    for (uint32_t i = 0; i < layers; i++) add_gpt2_block(m, (int)i);
    tiny_add(m, "output_norm.bias", HTH_F32, EMBD, 0);
}

static void add_gated(tiny_model *m, uint32_t layers) {
    tiny_set_u32(m, "attention.head_count_kv", KV_HEADS);
    tiny_set_f32(m, "attention.layer_norm_rms_epsilon", 1e-6f);
    if (tiny_is_mixture(m->architecture)) {
        tiny_set_u32(m, "expert_count", EXPERTS);
        tiny_set_u32(m, "expert_used_count", USED);
        if (!is(m, "olmoe")) tiny_set_u32(m, "expert_feed_forward_length", EXPERT_FF);
        if (has_shared_expert(m)) tiny_set_u32(m, "expert_shared_feed_forward_length", SHARED_FF);
    }
    if (is(m, "gemma2") || is(m, "gemma3") || is(m, "gpt-oss")) {
        tiny_set_u32(m, "attention.key_length", HEAD);
        tiny_set_u32(m, "attention.value_length", HEAD);
        tiny_set_u32(m, "attention.sliding_window", 32);
    }
    if (is(m, "gemma3")) tiny_set_f32(m, "rope.freq_base", 1e6f);
    if (tiny_is_hybrid(m->architecture)) add_hybrid_keys(m);
    for (uint32_t i = 0; i < layers; i++) {
        if (!tiny_is_hybrid(m->architecture)) add_attention(m, (int)i);
        else if (i % 2 == 0) add_delta_net(m, (int)i);
        else add_gated_attention(m, (int)i);
        if (tiny_is_mixture(m->architecture)) add_experts(m, (int)i);
        else add_ffn(m, (int)i);
    }
}

void tiny_make(tiny_model *m, const char *architecture) {
    *m = (tiny_model){0};
    snprintf(m->architecture, sizeof m->architecture, "%s", architecture);
    uint32_t layers = is(m, "gemma3") ? 6 : 2;
    tiny_set_u32(m, "block_count", layers);
    tiny_set_u32(m, "context_length", CONTEXT);
    tiny_set_u32(m, "embedding_length", EMBD);
    tiny_set_u32(m, "feed_forward_length", FF);
    tiny_set_u32(m, "attention.head_count", HEADS);
    tiny_add(m, "token_embd.weight", HTH_F32, EMBD, VOCAB);
    if (is(m, "gpt2")) add_gpt2(m, layers);
    else add_gated(m, layers);
    tiny_add(m, "output_norm.weight", HTH_F32, EMBD, 0);
}

/* ---- The image --------------------------------------------------------------------------------------------------- */

static void put_key(gguf_image *im, const tiny_key *key) {
    static const size_t sizes[HTH_GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (key->count >= 0) {
        gguf_put_kv_array(im, key->name, key->type, (uint64_t)key->count);
        for (int i = 0; i < key->count; i++) gguf_put(im, &key->array[i], sizes[key->type]);
    } else if (key->type == HTH_GGUF_STRING) {
        gguf_put_kv_string(im, key->name, key->text);
    } else {
        gguf_put_key(im, key->name, key->type);
        gguf_put(im, &key->whole, sizes[key->type]);
    }
}

static uint64_t tensor_bytes(const tiny_tensor *t) {
    uint64_t bytes = hth_row_bytes(hth_dtype_find(t->dtype), t->dims[0]);
    for (int i = 1; i < 4; i++) bytes *= t->dims[i];
    return bytes;
}

static void put_data(gguf_image *im, const tiny_tensor *t) {
    size_t start = im->size, bytes = (size_t)tensor_bytes(t);
    gguf_put_zeros(im, bytes);
    float *ones = (float *)(void *)(im->data + start); /* data starts at multiples of 32 */
    for (size_t i = 0; t->dtype == HTH_F32 && i < bytes / sizeof *ones; i++) ones[i] = 1;
    gguf_put_padding(im, 32);
}

void tiny_image(const tiny_model *m, gguf_image *im) {
    *im = (gguf_image){0};
    bool named = m->architecture[0] != 0;
    gguf_put_header(im, 3, (uint64_t)m->n_tensors, (uint64_t)m->n_keys + named);
    if (named) gguf_put_kv_string(im, "general.architecture", m->architecture);
    for (int i = 0; i < m->n_keys; i++) put_key(im, &m->keys[i]);
    uint64_t offset = 0;
    for (int i = 0; i < m->n_tensors; i++) {
        const tiny_tensor *t = &m->tensors[i];
        gguf_put_tensor(im, t->name, t->n_dims, t->dims, t->dtype, offset);
        offset += (tensor_bytes(t) + 31) / 32 * 32;
    }
    gguf_put_padding(im, 32);
    for (int i = 0; i < m->n_tensors; i++) put_data(im, &m->tensors[i]);
}
