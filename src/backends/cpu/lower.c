/* From ops to stages: what runs together, and which kernel each op is bound to. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/executable.h"
#include "base/checked.h"

/* The domain of an op is that of what it writes; KV_APPEND writes for every row. */
static hth_symbol op_domain(const hth_program *p, const hth_op *op) {
    if (op->out == HTH_NONE) return HTH_ROWS;
    const hth_tensor *out = &p->tensors[op->out];
    return out->dims[out->n_dims - 1].symbol;
}

const void *hth_weight_data(const hth_executable *exe, hth_tensor_id id) {
    const hth_tensor *t = &exe->program->tensors[id];
    if (t->class == HTH_CONSTANT) return t->constant;
    assert(t->class == HTH_WEIGHT);
    return exe->files[t->weight.file].base + t->weight.offset;
}

/* ---- Room for the tables: every op makes at most one unit, one linear and its quantizers, and eight stages. ---- */

static hearth_status allocate_tables(hth_executable *exe, hearth_error *err) {
    size_t ops = (size_t)exe->program->n_ops;
    exe->units = calloc(3 * ops + 1, sizeof *exe->units);
    exe->linears = calloc(ops + 1, sizeof *exe->linears);
    exe->attentions = calloc(ops + 1, sizeof *exe->attentions);
    exe->stages = calloc(8 * ops + 1, sizeof *exe->stages);
    exe->scans = calloc(ops + 1, sizeof *exe->scans);
    exe->kv = calloc((size_t)exe->program->n_tensors + 1, sizeof *exe->kv);
    exe->states = calloc((size_t)exe->program->n_tensors + 1, sizeof *exe->states);
    exe->kernel_names = calloc(ops + 1, sizeof *exe->kernel_names);
    if (!exe->units || !exe->linears || !exe->attentions || !exe->stages || !exe->scans || !exe->kv || !exe->states ||
        !exe->kernel_names)
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the tables of %zu ops", ops);
    return HEARTH_OK;
}

static void name_kernel(hth_executable *exe, const hth_op *op, const char *detail) {
    snprintf(exe->kernel_names[op - exe->program->ops], sizeof exe->kernel_names[0], "%s%s%s",
             exe->backend->kernels.name, *detail ? " " : "", detail);
}

static void find_kv_pools(hth_executable *exe) {
    uint64_t element = exe->limits.kv == HTH_F16 ? 2 : 4;
    for (int i = 0; i < exe->program->n_tensors; i++) {
        const hth_tensor *t = &exe->program->tensors[i];
        if (t->class != HTH_KV) continue;
        hth_kv_pool *kv = &exe->kv[exe->n_kv++];
        kv->tensor = i;
        kv->shape = t->kv;
        kv->value_offset = (uint64_t)t->kv.dk * HTH_KV_BLOCK * element;
        kv->head_bytes = kv->value_offset + (uint64_t)t->kv.dv * HTH_KV_BLOCK * element;
        kv->block_bytes = kv->head_bytes * (uint64_t)t->kv.heads;
    }
}

static hearth_status find_states(hth_executable *exe, hearth_error *err) {
    static const hth_extents one = {.value = {[HTH_ONE] = 1}};
    for (int i = 0; i < exe->program->n_tensors; i++) {
        const hth_tensor *t = &exe->program->tensors[i];
        if (t->class != HTH_STATE) continue;
        hth_state_place *s = &exe->states[exe->n_states++];
        *s = (hth_state_place){i, exe->slot_bytes, (uint64_t)hth_tensor_elements(t, &one)};
        uint64_t bytes, end;
        if (!hth_mul_u64(s->floats, sizeof(float), &bytes) || !hth_round_up_u64(bytes, 64, &bytes) ||
            !hth_add_u64(exe->slot_bytes, bytes, &end) || end > INT64_MAX)
            return hth_fail(err, HEARTH_TOO_LONG, "%s: the recurrent state does not fit 63 bits", t->name);
        exe->slot_bytes = end;
    }
    return HEARTH_OK;
}

/* ---- Stages ---- */

