/* Mixtures of experts: out = sum over a row's experts of weight * down(glu(gate x, up x)).
 *
 * A pair is a row and one of its experts. Pairs are put in order of their expert, so that the rows of an expert lie
 * together and its weights are read once a pass, however many rows there are. The stages of one op, after x has been
 * quantized for gate and up:
 *
 *   GROUP   worker 0 sorts the pairs and acquires the experts that have any
 *   GATHER  a thread claims pairs and copies their rows of x together; a pass of one row is together as it is
 *   IN      a thread claims some columns of one expert's gate or up, for all its rows
 *   MID     a thread claims pairs: glu, and quantizing for down
 *   OUT     a thread claims some columns of the result and adds up the experts' down for them, in increasing id
 *
 * After OUT worker 0 releases the experts. Expert weights are reached through the store alone (experts/experts.h).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/executable.h"

enum { GROUP, GATHER, IN, MID, OUT, PHASES };

/* A down product lies in scratch for all rows of an expert: of so many columns, or where rows are few, so many results.
 */
enum { OUT_COLUMNS = 128, OUT_RESULTS = 2048 };

/* One of the three products of an expert. */
typedef struct product {
    hth_linear_fn *run;
    int64_t row_bytes, columns, k;
    int block;         /* of its activations: 32, 256, or 0 for float */
    const float *bias; /* [experts][columns] or NULL */
} product;

struct hth_experts_step {
    const hth_op *op;
    int layer; /* in the store */
    int64_t n, f, experts, used;
    product products[HTH_EXPERT_MATRICES];
    hth_glu_fn *glu;
    hth_quantize_fn *quantize; /* for down, or NULL */
    int unit[2];               /* the units that quantize x in blocks of 32 and of 256, or -1 */
    hth_rows x, routing, out;
    hth_qact gathered[2], hidden; /* laid over the room */
    int work[2];                  /* kinds of work of IN and OUT */
};

static int which(int block) {
    return block == 32 ? 0 : 1;
}

/* ---- Binding ----------------------------------------------------------------------------------------------------- */

static hearth_status bind_product(const hth_executable *exe, const hth_op *op, int i, product *out, hearth_error *err) {
    const hth_tensor *w = &exe->program->tensors[op->weight[i]];
    *out = (product){.columns = w->dims[1].n, .k = w->dims[0].n, .block = hth_activation_block(w->dtype)};
    if (op->weight[3 + i] != HTH_NONE) out->bias = hth_weight_data(exe, op->weight[3 + i]);
    return hth_linear_kernel(exe, op, w, &out->run, &out->row_bytes, err);
}

/* The room takes the largest op. */
static void enlarge_room(hth_executable *exe, const hth_experts_step *s) {
    hth_experts_room *room = &exe->room;
    int64_t pairs = exe->limits.extents.value[HTH_ROWS] * s->used;
    room->max_used = hth_max(room->max_used, s->used);
    room->max_n = hth_max(room->max_n, s->n);
    room->max_f = hth_max(room->max_f, s->f);
    room->max_active = hth_max(room->max_active, hth_min(s->experts, pairs));
    room->floats = room->floats || s->products[HTH_EXPERT_GATE].block == 0 || s->products[HTH_EXPERT_UP].block == 0;
}

