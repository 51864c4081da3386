#!/usr/bin/env python3
"""Holds Hearth against llama.cpp on quantized files of trained models, and against transformers on greedy text.

usage: check_quantized.py FOLDER [FOLDER ...] [--hearth PROGRAM] [--type TYPE ...] [--bytes N]
FOLDER holds a Hugging Face model and its GGUF file in BF16 (*-bf16.gguf). From it llama-quantize makes a file of each
TYPE (Q8_0), and both engines measure perplexity on the same English text in chunks of 256 tokens: within 0.5 %.
The BF16 file continues two prompts as transformers does, likeliest token after likeliest token, up to the first
position where the model itself hardly tells two tokens apart (a near-tie, which is printed).
"""
import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import environment  # says what to run where the packages below are missing

import numpy as np

import common
import gguf_hf
from check_real import ROOT, peer_tool, run, text_prefix

CTX, SHARE = 256, 0.005
GENERATED = 64
NEAR_TIE = 1e-3  # between the two likeliest, in parts of the largest logit
PROMPTS = ("And it came to pass in those days, that",
           "<|im_start|>user\nMy code word is lamp.<|im_end|>\n<|im_start|>assistant\n")


def perplexities(hearth, model, text):
    """(Hearth's, llama.cpp's)"""
    ours = json.loads(run([hearth, "eval", "-m", model, "-f", text, "--ctx", CTX, "--json"]).stdout)["perplexity"]
    done = run([peer_tool("llama-perplexity"), "-m", model, "-f", text, "-c", CTX, "-t", 1])
    return ours, float(re.search(r"Final estimate: PPL = ([\d.]+)", done.stdout + done.stderr).group(1))


def check_perplexity(args, bf16, kind, text):
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / f"{kind}.gguf"
        run([peer_tool("llama-quantize"), bf16, model, kind, 1])
        ours, peer = perplexities(args.hearth, model, text)
    share = ours / peer - 1
    good = abs(share) <= SHARE
    print(f"{bf16.parent.name} {kind}: perplexity {ours:.4f}, llama.cpp {peer:.4f}: {100 * share:+.3f} % "
          f"{'ok' if good else 'FAILED'}", flush=True)
    return good


def greedy(model, tokens):
    """Tokens that follow, and for each how far the second likeliest was behind, in parts of the largest logit."""
    tokens, margins = list(tokens), []
    for _ in range(GENERATED):
        row = gguf_hf.logits(model, tokens)[-1]
        second, first = np.sort(row)[-2:]
        margins.append((first - second) / np.abs(row).max())
        tokens.append(int(row.argmax()))
    return tokens, margins


def check_greedy(args, bf16, model, prompt):
    report = run([args.hearth, "tokenize", "-m", bf16, "-p", prompt, "--json"])
    start = json.loads(report.stdout)["ids"]
    tokens, margins = greedy(model, start)
    tie = next((i for i, margin in enumerate(margins) if margin < NEAR_TIE), GENERATED)
    rows = common.hearth_logits(args.hearth, bf16, tokens[:-1], "--kv", "f32")
    ours = rows[len(start) - 1:].argmax(axis=1)
    same = next((i for i in range(GENERATED) if ours[i] != tokens[len(start) + i]), GENERATED)
    good = same >= tie
    print(f"{bf16.parent.name} greedy: {same} of {GENERATED} tokens as transformers"
          + (f", near-tie at {tie}" if tie < GENERATED else "") + (" ok" if good else " FAILED"), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--hearth", type=Path, default=ROOT / "build/release/hearth")
    parser.add_argument("--type", nargs="+", default=["Q8_0"])
    parser.add_argument("--bytes", type=int, default=32768, help="how much of the text (default: %(default)s)")
    args = parser.parse_args()
    text, good = text_prefix(args.bytes), True
    for folder in args.folders:
        bf16 = next(iter(sorted(folder.glob("*-bf16.gguf"))), None)
        if bf16 is None:
            raise SystemExit(f"check_quantized: {folder} has no *-bf16.gguf")
        for kind in args.type:
            good &= check_perplexity(args, bf16, kind, text)
        model = gguf_hf.load_gguf(bf16, folder)
        for prompt in PROMPTS:
            good &= check_greedy(args, bf16, model, prompt)
    print("all within their limits" if good else "some FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
