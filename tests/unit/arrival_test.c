/* Weights on their way: every byte of what an op reads comes before the frontier passes the op, pieces that overtake
 * each other do not move it, and a piece that fails ends the waiting. Whoever keeps them there ends when he is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/residency.h"
#include "gguf/gguf.h"
#include "models/models.h"

#define MODELS HEARTH_TEST_DATA "/models/"

typedef struct fixture {
    hth_gguf *gguf;
    hth_program *program;
    hth_file_view file;
    hth_arrival arrival;
    atomic_int held;       /* the piece that waits until all others are there; -1: none */
    atomic_int others;     /* that are */
    atomic_bool too_early; /* the frontier moved past the piece that was held */
    int failing;           /* the piece that fails; -1: none */
} fixture;

static bool all_weights(const hth_program *program, hth_tensor_id id) {
    (void)program;
    (void)id;
    return true;
}

static void set_up(fixture *f, const char *path, uint64_t window, uint64_t piece) {
    const hth_recipe *recipe;
    hearth_error err = {0};
    const hth_arrival_order order = {all_weights, window, piece};
    memset(f, 0, sizeof *f);
    f->held = f->failing = -1;
    if (hth_gguf_open(path, &f->gguf, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(hth_recipe_find(f->gguf, &recipe, &err), HEARTH_OK);
    assert_int_equal(recipe->emit(f->gguf, &f->program, &err), HEARTH_OK);
    const hth_gguf_file *file = hth_gguf_file_at(f->gguf, 0);
    f->file = (hth_file_view){file->base, file->size};
    if (hth_arrival_plan(&f->arrival, f->program, &f->file, &order, &err) != HEARTH_OK) fail_msg("%s", err.text);
}

static void tear_down(fixture *f) {
    hth_arrival_end(&f->arrival);
    hth_arrival_end(&f->arrival); /* harmless */
    hth_program_free(&f->program);
    hth_gguf_close(&f->gguf);
}

/* Whether pieces 0..last cover bytes from..to. */
static bool covered(const hth_arrival *a, size_t last, uint64_t from, uint64_t to) {
    for (bool moved = true; from < to && moved;) {
        moved = false;
        for (size_t i = 0; i <= last; i++)
            if (a->pieces[i].from <= from && a->pieces[i].to > from) {
                from = a->pieces[i].to;
                moved = true;
            }
    }
    return from >= to;
}

/* The piece with which the frontier passes an op; the last one that is not there yet when it does. */
static size_t piece_of(const hth_arrival *a, int op) {
    size_t i = 0;
    while (i < a->count && a->pieces[i].ops <= op) i++;
    return i;
}

static void an_op_passes_when_all_it_reads_is_there(void **state) {
    static const char *const paths[] = {MODELS "llama-mixed.gguf", MODELS "tiny-qwen35moe-bf16.gguf",
                                        MODELS "tiny-gemma3-bf16.gguf"};
    static const uint64_t sizes[][2] = {{1, 4096}, {65536, 8192}, {300000, 4096}, {UINT64_C(1) << 40, 1 << 20}};
    (void)state;
    for (size_t m = 0; m < sizeof paths / sizeof *paths; m++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            fixture f;
            set_up(&f, paths[m], sizes[s][0], sizes[s][1]);
            const hth_arrival *a = &f.arrival;
            assert_int_equal(a->pieces[a->count - 1].ops, f.program->n_ops);
            for (size_t i = 0; i < a->count; i++) {
                assert_true(a->pieces[i].from < a->pieces[i].to && a->pieces[i].to <= f.file.size);
                assert_true(a->pieces[i].to - a->pieces[i].from <= sizes[s][1]);
                if (i) assert_true(a->pieces[i].ops >= a->pieces[i - 1].ops);
            }
            for (int op = 0; op < f.program->n_ops; op++)
                for (int k = 0; k < HTH_OP_WEIGHTS; k++) {
                    hth_tensor_id id = f.program->ops[op].weight[k];
                    if (id == HTH_NONE || f.program->tensors[id].class != HTH_WEIGHT) continue;
                    const hth_weight *w = &f.program->tensors[id].weight;
                    assert_true(op >= a->first_ops);
                    if (!covered(a, piece_of(a, op), w->offset, w->offset + w->bytes))
                        fail_msg("%s passes before %s is there", f.program->ops[op].site, f.program->tensors[id].name);
                }
            tear_down(&f);
        }
}

static hearth_status bring(void *context, const hth_piece *piece, hearth_error *err) {
    fixture *f = context;
    int i = (int)(piece - f->arrival.pieces), others = (int)f->arrival.count - 1;
    if (i == f->failing) {
        *err = (hearth_error){HEARTH_IO, "planted"};
        return HEARTH_IO;
    }
    if (i == atomic_load(&f->held)) {
        while (atomic_load(&f->others) < others) usleep(100);
        int64_t before = i ? f->arrival.pieces[i - 1].ops : f->arrival.first_ops;
        usleep(2000); /* whoever would move it wrongly has the time to */
        if (hth_frontier_reached(&f->arrival.frontier, before + 1)) atomic_store(&f->too_early, true);
    } else {
        atomic_fetch_add(&f->others, 1);
    }
    return HEARTH_OK;
}

static void pieces_that_overtake_do_not_move_the_frontier(void **state) {
    (void)state;
    for (int part = 0; part < 4; part++) {
        fixture f;
        hearth_error err = {0};
        set_up(&f, MODELS "llama-mixed.gguf", 65536, 16384);
        assert_true(f.arrival.count > 40);
        f.held = part * (int)(f.arrival.count - 1) / 3;
        assert_int_equal(hth_arrival_start(&f.arrival, 3, bring, &f, &err), HEARTH_OK);
        assert_true(hth_frontier_wait(&f.arrival.frontier, f.program->n_ops + 1));
        assert_false(atomic_load(&f.too_early));
        assert_int_equal(f.arrival.failure.status, HEARTH_OK);
        assert_int_equal(atomic_load(&f.arrival.arrived), f.arrival.bytes);
        tear_down(&f);
    }
}

static void a_piece_that_fails_ends_the_waiting(void **state) {
    (void)state;
    fixture f;
    hearth_error err = {0};
    set_up(&f, MODELS "llama-mixed.gguf", 65536, 16384);
    f.failing = 5;
    assert_int_equal(hth_arrival_start(&f.arrival, 2, bring, &f, &err), HEARTH_OK);
    assert_false(hth_frontier_wait(&f.arrival.frontier, f.program->n_ops + 1));
    assert_int_equal(f.arrival.failure.status, HEARTH_IO);
    assert_string_equal(f.arrival.failure.text, "planted");
    for (int op = 0; op <= f.program->n_ops; op++) /* those came that pieces without a gap made whole */
        assert_int_equal(hth_frontier_wait(&f.arrival.frontier, op),
                         op <= f.arrival.first_ops || op <= f.arrival.pieces[f.arrival.in_order - 1].ops);
    assert_true(atomic_load(&f.arrival.arrived) < f.arrival.bytes);
    tear_down(&f);
}

/* ---- keeping warm ---- */

static const hth_residency *kept; /* NULL: whoever populates is not looked at */
static atomic_int kept_pieces;

int __real_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice);

/* The keeper is held in its first piece until it is to end. */
int __wrap_madvise(void *at, size_t size, int advice) {
    enum { POPULATE_READ = 22 };
    if (advice == POPULATE_READ && kept && hth_frontier_reached(&kept->arrival.frontier, kept->arrival.all_ops + 1)) {
        atomic_fetch_add(&kept_pieces, 1);
        while (!hth_frontier_reached(&kept->keeper.end, 1)) usleep(100);
    }
    return __real_madvise(at, size, advice);
}

/* What a close waits for is a piece, not all that has to be read again. */
static void the_keeper_ends_in_the_middle(void **state) {
    (void)state;
    fixture f;
    hth_residency r;
    hearth_options *options;
    hearth_error err = {0};
    const hth_arrival_order order = {all_weights, 65536, 16384};
    set_up(&f, MODELS "llama-mixed.gguf", 65536, 16384);
    assert_int_equal(hearth_options_create(&options, &err), HEARTH_OK);
    assert_int_equal(hearth_options_set(options, "keep-warm", "1", &err), HEARTH_OK);
    assert_int_equal(hth_residency_create(&r, f.gguf, options, &err), HEARTH_OK);
    assert_int_equal(hth_arrival_plan(&r.arrival, f.program, r.files, &order, &err), HEARTH_OK);
    r.may_ask = false; /* what the page cache has does not count */
    kept = &r;
    assert_int_equal(hth_residency_start(&r, 1, &err), HEARTH_OK);
    hth_frontier_wait(&r.arrival.frontier, r.arrival.all_ops + 1);
    assert_int_equal(madvise((void *)(uintptr_t)f.file.base, f.file.size, MADV_DONTNEED), 0);
    while (atomic_load(&kept_pieces) == 0) usleep(1000);
    hth_residency_stop(&r);
    kept = NULL;
    assert_int_equal(atomic_load(&kept_pieces), 1);
    hth_residency_free(&r);
    hearth_options_free(&options);
    tear_down(&f);
}

static void a_wait_may_end_before_the_frontier_comes(void **state) {
    (void)state;
    hth_frontier f;
    hth_frontier_init(&f);
    assert_true(hth_frontier_wait_ms(&f, 0, 0));
    assert_false(hth_frontier_wait_ms(&f, 1, 5));
    hth_frontier_advance(&f, 3);
    hth_frontier_advance(&f, 2); /* never back */
    assert_true(hth_frontier_wait_ms(&f, 3, 0));
    assert_true(hth_frontier_wait(&f, 3));
    hth_frontier_cut(&f);
    hth_frontier_advance(&f, 9);
    assert_true(hth_frontier_wait(&f, 3));
    assert_false(hth_frontier_wait(&f, 4));
    hth_frontier_destroy(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_op_passes_when_all_it_reads_is_there),
        cmocka_unit_test(pieces_that_overtake_do_not_move_the_frontier),
        cmocka_unit_test(a_piece_that_fails_ends_the_waiting),
        cmocka_unit_test(the_keeper_ends_in_the_middle),
        cmocka_unit_test(a_wait_may_end_before_the_frontier_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
