#!/usr/bin/env python3
"""Compares Hearth's logits with transformers' (float32) on the tiny model of each architecture, at every position of a
300-token prompt, in F32 and BF16, with KV in float32. Fails where max |difference| / max |logit| is over 2e-4.

usage: check_tiny.py [NAME ...] [--hearth PROGRAM] [--dir DIR] [--trained FOLDER ...]
Makes the tiny models when they are not in DIR. --trained adds a folder that holds a Hugging Face model and GGUF files.
"""
import argparse
import sys
from pathlib import Path

import numpy as np

import common
import gguf_hf
import make_tiny
from fetch_models import cache_dir

ROOT = Path(__file__).resolve().parent.parent.parent


def cases(args):
    """(title, HF folder, GGUF file)"""
    names = args.names or list(make_tiny.MODELS)
    for name in names:
        for dtype in ("f32", "bf16"):
            yield name, args.dir / name, make_tiny.gguf_path(args.dir, name, dtype)
    for folder in args.trained:
        for path in sorted(folder.glob("*.gguf")):
            yield f"{folder.name} (trained)", folder, path


def check(args, folder, path):
    tokens = common.random_prompt(gguf_hf.AutoConfig.from_pretrained(folder).vocab_size)
    # The folder's own weights when the file has them unrounded; else the file's.
    model = gguf_hf.load_folder(folder) if path.stem.endswith("f32") else gguf_hf.load_gguf(path, folder)
    reference = gguf_hf.logits(model, tokens)
    rows = common.hearth_logits(args.hearth, path, tokens, "--kv", "f32", *args.option)
    by_position = common.difference(reference, rows)
    same_top = float(np.mean(reference.argmax(1) == rows.argmax(1)))
    worst = int(by_position.argmax())
    return float(by_position[worst]), worst, same_top


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--hearth", type=Path, default=ROOT / "build/release/hearth")
    parser.add_argument("--dir", type=Path, default=cache_dir() / "tiny")
    parser.add_argument("--trained", type=Path, nargs="*", default=[])
    parser.add_argument("--option", action="append", default=[], help="one more word for hearth")
    args = parser.parse_args()
    make_tiny.make_missing(args.names or make_tiny.MODELS, args.dir)
    failed = 0
    print(f"{'model':20} {'file':24} {'max|d|/max|l|':>13} {'at':>4} {'same top':>8}")
    for title, folder, path in cases(args):
        try:
            worst, position, same_top = check(args, folder, path)
            verdict = "ok" if worst <= common.LIMIT else "FAILED"
            print(f"{title:20} {path.name:24} {worst:13.2e} {position:4} {100 * same_top:7.1f}% {verdict}", flush=True)
        except (RuntimeError, OSError) as error:
            verdict = "FAILED"
            print(f"{title:20} {path.name:24} {verdict}: {error}", flush=True)
        failed += verdict != "ok"
    print(f"{failed} failed (limit {common.LIMIT:g})" if failed else f"all within {common.LIMIT:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