hth_stage *hth_stage_add(hth_executable *exe, hth_stage_kind kind, hth_symbol domain, int first, int count) {
    hth_stage *s = &exe->stages[exe->n_stages++];
    *s = (hth_stage){.kind = kind, .domain = domain, .first = first, .count = count};
    return s;
}

/* A unit joins the last stage when that works on the same rows; SELECT reads rows of others, so it starts one. */
static void add_unit(hth_executable *exe, const hth_unit *unit, hth_symbol domain, bool alone) {
    hth_stage *last = exe->n_stages ? &exe->stages[exe->n_stages - 1] : NULL;
    if (!last || last->kind != HTH_STAGE_ROWS || last->domain != domain || alone)
        last = hth_stage_add(exe, HTH_STAGE_ROWS, domain, exe->n_units, 0);
    exe->units[exe->n_units++] = *unit;
    last->count++;
}

/* The ADD after op i that can be its epilogue: it alone reads the product, and what it writes lies where one of its
 * operands lay, so that no column still to be computed loses its input. */
static const hth_op *foldable_add(const hth_executable *exe, int i) {
    const hth_program *p = exe->program;
    if (i + 1 >= p->n_ops) return NULL;
    const hth_op *linear = &p->ops[i], *add = &p->ops[i + 1];
    if (add->opcode != HTH_OP_ADD || add->in[0] == add->in[1]) return NULL;
    if (add->in[0] != linear->out && add->in[1] != linear->out) return NULL;
    if (p->tensors[linear->out].last_use != i + 1 || add->out == p->logits) return NULL;
    uint64_t at = exe->plan.offset[add->out];
    return at == exe->plan.offset[add->in[0]] || at == exe->plan.offset[add->in[1]] ? add : NULL;
}

static bool overlap(const hth_executable *exe, hth_tensor_id a, hth_tensor_id b) {
    const hth_plan *plan = &exe->plan;
    if (plan->offset[a] == UINT64_MAX || plan->offset[b] == UINT64_MAX) return false;
    uint64_t na = sizeof(float) * (uint64_t)hth_tensor_elements(&exe->program->tensors[a], &plan->extents);
    uint64_t nb = sizeof(float) * (uint64_t)hth_tensor_elements(&exe->program->tensors[b], &plan->extents);
    return plan->offset[a] < plan->offset[b] + nb && plan->offset[b] < plan->offset[a] + na;
}

/* How many linears from op i on read the same input and may run side by side. */
static int linear_group(const hth_executable *exe, int i) {
    const hth_program *p = exe->program;
    int n = 1;
    while (n < HTH_STAGE_LINEARS && i + n < p->n_ops) {
        const hth_op *next = &p->ops[i + n];
        if (next->opcode != HTH_OP_LINEAR || next->in[0] != p->ops[i].in[0]) break;
        if (op_domain(p, next) != op_domain(p, &p->ops[i])) break;
        bool clash = overlap(exe, next->out, next->in[0]);
        for (int k = 0; k < n; k++) clash = clash || overlap(exe, next->out, p->ops[i + k].out);
        if (clash) break;
        n++;
    }
    return n;
}

int hth_quantize_add(hth_executable *exe, hth_tensor_id input, int block, hth_symbol domain) {
    hth_unit unit;
    hth_unit_quantize_bind(exe, input, block, &unit);
    int64_t *max_k = &exe->max_k[block == 32 ? 0 : 1];
    if (unit.n > *max_k) *max_k = unit.n;
    add_unit(exe, &unit, domain, false);
    return exe->n_units - 1;
}

hearth_status hth_linear_kernel(const hth_executable *exe, const hth_op *op, const hth_tensor *w, hth_linear_fn **run,
                                int64_t *row_bytes, hearth_error *err) {
    *run = exe->backend->kernels.linear[w->dtype];
    *row_bytes = (int64_t)hth_row_bytes(hth_dtype_find((uint32_t)w->dtype), (uint64_t)w->dims[0].n);
    if (*run) return HEARTH_OK;
    return hth_fail(err, HEARTH_UNSUPPORTED, "%s: dtype %s of %s is not computed; supported: %s", op->site,
                    hth_dtype_name(w->dtype), w->name, hth_dtype_computed_names());
}

