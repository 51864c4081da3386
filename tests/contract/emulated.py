#!/usr/bin/env python3
"""The program on emulated processors: on one without AVX it must choose the reference kernels and run (an instruction
that the processor lacks ends it), on one with AVX2 and no more the avx2 kernels, and both give this machine's bits.

usage: emulated.py HEARTH-PROGRAM MODEL     exit status 77: no qemu-x86_64 here
"""
import shutil
import sys
import tempfile

from same_bits import Program, prompt

LENGTH = 70  # more than one KV block; an emulator is slow
PROCESSORS = {"Nehalem": "ref", "Haswell": "avx2", "max": "avx2"}


def main(hearth, model):
    emulator = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    if not emulator:
        print("skipped: no qemu-x86_64 (Debian: apt install qemu-user)", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        here = Program([hearth], scratch)
        options = (*prompt(here, model, LENGTH), "--threads", "2")
        expected, _ = here.logits(model, *options)
        failures = 0
        for processor, tier in PROCESSORS.items():
            there = Program([emulator, "-cpu", processor, hearth], scratch)
            data, report = there.logits(model, *options)
            there.expect(report["kernels"] == tier, f"{processor}: {report['kernels']} ran, not {tier}")
            there.expect(data == expected, f"{processor}: the bits")
            refused = there.call(model, *options, "--cpu-mask", "avx512")
            there.expect(refused.returncode == 1 and "avx512" in refused.stderr, f"{processor}: avx512 is not refused")
            failures += there.failures
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
