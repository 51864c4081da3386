#include "program/print.h"

#include <inttypes.h>
#include <string.h>

#include "program/rules.h"

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

const char *hth_symbol_name(hth_symbol symbol) {
    switch (symbol) {
    case HTH_ROWS: return "ROWS";
    case HTH_OUTS: return "OUTS";
    case HTH_SEQS: return "SEQS";
    case HTH_MARKS: return "MARKS";
    default: return "1";
    }
}

void hth_shape_text(const hth_tensor *t, char *out, size_t size) {
    if (t->class == HTH_KV) {
        snprintf(out, size, "[%" PRId64 " heads, %" PRId64 " + %" PRId64 "]", t->kv.heads, t->kv.dk, t->kv.dv);
        return;
    }
    size_t n = 0;
    for (int i = 0; i < t->n_dims && n < size; i++) {
        hth_dim d = t->dims[i];
        const char *separator = i == 0 ? "[" : ", ";
        int wrote = d.symbol == HTH_ONE ? snprintf(out + n, size - n, "%s%" PRId64, separator, d.n)
                    : d.n == 1
                        ? snprintf(out + n, size - n, "%s%s", separator, hth_symbol_name(d.symbol))
                        : snprintf(out + n, size - n, "%s%" PRId64 " %s", separator, d.n, hth_symbol_name(d.symbol));
        n += (size_t)wrote;
    }
    if (n < size) snprintf(out + n, size - n, t->n_dims ? "]" : "[]");
}

static void print_operand(const hth_program *p, hth_tensor_id id, const char *separator, FILE *out) {
    if (id == HTH_NONE) return;
    const hth_tensor *t = &p->tensors[id];
    char shape[HTH_SHAPE_TEXT];
    hth_shape_text(t, shape, sizeof shape);
    bool stored = t->class == HTH_WEIGHT || t->class == HTH_CONSTANT;
    fprintf(out, "%s%s %s%s%s", separator, t->name, stored ? hth_dtype_name(t->dtype) : "", stored ? " " : "", shape);
}

const char *hth_act_kind_name(hth_act_kind kind) {
    static const char *const names[HTH_ACT_KINDS] = {"silu", "gelu_tanh", "swiglu_clamped"};
    return names[kind];
}

const char *hth_router_kind_name(hth_router_kind kind) {
    static const char *const names[HTH_ROUTER_KINDS] = {"softmax", "softmax normalized", "softmax over the chosen"};
    return names[kind];
}

static void print_attention(const hth_attention_imm *a, FILE *out) {
    fprintf(out, "  heads %" PRId64 "/%" PRId64 " scale %.7g", a->heads, a->kv_heads, (double)a->scale);
    if (a->window > 0) fprintf(out, " window %" PRId64, a->window);
    if (a->softcap != 0) fprintf(out, " softcap %.7g", (double)a->softcap);
}

static void print_immediates(const hth_op *op, FILE *out) {
    const hth_immediates *imm = &op->imm;
    switch (op->opcode) {
    case HTH_OP_EMBED:
        if (imm->embed.scale != 1) fprintf(out, "  scale %.7g", (double)imm->embed.scale);
        break;
    case HTH_OP_ROPE_ANGLES:
        if (imm->rope_angles.magnitude != 1) fprintf(out, "  magnitude %.7g", (double)imm->rope_angles.magnitude);
        break;
    case HTH_OP_RMS_NORM:
    case HTH_OP_LAYER_NORM: fprintf(out, "  eps %.7g", (double)imm->norm.eps); break;
    case HTH_OP_HEAD_NORM:
        fprintf(out, "  head %" PRId64 " eps %.7g", imm->head_norm.head_dim, (double)imm->head_norm.eps);
        break;
    case HTH_OP_ROPE:
        fprintf(out, "  %s head %" PRId64 " rotated %" PRId64, imm->rope.neox ? "neox" : "norm", imm->rope.head_dim,
                imm->rope.n_rot);
        break;
    case HTH_OP_ATTENTION: print_attention(&imm->attention, out); break;
    case HTH_OP_GLU:
    case HTH_OP_ACT: fprintf(out, "  %s", hth_act_kind_name(imm->act.kind)); break;
    case HTH_OP_SLICE:
        fprintf(out, "  %" PRId64 "..%" PRId64 " of each %" PRId64, imm->slice.first,
                imm->slice.first + imm->slice.count - 1, imm->slice.group);
        break;
    case HTH_OP_GATED_NORM:
        fprintf(out, "  head %" PRId64 " eps %.7g silu", imm->head_norm.head_dim, (double)imm->head_norm.eps);
        break;
    case HTH_OP_DELTA_RULE:
        fprintf(out, "  heads %" PRId64 "/%" PRId64 " %s head %" PRId64 " + %" PRId64 " eps %.7g",
                imm->delta.value_heads, imm->delta.key_heads, imm->delta.tiled ? "tiled" : "grouped", imm->delta.dk,
                imm->delta.dv, (double)imm->delta.eps);
        break;
    case HTH_OP_ROUTER:
        fprintf(out, "  top %" PRId64 " %s", imm->router.used, hth_router_kind_name(imm->router.kind));
        break;
    case HTH_OP_EXPERTS:
        fprintf(out, "  used %" PRId64 " %s", imm->experts.used, hth_act_kind_name(imm->experts.act));
        break;
    case HTH_OP_SCALE: fprintf(out, "  scale %.7g", (double)imm->scale); break;
    case HTH_OP_SOFTCAP: fprintf(out, "  cap %.7g", (double)imm->softcap); break;
    case HTH_OP_LINEAR:
    case HTH_OP_KV_APPEND:
    case HTH_OP_ADD:
    case HTH_OP_GATE:
    case HTH_OP_CONV_RING:
    case HTH_OP_SELECT:
    case HTH_OPCODES: break;
    }
}

