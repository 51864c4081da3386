/* Mixtures of experts: how each architecture weighs its experts, the forms their tensors come in, and files that are
 * refused by name. */
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

static bool has_op(const hth_program *p, hth_opcode opcode) {
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].opcode == opcode) return true;
    return false;
}

/* Mixtral: a llama whose feed-forward networks are experts, as wide as feed_forward_length says. */
static void make_mixtral(tiny_model *m) {
    static const char *const dense[] = {"ffn_gate", "ffn_up", "ffn_down"};
    char name[64];
    tiny_make(m, "llama");
    tiny_set_u32(m, "expert_count", 4);
    tiny_set_u32(m, "expert_used_count", 2);
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

/* ---- What each architecture does --------------------------------------------------------------------------------- */

static void weights_of_the_chosen(void **state) {
    (void)state;
    static const struct {
        const char *architecture;
        hth_router_kind router;
        hth_act_kind act;
        bool shared, sinks;
    } cases[] = {
        {"llama", HTH_ROUTER_NORMALIZED, HTH_ACT_SILU, false, false},
        {"qwen2moe", HTH_ROUTER_SOFTMAX, HTH_ACT_SILU, true, false},
        {"qwen3moe", HTH_ROUTER_NORMALIZED, HTH_ACT_SILU, false, false},
        {"olmoe", HTH_ROUTER_SOFTMAX, HTH_ACT_SILU, false, false},
        {"gpt-oss", HTH_ROUTER_OVER_CHOSEN, HTH_ACT_SWIGLU_CLAMPED, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny_model m;
        if (i == 0) make_mixtral(&m);
        else tiny_make(&m, cases[i].architecture);
        hth_program *p = tiny_program(&m);
        const hth_op *router = tiny_op_at(p, "blk.1.ffn_router"), *experts = tiny_op_at(p, "blk.1.ffn_experts");
        assert_int_equal(router->imm.router.kind, cases[i].router);
        assert_int_equal(router->imm.router.used, 2);
        assert_int_equal(experts->imm.experts.used, 2);
        assert_int_equal(experts->imm.experts.act, cases[i].act);
        assert_int_equal(experts->weight[5] != HTH_NONE, cases[i].sinks); /* biases */
        assert_int_equal(has_op(p, HTH_OP_GATE), cases[i].shared);
        assert_int_equal(tiny_op_at(p, "blk.0.attention")->weight[0] != HTH_NONE, cases[i].sinks);
        hth_program_free(&p);
    }
}

/* After the last attention only the rows whose logits are wanted go on. */
static void the_last_layer_is_for_outputs(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen2moe");
    hth_program *p = tiny_program(&m);
    assert_int_equal(p->tensors[tiny_op_at(p, "blk.0.ffn_experts")->out].dims[1].symbol, HTH_ROWS);
    assert_int_equal(p->tensors[tiny_op_at(p, "blk.1.ffn_experts")->out].dims[1].symbol, HTH_OUTS);
    hth_program_free(&p);
}

static void windows_of_gptoss(void **state) {
    (void)state;
    static const uint32_t pattern[] = {0, 1};
    tiny_model m;
    tiny_make(&m, "gpt-oss");
    hth_program *p = tiny_program(&m);
    assert_int_equal(tiny_op_at(p, "blk.0.attention")->imm.attention.window, 32);
    assert_int_equal(tiny_op_at(p, "blk.1.attention")->imm.attention.window, 0);
    assert_int_equal(tiny_op_at(p, "blk.0.attn_q_rope")->in[1], tiny_op_at(p, "blk.1.attn_q_rope")->in[1]);
    hth_program_free(&p);
    tiny_set_array(&m, "attention.sliding_window_pattern", HTH_GGUF_BOOL, 2, pattern);
    tiny_set_f32(&m, "rope.freq_base", 150000);
    tiny_set_f32(&m, "rope.freq_base_swa", 10000);
    p = tiny_program(&m);
    assert_int_equal(tiny_op_at(p, "blk.0.attention")->imm.attention.window, 0);
    assert_int_equal(tiny_op_at(p, "blk.1.attention")->imm.attention.window, 32);
    assert_int_not_equal(tiny_op_at(p, "blk.0.attn_q_rope")->in[1], tiny_op_at(p, "blk.1.attn_q_rope")->in[1]);
    hth_program_free(&p);
    tiny_remove_key(&m, "attention.sliding_window");
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gpt-oss.attention.sliding_window\" is missing");
    tiny_set_u32(&m, "attention.sliding_window", 0);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gpt-oss.attention.sliding_window\" is 0, must be 1 to");
    static const uint32_t three[] = {1, 0, 1};
    tiny_set_array(&m, "attention.sliding_window_pattern", HTH_GGUF_BOOL, 3, three);
    tiny_set_u32(&m, "attention.sliding_window", 32);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gpt-oss.attention.sliding_window_pattern\" has 3 elements for 2 layers");
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

