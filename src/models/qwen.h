/* The forward passes of Qwen 2 and Qwen 3, which their mixtures of experts share. */
#ifndef HTH_MODELS_QWEN_H
#define HTH_MODELS_QWEN_H

#include "models/moe.h"

/* Everything after the hyper-parameters; the logits. moe: NULL for the dense form. */
hth_tensor_id hth_qwen2_model(hth_reading *r, const hth_decoder *d, const hth_moe *moe);
hth_tensor_id hth_qwen3_model(hth_reading *r, const hth_decoder *d, const hth_moe *moe);

#endif
