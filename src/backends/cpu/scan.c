/* Recurrences: a task is some lanes of one sequence, which it walks from the first row to the last. Between two rows it
 * may leave its lanes of the state in a checkpoint, so a mark costs a copy and never a pass. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/executable.h"

/* Channels of a task of CONV_RING: whole cache lines of the ring, which its neighbours do not write. */
#define PIECE 64
/* Rows whose gates are computed together. */
#define GATED 64

/* ---- Binding ----------------------------------------------------------------------------------------------------- */

static int state_index(const hth_executable *exe, hth_tensor_id state) {
    for (int i = 0; i < exe->n_states; i++)
        if (exe->states[i].tensor == state) return i;
    assert(!"every state has a place");
    return -1;
}

hearth_status hth_scan_bind(hth_executable *exe, const hth_op *op, hearth_error *err) {
    const hth_tensor *tensors = exe->program->tensors;
    hth_scan_step *step = &exe->scans[exe->n_scans];
    *step = (hth_scan_step){.op = op, .state = state_index(exe, op->state)};
    for (int i = 0; i < 2; i++)
        if (op->weight[i] != HTH_NONE) step->w[i] = hth_weight_data(exe, op->weight[i]);
    if (op->opcode == HTH_OP_CONV_RING) {
        const hth_tensor *taps = &tensors[op->weight[0]];
        if (taps->dims[0].n > HTH_CONV_TAPS)
            return hth_fail(err, HEARTH_UNSUPPORTED, "%s: %s has %lld taps, at most %d are supported", op->site,
                            taps->name, (long long)taps->dims[0].n, HTH_CONV_TAPS);
        step->lanes = (taps->dims[1].n + PIECE - 1) / PIECE;
    } else {
        step->lanes = op->imm.delta.value_heads;
    }
    hth_stage_add(exe, HTH_STAGE_SCAN, HTH_ROWS, exe->n_scans++, 1);
    return HEARTH_OK;
}

/* A worker's scratch: the gates of some rows, then the kernel's. */
typedef struct gates {
    float decay[GATED], beta[GATED];
} gates;

size_t hth_scan_scratch(const hth_executable *exe) {
    size_t most = 0;
    for (int i = 0; i < exe->n_scans; i++) {
        const hth_op *op = exe->scans[i].op;
        if (op->opcode != HTH_OP_DELTA_RULE) continue;
        size_t bytes = HTH_DELTA_SCRATCH(op->imm.delta.dk);
        if (bytes > most) most = bytes;
    }
    return sizeof(gates) + most;
}

void hth_scan_resolve(hth_executable *exe) {
    for (int i = 0; i < exe->n_scans; i++) {
        hth_scan_step *s = &exe->scans[i];
        for (int k = 0; k < 3; k++) s->in[k] = hth_rows_of(exe, s->op->in[k]);
        s->out = hth_rows_of(exe, s->op->out);
    }
}

/* ---- Some rows of one task --------------------------------------------------------------------------------------- */

typedef struct task {
    const hth_scan_step *step;
    hth_worker *worker;
    int64_t lane;
    float *state;        /* of the op, whole */
    const hth_dim *dims; /* its own */
} task;

/* The lanes of a task in the op's state, or in a checkpoint of it: `count` runs of `length` floats, `stride` apart. */
typedef struct lanes {
    int64_t first, length, count, stride;
} lanes;

static lanes lanes_of(const task *t) {
    const hth_scan_step *s = t->step;
    if (s->op->opcode == HTH_OP_DELTA_RULE) {
        int64_t head = s->op->imm.delta.dk * s->op->imm.delta.dv;
        return (lanes){t->lane * head, head, 1, head};
    }
    const hth_dim *ring = t->dims;
    int64_t channels = ring[0].n, first = t->lane * PIECE;
    return (lanes){first, hth_min(PIECE, channels - first), ring[1].n, channels};
}

static void convolve(hth_executable *exe, const task *t, int64_t r0, int64_t r1) {
    const hth_scan_step *s = t->step;
    const hth_tensor *taps = &exe->program->tensors[s->op->weight[0]];
    hth_conv a = {.x = s->in[0].base + r0 * s->in[0].ld,
                  .ldx = s->in[0].ld,
                  .rows = r1 - r0,
                  .channels = taps->dims[1].n,
                  .taps = taps->dims[0].n,
                  .w = s->w[0],
                  .ring = t->state,
                  .y = s->out.base + r0 * s->out.ld,
                  .ldy = s->out.ld};
    exe->backend->kernels.conv(&a, t->lane * PIECE, hth_min((t->lane + 1) * PIECE, a.channels));
}

