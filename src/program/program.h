/* The linear program: what a recipe emits once at open and a backend lowers.
 *
 * A program is a list of tensors and a list of ops, layers unrolled, no control flow. Row counts are symbolic: the same
 * program runs for 1 row or 512. A recipe builds it through build.h, which checks every op as it is added; print.h
 * writes it; plan.h gives every activation its place.
 *
 * Invariants (hth_program_check asserts the first five, and names the op that breaks one):
 *  1. every tensor an op reads is a weight, constant, input, KV or state tensor, or was written by an earlier op;
 *  2. every activation and output is written by exactly one op; a KV or state tensor at most once a program;
 *  3. shapes and dtypes of every op's operands are those its opcode asks for (the table in ops.h);
 *  4. op sites are unique;
 *  5. the last op that writes an output tensor exists for each declared output;
 *  6. nothing changes after hth_builder_finish: a program is read-only and may be shared by threads.
 */
#ifndef HTH_PROGRAM_PROGRAM_H
#define HTH_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "program/ops.h"

/* What a dimension counts that is known only when a pass runs. */
typedef enum hth_symbol {
    HTH_ONE,   /* nothing: the extent is fixed */
    HTH_ROWS,  /* rows of the pass */
    HTH_OUTS,  /* rows whose logits are wanted */
    HTH_SEQS,  /* sessions in the pass */
    HTH_MARKS, /* marks the pass leaves */
    HTH_SYMBOLS
} hth_symbol;

/* extent = n * value of the symbol */
typedef struct hth_dim {
    hth_symbol symbol;
    int64_t n;
} hth_dim;

typedef enum hth_class {
    HTH_WEIGHT,     /* in a file mapping, GGUF layout */
    HTH_CONSTANT,   /* small float32 tables made by the recipe (rope frequencies), owned by the program */
    HTH_KV,         /* the blocks of one layer's keys and values */
    HTH_STATE,      /* recurrent state: float32, its dims are those of one slot; one slot a session */
    HTH_CHECKPOINT, /* write-only copies of a state: its dims and MARKS */
    HTH_ACTIVATION, /* lives between ops of one pass */
    HTH_INPUT,      /* given by the engine for each pass */
    HTH_OUTPUT,     /* read by the engine after each pass */
    HTH_CLASSES
} hth_class;

/* The run-time inputs; the list is fixed. */
typedef enum hth_input {
    HTH_INPUT_TOKENS,    /* int32 [ROWS] token ids */
    HTH_INPUT_POSITIONS, /* int64 [ROWS] */
    HTH_INPUT_OUT_ROWS,  /* int32 [OUTS] rows whose logits are wanted, increasing */
    HTH_INPUT_COUNT      /* row→session, block tables, state slots and marks are operands of every op that has KV or
                            state and stay implicit */
} hth_input;

typedef int32_t hth_tensor_id; /* index into hth_program.tensors; HTH_NONE where an operand is absent */
#define HTH_NONE ((hth_tensor_id)-1)

#define HTH_TENSOR_DIMS 4

/* Where a weight lies: `offset` bytes into file mapping `file`. Rows of dims[0] elements follow each other without
 * gaps; slabs (dims[2] of them, of dims[1] rows) do at a distance of slab_stride bytes, which is more than their size
 * where they are a part of larger ones. */
typedef struct hth_weight {
    int file;
    uint64_t offset;
    uint64_t bytes;       /* from the first to the last that belongs to it */
    uint64_t slab_stride; /* 0 without slabs */
} hth_weight;

/* The geometry of a KV tensor: per position, `heads` keys of dk and values of dv elements. */
typedef struct hth_kv_shape {
    int64_t heads, dk, dv;
} hth_kv_shape;

typedef struct hth_tensor {
    char name[64]; /* weights: the file's tensor name; others: the site that makes them */
    hth_class class;
    hth_dtype dtype; /* activations and outputs: F32; inputs: I32 or I64; KV: chosen by the engine, F32 here */
    int n_dims;
    hth_dim dims[HTH_TENSOR_DIMS]; /* fastest first */
    union {
        hth_weight weight;
        const float *constant; /* dims product floats, owned by the program */
        hth_kv_shape kv;
        hth_input input;
        hth_tensor_id checkpoint; /* of a state: where its op leaves copies */
    };
    int32_t writer;   /* op that writes it, -1 for none */
    int32_t last_use; /* last op that reads it, -1 for none */
} hth_tensor;

#define HTH_OP_INPUTS  3
#define HTH_OP_WEIGHTS 6

typedef struct hth_op {
    hth_opcode opcode;
    char site[64];
    hth_tensor_id in[HTH_OP_INPUTS];
    hth_tensor_id weight[HTH_OP_WEIGHTS]; /* weights and constants */
    hth_tensor_id out;
    hth_tensor_id state; /* KV or state tensor the op reads or writes */
    hth_immediates imm;
} hth_op;

typedef struct hth_program {
    char architecture[32];
    int n_tensors, n_ops, n_files;
    hth_tensor *tensors;
    hth_op *ops;
    int64_t n_layers, n_vocab, n_embd; /* for reports */
    int64_t context;                   /* positions the model was made for */
    hth_tensor_id logits;              /* the output: float32 [n_vocab, OUTS] */
    uint64_t bind_ns;                  /* of the time that making it took, what finding its weights did; for reports */
    char *notes;                       /* what the file has and the program leaves unused, a line each; NULL: nothing */
} hth_program;

/* A number for each symbol. */
typedef struct hth_extents {
    int64_t value[HTH_SYMBOLS]; /* value[HTH_ONE] == 1 */
} hth_extents;

/* Elements of a tensor for given extents. */
int64_t hth_tensor_elements(const hth_tensor *t, const hth_extents *extents);

/* Bytes of a weight itself, without those of others between its slabs. */
uint64_t hth_weight_bytes(const hth_tensor *weight);

void hth_program_free(hth_program **program);

/* Check the invariants; HEARTH_BAD_FILE when a file's shapes led to a broken program, with site and reason. */
hearth_status hth_program_check(const hth_program *program, hearth_error *err);

#endif
