/* Running a pass: every thread walks the stages, claims work, and meets the others between two stages. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/executable.h"
#include "base/clock.h"

static void work_rows(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *w) {
    int64_t threads = exe->backend->threads, piece = rows / (4 * threads);
    piece = piece < 1 ? 1 : hth_min(piece, 16);
    for (int64_t r; (r = hth_pool_claim(exe->backend->pool, piece)) < rows;)
        for (int u = stage->first; u < stage->first + stage->count; u++) {
            exe->units[u].run(exe, &exe->units[u], r, hth_min(r + piece, rows), w);
            hth_work_done(w, exe->units[u].work);
        }
}

/* The columns of a stage's linears are shared out in units. Two thirds are fixed, as much for each worker, which so
 * mostly streams through memory; the rest is claimed, in shares that shrink, so that a worker that is held up delays
 * the others by little. */
typedef struct shares {
    int64_t total, left; /* units */
    int64_t next;        /* the number of the first share in what is left */
    int64_t threads;
} shares;

/* Columns of a unit: a tile of the kernels, or with many rows the panels that stay near while all rows pass. */
static int64_t unit_columns(int64_t rows) {
    return rows > 32 ? 64 : 32;
}

static int64_t units_of(const hth_linear_step *step, int64_t unit) {
    return (step->columns + unit - 1) / unit;
}

/* Share number n, not less than those taken before: units [*u0, *u1) of all linears one after the other. Shares 0 ..
 * threads-1 are the fixed ones. False when there is none. */
static bool take_share(shares *s, int64_t n, int64_t *u0, int64_t *u1) {
    for (int64_t size; s->left > 0; s->left -= size) {
        size = hth_max(1, 2 * (s->next < s->threads ? s->total : s->left) / (3 * s->threads));
        if (s->threads == 1 || size > s->left) size = s->left;
        if (s->next++ < n) continue;
        *u0 = s->total - s->left;
        *u1 = *u0 + size;
        s->left -= size;
        return true;
    }
    return false;
}

static shares shares_of(const hth_executable *exe, const hth_stage *stage, int64_t unit) {
    shares s = {.threads = exe->backend->threads};
    for (int i = 0; i < stage->count; i++) s.total += units_of(&exe->linears[stage->first + i], unit);
    s.left = s.total;
    return s;
}

/* The first weights of unit u of a stage; NULL behind its last. */
static const char *unit_weights(const hth_executable *exe, const hth_stage *stage, int64_t unit, int64_t u) {
    const hth_linear_step *step = &exe->linears[stage->first], *end = step + stage->count;
    for (; step < end && u >= units_of(step, unit); step++) u -= units_of(step, unit);
    return step < end ? (const char *)step->args.w + u * unit * step->args.row_bytes : NULL;
}

static int64_t rows_of(const hth_executable *exe, const hth_stage *stage) {
    return stage->domain == HTH_OUTS ? exe->frame.pass->outs : exe->frame.pass->rows;
}

/* Where a worker goes on after a stage: the first of its fixed columns in the next stage of linears. NULL when that is
 * not known. */
static const char *weights_after(const hth_executable *exe, const hth_stage *stage, const hth_worker *w) {
    const hth_stage *end = exe->stages + exe->n_stages;
    for (stage++; stage < end && stage->kind != HTH_STAGE_LINEAR; stage++)
        if (stage->kind == HTH_STAGE_EXPERTS) return NULL;
    if (stage == end || rows_of(exe, stage) == 0) return NULL;
    const int64_t unit = unit_columns(rows_of(exe, stage));
    shares s = shares_of(exe, stage, unit);
    int64_t u0, u1;
    return take_share(&s, w - exe->workers, &u0, &u1) ? unit_weights(exe, stage, unit, u0) : NULL;
}

static void work_linear(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *w) {
    const hth_linear_step *steps = &exe->linears[stage->first];
    const char *const after = weights_after(exe, stage, w);
    const int64_t unit = unit_columns(rows);
    shares s = shares_of(exe, stage, unit);
    int64_t share = w - exe->workers;
    for (int64_t u0, u1; take_share(&s, share, &u0, &u1); share = s.threads + hth_pool_claim(exe->backend->pool, 1)) {
        int64_t first = 0; /* the first unit of a step */
        for (int i = 0; i < stage->count && first < u1; first += units_of(&steps[i], unit), i++) {
            const int64_t c0 = hth_max(u0 - first, 0) * unit, c1 = hth_min((u1 - first) * unit, steps[i].columns);
            if (c0 >= c1) continue;
            hth_linear args = steps[i].args;
            if (steps[i].to_logits) args.y += exe->frame.pass->first_output * args.ldy;
            if (u1 > first + units_of(&steps[i], unit)) args.next = steps[i + 1].args.w;
            else args.next = s.left > 0 ? unit_weights(exe, stage, unit, s.total - s.left) : after;
            steps[i].run(&args, c0, c1, 0, rows, w->linear);
            hth_work_done(w, steps[i].work);
        }
    }
}

