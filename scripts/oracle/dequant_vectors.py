#!/usr/bin/env python3
"""Write tests/data/dequant/*.bin: random blocks of every dtype that Hearth computes with, and the float32 values that
the `gguf` Python package gives for them. Needs the PyPI packages gguf and numpy.

    scripts/oracle/dequant_vectors.py OUTPUT_FOLDER [--blocks N] [--seed S]

A file is: u32 number of elements, the stored bytes, the float32 values; little-endian.
"""

import argparse
import pathlib
import struct

import environment  # says what to run where the packages below are missing

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

NAMES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4".split()


def expand(dtype, stored):
    """float32 values of one row of stored bytes."""
    if dtype == GGMLQuantizationType.F32:
        return stored.view(np.float32)
    if dtype == GGMLQuantizationType.F16:
        return stored.view(np.float16).astype(np.float32)
    return dequantize(stored.reshape(1, -1), dtype).reshape(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--blocks", type=int, default=12, help="quantized blocks a dtype")
    parser.add_argument("--seed", type=int, default=20240229)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        dtype = GGMLQuantizationType[name]
        block, size = GGML_QUANT_SIZES[dtype]
        blocks = args.blocks if block > 1 else args.blocks * 32
        stored = rng.integers(0, 256, blocks * size, dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = expand(dtype, stored).astype("<f4")
        assert values.size == blocks * block
        data = struct.pack("<I", values.size) + stored.tobytes() + values.tobytes()
        (args.output / f"{name}.bin").write_bytes(data)


if __name__ == "__main__":
    main()
