"""Loads a GGUF file into a transformers model in float32, independent of both Hearth and transformers' own loader.

Weights are dequantized by the `gguf` package and what the field's converter changed is undone (interleaved rotary rows
of llama, +1 on gemma's norms, gpt2's transposed matrices). The configuration comes from the file's metadata, or from a
Hugging Face folder when one is given: then only the weights are the file's.
"""
import numpy as np
import torch
from gguf import GGUFReader, dequantize
from transformers import (AutoConfig, AutoModelForCausalLM, Gemma2Config, Gemma3TextConfig, GPT2Config, LlamaConfig,
                          MistralConfig, Qwen2Config, Qwen3Config)
from transformers.utils import logging

logging.disable_progress_bar()

LAYER_NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}
GEMMA_NAMES = LAYER_NAMES | {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
GPT2_NAMES = {
    "attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
GPT2_TOP_NAMES = {
    "token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f",
    "output": "lm_head",
}


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


def hf_name(arch, name):
    """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight"""
    gpt2 = arch == "gpt2"
    if not name.startswith("blk."):
        role, leaf = name.rsplit(".", 1)
        return f"{(GPT2_TOP_NAMES if gpt2 else TOP_NAMES)[role]}.{leaf}"
    _, layer, role, leaf = name.split(".")
    roles = GPT2_NAMES if gpt2 else GEMMA_NAMES if arch.startswith("gemma") else LAYER_NAMES
    return f"{'transformer.h' if gpt2 else 'model.layers'}.{layer}.{roles[role]}.{leaf}"


def deinterleave(rows, heads):
    """Row 2j + s of each head back to row j + s * d/2."""
    per_head = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return per_head.transpose(1, 2).reshape(rows.shape)


def undo_converter(file, name, weight):
    if file.arch == "llama" and ".attn_q." in name:
        return deinterleave(weight, file.key("attention.head_count"))
    if file.arch == "llama" and ".attn_k." in name:
        return deinterleave(weight, file.key("attention.head_count_kv", file.key("attention.head_count")))
    if file.arch.startswith("gemma") and name.endswith("norm.weight"):
        return weight - 1
    if file.arch == "gpt2" and name.startswith("blk.") and weight.dim() == 2:
        return weight.T.contiguous()
    return weight


def state_dict(file):
    names = [name for name in file.tensors if name != "rope_freqs.weight"]
    state = {hf_name(file.arch, name): undo_converter(file, name, file.weight(name)) for name in names}
    if "output.weight" not in file.tensors:
        state["lm_head.weight"] = state[hf_name(file.arch, "token_embd.weight")]
    return state


def rope_parameters(file):
    rope = {"rope_type": "default", "rope_theta": float(file.key("rope.freq_base", 10000.0))}
    factor = file.key("rope.scaling.factor", 0.0) or 0.0
    kind = file.key("rope.scaling.type", "linear")
    if factor > 0 and kind == "linear":
        rope |= {"rope_type": "linear", "factor": float(factor)}
    elif factor > 0 and kind == "yarn":
        rope |= {"rope_type": "yarn", "factor": float(factor),
                 "original_max_position_embeddings": file.key("rope.scaling.original_context_length")}
    return rope


def gpt2_config(file):
    return GPT2Config(
        vocab_size=file.tensors["token_embd.weight"].shape[1].item(), n_positions=file.key("context_length"),
        n_embd=file.key("embedding_length"), n_layer=file.key("block_count"), n_head=file.key("attention.head_count"),
        layer_norm_epsilon=file.key("attention.layer_norm_epsilon"),
        tie_word_embeddings="output.weight" not in file.tensors, bos_token_id=None, eos_token_id=None)


def config_from(file):
    if file.arch == "gpt2":
        return gpt2_config(file)
    width, heads = file.key("embedding_length"), file.key("attention.head_count")
    head_dim = file.key("attention.key_length", width // heads)
    common = dict(
        vocab_size=file.tensors["token_embd.weight"].shape[1].item(), hidden_size=width, head_dim=head_dim,
        intermediate_size=file.key("feed_forward_length"), num_hidden_layers=file.key("block_count"),
        num_attention_heads=heads, num_key_value_heads=file.key("attention.head_count_kv", heads),
        rms_norm_eps=file.key("attention.layer_norm_rms_epsilon"), max_position_embeddings=file.key("context_length"),
        tie_word_embeddings="output.weight" not in file.tensors, rope_parameters=rope_parameters(file))
    window = file.key("attention.sliding_window", 0)
    if file.arch == "llama" and window:
        return MistralConfig(sliding_window=window, **common)
    if file.arch == "llama":
        return LlamaConfig(attention_bias="blk.0.attn_q.bias" in file.tensors,
                           mlp_bias="blk.0.ffn_up.bias" in file.tensors, **common)
    if file.arch == "qwen2":
        return Qwen2Config(**common)
    if file.arch == "qwen3":
        return Qwen3Config(attention_bias="blk.0.attn_q.bias" in file.tensors, **common)
    common |= dict(query_pre_attn_scalar=head_dim, sliding_window=window, hidden_activation="gelu_pytorch_tanh")
    if file.arch == "gemma2":
        return Gemma2Config(attn_logit_softcapping=file.key("attn_logit_softcapping", 50.0),
                            final_logit_softcapping=file.key("final_logit_softcapping", 30.0), **common)
    if file.arch == "gemma3":
        local = {"rope_type": "default", "rope_theta": float(file.key("rope.freq_base_swa", 10000.0))}
        common["rope_parameters"] = {"full_attention": common["rope_parameters"], "sliding_attention": local}
        return Gemma3TextConfig(final_logit_softcapping=file.key("final_logit_softcapping"), **common)
    raise SystemExit(f"{file.path}: no transformers configuration for architecture {file.arch!r}")


def build(config):
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()


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
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


@torch.inference_mode()
def logits(model, tokens):
    """float32 array, one row per token."""
    return model(input_ids=torch.tensor([list(tokens)]), use_cache=False).logits[0].float().numpy()
