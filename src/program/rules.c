#include "program/rules.h"

#include <inttypes.h>
#include <stddef.h>

#include "program/print.h"

/* ---- Operands ---------------------------------------------------------------------------------------------------- */

static const hth_tensor *tensor(const hth_program *program, hth_tensor_id id) {
    return &program->tensors[id];
}
static int64_t width(const hth_tensor *t) {
    return t->dims[0].n;
}
static hth_symbol rows(const hth_tensor *t) {
    return t->dims[1].symbol;
}

static bool is_rows(const hth_tensor *t) {
    return (t->class == HTH_ACTIVATION || t->class == HTH_OUTPUT) && t->dtype == HTH_F32 && t->n_dims == 2 &&
           t->dims[0].symbol == HTH_ONE && t->dims[1].symbol != HTH_ONE && t->dims[1].n == 1;
}

static bool is_vector(const hth_tensor *t) {
    return (t->class == HTH_WEIGHT || t->class == HTH_CONSTANT) && t->dtype == HTH_F32 && t->n_dims == 1;
}

static bool is_matrix(const hth_tensor *t) {
    const hth_dtype_info *info = hth_dtype_find((uint32_t)t->dtype);
    return t->class == HTH_WEIGHT && t->n_dims == 2 && info && info->computed && width(t) % info->block == 0;
}

static bool is_slabs(const hth_tensor *t) {
    const hth_dtype_info *info = hth_dtype_find((uint32_t)t->dtype);
    return t->class == HTH_WEIGHT && t->n_dims == 3 && info && info->computed && width(t) % info->block == 0;
}

static bool is_table(const hth_tensor *t) {
    return t->class == HTH_WEIGHT && t->dtype == HTH_F32 && t->n_dims == 2;
}

/* A state whose checkpoint tensor has its dims and one for the marks. */
static bool is_state(const hth_program *program, const hth_tensor *t) {
    if (t->class != HTH_STATE || t->n_dims >= HTH_TENSOR_DIMS || t->checkpoint < 0 ||
        t->checkpoint >= program->n_tensors)
        return false;
    const hth_tensor *c = tensor(program, t->checkpoint);
    if (c->class != HTH_CHECKPOINT || c->n_dims != t->n_dims + 1 || c->dims[t->n_dims].symbol != HTH_MARKS)
        return false;
    for (int i = 0; i < t->n_dims; i++)
        if (t->dims[i].symbol != HTH_ONE || c->dims[i].symbol != HTH_ONE || c->dims[i].n != t->dims[i].n) return false;
    return true;
}

static bool is_input(const hth_tensor *t, hth_input input) {
    return t->class == HTH_INPUT && t->input == input;
}

/* What a slot takes, in words, for errors. */
static const char *operand_text(hth_operand operand) {
    switch (operand) {
    case HTH_OPERAND_NONE: return "nothing";
    case HTH_OPERAND_ROWS: return "float32 rows";
    case HTH_OPERAND_IDS: return "the tokens or positions";
    case HTH_OPERAND_POSITIONS: return "the positions";
    case HTH_OPERAND_OUT_ROWS: return "the output rows";
    case HTH_OPERAND_MATRIX: return "a weight matrix";
    case HTH_OPERAND_VECTOR: return "a float32 vector";
    case HTH_OPERAND_OPTIONAL_VECTOR: return "a float32 vector or nothing";
    case HTH_OPERAND_SLABS: return "a stack of weight matrices";
    case HTH_OPERAND_TABLE: return "a float32 matrix";
    case HTH_OPERAND_OPTIONAL_TABLE: return "a float32 matrix or nothing";
    case HTH_OPERAND_KV_WRITE: return "a KV tensor";
    case HTH_OPERAND_KV_READ: return "a KV tensor that was appended to";
    case HTH_OPERAND_STATE: return "a state with room for its marks";
    }
    return "?";
}