hearth_status hth_experts_bind(hth_executable *exe, const hth_op *op, hearth_error *err) {
    const hth_tensor *gate = &exe->program->tensors[op->weight[0]];
    const hth_symbol domain = exe->program->tensors[op->out].dims[1].symbol;
    hth_experts_step s = {.op = op,
                          .layer = exe->n_experts,
                          .n = gate->dims[0].n,
                          .f = gate->dims[1].n,
                          .experts = gate->dims[2].n,
                          .used = op->imm.experts.used,
                          .glu = exe->backend->kernels.glu[op->imm.experts.act],
                          .unit = {-1, -1}};
    for (int i = 0; i < HTH_EXPERT_MATRICES; i++) HTH_TRY(bind_product(exe, op, i, &s.products[i], err));
    for (int i = HTH_EXPERT_GATE; i <= HTH_EXPERT_UP; i++) {
        int block = s.products[i].block;
        if (block != 0 && s.unit[which(block)] < 0)
            s.unit[which(block)] = hth_quantize_add(exe, op->in[0], block, domain);
    }
    if (s.products[HTH_EXPERT_DOWN].block != 0)
        s.quantize = s.products[HTH_EXPERT_DOWN].block == 32 ? exe->backend->kernels.quantize32
                                                             : exe->backend->kernels.quantize256;
    for (int phase = 0; phase < PHASES; phase++)
        hth_stage_add(exe, HTH_STAGE_EXPERTS, domain, exe->n_experts, 1)->phase = phase;
    enlarge_room(exe, &s);
    exe->experts[exe->n_experts++] = s;
    return HEARTH_OK;
}

hearth_status hth_experts_tables(hth_executable *exe, hearth_error *err) {
    exe->experts = calloc((size_t)exe->program->n_ops + 1, sizeof *exe->experts);
    if (exe->experts) return HEARTH_OK;
    return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the tables of %d ops", exe->program->n_ops);
}

const hth_op *hth_experts_op(const hth_executable *exe, int step) {
    return exe->experts[step].op;
}

void hth_experts_free(hth_executable *exe) {
    hth_expert_store_free(&exe->store);
    free(exe->experts);
    exe->experts = NULL;
}