static void work_stage(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *w) {
    switch (stage->kind) {
    case HTH_STAGE_ROWS: work_rows(exe, stage, rows, w); return;
    case HTH_STAGE_LINEAR: work_linear(exe, stage, rows, w); return;
    case HTH_STAGE_ATTENTION: hth_attention_work(exe, &exe->attentions[stage->first], w); break;
    case HTH_STAGE_MERGE: hth_attention_merge_work(exe, &exe->attentions[stage->first], w); break;
    case HTH_STAGE_SCAN: hth_scan_work(exe, &exe->scans[stage->first], w); break;
    case HTH_STAGE_EXPERTS: hth_experts_work(exe, stage, rows, w); break;
    }
    hth_work_done(w, stage->work);
}

/* Whether a stage has nothing to do in this pass: all threads pass it by, without a barrier. */
static bool is_idle(const hth_executable *exe, const hth_stage *stage, int64_t rows) {
    return rows == 0 || (stage->kind == HTH_STAGE_MERGE && !exe->frame.split) ||
           (stage->kind == HTH_STAGE_EXPERTS && hth_experts_idle(stage, rows));
}

static void work_pass(void *arg, int worker) {
    hth_executable *exe = arg;
    const hth_pass *pass = exe->frame.pass;
    hth_worker *w = &exe->workers[worker];
    if (w->ns) w->ns[0] = exe->frame.start_ns;
    hth_work_done(w, HTH_KIND_WAITING);
    for (int s = 0; s < exe->n_stages; s++) {
        const hth_stage *stage = &exe->stages[s];
        int64_t rows = rows_of(exe, stage);
        if (is_idle(exe, stage, rows)) continue;
        if (pass->arrivals) {
            if (!hth_frontier_wait(pass->arrivals, stage->ops)) return; /* all threads are told the same */
            hth_work_done(w, HTH_KIND_WAITING);
        }
        work_stage(exe, stage, rows, w);
        hth_pool_barrier(exe->backend->pool);
        hth_work_done(w, HTH_KIND_WAITING);
        if (stage->kind == HTH_STAGE_EXPERTS && worker == 0) hth_experts_done(exe, stage);
    }
}

void hth_fault_note(hth_executable *exe, const hth_op *op, int64_t row) {
    _Atomic uint64_t *fault = &exe->frame.faults[exe->frame.row_seq[row]];
    uint64_t mine = (uint64_t)(op - exe->program->ops) << 32 | (uint64_t)row, seen = atomic_load(fault);
    while (mine < seen && !atomic_compare_exchange_weak(fault, &seen, mine)) continue;
}

void hth_faults_begin(hth_executable *exe, const hth_pass *pass) {
    for (int64_t s = 0; s < pass->seqs; s++)
        atomic_store_explicit(&exe->frame.faults[s], UINT64_MAX, memory_order_relaxed);
}

static void report_faults(const hth_executable *exe, const hth_pass *pass) {
    for (int64_t s = 0; s < pass->seqs; s++) {
        uint64_t fault = atomic_load_explicit(&exe->frame.faults[s], memory_order_relaxed);
        pass->faults[s] = fault == UINT64_MAX ? (hth_pass_fault){-1, 0}
                                              : (hth_pass_fault){(int32_t)(fault >> 32), (int64_t)(fault & UINT32_MAX)};
    }
}

hearth_status hth_cpu_run(hth_executable *exe, const hth_pass *pass, hearth_error *err) {
    (void)err;
    exe->frame.pass = pass;
    hth_faults_begin(exe, pass);
    if (exe->account.clock) exe->frame.start_ns = hth_now_ns();
    hth_attention_prepare(exe, pass);
    hth_pool_run(exe->backend->pool, work_pass, exe);
    hth_work_count(exe, pass);
    report_faults(exe, pass);
    exe->frame.pass = NULL;
    return HEARTH_OK;
}
