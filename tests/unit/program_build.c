/* The builder: errors that stick, shapes that are inferred and refused, the invariants of a finished program, its
 * print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/build.h"
#include "program/print.h"

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

static hth_builder *builder(void) {
    hth_builder *b;
    assert_int_equal(hth_builder_create("test", &b, NULL), HEARTH_OK);
    return b;
}

static hth_tensor_id matrix(hth_builder *b, const char *name, int64_t in, int64_t out) {
    return hth_build_weight(b, name, HTH_F32, 2, (const int64_t[]){in, out}, (hth_weight){0});
}

static hth_tensor_id vector(hth_builder *b, const char *name, int64_t n) {
    return hth_build_weight(b, name, HTH_F32, 1, &n, (hth_weight){0});
}

static hth_tensor_id rows(hth_builder *b, const char *site, int64_t n) {
    char name[64];
    snprintf(name, sizeof name, "%s.table", site);
    return hth_emit_embed(b, site, hth_build_input(b, HTH_INPUT_TOKENS), matrix(b, name, n, 10), 1);
}

static hth_tensor_id angles(hth_builder *b, int64_t pairs) {
    static const float ones[64] = {1};
    return hth_emit_rope_angles(b, "angles", hth_build_constant(b, "frequencies", ones, pairs), 1);
}

static hth_tensor_id table(hth_builder *b, const char *name, int64_t in, int64_t out) {
    return matrix(b, name, in, out);
}

static hth_tensor_id slabs(hth_builder *b, const char *name, int64_t in, int64_t out, int64_t count) {
    return hth_build_weight(b, name, HTH_F32, 3, (const int64_t[]){in, out, count}, (hth_weight){0});
}

static hth_tensor_id linear(hth_builder *b, const char *site, hth_tensor_id x, int64_t in, int64_t out) {
    char name[64];
    snprintf(name, sizeof name, "%s.w", site);
    return hth_emit_linear(b, site, x, matrix(b, name, in, out), HTH_NONE);
}

static const hth_attention_imm attention_4_2 = {.heads = 4, .kv_heads = 2, .dk = 8, .dv = 4, .scale = 0.5f};

static const hth_delta_imm delta_1_2 = {.key_heads = 1, .value_heads = 2, .dk = 8, .dv = 8, .eps = 1e-6f};

/* The ops of a recurrent layer: a row of 32 is a query, a key and two values of 8. */
static hth_tensor_id recurrence(hth_builder *b, hth_tensor_id x) {
    hth_tensor_id ring = hth_build_state(b, "ring", 2, (const int64_t[]){32, 3});
    hth_tensor_id state = hth_build_state(b, "state", 3, (const int64_t[]){8, 8, 2});
    hth_delta_operands d = {.u = hth_emit_conv_ring(b, "conv", x, table(b, "conv.w", 4, 32), ring)};
    d.alpha = linear(b, "alpha", x, 32, 2);
    d.b = linear(b, "beta", x, 32, 2);
    d.a = vector(b, "delta.a", 2);
    d.dt = vector(b, "delta.dt", 2);
    hth_tensor_id o = hth_emit_delta_rule(b, "delta", &d, state, &delta_1_2);
    hth_tensor_id z = hth_emit_slice(b, "slice", x, 16, 8, 8);
    o = hth_emit_gated_norm(b, "normed", o, z, vector(b, "normed.w", 8), 8, 1e-5f);
    return linear(b, "delta_out", o, 16, 32);
}

static const hth_expert_weights no_experts = {HTH_NONE, HTH_NONE, HTH_NONE, HTH_NONE, HTH_NONE, HTH_NONE};

/* Two of four experts of width 8, and a gate on their sum. */
static hth_tensor_id mixture(hth_builder *b, hth_tensor_id x) {
    hth_tensor_id routing = hth_emit_router(b, "router", linear(b, "choices", x, 32, 4), 2, HTH_ROUTER_SOFTMAX);
    hth_expert_weights w = no_experts;
    w.gate = slabs(b, "gate_exps", 32, 8, 4);
    w.up = slabs(b, "up_exps", 32, 8, 4);
    w.down = slabs(b, "down_exps", 8, 32, 4);
    w.up_bias = table(b, "up_exps.b", 8, 4);
    w.down_bias = table(b, "down_exps.b", 32, 4);
    hth_tensor_id y = hth_emit_experts(b, "experts", x, routing, &w, 2, HTH_ACT_SWIGLU_CLAMPED);
    return hth_emit_gate(b, "gate", y, linear(b, "gate_in", x, 32, 1));
}