/* A kind for each phase; those of the products say the dtype. */
int hth_experts_kind(hth_executable *exe, const hth_stage *stage) {
    static const char *const names[PHASES] = {"group", "gather", "gate, up", "glu", "down"};
    hth_experts_step *s = &exe->experts[stage->first];
    if (stage->phase != IN && stage->phase != OUT)
        return hth_kind_of(exe, HTH_WORK_OTHER, "experts %s", names[stage->phase]);
    const int i = stage->phase == IN ? HTH_EXPERT_GATE : HTH_EXPERT_DOWN;
    const hth_dtype dtype = exe->program->tensors[s->op->weight[i]].dtype;
    s->work[stage->phase == OUT] = hth_kind_of(exe, s->products[i].block ? HTH_WORK_LINEAR_INT8 : HTH_WORK_LINEAR_FLOAT,
                                               "experts %s %s", names[stage->phase], hth_dtype_name(dtype));
    return s->work[stage->phase == OUT];
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

size_t hth_experts_scratch(const hth_executable *exe) {
    return (size_t)hth_max(exe->limits.extents.value[HTH_ROWS] * OUT_COLUMNS, OUT_RESULTS) * sizeof(float);
}

void hth_experts_carve(hth_executable *exe, hth_arena *a) {
    hth_experts_room *room = &exe->room;
    if (exe->n_experts == 0) return;
    int64_t pairs = exe->limits.extents.value[HTH_ROWS] * room->max_used;
    bool blocks[2] = {false, false}, hidden = false;
    for (int i = 0; i < exe->n_experts; i++) {
        for (int k = 0; k < 2; k++) blocks[k] = blocks[k] || exe->experts[i].unit[k] >= 0;
        hidden = hidden || exe->experts[i].quantize;
    }
    room->row = HTH_ARENA_NEW(a, int32_t, (size_t)pairs);
    room->weight = HTH_ARENA_NEW(a, float, (size_t)pairs);
    room->ids = HTH_ARENA_NEW(a, int32_t, (size_t)room->max_active);
    room->first = HTH_ARENA_NEW(a, int64_t, (size_t)room->max_active + 1);
    room->next = HTH_ARENA_NEW(a, int64_t, (size_t)exe->max_experts);
    room->leases = HTH_ARENA_NEW(a, hth_expert_lease, (size_t)room->max_active);
    for (int k = 0; k < 2; k++)
        room->gathered[k] = blocks[k] ? hth_arena_take(a, hth_qact_bytes(pairs, room->max_n), 0) : NULL;
    room->gathered_float = room->floats ? HTH_ARENA_NEW(a, float, (size_t)(pairs * room->max_n)) : NULL;
    room->gate = HTH_ARENA_NEW(a, float, (size_t)(pairs * room->max_f));
    room->up = HTH_ARENA_NEW(a, float, (size_t)(pairs * room->max_f));
    room->hidden = hidden ? hth_arena_take(a, hth_qact_bytes(pairs, room->max_f), 0) : NULL;
}

static hearth_status open_store(hth_executable *exe, hearth_error *err) {
    hth_expert_layer *layers = calloc((size_t)exe->n_experts + 1, sizeof *layers);
    if (!layers) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the experts of %d layers", exe->n_experts);
    for (int i = 0; i < exe->n_experts; i++) {
        layers[i].experts = exe->experts[i].experts;
        for (int m = 0; m < HTH_EXPERT_MATRICES; m++) {
            hth_tensor_id w = exe->experts[i].op->weight[m];
            layers[i].base[m] = hth_weight_data(exe, w);
            layers[i].stride[m] = exe->program->tensors[w].weight.slab_stride;
        }
    }
    hearth_status status = hth_expert_store_create(layers, exe->n_experts, &exe->store, err);
    free(layers);
    return status;
}

hearth_status hth_experts_resolve(hth_executable *exe, hearth_error *err) {
    for (int i = 0; i < exe->n_experts; i++) {
        hth_experts_step *s = &exe->experts[i];
        int64_t pairs = exe->limits.extents.value[HTH_ROWS] * s->used;
        s->x = hth_rows_of(exe, s->op->in[0]);
        s->routing = hth_rows_of(exe, s->op->in[1]);
        s->out = hth_rows_of(exe, s->op->out);
        for (int k = 0; k < 2; k++)
            if (s->unit[k] >= 0) hth_qact_carve(&s->gathered[k], pairs, s->n, k == 0 ? 32 : 256, exe->room.gathered[k]);
        if (s->quantize) hth_qact_carve(&s->hidden, pairs, s->f, s->products[HTH_EXPERT_DOWN].block, exe->room.hidden);
    }
    return open_store(exe, err);
}

/* ---- GROUP ------------------------------------------------------------------------------------------------------- */

static int32_t routed_id(const hth_experts_step *s, int64_t r, int64_t j) {
    int32_t id = (int32_t)s->routing.base[r * s->routing.ld + j];
    assert(id >= 0 && id < s->experts);
    return id;
}

/* A counting sort. */
static void group_pairs(hth_experts_room *room, const hth_experts_step *s, int64_t rows) {
    int64_t *next = room->next, at = 0;
    memset(next, 0, (size_t)s->experts * sizeof *next);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < s->used; j++) next[routed_id(s, r, j)]++;
    room->active = 0;
    for (int32_t e = 0; e < s->experts; e++) {
        int64_t count = next[e];
        next[e] = at;
        if (count == 0) continue;
        room->ids[room->active] = e;
        room->first[room->active++] = at;
        at += count;
    }
    room->first[room->active] = at;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < s->used; j++) {
            int64_t pair = next[routed_id(s, r, j)]++;
            room->row[pair] = (int32_t)r;
            room->weight[pair] = s->routing.base[r * s->routing.ld + s->used + j];
        }
}

/* Always on the same thread as hth_experts_done: the store has one caller. */
static void work_group(hth_executable *exe, const hth_experts_step *s, int64_t rows, const hth_worker *w) {
    hth_experts_room *room = &exe->room;
    if (w != &exe->workers[0]) return;
    group_pairs(room, s, rows);
    hth_expert_acquire(exe->store, s->layer, room->ids, room->active, room->leases);
}

/* ---- GATHER, MID ------------------------------------------------------------------------------------------------- */

static void gather_pair(hth_executable *exe, const hth_experts_step *s, int64_t pair) {
    const hth_experts_room *room = &exe->room;
    int64_t row = room->row[pair];
    for (int k = 0; k < 2; k++)
        if (s->unit[k] >= 0) hth_qact_copy_row(&exe->units[s->unit[k]].q, row, &s->gathered[k], pair);
    if (s->products[HTH_EXPERT_GATE].block == 0 || s->products[HTH_EXPERT_UP].block == 0)
        memcpy(room->gathered_float + pair * s->n, s->x.base + row * s->x.ld, (size_t)s->n * sizeof(float));
}

