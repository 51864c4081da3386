/* From stored elements to float32, in plain C: what each dtype means, and the reference that kernels are held to.
 *
 * Every product here is exact in float32 for finite scales, so the result does not depend on how it is associated;
 * where a minimum is added, that addition rounds once. Values equal those of the `gguf` Python package to the bit.
 */
#ifndef HTH_BASE_DEQUANT_H
#define HTH_BASE_DEQUANT_H

#include <stdint.h>

#include "base/dtype.h"

/* Expand n elements (a multiple of the dtype's block) from src, at any alignment, into dst. */
typedef void hth_dequant(const void *src, float *dst, uint64_t n);

/* The function of a dtype, or NULL for one that Hearth does not compute with. */
hth_dequant *hth_dequant_find(hth_dtype dtype);

/* The same in one call; that the dtype is computed with is asserted. */
void hth_dequant_row(hth_dtype dtype, const void *src, float *dst, uint64_t n);

#endif
