/* The invariants of program.h, over a whole program. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "program/rules.h"

static hearth_status broken(const hth_op *op, const hth_tensor *t, const char *what, hearth_error *err) {
    return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: %s %s", op->site, hth_opcode_name(op->opcode), t->name, what);
}

/* Invariant 1: what an activation slot reads was written by an earlier op. */
static hearth_status check_reads(const hth_program *p, int index, hearth_error *err) {
    const hth_op *op = &p->ops[index];
    for (int i = 0; i < HTH_OP_INPUTS; i++) {
        if (op->in[i] == HTH_NONE) continue;
        const hth_tensor *t = &p->tensors[op->in[i]];
        bool computed = t->class == HTH_ACTIVATION || t->class == HTH_OUTPUT;
        if (computed && (t->writer < 0 || t->writer >= index))
            return broken(op, t, "is read before it is written", err);
        if (t->last_use < index) return broken(op, t, "is read after its last use", err);
    }
    if (hth_op_rule_of(op->opcode)->state != HTH_OPERAND_KV_READ) return HEARTH_OK;
    const hth_tensor *kv = &p->tensors[op->state];
    return kv->writer < index ? HEARTH_OK : broken(op, kv, "is read before it is appended to", err);
}

/* Invariant 2: this op is the one that writes its output, and the KV or state (and its checkpoint) it moves on. */
static hearth_status check_writes(const hth_program *p, int index, hearth_error *err) {
    const hth_op *op = &p->ops[index];
    if (op->out != HTH_NONE && p->tensors[op->out].writer != index)
        return broken(op, &p->tensors[op->out], "has another writer", err);
    if (!hth_operand_writes(hth_op_rule_of(op->opcode)->state)) return HEARTH_OK;
    const hth_tensor *state = &p->tensors[op->state];
    if (state->writer != index) return broken(op, state, "has another writer", err);
    if (state->class == HTH_STATE && p->tensors[state->checkpoint].writer != index)
        return broken(op, &p->tensors[state->checkpoint], "has another writer", err);
    return HEARTH_OK;
}

/* Invariant 3: operands fit the opcode, and the output has the shape that follows from them. */
static hearth_status check_shapes(const hth_program *p, int index, hearth_error *err) {
    const hth_op *op = &p->ops[index];
    if ((unsigned)op->opcode >= HTH_OPCODES)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: opcode %d is not known", op->site, (int)op->opcode);
    hth_out_shape shape;
    HTH_TRY(hth_op_check(p, op, &shape, err));
    if ((shape.n > 0) != (op->out != HTH_NONE))
        return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: output missing or not wanted", op->site,
                        hth_opcode_name(op->opcode));
    if (op->out == HTH_NONE) return HEARTH_OK;
    if (op->out < 0 || op->out >= p->n_tensors)
        return hth_fail(err, HEARTH_BAD_FILE, "%s: %s: the output is no tensor of the program", op->site,
                        hth_opcode_name(op->opcode));
    const hth_tensor *t = &p->tensors[op->out];
    bool same = (t->class == HTH_ACTIVATION || t->class == HTH_OUTPUT) && t->dtype == HTH_F32 && t->n_dims == 2 &&
                t->dims[0].symbol == HTH_ONE && t->dims[0].n == shape.n && t->dims[1].symbol == shape.rows &&
                t->dims[1].n == 1;
    return same ? HEARTH_OK : broken(op, t, "has not the shape its op gives it", err);
}

static int by_site(const void *a, const void *b) {
    return strcmp((*(const hth_op *const *)a)->site, (*(const hth_op *const *)b)->site);
}

/* Invariant 4. */
static hearth_status check_sites(const hth_program *p, hearth_error *err) {
    const hth_op **sorted = malloc(((size_t)p->n_ops + 1) * sizeof *sorted);
    if (!sorted) return hth_fail(err, HEARTH_NO_MEMORY, "no memory to check a program of %d ops", p->n_ops);
    for (int i = 0; i < p->n_ops; i++) sorted[i] = &p->ops[i];
    qsort(sorted, (size_t)p->n_ops, sizeof *sorted, by_site);
    hearth_status status = HEARTH_OK;
    for (int i = 1; i < p->n_ops && status == HEARTH_OK; i++)
        if (strcmp(sorted[i - 1]->site, sorted[i]->site) == 0)
            status = hth_fail(err, HEARTH_BAD_FILE, "%s: two ops have this site", sorted[i]->site);
    free(sorted);
    return status;
}

/* Invariant 5. */
static hearth_status check_output(const hth_program *p, hearth_error *err) {
    if (p->logits < 0 || p->logits >= p->n_tensors) return hth_fail(err, HEARTH_BAD_FILE, "the program has no logits");
    const hth_tensor *t = &p->tensors[p->logits];
    if (t->class != HTH_OUTPUT || t->writer < 0 || t->writer >= p->n_ops)
        return hth_fail(err, HEARTH_BAD_FILE, "no op writes the logits %s", t->name);
    if (t->dims[0].n != p->n_vocab || t->dims[1].symbol != HTH_OUTS)
        return hth_fail(err, HEARTH_BAD_FILE, "the logits %s are not [%" PRId64 ", OUTS]", t->name, p->n_vocab);
    return HEARTH_OK;
}

hearth_status hth_program_check(const hth_program *program, hearth_error *err) {
    for (int i = 0; i < program->n_ops; i++) {
        HTH_TRY(check_shapes(program, i, err));
        HTH_TRY(check_reads(program, i, err));
        HTH_TRY(check_writes(program, i, err));
    }
    HTH_TRY(check_sites(program, err));
    return check_output(program, err);
}
