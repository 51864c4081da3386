#!/usr/bin/env python3
"""Writes a GGUF file of random weights in the shape of a real model, cut to a few layers: for speed, and to see that a
real shape opens and runs. The text that comes out is noise.

usage: make_shape.py PRESET [--type TYPE] [--layers N] [--vocab N] [--mtp] [--set NAME=N ...] [--out FILE] [--seed N]
default FILE: <cache>/shapes/PRESET-TYPE-LN.gguf, with <cache> = $HEARTH_CACHE, or $XDG_CACHE_HOME/hearth, or
~/.cache/hearth. --set changes one number of the preset (see PRESETS), --mtp adds the block that predicts one token
more. Types: one for all matrices, or a mixture that quantizers write (q4_K_M, mxfp4).
Quantized blocks come from a small random pool for each type. Its length is prime, so that experts, rows and tensors are
different stretches of it; their values have a standard deviation of about 1 / sqrt(row length).
"""
import argparse
import array
import math
import random
import struct
import sys
from pathlib import Path
from typing import NamedTuple

from fetch_models import cache_dir

ALIGNMENT = 32
POOL_BLOCKS = 16381
STRETCH = 1 << 22  # bytes to write at once

PRESETS = {
    "llama-8b": dict(
        arch="llama", type="q4_K_M", vocab=128256, context=131072, width=4096, heads=32, kv_heads=8, head=128,
        rotated=128, theta=500000.0, epsilon=1e-5, dense_width=14336),
    "qwen3.6-35b-a3b": dict(
        arch="qwen35moe", type="q4_K_M", vocab=248320, context=262144, width=2048, heads=16, kv_heads=2, head=256,
        rotated=64, theta=10000000.0, epsilon=1e-6, experts=256, used=8, expert_width=512, shared_width=512,
        interval=4, kernel=4, state=128, key_heads=16, value_heads=32),
    "qwen3-30b-a3b": dict(
        arch="qwen3moe", type="q4_K_M", vocab=151936, context=40960, width=2048, heads=32, kv_heads=4, head=128,
        theta=1000000.0, epsilon=1e-6, experts=128, used=8, expert_width=768, dense_width=6144),
    "gpt-oss-20b": dict(
        arch="gpt-oss", type="mxfp4", vocab=201088, context=131072, width=2880, heads=64, kv_heads=8, head=64,
        theta=150000.0, epsilon=1e-5, window=128, experts=32, used=4, expert_width=2880),
}


class Format(NamedTuple):
    code: int            # of the tensor type in GGUF
    values: int          # in a block
    size: int            # of a block in bytes
    scales: tuple        # (offset of a float16 scale in the block, its size in parts of the values' deviation)


def mean_square(top):
    """Of a whole number that is uniform from 0 to top."""
    return top * (2 * top + 1) / 6


def with_minimum(top):
    """The scale that gives d * s * q - dmin * m, with s and m uniform to 63 and q to `top`, deviation 1 at mean 0."""
    cross = (31.5 * top / 2) ** 2
    return 1 / math.sqrt(mean_square(63) * mean_square(top) + mean_square(63) * (top / 2) ** 2 - 2 * cross)


def k_format(code, size, top):
    scale = with_minimum(top)
    return Format(code, 256, size, ((0, scale), (2, scale * top / 2)))


FORMATS = {
    "f32": Format(0, 1, 4, ()), "f16": Format(1, 1, 2, ()), "bf16": Format(30, 1, 2, ()),
    "q4_0": Format(2, 32, 18, ((0, 1 / 4.61),)), "q5_0": Format(6, 32, 22, ((0, 1 / 9.23),)),
    "q8_0": Format(8, 32, 34, ((0, 1 / 73.9),)), "mxfp4": Format(39, 32, 17, ()),
    "q4_K": k_format(12, 144, 15), "q5_K": k_format(13, 176, 31),
    "q6_K": Format(14, 256, 210, ((208, 1 / (18.5 * 73.9)),)),
}
MXFP4_ROOT_MEAN_SQUARE = 2.93
FALLBACKS = {"q4_K": "q5_0", "q5_K": "q8_0", "q6_K": "q8_0"}  # where a row is not a whole number of blocks
MIXTURES = {"q4_K_M": ("q4_K", 15), "mxfp4": ("mxfp4", 38)}  # the type of most weights, and the file's type number
FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 7, "q5_0": 8, "q4_K": 14, "q5_K": 16, "q6_K": 18, "bf16": 32}


