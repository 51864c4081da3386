"""Makes a transformers model compute as Hearth does with quantized weights: what enters such a matrix is rounded to
int8 with one scale for each block of the weights' format, by the rule of docs/numerics.md. Where a few matrices of a
file are quantized, most positions then agree as those of float weights do; the others have a value that fell to the
other side of a half. Where all are, such values bring forth others in each later layer."""
import types

import torch

from gguf_state import hf_name, is_used

FLOATS = ("F32", "F16", "BF16")
WIDE_BLOCK, BLOCK = 256, 32  # of the K-quants and IQ4_XS, and of the others
SMALLEST = 2.0 ** -100


def block_of(tensor):
    name = tensor.tensor_type.name
    return 0 if name in FLOATS else WIDE_BLOCK if name.endswith(("_K", "IQ4_XS")) else BLOCK


def rounded(x, block):
    if not block:
        return x
    blocks = x.unflatten(-1, (-1, block))
    largest = blocks.abs().amax(-1, keepdim=True)
    scale = 127 / largest
    codes = torch.round(blocks * scale).clamp(-127, 127)
    return torch.where(largest < SMALLEST, 0.0, codes * (largest / 127)).flatten(-2)


def is_quantized(file):
    return any(block_of(tensor) for tensor in file.tensors.values())


def experts_forward(gate_up_block, down_block):
    def forward(self, hidden, chosen, weights):
        def product(x, matrix, expert):
            whole = getattr(self, matrix)[expert]
            y = x @ whole if self.is_transposed else x @ whole.T
            return y + getattr(self, matrix + "_bias")[expert] if self.has_bias else y

        total = torch.zeros_like(hidden)
        for expert in chosen.unique().tolist():
            token, rank = torch.where(chosen == expert)
            gate_up = product(rounded(hidden[token], gate_up_block), "gate_up_proj", expert)
            out = product(rounded(self._apply_gate(gate_up), down_block), "down_proj", expert)
            total.index_add_(0, token, out * weights[token, rank, None])
        return total

    return forward


def blocks_of(file):
    """Block of activations for each matrix, by the name of its module in transformers."""
    blocks = {}
    for name, tensor in file.tensors.items():
        if is_used(file, name) and name.endswith(".weight"):
            blocks[hf_name(file.arch, name).removesuffix(".weight")] = block_of(tensor)
    return blocks


def apply(model, file):
    """In place. Matrices that transformers has joined and the file not must be of one format."""
    blocks = blocks_of(file)
    tied = blocks.get("model.embed_tokens", 0)
    for name, module in model.named_modules():
        if name.endswith("mlp.experts"):
            joined = name + ".gate_up_proj"  # in one tensor, or gate and up in one each
            forward = experts_forward(blocks[joined] if joined in blocks else blocks[name + ".gate_proj"],
                                      blocks[name + ".down_proj"])
            module.forward = types.MethodType(forward, module)
        elif isinstance(module, torch.nn.Linear):
            joined = name.replace("in_proj_qkvz", "in_proj_qkv")
            block = blocks.get(joined, tied if name == "lm_head" else 0)
            module.register_forward_pre_hook(lambda _, inputs, block=block: (rounded(inputs[0], block),))
    return model
