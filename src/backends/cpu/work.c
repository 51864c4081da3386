/* Accounts of work: what each pass costs, by kind of work, and, while the clock runs, how long each kind takes.
 *
 * Costs follow from shapes: a linear's from the rows of the pass, attention's from the positions its rows see, those of
 * a mixture of experts from the experts that its rows chose. They are counted after every pass, on the calling thread.
 *
 * Time: a thread takes a stamp after each piece of work, and gives the time since its last stamp to the kind of that
 * piece; what passes between the last piece of a stage and the end of its barrier is waiting. So a thread's times add
 * up to the length of the passes. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/executable.h"
#include "base/clock.h"

/* ---- Kinds ---- */

int hth_kind_of(hth_executable *exe, hth_work_class class, const char *format, ...) {
    hth_account *a = &exe->account;
    hth_kind *kind = &a->kinds[a->n_kinds];
    va_list args;
    assert(a->n_kinds < HTH_KINDS);
    va_start(args, format);
    vsnprintf(kind->name, sizeof kind->name, format, args);
    va_end(args);
    for (int i = 0; i < a->n_kinds; i++)
        if (strcmp(a->kinds[i].name, kind->name) == 0) return i;
    kind->class = class;
    return a->n_kinds++;
}

static hth_cost *cost_in(hth_kind *kind, hth_symbol domain) {
    return domain == HTH_OUTS ? &kind->outs : &kind->rows;
}

/* ---- Costs ---- */

static uint64_t row_bytes(const hth_executable *exe, hth_tensor_id id) {
    if (id == HTH_NONE) return 0;
    const hth_tensor *t = &exe->program->tensors[id];
    return t->class == HTH_ACTIVATION || t->class == HTH_OUTPUT ? (uint64_t)t->dims[0].n * sizeof(float) : 0;
}

static uint64_t position_bytes(const hth_executable *exe, const hth_kv_shape *kv) {
    return (uint64_t)(kv->heads * (kv->dk + kv->dv)) * (exe->limits.kv == HTH_F16 ? 2 : 4);
}

static void add_unit(hth_executable *exe, hth_unit *u, hth_symbol domain) {
    if (!u->op) {
        u->work = hth_kind_of(exe, HTH_WORK_OTHER, "quantize");
        cost_in(&exe->account.kinds[u->work], domain)->row_bytes += row_bytes(exe, u->input) + (uint64_t)u->n;
        return;
    }
    u->work = hth_kind_of(exe, HTH_WORK_OTHER, "%s", hth_opcode_name(u->op->opcode));
    hth_cost *cost = cost_in(&exe->account.kinds[u->work], domain);
    for (int i = 0; i < HTH_OP_INPUTS; i++) cost->row_bytes += row_bytes(exe, u->op->in[i]);
    cost->row_bytes += row_bytes(exe, u->op->out);
    if (u->op->opcode == HTH_OP_KV_APPEND)
        cost->row_bytes += position_bytes(exe, &exe->program->tensors[u->op->state].kv);
    if (u->op->opcode == HTH_OP_EMBED) cost->row_bytes += (uint64_t)u->table_row_bytes;
}

static void add_linear(hth_executable *exe, hth_linear_step *s, hth_symbol domain) {
    hth_dtype dtype = exe->program->tensors[s->op->weight[0]].dtype;
    s->work = hth_kind_of(exe, hth_activation_block(dtype) ? HTH_WORK_LINEAR_INT8 : HTH_WORK_LINEAR_FLOAT, "%s %s",
                          s->to_logits ? "logits" : "linear", hth_dtype_name(dtype));
    hth_cost *cost = cost_in(&exe->account.kinds[s->work], domain);
    cost->pass_bytes += (uint64_t)s->columns * (uint64_t)s->args.row_bytes;
    cost->row_ops += 2 * (uint64_t)s->columns * (uint64_t)s->args.k;
}

static int add_attention(hth_executable *exe, const hth_attention_step *s) {
    const hth_attention_imm *imm = &s->op->imm.attention;
    hth_account *a = &exe->account;
    int i = 0;
    while (i < a->n_reaches && a->reaches[i].window != imm->window) i++;
    if (i == a->n_reaches) a->reaches[a->n_reaches++] = (hth_reach){.window = imm->window};
    a->reaches[i].position_bytes += position_bytes(exe, &exe->kv[s->kv].shape);
    a->reaches[i].pair_ops += 2 * (uint64_t)(imm->heads * (imm->dk + imm->dv));
    return a->attention = hth_kind_of(exe, HTH_WORK_ATTENTION, "attention");
}

static int add_scan(hth_executable *exe, const hth_scan_step *s) {
    int at = hth_kind_of(exe, HTH_WORK_SCAN, "%s", hth_opcode_name(s->op->opcode));
    hth_cost *cost = &exe->account.kinds[at].rows;
    const uint64_t state = exe->states[s->state].floats;
    cost->seq_bytes += 2 * state * sizeof(float); /* read and written */
    if (s->op->opcode == HTH_OP_CONV_RING)
        cost->row_ops +=
            2 * (uint64_t)hth_tensor_elements(&exe->program->tensors[s->op->weight[0]], &exe->plan.extents);
    else cost->row_ops += 2 * 3 * state; /* S k, S + k d, S q */
    return at;
}

