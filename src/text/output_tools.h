/* The tools of a request: which there are, and of which types their parameters may be. */
#ifndef HTH_TEXT_OUTPUT_TOOLS_H
#define HTH_TEXT_OUTPUT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "hearth/status.h"

/* A set of JSON types; 0 is: not known. */
enum {
    HTH_TYPE_STRING = 1,
    HTH_TYPE_NUMBER = 2, /* an integer too */
    HTH_TYPE_BOOLEAN = 4,
    HTH_TYPE_NULL = 8,
    HTH_TYPE_OBJECT = 16,
    HTH_TYPE_ARRAY = 32
};

typedef struct hth_output_tools hth_output_tools;

/* Read the JSON text of an array of tools: {"type": "function", "function": {"name", "parameters"}}, or flat with
 * "parameters" or "input_schema". Only names and the types of top-level parameters are kept. HEARTH_BAD_ARGUMENT when
 * it is not a JSON array; HEARTH_NO_MEMORY. */
hearth_status hth_output_tools_read(const char *text, size_t size, hth_output_tools **out, hearth_error *err);
void hth_output_tools_free(hth_output_tools **tools); /* NULL is ignored; *tools becomes NULL */

/* tools may be NULL, and then has no tool. */
bool hth_output_tools_have(const hth_output_tools *tools, const char *name, size_t size);
unsigned hth_output_tools_types(const hth_output_tools *tools, const char *name, size_t size, const char *parameter,
                                size_t parameter_size);

#endif
