/* The program as text, one line an op, or as JSON. `hearth explain` and the golden prints use it. */
#ifndef HTH_PROGRAM_PRINT_H
#define HTH_PROGRAM_PRINT_H

#include <stddef.h>
#include <stdio.h>

#include "base/jsonout.h"
#include "program/plan.h"

/* "ROWS"; "1" of HTH_ONE. "silu", "softmax normalized" … Static storage. */
const char *hth_symbol_name(hth_symbol symbol);
const char *hth_act_kind_name(hth_act_kind kind);
const char *hth_router_kind_name(hth_router_kind kind);

/* "[576, ROWS]" of a tensor, "[3 heads, 64 + 64]" of a KV tensor; for errors and prints. */
#define HTH_SHAPE_TEXT 96
void hth_shape_text(const hth_tensor *t, char *out, size_t size);

/* Ask for the name of the kernel bound to an op; may be NULL. */
typedef const char *hth_kernel_name_fn(const void *context, int op);

/* Print `program`; with a plan, arena offsets too; with `kernel`, the kernel each op is bound to. */
void hth_program_print(const hth_program *program, const hth_plan *plan, hth_kernel_name_fn *kernel,
                       const void *context, FILE *out);

/* The same into the object that is open in `json`: "notes", and with a plan "activation_bytes" and "logits_bytes";
 * "ops", each an object: "op", "site", "inputs", "weights", "state" (of these a tensor is "name", of a weight "dtype",
 * "shape"), "parameters", "output" ("shape", and with a plan "offset" in the arena, or "logits"), "kernel". What an op
 * does not have is left out. In a shape, fastest dimension first, one of n times a symbol is "ROWS" (n 1) or [n,
 * "ROWS"]; KV tensors have "heads", "dk" and "dv" in its place. */
void hth_program_json(const hth_program *program, const hth_plan *plan, hth_kernel_name_fn *kernel, const void *context,
                      hth_json *json);

#endif