static hearth_status bind_linear(hth_executable *exe, const hth_op *op, const hth_op *add, hearth_error *err) {
    const hth_tensor *w = &exe->program->tensors[op->weight[0]];
    hth_linear_fn *run;
    int64_t row_bytes;
    HTH_TRY(hth_linear_kernel(exe, op, w, &run, &row_bytes, err));
    hth_linear_step *step = &exe->linears[exe->n_linears++];
    *step = (hth_linear_step){.op = op, .add = add, .run = run, .columns = w->dims[1].n, .unit = -1};
    step->to_logits = hth_in_logits(exe, add ? add->out : op->out);
    step->args.w = hth_weight_data(exe, op->weight[0]);
    step->args.k = w->dims[0].n;
    step->args.row_bytes = row_bytes;
    if (op->weight[1] != HTH_NONE) step->args.bias = hth_weight_data(exe, op->weight[1]);
    name_kernel(exe, op, hth_dtype_name(w->dtype));
    if (add) name_kernel(exe, add, "in the linear before");
    return HEARTH_OK;
}

/* Add `n` linears from op i on as one stage, after the quantizers that they need. *used is how many ops that took. */
static hearth_status add_linears(hth_executable *exe, int i, int n, int *used, hearth_error *err) {
    const hth_program *p = exe->program;
    const hth_op *ops = &p->ops[i];
    hth_symbol domain = op_domain(p, ops);
    const hth_op *add = foldable_add(exe, i + n - 1);
    int unit_of[2] = {-1, -1}, first = exe->n_linears;
    for (int k = 0; k < n; k++) {
        HTH_TRY(bind_linear(exe, &ops[k], k == n - 1 ? add : NULL, err));
        int block = hth_activation_block(p->tensors[ops[k].weight[0]].dtype);
        if (block == 0) continue;
        int which = block == 32 ? 0 : 1;
        if (unit_of[which] < 0) unit_of[which] = hth_quantize_add(exe, ops[k].in[0], block, domain);
        exe->linears[first + k].unit = unit_of[which];
    }
    hth_stage_add(exe, HTH_STAGE_LINEAR, domain, first, n);
    *used = n + (add ? 1 : 0);
    return HEARTH_OK;
}

static void add_attention(hth_executable *exe, const hth_op *op) {
    int kv = 0;
    while (exe->kv[kv].tensor != op->state) kv++;
    const hth_attention_imm *imm = &op->imm.attention;
    exe->attentions[exe->n_attentions] = (hth_attention_step){
        .op = op,
        .tile = exe->backend->kernels.attention_tile[exe->limits.kv == HTH_F16 ? HTH_KV_F16 : HTH_KV_F32],
        .sinks = op->weight[0] != HTH_NONE ? hth_weight_data(exe, op->weight[0]) : NULL,
        .kv = kv};
    if (imm->heads / imm->kv_heads > exe->max_group) exe->max_group = imm->heads / imm->kv_heads;
    if (imm->dk > exe->max_dk) exe->max_dk = imm->dk;
    if (imm->dv > exe->max_dv) exe->max_dv = imm->dv;
    hth_stage_add(exe, HTH_STAGE_ATTENTION, HTH_ROWS, exe->n_attentions, 1);
    hth_stage_add(exe, HTH_STAGE_MERGE, HTH_ROWS, exe->n_attentions, 1);
    exe->n_attentions++;
    name_kernel(exe, op, exe->limits.kv == HTH_F16 ? "F16" : "F32");
}

