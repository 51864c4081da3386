/* Recurrent state on the CPU backend: a program of convolutions and delta rules and nothing else, run through the
 * backend itself, so that positions may be as far as they like. A checkpoint equals the state of a pass that ended at
 * its mark, bit for bit, and leaving it changes nothing.
 *
 * tests/mutation has the defects that it was seen red with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/executable.h"
#include "program/build.h"

enum { KEY_HEADS = 2, VALUE_HEADS = 4, DK = 20, DV = 33, TAPS = 4, VOCAB = 11 };
enum { VALUES = VALUE_HEADS * DV, CHANNELS = 2 * KEY_HEADS * DK + VALUES }; /* three pieces of channels and a bit */
enum { ROWS = 24, SLOTS = 4, MARKS = 40, SEQUENCE = 20 };

/* ---- The program ------------------------------------------------------------------------------------------------- */

static float weights[200000];

static uint32_t random_state = 1;
static float random_float(void) {
    random_state = random_state * 1664525 + 1013904223;
    return (float)(random_state >> 8) * 0x1p-23f - 1;
}

typedef struct model {
    hth_builder *b;
    int64_t used; /* of weights */
} model;

/* Names are literals, and unique. */
static hth_tensor_id weight(model *m, const char *name, int64_t d0, int64_t d1) {
    int64_t n = d0 * (d1 ? d1 : 1), at = m->used;
    m->used += n;
    assert_true(m->used <= (int64_t)(sizeof weights / sizeof *weights));
    for (int64_t i = at; i < m->used; i++) weights[i] = random_float() * (d1 ? 0.3f : 1);
    return hth_build_weight(m->b, name, HTH_F32, d1 ? 2 : 1, (const int64_t[]){d0, d1},
                            (hth_weight){0, (uint64_t)at * sizeof(float), (uint64_t)n * sizeof(float), 0});
}

static hth_tensor_id layer(model *m, int i, hth_tensor_id x, int64_t taps) {
    hth_build_scope(m->b, "blk.%d.", i);
    hth_tensor_id u = hth_emit_linear(m->b, "qkv", x, weight(m, "qkv", VALUES, CHANNELS), HTH_NONE);
    hth_delta_operands o;
    o.alpha = hth_emit_linear(m->b, "alpha", x, weight(m, "alpha", VALUES, VALUE_HEADS), HTH_NONE);
    o.b = hth_emit_linear(m->b, "beta", x, weight(m, "beta", VALUES, VALUE_HEADS), HTH_NONE);
    o.a = weight(m, "a", VALUE_HEADS, 0);
    o.dt = weight(m, "dt", VALUE_HEADS, 0);
    hth_tensor_id ring = hth_build_state(m->b, "ring", 2, (const int64_t[]){CHANNELS, taps - 1});
    o.u = hth_emit_conv_ring(m->b, "conv", u, weight(m, "taps", taps, CHANNELS), ring);
    hth_tensor_id state = hth_build_state(m->b, "state", 3, (const int64_t[]){DV, DK, VALUE_HEADS});
    hth_delta_imm imm = {KEY_HEADS, VALUE_HEADS, DK, DV, i == 0, 1e-6f};
    return hth_emit_delta_rule(m->b, "delta", &o, state, &imm);
}