IN_FLOAT = ("norm", "bias", "decay", "conv")  # roles of tensors that no type changes, as "router"


class Tensor(NamedTuple):
    name: str
    dims: tuple
    role: str            # one of IN_FLOAT, or what a mixture goes by: output, values, down; the others have any name
    layer: int = 0


def attention(blk, s, layer, gated=False, biased=False):
    q, kv = s["heads"] * s["head"], s["kv_heads"] * s["head"]
    yield Tensor(blk + "attn_norm.weight", (s["width"],), "norm")
    for name, ins, outs, role in (("attn_q", s["width"], q * (2 if gated else 1), "attention"),
                                  ("attn_k", s["width"], kv, "attention"), ("attn_v", s["width"], kv, "values"),
                                  ("attn_output", q, s["width"], "attention")):
        yield Tensor(f"{blk}{name}.weight", (ins, outs), role, layer)
        if biased:
            yield Tensor(f"{blk}{name}.bias", (outs,), "bias")


def head_norms(blk, s):
    yield Tensor(blk + "attn_q_norm.weight", (s["head"],), "norm")
    yield Tensor(blk + "attn_k_norm.weight", (s["head"],), "norm")


def delta_net(blk, s, layer):
    keys, values = s["key_heads"] * s["state"], s["value_heads"] * s["state"]
    yield Tensor(blk + "attn_norm.weight", (s["width"],), "norm")
    yield Tensor(blk + "attn_qkv.weight", (s["width"], 2 * keys + values), "attention", layer)
    yield Tensor(blk + "attn_gate.weight", (s["width"], values), "attention", layer)
    yield Tensor(blk + "ssm_alpha.weight", (s["width"], s["value_heads"]), "attention", layer)
    yield Tensor(blk + "ssm_beta.weight", (s["width"], s["value_heads"]), "attention", layer)
    yield Tensor(blk + "ssm_conv1d.weight", (s["kernel"], 2 * keys + values), "conv")
    yield Tensor(blk + "ssm_a", (s["value_heads"],), "decay")
    yield Tensor(blk + "ssm_dt.bias", (s["value_heads"],), "bias")
    yield Tensor(blk + "ssm_norm.weight", (s["state"],), "norm")
    yield Tensor(blk + "ssm_out.weight", (values, s["width"]), "attention", layer)


def experts(blk, s, layer, biased=False):
    yield Tensor(blk + "ffn_gate_inp.weight", (s["width"], s["experts"]), "router")
    if biased:
        yield Tensor(blk + "ffn_gate_inp.bias", (s["experts"],), "bias")
    for name, ins, outs, role in (("gate", s["width"], s["expert_width"], "experts"),
                                  ("up", s["width"], s["expert_width"], "experts"),
                                  ("down", s["expert_width"], s["width"], "down")):
        yield Tensor(f"{blk}ffn_{name}_exps.weight", (ins, outs, s["experts"]), role, layer)
        if biased:
            yield Tensor(f"{blk}ffn_{name}_exps.bias", (outs, s["experts"]), "bias")


def shared_expert(blk, s, layer):
    yield Tensor(blk + "ffn_gate_inp_shexp.weight", (s["width"], 1), "router")
    yield Tensor(blk + "ffn_gate_shexp.weight", (s["width"], s["shared_width"]), "attention", layer)
    yield Tensor(blk + "ffn_up_shexp.weight", (s["width"], s["shared_width"]), "attention", layer)
    yield Tensor(blk + "ffn_down_shexp.weight", (s["shared_width"], s["width"]), "down", layer)


def llama_layer(blk, s, layer):
    yield from attention(blk, s, layer)
    yield Tensor(blk + "ffn_norm.weight", (s["width"],), "norm")
    yield Tensor(blk + "ffn_gate.weight", (s["width"], s["dense_width"]), "attention", layer)
    yield Tensor(blk + "ffn_up.weight", (s["width"], s["dense_width"]), "attention", layer)
    yield Tensor(blk + "ffn_down.weight", (s["dense_width"], s["width"]), "down", layer)