static bool operand_fits(const hth_program *program, const hth_tensor *t, hth_operand operand) {
    switch (operand) {
    case HTH_OPERAND_NONE: return t == NULL;
    case HTH_OPERAND_ROWS: return t && is_rows(t);
    case HTH_OPERAND_IDS: return t && (is_input(t, HTH_INPUT_TOKENS) || is_input(t, HTH_INPUT_POSITIONS));
    case HTH_OPERAND_POSITIONS: return t && is_input(t, HTH_INPUT_POSITIONS);
    case HTH_OPERAND_OUT_ROWS: return t && is_input(t, HTH_INPUT_OUT_ROWS);
    case HTH_OPERAND_MATRIX: return t && is_matrix(t);
    case HTH_OPERAND_VECTOR: return t && is_vector(t);
    case HTH_OPERAND_OPTIONAL_VECTOR: return !t || is_vector(t);
    case HTH_OPERAND_SLABS: return t && is_slabs(t);
    case HTH_OPERAND_TABLE: return t && is_table(t);
    case HTH_OPERAND_OPTIONAL_TABLE: return !t || is_table(t);
    case HTH_OPERAND_STATE: return t && is_state(program, t);
    case HTH_OPERAND_KV_WRITE: return t && t->class == HTH_KV;
    case HTH_OPERAND_KV_READ: return t && t->class == HTH_KV && t->writer >= 0;
    }
    return false;
}

/* ---- Relations, one function an opcode --------------------------------------------------------------------------- */

/* "site: opcode: what [shape]" for a tensor that does not fit its neighbours. */
static hearth_status misfit(const hth_op *op, const hth_tensor *t, const char *what, int64_t wanted,
                            hearth_error *err) {
    char shape[HTH_SHAPE_TEXT];
    hth_shape_text(t, shape, sizeof shape);
    return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: %s is %s, wanted %s %" PRId64, op->site, hth_opcode_name(op->opcode),
                    t->name, shape, what, wanted);
}

static hearth_status infer_embed(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    (void)err;
    *out = (hth_out_shape){width(tensor(program, op->weight[0])), tensor(program, op->in[0])->dims[0].symbol};
    return HEARTH_OK;
}

static hearth_status infer_rope_angles(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                       hearth_error *err) {
    (void)err;
    *out = (hth_out_shape){2 * width(tensor(program, op->weight[0])), HTH_ROWS};
    return HEARTH_OK;
}

