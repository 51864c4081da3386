/* The rule of each opcode: which operands it takes, what they look like, and what it gives back.
 *
 * One table serves the builder (shape inference), the checker (invariant 3 of program.h) and the planner (in-place
 * ops). To add an op: a line in ops.h, a row and an inference function in rules.c, its immediates in print.c.
 */
#ifndef HTH_PROGRAM_RULES_H
#define HTH_PROGRAM_RULES_H

#include "program/program.h"

/* What an operand slot takes. */
typedef enum hth_operand {
    HTH_OPERAND_NONE,            /* nothing: the slot is HTH_NONE */
    HTH_OPERAND_ROWS,            /* float32 activation [n, ROWS] or [n, OUTS] */
    HTH_OPERAND_IDS,             /* the input TOKENS or POSITIONS */
    HTH_OPERAND_POSITIONS,       /* the input POSITIONS */
    HTH_OPERAND_OUT_ROWS,        /* the input OUT_ROWS */
    HTH_OPERAND_MATRIX,          /* weight [k, n] of a dtype that is computed with */
    HTH_OPERAND_VECTOR,          /* float32 weight or constant [n] */
    HTH_OPERAND_OPTIONAL_VECTOR, /* the same, or HTH_NONE */
    HTH_OPERAND_SLABS,           /* weight [k, n, slabs] of a dtype that is computed with */
    HTH_OPERAND_TABLE,           /* float32 weight [k, n] */
    HTH_OPERAND_OPTIONAL_TABLE,  /* the same, or HTH_NONE */
    HTH_OPERAND_KV_WRITE,        /* a KV tensor that this op appends to */
    HTH_OPERAND_KV_READ,         /* a KV tensor that an earlier op appended to */
    HTH_OPERAND_STATE            /* a state tensor, with its checkpoint tensor, that this op moves on */
} hth_operand;

/* How an op goes with its neighbours in a step, for the plan (plan.h). */
typedef enum hth_step {
    HTH_STEP_ALONE,  /* it is a step of its own */
    HTH_STEP_ROWS,   /* works on each row by itself, so it joins those before it */
    HTH_STEP_SELECT, /* the same, but reads rows that others make, so it begins a step */
    HTH_STEP_LINEAR  /* joins its like on the same input */
} hth_step;

/* Shape of an op's output: [n, rows]. n is 0 for an op that has none. */
typedef struct hth_out_shape {
    int64_t n;
    hth_symbol rows;
} hth_out_shape;

/* Check the relations between an op's operands, which are present and of the right kind, and give the output's shape.
 */
typedef hearth_status hth_infer_fn(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err);

typedef struct hth_op_rule {
    hth_operand in[HTH_OP_INPUTS];
    hth_operand weight[HTH_OP_WEIGHTS];
    hth_operand state;
    hth_step step;
    unsigned in_place; /* bit i: the output may take the place of in[i] when that dies here */
    hth_infer_fn *infer;
} hth_op_rule;

const hth_op_rule *hth_op_rule_of(hth_opcode opcode);

/* Whether an op with this operand in its state slot writes that tensor. */
static inline bool hth_operand_writes(hth_operand operand) {
    return operand == HTH_OPERAND_KV_WRITE || operand == HTH_OPERAND_STATE;
}

/* Check all operands of an op against its rule and infer the output's shape. The error names site, opcode and operand.
 */
hearth_status hth_op_check(const hth_program *program, const hth_op *op, hth_out_shape *out, hearth_error *err);

#endif
