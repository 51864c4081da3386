/* Recipes with recurrent layers: which layers are recurrent, how heads lie, layers that predict further tokens, and
 * what such files can get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/models.h"
#include "support/tiny_program.h"

static const char *const hybrids[] = {"qwen35", "qwen35moe", "qwen3next"};
enum { HYBRIDS = sizeof hybrids / sizeof *hybrids };

/* ---- Which layers are recurrent ---------------------------------------------------------------------------------- */

/* Block 0's attention and block 1's recurrence. */
static void swap_blocks(tiny_model *m) {
    for (int i = 0; i < m->n_tensors; i++)
        if (strncmp(m->tensors[i].name, "blk.", 4) == 0)
            m->tensors[i].name[4] = m->tensors[i].name[4] == '0' ? '1' : '0';
}

static void layer_patterns(void **state) {
    (void)state;
    static const uint32_t second[] = {0, 1}, twos[] = {2, 0}, three[] = {1, 0, 0};
    tiny_model m;
    for (int a = 0; a < HYBRIDS; a++) {
        char text[128];
        tiny_make(&m, hybrids[a]);
        hth_program *p = tiny_program(&m);
        assert_non_null(tiny_find_op(p, "blk.0.ssm_delta"));
        assert_non_null(tiny_find_op(p, "blk.1.attention"));
        hth_program_free(&p);
        /* The list has the last word over the interval. */
        tiny_set_array(&m, "attention.recurrent_layers", HTH_GGUF_BOOL, 2, second);
        tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.attn_qkv.weight is [64, 96], must be [64, 192]");
        swap_blocks(&m);
        p = tiny_program(&m);
        assert_non_null(tiny_find_op(p, "blk.0.attention"));
        assert_non_null(tiny_find_op(p, "blk.1.ssm_delta"));
        hth_program_free(&p);
        tiny_set_array(&m, "attention.recurrent_layers", HTH_GGUF_BOOL, 3, three);
        snprintf(text, sizeof text, "key \"%s.attention.recurrent_layers\" has 3 elements for 2 layers", hybrids[a]);
        tiny_expect(&m, HEARTH_BAD_FILE, text);
        tiny_set_array(&m, "attention.recurrent_layers", HTH_GGUF_U32, 2, twos);
        snprintf(text, sizeof text, "key \"%s.attention.recurrent_layers\" is 2, must be 0 to 1", hybrids[a]);
        tiny_expect(&m, HEARTH_BAD_FILE, text);
        tiny_set_text(&m, "attention.recurrent_layers", "most");
        tiny_expect(&m, HEARTH_BAD_FILE, "attention.recurrent_layers\" holds string");
    }
}

static void intervals(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen35");
    tiny_remove_key(&m, "full_attention_interval"); /* then every fourth */
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.1.attn_qkv.weight is missing");
    tiny_set_u32(&m, "full_attention_interval", 1); /* attention alone */
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.attn_qkv.weight is [64, 96], must be [64, 192]");
    tiny_set_u32(&m, "full_attention_interval", 0);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen35.full_attention_interval\" is 0, must be 1 to 1024");
}

/* ---- Heads ------------------------------------------------------------------------------------------------------- */

static void head_orders(void **state) {
    (void)state;
    for (int a = 0; a < HYBRIDS; a++) {
        tiny_model m;
        tiny_make(&m, hybrids[a]);
        hth_program *p = tiny_program(&m);
        const hth_delta_imm *delta = &tiny_op_at(p, "blk.0.ssm_delta")->imm.delta;
        assert_int_equal(delta->tiled, strcmp(hybrids[a], "qwen3next") != 0);
        assert_int_equal(delta->key_heads, 2);
        assert_int_equal(delta->value_heads, 4);
        assert_int_equal(delta->dk, 16);
        assert_int_equal(delta->dv, 8);
        assert_int_equal(tiny_op_at(p, "blk.1.attn_q_head")->imm.slice.first, 0);
        assert_int_equal(tiny_op_at(p, "blk.1.attn_q_gate")->imm.slice.first, 16);
        assert_int_equal(tiny_op_at(p, "blk.1.attn_q_rope")->imm.rope.n_rot, 8);
        hth_program_free(&p);
    }
}