def qwen3moe_layer(blk, s, layer):
    yield from attention(blk, s, layer)
    yield from head_norms(blk, s)
    yield Tensor(blk + "ffn_norm.weight", (s["width"],), "norm")
    yield from experts(blk, s, layer)


def qwen35moe_layer(blk, s, layer):
    if layer < s["layers"] and (layer + 1) % s["interval"]:
        yield from delta_net(blk, s, layer)
    else:
        yield from attention(blk, s, layer, gated=True)
        yield from head_norms(blk, s)
    yield Tensor(blk + "post_attention_norm.weight", (s["width"],), "norm")
    yield from experts(blk, s, layer)
    yield from shared_expert(blk, s, layer)
    if layer == s["layers"]:
        yield Tensor(blk + "nextn.eh_proj.weight", (2 * s["width"], s["width"]), "attention", layer)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            yield Tensor(f"{blk}nextn.{name}.weight", (s["width"],), "norm")


def gpt_oss_layer(blk, s, layer):
    yield from attention(blk, s, layer, biased=True)
    yield Tensor(blk + "attn_sinks.weight", (s["heads"],), "bias")
    yield Tensor(blk + "post_attention_norm.weight", (s["width"],), "norm")
    yield from experts(blk, s, layer, biased=True)


def llama_keys(s):
    return {"feed_forward_length": s["dense_width"], "rope.dimension_count": s["rotated"], "vocab_size": s["vocab"]}


def qwen3moe_keys(s):
    return {"feed_forward_length": s["dense_width"]}


