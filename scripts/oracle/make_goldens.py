#!/usr/bin/env python3
"""Writes the logit goldens of the test suite from transformers' float32 logits: tests/data/golden/NAME.json, and the
models themselves where they are small: tests/data/models/. Those of real models go into tests/data/golden/real.

usage: make_goldens.py [--tiny [NAME ...]] [--trained FOLDER ...] [--real [NAME ...]] [--data DIR]
--tiny makes those of the tiny models, --trained of folders that hold a Hugging Face model and a bf16 GGUF file, --real
of models that stay in the cache. A golden has, at each of 300 positions, the 32 largest logits with their ids, and
three whole rows (of a large vocabulary every 61st value); of models with experts or recurrent layers, at each of 600
positions the 16 largest. run_golden.py --record adds the bits of Hearth's own rows.
"""
import argparse
import base64
import json
import shutil
from pathlib import Path

import environment  # says what to run where the packages below are missing

import numpy as np
import torch
import transformers

import check_real
import common
import gguf_hf
import int8_activations
import make_tiny
import router_margins
from fetch_models import MODELS, cache_dir

ROOT = Path(__file__).resolve().parent.parent.parent
TOP, LONG_TOP = 32, 16
FULL_POSITIONS = (0, 137, -1)
LARGE_VOCAB, STRIDE = 8192, 61
# Both dtypes of one model of each architecture; of its variants, which share all kernels with it, the smaller file.
BOTH_DTYPES = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gpt2")
# In the cache only, to be checked with check_tiny.py: the suite's data is bounded.
LEFT_OUT = ("qwen35moe-mtp", "qwen3next-old")
# What int8 activations may cost on quantized weights, in parts of max |logit|; 0.025 to 0.028 was measured.
REAL_LIMIT = 0.04


def pack(values, dtype):
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def write_golden(path, model, tokens, logits, limit, top=TOP):
    values, ids = torch.topk(torch.from_numpy(logits), top, dim=1)
    stride = STRIDE if logits.shape[1] > LARGE_VOCAB else 1
    golden = {
        "model": model, "oracle": f"transformers {transformers.__version__}, torch {torch.__version__}, float32",
        "limit": limit, "max_abs": float(np.abs(logits).max()), "n_vocab": logits.shape[1], "tokens": list(tokens),
        "top_count": top, "top_ids": pack(ids.numpy(), "<u4"), "top_logits": pack(values.numpy(), "<f4"),
        "rows": [{"position": p % len(tokens), "stride": stride, "logits": pack(logits[p, ::stride], "<f4")}
                 for p in FULL_POSITIONS],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{path.name}: {path.stat().st_size} bytes")


def small(data, file, folder):
    """A golden of a file that goes into the test data with it."""
    config = gguf_hf.AutoConfig.from_pretrained(folder)
    tokens = common.prompt(config)
    rows, margins = router_margins.logits_and_margins(gguf_hf.load_reference(file, folder), tokens)
    closest = router_margins.closest(margins)
    if closest and closest[0] < router_margins.TIE:
        raise SystemExit(f"make_goldens: {file.name}: router tie at position {closest[2]}, layer {closest[1]}")
    limit = common.limit(config, int8_activations.is_quantized(gguf_hf.Gguf(file)))
    write_golden(data / "golden" / f"{file.stem}.json", file.name, tokens, rows, limit,
                 LONG_TOP if common.is_long(config) else TOP)
    (data / "models").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, data / "models" / file.name)


def tiny(data, names):
    source = cache_dir() / "tiny"
    make_tiny.make_missing(names, source)
    for name in names:
        for dtype in ("f32", "bf16") if name in BOTH_DTYPES else ("bf16",):
            small(data, make_tiny.gguf_path(source, name, dtype), source / name)


def real(data, name):
    file = cache_dir() / "models" / f"{name}.gguf"
    gguf = gguf_hf.Gguf(file)
    tokens = check_real.tokenize(file, check_real.text_prefix(4096))[:common.PROMPT_TOKENS]
    tokens = check_real.with_bos(tokens, check_real.bos_of(gguf))
    rows = gguf_hf.logits(gguf_hf.load_gguf(file), tokens)
    write_golden(data / "golden/real" / f"{name}.json", file.name, tokens, rows, REAL_LIMIT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", nargs="*", choices=list(make_tiny.MODELS), default=None, metavar="NAME")
    parser.add_argument("--trained", type=Path, nargs="*", default=[], metavar="FOLDER")
    parser.add_argument("--real", nargs="*", choices=list(MODELS), default=None, metavar="NAME")
    parser.add_argument("--data", type=Path, default=ROOT / "tests/data")
    args = parser.parse_args()
    if args.tiny is not None:
        tiny(args.data, args.tiny or [name for name in make_tiny.MODELS if name not in LEFT_OUT])
    for folder in args.trained:
        small(args.data, next(folder.glob("*-bf16.gguf")), folder)
    for name in MODELS if args.real == [] else args.real or []:
        real(args.data, name)


if __name__ == "__main__":
    main()