static void finish_hidden(hth_executable *exe, const hth_experts_step *s, int64_t pair) {
    float *gate = exe->room.gate + pair * s->f;
    s->glu(gate, exe->room.up + pair * s->f, gate, s->f);
    if (s->quantize) s->quantize(exe->room.gate, s->f, pair, pair + 1, &s->hidden);
}

typedef void pair_fn(hth_executable *exe, const hth_experts_step *s, int64_t pair);

static void work_pairs(hth_executable *exe, const hth_experts_step *s, int64_t pairs, pair_fn *run) {
    int64_t piece = hth_max(1, hth_min(pairs / (4 * exe->backend->threads), 16));
    for (int64_t pair; (pair = hth_pool_claim(exe->backend->pool, piece)) < pairs;)
        for (int64_t end = hth_min(pair + piece, pairs); pair < end; pair++) run(exe, s, pair);
}

/* ---- IN ---------------------------------------------------------------------------------------------------------- */

/* Columns a claim takes of `columns`, of which there are `total` to share out. */
static int64_t column_piece(const hth_executable *exe, int64_t columns, int64_t total) {
    int64_t piece = (total / (8 * exe->backend->threads) + 15) / 16 * 16;
    return hth_max(16, hth_min(piece, (columns + 15) / 16 * 16));
}

/* Column c of product i of the expert of a lease. */
static const void *column_at(const hth_experts_step *s, int i, const hth_expert_lease *lease, int64_t c) {
    return (const unsigned char *)lease->matrix[i] + c * s->products[i].row_bytes;
}

/* Columns c0.. of that product, as columns from 0 on. */
static hth_linear product_at(const hth_experts_step *s, int i, const hth_expert_lease *lease, int64_t c0) {
    const product *p = &s->products[i];
    hth_linear a = {.w = column_at(s, i, lease, c0), .row_bytes = p->row_bytes};
    a.k = p->k;
    if (p->bias) a.bias = p->bias + lease->expert * p->columns + c0;
    return a;
}

/* Some columns of gate or up (a product) of an active expert. */
typedef struct in_task {
    int product;
    int64_t active, c0, c1;
} in_task;

/* Those of gate, then those of up, of one expert after the other, a piece at a time. */
static in_task in_task_at(const hth_experts_step *s, int64_t task, int64_t piece) {
    const int64_t pieces = (s->f + piece - 1) / piece, half = task / pieces, c0 = task % pieces * piece;
    return (in_task){half % 2 == 0 ? HTH_EXPERT_GATE : HTH_EXPERT_UP, half / 2, c0, hth_min(c0 + piece, s->f)};
}

/* Run a task for all rows of its expert. next: as in hth_linear. */
static void run_in(hth_executable *exe, const hth_experts_step *s, in_task t, bool gathered, const void *next,
                   hth_worker *w) {
    const hth_experts_room *room = &exe->room;
    int64_t first = room->first[t.active], rows = room->first[t.active + 1] - first, from = gathered ? first : 0;
    int block = s->products[t.product].block;
    hth_linear a = product_at(s, t.product, &room->leases[t.active], t.c0);
    hth_qact q;
    a.next = next;
    if (block != 0) {
        q = hth_qact_from(gathered ? &s->gathered[which(block)] : &exe->units[s->unit[which(block)]].q, from);
        a.q = &q;
    } else {
        a.ldf = gathered ? s->n : s->x.ld;
        a.f = (gathered ? room->gathered_float : s->x.base) + from * a.ldf;
    }
    a.y = (t.product == HTH_EXPERT_GATE ? room->gate : room->up) + first * s->f + t.c0;
    a.ldy = s->f;
    s->products[t.product].run(&a, 0, t.c1 - t.c0, 0, rows, w->linear);
}