static hearth_status make_stages(hth_executable *exe, hearth_error *err) {
    const hth_program *p = exe->program;
    for (int i = 0, used; i < p->n_ops; i += used) {
        const hth_op *op = &p->ops[i];
        used = 1;
        if (op->opcode == HTH_OP_LINEAR) {
            HTH_TRY(add_linears(exe, i, linear_group(exe, i), &used, err));
        } else if (op->opcode == HTH_OP_ATTENTION) {
            add_attention(exe, op);
        } else if (op->opcode == HTH_OP_CONV_RING || op->opcode == HTH_OP_DELTA_RULE) {
            HTH_TRY(hth_scan_bind(exe, op, err));
            name_kernel(exe, op, "");
        } else if (op->opcode == HTH_OP_EXPERTS) {
            HTH_TRY(hth_experts_bind(exe, op, err));
            name_kernel(exe, op, hth_dtype_name(p->tensors[op->weight[0]].dtype));
        } else {
            hth_unit unit;
            HTH_TRY(hth_unit_bind(exe, op, &unit, err));
            if (!unit.run)
                return hth_fail(err, HEARTH_UNSUPPORTED, "%s: the CPU backend has no %s", op->site,
                                hth_opcode_name(op->opcode));
            add_unit(exe, &unit, op_domain(p, op), op->opcode == HTH_OP_SELECT);
            if (op->opcode == HTH_OP_ROUTER && p->tensors[op->in[0]].dims[0].n > exe->max_experts)
                exe->max_experts = p->tensors[op->in[0]].dims[0].n;
            name_kernel(exe, op, "");
        }
    }
    return HEARTH_OK;
}

/* Attention takes rows in chunks of about 64 queries. Partial results of split attention are for few rows at the full
 * depth; passes that would need more run unsplit. */
static void size_attention(hth_executable *exe) {
    if (exe->n_attentions == 0) return;
    int64_t rows = exe->max_group < 64 ? 64 / exe->max_group : 1;
    exe->chunk_rows = rows < 16 ? rows : 16;
    uint64_t tiles = (uint64_t)(exe->limits.context + HTH_KV_BLOCK - 1) / HTH_KV_BLOCK, heads = 0;
    for (int i = 0; i < exe->n_attentions; i++)
        if ((uint64_t)exe->attentions[i].op->imm.attention.heads > heads)
            heads = (uint64_t)exe->attentions[i].op->imm.attention.heads;
    uint64_t one_row = tiles * heads * (uint64_t)(exe->max_dv + 2);
    uint64_t few = (uint64_t)1 << 20;
    exe->partial_floats = one_row > few ? one_row : 4 * one_row < few ? 4 * one_row : few;
}

hearth_status hth_cpu_lower(hth_backend *backend, const hth_program *program, const hth_file_view *files,
                            const hth_limits *limits, hth_executable **out, hearth_error *err) {
    hth_executable *exe = calloc(1, sizeof *exe);
    *out = NULL;
    if (!exe) return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the executable");
    exe->backend = backend;
    exe->program = program;
    exe->files = files;
    exe->limits = *limits;
    hearth_status status = hth_plan_make(program, &limits->extents, &exe->plan, err);
    if (status == HEARTH_OK) status = allocate_tables(exe, err);
    if (status == HEARTH_OK) status = hth_experts_tables(exe, err);
    if (status == HEARTH_OK) {
        find_kv_pools(exe);
        status = find_states(exe, err);
    }
    if (status == HEARTH_OK) status = make_stages(exe, err);
    if (status == HEARTH_OK) status = hth_work_bind(exe, err);
    if (status != HEARTH_OK) {
        hth_cpu_free(&exe);
        return status;
    }
    size_attention(exe);
    *out = exe;
    return HEARTH_OK;
}

void hth_cpu_free(hth_executable **out) {
    hth_executable *exe = *out;
    if (!exe) return;
    hth_arena_unmap(&exe->activations);
    hth_arena_unmap(&exe->kv_arena);
    hth_arena_unmap(&exe->state_arena);
    hth_arena_unmap(&exe->mark_arena);
    hth_arena_unmap(&exe->logits_arena);
    hth_arena_unmap(&exe->scratch);
    hth_plan_free(&exe->plan);
    free(exe->units);
    free(exe->linears);
    free(exe->attentions);
    free(exe->stages);
    free(exe->scans);
    hth_experts_free(exe);
    hth_work_free(exe);
    free(exe->kv);
    free(exe->states);
    free(exe->kernel_names);
    free(exe->workers);
    free(exe);
    *out = NULL;
}