def qwen35moe_keys(s):
    pairs = s["rotated"] // 2
    keys = {
        "rope.dimension_count": s["rotated"],
        "rope.dimension_sections": [(pairs + 2) // 3, (pairs + 1) // 3, pairs // 3, 0],
        "expert_shared_feed_forward_length": s["shared_width"], "full_attention_interval": s["interval"],
        "attention.recurrent_layers": [i < s["layers"] and (i + 1) % s["interval"] != 0 for i in range(s["blocks"])],
        "ssm.conv_kernel": s["kernel"], "ssm.state_size": s["state"], "ssm.group_count": s["key_heads"],
        "ssm.time_step_rank": s["value_heads"], "ssm.inner_size": s["value_heads"] * s["state"]}
    return keys | ({"nextn_predict_layers": 1} if s["blocks"] > s["layers"] else {})


def gpt_oss_keys(s):
    return {
        "feed_forward_length": s["expert_width"], "attention.sliding_window": s["window"], "rope.scaling.type": "yarn",
        "rope.scaling.factor": 32.0, "rope.scaling.original_context_length": 4096}


# arch: (tensors of a layer, keys, name of the pre-tokenizer)
ARCHES = {
    "llama": (llama_layer, llama_keys, "llama-bpe"),
    "qwen3moe": (qwen3moe_layer, qwen3moe_keys, "qwen2"), "qwen35moe": (qwen35moe_layer, qwen35moe_keys, "qwen35"),
    "gpt-oss": (gpt_oss_layer, gpt_oss_keys, "gpt-4o"),
}


def tensors(s):
    yield Tensor("token_embd.weight", (s["width"], s["vocab"]), "embed")
    yield Tensor("output_norm.weight", (s["width"],), "norm")
    yield Tensor("output.weight", (s["width"], s["vocab"]), "output")
    for layer in range(s["blocks"]):
        yield from ARCHES[s["arch"]][0](f"blk.{layer}.", s, layer)


def has_more_bits(layer, count):
    """In which layers a mixture keeps values and down projections at more bits."""
    return layer < count // 8 or layer >= 7 * count // 8 or (layer - count // 8) % 3 == 2


def format_of(tensor, s):
    """Which format the tensor has in a file of this type."""
    if tensor.role in (*IN_FLOAT, "router"):
        return "f32"
    name = MIXTURES.get(s["type"], (s["type"], 0))[0]
    if s["type"] == "q4_K_M" and (tensor.role == "output" or tensor.role in ("values", "down")
                                  and has_more_bits(tensor.layer, s["layers"])):
        name = "q6_K"
    if s["type"] == "mxfp4" and not tensor.name.endswith("_exps.weight"):
        name = "q8_0"
    if tensor.dims[0] % FORMATS[name].values:
        name = FALLBACKS.get(name, "f16")
    if tensor.dims[0] % FORMATS[name].values:
        raise SystemExit(f"make_shape: {tensor.name}: a row of {tensor.dims[0]} is not whole blocks of {name}")
    return name


def size_of(tensor, s):
    layout = FORMATS[format_of(tensor, s)]
    return math.prod(tensor.dims) // layout.values * layout.size


class Pools:
    """Stretches of random blocks, one pool for each format and row length."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pools = {}

    def floats(self, name, count, deviation):
        values = array.array("f", (self.random.gauss(0.0, deviation) for _ in range(count)))
        if name == "f16":
            return struct.pack(f"<{count}e", *values)
        if sys.byteorder == "big":
            values.byteswap()
        whole = values.tobytes()
        if name == "f32":
            return whole
        half = bytearray(2 * count)
        half[0::2], half[1::2] = whole[2::4], whole[3::4]
        return bytes(half)

    def blocks(self, name, deviation):
        layout = FORMATS[name]
        if layout.values == 1:
            return self.floats(name, POOL_BLOCKS, deviation)
        pool = bytearray(self.random.randbytes(POOL_BLOCKS * layout.size))
        spread = [0.75 + 0.5 * self.random.random() for _ in range(POOL_BLOCKS)]
        for offset, scale in layout.scales:
            halves = struct.pack(f"<{POOL_BLOCKS}e", *(scale * deviation * share for share in spread))
            pool[offset::layout.size], pool[offset + 1::layout.size] = halves[0::2], halves[1::2]
        if name == "mxfp4":
            exponent = 127 + math.floor(math.log2(deviation / MXFP4_ROOT_MEAN_SQUARE))
            pool[0::layout.size] = bytes(exponent + (share > 1) for share in spread)
        return bytes(pool)

    def pool(self, name, row):
        if (name, row) not in self.pools:
            pool = self.blocks(name, 1 / math.sqrt(row))
            self.pools[name, row] = (len(pool), memoryview(pool * (STRETCH // len(pool) + 2)))
        return self.pools[name, row]

    def write(self, out, name, row, size):
        """Blocks from a random place of the pool on, again and again."""
        period, repeated = self.pool(name, row)
        at = self.random.randrange(POOL_BLOCKS) * FORMATS[name].size
        while size:
            length = min(size, STRETCH)
            out.write(repeated[at:at + length])
            at, size = (at + length) % period, size - length


def small_values(tensor, pools):
    """What is not a matrix: near 1 for norms; decays from hardly any to strong, as trained heads have them."""
    count = math.prod(tensor.dims)
    draw = pools.random
    values = {
        "norm": lambda: 1 + draw.gauss(0, 0.02), "bias": lambda: draw.gauss(0, 0.1),
        "decay": lambda: -math.exp(draw.uniform(-4, 1)), "conv": lambda: draw.gauss(0, 0.5),
    }[tensor.role]
    return struct.pack(f"<{count}f", *(values() for _ in range(count)))


def byte_letters():
    """The 256 characters that stand for bytes in a byte-level vocabulary."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) for byte in shown] + [chr(256 + i) for i in range(len(hidden))]


def vocabulary(count):
    """Bytes, pairs of them, pairs and a byte; at the end an end of text. Each merge makes a token of two there are."""
    letters = byte_letters()
    tokens, merges = list(letters), []
    for left in (letters, [a + b for a in letters for b in letters]):
        for a in left:
            for b in letters:
                if len(tokens) == count - 1:
                    return tokens + ["<|endoftext|>"], merges
                tokens.append(a + b)
                merges.append(f"{a} {b}")
    raise SystemExit(f"make_shape: no vocabulary of {count} tokens")


def encode_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


SCALARS = {bool: (7, lambda v: struct.pack("<B", v)), int: (4, lambda v: struct.pack("<I", v)),
           float: (6, lambda v: struct.pack("<f", v)), str: (8, encode_string)}


def encode_key(name, value):
    if isinstance(value, list):
        code, encode = SCALARS[type(value[0])]
        if code == 4:
            code, encode = 5, lambda v: struct.pack("<i", v)
        return (encode_string(name) + struct.pack("<IIQ", 9, code, len(value)) + b"".join(map(encode, value)))
    code, encode = SCALARS[type(value)]
    return encode_string(name) + struct.pack("<I", code) + encode(value)


def keys(s, title):
    arch = s["arch"]
    own = {
        "block_count": s["blocks"], "context_length": s["context"], "embedding_length": s["width"],
        "attention.head_count": s["heads"], "attention.head_count_kv": s["kv_heads"],
        "attention.key_length": s["head"], "attention.value_length": s["head"],
        "attention.layer_norm_rms_epsilon": s["epsilon"], "rope.freq_base": s["theta"],
        **ARCHES[arch][1](s)}
    if "experts" in s:
        own |= {"expert_count": s["experts"], "expert_used_count": s["used"],
                "expert_feed_forward_length": s["expert_width"]}
    tokens, merges = vocabulary(s["vocab"])
    last = len(tokens) - 1
    file_type = MIXTURES[s["type"]][1] if s["type"] in MIXTURES else FILE_TYPES[s["type"]]
    return {
        "general.architecture": arch, "general.name": title, "general.file_type": file_type,
        "general.quantization_version": 2, "general.alignment": ALIGNMENT,
        **{f"{arch}.{name}": value for name, value in own.items()},
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": ARCHES[arch][2], "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * last + [3], "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": last, "tokenizer.ggml.padding_token_id": last,
        "tokenizer.ggml.add_bos_token": False}


def padding(size):
    return -size % ALIGNMENT


def header(s, title, made):
    found = keys(s, title)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(made), len(found))
    head += b"".join(encode_key(name, value) for name, value in found.items())
    offset = 0
    for tensor in made:
        head += encode_string(tensor.name) + struct.pack("<I", len(tensor.dims))
        head += struct.pack(f"<{len(tensor.dims)}Q", *tensor.dims)
        head += struct.pack("<IQ", FORMATS[format_of(tensor, s)].code, offset)
        size = size_of(tensor, s)
        offset += size + padding(size)
    return head + bytes(padding(len(head)))


