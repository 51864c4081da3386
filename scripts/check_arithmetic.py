#!/usr/bin/env python3
"""Proves on a build's objects what docs/numerics.md says of the machine code:

  * the library calls no libm function but correctly rounded ones;
  * no estimate instruction and no 16-bit float arithmetic is in it;
  * only the objects of a kernel tier hold instructions of that tier, so a lesser machine never meets one;
  * every file was compiled without contraction and without fast-math.

usage: check_arithmetic.py [--build FOLDER] [--self-test]     FOLDER: build/release
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from checklib import ROOT

CC = os.environ.get("CC", "cc")

# Functions whose result IEEE 754 or the C standard fixes to the bit.
EXACT = {name + suffix for suffix in ("", "f") for name in """
    fma sqrt rint nearbyint floor ceil trunc round roundeven fabs fmin fmax fdim fmod remainder remquo copysign ldexp
    scalbn scalbln frexp modf nextafter nexttoward ilogb logb lrint llrint lround llround nan""".split()}
INTEGER_CLASSES = {"__fpclassify", "__fpclassifyf", "__isinf", "__isinff", "__isnan", "__isnanf", "__signbit",
                   "__signbitf", "__finite", "__finitef", "isinf", "isinff", "isnan", "isnanf", "finite", "finitef"}

INEXACT_INSTRUCTION = re.compile(
    r"v?(rcp|rsqrt)(14|28)?[ps][shd]|v(add|sub|mul|div|sqrt|min|max|fn?m(add|sub)\w*|rcp|rsqrt)[ps]h"
    r"|vdpbf16ps|vexp2p[sd]|vcvtneps2bf16|vcvtne2ps2bf16|tdp\w+")
# Not tzcnt, which a machine that lacks it runs as bsf.
BMI = re.compile(r"(andn|bextr|blsi|blsr|blsmsk|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|popcnt)[lq]?")
WIDE = re.compile(r"%zmm|%k[0-7]\b|%[xy]mm(1[6-9]|2\d|3[01])\b")
SSE3_ON = re.compile(r"(pabs[bwd]|pmaddubsw|pmulhrsw|pshufb|psign[bwd]|palignr|phadd\w+|phsub\w+|phminposuw"
                     r"|addsubp[sd]|haddp[sd]|hsubp[sd]|lddqu|movddup|movs[hl]dup|blend\w*|dpp[sd]|extractps|insertps"
                     r"|mpsadbw|packusdw|pblend\w+|pcmpeqq|pcmpgtq|pextr[bdq]|pinsr[bdq]|pm(ax|in)(sb|sd|ud|uw)"
                     r"|pmov[sz]x\w+|pmuldq|pmulld|ptest|round[ps][sd]|crc32\w*)")


def libm_names():
    path = subprocess.run([CC, "-print-file-name=libm.so.6"], capture_output=True, text=True,
                          check=True).stdout.strip()
    output = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", path], capture_output=True, text=True,
                            check=True).stdout
    return {line.split()[0].split("@")[0] for line in output.splitlines() if line}


def undefined(path):
    output = subprocess.run(["nm", "-u", "--format=posix", str(path)], capture_output=True, text=True,
                            check=True).stdout
    return {line.split()[0].split("@")[0] for line in output.splitlines() if line.split()}


def instructions(path):
    """(function, mnemonic, whole text) of each instruction."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        function = "?"
        for line in process.stdout:
            if line.endswith(">:\n"):
                function = line[line.index("<") + 1:-3]
            elif line.startswith(" ") and "\t" in line:
                text = line.split("\t", 1)[1].strip()
                words = [word for word in text.split() if not word.startswith("{")]
                if words:
                    yield function, words[0], text


def beyond(tier, mnemonic, text):
    """Whether an instruction needs more than the machine that a tier promises to run on."""
    if tier == "avx512":
        return False
    if tier in ("ref", "avx2", "avxvnni"):  # ref runs on machines with FMA, too
        return bool(WIDE.search(text)) or (mnemonic.startswith("vpdp") and tier != "avxvnni")
    return bool(re.match(r"v[a-z]", mnemonic) or BMI.fullmatch(mnemonic) or SSE3_ON.fullmatch(mnemonic))


