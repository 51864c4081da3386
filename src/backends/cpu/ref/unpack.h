/* A block of any quantized dtype as plain integers and floats: what the arithmetic of hth_linear_fn is defined on. */
#ifndef HTH_BACKENDS_CPU_REF_UNPACK_H
#define HTH_BACKENDS_CPU_REF_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* value of element i = d * scale[j] * w[i] + m * min[j], j = i / sub. With activations q of the same block:
 *   S = sum over j of scale[j] * (sum over i in j of w[i] * q[i]),  M = sum over j of min[j] * (sum over i in j of
 * q[i]). */
typedef struct ref_block {
    int8_t w[256];
    int n;             /* elements: 32 or 256 */
    int sub;           /* elements a sub-block: 16 or 32 */
    int16_t scale[16]; /* 1 for formats without sub-block scales */
    int16_t min[16];
    bool has_min;
    float d, m; /* m = -dmin for the K-quants */
} ref_block;

typedef void ref_unpack_fn(const void *block, ref_block *out);

/* The unpacker of a quantized dtype; NULL for the others. */
ref_unpack_fn *hth_ref_unpacker(hth_dtype dtype);

#endif
