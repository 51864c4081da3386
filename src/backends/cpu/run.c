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

/* Columns a claim takes: a few claims a thread, so that one that is held up delays the others by little. */
static int64_t column_piece(const hth_executable *exe, int64_t columns) {
    int64_t threads = exe->backend->threads;
    if (threads == 1) return columns;
    int64_t piece = (columns / (8 * threads) + 15) / 16 * 16;
    return piece < 16 ? 16 : piece;
}

static void work_linear(hth_executable *exe, const hth_stage *stage, int64_t rows, hth_worker *w) {
    const hth_linear_step *steps = &exe->linears[stage->first];
    int64_t total = 0, piece, tasks = 0;
    for (int i = 0; i < stage->count; i++) total += steps[i].columns;
    piece = column_piece(exe, total);
    for (int i = 0; i < stage->count; i++) tasks += (steps[i].columns + piece - 1) / piece;
    for (int64_t task; (task = hth_pool_claim(exe->backend->pool, 1)) < tasks;) {
        const hth_linear_step *s = steps;
        for (int64_t n; task >= (n = (s->columns + piece - 1) / piece); s++) task -= n;
        hth_linear args = s->args;
        if (s->to_logits) args.y += exe->frame.pass->first_output * args.ldy;
        s->run(&args, task * piece, hth_min((task + 1) * piece, s->columns), 0, rows, w->linear);
        hth_work_done(w, s->work);
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
        int64_t rows = stage->domain == HTH_OUTS ? pass->outs : pass->rows;
        if (is_idle(exe, stage, rows)) continue;
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
