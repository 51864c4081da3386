/* Rope frequencies against independent numbers. */
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
#include "support/tiny_model.h"

/* A llama of one head with `head` dimensions. */
static void make_head(tiny_model *m, uint32_t head) {
    tiny_make(m, "llama");
    tiny_set_u32(m, "attention.key_length", head);
    tiny_set_u32(m, "attention.value_length", head);
    tiny_set_u32(m, "attention.head_count", 1);
    tiny_set_u32(m, "attention.head_count_kv", 1);
    for (int i = 0; i < 2; i++) {
        static const char *const roles[] = {"attn_q", "attn_k", "attn_v"};
        char name[64];
        for (int j = 0; j < 3; j++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, roles[j]);
            tiny_find(m, name)->dims[1] = head;
        }
        snprintf(name, sizeof name, "blk.%d.attn_output.weight", i);
        tiny_find(m, name)->dims[0] = head;
    }
}

typedef struct rope {
    int64_t pairs;
    float magnitude;
    float f[512];
} rope;

/* Patch the factors of rope_freqs.weight in the image, which are ones. */
static void patch_factors(const gguf_image *im, const float *factors, size_t pairs) {
    float *ones = calloc(pairs, sizeof *ones);
    for (size_t i = 0; i < pairs; i++) ones[i] = 1;
    /* It is the last tensor of the file. */
    size_t at = im->size - (pairs * sizeof *ones + 31) / 32 * 32;
    assert_memory_equal(im->data + at, ones, pairs * sizeof *ones);
    memcpy(im->data + at, factors, pairs * sizeof *ones);
    free(ones);
}

static rope read_rope(const tiny_model *m, const char *site, const float *factors, size_t pairs) {
    gguf_image im;
    hth_gguf *g;
    const hth_recipe *recipe;
    hth_program *p = NULL;
    hearth_error err = {0};
    rope r = {0};
    tiny_image(m, &im);
    if (factors) patch_factors(&im, factors, pairs);
    if (hth_gguf_open_memory(im.data, im.size, &g, &err) != HEARTH_OK ||
        hth_recipe_find(g, &recipe, &err) != HEARTH_OK || recipe->emit(g, &p, &err) != HEARTH_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < p->n_ops; i++) {
        if (p->ops[i].opcode != HTH_OP_ROPE_ANGLES || strcmp(p->ops[i].site, site) != 0) continue;
        const hth_tensor *t = &p->tensors[p->ops[i].weight[0]];
        r.pairs = t->dims[0].n;
        r.magnitude = p->ops[i].imm.rope_angles.magnitude;
        memcpy(r.f, t->constant, (size_t)r.pairs * sizeof *r.f);
    }
    assert_true(r.pairs > 0);
    hth_program_free(&p);
    hth_gguf_close(&g);
    gguf_image_free(&im);
    return r;
}

static void close_to(double value, double wanted) {
    if (!(fabs(value - wanted) <= 3e-7 * fabs(wanted))) fail_msg("%.9g, wanted %.9g", value, wanted);
}

static void plain(void **state) {
    (void)state;
    tiny_model m;
    make_head(&m, 128);
    tiny_set_f32(&m, "rope.freq_base", 500000);
    rope r = read_rope(&m, "rope_angles", NULL, 0);
    assert_int_equal(r.pairs, 64);
    assert_true(r.magnitude == 1 && r.f[0] == 1);
    for (int i = 0; i < 64; i++) assert_true(r.f[i] == (float)pow(500000, -2.0 * i / 128));
    make_head(&m, 64);
    r = read_rope(&m, "rope_angles", NULL, 0);
    for (int i = 0; i < 32; i++) assert_true(r.f[i] == (float)pow(10000, -2.0 * i / 64));
}

static void linear_scaling(void **state) {
    (void)state;
    tiny_model m;
    make_head(&m, 32);
    tiny_set_f32(&m, "rope.scaling.factor", 4); /* no type: linear */
    rope r = read_rope(&m, "rope_angles", NULL, 0);
    for (int i = 0; i < 16; i++) assert_true(r.f[i] == (float)(pow(10000, -2.0 * i / 32) / 4));
    tiny_set_text(&m, "rope.scaling.type", "none");
    r = read_rope(&m, "rope_angles", NULL, 0);
    assert_true(r.f[0] == 1);
    tiny_remove_key(&m, "rope.scaling.type");
    tiny_remove_key(&m, "rope.scaling.factor");
    tiny_set_f32(&m, "rope.scale_linear", 8);
    r = read_rope(&m, "rope_angles", NULL, 0);
    assert_true(r.f[0] == 0.125f);
}

