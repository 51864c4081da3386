/* Row-wise ops: what each does to rows r0..r1-1, and how it is bound. */
#include <assert.h>
#include <string.h>

#include "backends/cpu/executable.h"
#include "base/math.h"

static const float *in_row(const hth_unit *u, int i, int64_t r) {
    return u->in[i].base + r * u->in[i].ld;
}
static float *out_row(const hth_unit *u, int64_t r) {
    return u->out.base + r * u->out.ld;
}

/* The units that may end in the logits buffer start at the pass's first output there; what they read lies there too. */
static int64_t first_row(const hth_executable *exe, const hth_unit *u) {
    return u->to_logits ? exe->frame.pass->first_output : 0;
}

static void run_embed(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    const hth_pass *pass = exe->frame.pass;
    bool tokens = exe->program->tensors[u->op->in[0]].input == HTH_INPUT_TOKENS;
    for (int64_t r = r0; r < r1; r++) {
        int64_t id = tokens ? pass->tokens[r] : pass->positions[r];
        u->kernel.embed((const unsigned char *)u->table + id * u->table_row_bytes, out_row(u, r), u->n,
                        u->op->imm.embed.scale);
    }
}

static void run_rope_angles(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    int64_t pairs = u->n / 2;
    float magnitude = u->op->imm.rope_angles.magnitude;
    for (int64_t r = r0; r < r1; r++) {
        float position = (float)exe->frame.pass->positions[r], *y = out_row(u, r);
        for (int64_t i = 0; i < pairs; i++) {
            float sine, cosine;
            hth_sincos(position * u->w[0][i], &sine, &cosine);
            y[i] = cosine * magnitude;
            y[pairs + i] = sine * magnitude;
        }
    }
}

static void run_rms_norm(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    hth_rms_norm_fn *norm = exe->backend->kernels.rms_norm;
    for (int64_t r = r0; r < r1; r++) norm(in_row(u, 0, r), u->w[0], out_row(u, r), u->n, u->op->imm.norm.eps);
}

static void run_layer_norm(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    hth_layer_norm_fn *norm = exe->backend->kernels.layer_norm;
    for (int64_t r = r0; r < r1; r++) norm(in_row(u, 0, r), u->w[0], u->w[1], out_row(u, r), u->n, u->op->imm.norm.eps);
}

static void run_head_norm(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    hth_rms_norm_fn *norm = exe->backend->kernels.rms_norm;
    int64_t d = u->op->imm.head_norm.head_dim;
    for (int64_t r = r0; r < r1; r++)
        for (int64_t i = 0; i < u->n; i += d)
            norm(in_row(u, 0, r) + i, u->w[0], out_row(u, r) + i, d, u->op->imm.head_norm.eps);
}

static void run_rope(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    int64_t d = u->op->imm.rope.head_dim;
    for (int64_t r = r0; r < r1; r++) {
        float *y = out_row(u, r);
        if (y != in_row(u, 0, r)) memcpy(y, in_row(u, 0, r), (size_t)u->n * sizeof *y);
        exe->backend->kernels.rope(y, u->n / d, d, u->op->imm.rope.n_rot, u->op->imm.rope.neox, in_row(u, 1, r));
    }
}

static void run_kv_append(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    const hth_pass *pass = exe->frame.pass;
    const hth_kv_pool *kv = &exe->kv[u->kv];
    for (int64_t r = r0; r < r1; r++) {
        int64_t position = pass->positions[r];
        int32_t block = pass->block_table[exe->frame.row_seq[r]][position / HTH_KV_BLOCK];
        unsigned char *base = kv->base + (uint64_t)block * kv->block_bytes;
        for (int64_t h = 0; h < kv->shape.heads; h++)
            u->kernel.kv_append(in_row(u, 0, r) + h * kv->shape.dk, in_row(u, 1, r) + h * kv->shape.dv, kv->shape.dk,
                                kv->shape.dv, base + (uint64_t)h * kv->head_bytes,
                                base + (uint64_t)h * kv->head_bytes + kv->value_offset, (int)(position % HTH_KV_BLOCK));
    }
}

static void run_glu(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    (void)exe;
    for (int64_t r = r0; r < r1; r++) u->kernel.glu(in_row(u, 0, r), in_row(u, 1, r), out_row(u, r), u->n);
}

static void run_act(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    (void)exe;
    for (int64_t r = r0; r < r1; r++) u->kernel.act(in_row(u, 0, r), out_row(u, r), u->n);
}

static void run_add(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    for (int64_t r = r0; r < r1; r++) exe->backend->kernels.add(in_row(u, 0, r), in_row(u, 1, r), out_row(u, r), u->n);
}

static void run_scale(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    int64_t first = first_row(exe, u);
    for (int64_t r = first + r0; r < first + r1; r++)
        exe->backend->kernels.scale(in_row(u, 0, r), u->op->imm.scale, out_row(u, r), u->n);
}

static void run_softcap(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    int64_t first = first_row(exe, u);
    for (int64_t r = first + r0; r < first + r1; r++)
        exe->backend->kernels.softcap(in_row(u, 0, r), u->op->imm.softcap, out_row(u, r), u->n);
}

static void run_select(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    for (int64_t r = r0; r < r1; r++)
        memcpy(out_row(u, r), in_row(u, 0, exe->frame.pass->out_rows[r]), (size_t)u->n * sizeof(float));
}

static void run_router(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    int64_t experts = exe->program->tensors[u->op->in[0]].dims[0].n, used = u->op->imm.router.used;
    bool outs = exe->program->tensors[u->op->out].dims[1].symbol == HTH_OUTS;
    for (int64_t r = r0; r < r1; r++)
        if (!hth_route(in_row(u, 0, r), experts, used, u->op->imm.router.kind, out_row(u, r), w->router))
            hth_fault_note(exe, u->op, outs ? exe->frame.pass->out_rows[r] : r);
}