static void counts(void **state) {
    (void)state;
    static const struct {
        const char *suffix;
        int64_t value; /* -1: the key is missing; -2: a string */
        const char *text;
    } cases[] = {
        {"expert_count", -1, "key \"%s.expert_count\" is missing"},
        {"expert_count", 0, "key \"%s.expert_count\" is 0, must be 1 to 4096"},
        {"expert_count", 4097, "key \"%s.expert_count\" is 4097, must be 1 to 4096"},
        {"expert_count", UINT32_MAX, "key \"%s.expert_count\" is 4294967295, must be 1 to 4096"},
        {"expert_count", -2, "key \"%s.expert_count\" holds string where an integer is wanted"},
        {"expert_count", 3, "tensor blk.0.ffn_gate_inp.weight is [64, 4], must be [64, 3]"},
        {"expert_used_count", -1, "key \"%s.expert_used_count\" is missing"},
        {"expert_used_count", 0, "key \"%s.expert_used_count\" is 0, must be 1 to 4"},
        {"expert_used_count", 5, "key \"%s.expert_used_count\" is 5, must be 1 to 4"},
        {"expert_used_count", -2, "key \"%s.expert_used_count\" holds string where an integer is wanted"},
        {"expert_feed_forward_length", 1048577, "key \"%s.expert_feed_forward_length\" is 1048577, must be"},
        {"expert_feed_forward_length", 31, "tensor blk.0.ffn_gate_exps.weight is [64, "},
    };
    for (int a = 0; tiny_architectures[a]; a++)
        for (size_t i = 0; tiny_is_mixture(tiny_architectures[a]) && i < sizeof cases / sizeof *cases; i++) {
            tiny_model m;
            char text[160];
            tiny_make(&m, tiny_architectures[a]);
            if (cases[i].value == -1) tiny_remove_key(&m, cases[i].suffix);
            else if (cases[i].value == -2) tiny_set_text(&m, cases[i].suffix, "many");
            else tiny_set_u32(&m, cases[i].suffix, (uint32_t)cases[i].value);
            const char *name = strstr(cases[i].text, "%s");
            if (name)
                snprintf(text, sizeof text, "%.*s%s%s", (int)(name - cases[i].text), cases[i].text,
                         tiny_architectures[a], name + 2);
            else snprintf(text, sizeof text, "%s", cases[i].text);
            tiny_expect(&m, HEARTH_BAD_FILE, text);
        }
}

static void used_may_differ_by_layer(void **state) {
    (void)state;
    static const uint32_t used[] = {1, 4}, many[] = {2, 5}, three[] = {2, 2, 2};
    tiny_model m;
    tiny_make(&m, "qwen3moe");
    tiny_set_array(&m, "expert_used_count", HTH_GGUF_U32, 2, used);
    hth_program *p = tiny_program(&m);
    assert_int_equal(tiny_op_at(p, "blk.0.ffn_router")->imm.router.used, 1);
    assert_int_equal(tiny_op_at(p, "blk.1.ffn_experts")->imm.experts.used, 4);
    hth_program_free(&p);
    tiny_set_array(&m, "expert_used_count", HTH_GGUF_U32, 2, many);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen3moe.expert_used_count\" is 5, must be 1 to 4");
    tiny_set_array(&m, "expert_used_count", HTH_GGUF_U32, 3, three);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen3moe.expert_used_count\" has 3 elements for 2 layers");
}

static void widths_that_no_key_says(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen3moe");
    tiny_remove_key(&m, "expert_feed_forward_length");
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.ffn_gate_exps.weight is [64, 32, 4], must be [64, 48, 4]");
    tiny_set_u32(&m, "feed_forward_length", 64); /* shared out among the two that are used */
    tiny_expect(&m, HEARTH_OK, NULL);
    tiny_remove_key(&m, "feed_forward_length");
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen3moe.expert_feed_forward_length\" is missing");
    tiny_make(&m, "gpt-oss");
    tiny_remove_key(&m, "expert_feed_forward_length");
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"gpt-oss.expert_feed_forward_length\" is missing");
    tiny_make(&m, "qwen2moe");
    tiny_remove_key(&m, "expert_shared_feed_forward_length");
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.ffn_gate_shexp.weight is [64, 64], must be [64, 96]");
    tiny_remove_key(&m, "feed_forward_length");
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"qwen2moe.expert_shared_feed_forward_length\" is missing");
}