def write(path, s, title, seed):
    made = list(tensors(s))
    pools = Pools(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    with scratch.open("wb") as out:
        out.write(header(s, title, made))
        for tensor in made:
            size = size_of(tensor, s)
            if tensor.role in IN_FLOAT:
                out.write(small_values(tensor, pools))
            else:
                pools.write(out, format_of(tensor, s), tensor.dims[0], size)
            out.write(bytes(padding(size)))
    scratch.replace(path)
    weights = sum(math.prod(tensor.dims) for tensor in made)
    print(f"{path}: {len(made)} tensors, {weights / 1e9:.2f} G weights, {path.stat().st_size / 1e9:.2f} GB")


def number(text):
    return float(text) if "." in text or "e" in text else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", choices=list(PRESETS))
    parser.add_argument("--type", choices=[*FORMATS, *(mix for mix in MIXTURES if mix not in FORMATS)])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocab", type=int)
    parser.add_argument("--mtp", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    s = PRESETS[args.preset] | {"layers": args.layers, "blocks": args.layers + args.mtp}
    s |= {name: value for name, value in (("type", args.type), ("vocab", args.vocab)) if value}
    for change in args.set:
        name, _, value = change.partition("=")
        if type(s.get(name)) not in (int, float):
            parser.error(f"{args.preset} has no number {name!r}")
        s[name] = number(value)
    if args.mtp and s["arch"] != "qwen35moe":
        parser.error(f"{args.preset} has no such block")
    title = f"{args.preset}-{s['type']}-L{args.layers}"
    write(args.out or cache_dir() / "shapes" / f"{title}.gguf", s, title, args.seed)


if __name__ == "__main__":
    main()