/* For each key head the b of its value heads, then their alpha; a file may also have them apart. */
static void gates_of_qwen3next(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen3next");
    hth_program *p = tiny_program(&m);
    const hth_op *delta = tiny_op_at(p, "blk.0.ssm_delta");
    assert_string_equal(p->tensors[delta->in[1]].name, "blk.0.ssm_alpha");
    assert_string_equal(p->tensors[delta->in[2]].name, "blk.0.ssm_beta");
    assert_int_equal(tiny_op_at(p, "blk.0.ssm_beta")->imm.slice.first, 0);
    assert_int_equal(tiny_op_at(p, "blk.0.ssm_alpha")->imm.slice.first, 2);
    assert_int_equal(tiny_op_at(p, "blk.0.ssm_alpha")->imm.slice.group, 4);
    hth_program_free(&p);
    tiny_remove(&m, "blk.0.ssm_ba.weight");
    tiny_add(&m, "blk.0.ssm_alpha.weight", HTH_F32, 64, 4);
    tiny_add(&m, "blk.0.ssm_beta.weight", HTH_F32, 64, 4);
    p = tiny_program(&m);
    assert_int_equal(tiny_op_at(p, "blk.0.ssm_alpha")->opcode, HTH_OP_LINEAR);
    hth_program_free(&p);
    tiny_add(&m, "blk.0.ssm_ba.weight", HTH_F32, 64, 8);
    tiny_expect(&m, HEARTH_UNSUPPORTED, "tensor blk.0.ssm_ba.weight is not known");
    tiny_make(&m, "qwen35");
    tiny_add(&m, "blk.0.ssm_ba.weight", HTH_F32, 64, 8);
    tiny_expect(&m, HEARTH_UNSUPPORTED, "tensor blk.0.ssm_ba.weight is not known");
}

static void old_fused_input(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen3next");
    tiny_remove(&m, "blk.0.attn_qkv.weight");
    tiny_remove(&m, "blk.0.attn_gate.weight");
    tiny_add(&m, "blk.0.ssm_in.weight", HTH_F32, 64, 128);
    tiny_expect(&m, HEARTH_UNSUPPORTED, "tensor blk.0.ssm_in.weight mixes the rows of attn_qkv and attn_gate");
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *suffix;
        int64_t value; /* -1: the key is missing */
        const char *text;
    } cases[] = {
        {"ssm.conv_kernel", -1, "key \"%s.ssm.conv_kernel\" is missing"},
        {"ssm.conv_kernel", 1, "key \"%s.ssm.conv_kernel\" is 1, must be 2 to 64"},
        {"ssm.conv_kernel", 65, "key \"%s.ssm.conv_kernel\" is 65, must be 2 to 64"},
        {"ssm.conv_kernel", 3, "tensor blk.0.ssm_conv1d.weight is [4, 96], must be [3, 96]"},
        {"ssm.state_size", -1, "key \"%s.ssm.state_size\" is missing"},
        {"ssm.state_size", 0, "key \"%s.ssm.state_size\" is 0, must be 1 to 1024"},
        {"ssm.group_count", -1, "key \"%s.ssm.group_count\" is missing"},
        {"ssm.group_count", 0, "key \"%s.ssm.group_count\" is 0, must be 1 to 4096"},
        {"ssm.group_count", 3, "key \"%s.ssm.time_step_rank\" is 4, which the 3 key heads of ssm.group_count do not"},
        {"ssm.group_count", 8, "key \"%s.ssm.time_step_rank\" is 4, which the 8 key heads of ssm.group_count do not"},
        {"ssm.time_step_rank", -1, "key \"%s.ssm.time_step_rank\" is missing"},
        {"ssm.time_step_rank", 6, "key \"%s.ssm.inner_size\" is 32, which the 6 value heads of ssm.time_step_rank"},
        {"ssm.time_step_rank", 64, "key \"%s.ssm.inner_size\" is 32, which the 64 value heads of ssm.time_step_rank"},
        {"ssm.inner_size", -1, "key \"%s.ssm.inner_size\" is missing"},
        {"ssm.inner_size", 0, "key \"%s.ssm.inner_size\" is 0, must be 1 to 1048576"},
        {"ssm.inner_size", 1048577, "key \"%s.ssm.inner_size\" is 1048577, must be 1 to 1048576"},
        {"attention.value_length", 8, "key \"%s.attention.value_length\" is 8, must be key_length, 16"},
        {"rope.dimension_count", 18, "key \"%s.rope.dimension_count\" is 18, must be even and at most the head's 16"},
    };
    for (int a = 0; a < HYBRIDS; a++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tiny_model m;
            char text[160];
            tiny_make(&m, hybrids[a]);
            if (cases[i].value < 0) tiny_remove_key(&m, cases[i].suffix);
            else tiny_set_u32(&m, cases[i].suffix, (uint32_t)cases[i].value);
            const char *name = strstr(cases[i].text, "%s");
            if (name)
                snprintf(text, sizeof text, "%.*s%s%s", (int)(name - cases[i].text), cases[i].text, hybrids[a],
                         name + 2);
            else snprintf(text, sizeof text, "%s", cases[i].text);
            tiny_expect(&m, HEARTH_BAD_FILE, text);
        }
    tiny_model m;
    static const uint32_t three[] = {1, 1, 1};
    tiny_make(&m, "qwen35");
    tiny_set_array(&m, "rope.dimension_sections", HTH_GGUF_I32, 3, three);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen35.rope.dimension_sections\" has 3 elements");
}

