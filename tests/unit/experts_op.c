/* The experts op on the CPU backend against its definition: each row alone, each of its experts alone, by the reference
 * kernels. Equal to the bit for any number of rows, threads and tiers, dtypes of each kind beside each other, rows of
 * the pass and rows whose logits are wanted. And a router's logit that is no number: named, and nobody else's trouble.
 * tests/mutation has the defects that it was seen red with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/executable.h"
#include "base/block.h"
#include "base/half.h"
#include "program/build.h"

enum { ROWS = 300, EXPERTS = 6, VOCAB = 40, BAD_TOKEN = VOCAB - 1, MOST_N = 256, MOST_F = 512 };

/* A mixture: weights' dtypes, widths, and how it is used. */
typedef struct mixture {
    const char *what;
    hth_dtype gate, up, down;
    int64_t n, f, used;
    hth_act_kind act;
    bool biases, outs; /* outs: after the rows whose logits are wanted have been selected */
} mixture;

static const mixture mixtures[] = {
    {"floats of odd widths", HTH_F32, HTH_BF16, HTH_F32, 97, 41, 2, HTH_ACT_SILU, false, false},
    {"all experts", HTH_Q8_0, HTH_Q8_0, HTH_Q8_0, 64, 96, EXPERTS, HTH_ACT_SILU, false, false},
    {"one expert", HTH_Q8_0, HTH_Q8_0, HTH_Q8_0, 64, 288, 1, HTH_ACT_GELU_TANH, false, true},
    {"biases", HTH_MXFP4, HTH_MXFP4, HTH_MXFP4, 96, 96, 3, HTH_ACT_SWIGLU_CLAMPED, true, false},
    {"long blocks", HTH_Q4_K, HTH_Q4_K, HTH_Q6_K, 256, 512, 2, HTH_ACT_SILU, false, false},
    {"every kind of block", HTH_Q4_K, HTH_Q8_0, HTH_F32, 256, 256, 3, HTH_ACT_SILU, true, true},
    {"float in, blocks out", HTH_BF16, HTH_Q6_K, HTH_Q8_0, 256, 64, 4, HTH_ACT_SILU, true, false},
};
enum { MIXTURES = sizeof mixtures / sizeof *mixtures };

/* ---- Weights ----------------------------------------------------------------------------------------------------- */

static unsigned char memory[12 << 20];
static uint64_t memory_used;

static uint32_t random_state;
static uint32_t random_bits(void) {
    random_state = random_state * 1664525 + 1013904223;
    return random_state >> 8;
}
static float random_float(void) {
    return (float)random_bits() * 0x1p-23f - 1;
}

/* Blocks are any bytes with a scale that keeps products small. */
static void fill(hth_dtype dtype, unsigned char *at, uint64_t count) {
    const hth_dtype_info *info = hth_dtype_find((uint32_t)dtype);
    const uint16_t d = 0x1400, dmin = 0x1000; /* 2^-10, 2^-11 as F16 */
    for (uint64_t i = 0; i < count / (uint64_t)info->block; i++, at += info->bytes) {
        float value = random_float() * 0.2f;
        uint32_t bits = hth_f32_bits(value);
        for (int j = 0; j < info->bytes; j++) at[j] = (unsigned char)random_bits();
        switch (dtype) {
        case HTH_F32: memcpy(at, &value, sizeof value); break;
        case HTH_BF16: memcpy(at, (const unsigned char *)&bits + 2, 2); break;
        case HTH_Q8_0: memcpy(at + offsetof(hth_block_q8_0, d), &d, 2); break;
        case HTH_MXFP4: at[0] = 124; break;
        case HTH_Q4_K:
            memcpy(at + offsetof(hth_block_q4_k, d), &d, 2);
            memcpy(at + offsetof(hth_block_q4_k, dmin), &dmin, 2);
            break;
        case HTH_Q6_K: memcpy(at + offsetof(hth_block_q6_k, d), &d, 2); break;
        default: fail_msg("no weights of dtype %s", hth_dtype_name(dtype));
        }
    }
}

