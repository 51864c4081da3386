#include "program/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/rules.h"

#define NAME_SIZE sizeof((hth_tensor){0}.name)

struct hth_builder {
    hth_program *program;
    int tensor_capacity, op_capacity;
    hth_tensor_id inputs[HTH_INPUT_COUNT]; /* HTH_NONE until asked for */
    char scope[NAME_SIZE];
    hearth_error error; /* the first one; HEARTH_OK until then */
};

/* ---- Life -------------------------------------------------------------------------------------------------------- */

hearth_status hth_builder_create(const char *architecture, hth_builder **out, hearth_error *err) {
    *out = NULL;
    hth_builder *b = calloc(1, sizeof *b);
    hth_program *p = calloc(1, sizeof *p);
    if (!b || !p) {
        free(b);
        free(p);
        return hth_fail(err, HEARTH_NO_MEMORY, "no memory for the program builder");
    }
    snprintf(p->architecture, sizeof p->architecture, "%s", architecture);
    p->logits = HTH_NONE;
    b->program = p;
    for (int i = 0; i < HTH_INPUT_COUNT; i++) b->inputs[i] = HTH_NONE;
    *out = b;
    return HEARTH_OK;
}

void hth_builder_free(hth_builder **b) {
    if (!*b) return;
    hth_program_free(&(*b)->program);
    free(*b);
    *b = NULL;
}

