#!/usr/bin/env python3
"""Makes the PyPI build of torch importable on a machine without a GPU and without NVIDIA's libraries.

PyPI's Linux wheel is linked against about 3 GB of CUDA libraries that a CPU oracle never calls. Every library that is
needed but missing is replaced by a stub; the first one defines all the symbols that nothing else defines, as one
function that returns 0. "No device" is reported to whoever asks, so that torch stays on the CPU.

usage: stub_cuda.py SITE_PACKAGES     (needs cc, nm and readelf)
"""
import re
import subprocess
import sys
from pathlib import Path


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


def build(path, source):
    command = ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(path), f"-Wl,-soname,{path.name}"]
    subprocess.run(command, input=source, text=True, check=True)


def main():
    lib = Path(sys.argv[1]) / "torch" / "lib"
    ours = sorted(lib.glob("lib*.so*"))
    present = {path.name for path in ours}
    wanted = set().union(*(needed(path) for path in ours)) - present
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
    build(lib / missing[0], 'long stub_zero(void) { return 0; }\n'
                            'int cudaGetDeviceCount(int *n) { *n = 0; return 100; }\n' + aliases + "\n")
    for name in missing[1:]:
        build(lib / name, "typedef int empty;\n")
    print(f"torch: {len(missing)} stub libraries, {len(names)} symbols")


if __name__ == "__main__":
    main()
