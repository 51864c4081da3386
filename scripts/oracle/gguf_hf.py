"""Loads a GGUF file into a transformers model in float32, independent of both Hearth and transformers' own loader.

Weights are dequantized by the `gguf` package and what the field's converter changed is undone (gguf_state.py). The
configuration comes from the file's metadata (gguf_config.py), or from a Hugging Face folder when one is given: then
only the weights are the file's. Gated DeltaNet advances token by token, as it is defined.
"""
import numpy as np
import torch
from gguf import GGUFReader, dequantize
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.qwen3_5 import modeling_qwen3_5
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe
from transformers.models.qwen3_next import modeling_qwen3_next
from transformers.utils import logging

import int8_activations
from gguf_config import config_from
from gguf_state import state_dict

logging.disable_progress_bar()
for recurrent in (modeling_qwen3_5, modeling_qwen3_5_moe, modeling_qwen3_next):
    recurrent.torch_chunk_gated_delta_rule = recurrent.torch_recurrent_gated_delta_rule
# One expert after another, each as its rows' matrix products: no fused form with an order of its own.
PLAIN = dict(attn_implementation="eager", experts_implementation="eager")


class Gguf:
    """A file's metadata and tensors, by name; `key("block_count")` looks up `<arch>.block_count`."""

    def __init__(self, path):
        self.path = str(path)
        self.reader = GGUFReader(self.path)
        self.tensors = {t.name: t for t in self.reader.tensors}
        self.arch = self.meta("general.architecture")

    def meta(self, name, default=None):
        field = self.reader.get_field(name)
        return default if field is None else field.contents()

    def key(self, name, default=None):
        return self.meta(f"{self.arch}.{name}", default)

    def weight(self, name):
        t = self.tensors[name]
        return torch.from_numpy(np.array(dequantize(t.data, t.tensor_type), dtype=np.float32))


def build(config):
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32, **PLAIN).eval()


def load_gguf(path, folder=None):
    """The model in `path`; with `folder`, configured by that Hugging Face folder."""
    file = Gguf(path)
    model = build(AutoConfig.from_pretrained(folder) if folder else config_from(file))
    model.load_state_dict(state_dict(file), strict=True, assign=True)
    model.tie_weights()
    if "rope_freqs.weight" in file.tensors and not folder:
        # The file holds the divisors of the frequencies, from which the configuration cannot be told.
        model.model.rotary_emb.inv_freq /= file.weight("rope_freqs.weight")
    return model


def load_folder(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **PLAIN).eval()


def load_reference(path, folder):
    """The model that Hearth's logits of a file are held against: with the folder's own weights when the file has them
    unrounded, else the file's."""
    model = load_folder(folder) if path.stem.endswith("f32") else load_gguf(path, folder)
    return int8_activations.apply(model, Gguf(path))


@torch.inference_mode()
def logits(model, tokens):
    """float32 array, one row per token."""
    return model(input_ids=torch.tensor([list(tokens)]), use_cache=False).logits[0].float().numpy()
