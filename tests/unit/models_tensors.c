/* Every tensor of every architecture: missing, of another shape, of another dtype; tensors nobody knows; fused tensors.
 */
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

/* Biases that a file of this architecture may lack. */
static bool is_optional(const tiny_model *m, const char *name) {
    size_t n = strlen(name);
    return strncmp(m->architecture, "qwen2", 5) == 0 && n > 5 && strcmp(name + n - 5, ".bias") == 0;
}

static void missing(void **state) {
    (void)state;
    for (int a = 0; tiny_architectures[a]; a++) {
        tiny_model whole;
        tiny_make(&whole, tiny_architectures[a]);
        for (int i = 0; i < whole.n_tensors; i++) {
            tiny_model m = whole;
            char text[96];
            snprintf(text, sizeof text, "tensor %s is missing", whole.tensors[i].name);
            tiny_remove(&m, whole.tensors[i].name);
            if (is_optional(&m, whole.tensors[i].name)) tiny_expect(&m, HEARTH_OK, NULL);
            else tiny_expect(&m, HEARTH_BAD_FILE, text);
        }
    }
}

/* Shapes as the error writes them. */
static void shape_text(const tiny_tensor *t, char out[64]) {
    int n = snprintf(out, 64, "[%ju", (uintmax_t)t->dims[0]);
    for (uint32_t i = 1; i < t->n_dims; i++) n += snprintf(out + n, 64 - (size_t)n, ", %ju", (uintmax_t)t->dims[i]);
    snprintf(out + n, 64 - (size_t)n, "]");
}

/* One dimension more or less, or a dimension that should not be there. */
static void another_shape(void **state) {
    (void)state;
    for (int a = 0; tiny_architectures[a]; a++) {
        tiny_model whole;
        tiny_make(&whole, tiny_architectures[a]);
        for (int i = 0; i < whole.n_tensors; i++)
            for (uint32_t d = 0; d < 4; d++)
                for (int by = -1; by <= 1; by += 2) {
                    tiny_model m = whole;
                    tiny_tensor *t = &m.tensors[i];
                    char is[64], must[64], text[256];
                    if (by < 0 && d >= t->n_dims) continue;
                    /* The embedding's rows are what the file says. */
                    if (d == 1 && strcmp(t->name, "token_embd.weight") == 0) continue;
                    shape_text(t, must);
                    t->dims[d] = (uint64_t)((int64_t)t->dims[d] + by);
                    if (t->dims[d] == 0) continue;
                    if (t->n_dims <= d) t->n_dims = d + 1;
                    shape_text(t, is);
                    snprintf(text, sizeof text, "tensor %s is %s, must be %s", t->name, is, must);
                    tiny_expect(&m, HEARTH_BAD_FILE, text);
                }
    }
}

static void trailing_ones_are_no_dimension(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "llama");
    for (int i = 0; i < m.n_tensors; i++) m.tensors[i].n_dims = 4;
    tiny_expect(&m, HEARTH_OK, NULL);
}

static void another_dtype(void **state) {
    (void)state;
    static const struct {
        uint32_t dtype;
        bool computed;
    } dtypes[] = {{HTH_F16, true}, {HTH_BF16, true}, {HTH_Q4_0, true},  {HTH_Q8_0, true}, {HTH_MXFP4, true},
                  {HTH_I8, false}, {HTH_I32, false}, {HTH_Q8_1, false}, {HTH_F64, false}};
    for (int a = 0; tiny_architectures[a]; a++) {
        tiny_model whole;
        tiny_make(&whole, tiny_architectures[a]);
        for (int i = 0; i < whole.n_tensors; i++)
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                tiny_model m = whole;
                tiny_tensor *t = &m.tensors[i];
                char text[128];
                t->dtype = dtypes[d].dtype;
                if (t->dims[0] % (uint64_t)hth_dtype_find(t->dtype)->block != 0) continue;
                bool is_float32 = t->n_dims == 1 || strstr(t->name, ".bias") || strstr(t->name, ".ssm_conv1d.");
                const char *what = is_float32 ? "norms, biases, taps and rope factors must be F32"
                                              : "which is not supported; supported are F32 F16";
                snprintf(text, sizeof text, "tensor %s is %s", t->name, hth_dtype_name((hth_dtype)t->dtype));
                if (!is_float32 && dtypes[d].computed) {
                    tiny_expect(&m, HEARTH_OK, NULL);
                } else {
                    tiny_expect(&m, HEARTH_UNSUPPORTED, text);
                    tiny_expect(&m, HEARTH_UNSUPPORTED, what);
                }
            }
    }
}