static hth_program *make_program(int64_t taps) {
    model m = {0};
    hth_program *p;
    hearth_error err;
    random_state = 1;
    assert_int_equal(hth_builder_create("recurrent", &m.b, &err), HEARTH_OK);
    hth_tensor_id table = weight(&m, "embd", VALUES, VOCAB);
    hth_tensor_id x = hth_emit_embed(m.b, "embd", hth_build_input(m.b, HTH_INPUT_TOKENS), table, 1);
    for (int i = 0; i < 2; i++) x = layer(&m, i, x, taps);
    hth_build_scope_end(m.b);
    x = hth_emit_select(m.b, "select", x);
    x = hth_emit_linear(m.b, "logits", x, weight(&m, "logits", VALUES, VOCAB), HTH_NONE);
    hth_build_facts(m.b, 2, VALUES, INT64_C(1) << 40);
    if (hth_builder_finish(&m.b, x, &p, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return p;
}

/* ---- The machine ------------------------------------------------------------------------------------------------- */

typedef struct machine {
    const hth_backend_type *type;
    hth_backend *backend;
    hth_program *program;
    hth_file_view file;
    hth_executable *exe;
} machine;

static hearth_status lower(machine *m, hearth_error *err) {
    hth_limits limits = {.extents = {{1, ROWS, ROWS, SLOTS, MARKS}}, .outputs = ROWS, .context = 1, .kv = HTH_F32};
    return m->type->lower(m->backend, m->program, &m->file, &limits, &m->exe, err);
}

static machine start(int threads, const char *kernels) {
    machine m = {.file = {(const unsigned char *)weights, sizeof weights}, .program = make_program(TAPS)};
    hearth_error err;
    hth_backend_config config = {.threads = threads, .kernels = kernels};
    assert_int_equal(hth_backend_find("cpu", &m.type, &err), HEARTH_OK);
    if (m.type->open(&config, &m.backend, &err) != HEARTH_OK) fail_msg("%s", err.text);
    if (lower(&m, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(m.type->commit(m.exe, NULL, &err), HEARTH_OK);
    assert_int_equal(m.type->link(m.exe, &err), HEARTH_OK);
    assert_int_equal(m.type->warm(m.exe, &err), HEARTH_OK);
    return m;
}

static void stop(machine *m) {
    m->type->free(&m->exe);
    m->type->close(&m->backend);
    hth_program_free(&m->program);
}

static unsigned char *slot_at(const machine *m, int slot) {
    return m->exe->state_base + (uint64_t)slot * m->exe->slot_bytes;
}

static unsigned char *mark_at(const machine *m, int slot) {
    return m->exe->mark_base + (uint64_t)slot * m->exe->slot_bytes;
}

/* ---- Passes ------------------------------------------------------------------------------------------------------ */

/* A sequence's tokens from `from` to `to`; token i of any sequence stands at position base + i. */
typedef struct part {
    int stream, slot;
    int64_t base, from, to;
} part;

static int32_t token_of(int stream, int64_t i) {
    return (int32_t)((stream * 7 + i * i + 3 * i) % VOCAB);
}

/* Run the parts as one pass with these marks, and all rows' logits to `logits` where not NULL. */
static void run(machine *m, int parts, const part *p, int64_t n_marks, const hth_pass_mark *marks, float *logits) {
    int32_t tokens[ROWS], out_rows[ROWS], slots[SLOTS];
    int64_t positions[ROWS], seq_rows[SLOTS + 1] = {0}, rows = 0;
    hth_pass_fault faults[SLOTS];
    const int32_t *tables[SLOTS] = {NULL};
    hearth_error err;
    for (int s = 0; s < parts; s++) {
        for (int64_t i = p[s].from; i < p[s].to; i++, rows++) {
            assert_true(rows < ROWS);
            tokens[rows] = token_of(p[s].stream, i);
            positions[rows] = p[s].base + i;
            out_rows[rows] = (int32_t)rows;
        }
        slots[s] = p[s].slot;
        seq_rows[s + 1] = rows;
    }
    hth_pass pass = {.rows = rows,
                     .outs = logits ? rows : 0,
                     .seqs = parts,
                     .tokens = tokens,
                     .positions = positions,
                     .seq_rows = seq_rows,
                     .block_table = tables,
                     .state_slots = slots,
                     .marks = marks,
                     .n_marks = n_marks,
                     .faults = faults,
                     .out_rows = out_rows};
    assert_int_equal(m->type->run(m->exe, &pass, &err), HEARTH_OK);
    if (logits) memcpy(logits, m->type->logits(m->exe), (size_t)rows * VOCAB * sizeof *logits);
}

/* What a slot holds before a sequence begins: something finite, for one that does not begin at position 0. */
static void fill_slot(const machine *m, int slot) {
    float *state = (float *)(void *)slot_at(m, slot);
    random_state = 77;
    for (uint64_t i = 0; i < m->exe->slot_bytes / sizeof(float); i++) state[i] = random_float();
}

/* The states of a stream after 0, 1, … SEQUENCE tokens, row by row: state p at p * slot_bytes. And its logits. */
typedef struct history {
    unsigned char *states;
    float logits[SEQUENCE * VOCAB];
} history;

static history walk(machine *m, int stream, int64_t base) {
    history h = {.states = malloc((SEQUENCE + 1) * m->exe->slot_bytes)};
    size_t bytes = m->exe->slot_bytes;
    fill_slot(m, 0);
    if (base == 0) memset(h.states, 0, bytes);
    else memcpy(h.states, slot_at(m, 0), bytes);
    for (int64_t i = 0; i < SEQUENCE; i++) {
        run(m, 1, &(part){stream, 0, base, i, i + 1}, 0, NULL, h.logits + i * VOCAB);
        memcpy(h.states + (size_t)(i + 1) * bytes, slot_at(m, 0), bytes);
    }
    return h;
}

/* All bytes of a state but those between two tensors, which nothing writes. */
static void expect_state(const machine *m, const unsigned char *got, const history *h, int64_t p, const char *what) {
    const unsigned char *want = h->states + (size_t)p * m->exe->slot_bytes;
    for (int i = 0; i < m->exe->n_states; i++) {
        const hth_state_place *s = &m->exe->states[i];
        if (memcmp(got + s->offset, want + s->offset, s->floats * sizeof(float)) != 0)
            fail_msg("%s: %s after %d tokens differs", what, m->program->tensors[s->tensor].name, (int)p);
    }
}

static void expect_logits(const float *got, const history *h, int64_t from, int64_t to) {
    assert_memory_equal(got, h->logits + from * VOCAB, (size_t)((to - from) * VOCAB) * sizeof *got);
}

static const int thread_counts[] = {1, 2, 3, 5};

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

/* A mark before every row and after the last, wherever the sequence starts: before the ring is full, adjacent rows, and
 * positions whose lower 32 or 31 bits are zero, which are not position 0. */
static void marks_at_every_row(void **state) {
    (void)state;
    static const int64_t bases[] = {
        0, 7, (INT64_C(1) << 31) - 5, INT64_C(1) << 31, (INT64_C(1) << 32) - 5, INT64_C(1) << 32, INT64_C(3) << 32};
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        machine m = start(thread_counts[t], "auto");
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            history h = walk(&m, 3, bases[b]);
            hth_pass_mark marks[SEQUENCE + 1];
            float logits[SEQUENCE * VOCAB];
            for (int i = 0; i <= SEQUENCE; i++) marks[i] = (hth_pass_mark){0, (i * 5 + 2) % (SEQUENCE + 1), i};
            memset(m.exe->mark_base, 0xFF, MARKS * m.exe->slot_bytes);
            fill_slot(&m, 2);
            run(&m, 1, &(part){3, 2, bases[b], 0, SEQUENCE}, SEQUENCE + 1, marks, logits);
            for (int i = 0; i <= SEQUENCE; i++) expect_state(&m, mark_at(&m, marks[i].slot), &h, i, "mark");
            expect_state(&m, slot_at(&m, 2), &h, SEQUENCE, "state");
            expect_logits(logits, &h, 0, SEQUENCE);
            free(h.states);
        }
        stop(&m);
    }
}

/* A pass that ends anywhere leaves the state, and the mark at its end, that a longer pass leaves there. */
static void any_cut(void **state) {
    (void)state;
    machine m = start(2, "auto");
    history h = walk(&m, 1, 0);
    for (int64_t cut = 1; cut < SEQUENCE; cut++) {
        float logits[SEQUENCE * VOCAB];
        hth_pass_mark first[] = {{0, 0, 0}, {0, 1, cut / 2}, {0, 2, cut}},
                      second[] = {{0, 3, 0}, {0, 4, SEQUENCE - cut}};
        if (cut < 2) first[1].row = 1;
        memset(slot_at(&m, 1), 0xFF, m.exe->slot_bytes); /* NaN: nothing of it may stay */
        run(&m, 1, &(part){1, 1, 0, 0, cut}, 3, first, logits);
        run(&m, 1, &(part){1, 1, 0, cut, SEQUENCE}, 2, second, logits + cut * VOCAB);
        expect_state(&m, mark_at(&m, 0), &h, 0, "mark");
        expect_state(&m, mark_at(&m, 1), &h, first[1].row, "mark");
        expect_state(&m, mark_at(&m, 2), &h, cut, "mark");
        expect_state(&m, mark_at(&m, 3), &h, cut, "mark");
        expect_state(&m, mark_at(&m, 4), &h, SEQUENCE, "mark");
        expect_logits(logits, &h, 0, SEQUENCE);
    }
    free(h.states);
    stop(&m);
}

/* Sequences beside each other, each at its own place, keep what each has alone; a slot that is not in the pass, or a
 * checkpoint that is no mark's, keeps its bytes. */
static void several_sequences(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        machine m = start(thread_counts[t], "auto");
        history h[3];
        for (int s = 0; s < 3; s++) h[s] = walk(&m, s, 0);
        memset(m.exe->mark_base, 0x55, MARKS * m.exe->slot_bytes);
        memset(slot_at(&m, 1), 0x55, m.exe->slot_bytes);
        run(&m, 1, &(part){2, 3, 0, 0, 13}, 0, NULL, NULL); /* what the third has behind it */
        const part parts[] = {{0, 2, 0, 0, 1}, {1, 0, 0, 0, 11}, {2, 3, 0, 13, SEQUENCE}};
        const hth_pass_mark marks[] = {{0, 7, 0}, {0, 3, 1}, {2, 9, 12}, {2, 1, 13}, {2, 0, 19}};
        float logits[19 * VOCAB];
        run(&m, 3, parts, 5, marks, logits);
        expect_state(&m, mark_at(&m, 7), &h[0], 0, "mark");
        expect_state(&m, mark_at(&m, 3), &h[0], 1, "mark");
        expect_state(&m, mark_at(&m, 9), &h[2], 13, "mark");
        expect_state(&m, mark_at(&m, 1), &h[2], 14, "mark");
        expect_state(&m, mark_at(&m, 0), &h[2], SEQUENCE, "mark");
        for (int s = 0; s < 3; s++) expect_state(&m, slot_at(&m, parts[s].slot), &h[s], parts[s].to, "state");
        for (size_t i = 0; i < m.exe->slot_bytes; i++) {
            assert_int_equal(slot_at(&m, 1)[i], 0x55);
            assert_int_equal(mark_at(&m, 2)[i], 0x55);
        }
        expect_logits(logits, &h[0], 0, 1);
        expect_logits(logits + VOCAB, &h[1], 0, 11);
        expect_logits(logits + 12 * VOCAB, &h[2], 13, SEQUENCE);
        for (int s = 0; s < 3; s++) free(h[s].states);
        stop(&m);
    }
}

/* Going back to a mark twice gives the same bits twice, those of never having left. */
static void back_and_again(void **state) {
    (void)state;
    machine m = start(2, "auto");
    history h = walk(&m, 5, 0);
    const hth_pass_mark mark = {0, 6, 8};
    run(&m, 1, &(part){5, 1, 0, 0, 14}, 1, &mark, NULL);
    for (int n = 0; n < 2; n++) {
        float logits[SEQUENCE * VOCAB];
        m.type->restore(m.exe, 6, 1);
        run(&m, 1, &(part){5, 1, 0, 8, SEQUENCE}, 0, NULL, logits);
        expect_state(&m, slot_at(&m, 1), &h, SEQUENCE, "state");
        expect_logits(logits, &h, 8, SEQUENCE);
        run(&m, 1, &(part){2, 1, 0, 0, 9}, 0, NULL, NULL); /* something else in its place */
    }
    free(h.states);
    stop(&m);
}

/* Every tier has the reference's states, and a warm pass leaves none of its own. */
static void tiers_and_warm(void **state) {
    (void)state;
    machine ref = start(1, "ref"), best = start(3, "auto");
    hearth_error err;
    assert_int_equal(best.type->warm(best.exe, &err), HEARTH_OK);
    history a = walk(&ref, 4, 0), b = walk(&best, 4, 0);
    for (int i = 0; i <= SEQUENCE; i++) expect_state(&ref, b.states + (size_t)i * ref.exe->slot_bytes, &a, i, "tiers");
    assert_memory_equal(a.logits, b.logits, sizeof a.logits);
    free(a.states);
    free(b.states);
    stop(&ref);
    stop(&best);
}

/* More taps than the kernels take are refused when the program is lowered. */
static void too_many_taps(void **state) {
    (void)state;
    machine m = start(1, "auto");
    hearth_error err;
    m.type->free(&m.exe);
    hth_program_free(&m.program);
    m.program = make_program(HTH_CONV_TAPS);
    assert_int_equal(lower(&m, &err), HEARTH_OK);
    m.type->free(&m.exe);
    hth_program_free(&m.program);
    m.program = make_program(HTH_CONV_TAPS + 1);
    assert_int_equal(lower(&m, &err), HEARTH_UNSUPPORTED);
    assert_string_equal(err.text, "blk.0.conv: taps has 17 taps, at most 16 are supported");
    stop(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_at_every_row), cmocka_unit_test(any_cut),        cmocka_unit_test(several_sequences),
        cmocka_unit_test(back_and_again),     cmocka_unit_test(tiers_and_warm), cmocka_unit_test(too_many_taps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
