#!/usr/bin/env python3
"""Makes a tiny random model of each architecture: a Hugging Face folder, and GGUF files written from it by the field's
converter, in F32 and BF16.

usage: make_tiny.py [NAME ...] [--out DIR]      default: all of them, in <cache>/tiny
DIR/NAME/ is the folder, DIR/tiny-NAME-f32.gguf and DIR/tiny-NAME-bf16.gguf the files. Needs the peer's source
(build_peer.sh).
"""
import argparse
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer

import english_text
from fetch_models import cache_dir

VOCAB = 512
WINDOW = 64  # shorter than the prompts of the checks, so that the window cuts
SHAPE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=False,
             bos_token_id=0, eos_token_id=0, pad_token_id=None)
GEMMA = SHAPE | dict(num_attention_heads=2, num_key_value_heads=1, head_dim=48, query_pre_attn_scalar=48,
                     sliding_window=WINDOW, rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=2,
                     eos_token_id=1, pad_token_id=0)


def rope(kind="default", theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def yarn(theta=10000.0):
    return rope("yarn", theta, factor=4.0, original_max_position_embeddings=128)


def gemma3_rope(**full):
    return {"full_attention": rope(theta=1e6) | full, "sliding_attention": rope()}


# name: (model class, configuration, GGUF keys to add to what the converter writes, or to drop when the value is None)
MODELS = {
    "llama": ("Llama", SHAPE | dict(num_hidden_layers=3), {}),
    "llama-tied": ("Llama", SHAPE | dict(tie_word_embeddings=True, head_dim=24, num_key_value_heads=1), {}),
    "llama-rope3": ("Llama", SHAPE | dict(rope_parameters=rope(
        "llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=128)), {}),
    "llama-linear": ("Llama", SHAPE | dict(rope_parameters=rope("linear", factor=4.0)), {}),
    "llama-yarn": ("Llama", SHAPE | dict(rope_parameters=yarn(), head_dim=32), {}),
    "llama-bias": ("Llama", SHAPE | dict(attention_bias=True, mlp_bias=True, hidden_size=72,
                                         intermediate_size=100, num_attention_heads=3, num_key_value_heads=3), {}),
    "mistral": ("Mistral", SHAPE | dict(sliding_window=WINDOW, rope_parameters=rope(theta=1e6)),
                {"llama.attention.sliding_window": WINDOW}),
    # More rows than the tokenizer has tokens, as published files have.
    "qwen2": ("Qwen2", SHAPE | dict(vocab_size=VOCAB + 24, hidden_size=80, intermediate_size=112,
                                    num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True,
                                    rms_norm_eps=1e-6, rope_parameters=rope(theta=1e6)), {}),
    "qwen3": ("Qwen3", SHAPE | dict(head_dim=32, rms_norm_eps=1e-6, rope_parameters=rope(theta=1e6)), {}),
    "qwen3-yarn": ("Qwen3", SHAPE | dict(head_dim=32, tie_word_embeddings=True, rope_parameters=yarn(1e6)), {}),
    "gemma2": ("Gemma2", GEMMA | dict(num_hidden_layers=4, num_key_value_heads=2, attn_logit_softcapping=50.0,
                                      final_logit_softcapping=30.0), {}),
    # Older files lack the key, whose default is what this model has.
    "gemma3": ("Gemma3", GEMMA | dict(num_hidden_layers=7, rope_parameters=gemma3_rope()),
               {"gemma3.rope.freq_base_swa": None}),
    "gemma3-linear": ("Gemma3", GEMMA | dict(num_hidden_layers=7, num_attention_heads=4, num_key_value_heads=2,
                                             head_dim=16, query_pre_attn_scalar=16, final_logit_softcapping=20.0,
                                             rope_parameters=gemma3_rope(rope_type="linear", factor=8.0)), {}),
    "gpt2": ("GPT2", dict(vocab_size=VOCAB, n_positions=320, n_ctx=320, n_embd=64, n_layer=2, n_head=4,
                          bos_token_id=0, eos_token_id=0), {}),
}
CONFIGS = {"Gemma3": "Gemma3TextConfig"}
HEADS = {"GPT2": "GPT2LMHeadModel"}


@torch.no_grad()
def randomize(model, family):
    """Weights far from their initial values: every norm weight, bias and head must matter, and attention be peaked."""
    generator = torch.Generator().manual_seed(20)

    def uniform(p, low, high):
        p.copy_(torch.rand(p.shape, generator=generator) * (high - low) + low)

    def normal(p, deviation):
        p.copy_(torch.randn(p.shape, generator=generator) * deviation)

    for name, p in model.named_parameters():
        if name.endswith("bias"):
            normal(p, 0.3)
        elif p.dim() == 1:  # gemma multiplies by 1 + w
            uniform(p, *((-0.5, 0.5) if family.startswith("Gemma") else (0.5, 1.5)))
        elif "embed" in name or "wte" in name:
            normal(p, 0.3)
        elif "wpe" in name:
            normal(p, 0.2)
        else:
            fan_in = p.shape[0] if family == "GPT2" and name != "lm_head.weight" else p.shape[1]
            normal(p, 1.4 / fan_in ** 0.5)


def make_model(name, folder):
    family, shape, _ = MODELS[name]
    config = getattr(transformers, CONFIGS.get(family, f"{family}Config"))(**shape)
    model = getattr(transformers, HEADS.get(family, f"{family}ForCausalLM"))(config)
    randomize(model, family)
    model.save_pretrained(folder)


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


class Converter:
    """The field's converter, told which pre-tokenizer our own small vocabulary has instead of guessing by its hash."""

    def __init__(self, pre="gpt-2"):
        sys.path.insert(0, str(peer_source()))
        import convert_hf_to_gguf
        from conversion.base import TextModel
        TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
        self.convert = convert_hf_to_gguf.main
        logging.disable(logging.INFO)
        os.environ["TQDM_DISABLE"] = "1"

    def __call__(self, folder, outfile, outtype):
        argv, sys.argv = sys.argv, ["convert", str(folder), "--outfile", str(outfile), "--outtype", outtype]
        try:
            self.convert()
        finally:
            sys.argv = argv


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
        make_tokenizer(folder, MODELS[name][0], text)
        for outtype in ("f32", "bf16"):
            path = gguf_path(out, name, outtype)
            convert(folder, path, outtype)
            if MODELS[name][2]:
                edit_keys(path, MODELS[name][2])
            print(f"{path} {path.stat().st_size}")


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
