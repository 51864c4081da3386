/* The registry of recipes.
 *
 * A recipe turns a GGUF file of one architecture into a program: it reads the hyper-parameters (checked: everything
 * that becomes a dimension has a cap and a named error), binds weights by name, shape and dtype, and emits ops.
 * docs/adding.md says how to add one.
 */
#ifndef HTH_MODELS_MODELS_H
#define HTH_MODELS_MODELS_H

#include "gguf/gguf.h"
#include "program/build.h"

typedef struct hth_recipe {
    const char *architecture; /* value of general.architecture */
    hearth_status (*emit)(const hth_gguf *g, hth_program **out, hearth_error *err);
} hth_recipe;

/* The recipe of the file's architecture. HEARTH_UNSUPPORTED names an unknown one and lists those that are known,
 * and refuses an adapter, a projector or the like; HEARTH_BAD_FILE when the key is missing. */
hearth_status hth_recipe_find(const hth_gguf *g, const hth_recipe **out, hearth_error *err);

/* Architectures known, separated by spaces; static storage. */
const char *hth_recipe_names(void);

#endif
