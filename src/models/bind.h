/* Weights by name, shape and dtype.
 *
 * Names are within the builder's scope: after hth_build_scope(b, "blk.%d.", 3), "attn_q.weight" is the tensor
 * blk.3.attn_q.weight. A missing tensor, another shape or a dtype that is not computed with is a named error that
 * sticks; the answer is then HTH_NONE. Shapes are in the file's order, fastest first. */
#ifndef HTH_MODELS_BIND_H
#define HTH_MODELS_BIND_H

#include "models/reading.h"

bool hth_bind_has(const hth_reading *r, const char *name);

/* A matrix [in, out] of any dtype computed with. */
hth_tensor_id hth_bind_matrix(hth_reading *r, const char *name, int64_t in, int64_t out);
/* A stack of matrices [in, out, slabs] of any dtype computed with: the experts of a layer. */
hth_tensor_id hth_bind_slabs(hth_reading *r, const char *name, int64_t in, int64_t out, int64_t slabs);
/* Rows first .. first + count - 1 of each slab. */
hth_tensor_id hth_bind_slabs_part(hth_reading *r, const char *name, int64_t in, int64_t out, int64_t slabs,
                                  int64_t first, int64_t count);
/* A float32 matrix [in, out]: convolution taps, biases of experts. */
hth_tensor_id hth_bind_table(hth_reading *r, const char *name, int64_t in, int64_t out);
/* A float32 vector [n]: norms and biases. */
hth_tensor_id hth_bind_vector(hth_reading *r, const char *name, int64_t n);

/* Rows first .. first + count - 1 of a matrix [in, out], or those elements of a vector [n]: a part of a fused tensor.
 */
hth_tensor_id hth_bind_matrix_part(hth_reading *r, const char *name, int64_t in, int64_t out, int64_t first,
                                   int64_t count);
hth_tensor_id hth_bind_vector_part(hth_reading *r, const char *name, int64_t n, int64_t first, int64_t count);

/* Rows of a matrix whose count the file decides (1 to max): how many words the embedding has. 0 after an error. */
int64_t hth_bind_rows(hth_reading *r, const char *name, int64_t max);

/* Copy a small float32 vector [n] out of the file, for a table that is computed at open; false after an error. */
bool hth_bind_copy(hth_reading *r, const char *name, int64_t n, float *out);

#endif
