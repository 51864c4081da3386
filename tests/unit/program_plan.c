/* The memory plan: random programs whose live tensors never overlap and whose arena is close to what must be live at
 * once, and damaged plans that hth_plan_is_valid tells from good ones. The seed is printed and is the program's
 * argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/build.h"
#include "program/plan.h"

static uint64_t seed = 1;

static uint64_t random_below(uint64_t n) {
    seed += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = seed;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % n;
}

/* ---- Random programs --------------------------------------------------------------------------------------------- */

#define MAX_OPS 40

typedef struct growing {
    hth_builder *b;
    hth_tensor_id made[MAX_OPS + 8]; /* rows to choose operands from */
    int n_made, n_ops;
    char site[32];
} growing;

static const char *next_site(growing *g) {
    snprintf(g->site, sizeof g->site, "op%d", g->n_ops++);
    return g->site;
}

static hth_tensor_id weight(growing *g, int n_dims, int64_t in, int64_t out) {
    char name[32];
    snprintf(name, sizeof name, "w%d.%d", g->n_ops, n_dims);
    return hth_build_weight(g->b, name, HTH_F32, n_dims, (const int64_t[]){in, out}, (hth_weight){0});
}

static hth_tensor_id keep(growing *g, hth_tensor_id id) {
    assert_int_not_equal(id, HTH_NONE);
    return g->made[g->n_made++] = id;
}

static int64_t width(const growing *g, hth_tensor_id id) {
    return hth_build_tensor(g->b, id)->dims[0].n;
}
static hth_symbol symbol(const growing *g, hth_tensor_id id) {
    return hth_build_tensor(g->b, id)->dims[1].symbol;
}

/* Recent results are likelier operands, as in a model, and old ones come back, as a residual does. */
static hth_tensor_id pick(const growing *g) {
    int n = random_below(3) ? (g->n_made < 4 ? g->n_made : 4) : g->n_made;
    return g->made[g->n_made - 1 - (int)random_below((uint64_t)n)];
}

static hth_tensor_id pick_like(const growing *g, hth_tensor_id x) {
    for (int tries = 0; tries < 20; tries++) {
        hth_tensor_id y = pick(g);
        if (width(g, y) == width(g, x) && symbol(g, y) == symbol(g, x)) return y;
    }
    return x;
}

/* One to three linears of the same input, sometimes with the ADD of a residual behind them. */
static void add_linears(growing *g, hth_tensor_id x) {
    int64_t in = width(g, x);
    hth_tensor_id y = HTH_NONE;
    for (uint64_t n = 1 + random_below(3); n > 0; n--) {
        int64_t out = random_below(2) ? in : 16 * (1 + (int64_t)random_below(20));
        y = keep(g, hth_emit_linear(g->b, next_site(g), x, weight(g, 2, in, out), HTH_NONE));
    }
    if (random_below(2)) keep(g, hth_emit_add(g->b, next_site(g), pick_like(g, y), y));
}

static void add_attention(growing *g, hth_tensor_id x) {
    int64_t n = width(g, x) / 16;
    hth_attention_imm imm = {.heads = n, .kv_heads = n, .dk = 16, .dv = 16, .scale = 1};
    char name[32];
    snprintf(name, sizeof name, "kv%d", g->n_ops);
    hth_tensor_id kv = hth_build_kv(g->b, name, (hth_kv_shape){n, 16, 16});
    hth_emit_kv_append(g->b, next_site(g), pick_like(g, x), pick_like(g, x), kv);
    keep(g, hth_emit_attention(g->b, next_site(g), x, kv, HTH_NONE, &imm));
}

static void add_op(growing *g) {
    hth_tensor_id x = pick(g);
    int64_t n = width(g, x);
    switch (random_below(9)) {
    case 0: keep(g, hth_emit_add(g->b, next_site(g), x, pick_like(g, x))); break;
    case 1: keep(g, hth_emit_glu(g->b, next_site(g), x, pick_like(g, x), HTH_ACT_SILU)); break;
    case 2: keep(g, hth_emit_scale(g->b, next_site(g), x, 2)); break;
    case 3: keep(g, hth_emit_rms_norm(g->b, next_site(g), x, weight(g, 1, n, 0), 0)); break;
    case 4: keep(g, hth_emit_act(g->b, next_site(g), x, HTH_ACT_SILU)); break;
    case 5:
        if (symbol(g, x) == HTH_ROWS) keep(g, hth_emit_select(g->b, next_site(g), x));
        break;
    case 6:
        if (symbol(g, x) == HTH_ROWS) add_attention(g, x);
        break;
    default: add_linears(g, x);
    }
}

