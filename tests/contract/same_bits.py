#!/usr/bin/env python3
"""The contract "same bits" through the command line: hearth logits writes identical bytes for any number of threads,
for any cuts of the prompt, beside other sessions, and on every instruction set of this machine, with F16 and F32 KV.

Every instruction set that the processor claims must be accepted by name, and every other one refused: a silent
downgrade would make the comparison prove nothing. The library's half of the contract is same_bits.c.

usage: same_bits.py HEARTH-PROGRAM MODEL-FOLDER
"""
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

# Above three KV blocks of 64 positions, and above the sliding window of the tiny models.
LENGTH = 200
CUTS = ("1", "64", "7,20", "63,64,65", "199", "1,2,3,4,5,6,7,8", "100,150,199")
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


class Comparison:
    def __init__(self, program, folder):
        self.program, self.out = program, Path(folder) / "logits"
        self.failures = 0
        self.count = 0

    def call(self, model, *options):
        self.out.unlink(missing_ok=True)
        command = [self.program, "logits", "-m", str(model), "--out", str(self.out), "--json", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def logits(self, model, *options):
        result = self.call(model, *options)
        if result.returncode:
            sys.exit(f"{model.name} {' '.join(options)}: exit status {result.returncode}\n{result.stderr}")
        data = self.out.read_bytes()
        if len(data) < 4 or not any(data):
            sys.exit(f"{model.name} {' '.join(options)}: no logits")
        return data

    def expect(self, condition, what):
        self.count += 1
        if not condition:
            self.failures += 1
            print(f"differs: {what}")


def compare_model(compare, model, vocab):
    tokens = ",".join(str((i * i * 31 + 7 * i + 5) % vocab) for i in range(LENGTH))
    prompt = ("--tokens", tokens)
    flags = processor_flags()
    by_kv = {}
    for kv in ("f16", "f32"):
        base = (*prompt, "--kv", kv)
        expected = by_kv[kv] = compare.logits(model, *base, "--threads", "1")
        if len(expected) != LENGTH * vocab * 4:
            sys.exit(f"{model.name}: {len(expected)} bytes of logits, not {LENGTH} rows of {vocab}")
        for threads in ("2", "5"):
            compare.expect(compare.logits(model, *base, "--threads", threads) == expected,
                           f"{model.name} kv {kv}: {threads} threads")
        for cuts in CUTS:
            compare.expect(compare.logits(model, *base, "--cuts", cuts, "--threads", "2") == expected,
                           f"{model.name} kv {kv}: cuts {cuts}")
        for beside in ("1", "3"):
            compare.expect(compare.logits(model, *base, "--beside", beside, "--threads", "2") == expected,
                           f"{model.name} kv {kv}: beside {beside} sessions")
        compare.expect(compare.logits(model, *base, "--beside", "2", "--cuts", "30,90", "--threads", "5") == expected,
                       f"{model.name} kv {kv}: beside 2 sessions with cuts")
        compare.expect(compare.logits(model, *base, "--cpu-mask", "ref", "--threads", "2") == expected,
                       f"{model.name} kv {kv}: the reference kernels")
        for tier, needs in TIERS.items():
            options = (*base, "--cpu-mask", tier, "--threads", "2")
            if needs <= flags:
                compare.expect(compare.logits(model, *options) == expected, f"{model.name} kv {kv}: tier {tier}")
            else:
                refused = compare.call(model, *options)
                compare.expect(refused.returncode != 0 and tier in refused.stderr,
                               f"{model.name}: tier {tier} is not refused by name")
    compare.expect(by_kv["f16"] != by_kv["f32"], f"{model.name}: F16 and F32 KV give the same bits, so one is not used")


def vocab_of(program, model):
    """Rows of logits are as long as the output matrix has rows, which may be more than there are tokens."""
    command = [program, "inspect", "-m", str(model), "--json"]
    report = subprocess.run(command, capture_output=True, text=True, check=True)
    for tensor in json.loads(report.stdout)["tensors"]:
        if tensor["name"] == "token_embd.weight":
            return tensor["dims"][1]
    sys.exit(f"{model.name}: no token_embd.weight")


def main(program, folder):
    models = sorted(Path(folder).glob("*.gguf"))
    if not models:
        sys.exit(f"no models in {folder}")
    with tempfile.TemporaryDirectory() as scratch:
        compare = Comparison(program, scratch)
        for model in models:
            compare_model(compare, model, vocab_of(program, model))
    print(f"{len(models)} models, {compare.count} comparisons, {compare.failures} differ")
    return 1 if compare.failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
