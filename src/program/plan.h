/* Where activations live: offsets in one arena, by liveness.
 *
 * Two tensors share bytes only when no op needs both. The output of an elementwise op (ADD, SCALE, SOFTCAP, ACT, GLU,
 * ROPE, norms) takes the place of an input of the same size that dies there. Sizes are those of the largest extents
 * planned for; rows lie at a fixed stride, so a pass of fewer rows uses a prefix of each tensor.
 *
 * A backend may run some neighbours as one step, whose threads are not at the same op. The plan keeps the operands of a
 * step apart as if it were one op, except that an output may take an input's very place, row for row:
 *  - consecutive LINEARs of the same input (q, k, v; gate, up);
 *  - such LINEARs and the ADD right after them that reads the last product: its output never lies on their input;
 *  - consecutive ops that work on each row by itself (rules.h); a SELECT, which reads other rows, begins a step.
 */
#ifndef HTH_PROGRAM_PLAN_H
#define HTH_PROGRAM_PLAN_H

#include <stdio.h>

#include "program/program.h"

#define HTH_PLAN_ALIGN 64

typedef struct hth_plan {
    hth_extents extents;   /* the largest a pass may have */
    uint64_t *offset;      /* [n_tensors] bytes from the activation arena's start; UINT64_MAX for tensors not in it */
    hth_tensor_id *place;  /* [n_tensors] the tensor whose bytes an activation or output uses: the first of a chain of
                              in-place ops; the program's logits for what is computed in their buffer (what a final
                              SOFTCAP reads; its offset is UINT64_MAX too); HTH_NONE for all other classes */
    uint64_t bytes;        /* the arena's size */
    uint64_t logits_bytes; /* the output tensor, kept apart */
} hth_plan;

/* The arrays are owned by the plan; free with hth_plan_free. HEARTH_TOO_LONG when a size overflows. */
hearth_status hth_plan_make(const hth_program *program, const hth_extents *extents, hth_plan *out, hearth_error *err);
void hth_plan_free(hth_plan *plan);

/* Whether every promise above holds, by brute force over all pairs (asserts and tests). */
bool hth_plan_is_valid(const hth_program *program, const hth_plan *plan);

#endif