static hth_program *random_program(void) {
    growing g = {0};
    hth_program *p;
    hearth_error err;
    assert_int_equal(hth_builder_create("random", &g.b, NULL), HEARTH_OK);
    for (int i = 0; i < 2; i++)
        keep(&g, hth_emit_embed(g.b, next_site(&g), hth_build_input(g.b, HTH_INPUT_TOKENS), weight(&g, 2, 32, 8), 1));
    int wanted = 5 + (int)random_below(MAX_OPS - 15);
    while (g.n_ops < wanted) add_op(&g);
    hth_tensor_id x = pick(&g);
    if (symbol(&g, x) == HTH_ROWS) x = hth_emit_select(g.b, next_site(&g), x);
    x = hth_emit_linear(g.b, next_site(&g), x, weight(&g, 2, width(&g, x), 50), HTH_NONE);
    if (random_below(2)) x = hth_emit_softcap(g.b, next_site(&g), x, 30);
    if (hth_builder_finish(&g.b, x, &p, &err) != HEARTH_OK) fail_msg("%s", err.text);
    return p;
}

/* ---- Bounds ------------------------------------------------------------------------------------------------------ */

static uint64_t bytes_of(const hth_program *p, const hth_plan *plan, int t) {
    uint64_t bytes = 4 * (uint64_t)hth_tensor_elements(&p->tensors[t], &plan->extents);
    return (bytes + HTH_PLAN_ALIGN - 1) / HTH_PLAN_ALIGN * HTH_PLAN_ALIGN;
}

/* All tensors one beside the other. */
static uint64_t naive_bytes(const hth_program *p, const hth_plan *plan) {
    uint64_t sum = 0;
    for (int t = 0; t < p->n_tensors; t++)
        if (plan->offset[t] != UINT64_MAX) sum += bytes_of(p, plan, t);
    return sum;
}

/* The most that one op needs of what lies apart; no plan can be smaller by more than what ops do in place. */
static uint64_t peak_bytes(const hth_program *p, const hth_plan *plan) {
    uint64_t peak = 0;
    for (int i = 0; i < p->n_ops; i++) {
        uint64_t live = 0;
        for (int t = 0; t < p->n_tensors; t++) {
            const hth_tensor *x = &p->tensors[t];
            if (plan->offset[t] == UINT64_MAX || x->writer > i || (x->last_use < i && x->writer != i)) continue;
            live += bytes_of(p, plan, t);
        }
        if (live > peak) peak = live;
    }
    return peak;
}

static void random_programs(void **state) {
    (void)state;
    double worst = 0, sum = 0;
    enum { PROGRAMS = 3000 };
    for (int i = 0; i < PROGRAMS; i++) {
        uint64_t start = seed;
        hth_program *p = random_program();
        hth_plan plan;
        hearth_error err;
        const hth_extents extents = {{1, 1 + (int64_t)random_below(40), 1 + (int64_t)random_below(40), 1, 1}};
        if (hth_plan_make(p, &extents, &plan, &err) != HEARTH_OK) fail_msg("seed %ju: %s", (uintmax_t)start, err.text);
        if (!hth_plan_is_valid(p, &plan)) fail_msg("seed %ju: the plan is not valid", (uintmax_t)start);
        if (plan.bytes > naive_bytes(p, &plan)) fail_msg("seed %ju: larger than no plan", (uintmax_t)start);
        double ratio = (double)plan.bytes / (double)peak_bytes(p, &plan);
        if (ratio > worst) worst = ratio;
        sum += ratio;
        hth_plan_free(&plan);
        hth_program_free(&p);
    }
    printf("arena / largest live set: mean %.3f, worst %.3f\n", sum / PROGRAMS, worst);
    /* Steps keep more apart than single ops do, so short programs of long steps are over 1. */
    assert_true(sum / PROGRAMS < 1.2);
    assert_true(worst < 2.5);
}

/* ---- Damage ------------------------------------------------------------------------------------------------------ */

