#!/usr/bin/env python3
"""Reference logits: writes what transformers computes in float32 on the CPU, as raw little-endian float32 rows.

usage: logits.py MODEL --tokens 1,2,3 --out FILE [--config FOLDER]
MODEL is a Hugging Face folder or a GGUF file (dequantized); --config takes the configuration from a folder.
"""
import argparse
from pathlib import Path

import environment  # says what to run where the packages below are missing

import gguf_hf


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--config")
    args = parser.parse_args()
    model = gguf_hf.load_folder(args.model) if args.model.is_dir() else gguf_hf.load_gguf(args.model, args.config)
    rows = gguf_hf.logits(model, [int(t) for t in args.tokens.split(",")])
    rows.astype("<f4").tofile(args.out)
    print(f"{args.out}: {rows.shape[0]} rows x {rows.shape[1]}")


if __name__ == "__main__":
    main()