static void run_slice(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    (void)exe;
    int64_t group = u->op->imm.slice.group, count = u->op->imm.slice.count;
    for (int64_t r = r0; r < r1; r++) {
        const float *x = in_row(u, 0, r) + u->op->imm.slice.first;
        float *y = out_row(u, r);
        for (int64_t i = 0; i < u->n / count; i++) memcpy(y + i * count, x + i * group, (size_t)count * sizeof *y);
    }
}

static void run_gate(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    const hth_kernels *k = &exe->backend->kernels;
    static const float one = 1;
    bool single = u->in[1].ld == 1 && u->n != 1;
    for (int64_t r = r0; r < r1; r++) {
        float sigmoid;
        if (single) {
            k->gate(&one, in_row(u, 1, r), &sigmoid, 1);
            k->scale(in_row(u, 0, r), sigmoid, out_row(u, r), u->n);
        } else k->gate(in_row(u, 0, r), in_row(u, 1, r), out_row(u, r), u->n);
    }
}

static void run_gated_norm(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    const hth_kernels *k = &exe->backend->kernels;
    run_head_norm(exe, u, r0, r1, w);
    for (int64_t r = r0; r < r1; r++) k->glu[HTH_SILU](in_row(u, 1, r), out_row(u, r), out_row(u, r), u->n);
}

static void run_quantize(hth_executable *exe, const hth_unit *u, int64_t r0, int64_t r1, hth_worker *w) {
    (void)w;
    (void)exe;
    u->kernel.quantize(u->in[0].base, u->in[0].ld, r0, r1, &u->q);
}

void hth_unit_quantize_bind(const hth_executable *exe, hth_tensor_id input, int block, hth_unit *unit) {
    *unit = (hth_unit){.run = run_quantize, .input = input, .n = exe->program->tensors[input].dims[0].n};
    unit->kernel.quantize = block == 32 ? exe->backend->kernels.quantize32 : exe->backend->kernels.quantize256;
    unit->q.k = unit->n;
    unit->q.block = block;
}

static int find_kv(const hth_executable *exe, hth_tensor_id tensor) {
    for (int i = 0; i < exe->n_kv; i++)
        if (exe->kv[i].tensor == tensor) return i;
    assert(!"every KV tensor has a pool");
    return -1;
}

static hth_unit_fn *row_wise(hth_opcode opcode) {
    switch (opcode) {
    case HTH_OP_EMBED: return run_embed;
    case HTH_OP_ROPE_ANGLES: return run_rope_angles;
    case HTH_OP_RMS_NORM: return run_rms_norm;
    case HTH_OP_LAYER_NORM: return run_layer_norm;
    case HTH_OP_HEAD_NORM: return run_head_norm;
    case HTH_OP_ROPE: return run_rope;
    case HTH_OP_KV_APPEND: return run_kv_append;
    case HTH_OP_GLU: return run_glu;
    case HTH_OP_ACT: return run_act;
    case HTH_OP_ADD: return run_add;
    case HTH_OP_SCALE: return run_scale;
    case HTH_OP_SOFTCAP: return run_softcap;
    case HTH_OP_ROUTER: return run_router;
    case HTH_OP_SELECT: return run_select;
    case HTH_OP_SLICE: return run_slice;
    case HTH_OP_GATE: return run_gate;
    case HTH_OP_GATED_NORM: return run_gated_norm;
    default: return NULL;
    }
}

hearth_status hth_unit_bind(const hth_executable *exe, const hth_op *op, hth_unit *unit, hearth_error *err) {
    const hth_kernels *k = &exe->backend->kernels;
    const hth_tensor *tensors = exe->program->tensors;
    *unit = (hth_unit){.run = row_wise(op->opcode), .op = op, .input = HTH_NONE, .kv = -1};
    if (!unit->run) return HEARTH_OK;
    unit->to_logits = op->out != HTH_NONE && hth_in_logits(exe, op->out);
    unit->n = tensors[op->out != HTH_NONE ? op->out : op->in[0]].dims[0].n;
    switch (op->opcode) {
    case HTH_OP_EMBED: {
        const hth_tensor *table = &tensors[op->weight[0]];
        unit->table = hth_weight_data(exe, op->weight[0]);
        unit->table_row_bytes = (int64_t)hth_row_bytes(hth_dtype_find((uint32_t)table->dtype), (uint64_t)unit->n);
        unit->kernel.embed = k->embed[table->dtype];
        if (!unit->kernel.embed)
            return hth_fail(err, HEARTH_UNSUPPORTED, "%s: dtype %s of %s cannot be looked up; supported: %s", op->site,
                            hth_dtype_name(table->dtype), table->name, hth_dtype_computed_names());
        return HEARTH_OK;
    }
    case HTH_OP_KV_APPEND:
        unit->kv = find_kv(exe, op->state);
        unit->kernel.kv_append = k->kv_append[exe->limits.kv == HTH_F16 ? HTH_KV_F16 : HTH_KV_F32];
        return HEARTH_OK;
    case HTH_OP_GLU: unit->kernel.glu = k->glu[op->imm.act.kind]; return HEARTH_OK;
    case HTH_OP_ACT: unit->kernel.act = k->act[op->imm.act.kind]; return HEARTH_OK;
    default:
        for (int i = 0; i < 2; i++)
            if (op->weight[i] != HTH_NONE) unit->w[i] = hth_weight_data(exe, op->weight[i]);
        return HEARTH_OK;
    }
}
