"""MXFP4 as Hugging Face checkpoints pack it: blocks of 32 values of a row with one power of two as scale.

Byte j of a block holds value 2j in its low and 2j + 1 in its high half; the scale s is stored as s + 127.
"""
import torch

VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
BLOCK = 32


def pack(weight):
    """(blocks uint8 [..., n/32, 16], scales uint8 [..., n/32]) of float rows of n values, each to the nearest."""
    rows = weight.reshape(*weight.shape[:-1], -1, BLOCK)
    exponent = torch.floor(torch.log2(rows.abs().amax(-1))).clamp(-120, 120) - 2  # the largest value is 6 = 1.5 * 2^2
    scaled = rows / torch.exp2(exponent)[..., None]
    codes = (scaled[..., None] - VALUES).abs().argmin(-1).to(torch.uint8)
    return codes[..., ::2] | codes[..., 1::2] << 4, (exponent + 127).to(torch.uint8)


def unpack(blocks, scales):
    codes = torch.stack([blocks & 15, blocks >> 4], -1).flatten(-2).int()
    rows = VALUES[codes] * torch.exp2(scales.float() - 127)[..., None]
    return rows.flatten(-2)
