/* JSON schemas as grammars. docs/constraints.md says what is honoured; everything else is refused by name.
 *
 * Every schema in a document becomes a rule whose name is its JSON pointer, so that a reference is a call, recursive or
 * not. What is generated is JSON in one spelling: properties in the order of the schema, a fixed choice of white space,
 * and where the length or the characters of a string matter, no more escapes than it needs.
 */
#ifndef HTH_TEXT_SCHEMA_H
#define HTH_TEXT_SCHEMA_H

#include "text/grammar.h"

/* Compile `size` bytes of JSON into an initialised grammar without a source. On failure the text names the place as a
 * JSON pointer: BAD_ARGUMENT for what is no schema, or one that nothing satisfies; UNSUPPORTED for keywords and values
 * that cannot be honoured; TOO_LONG, NO_MEMORY. */
hearth_status hth_schema_parse(hth_grammar *g, const char *text, size_t size, hearth_error *err);

#endif
