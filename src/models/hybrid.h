/* The forward pass of Qwen's hybrids: Gated DeltaNet layers, and every few of them one of full attention whose output
 * is gated. Their architectures differ in the order of heads and in the feed-forward network. */
#ifndef HTH_MODELS_HYBRID_H
#define HTH_MODELS_HYBRID_H

#include "models/reading.h"

/* Which value heads belong to a key head: the converter deals those of Qwen 3.5 out to the key heads in turn, those of
 * qwen3next lie side by side. */
typedef enum hth_head_order { HTH_HEADS_TILED, HTH_HEADS_GROUPED } hth_head_order;

hth_tensor_id hth_hybrid_forward(hth_reading *r, hth_head_order heads, bool has_experts);

#endif
