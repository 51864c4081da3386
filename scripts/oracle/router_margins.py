"""How close each choice of a router was: for each layer and token the distance between the logits of the last expert
that was taken and of the first that was not, in parts of the row's largest |logit|."""
import numpy as np

import gguf_hf

TIE = 1e-5  # a margin that float32's rounding may turn over


def logits_and_margins(model, tokens):
    """(logits, margins [layers, tokens]); no layers where nothing is routed or all experts are taken."""
    margins = []

    def note(router, _, output):
        logits = output[0]
        if router.top_k < logits.shape[1]:
            best = logits.sort(1, descending=True).values
            gap = best[:, router.top_k - 1] - best[:, router.top_k]
            margins.append((gap / logits.abs().amax(1)).numpy())

    hooks = [module.register_forward_hook(note) for name, module in model.named_modules()
             if name.endswith(("mlp.gate", "mlp.router"))]
    try:
        rows = gguf_hf.logits(model, tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return rows, np.array(margins).reshape(-1, len(tokens))


def closest(margins, positions=None):
    """(the smallest margin, its layer, its position) at these positions, or at all; None where there is no margin."""
    if len(margins) == 0:
        return None
    positions = np.arange(margins.shape[1]) if positions is None else np.array(positions)
    chosen = margins[:, positions]
    layer, at = np.unravel_index(chosen.argmin(), chosen.shape)
    return float(chosen[layer, at]), int(layer), int(positions[at])
