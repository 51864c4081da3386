#!/usr/bin/env python3
"""Makes the PyPI build of torch importable on a machine without a GPU and without NVIDIA's libraries.

PyPI's Linux wheel is linked against about 3 GB of CUDA libraries that a CPU oracle never calls. Every library that is
needed but missing is replaced by an empty one that depends on SYMBOLS, which defines every symbol that nothing else
defines as one function that returns 0. (The loader refuses an unversioned symbol in a library of the very name the
wheel asks for, hence the library of another name.) "No device" is reported, so torch stays on the CPU.

usage: stub_cuda.py SITE_PACKAGES     (needs cc, nm and readelf)
"""
import re
import subprocess
import sys
from pathlib import Path


SYMBOLS = "libstub_cuda.so"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dynamic_symbols(library, *flags):
    lines = output("nm", "-D", "--format=posix", *flags, str(library)).splitlines()
    return {line.split()[0].split("@")[0] for line in lines if line and line.split()[1] not in "wv"}


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(library))))


def system_library(name):
    path = Path(output("cc", f"-print-file-name={name}").strip())
    return path if path.is_absolute() else None


def build(path, source, *flags):
    command = ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(path), f"-Wl,-soname,{path.name}", *flags]
    subprocess.run(command, input=source, text=True, check=True)


def main():
    lib = Path(sys.argv[1]) / "torch" / "lib"
    ours = sorted(path for path in lib.glob("lib*.so*") if path.name != SYMBOLS)
    present = {path.name for path in ours}
    wanted = set().union(*(needed(path) for path in ours)) - present - {SYMBOLS}
    system = {name: system_library(name) for name in wanted}
    missing = sorted(name for name, path in system.items() if path is None)
    if not missing:
        print("torch: nothing to stub")
        return
    defined = set()
    for path in ours + [path for path in system.values() if path]:
        defined |= dynamic_symbols(path, "--defined-only")
    undefined = set()
    for path in ours:
        undefined |= dynamic_symbols(path, "--undefined-only")
    names = sorted(undefined - defined - {"cudaGetDeviceCount"})
    aliases = "\n".join(f'__asm__(".globl {name}\\n.set {name}, stub_zero");' for name in names)
    build(lib / SYMBOLS, 'long stub_zero(void) { return 0; }\n'
                         'int cudaGetDeviceCount(int *n) { *n = 0; return 100; }\n' + aliases + "\n")
    for name in missing:
        build(lib / name, "typedef int empty;\n",
              "-x", "none", "-Wl,--no-as-needed", f"-L{lib}", f"-l:{SYMBOLS}", "-Wl,-rpath,$ORIGIN")
    print(f"torch: {len(missing)} stub libraries, {len(names)} symbols")


if __name__ == "__main__":
    main()
