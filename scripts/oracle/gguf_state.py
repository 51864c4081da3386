"""The tensors of a GGUF file as the state dict of a transformers model: names, shapes, and what the field's converter
changed undone (interleaved rotary rows of llama, +1 on zero-centred norms, gpt2's transposed matrices, split or fused
experts, the order of value heads in recurrent layers).
"""
import torch

ATTENTION_NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
}
EXPERT_NAMES = {
    "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.gate_proj", "ffn_up_exps": "mlp.experts.up_proj",
    "ffn_gate_up_exps": "mlp.experts.gate_up_proj", "ffn_down_exps": "mlp.experts.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate", "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
LAYER_NAMES = ATTENTION_NAMES | EXPERT_NAMES | {
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
GEMMA_NAMES = LAYER_NAMES | {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
GPT2_NAMES = {
    "attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
}
GPT_OSS_NAMES = LAYER_NAMES | {
    "post_attention_norm": "post_attention_layernorm", "attn_sinks": "self_attn.sinks", "ffn_gate_inp": "mlp.router",
}
HYBRID_NAMES = LAYER_NAMES | {
    "post_attention_norm": "post_attention_layernorm", "attn_qkv": "linear_attn.in_proj_qkv",
    "attn_gate": "linear_attn.in_proj_z", "ssm_conv1d": "linear_attn.conv1d", "ssm_alpha": "linear_attn.in_proj_a",
    "ssm_beta": "linear_attn.in_proj_b", "ssm_ba": "linear_attn.in_proj_ba", "ssm_norm": "linear_attn.norm",
    "ssm_out": "linear_attn.out_proj", "ssm_a": "linear_attn.A_log", "ssm_dt": "linear_attn.dt_bias",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
GPT2_TOP_NAMES = {
    "token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f",
    "output": "lm_head",
}
NAMES = {
    "gpt2": GPT2_NAMES, "gemma2": GEMMA_NAMES, "gemma3": GEMMA_NAMES, "gpt-oss": GPT_OSS_NAMES,
    "qwen35": HYBRID_NAMES, "qwen35moe": HYBRID_NAMES, "qwen3next": HYBRID_NAMES,
}
HYBRIDS = tuple(arch for arch, names in NAMES.items() if names is HYBRID_NAMES)
ZERO_CENTRED = ("gemma2", "gemma3", *HYBRIDS)  # transformers multiplies by 1 + w, the file holds that
# Parameters that have no module of their own: their names in transformers end where the others have ".weight".
BARE = ("A_log", "dt_bias", "sinks")


def hf_name(arch, name):
    """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight"""
    gpt2 = arch == "gpt2"
    if not name.startswith("blk."):
        role, leaf = name.rsplit(".", 1)
        return f"{(GPT2_TOP_NAMES if gpt2 else TOP_NAMES)[role]}.{leaf}"
    _, layer, role, *leaf = name.split(".")
    role = NAMES.get(arch, LAYER_NAMES)[role]
    leaf = [] if role.endswith(BARE) else leaf
    return ".".join(["transformer.h" if gpt2 else "model.layers", layer, role, *leaf])


def deinterleave(rows, heads):
    """Row 2j + s of each head back to row j + s * d/2."""
    per_head = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return per_head.transpose(1, 2).reshape(rows.shape)


class ValueHeads:
    """Which key head a recurrent layer's value head h belongs to: h mod N_k in the files of qwen35, h div (N_v / N_k)
    in transformers and in the files of qwen3next."""

    def __init__(self, file):
        self.key_heads = file.key("ssm.group_count")
        self.per_key = file.key("ssm.time_step_rank") // self.key_heads
        self.key_rows = self.key_heads * file.key("ssm.state_size")
        self.tiled = file.arch != "qwen3next"

    def group(self, rows):
        if not self.tiled:
            return rows
        heads = rows.reshape(self.per_key, self.key_heads, -1, *rows.shape[1:])
        return heads.transpose(0, 1).reshape(rows.shape)

    def group_last(self, rows):
        """Of queries, keys and values, the values."""
        fixed = 2 * self.key_rows
        return torch.cat([rows[:fixed], self.group(rows[fixed:])])

    def by_key_head(self, *parts):
        """For each key head its share of each part, as transformers has them in qwen3next."""
        shares = [part.reshape(self.key_heads, -1, *part.shape[1:]) for part in parts]
        return torch.cat(shares, 1).flatten(0, 1)


def log_of(a):
    """The float32 whose exp is exactly `a` in a vector of this length, where there is one next to the logarithm."""
    best = torch.log(a)
    for direction in (-torch.inf, torch.inf):
        step = torch.log(a)
        for _ in range(4):
            step = torch.nextafter(step, torch.full_like(step, direction))
            best = torch.where((best.exp() != a) & (step.exp() == a), step, best)
    return best


def undo_recurrent(heads, role, weight):
    if role == "attn_qkv":
        return heads.group_last(weight)
    if role == "ssm_conv1d":
        return heads.group_last(weight)[:, None]
    if role == "ssm_a":
        return log_of(-heads.group(weight))
    if role == "ssm_out":
        return heads.group(weight.T).T.contiguous()
    if role in ("attn_gate", "ssm_alpha", "ssm_beta", "ssm_dt"):
        return heads.group(weight)
    return weight


def undo_converter(file, name, weight):
    if file.arch == "llama" and ".attn_q." in name:
        return deinterleave(weight, file.key("attention.head_count"))
    if file.arch == "llama" and ".attn_k." in name:
        return deinterleave(weight, file.key("attention.head_count_kv", file.key("attention.head_count")))
    if file.arch in ZERO_CENTRED and name.endswith("norm.weight") and "ssm_norm" not in name:
        return weight - 1
    if file.arch == "gpt2" and name.startswith("blk.") and weight.dim() == 2:
        return weight.T.contiguous()
    if name.endswith("ffn_gate_inp_shexp.weight"):  # one row, which quantizers write as a vector
        return weight.reshape(1, -1)
    if file.arch in HYBRIDS and name.startswith("blk."):
        return undo_recurrent(ValueHeads(file), name.split(".")[2], weight)
    return weight


def split_attention(file, weights):
    """Queries, keys and values that a file has in one matrix where transformers has three. (In a recurrent layer it has
    one, too.)"""
    if file.arch == "gpt2":
        return weights
    split = {}
    for name, weight in weights.items():
        _, layer, role, *_ = (name + "...").split(".")
        if role != "attn_qkv" or f"blk.{layer}.ssm_a" in file.tensors:
            split[name] = weight
            continue
        rows = file.key("attention.head_count_kv") * file.key("attention.key_length")
        parts = torch.split(weight, [weight.shape[0] - 2 * rows, rows, rows])
        split |= {name.replace("qkv", part): rows for part, rows in zip("qkv", parts)}
    return split


def join_projections(file, state):
    """transformers' qwen3next has one matrix for q, k, v and z, whose rows are those of one key head after another."""
    heads = ValueHeads(file)
    for name in [name for name in state if name.endswith("linear_attn.in_proj_qkv.weight")]:
        z_name = name.replace("qkv", "z")
        rows = state.pop(name)
        q, k, v = torch.split(rows, [heads.key_rows, heads.key_rows, rows.shape[0] - 2 * heads.key_rows])
        state[name.replace("qkv", "qkvz")] = heads.by_key_head(q, k, v, state.pop(z_name))


def join_experts(file, state):
    """transformers has one tensor for gate and up of all experts: gates first, or in gpt-oss alternating, where it also
    has inputs before outputs."""
    gpt_oss = file.arch == "gpt-oss"
    for name in [name for name in state if ".experts.gate_proj." in name]:
        gate, up = state.pop(name), state.pop(name.replace("gate_proj", "up_proj"))
        both = torch.stack([gate, up], 2).flatten(1, 2) if gpt_oss else torch.cat([gate, up], 1)
        state[name.replace("gate_proj", "gate_up_proj")] = both
    for name in [name for name in state if ".experts." in name]:
        weight = state.pop(name)
        if gpt_oss and name.endswith(".weight"):
            weight = weight.transpose(1, 2).contiguous()
        state[name.removesuffix(".weight").replace(".bias", "_bias")] = weight


def is_used(file, name):
    """The blocks after the trunk predict further tokens; transformers has none."""
    trunk = file.key("block_count") - file.key("nextn_predict_layers", 0)
    return name != "rope_freqs.weight" and not (name.startswith("blk.") and int(name.split(".")[1]) >= trunk)


def state_dict(file):
    weights = split_attention(file, {name: file.weight(name) for name in file.tensors if is_used(file, name)})
    state = {hf_name(file.arch, name): undo_converter(file, name, weight) for name, weight in weights.items()}
    if file.arch == "qwen3next":
        join_projections(file, state)
    join_experts(file, state)
    if "output.weight" not in file.tensors:
        state["lm_head.weight"] = state[hf_name(file.arch, "token_embd.weight")]
    return state