/* A copy of a plan with tensor t moved onto tensor s. */
static bool is_valid_with(const hth_program *p, const hth_plan *plan, int t, uint64_t offset) {
    uint64_t kept = plan->offset[t];
    plan->offset[t] = offset;
    bool valid = hth_plan_is_valid(p, plan);
    plan->offset[t] = kept;
    return valid;
}

/* Whether one op needs both, seen from the ops. */
static bool needed_together(const hth_program *p, int s, int t) {
    for (int i = 0; i < p->n_ops; i++) {
        bool reads_s = false, reads_t = false;
        for (int j = 0; j < HTH_OP_INPUTS; j++) {
            reads_s = reads_s || p->ops[i].in[j] == s;
            reads_t = reads_t || p->ops[i].in[j] == t;
        }
        if (reads_s && reads_t && s != t) return true;
    }
    return false;
}

static void damaged_plans(void **state) {
    (void)state;
    int damaged = 0;
    for (int i = 0; i < 200; i++) {
        hth_program *p = random_program();
        hth_plan plan;
        const hth_extents extents = {{1, 7, 3, 1, 1}};
        assert_int_equal(hth_plan_make(p, &extents, &plan, NULL), HEARTH_OK);
        for (int t = 0; t < p->n_tensors; t++) {
            if (plan.offset[t] == UINT64_MAX) continue;
            assert_false(is_valid_with(p, &plan, t, plan.offset[t] + 4)); /* not aligned */
            assert_false(is_valid_with(p, &plan, t, plan.bytes));         /* outside */
            assert_false(is_valid_with(p, &plan, t, UINT64_MAX));         /* nowhere */
            for (int s = 0; s < p->n_tensors; s++)
                if (plan.offset[s] != UINT64_MAX && needed_together(p, s, t)) {
                    assert_false(is_valid_with(p, &plan, t, plan.offset[s])); /* on top of what is read with it */
                    damaged++;
                }
        }
        hth_plan_free(&plan);
        hth_program_free(&p);
    }
    assert_true(damaged > 100);
}

/* ---- Promises, one by one ---------------------------------------------------------------------------------------- */

typedef struct small {
    hth_program *p;
    hth_plan plan;
} small;

static small finish(growing *g, hth_tensor_id x) {
    small s;
    hearth_error err;
    x = hth_emit_select(g->b, "select", x);
    x = hth_emit_linear(g->b, "output", x, weight(g, 2, width(g, x), 50), HTH_NONE);
    if (hth_builder_finish(&g->b, x, &s.p, &err) != HEARTH_OK) fail_msg("%s", err.text);
    assert_int_equal(hth_plan_make(s.p, &(hth_extents){{1, 4, 4, 1, 1}}, &s.plan, &err), HEARTH_OK);
    assert_true(hth_plan_is_valid(s.p, &s.plan));
    return s;
}

static void release(small *s) {
    hth_plan_free(&s->plan);
    hth_program_free(&s->p);
}

static growing begin(hth_tensor_id *x) {
    growing g = {0};
    assert_int_equal(hth_builder_create("small", &g.b, NULL), HEARTH_OK);
    *x = hth_emit_embed(g.b, "x", hth_build_input(g.b, HTH_INPUT_TOKENS), weight(&g, 2, 32, 8), 1);
    return g;
}

static void what_dies_gives_its_place(void **state) {
    (void)state;
    hth_tensor_id x;
    growing g = begin(&x);
    hth_tensor_id y = hth_emit_scale(g.b, "y", x, 2);
    hth_tensor_id z = hth_emit_add(g.b, "z", y, y);
    small s = finish(&g, z);
    assert_int_equal(s.plan.place[y], x);
    assert_int_equal(s.plan.place[z], x);
    assert_int_equal(s.plan.offset[z], s.plan.offset[x]);
    release(&s);
}

static void what_lives_keeps_its_place(void **state) {
    (void)state;
    hth_tensor_id x;
    growing g = begin(&x);
    hth_tensor_id y = hth_emit_scale(g.b, "y", x, 2);
    hth_tensor_id z = hth_emit_add(g.b, "z", x, y);
    small s = finish(&g, z);
    assert_int_equal(s.plan.place[y], y);
    assert_int_equal(s.plan.place[z], x);
    release(&s);
}