static void mixtures_are_named(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen35moe");
    tiny_set_u32(&m, "expert_count", 0);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen35moe.expert_count\" is 0, must be 1 to");
    tiny_make(&m, "qwen35moe");
    tiny_remove_key(&m, "expert_shared_feed_forward_length"); /* then as wide as an expert */
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.ffn_gate_shexp.weight is [64, 64], must be [64, 32]");
    tiny_make(&m, "qwen35");
    tiny_set_u32(&m, "expert_count", 4);
    tiny_expect(&m, HEARTH_UNSUPPORTED, "key \"qwen35.expert_count\" is 4: a mixture of experts is not supported");
}

/* ---- Layers that predict further tokens -------------------------------------------------------------------------- */

/* The tiny model, and one such block behind it. */
static void make_nextn(tiny_model *m, const char *architecture) {
    tiny_make(m, architecture);
    tiny_set_u32(m, "block_count", 3);
    tiny_set_u32(m, "nextn_predict_layers", 1);
    tiny_add(m, "blk.2.nextn.eh_proj.weight", HTH_F32, 128, 64);
    tiny_add(m, "blk.2.nextn.enorm.weight", HTH_F32, 64, 0);
    tiny_add(m, "blk.2.attn_norm.weight", HTH_F32, 64, 0);
    tiny_add(m, "blk.2.ffn_gate_exps.weight", HTH_I8, 7, 7); /* whatever it is */
}

static void nextn_is_left_unused(void **state) {
    (void)state;
    static const uint32_t recurrent[] = {1, 0, 0}, heads[] = {4, 4, 8};
    for (int a = 0; a < HYBRIDS; a++) {
        tiny_model m;
        make_nextn(&m, hybrids[a]);
        tiny_set_array(&m, "attention.recurrent_layers", HTH_GGUF_BOOL, 3, recurrent);
        tiny_set_array(&m, "attention.head_count", HTH_GGUF_U32, 3, heads);
        hth_program *p = tiny_program(&m);
        assert_string_equal(p->notes, "blk.2 is a multi-token-prediction layer: left unused\n");
        assert_int_equal(p->n_layers, 2);
        assert_non_null(tiny_find_op(p, "blk.1.attention_select")); /* the trunk's last layer */
        for (int t = 0; t < p->n_tensors; t++) assert_true(strncmp(p->tensors[t].name, "blk.2.", 6) != 0);
        hth_program_free(&p);
        tiny_add(&m, "blk.3.attn_norm.weight", HTH_F32, 64, 0);
        tiny_expect(&m, HEARTH_UNSUPPORTED, "tensor blk.3.attn_norm.weight is not known");
    }
}

static void nextn_that_is_missing(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen35moe"); /* the key is there, and the layer was left out of the file */
    tiny_set_u32(&m, "block_count", 3);
    tiny_set_u32(&m, "nextn_predict_layers", 1);
    hth_program *p = tiny_program(&m);
    assert_int_equal(p->n_layers, 2);
    assert_null(p->notes);
    hth_program_free(&p);
    tiny_make(&m, "qwen35moe");
    tiny_set_u32(&m, "nextn_predict_layers", 0);
    p = tiny_program(&m);
    assert_null(p->notes);
    hth_program_free(&p);
    tiny_set_u32(&m, "nextn_predict_layers", 2000);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen35moe.nextn_predict_layers\" is 2000, must be 0 to 1024");
    make_nextn(&m, "qwen35");
    tiny_remove_key(&m, "nextn_predict_layers"); /* then it is a layer like the others */
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.2.attn_qkv.weight is missing");
}

static void nextn_alone(void **state) {
    (void)state;
    static const char text[] = "the file holds multi-token-prediction layers and not the model that they predict for";
    tiny_model m;
    make_nextn(&m, "qwen35");
    for (int i = m.n_tensors - 1; i >= 0; i--)
        if (strncmp(m.tensors[i].name, "blk.0.", 6) == 0 || strncmp(m.tensors[i].name, "blk.1.", 6) == 0)
            tiny_remove(&m, m.tensors[i].name);
    tiny_expect(&m, HEARTH_UNSUPPORTED, text);
    make_nextn(&m, "qwen3next");
    tiny_set_u32(&m, "nextn_predict_layers", 3);
    tiny_expect(&m, HEARTH_UNSUPPORTED, text);
    tiny_set_u32(&m, "nextn_predict_layers", 4);
    tiny_expect(&m, HEARTH_UNSUPPORTED, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_patterns),        cmocka_unit_test(intervals),
        cmocka_unit_test(head_orders),           cmocka_unit_test(gates_of_qwen3next),
        cmocka_unit_test(old_fused_input),       cmocka_unit_test(sizes),
        cmocka_unit_test(mixtures_are_named),    cmocka_unit_test(nextn_is_left_unused),
        cmocka_unit_test(nextn_that_is_missing), cmocka_unit_test(nextn_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