/* A program with every op, on one residual of 32 = 4 heads of 8. */
static hth_tensor_id everything(hth_builder *b) {
    hth_tensor_id turn = angles(b, 4);
    hth_tensor_id x = rows(b, "embed", 32);
    hth_build_scope(b, "blk.%d.", 3);
    hth_tensor_id a = hth_emit_rms_norm(b, "norm", x, vector(b, "norm.w", 32), 1e-5f);
    hth_tensor_id q = hth_emit_linear(b, "q", a, matrix(b, "q.w", 32, 32), vector(b, "q.b", 32));
    hth_tensor_id k = hth_emit_linear(b, "k", a, matrix(b, "k.w", 32, 16), HTH_NONE);
    hth_tensor_id v = hth_emit_linear(b, "v", a, matrix(b, "v.w", 32, 8), HTH_NONE);
    q = hth_emit_head_norm(b, "q_norm", q, vector(b, "q_norm.w", 8), 8, 1e-5f);
    q = hth_emit_rope(b, "q_rope", q, turn, 8, 1);
    k = hth_emit_rope(b, "k_rope", k, turn, 8, 0);
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_emit_kv_append(b, "append", k, v, kv);
    hth_tensor_id o = hth_emit_attention(b, "attention", q, kv, HTH_NONE, &attention_4_2);
    o = hth_emit_linear(b, "o", o, matrix(b, "o.w", 16, 32), HTH_NONE);
    x = hth_emit_add(b, "add", x, o);
    hth_tensor_id g = hth_emit_glu(b, "glu", x, a, HTH_ACT_SILU);
    g = hth_emit_act(b, "act", g, HTH_ACT_GELU_TANH);
    x = hth_emit_scale(b, "scale", g, 2);
    x = mixture(b, recurrence(b, x));
    hth_build_scope_end(b);
    x = hth_emit_select(b, "select", x);
    x = hth_emit_layer_norm(b, "layer_norm", x, vector(b, "ln.w", 32), vector(b, "ln.b", 32), 1e-5f);
    x = hth_emit_linear(b, "output", x, matrix(b, "output.w", 32, 10), HTH_NONE);
    return hth_emit_softcap(b, "cap", x, 30);
}