/* Threads mostly take turns: so a thread expects the task `threads` further on to be its next one. */
static void work_in(hth_executable *exe, const hth_experts_step *s, int64_t rows, hth_worker *w) {
    const hth_experts_room *room = &exe->room;
    const int64_t piece = column_piece(exe, s->f, 2 * room->active * s->f);
    const int64_t tasks = 2 * room->active * ((s->f + piece - 1) / piece);
    for (int64_t task; (task = hth_pool_claim(exe->backend->pool, 1)) < tasks;) {
        const in_task then = in_task_at(s, hth_min(task + exe->backend->threads, tasks - 1), piece);
        run_in(exe, s, in_task_at(s, task, piece), rows > 1,
               column_at(s, then.product, &room->leases[then.active], then.c0), w);
    }
}

/* ---- OUT --------------------------------------------------------------------------------------------------------- */

/* Add columns c0 .. c1-1 of an active expert's down, weighted, for its pairs. next: as in hth_linear. */
static void add_out(hth_executable *exe, const hth_experts_step *s, int64_t active, int64_t c0, int64_t c1,
                    const void *next, hth_worker *w) {
    const hth_experts_room *room = &exe->room;
    const int64_t p0 = room->first[active], p1 = room->first[active + 1];
    float *y = w->experts;
    hth_linear a = product_at(s, HTH_EXPERT_DOWN, &room->leases[active], c0);
    hth_qact q;
    if (s->quantize) {
        q = hth_qact_from(&s->hidden, p0);
        a.q = &q;
    } else {
        a.f = room->gate + p0 * s->f;
        a.ldf = s->f;
    }
    a.y = y;
    a.ldy = c1 - c0;
    a.next = next;
    s->products[HTH_EXPERT_DOWN].run(&a, 0, c1 - c0, 0, p1 - p0, w->linear);
    for (int64_t p = p0; p < p1; p++)
        exe->backend->kernels.add_scaled(y + (p - p0) * a.ldy, room->weight[p],
                                         s->out.base + room->row[p] * s->out.ld + c0, c1 - c0);
}

/* Columns a claim takes of the result. Few rows are over soon, and each claim begins all experts anew: then few claims
 * are best. */
static int64_t out_piece(const hth_executable *exe, const hth_experts_step *s) {
    const hth_experts_room *room = &exe->room;
    const int64_t threads = exe->backend->threads, share = threads == 1 ? s->n : s->n / (4 * threads);
    int64_t rows = 1;
    for (int64_t i = 0; i < room->active; i++) rows = hth_max(rows, room->first[i + 1] - room->first[i]);
    return hth_max(32, hth_min(share, hth_max(OUT_COLUMNS, OUT_RESULTS / rows)) / 32 * 32);
}

/* The weights after columns from c0 on of an active expert: those of the next one, or from column `then` of the first.
 */
static const void *after_out(const hth_executable *exe, const hth_experts_step *s, int64_t active, int64_t c0,
                             int64_t then) {
    const hth_experts_room *room = &exe->room;
    if (active + 1 < room->active) return column_at(s, HTH_EXPERT_DOWN, &room->leases[active + 1], c0);
    return then < s->n ? column_at(s, HTH_EXPERT_DOWN, &room->leases[0], then) : NULL;
}

static void work_out(hth_executable *exe, const hth_experts_step *s, int64_t rows, hth_worker *w) {
    const hth_experts_room *room = &exe->room;
    const int64_t piece = out_piece(exe, s);
    for (int64_t c0; (c0 = hth_pool_claim(exe->backend->pool, piece)) < s->n;) {
        const int64_t c1 = hth_min(c0 + piece, s->n), then = c0 + piece * exe->backend->threads;
        for (int64_t r = 0; r < rows; r++)
            memset(s->out.base + r * s->out.ld + c0, 0, (size_t)(c1 - c0) * sizeof(float));
        for (int64_t i = 0; i < room->active; i++) add_out(exe, s, i, c0, c1, after_out(exe, s, i, c0, then), w);
    }
}