void hth_builder_fail(hth_builder *b, hearth_status status, const char *format, ...) {
    if (hth_builder_failed(b)) return;
    char text[sizeof b->error.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hth_fail(&b->error, status, "%s", text);
}

bool hth_builder_failed(const hth_builder *b) {
    return b->error.status != HEARTH_OK;
}

void hth_build_scope(hth_builder *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(b->scope, sizeof b->scope, format, args);
    va_end(args);
}

void hth_build_scope_end(hth_builder *b) {
    b->scope[0] = 0;
}

const char *hth_builder_scope(const hth_builder *b) {
    return b->scope;
}

void hth_build_note(hth_builder *b, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t old = b->program->notes ? strlen(b->program->notes) : 0, added = strlen(text);
    char *notes = realloc(b->program->notes, old + added + 2);
    if (!notes) {
        hth_builder_fail(b, HEARTH_NO_MEMORY, "no memory for a note of %zu bytes", added);
        return;
    }
    memcpy(notes + old, text, added);
    memcpy(notes + old + added, "\n", 2);
    b->program->notes = notes;
}

void hth_build_facts(hth_builder *b, int64_t layers, int64_t embd, int64_t context) {
    b->program->n_layers = layers;
    b->program->n_embd = embd;
    b->program->context = context;
}

const hth_tensor *hth_build_tensor(const hth_builder *b, hth_tensor_id id) {
    return id == HTH_NONE ? NULL : &b->program->tensors[id];
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/* Room for one more element of an array that doubles; false, with the error recorded, when there is no memory. */
static bool grow(hth_builder *b, void **array, int count, int *capacity, size_t element) {
    if (count < *capacity) return true;
    int wanted = *capacity ? 2 * *capacity : 256;
    void *grown = realloc(*array, (size_t)wanted * element);
    if (!grown) {
        hth_builder_fail(b, HEARTH_NO_MEMORY, "no memory for a program of %d tensors or ops", wanted);
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

/* Append a tensor named prefix + name; HTH_NONE after any failure. */
static hth_tensor_id add_tensor(hth_builder *b, const char *prefix, const char *name, const hth_tensor *t) {
    if (hth_builder_failed(b)) return HTH_NONE;
    hth_program *p = b->program;
    void *tensors = p->tensors;
    if (!grow(b, &tensors, p->n_tensors, &b->tensor_capacity, sizeof *p->tensors)) return HTH_NONE;
    p->tensors = tensors;
    hth_tensor *added = &p->tensors[p->n_tensors];
    *added = *t;
    if (snprintf(added->name, sizeof added->name, "%s%s", prefix, name) >= (int)sizeof added->name) {
        hth_builder_fail(b, HEARTH_BAD_FILE, "the name %s%s is too long", prefix, name);
        return HTH_NONE;
    }
    added->writer = added->last_use = -1;
    return p->n_tensors++;
}

hth_tensor_id hth_build_weight(hth_builder *b, const char *name, hth_dtype dtype, int n_dims, const int64_t *dims,
                               hth_weight where) {
    hth_tensor t = {.class = HTH_WEIGHT, .dtype = dtype, .n_dims = n_dims, .weight = where};
    for (int i = 0; i < n_dims; i++) t.dims[i] = (hth_dim){HTH_ONE, dims[i]};
    if (where.file >= b->program->n_files) b->program->n_files = where.file + 1;
    return add_tensor(b, "", name, &t);
}

hth_tensor_id hth_build_constant(hth_builder *b, const char *name, const float *data, int64_t n) {
    if (hth_builder_failed(b)) return HTH_NONE;
    float *copy = malloc((size_t)n * sizeof *copy);
    if (!copy) {
        hth_builder_fail(b, HEARTH_NO_MEMORY, "no memory for the constant %s", name);
        return HTH_NONE;
    }
    memcpy(copy, data, (size_t)n * sizeof *copy);
    hth_tensor t = {.class = HTH_CONSTANT, .dtype = HTH_F32, .n_dims = 1, .dims = {{HTH_ONE, n}}, .constant = copy};
    hth_tensor_id id = add_tensor(b, "", name, &t);
    if (id == HTH_NONE) free(copy);
    return id;
}

hth_tensor_id hth_build_input(hth_builder *b, hth_input input) {
    static const struct {
        const char *name;
        hth_dtype dtype;
        hth_symbol symbol;
    } inputs[HTH_INPUT_COUNT] = {
        [HTH_INPUT_TOKENS] = {"tokens", HTH_I32, HTH_ROWS},
        [HTH_INPUT_POSITIONS] = {"positions", HTH_I64, HTH_ROWS},
        [HTH_INPUT_OUT_ROWS] = {"out_rows", HTH_I32, HTH_OUTS},
    };
    if (b->inputs[input] == HTH_NONE) {
        hth_tensor t = {.class = HTH_INPUT,
                        .dtype = inputs[input].dtype,
                        .n_dims = 1,
                        .dims = {{inputs[input].symbol, 1}},
                        .input = input};
        b->inputs[input] = add_tensor(b, "", inputs[input].name, &t);
    }
    return b->inputs[input];
}

hth_tensor_id hth_build_kv(hth_builder *b, const char *name, hth_kv_shape shape) {
    hth_tensor t = {.class = HTH_KV, .dtype = HTH_F32, .kv = shape};
    return add_tensor(b, b->scope, name, &t);
}

hth_tensor_id hth_build_state(hth_builder *b, const char *name, int n_dims, const int64_t *dims) {
    char checkpoint_name[NAME_SIZE];
    hth_tensor state = {.class = HTH_STATE, .dtype = HTH_F32, .n_dims = n_dims};
    for (int i = 0; i < n_dims; i++) state.dims[i] = (hth_dim){HTH_ONE, dims[i]};
    hth_tensor checkpoint = state;
    checkpoint.class = HTH_CHECKPOINT;
    checkpoint.dims[checkpoint.n_dims++] = (hth_dim){HTH_MARKS, 1};
    snprintf(checkpoint_name, sizeof checkpoint_name, "%s_marks", name);
    state.checkpoint = add_tensor(b, b->scope, checkpoint_name, &checkpoint);
    return add_tensor(b, b->scope, name, &state);
}

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

static hth_op blank(hth_opcode opcode) {
    hth_op op = {.opcode = opcode, .out = HTH_NONE, .state = HTH_NONE};
    for (int i = 0; i < HTH_OP_INPUTS; i++) op.in[i] = HTH_NONE;
    for (int i = 0; i < HTH_OP_WEIGHTS; i++) op.weight[i] = HTH_NONE;
    return op;
}

static void note_use(hth_program *p, hth_tensor_id id, int op) {
    if (id != HTH_NONE) p->tensors[id].last_use = op;
}

/* Make op the writer of its KV or state tensor, which may have no other. */
static bool note_state_write(hth_builder *b, const hth_op *op, int index) {
    hth_tensor *t = &b->program->tensors[op->state];
    if (t->writer >= 0) {
        hth_builder_fail(b, HEARTH_BAD_FILE, "%s: %s is written twice in a pass", op->site, t->name);
        return false;
    }
    t->writer = index;
    if (t->class == HTH_STATE) b->program->tensors[t->checkpoint].writer = index;
    return true;
}

/* Check op, infer its output, append both. Gives the output, HTH_NONE when the op has none or the builder has failed.
 */
static hth_tensor_id emit(hth_builder *b, const char *site, hth_op *op) {
    if (hth_builder_failed(b)) return HTH_NONE;
    hth_program *p = b->program;
    void *ops = p->ops;
    if (!grow(b, &ops, p->n_ops, &b->op_capacity, sizeof *p->ops)) return HTH_NONE;
    p->ops = ops;
    if (snprintf(op->site, sizeof op->site, "%s%s", b->scope, site) >= (int)sizeof op->site) {
        hth_builder_fail(b, HEARTH_BAD_FILE, "the site %s%s is too long", b->scope, site);
        return HTH_NONE;
    }
    hth_out_shape shape;
    if (hth_op_check(p, op, &shape, &b->error) != HEARTH_OK) return HTH_NONE;

    int index = p->n_ops;
    if (shape.n > 0) {
        hth_tensor out = {
            .class = HTH_ACTIVATION, .dtype = HTH_F32, .n_dims = 2, .dims = {{HTH_ONE, shape.n}, {shape.rows, 1}}};
        op->out = add_tensor(b, "", op->site, &out);
        if (op->out == HTH_NONE) return HTH_NONE;
        p->tensors[op->out].writer = index;
    }
    for (int i = 0; i < HTH_OP_INPUTS; i++) note_use(p, op->in[i], index);
    for (int i = 0; i < HTH_OP_WEIGHTS; i++) note_use(p, op->weight[i], index);
    hth_operand state = hth_op_rule_of(op->opcode)->state;
    if (hth_operand_writes(state) && !note_state_write(b, op, index)) return HTH_NONE;
    if (state == HTH_OPERAND_KV_READ) note_use(p, op->state, index);
    p->ops[p->n_ops++] = *op;
    return op->out;
}

hth_tensor_id hth_emit_embed(hth_builder *b, const char *site, hth_tensor_id ids, hth_tensor_id table, float scale) {
    hth_op op = blank(HTH_OP_EMBED);
    op.in[0] = ids;
    op.weight[0] = table;
    op.imm.embed.scale = scale;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_rope_angles(hth_builder *b, const char *site, hth_tensor_id frequencies, float magnitude) {
    hth_op op = blank(HTH_OP_ROPE_ANGLES);
    op.in[0] = hth_build_input(b, HTH_INPUT_POSITIONS);
    op.weight[0] = frequencies;
    op.imm.rope_angles.magnitude = magnitude;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_rms_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w, float eps) {
    hth_op op = blank(HTH_OP_RMS_NORM);
    op.in[0] = x;
    op.weight[0] = w;
    op.imm.norm.eps = eps;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_layer_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w,
                                  hth_tensor_id bias, float eps) {
    hth_op op = blank(HTH_OP_LAYER_NORM);
    op.in[0] = x;
    op.weight[0] = w;
    op.weight[1] = bias;
    op.imm.norm.eps = eps;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_head_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w, int64_t head_dim,
                                 float eps) {
    hth_op op = blank(HTH_OP_HEAD_NORM);
    op.in[0] = x;
    op.weight[0] = w;
    op.imm.head_norm.eps = eps;
    op.imm.head_norm.head_dim = head_dim;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_linear(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id w, hth_tensor_id bias) {
    hth_op op = blank(HTH_OP_LINEAR);
    op.in[0] = x;
    op.weight[0] = w;
    op.weight[1] = bias;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_rope(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id angles, int64_t head_dim,
                            int neox) {
    hth_op op = blank(HTH_OP_ROPE);
    op.in[0] = x;
    op.in[1] = angles;
    op.imm.rope.head_dim = head_dim;
    op.imm.rope.n_rot = angles == HTH_NONE ? 0 : b->program->tensors[angles].dims[0].n;
    op.imm.rope.neox = neox;
    return emit(b, site, &op);
}

void hth_emit_kv_append(hth_builder *b, const char *site, hth_tensor_id keys, hth_tensor_id values, hth_tensor_id kv) {
    hth_op op = blank(HTH_OP_KV_APPEND);
    op.in[0] = keys;
    op.in[1] = values;
    op.state = kv;
    emit(b, site, &op);
}

hth_tensor_id hth_emit_attention(hth_builder *b, const char *site, hth_tensor_id q, hth_tensor_id kv,
                                 hth_tensor_id sinks, const hth_attention_imm *imm) {
    hth_op op = blank(HTH_OP_ATTENTION);
    op.in[0] = q;
    op.weight[0] = sinks;
    op.state = kv;
    op.imm.attention = *imm;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_glu(hth_builder *b, const char *site, hth_tensor_id gate, hth_tensor_id up, hth_act_kind kind) {
    hth_op op = blank(HTH_OP_GLU);
    op.in[0] = gate;
    op.in[1] = up;
    op.imm.act.kind = kind;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_act(hth_builder *b, const char *site, hth_tensor_id x, hth_act_kind kind) {
    hth_op op = blank(HTH_OP_ACT);
    op.in[0] = x;
    op.imm.act.kind = kind;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_add(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id y) {
    hth_op op = blank(HTH_OP_ADD);
    op.in[0] = x;
    op.in[1] = y;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_scale(hth_builder *b, const char *site, hth_tensor_id x, float s) {
    hth_op op = blank(HTH_OP_SCALE);
    op.in[0] = x;
    op.imm.scale = s;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_softcap(hth_builder *b, const char *site, hth_tensor_id x, float c) {
    hth_op op = blank(HTH_OP_SOFTCAP);
    op.in[0] = x;
    op.imm.softcap = c;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_slice(hth_builder *b, const char *site, hth_tensor_id x, int64_t group, int64_t first,
                             int64_t count) {
    hth_op op = blank(HTH_OP_SLICE);
    op.in[0] = x;
    op.imm.slice.group = group;
    op.imm.slice.first = first;
    op.imm.slice.count = count;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_gate(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id gate) {
    hth_op op = blank(HTH_OP_GATE);
    op.in[0] = x;
    op.in[1] = gate;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_gated_norm(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id z, hth_tensor_id w,
                                  int64_t head_dim, float eps) {
    hth_op op = blank(HTH_OP_GATED_NORM);
    op.in[0] = x;
    op.in[1] = z;
    op.weight[0] = w;
    op.imm.head_norm.head_dim = head_dim;
    op.imm.head_norm.eps = eps;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_conv_ring(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id taps,
                                 hth_tensor_id state) {
    hth_op op = blank(HTH_OP_CONV_RING);
    op.in[0] = x;
    op.weight[0] = taps;
    op.state = state;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_delta_rule(hth_builder *b, const char *site, const hth_delta_operands *operands,
                                  hth_tensor_id state, const hth_delta_imm *imm) {
    hth_op op = blank(HTH_OP_DELTA_RULE);
    op.in[0] = operands->u;
    op.in[1] = operands->alpha;
    op.in[2] = operands->b;
    op.weight[0] = operands->a;
    op.weight[1] = operands->dt;
    op.state = state;
    op.imm.delta = *imm;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_router(hth_builder *b, const char *site, hth_tensor_id logits, int64_t used,
                              hth_router_kind kind) {
    hth_op op = blank(HTH_OP_ROUTER);
    op.in[0] = logits;
    op.imm.router.used = used;
    op.imm.router.kind = kind;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_experts(hth_builder *b, const char *site, hth_tensor_id x, hth_tensor_id routing,
                               const hth_expert_weights *w, int64_t used, hth_act_kind act) {
    hth_op op = blank(HTH_OP_EXPERTS);
    op.in[0] = x;
    op.in[1] = routing;
    op.weight[0] = w->gate;
    op.weight[1] = w->up;
    op.weight[2] = w->down;
    op.weight[3] = w->gate_bias;
    op.weight[4] = w->up_bias;
    op.weight[5] = w->down_bias;
    op.imm.experts.used = used;
    op.imm.experts.act = act;
    return emit(b, site, &op);
}

hth_tensor_id hth_emit_select(hth_builder *b, const char *site, hth_tensor_id x) {
    hth_op op = blank(HTH_OP_SELECT);
    op.in[0] = x;
    op.in[1] = hth_build_input(b, HTH_INPUT_OUT_ROWS);
    return emit(b, site, &op);
}

/* ---- Finish ------------------------------------------------------------------------------------------------------ */

hearth_status hth_builder_finish(hth_builder **builder, hth_tensor_id logits, hth_program **out, hearth_error *err) {
    hth_builder *b = *builder;
    hth_program *p = b->program;
    *out = NULL;
    if (!hth_builder_failed(b)) {
        if (logits == HTH_NONE)
            hth_builder_fail(b, HEARTH_BAD_FILE, "the program of %s gives no logits", p->architecture);
        else {
            p->tensors[logits].class = HTH_OUTPUT;
            p->logits = logits;
            p->n_vocab = p->tensors[logits].dims[0].n;
            hth_program_check(p, &b->error);
        }
    }
    const hearth_status status = hth_raise(&b->error, err);
    if (status == HEARTH_OK) {
        *out = p;
        b->program = NULL;
    }
    hth_builder_free(builder);
    return status;
}