/* RMS_NORM and LAYER_NORM: vectors as wide as the rows. */
static hearth_status infer_norm(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]);
    for (int i = 0; i < HTH_OP_WEIGHTS; i++) {
        if (op->weight[i] == HTH_NONE) continue;
        const hth_tensor *w = tensor(program, op->weight[i]);
        if (width(w) != width(x)) return misfit(op, w, "a length", width(x), err);
    }
    *out = (hth_out_shape){width(x), rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_head_norm(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                     hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *w = tensor(program, op->weight[0]);
    int64_t head_dim = op->imm.head_norm.head_dim;
    if (head_dim < 1 || width(x) % head_dim != 0) return misfit(op, x, "rows of heads", head_dim, err);
    if (width(w) != head_dim) return misfit(op, w, "a length", head_dim, err);
    *out = (hth_out_shape){width(x), rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_linear(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *w = tensor(program, op->weight[0]);
    int64_t n = w->dims[1].n;
    if (width(w) != width(x)) return misfit(op, w, "rows", width(x), err);
    if (op->weight[1] != HTH_NONE) {
        const hth_tensor *bias = tensor(program, op->weight[1]);
        if (width(bias) != n) return misfit(op, bias, "a length", n, err);
    }
    *out = (hth_out_shape){n, rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_rope(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *angles = tensor(program, op->in[1]);
    int64_t head_dim = op->imm.rope.head_dim, n_rot = op->imm.rope.n_rot;
    if (head_dim < 1 || width(x) % head_dim != 0) return misfit(op, x, "rows of heads", head_dim, err);
    if (n_rot < 2 || n_rot > head_dim || width(angles) != n_rot) return misfit(op, angles, "angles", n_rot, err);
    if (rows(x) != HTH_ROWS) return misfit(op, x, "a row for each token, heads", head_dim, err);
    *out = (hth_out_shape){width(x), HTH_ROWS};
    return HEARTH_OK;
}

static hearth_status infer_kv_append(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                     hearth_error *err) {
    const hth_tensor *k = tensor(program, op->in[0]), *v = tensor(program, op->in[1]);
    hth_kv_shape kv = tensor(program, op->state)->kv;
    if (width(k) != kv.heads * kv.dk || rows(k) != HTH_ROWS) return misfit(op, k, "keys", kv.heads * kv.dk, err);
    if (width(v) != kv.heads * kv.dv || rows(v) != HTH_ROWS) return misfit(op, v, "values", kv.heads * kv.dv, err);
    *out = (hth_out_shape){0, HTH_ONE};
    return HEARTH_OK;
}

static hearth_status infer_attention(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                     hearth_error *err) {
    const hth_tensor *q = tensor(program, op->in[0]), *state = tensor(program, op->state);
    const hth_attention_imm *a = &op->imm.attention;
    if (a->kv_heads != state->kv.heads || a->dk != state->kv.dk || a->dv != state->kv.dv)
        return hth_fail(err, HEARTH_BAD_FILE,
                        "%s: attention: %s has %" PRId64 " heads of %" PRId64 " + %" PRId64 ", wanted %" PRId64
                        " of %" PRId64 " + %" PRId64,
                        op->site, state->name, state->kv.heads, state->kv.dk, state->kv.dv, a->kv_heads, a->dk, a->dv);
    if (a->heads < 1 || a->heads % a->kv_heads != 0) return misfit(op, state, "KV heads that divide", a->heads, err);
    if (width(q) != a->heads * a->dk || rows(q) != HTH_ROWS) return misfit(op, q, "queries", a->heads * a->dk, err);
    if (a->window < 0)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: attention: a window of %" PRId64, op->site, a->window);
    if (op->weight[0] != HTH_NONE && width(tensor(program, op->weight[0])) != a->heads)
        return misfit(op, tensor(program, op->weight[0]), "a length", a->heads, err);
    *out = (hth_out_shape){a->heads * a->dv, HTH_ROWS};
    return HEARTH_OK;
}

/* One input or two of the same shape, and an output like them. */
static hearth_status infer_elementwise(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                       hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]);
    if (op->opcode == HTH_OP_ACT && op->imm.act.kind == HTH_ACT_SWIGLU_CLAMPED)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: act: a clamped swiglu needs two inputs", op->site);
    if (op->in[1] != HTH_NONE) {
        const hth_tensor *y = tensor(program, op->in[1]);
        if (width(y) != width(x) || rows(y) != rows(x)) return misfit(op, y, "rows", width(x), err);
    }
    *out = (hth_out_shape){width(x), rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_slice(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]);
    int64_t group = op->imm.slice.group, first = op->imm.slice.first, count = op->imm.slice.count;
    if (group < 1 || width(x) % group != 0) return misfit(op, x, "groups", group, err);
    if (first < 0 || count < 1 || count > group || first > group - count)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: slice: %" PRId64 " elements from %" PRId64 " of %" PRId64, op->site,
                        count, first, group);
    *out = (hth_out_shape){width(x) / group * count, rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_gate(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *g = tensor(program, op->in[1]);
    if ((width(g) != width(x) && width(g) != 1) || rows(g) != rows(x)) return misfit(op, g, "gates", width(x), err);
    *out = (hth_out_shape){width(x), rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_gated_norm(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                      hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *z = tensor(program, op->in[1]);
    if (width(z) != width(x) || rows(z) != rows(x)) return misfit(op, z, "rows", width(x), err);
    return infer_head_norm(program, op, out, err);
}

/* Whether a state has these dims. */
static bool has_dims(const hth_tensor *state, int n, const int64_t *dims) {
    if (state->n_dims != n) return false;
    for (int i = 0; i < n; i++)
        if (state->dims[i].n != dims[i]) return false;
    return true;
}

static hearth_status infer_conv_ring(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                     hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *w = tensor(program, op->weight[0]);
    const hth_tensor *state = tensor(program, op->state);
    int64_t n = width(x);
    if (rows(x) != HTH_ROWS) return misfit(op, x, "a row for each token, width", n, err);
    if (width(w) < 2 || w->dims[1].n != n) return misfit(op, w, "two taps or more for each of", n, err);
    if (!has_dims(state, 2, (const int64_t[]){n, width(w) - 1}))
        return misfit(op, state, "rows kept", width(w) - 1, err);
    *out = (hth_out_shape){n, HTH_ROWS};
    return HEARTH_OK;
}

static hearth_status infer_delta_rule(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                      hearth_error *err) {
    const hth_tensor *u = tensor(program, op->in[0]), *state = tensor(program, op->state);
    int64_t nk = op->imm.delta.key_heads, nv = op->imm.delta.value_heads, dk = op->imm.delta.dk, dv = op->imm.delta.dv;
    if (nk < 1 || nv < 1 || dk < 1 || dv < 1 || nv % nk != 0)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: delta_rule: %" PRId64 " key heads do not divide %" PRId64, op->site,
                        nk, nv);
    if (width(u) != 2 * nk * dk + nv * dv || rows(u) != HTH_ROWS)
        return misfit(op, u, "queries, keys and values", 2 * nk * dk + nv * dv, err);
    for (int i = 1; i < 3; i++) {
        const hth_tensor *gate = tensor(program, op->in[i]);
        if (width(gate) != nv || rows(gate) != HTH_ROWS) return misfit(op, gate, "a gate a head", nv, err);
    }
    for (int i = 0; i < 2; i++)
        if (width(tensor(program, op->weight[i])) != nv)
            return misfit(op, tensor(program, op->weight[i]), "a length", nv, err);
    if (!has_dims(state, 3, (const int64_t[]){dv, dk, nv})) return misfit(op, state, "heads", nv, err);
    *out = (hth_out_shape){nv * dv, HTH_ROWS};
    return HEARTH_OK;
}

static hearth_status infer_router(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *logits = tensor(program, op->in[0]);
    int64_t used = op->imm.router.used;
    if (used < 1 || used > width(logits))
        return hth_fail(err, HEARTH_BAD_FILE, "%s: router: %" PRId64 " of %" PRId64 " experts", op->site, used,
                        width(logits));
    *out = (hth_out_shape){2 * used, rows(logits)};
    return HEARTH_OK;
}

static hearth_status infer_experts(const hth_program *program, const hth_op *op, hth_out_shape *out,
                                   hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]), *routing = tensor(program, op->in[1]);
    const hth_tensor *gate = tensor(program, op->weight[0]);
    const int64_t n = width(x), f = gate->dims[1].n, e = gate->dims[2].n, used = op->imm.experts.used;
    const int64_t dims[3][3] = {{n, f, e}, {n, f, e}, {f, n, e}};
    if (used < 1 || used > e || width(routing) != 2 * used || rows(routing) != rows(x))
        return misfit(op, routing, "ids and weights, each", used, err);
    const hth_op *router = routing->writer >= 0 ? &program->ops[routing->writer] : NULL;
    if (!router || router->opcode != HTH_OP_ROUTER || width(tensor(program, router->in[0])) != e)
        return misfit(op, routing, "the choice of a router among", e, err);
    for (int i = 0; i < 3; i++) {
        const hth_tensor *w = tensor(program, op->weight[i]);
        for (int k = 0; k < 3; k++)
            if (w->dims[k].n != dims[i][k]) return misfit(op, w, k == 2 ? "slabs" : "rows", dims[i][k], err);
        if (op->weight[3 + i] == HTH_NONE) continue;
        const hth_tensor *bias = tensor(program, op->weight[3 + i]);
        if (width(bias) != dims[i][1] || bias->dims[1].n != e) return misfit(op, bias, "biases", dims[i][1], err);
    }
    *out = (hth_out_shape){n, rows(x)};
    return HEARTH_OK;
}

static hearth_status infer_select(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    const hth_tensor *x = tensor(program, op->in[0]);
    if (rows(x) != HTH_ROWS) return misfit(op, x, "a row for each token, width", width(x), err);
    *out = (hth_out_shape){width(x), HTH_OUTS};
    return HEARTH_OK;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

#define NONE     HTH_OPERAND_NONE
#define ROWS     HTH_OPERAND_ROWS
#define VECTOR   HTH_OPERAND_VECTOR
#define OPTIONAL HTH_OPERAND_OPTIONAL_VECTOR
#define MATRIX   HTH_OPERAND_MATRIX
#define SLABS    HTH_OPERAND_SLABS
#define TABLE    HTH_OPERAND_TABLE
#define BIASES   HTH_OPERAND_OPTIONAL_TABLE

/* Whose place the output may take. */
enum { NO_PLACE = 0, FIRST = 1, EITHER = 3 };

static const hth_op_rule rules[HTH_OPCODES] = {
    [HTH_OP_EMBED] = {{HTH_OPERAND_IDS}, {MATRIX}, NONE, HTH_STEP_ROWS, NO_PLACE, infer_embed},
    [HTH_OP_ROPE_ANGLES] = {{HTH_OPERAND_POSITIONS}, {VECTOR}, NONE, HTH_STEP_ROWS, NO_PLACE, infer_rope_angles},
    [HTH_OP_RMS_NORM] = {{ROWS}, {VECTOR}, NONE, HTH_STEP_ROWS, FIRST, infer_norm},
    [HTH_OP_LAYER_NORM] = {{ROWS}, {VECTOR, OPTIONAL}, NONE, HTH_STEP_ROWS, FIRST, infer_norm},
    [HTH_OP_HEAD_NORM] = {{ROWS}, {VECTOR}, NONE, HTH_STEP_ROWS, FIRST, infer_head_norm},
    [HTH_OP_LINEAR] = {{ROWS}, {MATRIX, OPTIONAL}, NONE, HTH_STEP_LINEAR, NO_PLACE, infer_linear},
    [HTH_OP_ROPE] = {{ROWS, ROWS}, {NONE}, NONE, HTH_STEP_ROWS, FIRST, infer_rope},
    [HTH_OP_KV_APPEND] = {{ROWS, ROWS}, {NONE}, HTH_OPERAND_KV_WRITE, HTH_STEP_ROWS, NO_PLACE, infer_kv_append},
    [HTH_OP_ATTENTION] = {{ROWS}, {OPTIONAL}, HTH_OPERAND_KV_READ, HTH_STEP_ALONE, NO_PLACE, infer_attention},
    [HTH_OP_GLU] = {{ROWS, ROWS}, {NONE}, NONE, HTH_STEP_ROWS, EITHER, infer_elementwise},
    [HTH_OP_ACT] = {{ROWS}, {NONE}, NONE, HTH_STEP_ROWS, FIRST, infer_elementwise},
    [HTH_OP_ADD] = {{ROWS, ROWS}, {NONE}, NONE, HTH_STEP_ROWS, EITHER, infer_elementwise},
    [HTH_OP_SCALE] = {{ROWS}, {NONE}, NONE, HTH_STEP_ROWS, FIRST, infer_elementwise},
    [HTH_OP_SOFTCAP] = {{ROWS}, {NONE}, NONE, HTH_STEP_ROWS, FIRST, infer_elementwise},
    [HTH_OP_SLICE] = {{ROWS}, {NONE}, NONE, HTH_STEP_ROWS, NO_PLACE, infer_slice},
    [HTH_OP_GATE] = {{ROWS, ROWS}, {NONE}, NONE, HTH_STEP_ROWS, FIRST, infer_gate},
    [HTH_OP_GATED_NORM] = {{ROWS, ROWS}, {VECTOR}, NONE, HTH_STEP_ROWS, FIRST, infer_gated_norm},
    [HTH_OP_CONV_RING] = {{ROWS}, {TABLE}, HTH_OPERAND_STATE, HTH_STEP_ALONE, NO_PLACE, infer_conv_ring},
    [HTH_OP_DELTA_RULE] =
        {{ROWS, ROWS, ROWS}, {VECTOR, VECTOR}, HTH_OPERAND_STATE, HTH_STEP_ALONE, NO_PLACE, infer_delta_rule},
    [HTH_OP_ROUTER] = {{ROWS}, {NONE}, NONE, HTH_STEP_ROWS, NO_PLACE, infer_router},
    [HTH_OP_EXPERTS] =
        {{ROWS, ROWS}, {SLABS, SLABS, SLABS, BIASES, BIASES, BIASES}, NONE, HTH_STEP_ALONE, NO_PLACE, infer_experts},
    [HTH_OP_SELECT] = {{ROWS, HTH_OPERAND_OUT_ROWS}, {NONE}, NONE, HTH_STEP_SELECT, NO_PLACE, infer_select},
};

const hth_op_rule *hth_op_rule_of(hth_opcode opcode) {
    return &rules[opcode];
}

const char *hth_opcode_name(hth_opcode opcode) {
    static const char *const names[HTH_OPCODES] = {
#define X(name, text) [HTH_OP_##name] = text,
        HTH_OPCODE_LIST(X)
#undef X
    };
    return (unsigned)opcode < HTH_OPCODES ? names[opcode] : "?";
}

static hearth_status check_operand(const hth_program *program, const hth_op *op, hth_tensor_id id, hth_operand operand,
                                   const char *slot, hearth_error *err) {
    if (id != HTH_NONE && (id < 0 || id >= program->n_tensors))
        return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: %s is no tensor of the program", op->site,
                        hth_opcode_name(op->opcode), slot);
    const hth_tensor *t = id == HTH_NONE ? NULL : tensor(program, id);
    if (operand_fits(program, t, operand)) return HEARTH_OK;
    if (!t)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: %s is missing, wanted %s", op->site, hth_opcode_name(op->opcode),
                        slot, operand_text(operand));
    char shape[HTH_SHAPE_TEXT];
    hth_shape_text(t, shape, sizeof shape);
    return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: %s is %s %s %s, wanted %s", op->site, hth_opcode_name(op->opcode),
                    slot, t->name, hth_dtype_name(t->dtype), shape, operand_text(operand));
}

hearth_status hth_op_check(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err) {
    static const char *const in_slots[HTH_OP_INPUTS] = {"input 0", "input 1", "input 2"};
    static const char *const weight_slots[HTH_OP_WEIGHTS] = {"weight 0", "weight 1", "weight 2",
                                                             "weight 3", "weight 4", "weight 5"};
    const hth_op_rule *rule = hth_op_rule_of(op->opcode);
    for (int i = 0; i < HTH_OP_INPUTS; i++)
        HTH_TRY(check_operand(program, op, op->in[i], rule->in[i], in_slots[i], err));
    for (int i = 0; i < HTH_OP_WEIGHTS; i++)
        HTH_TRY(check_operand(program, op, op->weight[i], rule->weight[i], weight_slots[i], err));
    HTH_TRY(check_operand(program, op, op->state, rule->state, "state", err));
    return rule->infer(program, op, out, err);
}
