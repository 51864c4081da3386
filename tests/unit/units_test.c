/* Row-wise ops of recurrent layers on the CPU backend, against their formulas: parts of groups, gates as wide as a row
 * or one a row, norms of heads with a gate. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "program/build.h"

enum { WIDTH = 30, VOCAB = 7, ROWS = 5, HEAD = 5 };

static struct { float embd[VOCAB][WIDTH], single[1][WIDTH], norm[HEAD]; } weights;

static float identity[WIDTH * WIDTH];

static hth_tensor_id weight(hth_builder *b, const char *name, const void *at, int64_t d0, int64_t d1) {
    hth_weight where = {0, (uint64_t)((const char *)at - (const char *)&weights),
                        (uint64_t)(d0 * (d1 ? d1 : 1)) * sizeof(float), 0};
    return hth_build_weight(b, name, HTH_F32, d1 ? 2 : 1, (const int64_t[]){d0, d1}, where);
}

/* What the op under test makes of x, an embedding row each; it is the program's logits. */
typedef hth_tensor_id op_fn(hth_builder *b, hth_tensor_id x);

static hth_program *make_program(op_fn *op) {
    hth_builder *b;
    hth_program *p;
    hearth_error err;
    assert_int_equal(hth_builder_create("units", &b, &err), HEARTH_OK);
    hth_tensor_id table = weight(b, "embd", weights.embd, WIDTH, VOCAB);
    hth_tensor_id x = hth_emit_embed(b, "embd", hth_build_input(b, HTH_INPUT_TOKENS), table, 1);
    x = hth_emit_select(b, "out", op(b, x));
    /* A linear gives the logits, as in every model: the identity. */
    int64_t n = hth_build_tensor(b, x)->dims[0].n;
    memset(identity, 0, sizeof identity);
    for (int64_t i = 0; i < n; i++) identity[i * n + i] = 1;
    hth_weight where = {1, 0, (uint64_t)(n * n) * sizeof(float), 0};
    hth_tensor_id one = hth_build_weight(b, "one", HTH_F32, 2, (const int64_t[]){n, n}, where);
    x = hth_emit_linear(b, "logits", x, one, HTH_NONE);
    hth_build_facts(b, 1, WIDTH, 64);
    if (hth_builder_finish(&b, x, &p, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return p;
}

/* Run the op over rows of tokens 0, 1, …: `out` gets them one after the other. */
static void run(op_fn *op, int threads, float *out) {
    const hth_backend_type *type;
    hth_backend *backend;
    hth_executable *exe;
    hearth_error err;
    hth_program *p = make_program(op);
    const hth_file_view files[] = {{(const unsigned char *)&weights, sizeof weights},
                                   {(const unsigned char *)identity, sizeof identity}};
    hth_backend_config config = {.threads = threads, .kernels = "auto"};
    hth_limits limits = {.extents = {{1, ROWS, ROWS, 1, 1}}, .outputs = ROWS, .context = 64, .kv = HTH_F32};
    assert_int_equal(hth_backend_find("cpu", &type, &err), HEARTH_OK);
    assert_int_equal(type->open(&config, &backend, &err), HEARTH_OK);
    if (type->lower(backend, p, files, &limits, &exe, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(type->commit(exe, NULL, &err), HEARTH_OK);
    assert_int_equal(type->link(exe, &err), HEARTH_OK);
    assert_int_equal(type->warm(exe, &err), HEARTH_OK);
    const int32_t rows[ROWS] = {0, 1, 2, 3, 4}, slot = 0, *no_blocks = NULL;
    const int64_t positions[ROWS] = {0, 1, 2, 3, 4}, seq_rows[] = {0, ROWS};
    hth_pass_fault fault;
    hth_pass pass = {ROWS, ROWS, 1, rows, positions, seq_rows, &no_blocks, &slot, NULL, 0, &fault, rows, NULL, 0};
    assert_int_equal(type->run(exe, &pass, &err), HEARTH_OK);
    memcpy(out, type->logits(exe), (size_t)(ROWS * p->n_vocab) * sizeof *out);
    type->free(&exe);
    type->close(&backend);
    hth_program_free(&p);
}

static double sigmoid(float g) {
    return 1 / (1 + exp(-(double)g));
}

static void expect_near(float got, double want) {
    if (!(fabs((double)got - want) <= 2e-6 * (1 + fabs(want)))) fail_msg("%g, wanted %g", (double)got, want);
}

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < VOCAB * WIDTH; i++) weights.embd[i / WIDTH][i % WIDTH] = (float)((i * 37) % 101) / 20 - 2.5f;
    for (int i = 0; i < WIDTH; i++) weights.single[0][i] = (float)((i * 13) % 11) / 40 - 0.125f;
    for (int i = 0; i < HEAD; i++) weights.norm[i] = 1 + (float)i / 8;
    return 0;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static hth_tensor_id slice(hth_builder *b, hth_tensor_id x) {
    return hth_emit_slice(b, "slice", x, 10, 3, 4);
}

static hth_tensor_id gate(hth_builder *b, hth_tensor_id x) {
    hth_tensor_id low = hth_emit_slice(b, "low", x, WIDTH, 0, 15), high = hth_emit_slice(b, "high", x, WIDTH, 15, 15);
    return hth_emit_gate(b, "gate", low, high);
}

static hth_tensor_id single_gate(hth_builder *b, hth_tensor_id x) {
    hth_tensor_id g = hth_emit_linear(b, "single", x, weight(b, "w", weights.single, WIDTH, 1), HTH_NONE);
    return hth_emit_gate(b, "gate", x, g);
}

static hth_tensor_id gated_norm(hth_builder *b, hth_tensor_id x) {
    hth_tensor_id low = hth_emit_slice(b, "low", x, WIDTH, 0, 15), high = hth_emit_slice(b, "high", x, WIDTH, 15, 15);
    return hth_emit_gated_norm(b, "norm", low, high, weight(b, "w", weights.norm, HEAD, 0), HEAD, 1e-6f);
}

static void slices(void **state) {
    (void)state;
    float out[ROWS * WIDTH];
    run(slice, 2, out);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 12; i++) assert_true(out[r * 12 + i] == weights.embd[r][i / 4 * 10 + 3 + i % 4]);
}

static void gates(void **state) {
    (void)state;
    float out[ROWS * WIDTH];
    run(gate, 2, out);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 15; i++)
            expect_near(out[r * 15 + i], (double)weights.embd[r][i] * sigmoid(weights.embd[r][15 + i]));
}

static void one_gate_a_row(void **state) {
    (void)state;
    float out[ROWS * WIDTH];
    run(single_gate, 1, out);
    for (int r = 0; r < ROWS; r++) {
        double g = 0;
        for (int i = 0; i < WIDTH; i++) g += (double)weights.embd[r][i] * (double)weights.single[0][i];
        for (int i = 0; i < WIDTH; i++) expect_near(out[r * WIDTH + i], (double)weights.embd[r][i] * sigmoid((float)g));
    }
}

static void gated_norms(void **state) {
    (void)state;
    float out[ROWS * WIDTH];
    run(gated_norm, 2, out);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 15; i++) {
            double squares = 0, z = (double)weights.embd[r][15 + i];
            for (int j = i / HEAD * HEAD; j < (i / HEAD + 1) * HEAD; j++)
                squares += (double)weights.embd[r][j] * (double)weights.embd[r][j];
            double normed = (double)weights.embd[r][i] / sqrt(squares / HEAD + 1e-6) * (double)weights.norm[i % HEAD];
            expect_near(out[r * 15 + i], normed * z * sigmoid((float)z));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),
        cmocka_unit_test(gates),
        cmocka_unit_test(one_gate_a_row),
        cmocka_unit_test(gated_norms),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
