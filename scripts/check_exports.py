#!/usr/bin/env python3
"""Proves with nm what the libraries of a build export.

The shared library exports exactly the functions that the public headers declare, all of them hearth_; every external
name of the static library begins with hearth_ or hth_.

usage: check_exports.py [--build FOLDER] [--self-test]     FOLDER: build/release
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checklib import ROOT, code_only

STATIC_NAME = re.compile(r"(hearth|hth)_")
CC = os.environ.get("CC", "cc")


def symbols(path, *options):
    command = ["nm", "--defined-only", "--extern-only", "--format=posix", *options, str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in output.splitlines() if len(line.split()) >= 2}


def declared():
    names = set()
    for header in sorted((ROOT / "include").rglob("*.h")):
        text = code_only(header.read_text())
        names |= set(re.findall(r"^HEARTH_API\b[^;{}]*?\b(\w+)\s*\([^;{}]*\)\s*;", text, re.M | re.S))
    return names


def check(shared, static):
    exported, public = symbols(shared, "--dynamic"), declared()
    problems = [f"{shared.name}: exports {name}, which no public header declares" for name in sorted(exported - public)]
    problems += [f"{shared.name}: does not export {name}" for name in sorted(public - exported)]
    problems += [f"{static.name}: external name {name}" for name in sorted(symbols(static))
                 if not STATIC_NAME.match(name)]
    return problems


def self_test(shared, static):
    """Plants a name in a copy of each library, and takes a public function out of one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        source, plant = folder / "planted.c", folder / "planted.o"
        source.write_text('__attribute__((visibility("default"))) int planted(void) { return 0; }\n')
        subprocess.run([CC, "-fPIC", "-c", str(source), "-o", str(plant)], check=True)
        copy = folder / static.name
        shutil.copy2(static, copy)
        subprocess.run(["ar", "r", str(copy), str(plant)], check=True, capture_output=True)
        linked = folder / shared.name
        subprocess.run([CC, "-shared", "-o", str(linked), str(plant)], check=True)
        found = check(linked, copy)
        expected = [f"{linked.name}: exports planted,", f"{linked.name}: does not export hearth_status_text",
                    f"{copy.name}: external name planted"]
        missed = [text for text in expected if not any(problem.startswith(text) for problem in found)]
    for text in expected:
        print(f"{'MISSED' if text in missed else 'found'}: {text}")
    return missed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    shared, static = options.build / "src/libhearth.so", options.build / "src/libhearth.a"
    problems = (self_test if options.self_test else check)(shared, static)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