static void mixtral_by_its_key(void **state) {
    (void)state;
    tiny_model m;
    make_mixtral(&m);
    tiny_set_u32(&m, "expert_used_count", 5);
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.expert_used_count\" is 5, must be 1 to 4");
    tiny_set_text(&m, "expert_count", "eight");
    tiny_expect(&m, HEARTH_BAD_FILE, "key \"llama.expert_count\" holds string");
    tiny_set_u32(&m, "expert_count", 0);
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.ffn_gate.weight is missing");
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/* Gate and up as one tensor, gate's rows first: the slabs of each lie a whole slab apart. */
static void gate_and_up_in_one(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen3moe");
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_gate_exps.weight", i);
        tiny_remove(&m, name);
        snprintf(name, sizeof name, "blk.%d.ffn_up_exps.weight", i);
        tiny_remove(&m, name);
        snprintf(name, sizeof name, "blk.%d.ffn_gate_up_exps.weight", i);
        tiny_add_slabs(&m, name, HTH_Q8_0, 64, 64, 4);
    }
    hth_program *p = tiny_program(&m);
    const hth_op *experts = tiny_op_at(p, "blk.1.ffn_experts");
    const hth_tensor *gate = &p->tensors[experts->weight[0]], *up = &p->tensors[experts->weight[1]];
    const uint64_t row = 2 * 34;
    assert_int_equal(gate->weight.slab_stride, 64 * row);
    assert_int_equal(up->weight.slab_stride, 64 * row);
    assert_int_equal(up->weight.offset - gate->weight.offset, 32 * row);
    assert_int_equal(up->weight.bytes, (3 * 64 + 32) * row);
    assert_int_equal(gate->dims[1].n, 32);
    assert_int_equal(hth_weight_bytes(gate) + hth_weight_bytes(up), 4 * 64 * row); /* nothing is counted twice */
    assert_int_equal(hth_weight_bytes(&p->tensors[experts->weight[2]]), 4 * 64 * 32 * sizeof(float));
    hth_program_free(&p);
    tiny_add_slabs(&m, "blk.1.ffn_up_exps.weight", HTH_F32, 64, 32, 4);
    tiny_expect(&m, HEARTH_UNSUPPORTED, "tensor blk.1.ffn_up_exps.weight is not known");
    tiny_remove(&m, "blk.1.ffn_up_exps.weight");
    tiny_find(&m, "blk.1.ffn_gate_up_exps.weight")->dims[1] = 63;
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.1.ffn_gate_up_exps.weight is [64, 63, 4], must be [64, 64, 4]");
}

static void experts_as_tensors_of_their_own(void **state) {
    (void)state;
    static const char *const names[] = {"ffn_gate.0.weight", "ffn_up.0.weight", "ffn_down.0.weight"};
    for (int i = 0; i < 3; i++) {
        tiny_model m;
        char name[64], text[96];
        make_mixtral(&m);
        for (int b = 0; b < 2; b++) {
            snprintf(name, sizeof name, "blk.%d.ffn_gate_exps.weight", b);
            tiny_remove(&m, name);
        }
        snprintf(name, sizeof name, "blk.0.%s", names[i]);
        tiny_add(&m, name, HTH_F32, 64, 96);
        snprintf(text, sizeof text, "tensor %s is one expert", name);
        tiny_expect(&m, HEARTH_UNSUPPORTED, text);
    }
}

static void a_shared_gate_of_one_dimension(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "qwen2moe");
    tiny_find(&m, "blk.0.ffn_gate_inp_shexp.weight")->n_dims = 1;
    tiny_expect(&m, HEARTH_OK, NULL);
    tiny_find(&m, "blk.0.ffn_gate_inp_shexp.weight")->dims[0] = 63;
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.0.ffn_gate_inp_shexp.weight is [63], must be [64, 1]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_the_chosen),
        cmocka_unit_test(the_last_layer_is_for_outputs),
        cmocka_unit_test(windows_of_gptoss),
        cmocka_unit_test(counts),
        cmocka_unit_test(used_may_differ_by_layer),
        cmocka_unit_test(widths_that_no_key_says),
        cmocka_unit_test(mixtral_by_its_key),
        cmocka_unit_test(gate_and_up_in_one),
        cmocka_unit_test(experts_as_tensors_of_their_own),
        cmocka_unit_test(a_shared_gate_of_one_dimension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
