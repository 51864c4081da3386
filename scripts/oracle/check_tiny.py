#!/usr/bin/env python3
"""Compares Hearth's logits with transformers' (float32) on the tiny model of each architecture, at every position of a
300-token prompt, in F32 and BF16, with KV in float32. Fails where max |difference| / max |logit| is over 2e-4. Models
with experts or recurrent layers have 600 tokens and 5e-4; files with MXFP4 experts 1e-2, against a reference whose
activations are rounded to int8 where they meet quantized weights.

usage: check_tiny.py [NAME ...] [--hearth PROGRAM] [--dir DIR] [--trained FOLDER ...]
Makes the tiny models when they are not in DIR. --trained adds a folder that holds a Hugging Face model and GGUF files
in BF16. "margin" is the smallest distance in any choice of a router, in parts of the largest router logit. Where the
first position over the limit is one at which a router chose by less than 1e-5, it and what follows are left out, and a
line says so.
"""
import argparse
import sys
from pathlib import Path

import environment  # says what to run where the packages below are missing

import numpy as np

import common
import gguf_hf
import int8_activations
import make_tiny
import router_margins
from fetch_models import cache_dir

ROOT = Path(__file__).resolve().parent.parent.parent


def cases(args):
    """(title, HF folder, GGUF file)"""
    names = args.names or list(make_tiny.MODELS)
    for name in names:
        for dtype in ("f32", "bf16"):
            yield name, args.dir / name, make_tiny.gguf_path(args.dir, name, dtype)
    for folder in args.trained:
        for path in sorted(folder.glob("*-bf16.gguf")):
            yield f"{folder.name} (trained)", folder, path


def tie_at(by_position, limit, margins):
    """(position, layer, margin) of the router tie that is shown to be why values differ from there on, or None."""
    over = np.flatnonzero(by_position > limit)
    if over.size == 0 or len(margins) == 0:
        return None
    margin, layer, position = router_margins.closest(margins, over[:1])
    return (position, layer, margin) if margin < router_margins.TIE else None


def check(args, folder, path):
    """(verdict, what to print)"""
    config = gguf_hf.AutoConfig.from_pretrained(folder)
    tokens = common.prompt(config)
    limit = common.limit(config, int8_activations.is_quantized(gguf_hf.Gguf(path)))
    reference, margins = router_margins.logits_and_margins(gguf_hf.load_reference(path, folder), tokens)
    rows = common.hearth_logits(args.hearth, path, tokens, "--kv", "f32", *args.option)
    by_position = common.difference(reference, rows)
    closest = router_margins.closest(margins)
    same_top = np.mean(reference.argmax(1) == rows.argmax(1))
    tie = tie_at(by_position, limit, margins)
    left = by_position[:tie[0]] if tie else by_position
    worst = int(left.argmax()) if left.size else 0
    good = left.size > 0 and left[worst] <= limit
    text = f"{by_position[worst]:13.2e} {worst:4} {100 * same_top:7.1f}% {f'{closest[0]:.1e}' if closest else '-':>8}"
    if tie:
        text += f" (router tie at position {tie[0]}, layer {tie[1]}: margin {tie[2]:.1e}; compared before it)"
    return good, text


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
    print(f"{'model':20} {'file':30} {'max|d|/max|l|':>13} {'at':>4} {'same top':>8} {'margin':>8}")
    for title, folder, path in cases(args):
        try:
            good, text = check(args, folder, path)
        except (RuntimeError, OSError) as error:
            good, text = False, f": {error}"
        print(f"{title:20} {path.name:30} {text} {'ok' if good else 'FAILED'}", flush=True)
        failed += not good
    print(f"{failed} failed" if failed else "all within their limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
