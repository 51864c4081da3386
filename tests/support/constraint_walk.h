/* A walk through a constraint that checks what must hold of every mask, for fuzz targets and tests. */
#ifndef HTH_TESTS_CONSTRAINT_WALK_H
#define HTH_TESTS_CONSTRAINT_WALK_H

#include <stdint.h>

#include "hearth/constraint.h"

/* Follow a constraint by tokens drawn from its masks, `steps` of them (more texts when one ends); compare `tries`
 * tokens of each mask with what accepting them says. Ends the program when something does not hold. The answer is a
 * hash of what was drawn. */
uint64_t constraint_walk(const hearth_constraint *constraint, const hearth_tokenizer *tokenizer, uint64_t seed,
                         int steps, int tries);

#endif