def object_problems(objects, libm):
    problems = []
    for path in objects:
        library = next(part for part in path.parts if part.endswith(".dir"))[:-len(".dir")]
        name = f"{library}: {path.name}"
        for symbol in sorted(undefined(path) & libm - EXACT - INTEGER_CLASSES):
            problems.append(f"{name}: calls {symbol}, which is not correctly rounded")
        if platform.machine() != "x86_64":
            continue
        tier = library[len("hearth_cpu_"):] if library.startswith("hearth_cpu_") else "generic"
        seen = set()
        for function, mnemonic, text in instructions(path):
            why = None
            if INEXACT_INSTRUCTION.fullmatch(mnemonic):
                why = "an estimate or 16-bit arithmetic"
            elif beyond(tier, mnemonic, text):
                why = f"more than tier {tier} promises"
            if why and (function, why) not in seen:
                seen.add((function, why))
                problems.append(f"{name}: {function}: {mnemonic}: {why}")
    return problems


def flag_problems(build):
    problems = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        flags = entry["command"].split()
        for flag in ("-ffast-math", "-Ofast", "-march=native", "-mtune=native", "-funsafe-math-optimizations"):
            if flag in flags:
                problems.append(f"{entry['file']}: compiled with {flag}")
        if "-ffp-contract=off" not in flags:
            problems.append(f"{entry['file']}: compiled without -ffp-contract=off")
    return problems


def check(build):
    objects = sorted((build / "src/CMakeFiles").glob("hearth_*.dir/**/*.o"))
    if not objects:
        return [f"{build}: no objects; build it first"]
    return object_problems(objects, libm_names()) + flag_problems(build)


PLANTS = [
    ("hearth_base", "double log(double); double f(double x) { return log(x); }", [], "calls log,"),
    ("hearth_engine", "float expf(float); float f(float x) { return expf(x); }", [], "calls expf,"),
    ("hearth_program", "typedef float v8 __attribute__((vector_size(32))); void f(v8 *a) { *a += *a; }", ["-mavx"],
     "more than tier generic"),
    ("hearth_text", "int f(unsigned x) { return __builtin_popcount(x); }", ["-mpopcnt"], "more than tier generic"),
    ("hearth_cpu_avx2", "typedef float v __attribute__((vector_size(64))); void f(v *a) { *a += *a; }", ["-mavx512f"],
     "more than tier avx2"),
    ("hearth_models", "typedef char v __attribute__((vector_size(16)));\n"
     "v f(v a, v b) { return __builtin_ia32_pshufb128(a, b); }", ["-mssse3"], "more than tier generic"),
    ("hearth_cpu_generic", "int f(int a, int b) { return ~a & b; }", ["-mbmi"],
     "more than tier generic"),
    ("hearth_cpu_ref", "#include <xmmintrin.h>\n__m128 f(__m128 x) { return _mm_rsqrt_ps(x); }", [], "an estimate"),
    ("hearth_cpu_avx512", "#include <immintrin.h>\n__m512 f(__m512 x) { return _mm512_rcp14_ps(x); }", ["-mavx512f"],
     "an estimate"),
    ("hearth_gguf", "int planted;", ["-ffast-math"], "compiled with -ffast-math"),
    ("hearth_gguf", "int planted;", [], "compiled without -ffp-contract=off"),
]


def self_test():
    missed = 0
    for library, source, options, expected in PLANTS:
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            where = build / "src/CMakeFiles" / f"{library}.dir"
            where.mkdir(parents=True)
            (where / "planted.c").write_text(source + "\n")
            command = [CC, "-O1", *options, "-c", str(where / "planted.c"), "-o", str(where / "planted.c.o")]
            subprocess.run(command, check=True)
            (build / "compile_commands.json").write_text(
                json.dumps([{"file": "planted.c", "command": " ".join(command)}]))
            hit = any(expected in problem for problem in check(build))
        print(f"{'found' if hit else 'MISSED'}: {library}: {expected}")
        missed += not hit
    return missed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        sys.exit(1 if self_test() else 0)
    problems = check(options.build)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
