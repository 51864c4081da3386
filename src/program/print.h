/* The program as text: one line an op. `hearth explain` and the golden prints use it. */
#ifndef HTH_PROGRAM_PRINT_H
#define HTH_PROGRAM_PRINT_H

#include <stdio.h>

#include <stddef.h>

#include "program/plan.h"

/* "[576, ROWS]" of a tensor, "[3 heads, 64 + 64]" of a KV tensor; for errors and prints. */
#define HTH_SHAPE_TEXT 96
void hth_shape_text(const hth_tensor *t, char *out, size_t size);

/* Ask for the name of the kernel bound to an op; may be NULL. */
typedef const char *hth_kernel_name_fn(const void *context, int op);

/* Print `program`; with a plan, arena offsets too; with `kernel`, the kernel each op is bound to. */
void hth_program_print(const hth_program *program, const hth_plan *plan, hth_kernel_name_fn *kernel,
                       const void *context, FILE *out);

#endif
