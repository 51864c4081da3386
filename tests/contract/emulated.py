#!/usr/bin/env python3
"""The program on emulated processors. On one with AVX2 and no more it must choose the avx2 kernels and give this
machine's bits; on one without AVX it must read files and refuse to open an engine by name. An instruction that the
processor lacks would end the program.

usage: emulated.py HEARTH-PROGRAM MODEL     exit status 77: no qemu-x86_64 here
"""
import shutil
import subprocess
import sys
import tempfile

from same_bits import Program, prompt

LENGTH = 70  # more than one KV block; an emulator is slow


def emulated(emulator, processor, hearth):
    return [emulator, "-cpu", processor, hearth]


def run_on(program, model, options, processor, expected):
    """A processor with AVX2 and without AVX-512."""
    data, report = program.logits(model, *options)
    program.expect(report["kernels"] == "avx2", f"{processor}: {report['kernels']} ran, not avx2")
    program.expect(data == expected, f"{processor}: the bits")
    refused = program.call(model, *options, "--cpu-mask", "avx512")
    program.expect(refused.returncode == 1 and "avx512" in refused.stderr, f"{processor}: avx512 is not refused")


def refuse_on(program, model, options, processor):
    """A processor without AVX."""
    refused = program.call(model, *options)
    program.expect(refused.returncode == 1 and "AVX2" in refused.stderr, f"{processor}: {refused.stderr}")
    inspected = subprocess.run([*program.command, "inspect", "-m", model, "--json"], capture_output=True, text=True,
                               check=False)
    program.expect(inspected.returncode == 0, f"{processor}: inspect: {inspected.stderr}")


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
        for processor in ("Haswell",):
            program = Program(emulated(emulator, processor, hearth), scratch)
            run_on(program, model, options, processor, expected)
            failures += program.failures
        program = Program(emulated(emulator, "Nehalem", hearth), scratch)
        refuse_on(program, model, options, "Nehalem")
        failures += program.failures
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
