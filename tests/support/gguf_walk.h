/* Touch everything that an opened GGUF directory hands out, so that a bad pointer or length shows under a sanitizer. */
#ifndef HTH_TESTS_GGUF_WALK_H
#define HTH_TESTS_GGUF_WALK_H

#include "gguf/gguf.h"

/* Every key, value, name and tensor's first and last byte, and the first row of each tensor dequantized (rows of at
 * most 65536 elements). Answers a checksum of what was read. Breaking an invariant of gguf.h ends the program. */
uint64_t gguf_walk(const hth_gguf *g);

#endif