static hth_program *every_op(void) {
    hth_builder *b = builder();
    hth_program *p;
    hearth_error err;
    hth_tensor_id logits = everything(b);
    hth_build_facts(b, 1, 32, 100);
    if (hth_builder_finish(&b, logits, &p, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_null(b);
    return p;
}

/* ---- What a good program looks like ------------------------------------------------------------------------------ */

static void facts_of_a_program(void **state) {
    (void)state;
    hth_program *p = every_op();
    assert_string_equal(p->architecture, "test");
    assert_int_equal(p->n_files, 1);
    assert_int_equal(p->n_vocab, 10);
    assert_int_equal(p->context, 100);
    assert_int_equal(p->n_ops, 32);
    bool seen[HTH_OPCODES] = {false};
    for (int i = 0; i < p->n_ops; i++) seen[p->ops[i].opcode] = true;
    for (int i = 0; i < HTH_OPCODES; i++) assert_true(seen[i]);
    const hth_tensor *logits = &p->tensors[p->logits];
    assert_int_equal(logits->class, HTH_OUTPUT);
    const hth_extents extents = {{1, 5, 3, 1, 1}};
    assert_int_equal(hth_tensor_elements(logits, &extents), 30);
    assert_int_equal(hth_program_check(p, NULL), HEARTH_OK);
    hth_program_free(&p);
    assert_null(p);
    hth_program_free(&p);
}

static const char *kernel_of(const void *context, int op) {
    return op == 3 ? context : NULL;
}

static void the_print(void **state) {
    (void)state;
    hth_program *p = every_op();
    hth_plan plan;
    char *text;
    size_t size;
    const hth_extents extents = {{1, 4, 2, 1, 1}};
    assert_int_equal(hth_plan_make(p, &extents, &plan, NULL), HEARTH_OK);
    FILE *out = open_memstream(&text, &size);
    hth_program_print(p, &plan, kernel_of, "a kernel", out);
    fclose(out);
    static const char *const lines[] = {
        "program test: 1 layers, embedding 32, vocabulary 10, context 100, 32 ops\n",
        "    1 embed       embed            tokens [ROWS]; embed.table F32 [32, 10]  -> [32, ROWS]  @",
        "    3 linear      blk.3.q          blk.3.norm [32, ROWS]; q.w F32 [32, 32], q.b F32 [32]  -> [32, ROWS]  @",
        "  <a kernel>\n",
        "    7 rope        blk.3.q_rope     blk.3.q_norm [32, ROWS], angles [8, ROWS]  neox head 8 rotated 8  -> ",
        "    9 kv_append   blk.3.append     blk.3.k_rope [16, ROWS], blk.3.v [8, ROWS]; blk.3.kv [2 heads, 8 + 4]\n",
        "blk.3.kv [2 heads, 8 + 4]  heads 4/2 scale 0.5  -> [16, ROWS]  @",
        "   16 conv_ring   blk.3.conv ",
        "   19 delta_rule  blk.3.delta ",
        "  heads 2/1 grouped head 8 + 8 eps 1e-06  -> [16, ROWS]",
        "  8..15 of each 16  -> [16, ROWS]",
        "   24 router      blk.3.router     blk.3.choices [4, ROWS]  top 2 softmax  -> [4, ROWS]",
        "   25 experts     blk.3.experts    blk.3.delta_out [32, ROWS], blk.3.router [4, ROWS]; gate_exps F32 [32, 8, ",
        "4], ",
        "  used 2 swiglu_clamped  -> [32, ROWS]",
        "   30 linear      output           layer_norm [32, OUTS]; output.w F32 [32, 10]  -> [10, OUTS]  @logits\n",
        "   31 softcap     cap              output [10, OUTS]  cap 30  -> [10, OUTS]  @logits\n",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = strstr(at, lines[i]);
        if (!at) fail_msg("missing: %s\nin:\n%s", lines[i], text);
    }
    free(text);
    hth_plan_free(&plan);
    hth_program_free(&p);
}

/* ---- Errors that stick ------------------------------------------------------------------------------------------- */

static void the_first_error_sticks(void **state) {
    (void)state;
    hth_builder *b = builder();
    hth_tensor_id x = rows(b, "embed", 32);
    assert_false(hth_builder_failed(b));
    assert_int_equal(hth_emit_linear(b, "wrong", x, matrix(b, "w", 16, 8), HTH_NONE), HTH_NONE);
    assert_true(hth_builder_failed(b));
    assert_int_equal(hth_emit_linear(b, "right", x, matrix(b, "v", 32, 8), HTH_NONE), HTH_NONE);
    hth_builder_fail(b, HEARTH_UNSUPPORTED, "later");
    hth_program *p = (hth_program *)b;
    hearth_error err;
    assert_int_equal(hth_builder_finish(&b, x, &p, &err), HEARTH_BAD_FILE);
    assert_string_equal(err.text, "wrong: linear: w is [16, 8], wanted rows 32");
    assert_null(p);
    assert_null(b);
    hth_builder_free(&b);
}

static void names_have_room(void **state) {
    (void)state;
    hth_builder *b = builder();
    hearth_error err;
    hth_program *p;
    char site[80];
    memset(site, 's', sizeof site);
    site[60] = 0;
    hth_build_scope(b, "blk.%d.", 1000);
    assert_int_equal(hth_emit_scale(b, site, rows(b, "x", 4), 1), HTH_NONE);
    assert_int_equal(hth_builder_finish(&b, HTH_NONE, &p, &err), HEARTH_BAD_FILE);
    assert_non_null(strstr(err.text, "too long"));
}

static void inputs_are_declared_once(void **state) {
    (void)state;
    hth_builder *b = builder();
    hth_tensor_id tokens = hth_build_input(b, HTH_INPUT_TOKENS);
    assert_int_equal(hth_build_input(b, HTH_INPUT_TOKENS), tokens);
    assert_int_not_equal(hth_build_input(b, HTH_INPUT_POSITIONS), tokens);
    assert_int_equal(hth_build_tensor(b, tokens)->dtype, HTH_I32);
    assert_null(hth_build_tensor(b, HTH_NONE));
    hth_builder_free(&b);
    assert_null(b);
}

/* ---- Operands that do not fit ------------------------------------------------------------------------------------ */

static void norm_of_another_width(hth_builder *b) {
    hth_emit_rms_norm(b, "bad", rows(b, "x", 32), vector(b, "w", 31), 0);
}
static void norm_without_weight(hth_builder *b) {
    hth_emit_rms_norm(b, "bad", rows(b, "x", 32), HTH_NONE, 0);
}
static void layer_norm_bias(hth_builder *b) {
    hth_emit_layer_norm(b, "bad", rows(b, "x", 32), vector(b, "w", 32), vector(b, "c", 30), 0);
}
static void head_norm_split(hth_builder *b) {
    hth_emit_head_norm(b, "bad", rows(b, "x", 32), vector(b, "w", 5), 5, 0);
}
static void head_norm_weight(hth_builder *b) {
    hth_emit_head_norm(b, "bad", rows(b, "x", 32), vector(b, "w", 4), 8, 0);
}
static void linear_bias(hth_builder *b) {
    hth_emit_linear(b, "bad", rows(b, "x", 32), matrix(b, "w", 32, 8), vector(b, "c", 9));
}
static void linear_of_a_vector(hth_builder *b) {
    hth_emit_linear(b, "bad", rows(b, "x", 32), vector(b, "w", 32), HTH_NONE);
}
static void linear_of_an_input(hth_builder *b) {
    hth_emit_linear(b, "bad", hth_build_input(b, HTH_INPUT_TOKENS), matrix(b, "w", 32, 8), HTH_NONE);
}
static void linear_of_an_unknown_dtype(hth_builder *b) {
    hth_tensor_id w = hth_build_weight(b, "w", HTH_IQ2_XS, 2, (const int64_t[]){256, 8}, (hth_weight){0});
    hth_emit_linear(b, "bad", rows(b, "x", 256), w, HTH_NONE);
}
static void bias_of_another_dtype(hth_builder *b) {
    hth_tensor_id bias = hth_build_weight(b, "c", HTH_F16, 1, (const int64_t[]){8}, (hth_weight){0});
    hth_emit_linear(b, "bad", rows(b, "x", 32), matrix(b, "w", 32, 8), bias);
}
static void embed_of_rows(hth_builder *b) {
    hth_emit_embed(b, "bad", rows(b, "x", 32), matrix(b, "w", 32, 8), 1);
}
static void rope_split(hth_builder *b) {
    hth_emit_rope(b, "bad", rows(b, "x", 32), angles(b, 2), 5, 1);
}
static void rope_more_than_a_head(hth_builder *b) {
    hth_emit_rope(b, "bad", rows(b, "x", 32), angles(b, 8), 8, 1);
}
static void rope_of_outputs(hth_builder *b) {
    hth_emit_rope(b, "bad", hth_emit_select(b, "s", rows(b, "x", 32)), angles(b, 4), 8, 1);
}
static void keys_of_another_width(hth_builder *b) {
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_emit_kv_append(b, "bad", rows(b, "k", 15), rows(b, "v", 8), kv);
}
static void values_of_another_width(hth_builder *b) {
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_emit_kv_append(b, "bad", rows(b, "k", 16), rows(b, "v", 16), kv);
}
static void appended_twice(hth_builder *b) {
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_tensor_id k = rows(b, "k", 16), v = rows(b, "v", 8);
    hth_emit_kv_append(b, "good", k, v, kv);
    hth_emit_kv_append(b, "bad", k, v, kv);
}
static void attention_before_append(hth_builder *b) {
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_emit_attention(b, "bad", rows(b, "q", 32), kv, HTH_NONE, &attention_4_2);
}
static void attention(hth_builder *b, int64_t width, hth_attention_imm imm) {
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_emit_kv_append(b, "append", rows(b, "k", 16), rows(b, "v", 8), kv);
    hth_emit_attention(b, "bad", rows(b, "q", width), kv, HTH_NONE, &imm);
}
static void queries_of_another_width(hth_builder *b) {
    attention(b, 31, attention_4_2);
}
static void heads_that_do_not_divide(hth_builder *b) {
    attention(b, 24, (hth_attention_imm){.heads = 3, .kv_heads = 2, .dk = 8, .dv = 4});
}
static void heads_of_another_size(hth_builder *b) {
    attention(b, 32, (hth_attention_imm){.heads = 4, .kv_heads = 2, .dk = 8, .dv = 8});
}
static void a_negative_window(hth_builder *b) {
    attention(b, 32, (hth_attention_imm){.heads = 4, .kv_heads = 2, .dk = 8, .dv = 4, .window = -1});
}
static void a_sink_too_few(hth_builder *b) {
    hth_tensor_id kv = hth_build_kv(b, "kv", (hth_kv_shape){2, 8, 4});
    hth_emit_kv_append(b, "append", rows(b, "k", 16), rows(b, "v", 8), kv);
    hth_emit_attention(b, "bad", rows(b, "q", 32), kv, vector(b, "sinks", 3), &attention_4_2);
}
static void router_of_no_expert(hth_builder *b) {
    hth_emit_router(b, "bad", rows(b, "x", 4), 0, HTH_ROUTER_SOFTMAX);
}
static void router_of_too_many(hth_builder *b) {
    hth_emit_router(b, "bad", rows(b, "x", 4), 5, HTH_ROUTER_SOFTMAX);
}

/* Experts of width 8 in a residual of 32, two of `choices` for each row; `damage` takes one weight away or changes it.
 */
static void experts(hth_builder *b, int64_t choices, void (*damage)(hth_builder *b, hth_expert_weights *w)) {
    hth_expert_weights w = no_experts;
    hth_tensor_id routing = hth_emit_router(b, "router", rows(b, "logits", choices), 2, HTH_ROUTER_SOFTMAX);
    w.gate = slabs(b, "gate", 32, 8, 4);
    w.up = slabs(b, "up", 32, 8, 4);
    w.down = slabs(b, "down", 8, 32, 4);
    if (damage) damage(b, &w);
    hth_emit_experts(b, "bad", rows(b, "x", 32), routing, &w, 2, HTH_ACT_SILU);
}
static void other_up(hth_builder *b, hth_expert_weights *w) {
    w->up = slabs(b, "other", 32, 9, 4);
}
static void fewer_downs(hth_builder *b, hth_expert_weights *w) {
    w->down = slabs(b, "other", 8, 32, 3);
}
static void no_down(hth_builder *b, hth_expert_weights *w) {
    (void)b;
    w->down = HTH_NONE;
}
static void short_bias(hth_builder *b, hth_expert_weights *w) {
    w->down_bias = table(b, "other", 31, 4);
}
static void experts_of_another_width(hth_builder *b) {
    experts(b, 4, other_up);
}
static void experts_of_another_count(hth_builder *b) {
    experts(b, 4, fewer_downs);
}
static void experts_without_down(hth_builder *b) {
    experts(b, 4, no_down);
}
static void expert_bias(hth_builder *b) {
    experts(b, 4, short_bias);
}
static void router_of_more_experts(hth_builder *b) {
    experts(b, 5, NULL);
}
static void routing_of_no_router(hth_builder *b) {
    hth_expert_weights w = no_experts;
    w.gate = w.up = slabs(b, "gate", 32, 8, 4);
    w.down = slabs(b, "down", 8, 32, 4);
    hth_emit_experts(b, "bad", rows(b, "x", 32), rows(b, "routing", 4), &w, 2, HTH_ACT_SILU);
}
static void gate_of_another_width(hth_builder *b) {
    hth_emit_gate(b, "bad", rows(b, "x", 32), rows(b, "y", 2));
}
static void slice_beyond_its_group(hth_builder *b) {
    hth_emit_slice(b, "bad", rows(b, "x", 32), 16, 9, 8);
}
static void sum_of_two_widths(hth_builder *b) {
    hth_emit_add(b, "bad", rows(b, "x", 32), rows(b, "y", 31));
}
static void sum_of_rows_and_outputs(hth_builder *b) {
    hth_tensor_id x = rows(b, "x", 32);
    hth_emit_add(b, "bad", x, hth_emit_select(b, "s", x));
}
static void selected_twice(hth_builder *b) {
    hth_emit_select(b, "bad", hth_emit_select(b, "s", rows(b, "x", 32)));
}

static void operands_that_do_not_fit(void **state) {
    (void)state;
    static const struct {
        void (*emit)(hth_builder *b);
        const char *text;
    } cases[] = {
        {norm_of_another_width, "bad: rms_norm: w is [31], wanted a length 32"},
        {norm_without_weight, "bad: rms_norm: weight 0 is missing, wanted a float32 vector"},
        {layer_norm_bias, "bad: layer_norm: c is [30], wanted a length 32"},
        {head_norm_split, "bad: head_norm: x is [32, ROWS], wanted rows of heads 5"},
        {head_norm_weight, "bad: head_norm: w is [4], wanted a length 8"},
        {linear_bias, "bad: linear: c is [9], wanted a length 8"},
        {linear_of_a_vector, "bad: linear: weight 0 is w F32 [32], wanted a weight matrix"},
        {linear_of_an_input, "bad: linear: input 0 is tokens I32 [ROWS], wanted float32 rows"},
        {linear_of_an_unknown_dtype, "bad: linear: weight 0 is w IQ2_XS [256, 8], wanted a weight matrix"},
        {bias_of_another_dtype, "bad: linear: weight 1 is c F16 [8], wanted a float32 vector or nothing"},
        {embed_of_rows, "bad: embed: input 0 is x F32 [32, ROWS], wanted the tokens or positions"},
        {rope_split, "bad: rope: x is [32, ROWS], wanted rows of heads 5"},
        {rope_more_than_a_head, "bad: rope: angles is [16, ROWS], wanted angles 16"},
        {rope_of_outputs, "bad: rope: s is [32, OUTS], wanted a row for each token"},
        {keys_of_another_width, "bad: kv_append: k is [15, ROWS], wanted keys 16"},
        {values_of_another_width, "bad: kv_append: v is [16, ROWS], wanted values 8"},
        {appended_twice, "bad: kv is written twice in a pass"},
        {attention_before_append,
         "bad: attention: state is kv F32 [2 heads, 8 + 4], wanted a KV tensor that was appended to"},
        {queries_of_another_width, "bad: attention: q is [31, ROWS], wanted queries 32"},
        {heads_that_do_not_divide, "bad: attention: kv is [2 heads, 8 + 4], wanted KV heads that divide 3"},
        {heads_of_another_size, "bad: attention: kv has 2 heads of 8 + 4, wanted 2 of 8 + 8"},
        {a_negative_window, "bad: attention: a window of -1"},
        {a_sink_too_few, "bad: attention: sinks is [3], wanted a length 4"},
        {router_of_no_expert, "bad: router: 0 of 4 experts"},
        {router_of_too_many, "bad: router: 5 of 4 experts"},
        {experts_of_another_width, "bad: experts: other is [32, 9, 4], wanted rows 8"},
        {experts_of_another_count, "bad: experts: other is [8, 32, 3], wanted slabs 4"},
        {experts_without_down, "bad: experts: weight 2 is missing, wanted a stack of weight matrices"},
        {expert_bias, "bad: experts: other is [31, 4], wanted biases 32"},
        {router_of_more_experts, "bad: experts: router is [4, ROWS], wanted the choice of a router among 4"},
        {routing_of_no_router, "bad: experts: routing is [4, ROWS], wanted the choice of a router among 4"},
        {gate_of_another_width, "bad: gate: y is [2, ROWS], wanted "},
        {slice_beyond_its_group, "bad: slice: "},
        {sum_of_two_widths, "bad: add: y is [31, ROWS], wanted rows 32"},
        {sum_of_rows_and_outputs, "bad: add: s is [32, OUTS], wanted rows 32"},
        {selected_twice, "bad: select: s is [32, OUTS], wanted a row for each token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hth_builder *b = builder();
        hth_program *p;
        hearth_error err = {0};
        cases[i].emit(b);
        assert_int_equal(hth_builder_finish(&b, HTH_NONE, &p, &err), HEARTH_BAD_FILE);
        if (!strstr(err.text, cases[i].text)) fail_msg("case %zu: \"%s\", not \"%s\"", i, err.text, cases[i].text);
    }
}

static void logits_of_every_row(void **state) {
    (void)state;
    hth_builder *b = builder();
    hth_program *p;
    hearth_error err;
    hth_tensor_id x = rows(b, "embed", 32);
    assert_int_equal(hth_builder_finish(&b, x, &p, &err), HEARTH_BAD_FILE);
    assert_string_equal(err.text, "the logits embed are not [32, OUTS]");
}

static void two_ops_of_one_site(void **state) {
    (void)state;
    hth_builder *b = builder();
    hth_program *p;
    hearth_error err;
    hth_tensor_id x = hth_emit_select(b, "twice", rows(b, "embed", 32));
    x = hth_emit_scale(b, "twice", x, 2);
    assert_int_equal(hth_builder_finish(&b, x, &p, &err), HEARTH_BAD_FILE);
    assert_string_equal(err.text, "twice: two ops have this site");
}

/* ---- Programs broken after they were built ----------------------------------------------------------------------- */

static int op_at(const hth_program *p, const char *site) {
    for (int i = 0; i < p->n_ops; i++)
        if (strcmp(p->ops[i].site, site) == 0) return i;
    fail_msg("no op %s", site);
    return -1;
}

static void read_too_early(hth_program *p) {
    p->ops[op_at(p, "blk.3.norm")].in[0] = p->ops[op_at(p, "blk.3.o")].out;
}
static void another_writer(hth_program *p) {
    p->tensors[p->ops[op_at(p, "blk.3.o")].out].writer = 2;
}
static void another_appender(hth_program *p) {
    p->tensors[p->ops[op_at(p, "blk.3.append")].state].writer = 2;
}
static void read_after_last_use(hth_program *p) {
    p->tensors[p->ops[op_at(p, "blk.3.o")].out].last_use = 0;
}
static void unknown_opcode(hth_program *p) {
    p->ops[2].opcode = (hth_opcode)99;
}
static void no_such_tensor(hth_program *p) {
    p->ops[2].in[0] = p->n_tensors;
}
static void another_shape(hth_program *p) {
    p->tensors[p->ops[op_at(p, "blk.3.o")].out].dims[0].n = 33;
}
static void no_output(hth_program *p) {
    p->ops[op_at(p, "cap")].out = HTH_NONE;
}
static void a_site_again(hth_program *p) {
    memcpy(p->ops[3].site, p->ops[9].site, sizeof p->ops[3].site);
}
static void no_logits(hth_program *p) {
    p->logits = HTH_NONE;
}
static void logits_nobody_writes(hth_program *p) {
    p->tensors[p->logits].class = HTH_ACTIVATION;
}
static void appended_later(hth_program *p) {
    hth_tensor *kv = &p->tensors[p->ops[op_at(p, "blk.3.append")].state];
    hth_op swapped = p->ops[kv->writer];
    p->ops[kv->writer] = p->ops[kv->writer + 1];
    p->ops[kv->writer + 1] = swapped;
    p->tensors[p->ops[kv->writer].out].writer = kv->writer;
    kv->writer++;
}

static void broken_programs(void **state) {
    (void)state;
    static const struct {
        void (*damage)(hth_program *p);
        const char *text;
    } cases[] = {
        {read_too_early, "blk.3.norm: rms_norm: blk.3.o is read before it is written"},
        {another_writer, "blk.3.o: linear: blk.3.o has another writer"},
        {another_appender, "blk.3.append: kv_append: blk.3.kv has another writer"},
        {read_after_last_use, "blk.3.add: add: blk.3.o is read after its last use"},
        {unknown_opcode, "blk.3.norm: opcode 99 is not known"},
        {no_such_tensor, "blk.3.norm: rms_norm: input 0 is no tensor of the program"},
        {another_shape, "blk.3.o: linear: blk.3.o has not the shape its op gives it"},
        {no_output, "cap: softcap: output missing or not wanted"},
        {a_site_again, "blk.3.append: two ops have this site"},
        {no_logits, "the program has no logits"},
        {logits_nobody_writes, "no op writes the logits cap"},
        {appended_later, "blk.3.attention: attention: blk.3.kv is read before it is appended to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hth_program *p = every_op();
        hearth_error err = {0};
        cases[i].damage(p);
        assert_int_equal(hth_program_check(p, &err), HEARTH_BAD_FILE);
        if (strcmp(err.text, cases[i].text) != 0) fail_msg("case %zu: \"%s\", not \"%s\"", i, err.text, cases[i].text);
        hth_program_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_a_program),       cmocka_unit_test(the_print),
        cmocka_unit_test(the_first_error_sticks),   cmocka_unit_test(names_have_room),
        cmocka_unit_test(inputs_are_declared_once), cmocka_unit_test(operands_that_do_not_fit),
        cmocka_unit_test(logits_of_every_row),      cmocka_unit_test(two_ops_of_one_site),
        cmocka_unit_test(broken_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
