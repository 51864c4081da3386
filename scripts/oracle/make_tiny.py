#!/usr/bin/env python3
"""Makes a tiny random model of each architecture: a Hugging Face folder, and GGUF files written from it by the field's
converter, in F32 and BF16.

usage: make_tiny.py [NAME ...] [--out DIR]      default: all of them, in <cache>/tiny
DIR/NAME/ is the folder, DIR/tiny-NAME-f32.gguf and DIR/tiny-NAME-bf16.gguf the files (tiny_models.py lists them).
Needs the peer's source (build_peer.sh).
"""
import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import environment  # says what to run where the packages below are missing

import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import ByteLevelBPETokenizer

import english_text
import mxfp4
from fetch_models import cache_dir
from tiny_models import MODELS, VOCAB

CONFIGS = {"Gemma3": "Gemma3TextConfig", "Qwen3_5": "Qwen3_5TextConfig", "Qwen3_5Moe": "Qwen3_5MoeTextConfig"}
HEADS = {"GPT2": "GPT2LMHeadModel"}


ZERO_CENTRED = ("Gemma", "Qwen3_5", "Qwen3Next")  # norms multiply by 1 + w


def fan_in(family, name, p):
    transposed = family == "GPT2" and name != "lm_head.weight"
    if p.dim() == 3 and not name.endswith("conv1d.weight"):  # experts
        return p.shape[1 if family == "GptOss" else 2]
    if name.endswith("conv1d.weight"):
        return p.shape[2]
    return p.shape[0 if transposed else 1]


@torch.no_grad()
def randomize(model, family):
    """Weights far from their initial values: every norm weight, bias and head must matter, attention be peaked, some
    heads of a recurrent layer remember long, and gpt-oss clamp about one value in six."""
    generator = torch.Generator().manual_seed(20)

    def uniform(p, low, high):
        p.copy_(torch.rand(p.shape, generator=generator) * (high - low) + low)

    def normal(p, deviation):
        p.copy_(torch.randn(p.shape, generator=generator) * deviation)

    for name, p in model.named_parameters():
        zero_centred = family.startswith(ZERO_CENTRED) and not name.endswith("linear_attn.norm.weight")
        if name.endswith("bias"):
            normal(p, 0.3)
        elif name.endswith("A_log"):
            uniform(p, -5.0, 0.5)
        elif name.endswith("sinks"):
            uniform(p, -1.0, 3.0)
        elif p.dim() == 1:
            uniform(p, *((-0.5, 0.5) if zero_centred else (0.5, 1.5)))
        elif "embed" in name or "wte" in name:
            normal(p, 0.3)
        elif "wpe" in name:
            normal(p, 0.2)
        elif family == "GptOss" and "experts" in name:
            normal(p, (0.2 if "down" in name else 5.0) / fan_in(family, name, p) ** 0.5)
        else:
            normal(p, 1.4 / fan_in(family, name, p) ** 0.5)


@torch.no_grad()
def round_experts(model):
    for name, p in model.named_parameters():
        if name.endswith(("gate_up_proj", "down_proj")):  # [experts, inputs, outputs]; blocks run along the inputs
            p.copy_(mxfp4.unpack(*mxfp4.pack(p.transpose(1, 2))).transpose(1, 2))


def make_model(name, folder):
    made = MODELS[name]
    config = getattr(transformers, CONFIGS.get(made.family, f"{made.family}Config"))(**made.shape)
    model = getattr(transformers, HEADS.get(made.family, f"{made.family}ForCausalLM"))(config)
    randomize(model, made.family)
    if made.mxfp4:
        round_experts(model)
    model.save_pretrained(folder)
    if made.mtp:
        edit_weights(folder, add_mtp_block)


def edit_weights(folder, edit):
    path = folder / "model.safetensors"
    save_file(edit(load_file(path)), path, metadata={"format": "pt"})


def add_mtp_block(weights):
    """A block as the one of the last layer with attention, and what feeds it. Who reads the file steps over it."""
    def upside_down(weight):
        return weight.flip(0).contiguous()

    layer = max((name.split(".self_attn.")[0] for name in weights if ".self_attn." in name),
                key=lambda prefix: int(prefix.split(".")[-1]))
    block = {name.replace(layer + ".", "mtp.layers.0."): upside_down(weight) for name, weight in weights.items()
             if name.startswith(layer + ".")}
    norm = weights["model.norm.weight"]
    width = norm.shape[0]
    block["mtp.fc.weight"] = upside_down(weights["model.embed_tokens.weight"][:width].repeat(1, 2))
    for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        block[f"mtp.{name}.weight"] = upside_down(norm)
    return weights | block