static void print_place(const hth_program *p, const hth_plan *plan, hth_tensor_id id, FILE *out) {
    if (plan->place[id] == p->logits) fprintf(out, "  @logits");
    else fprintf(out, "  @%" PRIu64, plan->offset[id]);
}

/* "  7 linear       blk.0.attn_q  blk.0.attn_norm [64, ROWS] * blk.0.attn_q.weight F32 [64, 64] -> [64, ROWS]  @4096"
 */
static void print_op(const hth_program *p, int index, int site_width, const hth_plan *plan, FILE *out) {
    const hth_op *op = &p->ops[index];
    fprintf(out, "%5d %-11s %-*s", index, hth_opcode_name(op->opcode), site_width, op->site);
    const char *separator = "  ";
    for (int i = 0; i < HTH_OP_INPUTS; i++) {
        print_operand(p, op->in[i], separator, out);
        separator = ", ";
    }
    for (int i = 0; i < HTH_OP_WEIGHTS; i++) print_operand(p, op->weight[i], i == 0 ? "; " : ", ", out);
    print_operand(p, op->state, "; ", out);
    print_immediates(op, out);
    if (op->out == HTH_NONE) return;
    char shape[HTH_SHAPE_TEXT];
    hth_shape_text(&p->tensors[op->out], shape, sizeof shape);
    fprintf(out, "  -> %s", shape);
    if (plan) print_place(p, plan, op->out, out);
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static int widest_site(const hth_program *p) {
    size_t widest = 0;
    for (int i = 0; i < p->n_ops; i++)
        if (strlen(p->ops[i].site) > widest) widest = strlen(p->ops[i].site);
    return (int)widest;
}

void hth_program_print(const hth_program *program, const hth_plan *plan, hth_kernel_name_fn *kernel,
                       const void *context, FILE *out) {
    const hth_program *p = program;
    fprintf(out,
            "program %s: %" PRId64 " layers, embedding %" PRId64 ", vocabulary %" PRId64 ", context %" PRId64
            ", %d ops\n",
            p->architecture, p->n_layers, p->n_embd, p->n_vocab, p->context, p->n_ops);
    if (plan)
        fprintf(out,
                "plan: ROWS %" PRId64 ", OUTS %" PRId64 ", activations %" PRIu64 " bytes, logits %" PRIu64 " bytes\n",
                plan->extents.value[HTH_ROWS], plan->extents.value[HTH_OUTS], plan->bytes, plan->logits_bytes);
    for (const char *note = p->notes; note && *note;) {
        int n = (int)strcspn(note, "\n");
        fprintf(out, "note: %.*s\n", n, note);
        note += n + 1;
    }
    int site_width = widest_site(p);
    for (int i = 0; i < p->n_ops; i++) {
        print_op(p, i, site_width, plan, out);
        const char *name = kernel ? kernel(context, i) : NULL;
        if (name) fprintf(out, "  <%s>", name);
        fputc('\n', out);
    }
}