/* The factors that Llama 3.1 files carry. */
static void factors(void **state) {
    (void)state;
    tiny_model m;
    float divisors[64];
    make_head(&m, 128);
    tiny_set_f32(&m, "rope.freq_base", 500000);
    tiny_add(&m, "rope_freqs.weight", HTH_F32, 64, 0);
    for (int i = 0; i < 64; i++) divisors[i] = i < 29 ? 1 : i > 34 ? 8 : 1 + (float)(i - 28);
    rope r = read_rope(&m, "rope_angles", divisors, 64);
    for (int i = 0; i < 64; i++) assert_true(r.f[i] == (float)(pow(500000, -2.0 * i / 128) / (double)divisors[i]));
    divisors[63] = 1e30f;
    r = read_rope(&m, "rope_angles", divisors, 64);
    assert_true(r.f[63] > 0 && r.f[63] < 1e-30f);
}

static void factors_that_are_no_divisors(void **state) {
    (void)state;
    static const float bad[] = {0, -1, (float)INFINITY, (float)NAN};
    for (int i = 0; i < 4; i++) {
        tiny_model m;
        gguf_image im;
        hth_gguf *g;
        const hth_recipe *recipe;
        hth_program *p = NULL;
        hearth_error err;
        make_head(&m, 8);
        tiny_add(&m, "rope_freqs.weight", HTH_F32, 4, 0);
        tiny_image(&m, &im);
        patch_factors(&im, (const float[]){1, 1, bad[i], 1}, 4);
        assert_int_equal(hth_gguf_open_memory(im.data, im.size, &g, &err), HEARTH_OK);
        assert_int_equal(hth_recipe_find(g, &recipe, &err), HEARTH_OK);
        assert_int_equal(recipe->emit(g, &p, &err), HEARTH_BAD_FILE);
        assert_non_null(strstr(err.text, "tensor rope_freqs.weight: factor 2 is "));
        hth_gguf_close(&g);
        gguf_image_free(&im);
    }
}

/* The YaRN of gpt-oss, with rounded bounds as transformers rounds them. */
static void yarn(void **state) {
    (void)state;
    static const struct {
        int pair;
        double frequency;
    } wanted[] = {{0, 1},
                  {8, 0.05081327},
                  {9, 0.03162075},
                  {12, 0.007015714},
                  {16, 5.809475e-4},
                  {17, 2.279478e-4},
                  {18, 3.830881e-5},
                  {31, 3.023511e-7}};
    tiny_model m;
    make_head(&m, 64);
    tiny_set_f32(&m, "rope.freq_base", 150000);
    tiny_set_text(&m, "rope.scaling.type", "yarn");
    tiny_set_f32(&m, "rope.scaling.factor", 32);
    tiny_set_u32(&m, "rope.scaling.original_context_length", 4096);
    tiny_set_f32(&m, "rope.scaling.yarn_beta_fast", 32);
    tiny_set_f32(&m, "rope.scaling.yarn_beta_slow", 1);
    rope r = read_rope(&m, "rope_angles", NULL, 0);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        close_to((double)r.f[wanted[i].pair], wanted[i].frequency);
    close_to((double)r.magnitude, 1.3465736);
    tiny_set_f32(&m, "rope.scaling.attn_factor", 0.5f);
    r = read_rope(&m, "rope_angles", NULL, 0);
    close_to((double)r.magnitude, 1.3465736 / 2);
    tiny_set_f32(&m, "rope.scaling.factor", 1);
    r = read_rope(&m, "rope_angles", NULL, 0);
    assert_true(r.magnitude == 0.5f);
    for (int i = 0; i < 32; i++) assert_true(r.f[i] == (float)pow(150000, -2.0 * i / 64));
}

/* gemma3: scaling is for the full layers' angles alone, and each kind has its base. */
static void two_bases(void **state) {
    (void)state;
    tiny_model m;
    tiny_make(&m, "gemma3");
    tiny_set_text(&m, "rope.scaling.type", "linear");
    tiny_set_f32(&m, "rope.scaling.factor", 8);
    rope full = read_rope(&m, "rope_angles", NULL, 0), sliding = read_rope(&m, "rope_angles_swa", NULL, 0);
    for (int i = 0; i < 8; i++) {
        assert_true(full.f[i] == (float)(pow(1000000, -2.0 * i / 16) / 8));
        assert_true(sliding.f[i] == (float)pow(10000, -2.0 * i / 16));
    }
    tiny_set_f32(&m, "rope.freq_base_swa", 20000);
    sliding = read_rope(&m, "rope_angles_swa", NULL, 0);
    assert_true(sliding.f[1] == (float)pow(20000, -2.0 / 16));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),   cmocka_unit_test(linear_scaling),
        cmocka_unit_test(factors), cmocka_unit_test(factors_that_are_no_divisors),
        cmocka_unit_test(yarn),    cmocka_unit_test(two_bases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