/* x + W x: a backend that folds the sum into the product writes columns of x that later columns still read. */
static void an_epilogue_spares_its_own_input(void **state) {
    (void)state;
    hth_tensor_id x;
    growing g = begin(&x);
    hth_tensor_id y = hth_emit_linear(g.b, "y", x, weight(&g, 2, 32, 32), HTH_NONE);
    hth_tensor_id z = hth_emit_add(g.b, "z", x, y);
    small s = finish(&g, z);
    assert_int_equal(s.plan.place[z], y);
    release(&s);
}

/* Rows of different widths cannot trade places inside a step: one thread's rows would be another's. */
static void a_step_keeps_rows_apart(void **state) {
    (void)state;
    hth_tensor_id x;
    growing g = begin(&x);
    hth_tensor_id wide = hth_emit_linear(g.b, "wide", x, weight(&g, 2, 32, 64), HTH_NONE);
    hth_tensor_id act = hth_emit_act(g.b, "act", x, HTH_ACT_SILU); /* x dies here, in the step of the next op */
    hth_tensor_id norm = hth_emit_rms_norm(g.b, "norm", wide, weight(&g, 1, 64, 0), 0);
    hth_tensor_id y = hth_emit_linear(g.b, "y", norm, weight(&g, 2, 64, 32), HTH_NONE);
    hth_tensor_id z = hth_emit_add(g.b, "z", act, y);
    small s = finish(&g, z);
    uint64_t kept = s.plan.offset[norm];
    s.plan.place[norm] = norm; /* a place of its own, on top of x, which no op needs any more */
    s.plan.offset[norm] = s.plan.offset[x];
    assert_false(hth_plan_is_valid(s.p, &s.plan));
    s.plan.offset[norm] = kept;
    release(&s);
}

static void soft_capped_logits_need_one_buffer(void **state) {
    (void)state;
    hth_tensor_id x;
    growing g = begin(&x);
    hth_program *p;
    hth_plan plan;
    x = hth_emit_select(g.b, "select", x);
    hth_tensor_id raw = hth_emit_linear(g.b, "output", x, weight(&g, 2, 32, 50), HTH_NONE);
    hth_tensor_id capped = hth_emit_softcap(g.b, "cap", raw, 30);
    assert_int_equal(hth_builder_finish(&g.b, capped, &p, NULL), HEARTH_OK);
    assert_int_equal(hth_plan_make(p, &(hth_extents){{1, 4, 2, 1, 1}}, &plan, NULL), HEARTH_OK);
    assert_int_equal(plan.place[raw], capped);
    assert_true(plan.offset[raw] == UINT64_MAX && plan.offset[capped] == UINT64_MAX);
    assert_int_equal(plan.logits_bytes, 448);
    assert_int_equal(plan.bytes, 512 + 256);
    hth_plan_free(&plan);
    hth_program_free(&p);
}

static void sizes_beyond_63_bits(void **state) {
    (void)state;
    hth_tensor_id x;
    growing g = begin(&x);
    hth_program *p;
    hth_plan plan;
    hearth_error err;
    x = hth_emit_select(g.b, "select", x);
    x = hth_emit_linear(g.b, "output", x, weight(&g, 2, 32, 50), HTH_NONE);
    assert_int_equal(hth_builder_finish(&g.b, x, &p, NULL), HEARTH_OK);
    assert_int_equal(hth_plan_make(p, &(hth_extents){{1, INT64_MAX, 1, 1, 1}}, &plan, &err), HEARTH_TOO_LONG);
    assert_null(plan.offset);
    assert_int_equal(hth_plan_make(p, &(hth_extents){{1, INT64_MAX / 128 - 64, 1, 1, 1}}, &plan, &err), HEARTH_OK);
    hth_plan_free(&plan);
    assert_int_equal(hth_plan_make(p, &(hth_extents){{1, 1, INT64_MAX / 128 - 64, 1, 1}}, &plan, &err),
                     HEARTH_TOO_LONG);
    hth_program_free(&p);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %ju\n", (uintmax_t)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(damaged_plans),
        cmocka_unit_test(what_dies_gives_its_place),
        cmocka_unit_test(what_lives_keeps_its_place),
        cmocka_unit_test(an_epilogue_spares_its_own_input),
        cmocka_unit_test(a_step_keeps_rows_apart),
        cmocka_unit_test(soft_capped_logits_need_one_buffer),
        cmocka_unit_test(sizes_beyond_63_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
