#!/usr/bin/env python3
"""The contract "same bits" through the command line: hearth logits writes identical bytes for any number of threads,
for any cuts of the prompt, beside other sessions, and on every instruction set of this machine, with F16 and F32 KV.

Every instruction set that the processor has must be the one that ran, and every other one is refused: a silent
downgrade would make the comparison prove nothing. The library's half of the contract is same_bits.c.

Shown red by: a last task that leaves out bias and sum when there are more than four threads; positions counted from the
start of the call; the last item's block table read for all sessions; a block's sum in the reference linear rounded
twice; --kv ignored.

usage: same_bits.py HEARTH-PROGRAM MODEL...
"""
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

# Above two KV blocks of 64 positions, and above the sliding windows of small models.
LENGTH = 150
CUTS = ("1", "64", "7,20", "63,64,65", "149", "1,2,3,4,5,6,7,8")
TIERS = {
    "avx2": {"avx2", "fma", "f16c", "bmi2"},
    "avxvnni": {"avx2", "fma", "f16c", "bmi2", "avx_vnni"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"},
}


def processor_flags():
    if platform.machine() != "x86_64":
        return set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


class Program:
    """Runs hearth logits, possibly under an emulator, and counts what differs."""

    def __init__(self, command, scratch):
        self.command, self.out = command, Path(scratch) / "logits"
        self.count = self.failures = 0

    def call(self, model, *options):
        self.out.unlink(missing_ok=True)
        command = [*self.command, "logits", "-m", str(model), "--out", str(self.out), "--json", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def logits(self, model, *options):
        """The bytes written and the report."""
        result = self.call(model, *options)
        if result.returncode:
            sys.exit(f"{Path(model).name} {' '.join(options)}: exit status {result.returncode}\n{result.stderr}")
        report, data = json.loads(result.stdout), self.out.read_bytes()
        rows, vocab = report["shape"]
        if len(data) != rows * vocab * 4 or not any(data):
            sys.exit(f"{Path(model).name} {' '.join(options)}: {len(data)} bytes for {rows} rows of {vocab}")
        return data, report

    def expect(self, condition, what):
        self.count += 1
        if not condition:
            self.failures += 1
            print(f"differs: {what}")


def prompt(program, model, length):
    """--tokens and ids from all over the vocabulary, the same on every run."""
    vocab = program.logits(model, "--tokens", "0")[1]["shape"][1]
    return "--tokens", ",".join(str((i * i * 31 + 7 * i + 5) % vocab) for i in range(length))


def compare_tiers(program, model, base, expected):
    flags = processor_flags()
    for tier, needs in {"ref": set(), **TIERS}.items():
        what = f"{model} {' '.join(base[2:])}: tier {tier}"
        options = (*base, "--cpu-mask", tier, "--threads", "2")
        if needs <= flags:
            data, report = program.logits(model, *options)
            program.expect(data == expected, what)
            program.expect(report["kernels"] == tier, f"{what}: {report['kernels']} ran")
        else:
            refused = program.call(model, *options)
            program.expect(refused.returncode == 1 and tier in refused.stderr, f"{what} is not refused by name")


def compare_model(program, model):
    tokens = prompt(program, model, LENGTH)
    by_kv = {}
    for kv in ("f16", "f32"):
        base = (*tokens, "--kv", kv)
        expected, report = program.logits(model, *base, "--threads", "1")
        by_kv[kv] = expected
        program.expect(report["threads"] == 1 and report["kv"] == kv, f"{model}: report {report}")
        variants = [("--threads", "2"), ("--threads", "5")]
        variants += [("--cuts", cuts, "--threads", "2") for cuts in CUTS]
        variants += [("--beside", "1", "--threads", "2"), ("--beside", "3", "--threads", "1"),
                     ("--beside", "2", "--cuts", "30,90", "--threads", "5"), ("--rows", "7", "--beside", "1")]
        for variant in variants:
            data, _ = program.logits(model, *base, *variant)
            program.expect(data == expected, f"{model} --kv {kv} {' '.join(variant)}")
        compare_tiers(program, model, base, expected)
    program.expect(by_kv["f16"] != by_kv["f32"], f"{model}: the same bits with F16 and F32 KV: one of them is not used")


def main(hearth, models):
    with tempfile.TemporaryDirectory() as scratch:
        program = Program([hearth], scratch)
        for model in models:
            compare_model(program, model)
    print(f"{len(models)} models, {program.count} comparisons, {program.failures} differ")
    return 1 if program.failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
