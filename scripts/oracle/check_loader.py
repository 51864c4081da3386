#!/usr/bin/env python3
"""Holds gguf_hf.py against the folders that GGUF files were made from: the logits of a file's model, configured by the
folder and by the file's own metadata, must be the folder's bit for bit (its weights rounded where the file rounds).

usage: check_loader.py [NAME ...] [--dir DIR] [--trained FOLDER ...]
"""
import argparse
import sys
from pathlib import Path

import environment  # says what to run where the packages below are missing

import numpy as np
import torch

import common
import gguf_hf
import make_tiny
from fetch_models import cache_dir

TOKENS = 100  # beyond a chunk of the chunked form of Gated DeltaNet


def rounded_folder(folder, path):
    """The folder's model; in BF16 where the file says so for the matrix. A file of other types cannot be told so."""
    file = gguf_hf.Gguf(path)
    model = gguf_hf.load_folder(folder)
    exact = {"F32", "MXFP4"}  # experts of the folder lie on MXFP4's grid where the file packs them
    types = {t.tensor_type.name for t in file.tensors.values()}
    if types - exact == {"BF16"}:
        with torch.no_grad():
            for name, weight in gguf_hf.state_dict(file).items():
                own = model.state_dict()[name]
                if not torch.equal(weight, own) and torch.equal(weight, own.bfloat16().float()):
                    own.copy_(weight)
    elif types - exact:
        raise RuntimeError(f"has {', '.join(sorted(types - exact))}")
    return model


def cases(args):
    for name in args.names or list(make_tiny.MODELS):
        for dtype in ("f32", "bf16"):
            yield args.dir / name, make_tiny.gguf_path(args.dir, name, dtype)
    for folder in args.trained:
        for path in sorted(folder.glob("*-bf16.gguf")):
            yield folder, path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--dir", type=Path, default=cache_dir() / "tiny")
    parser.add_argument("--trained", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    make_tiny.make_missing(args.names or make_tiny.MODELS, args.dir)
    failed = 0
    for folder, path in cases(args):
        model = rounded_folder(folder, path)
        tokens = common.random_prompt(model.config.vocab_size, length=TOKENS)
        reference = gguf_hf.logits(model, tokens)
        for what, config in (("folder's configuration", folder), ("its own metadata", None)):
            rows = gguf_hf.logits(gguf_hf.load_gguf(path, config), tokens)
            same = np.array_equal(reference, rows)
            failed += not same
            worst = "" if same else f", {common.difference(reference, rows).max():.2e} of max |logit|"
            print(f"{'ok    ' if same else 'FAILED'} {path.name}, {what}{worst}", flush=True)
    print(f"{failed} failed" if failed else "all equal, bit for bit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
