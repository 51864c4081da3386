/* How much a pass works, for every row count: counted in the linears, which are nearly all of it. A row more costs the
 * same products wherever it comes, no count falls off a cliff, and each weight is read once a pass: by a mixture of
 * experts too, whatever the number of rows that an expert has. And what the backend says a pass costs is what its
 * kernels are asked for, and what attention sees position by position: seen red with a window one position longer, and
 * with an expert's rows counted once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/cpu/executable.h"
#include "gguf/gguf.h"
#include "models/models.h"

enum { ROWS = 520, BLOCKS = (ROWS + 63) / 64 };

/* ---- Kernels that count ------------------------------------------------------------------------------------------ */

static _Atomic int64_t products; /* of a column and a row */
static _Atomic int64_t bytes;    /* of weights, for each call anew */
static _Atomic int64_t ops;      /* 2 a multiply-add */

static void count(const hth_linear *a, int64_t columns, int64_t rows) {
    products += columns * rows;
    bytes += columns * a->row_bytes;
    ops += 2 * columns * rows * a->k;
}

#define COUNTED(dtype)                                                                                                 \
    static hth_linear_fn *plain_##dtype;                                                                               \
    static void counted_##dtype(const hth_linear *a, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch) {  \
        count(a, c1 - c0, r1 - r0);                                                                                    \
        plain_##dtype(a, c0, c1, r0, r1, scratch);                                                                     \
    }
COUNTED(F32)
COUNTED(BF16)
COUNTED(Q4_0)
COUNTED(Q4_1)
COUNTED(Q6_K)
COUNTED(Q8_0)

