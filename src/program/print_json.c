/* The program as JSON. */
#include <string.h>

#include "program/print.h"

/* ---- Tensors ---- */

static void write_dim(hth_json *json, hth_dim d) {
    if (d.symbol == HTH_ONE) hth_json_int(json, NULL, d.n);
    else if (d.n == 1) hth_json_text(json, NULL, hth_symbol_name(d.symbol));
    else {
        hth_json_open(json, NULL, '[');
        hth_json_int(json, NULL, d.n);
        hth_json_text(json, NULL, hth_symbol_name(d.symbol));
        hth_json_close(json, ']');
    }
}

static void write_shape(hth_json *json, const hth_tensor *t) {
    if (t->class == HTH_KV) {
        hth_json_int(json, "heads", t->kv.heads);
        hth_json_int(json, "dk", t->kv.dk);
        hth_json_int(json, "dv", t->kv.dv);
        return;
    }
    hth_json_open(json, "shape", '[');
    for (int i = 0; i < t->n_dims; i++) write_dim(json, t->dims[i]);
    hth_json_close(json, ']');
}

static void write_tensor(hth_json *json, const char *key, const hth_tensor *t) {
    hth_json_open(json, key, '{');
    hth_json_text(json, "name", t->name);
    if (t->class == HTH_WEIGHT || t->class == HTH_CONSTANT) hth_json_text(json, "dtype", hth_dtype_name(t->dtype));
    write_shape(json, t);
    hth_json_close(json, '}');
}

static void write_tensors(hth_json *json, const char *key, const hth_program *p, const hth_tensor_id *ids, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (ids[i] == HTH_NONE) continue;
        if (!any) hth_json_open(json, key, '[');
        write_tensor(json, NULL, &p->tensors[ids[i]]);
        any = true;
    }
    if (any) hth_json_close(json, ']');
}

/* ---- Parameters ---- */

static void write_attention(hth_json *json, const hth_attention_imm *a) {
    hth_json_int(json, "heads", a->heads);
    hth_json_int(json, "kv_heads", a->kv_heads);
    hth_json_float(json, "scale", a->scale);
    if (a->window > 0) hth_json_int(json, "window", a->window);
    if (a->softcap != 0) hth_json_float(json, "softcap", a->softcap);
}

static void write_delta(hth_json *json, const hth_delta_imm *d) {
    hth_json_int(json, "value_heads", d->value_heads);
    hth_json_int(json, "key_heads", d->key_heads);
    hth_json_text(json, "key_heads_are", d->tiled ? "tiled" : "grouped");
    hth_json_int(json, "dk", d->dk);
    hth_json_int(json, "dv", d->dv);
    hth_json_float(json, "eps", d->eps);
}

static void write_immediates(hth_json *json, const hth_op *op) {
    const hth_immediates *imm = &op->imm;
    switch (op->opcode) {
    case HTH_OP_EMBED: hth_json_float(json, "scale", imm->embed.scale); break;
    case HTH_OP_ROPE_ANGLES: hth_json_float(json, "magnitude", imm->rope_angles.magnitude); break;
    case HTH_OP_RMS_NORM:
    case HTH_OP_LAYER_NORM: hth_json_float(json, "eps", imm->norm.eps); break;
    case HTH_OP_HEAD_NORM:
    case HTH_OP_GATED_NORM:
        hth_json_int(json, "head_dim", imm->head_norm.head_dim);
        hth_json_float(json, "eps", imm->head_norm.eps);
        break;
    case HTH_OP_ROPE:
        hth_json_text(json, "pairs", imm->rope.neox ? "neox" : "norm");
        hth_json_int(json, "head_dim", imm->rope.head_dim);
        hth_json_int(json, "rotated", imm->rope.n_rot);
        break;
    case HTH_OP_ATTENTION: write_attention(json, &imm->attention); break;
    case HTH_OP_GLU:
    case HTH_OP_ACT: hth_json_text(json, "activation", hth_act_kind_name(imm->act.kind)); break;
    case HTH_OP_SLICE:
        hth_json_int(json, "first", imm->slice.first);
        hth_json_int(json, "count", imm->slice.count);
        hth_json_int(json, "group", imm->slice.group);
        break;
    case HTH_OP_DELTA_RULE: write_delta(json, &imm->delta); break;
    case HTH_OP_ROUTER:
        hth_json_int(json, "used", imm->router.used);
        hth_json_text(json, "weights", hth_router_kind_name(imm->router.kind));
        break;
    case HTH_OP_EXPERTS:
        hth_json_int(json, "used", imm->experts.used);
        hth_json_text(json, "activation", hth_act_kind_name(imm->experts.act));
        break;
    case HTH_OP_SCALE: hth_json_float(json, "scale", imm->scale); break;
    case HTH_OP_SOFTCAP: hth_json_float(json, "cap", imm->softcap); break;
    case HTH_OP_LINEAR:
    case HTH_OP_KV_APPEND:
    case HTH_OP_ADD:
    case HTH_OP_GATE:
    case HTH_OP_CONV_RING:
    case HTH_OP_SELECT:
    case HTH_OPCODES: break;
    }
}

/* ---- The program ---- */

static void write_output(hth_json *json, const hth_program *p, const hth_plan *plan, hth_tensor_id id) {
    hth_json_open(json, "output", '{');
    write_shape(json, &p->tensors[id]);
    if (plan && plan->place[id] == p->logits) hth_json_bool(json, "logits", true);
    else if (plan) hth_json_uint(json, "offset", plan->offset[id]);
    hth_json_close(json, '}');
}

static void write_op(hth_json *json, const hth_program *p, const hth_plan *plan, const hth_op *op, const char *kernel) {
    hth_json_open(json, NULL, '{');
    hth_json_text(json, "op", hth_opcode_name(op->opcode));
    hth_json_text(json, "site", op->site);
    write_tensors(json, "inputs", p, op->in, HTH_OP_INPUTS);
    write_tensors(json, "weights", p, op->weight, HTH_OP_WEIGHTS);
    if (op->state != HTH_NONE) write_tensor(json, "state", &p->tensors[op->state]);
    hth_json_open(json, "parameters", '{');
    write_immediates(json, op);
    hth_json_close(json, '}');
    if (op->out != HTH_NONE) write_output(json, p, plan, op->out);
    if (kernel) hth_json_text(json, "kernel", kernel);
    hth_json_close(json, '}');
}

void hth_program_json(const hth_program *program, const hth_plan *plan, hth_kernel_name_fn *kernel, const void *context,
                      hth_json *json) {
    const hth_program *p = program;
    hth_json_open(json, "notes", '[');
    for (const char *note = p->notes; note && *note;) {
        size_t n = strcspn(note, "\n");
        hth_json_bytes(json, NULL, note, n);
        note += n + 1;
    }
    hth_json_close(json, ']');
    if (plan) {
        hth_json_uint(json, "activation_bytes", plan->bytes);
        hth_json_uint(json, "logits_bytes", plan->logits_bytes);
    }
    hth_json_open(json, "ops", '[');
    for (int i = 0; i < p->n_ops; i++) write_op(json, p, plan, &p->ops[i], kernel ? kernel(context, i) : NULL);
    hth_json_close(json, ']');
}