/* Each active expert's matrix i is read once, and multiplied by each of its rows. */
static void count_product(hth_kind *kind, const product *p, int64_t active, int64_t pairs) {
    kind->bytes += (uint64_t)active * (uint64_t)p->columns * (uint64_t)p->row_bytes;
    kind->ops += 2 * (uint64_t)pairs * (uint64_t)p->columns * (uint64_t)p->k;
}

static void count_products(hth_executable *exe, const hth_experts_step *s) {
    const hth_experts_room *room = &exe->room;
    hth_kind *kinds = exe->account.kinds;
    const int64_t pairs = room->first[room->active];
    count_product(&kinds[s->work[0]], &s->products[HTH_EXPERT_GATE], room->active, pairs);
    count_product(&kinds[s->work[0]], &s->products[HTH_EXPERT_UP], room->active, pairs);
    count_product(&kinds[s->work[1]], &s->products[HTH_EXPERT_DOWN], room->active, pairs);
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

bool hth_experts_idle(const hth_stage *stage, int64_t rows) {
    return stage->phase == GATHER && rows == 1;
}

void hth_experts_work(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *w) {
    const hth_experts_step *s = &exe->experts[stage->first];
    switch (stage->phase) {
    case GROUP: work_group(exe, s, rows, w); break;
    case GATHER: work_pairs(exe, s, rows * s->used, gather_pair); break;
    case IN: work_in(exe, s, rows, w); break;
    case MID: work_pairs(exe, s, rows * s->used, finish_hidden); break;
    case OUT:
        if (w == &exe->workers[0]) count_products(exe, s);
        work_out(exe, s, rows, w);
        break;
    }
}

void hth_experts_done(hth_executable *exe, const hth_stage *stage) {
    if (stage->phase != OUT) return;
    hth_expert_release(exe->store, exe->room.leases, exe->room.active);
    exe->room.active = 0;
}

bool hth_experts_alike(const hth_executable *exe, int a, int b) {
    const hth_experts_step *x = &exe->experts[a], *y = &exe->experts[b];
    for (int i = 0; i < HTH_EXPERT_MATRICES; i++)
        if (x->products[i].run != y->products[i].run || x->products[i].k != y->products[i].k) return false;
    return x->glu == y->glu && x->quantize == y->quantize;
}

int64_t hth_experts_row_bytes(const hth_executable *exe) {
    int64_t bytes = 0;
    for (int i = 0; i < exe->n_experts; i++)
        for (int k = 0; k < HTH_EXPERT_MATRICES; k++) bytes = hth_max(bytes, exe->experts[i].products[k].row_bytes);
    return bytes;
}

/* Zeros for numbers. */
void hth_experts_warm(hth_executable *exe, const hth_stage *stage, int64_t rows, const void *zeros, hth_worker *w) {
    hth_experts_step warm = exe->experts[stage->first];
    const hth_experts_step *s = &warm;
    hth_experts_room *room = &exe->room;
    if (stage->phase != OUT) return;
    for (int i = 0; i < HTH_EXPERT_MATRICES; i++) warm.products[i].bias = NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < s->used; j++) {
            s->routing.base[r * s->routing.ld + j] = (float)j;
            s->routing.base[r * s->routing.ld + s->used + j] = 0;
        }
    group_pairs(room, s, rows);
    hth_expert_acquire(exe->store, s->layer, room->ids, room->active, room->leases);
    for (int i = 0; i < HTH_EXPERT_MATRICES; i++) room->leases[0].matrix[i] = zeros;
    for (int64_t pair = 0; rows > 1 && pair < rows * s->used; pair++) gather_pair(exe, s, pair);
    run_in(exe, s, (in_task){HTH_EXPERT_GATE, 0, 0, hth_min(16, s->f)}, rows > 1, NULL, w);
    run_in(exe, s, (in_task){HTH_EXPERT_UP, 0, 0, hth_min(16, s->f)}, rows > 1, NULL, w);
    for (int64_t pair = 0; pair < rows; pair++) finish_hidden(exe, s, pair);
    add_out(exe, s, 0, 0, hth_min(16, s->n), NULL, w);
    hth_experts_done(exe, stage);
}