static void count_linears(hth_kernels *k) {
#define COUNT(dtype)                                                                                                   \
    plain_##dtype = k->linear[HTH_##dtype];                                                                            \
    k->linear[HTH_##dtype] = counted_##dtype;
    COUNT(F32)
    COUNT(BF16)
    COUNT(Q4_0)
    COUNT(Q4_1)
    COUNT(Q6_K)
    COUNT(Q8_0)
#undef COUNT
}

/* ---- A model on the backend -------------------------------------------------------------------------------------- */

typedef struct machine {
    hth_gguf *gguf;
    hth_file_view file;
    hth_program *program;
    const hth_backend_type *type;
    hth_backend *backend;
    hth_executable *exe;
} machine;

static machine start(const char *path, int threads) {
    machine m = {0};
    hearth_error err = {0};
    const hth_recipe *recipe;
    hth_backend_config config = {.threads = threads, .kernels = "auto"};
    hth_limits limits = {
        .extents = {{1, ROWS, 1, 1, 0}}, .outputs = 1, .blocks = BLOCKS, .context = ROWS, .kv = HTH_F16};
    if (hth_gguf_open(path, &m.gguf, &err) != HEARTH_OK) fail_msg("%s", err.text);
    const hth_gguf_file *f = hth_gguf_file_at(m.gguf, 0);
    m.file = (hth_file_view){f->base, f->size};
    if (hth_recipe_find(m.gguf, &recipe, &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (recipe->emit(m.gguf, &m.program, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(hth_backend_find("cpu", &m.type, &err), HEARTH_OK);
    if (m.type->open(&config, &m.backend, &err) != HEARTH_OK) fail_msg("%s", err.text);
    count_linears(&m.backend->kernels);
    if (m.type->lower(m.backend, m.program, &m.file, &limits, &m.exe, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(m.type->commit(m.exe, NULL, &err), HEARTH_OK);
    assert_int_equal(m.type->link(m.exe, &err), HEARTH_OK);
    return m;
}

static void stop(machine *m) {
    m->type->free(&m->exe);
    m->type->close(&m->backend);
    hth_program_free(&m->program);
    hth_gguf_close(&m->gguf);
}

static hth_work attention_so_far(const machine *m) {
    hth_work kinds[HTH_KINDS];
    size_t count_of_kinds = m->type->work(m->exe, false, kinds, HTH_KINDS);
    for (size_t i = 0; i < count_of_kinds; i++)
        if (kinds[i].class == HTH_WORK_ATTENTION) return kinds[i];
    fail_msg("no attention");
    return kinds[0];
}

typedef struct work {
    int64_t products, bytes;
} work;

/* What the backend says that linears and experts cost so far. */
static void stated(const machine *m, int64_t *bytes_stated, int64_t *ops_stated) {
    hth_work kinds[HTH_KINDS];
    size_t count_of_kinds = m->type->work(m->exe, false, kinds, HTH_KINDS);
    *bytes_stated = *ops_stated = 0;
    for (size_t i = 0; i < count_of_kinds; i++)
        if (kinds[i].class == HTH_WORK_LINEAR_INT8 || kinds[i].class == HTH_WORK_LINEAR_FLOAT) {
            *bytes_stated += (int64_t)kinds[i].bytes;
            *ops_stated += (int64_t)kinds[i].ops;
        }
}

/* What one pass of some rows of one sequence, from position `first` on, works. */
static work run(machine *m, int64_t first, int64_t rows) {
    static int32_t tokens[ROWS], blocks[BLOCKS];
    static int64_t positions[ROWS];
    for (int32_t i = 0; i < ROWS; i++) {
        tokens[i] = (int32_t)((i * 37 + 11) % m->program->n_vocab);
        positions[i] = first + i;
    }
    for (int32_t i = 0; i < BLOCKS; i++) blocks[i] = i;
    const int64_t seq_rows[2] = {0, rows};
    const int32_t *table = blocks, slot = 0, out_row = (int32_t)rows - 1;
    hth_pass_fault fault;
    hearth_error err = {0};
    hth_pass pass = {.rows = rows,
                     .outs = 1,
                     .seqs = 1,
                     .tokens = tokens,
                     .positions = positions,
                     .seq_rows = seq_rows,
                     .block_table = &table,
                     .state_slots = &slot,
                     .faults = &fault,
                     .out_rows = &out_row};
    int64_t bytes_before, ops_before, bytes_after, ops_after;
    products = bytes = ops = 0;
    stated(m, &bytes_before, &ops_before);
    assert_int_equal(m->type->run(m->exe, &pass, &err), HEARTH_OK);
    stated(m, &bytes_after, &ops_after);
    assert_int_equal(ops_after - ops_before, ops);
    assert_int_equal(bytes_after - bytes_before, bytes);
    assert_int_equal(fault.op, -1);
    return (work){products, bytes};
}

/* What the file's matrices weigh: each read once, every expert among them. */
static int64_t all_bytes(const hth_program *p) {
    int64_t sum = 0;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < 3; k++) {
            hth_tensor_id id = p->ops[i].weight[k];
            if (id == HTH_NONE || (p->ops[i].opcode != HTH_OP_LINEAR && p->ops[i].opcode != HTH_OP_EXPERTS)) continue;
            if (p->ops[i].opcode == HTH_OP_LINEAR && k > 0) continue;
            sum += (int64_t)p->tensors[id].weight.bytes;
        }
    return sum;
}

/* Keys and values that `rows` rows after `depth` tokens see, position by position and row by row. */
static void check_attention(machine *m, int64_t depth, int64_t rows) {
    int64_t bytes_seen = 0, ops_seen = 0;
    for (int i = 0; i < m->program->n_ops; i++) {
        if (m->program->ops[i].opcode != HTH_OP_ATTENTION) continue;
        const hth_attention_imm *imm = &m->program->ops[i].imm.attention;
        const int64_t window = imm->window > 0 ? imm->window : INT64_MAX;
        for (int64_t j = 0; j < depth + rows; j++) {
            int64_t queries = 0;
            for (int64_t p = depth > j ? depth : j; p < depth + rows; p++) queries += p - j < window;
            if (queries > 0) bytes_seen += imm->kv_heads * (imm->dk + imm->dv) * 2;
            ops_seen += queries * imm->heads * (imm->dk + imm->dv) * 2;
        }
    }
    run(m, 0, depth);
    const hth_work before = attention_so_far(m);
    run(m, depth, rows);
    const hth_work after = attention_so_far(m);
    assert_int_equal(after.bytes - before.bytes, bytes_seen);
    assert_int_equal(after.ops - before.ops, ops_seen);
}

static bool has_experts(const hth_program *p) {
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].opcode == HTH_OP_EXPERTS) return true;
    return false;
}

static void check_model(const char *path, int threads) {
    machine m = start(path, threads);
    const bool experts = has_experts(m.program);
    const int64_t all = all_bytes(m.program);
    const work one = run(&m, 0, 1), two = run(&m, 0, 2);
    const int64_t row = two.products - one.products;
    assert_true(row > 0);
    for (int64_t rows = 1; rows <= ROWS; rows += rows == 130 ? 370 : 1) {
        work w = run(&m, 0, rows);
        if (w.products != one.products + (rows - 1) * row)
            fail_msg("%s: %lld rows make %lld products, not %lld + %lld * %lld", path, (long long)rows,
                     (long long)w.products, (long long)one.products, (long long)rows - 1, (long long)row);
        if (experts ? w.bytes > all : w.bytes != all)
            fail_msg("%s: %lld rows read %lld bytes of weights of %lld", path, (long long)rows, (long long)w.bytes,
                     (long long)all);
    }
    if (experts) assert_true(one.bytes < all); /* a row reads its own experts only */
    check_attention(&m, 1, 1);
    check_attention(&m, 7, 30);
    check_attention(&m, 130, 1);
    check_attention(&m, 100, 200);
    stop(&m);
}

static void test_work(void **state) {
    (void)state;
    static const char *const models[] = {"tiny-gemma3-bf16", "tiny-qwen3moe-bf16", "tiny-qwen35moe-bf16", "q35-q4_0"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            char path[512];
            snprintf(path, sizeof path, "%s/models/%s.gguf", HEARTH_TEST_DATA, models[i]);
            check_model(path, threads);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