static void apply_delta(hth_executable *exe, const task *t, int64_t r0, int64_t r1) {
    const hth_scan_step *s = t->step;
    const hth_delta_imm *imm = &s->op->imm.delta;
    int64_t h = t->lane, key = imm->tiled ? h % imm->key_heads : h / (imm->value_heads / imm->key_heads);
    gates *g = t->worker->scan;
    for (int64_t r = r0; r < r1; r += GATED) {
        int64_t rows = hth_min(GATED, r1 - r);
        for (int64_t i = 0; i < rows; i++)
            hth_delta_gates(s->in[1].base[(r + i) * s->in[1].ld + h], s->in[2].base[(r + i) * s->in[2].ld + h],
                            s->w[0][h], s->w[1][h], &g->decay[i], &g->beta[i]);
        const float *u = s->in[0].base + r * s->in[0].ld;
        hth_delta a = {.q = u + key * imm->dk,
                       .k = u + (imm->key_heads + key) * imm->dk,
                       .v = u + 2 * imm->key_heads * imm->dk + h * imm->dv,
                       .ld = s->in[0].ld,
                       .decay = g->decay,
                       .beta = g->beta,
                       .rows = rows,
                       .dk = imm->dk,
                       .dv = imm->dv,
                       .eps = imm->eps,
                       .scale = (float)(1 / sqrt((double)imm->dk)),
                       .state = t->state + h * imm->dk * imm->dv,
                       .y = s->out.base + r * s->out.ld + h * imm->dv,
                       .ldy = s->out.ld};
        exe->backend->kernels.delta(&a, g + 1);
    }
}

static void advance(hth_executable *exe, const task *t, int64_t r0, int64_t r1) {
    if (r0 == r1) return;
    if (t->step->op->opcode == HTH_OP_CONV_RING) convolve(exe, t, r0, r1);
    else apply_delta(exe, t, r0, r1);
}

static void zero(const task *t, lanes l) {
    for (int64_t i = 0; i < l.count; i++)
        memset(t->state + l.first + i * l.stride, 0, (size_t)l.length * sizeof(float));
}

static void leave_mark(const hth_executable *exe, const task *t, lanes l, int32_t slot) {
    assert(slot >= 0 && slot < exe->plan.extents.value[HTH_MARKS]);
    float *to = hth_checkpoint_at(exe, t->step->state, slot);
    for (int64_t i = 0; i < l.count; i++)
        memcpy(to + l.first + i * l.stride, t->state + l.first + i * l.stride, (size_t)l.length * sizeof(float));
}

/* ---- A task ------------------------------------------------------------------------------------------------------ */

/* The first mark of sequence seq or a later one. */
static int64_t first_mark(const hth_pass *pass, int64_t seq) {
    int64_t lo = 0, hi = pass->n_marks;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (pass->marks[mid].seq < seq) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static void run_task(hth_executable *exe, const hth_scan_step *step, int64_t seq, int64_t lane, hth_worker *worker) {
    const hth_pass *pass = exe->frame.pass;
    int64_t row = pass->seq_rows[seq], end = pass->seq_rows[seq + 1];
    int32_t slot = pass->state_slots[seq];
    assert(slot >= 0 && slot < exe->plan.extents.value[HTH_SEQS]);
    task t = {step, worker, lane, hth_state_at(exe, step->state, slot), exe->program->tensors[step->op->state].dims};
    lanes l = lanes_of(&t);
    if (row < end && pass->positions[row] == 0) zero(&t, l);
    for (int64_t m = first_mark(pass, seq); m < pass->n_marks && pass->marks[m].seq == seq; m++) {
        assert(pass->marks[m].row >= row && pass->marks[m].row <= end);
        advance(exe, &t, row, pass->marks[m].row);
        row = pass->marks[m].row;
        leave_mark(exe, &t, l, pass->marks[m].slot);
    }
    advance(exe, &t, row, end);
}

/* Tasks a claim takes. A head of DELTA_RULE is worth a claim even for one row; some channels are not. */
static int64_t claim_size(const hth_executable *exe, const hth_scan_step *step, int64_t tasks) {
    if (step->op->opcode == HTH_OP_DELTA_RULE) return 1;
    int64_t rows = exe->frame.pass->rows / exe->frame.pass->seqs, size = 16 / (rows < 1 ? 1 : rows);
    size = hth_min(size, tasks / (4 * exe->backend->threads));
    return size < 1 ? 1 : size;
}

void hth_scan_work(hth_executable *exe, const hth_scan_step *step, hth_worker *worker) {
    int64_t tasks = exe->frame.pass->seqs * step->lanes, size = claim_size(exe, step, tasks);
    for (int64_t first; (first = hth_pool_claim(exe->backend->pool, size)) < tasks;)
        for (int64_t i = first; i < hth_min(first + size, tasks); i++)
            run_task(exe, step, i / step->lanes, i % step->lanes, worker);
}

/* The warm pass is one row at position 0: its slot's next user starts at position 0 too, from zeros, or is restored
 * whole. */
void hth_scan_warm(hth_executable *exe, const hth_scan_step *step, hth_worker *worker) {
    run_task(exe, step, 0, 0, worker);
}