static void tensors_nobody_knows(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool harmless;
    } cases[] = {
        {"blk.0.attn_q_norm_b.weight", false},
        {"blk.0.attn_sinks.weight", false},
        {"blk.0.attn_q.scale", false},
        {"blk.2.attn_norm.weight", false},
        {"blk.6.attn_norm.weight", false},
        {"output.bias", false},
        {"token_embd_norm.weight", false},
        {"cls.output.weight", false},
        {"rope_factors_long.weight", false},
        {"blk.0.attn_rot_embd.weight", true},
        {"blk.0.ffn_up.input_scale", true},
        {"v.blk.0.attn_q.weight", true},
        {"mm.0.weight", true},
    };
    for (int a = 0; tiny_architectures[a]; a++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tiny_model m;
            char text[128];
            tiny_make(&m, tiny_architectures[a]);
            if (tiny_find(&m, cases[i].name)) continue; /* gemma3 has six layers */
            tiny_add(&m, cases[i].name, HTH_F32, 64, 0);
            snprintf(text, sizeof text, "tensor %s is not known for architecture %s", cases[i].name,
                     tiny_architectures[a]);
            tiny_expect(&m, cases[i].harmless ? HEARTH_OK : HEARTH_UNSUPPORTED, cases[i].harmless ? NULL : text);
        }
    tiny_model m;
    tiny_make(&m, "qwen3");
    tiny_add(&m, "blk.1.attn_q.bias", HTH_F32, 64, 0);
    tiny_expect(&m, HEARTH_UNSUPPORTED, "tensor blk.1.attn_q.bias is not known for architecture qwen3");
    tiny_make(&m, "llama");
    tiny_add(&m, "blk.1.attn_q.bias", HTH_F32, 64, 0);
    tiny_expect(&m, HEARTH_OK, NULL);
    tiny_find(&m, "blk.1.attn_q.bias")->dims[0] = 63;
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.1.attn_q.bias is [63], must be [64]");
}

static void vocabularies(void **state) {
    (void)state;
    tiny_model m;
    hth_program *p;
    hearth_error err;
    tiny_make(&m, "llama");
    tiny_find(&m, "token_embd.weight")->dims[1] = 1;
    assert_int_equal(tiny_read(&m, &p, &err), HEARTH_OK);
    assert_int_equal(p->n_vocab, 1);
    hth_program_free(&p);
    tiny_add(&m, "output.weight", HTH_F32, 64, 80);
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor output.weight is [64, 80], must be [64, 1]");
    tiny_make(&m, "llama");
    *tiny_find(&m, "token_embd.weight") =
        (tiny_tensor){.name = "token_embd.weight", .dtype = HTH_I8, .n_dims = 2, .dims = {1, 16777217, 1, 1}};
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor token_embd.weight has 16777217 rows, must have 1 to 16777216");
}

/* ---- Where parts of a fused tensor lie --------------------------------------------------------------------------- */

static const hth_tensor *weight_of(const hth_program *p, const char *site, int i) {
    return &p->tensors[tiny_op_at(p, site)->weight[i]];
}

static void parts_of_a_fused_tensor(void **state) {
    (void)state;
    tiny_model m;
    hth_program *p;
    hearth_error err;
    tiny_make(&m, "llama");
    tiny_remove(&m, "blk.1.attn_q.weight");
    tiny_remove(&m, "blk.1.attn_k.weight");
    tiny_remove(&m, "blk.1.attn_v.weight");
    tiny_add(&m, "blk.1.attn_qkv.weight", HTH_Q8_0, 64, 128);
    tiny_add(&m, "blk.1.attn_qkv.bias", HTH_F32, 128, 0);
    if (tiny_read(&m, &p, &err) != HEARTH_OK) fail_msg("%s", err.text);
    const hth_tensor *q = weight_of(p, "blk.1.attn_q", 0), *k = weight_of(p, "blk.1.attn_k", 0);
    const hth_tensor *v = weight_of(p, "blk.1.attn_v", 0);
    assert_int_equal(q->dims[1].n, 64);
    assert_int_equal(k->dims[1].n, 32);
    assert_int_equal(k->weight.offset - q->weight.offset, 64 * 68);
    assert_int_equal(v->weight.offset - q->weight.offset, 96 * 68);
    assert_int_equal(v->weight.bytes, 32 * 68);
    assert_string_equal(v->name, "blk.1.attn_qkv.weight[96:128]");
    q = weight_of(p, "blk.1.attn_q", 1);
    v = weight_of(p, "blk.1.attn_v", 1);
    assert_int_equal(v->weight.offset - q->weight.offset, 96 * 4);
    assert_int_equal(v->weight.bytes, 32 * 4);
    hth_program_free(&p);
    tiny_find(&m, "blk.1.attn_qkv.weight")->dims[1] = 129;
    tiny_expect(&m, HEARTH_BAD_FILE, "tensor blk.1.attn_qkv.weight is [64, 129], must be [64, 128]");
}

static void tied_embeddings_are_one_tensor(void **state) {
    (void)state;
    tiny_model m;
    hth_program *p;
    hearth_error err;
    tiny_make(&m, "llama");
    assert_int_equal(tiny_read(&m, &p, &err), HEARTH_OK);
    assert_ptr_equal(weight_of(p, "token_embd", 0), weight_of(p, "output", 0));
    hth_program_free(&p);
    tiny_add(&m, "output.weight", HTH_F32, 64, 80);
    assert_int_equal(tiny_read(&m, &p, &err), HEARTH_OK);
    assert_string_equal(weight_of(p, "output", 0)->name, "output.weight");
    hth_program_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing),
        cmocka_unit_test(another_shape),
        cmocka_unit_test(trailing_ones_are_no_dimension),
        cmocka_unit_test(another_dtype),
        cmocka_unit_test(tensors_nobody_knows),
        cmocka_unit_test(vocabularies),
        cmocka_unit_test(parts_of_a_fused_tensor),
        cmocka_unit_test(tied_embeddings_are_one_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
