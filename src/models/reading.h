/* One GGUF file while its recipe reads it.
 *
 * A recipe asks for hyper-parameters (params.h) and weights (bind.h) through a reading, which remembers what was asked
 * for. Whatever the recipe did not ask for it would silently ignore, and the answers would be plausible and wrong: so
 * hth_reading_finish refuses a key or tensor that nobody asked for, by name, unless it is known to change nothing.
 * Errors stick in the builder, so a recipe reads as the model's forward pass.
 */
#ifndef HTH_MODELS_READING_H
#define HTH_MODELS_READING_H

#include "gguf/gguf.h"
#include "program/build.h"

typedef struct hth_reading {
    const hth_gguf *g;
    hth_builder *b;
    const char *architecture;        /* prefix of its keys */
    const char **keys;               /* suffixes asked for, string literals */
    const hth_gguf_tensor **tensors; /* asked for and found; one may stand there twice */
    int n_keys, n_tensors, key_capacity, tensor_capacity;
    uint64_t bind_ns; /* spent on finding weights and checking their shapes */
} hth_reading;

/* The forward pass of one architecture: reads everything, emits everything, gives the logits. */
typedef hth_tensor_id hth_forward_fn(hth_reading *r);

/* Run a recipe over a file: the program, or the first error. */
hearth_status hth_read_model(const hth_gguf *g, const char *architecture, hth_forward_fn *forward, hth_program **out,
                             hearth_error *err);

/* Remember that the recipe asked for the key ARCHITECTURE.suffix; gives the whole key, valid until the next call. */
#define HTH_KEY_TEXT 128
const char *hth_reading_key(hth_reading *r, const char *suffix, char key[HTH_KEY_TEXT]);

/* The tensor of this name, remembered as asked for; NULL when the file has none. */
const hth_gguf_tensor *hth_reading_tensor(hth_reading *r, const char *name);

#endif