static hth_tensor_id weight(hth_builder *b, const char *name, hth_dtype dtype, int n_dims, int64_t d0, int64_t d1,
                            int64_t d2) {
    uint64_t count = (uint64_t)(d0 * d1 * d2),
             slab = hth_row_bytes(hth_dtype_find((uint32_t)dtype), (uint64_t)(d0 * d1));
    hth_weight where = {0, memory_used, slab * (uint64_t)d2, n_dims == 3 ? slab : 0};
    memory_used += (where.bytes + 63) / 64 * 64;
    assert_true(memory_used <= sizeof memory);
    fill(dtype, memory + where.offset, count);
    return hth_build_weight(b, name, dtype, n_dims, (const int64_t[]){d0, d1, d2}, where);
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static hth_program *make_program(const mixture *mix) {
    hth_builder *b;
    hth_program *p;
    hearth_error err;
    memory_used = 0;
    random_state = 1;
    assert_int_equal(hth_builder_create("experts", &b, &err), HEARTH_OK);
    hth_tensor_id table = weight(b, "embd", HTH_F32, 2, mix->n, VOCAB, 1);
    ((float *)(void *)memory)[BAD_TOKEN * mix->n + 3] = NAN;
    hth_tensor_id x = hth_emit_embed(b, "embd", hth_build_input(b, HTH_INPUT_TOKENS), table, 5);
    if (mix->outs) x = hth_emit_select(b, "select", x);
    hth_tensor_id choices =
        hth_emit_linear(b, "choices", x, weight(b, "choices", HTH_F32, 2, mix->n, EXPERTS, 1), HTH_NONE);
    hth_tensor_id routing = hth_emit_router(b, "router", choices, mix->used, HTH_ROUTER_NORMALIZED);
    hth_expert_weights w = {.gate_bias = HTH_NONE, .up_bias = HTH_NONE, .down_bias = HTH_NONE};
    w.gate = weight(b, "gate", mix->gate, 3, mix->n, mix->f, EXPERTS);
    w.up = weight(b, "up", mix->up, 3, mix->n, mix->f, EXPERTS);
    w.down = weight(b, "down", mix->down, 3, mix->f, mix->n, EXPERTS);
    if (mix->biases) {
        w.gate_bias = weight(b, "gate.bias", HTH_F32, 2, mix->f, EXPERTS, 1);
        w.up_bias = weight(b, "up.bias", HTH_F32, 2, mix->f, EXPERTS, 1);
        w.down_bias = weight(b, "down.bias", HTH_F32, 2, mix->n, EXPERTS, 1);
    }
    x = hth_emit_experts(b, "experts", x, routing, &w, mix->used, mix->act);
    if (!mix->outs) x = hth_emit_select(b, "select", x);
    x = hth_emit_scale(b, "logits", x, 1);
    hth_build_facts(b, 1, mix->n, 1000);
    if (hth_builder_finish(&b, x, &p, &err) != HEARTH_OK) fail_msg("%s: %s", mix->what, err.text);
    return p;
}

static const hth_op *op_at(const hth_program *p, const char *site) {
    for (int i = 0; i < p->n_ops; i++)
        if (strcmp(p->ops[i].site, site) == 0) return &p->ops[i];
    fail_msg("no op %s", site);
    return NULL;
}

/* ---- The definition ---------------------------------------------------------------------------------------------- */

static _Alignas(64) unsigned char scratch[HTH_LINEAR_SCRATCH];

static const hth_tensor *tensor_of(const hth_program *p, hth_tensor_id id) {
    return id == HTH_NONE ? NULL : &p->tensors[id];
}

/* y = slab `e` of w times the row x (+ that column of the bias table). */
static void product(const hth_kernels *k, const hth_tensor *w, const hth_tensor *bias, int64_t e, const float *x,
                    float *y) {
    static _Alignas(64) unsigned char room[1 << 16];
    hth_qact q;
    int64_t in = w->dims[0].n, out = w->dims[1].n;
    int block = hth_activation_block(w->dtype);
    hth_linear a = {.w = memory + w->weight.offset + (uint64_t)e * w->weight.slab_stride, .k = in, .y = y, .ldy = out};
    a.row_bytes = (int64_t)hth_row_bytes(hth_dtype_find((uint32_t)w->dtype), (uint64_t)in);
    a.f = x;
    a.ldf = in;
    if (block != 0) {
        assert_true(hth_qact_bytes(1, in) <= sizeof room);
        hth_qact_carve(&q, 1, in, block, room);
        (block == 32 ? k->quantize32 : k->quantize256)(x, in, 0, 1, &q);
        a.q = &q;
    }
    if (bias) a.bias = (const float *)(const void *)(memory + bias->weight.offset) + e * out;
    k->linear[w->dtype](&a, 0, out, 0, 1, scratch);
}

static void define(const hth_program *p, const mixture *mix, int32_t token, float *out) {
    hth_kernels k = {0};
    float x[MOST_N], choices[EXPERTS], routing[2 * EXPERTS], p_of[EXPERTS], gate[MOST_F], up[MOST_F], y[MOST_N];
    const hth_op *experts = op_at(p, "experts");
    const hth_tensor *w[6];
    hth_kernels_ref(&k);
    for (int i = 0; i < 6; i++) w[i] = tensor_of(p, experts->weight[i]);
    k.embed[HTH_F32](memory + (uint64_t)(token * mix->n) * sizeof(float), x, mix->n, 5);
    product(&k, tensor_of(p, op_at(p, "choices")->weight[0]), NULL, 0, x, choices);
    hth_route(choices, EXPERTS, mix->used, HTH_ROUTER_NORMALIZED, routing, p_of);
    memset(out, 0, (size_t)mix->n * sizeof *out);
    for (int64_t j = 0; j < mix->used; j++) {
        int64_t e = (int64_t)routing[j];
        product(&k, w[0], w[3], e, x, gate);
        product(&k, w[1], w[4], e, x, up);
        k.glu[mix->act](gate, up, gate, mix->f);
        product(&k, w[2], w[5], e, gate, y);
        for (int64_t c = 0; c < mix->n; c++) out[c] = fmaf(y[c], routing[mix->used + j], out[c]);
    }
}

/* ---- The machine ------------------------------------------------------------------------------------------------- */

typedef struct machine {
    const hth_backend_type *type;
    hth_backend *backend;
    hth_program *program;
    hth_file_view file;
    hth_executable *exe;
} machine;

static machine start(const mixture *mix, int threads, const char *kernels) {
    machine m = {.file = {memory, sizeof memory}, .program = make_program(mix)};
    hearth_error err;
    hth_backend_config config = {.threads = threads, .kernels = kernels};
    hth_limits limits = {.extents = {{1, ROWS, ROWS, 2, 1}}, .outputs = ROWS, .context = 1000, .kv = HTH_F32};
    assert_int_equal(hth_backend_find("cpu", &m.type, &err), HEARTH_OK);
    if (m.type->open(&config, &m.backend, &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (m.type->lower(m.backend, m.program, &m.file, &limits, &m.exe, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(m.type->commit(m.exe, NULL, &err), HEARTH_OK);
    assert_int_equal(m.type->link(m.exe, &err), HEARTH_OK);
    assert_int_equal(m.type->warm(m.exe, &err), HEARTH_OK);
    assert_int_equal(hth_expert_leases(m.exe->store), 0);
    return m;
}

static void stop(machine *m) {
    m->type->free(&m->exe);
    m->type->close(&m->backend);
    hth_program_free(&m->program);
}

/* Run rows of these tokens, the first `first` of them as one sequence and the rest as another, and want the logits of
 * every row whose number `step` divides. */
static void run(machine *m, const int32_t *tokens, int64_t rows, int64_t first, int64_t step,
                hth_pass_fault faults[2]) {
    static int64_t positions[ROWS];
    static int32_t out_rows[ROWS];
    const int64_t seq_rows[] = {0, first, rows};
    const int32_t *tables[2] = {NULL, NULL}, slots[2] = {0, 1};
    int64_t outs = 0;
    hearth_error err;
    for (int64_t r = 0; r < rows; r++) {
        positions[r] = r < first ? r : r - first;
        if (r % step == 0) out_rows[outs++] = (int32_t)r;
    }
    hth_pass pass = {.rows = rows,
                     .outs = outs,
                     .seqs = first < rows ? 2 : 1,
                     .tokens = tokens,
                     .positions = positions,
                     .seq_rows = seq_rows,
                     .block_table = tables,
                     .state_slots = slots,
                     .faults = faults,
                     .out_rows = out_rows};
    assert_int_equal(m->type->run(m->exe, &pass, &err), HEARTH_OK);
    assert_int_equal(hth_expert_leases(m->exe->store), 0);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void check_rows(machine *m, const mixture *mix, const float *wanted, int64_t rows, int64_t step) {
    static int32_t tokens[ROWS];
    hth_pass_fault faults[2];
    for (int64_t r = 0; r < rows; r++) tokens[r] = (int32_t)((r * r + 3 * r + rows) % (VOCAB - 1));
    run(m, tokens, rows, rows, step, faults);
    assert_int_equal(faults[0].op, -1);
    for (int64_t r = 0; r < rows; r += step) {
        const float *got = m->type->logits(m->exe) + r / step * mix->n;
        if (memcmp(got, wanted + tokens[r] * mix->n, (size_t)mix->n * sizeof *got) != 0)
            fail_msg("%s: row %d of %d differs from its definition", mix->what, (int)r, (int)rows);
    }
}

static void equal_to_the_definition(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 17, 64, ROWS};
    static const struct {
        int threads;
        const char *kernels;
    } machines[] = {{1, "auto"}, {3, "auto"}, {2, "ref"}};
    static float wanted[VOCAB * MOST_N];
    for (int i = 0; i < MIXTURES; i++)
        for (size_t j = 0; j < sizeof machines / sizeof *machines; j++) {
            machine m = start(&mixtures[i], machines[j].threads, machines[j].kernels);
            for (int32_t t = 0; j == 0 && t < VOCAB - 1; t++)
                define(m.program, &mixtures[i], t, wanted + t * mixtures[i].n);
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                for (int64_t step = 1; step < 8; step += 6) check_rows(&m, &mixtures[i], wanted, counts[c], step);
            stop(&m);
        }
}

/* All rows of a pass want the same experts: the others are left alone. */
static void rows_of_one_mind(void **state) {
    (void)state;
    static float wanted[MOST_N];
    static int32_t tokens[ROWS];
    const mixture *mix = &mixtures[3];
    hth_pass_fault faults[2];
    machine m = start(mix, 2, "auto");
    for (int32_t t = 0; t < 3; t++) {
        define(m.program, mix, t, wanted);
        for (int r = 0; r < ROWS; r++) tokens[r] = t;
        run(&m, tokens, ROWS, ROWS, 1, faults);
        for (int64_t r = 0; r < ROWS; r++)
            assert_memory_equal(m.type->logits(m.exe) + r * mix->n, wanted, (size_t)mix->n * sizeof *wanted);
    }
    stop(&m);
}

/* Two sequences, of which the second has a token that is no number. Where only some rows go through the mixture, the
 * fault is still that of the pass's row. */
static void no_number(void **state) {
    (void)state;
    enum { COUNT = 21, FIRST = 9, AT = 15 };
    static float wanted[MOST_N];
    for (int i = 0; i < MIXTURES; i++) {
        const mixture *mix = &mixtures[i];
        int32_t tokens[COUNT];
        hth_pass_fault faults[2];
        machine m = start(mix, 2, "auto");
        for (int r = 0; r < COUNT; r++) tokens[r] = r == AT || r == AT + 3 ? BAD_TOKEN : r;
        run(&m, tokens, COUNT, FIRST, 3, faults);
        assert_int_equal(faults[0].op, -1);
        assert_int_equal(faults[1].op, op_at(m.program, "router") - m.program->ops);
        assert_int_equal(faults[1].row, AT);
        for (int64_t r = 0; r < COUNT; r += 3) {
            const float *got = m.type->logits(m.exe) + r / 3 * mix->n;
            if (tokens[r] == BAD_TOKEN) {
                for (int64_t c = 0; c < mix->n; c++) assert_true(isnan(got[c]));
                continue;
            }
            define(m.program, mix, tokens[r], wanted);
            assert_memory_equal(got, wanted, (size_t)mix->n * sizeof *got);
        }
        stop(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_the_definition),
        cmocka_unit_test(rows_of_one_mind),
        cmocka_unit_test(no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