static void add_stage(hth_executable *exe, hth_stage *stage) {
    for (int i = stage->first; i < stage->first + stage->count; i++) switch (stage->kind) {
        case HTH_STAGE_ROWS: add_unit(exe, &exe->units[i], stage->domain); break;
        case HTH_STAGE_LINEAR: add_linear(exe, &exe->linears[i], stage->domain); break;
        case HTH_STAGE_ATTENTION: stage->work = add_attention(exe, &exe->attentions[i]); break;
        case HTH_STAGE_MERGE: stage->work = hth_kind_of(exe, HTH_WORK_OTHER, "attention merge"); break;
        case HTH_STAGE_SCAN: stage->work = add_scan(exe, &exe->scans[i]); break;
        case HTH_STAGE_EXPERTS: stage->work = hth_experts_kind(exe, stage); break;
        }
}

hearth_status hth_work_bind(hth_executable *exe, hearth_error *err) {
    hth_account *a = &exe->account;
    a->kinds = calloc(HTH_KINDS, sizeof *a->kinds);
    a->reaches = calloc((size_t)exe->n_attentions + 1, sizeof *a->reaches);
    if (!a->kinds || !a->reaches) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the accounts of work");
    a->attention = -1;
    int waiting = hth_kind_of(exe, HTH_WORK_WAITING, "waiting");
    assert(waiting == HTH_KIND_WAITING);
    (void)waiting;
    for (int i = 0; i < exe->n_stages; i++) add_stage(exe, &exe->stages[i]);
    return HEARTH_OK;
}

void hth_work_free(hth_executable *exe) {
    free(exe->account.kinds);
    free(exe->account.reaches);
    free(exe->account.clock);
}

/* ---- After a pass ---- */

/* Add what attention reads and multiplies for `rows` rows from position p0 on, each position of a sequence read once.
 */
static void count_reach(hth_kind *kind, const hth_reach *reach, int64_t p0, int64_t rows) {
    int64_t first = 0, growing = rows; /* rows that see everything before them */
    if (reach->window > 0) {
        first = hth_max(0, p0 - reach->window + 1);
        growing = hth_max(0, hth_min(rows, reach->window - p0));
    }
    uint64_t pairs = (uint64_t)(growing * (p0 + 1) + growing * (growing - 1) / 2 + (rows - growing) * reach->window);
    kind->bytes += (uint64_t)(p0 + rows - first) * reach->position_bytes;
    kind->ops += pairs * reach->pair_ops;
}

static void count_cost(hth_kind *kind, const hth_cost *cost, int64_t rows, int64_t seqs) {
    if (rows == 0) return;
    kind->bytes += cost->pass_bytes + (uint64_t)seqs * cost->seq_bytes + (uint64_t)rows * cost->row_bytes;
    kind->ops += (uint64_t)rows * cost->row_ops;
}

void hth_work_count(hth_executable *exe, const hth_pass *pass) {
    hth_account *a = &exe->account;
    for (int i = 0; i < a->n_kinds; i++) {
        count_cost(&a->kinds[i], &a->kinds[i].rows, pass->rows, pass->seqs);
        count_cost(&a->kinds[i], &a->kinds[i].outs, pass->outs, pass->seqs);
    }
    for (int r = 0; r < a->n_reaches; r++)
        for (int64_t s = 0; s < pass->seqs; s++)
            count_reach(&a->kinds[a->attention], &a->reaches[r], pass->positions[pass->seq_rows[s]],
                        pass->seq_rows[s + 1] - pass->seq_rows[s]);
}

/* ---- The clock ---- */

void hth_clock_stamp(uint64_t *ns, int kind) {
    uint64_t now = hth_now_ns();
    ns[1 + kind] += now - ns[0];
    ns[0] = now;
}

hearth_status hth_cpu_clock(hth_executable *exe, bool run, hearth_error *err) {
    enum { LINE = 64 / sizeof(uint64_t) };
    hth_account *a = &exe->account;
    const size_t threads = (size_t)exe->backend->threads;
    free(a->clock);
    a->clock = NULL;
    if (run) {
        a->clock_stride = ((size_t)a->n_kinds + 1 + LINE - 1) / LINE * LINE;
        a->clock = aligned_alloc(64, threads * a->clock_stride * sizeof *a->clock);
        if (!a->clock) hth_fail(err, HEARTH_NO_MEMORY, "no memory for the clocks of %zu threads", threads);
        else memset(a->clock, 0, threads * a->clock_stride * sizeof *a->clock);
        for (int i = 0; i < a->n_kinds; i++) {
            a->kinds[i].bytes_then = a->kinds[i].bytes;
            a->kinds[i].ops_then = a->kinds[i].ops;
        }
    }
    for (size_t i = 0; i < threads; i++) exe->workers[i].ns = a->clock ? a->clock + i * a->clock_stride : NULL;
    return run && !a->clock ? HEARTH_NO_MEMORY : HEARTH_OK;
}

size_t hth_cpu_work(const hth_executable *exe, bool timed, hth_work *out, size_t capacity) {
    const hth_account *a = &exe->account;
    for (int i = 0; i < a->n_kinds && (size_t)i < capacity; i++) {
        const hth_kind *k = &a->kinds[i];
        out[i] = (hth_work){.what = k->name, .class = k->class, .bytes = k->bytes, .ops = k->ops};
        if (!timed) continue;
        out[i].bytes -= k->bytes_then;
        out[i].ops -= k->ops_then;
        for (int t = 0; t < exe->backend->threads && a->clock; t++)
            out[i].ns += a->clock[(size_t)t * a->clock_stride + 1 + (size_t)i];
    }
    return (size_t)a->n_kinds;
}