def pack_experts(weights):
    """Experts as published checkpoints hold them."""
    packed = {}
    for name, weight in weights.items():
        if name.endswith(("gate_up_proj", "down_proj")):
            packed[name + "_blocks"], packed[name + "_scales"] = mxfp4.pack(weight.transpose(1, 2))
        else:
            packed[name] = weight
    return packed


def packed_folder(folder, scratch):
    shutil.copytree(folder, scratch)
    edit_weights(scratch, pack_experts)
    config = json.loads((scratch / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (scratch / "config.json").write_text(json.dumps(config))
    return scratch


def make_bpe(folder, text):
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train([str(text)], vocab_size=VOCAB, min_frequency=2, special_tokens=["<|endoftext|>"],
                    show_progress=False)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, bos_token="<|endoftext|>",
                                         eos_token="<|endoftext|>").save_pretrained(folder)


def make_sentencepiece(folder, text):
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "tokenizer"), vocab_size=VOCAB, model_type="bpe",
        byte_fallback=True, add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="identity",
        pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
        character_coverage=1.0, hard_vocab_limit=True, num_threads=1, minloglevel=2)
    (folder / "tokenizer.vocab").unlink()


def make_tokenizer(folder, family, text):
    (make_sentencepiece if family.startswith("Gemma") else make_bpe)(folder, text)


def peer_source():
    script = Path(__file__).resolve().parent.parent / "build_peer.sh"
    source = sorted((cache_dir() / "peer").glob("llama_cpp_python-*/vendor/llama.cpp"))
    if not source:
        raise SystemExit(f"make_tiny: the converter is in the peer's source: run {script} first")
    return source[-1]


def forget_options(converter):
    """The converter's main sets an option on its class, where the next conversion would find it."""
    for subclass in converter.__subclasses__():
        if "no_mtp" in vars(subclass):
            del subclass.no_mtp
        forget_options(subclass)


class Converter:
    """The field's converter, told which pre-tokenizer our own small vocabulary has instead of guessing by its hash."""

    def __init__(self, pre="gpt-2"):
        sys.path.insert(0, str(peer_source()))
        import convert_hf_to_gguf
        from conversion.base import TextModel
        TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
        self.convert = convert_hf_to_gguf.main
        self.base = TextModel
        logging.disable(logging.INFO)
        os.environ["TQDM_DISABLE"] = "1"

    def __call__(self, folder, outfile, outtype, options=()):
        argv = sys.argv
        sys.argv = ["convert", str(folder), "--outfile", str(outfile), "--outtype", outtype, *options]
        try:
            self.convert()
        finally:
            sys.argv = argv
            forget_options(self.base)


def edit_keys(path, changes):
    """Rewrites the file with keys added (unsigned numbers) or dropped (None)."""
    import gguf
    from gguf.scripts.gguf_new_metadata import MetadataDetails, copy_with_new_metadata
    reader = gguf.GGUFReader(path)
    scratch = path.with_suffix(".new")
    writer = gguf.GGUFWriter(scratch, arch=reader.get_field("general.architecture").contents())
    added = {key: MetadataDetails(gguf.GGUFValueType.UINT32, value) for key, value in changes.items() if value}
    copy_with_new_metadata(reader, writer, added, [key for key, value in changes.items() if value is None])
    scratch.replace(path)


def gguf_path(out, name, dtype):
    return out / f"tiny-{name}-{dtype}.gguf"


def make(names, out):
    convert = Converter()
    text = english_text.ensure()
    for name in names:
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make_model(name, folder)
        make_tokenizer(folder, MODELS[name].family, text)
        with tempfile.TemporaryDirectory() as scratch:
            source = packed_folder(folder, Path(scratch) / name) if MODELS[name].mxfp4 else folder
            for outtype in ("f32", "bf16"):
                path = gguf_path(out, name, outtype)
                convert(source, path, outtype, MODELS[name].options)
                if MODELS[name].keys:
                    edit_keys(path, MODELS[name].keys)
                print(f"{path} {path.stat().st_size}", flush=True)


def make_missing(names, out):
    """In a process of its own: the converter brings a `gguf` package that is newer than the published one."""
    missing = [name for name in names if not gguf_path(out, name, "bf16").is_file()]
    if missing:
        subprocess.run([sys.executable, __file__, *missing, "--out", str(out)], check=True, stdout=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(MODELS))
    parser.add_argument("--out", type=Path, default=cache_dir() / "tiny")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in MODELS]
    if unknown:
        parser.error(f"unknown model {unknown[0]!r}; known: {' '.join(MODELS)}")
    make(args.names or list(MODELS), args.out)


if __name__ == "__main__":
    main()
