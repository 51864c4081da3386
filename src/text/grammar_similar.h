/* States that short texts cannot tell apart: a string of at most 1000 characters has as many states for its length, and
 * far from the end they all take the same tokens. */
#ifndef HTH_TEXT_GRAMMAR_SIMILAR_H
#define HTH_TEXT_GRAMMAR_SIMILAR_H

#include "text/grammar_automaton.h"

/* same[state] becomes the first state of the same rule that no text of up to `depth` bytes tells from it, or the state
 * itself where finding out would take too long. */
hearth_status hth_automaton_find_similar(const hth_automaton *a, uint32_t depth, uint32_t *same, hearth_error *err);

#endif
