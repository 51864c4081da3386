#!/usr/bin/env python3
"""Compiles each public header alone, as C17 and as C++17, and demands a comment for each public function.

A function is documented by a comment on its own line, or right above it, or above the unbroken group of lines that it
stands in.

usage: check_headers.py [--self-test]     CC and CXX name the compilers (cc, c++)
"""
import os
import re
import subprocess
import tempfile
from pathlib import Path

from checklib import Defect, comments_only, code_only, files, line_of, run

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = (
    ("C17", os.environ.get("CC", "cc"), ["-x", "c", "-std=c17", "-Wstrict-prototypes"]),
    ("C++17", os.environ.get("CXX", "c++"), ["-x", "c++", "-std=c++17"]),
)
FUNCTION = re.compile(r"^HEARTH_API\b[^;{}]*?\b(hearth_\w+)\s*\([^;{}]*\)\s*;", re.M | re.S)


def compile_problems(root, name):
    problems = []
    header = name[len("include/"):]
    for language, compiler, options in LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "alone"
            # Twice: the include guard is part of the header.
            source.write_text(f"#include <{header}>\n#include <{header}>\n")
            command = [compiler, *options, *WARNINGS, "-fsyntax-only", f"-I{root / 'include'}", str(source)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
            problems.append(f"{name}:1: not {language} by itself: {first}")
    return problems


def comment_problems(name, text):
    code, comments = code_only(text).split("\n"), comments_only(text).split("\n")
    problems = []
    for match in FUNCTION.finditer(code_only(text)):
        first, last = line_of(text, match.start()), line_of(text, match.end())
        if any(line.strip() for line in comments[first - 1:last]):
            continue
        above = first - 2
        while above >= 0 and code[above].strip() and not comments[above].strip():
            above -= 1
        if above < 0 or not comments[above].strip():
            problems.append(f"{name}:{first}: {match.group(1)} has no comment")
    return problems


def check(root):
    problems = []
    for path, name in files(root, ".h"):
        if name.startswith("include/"):
            problems += comment_problems(name, path.read_text()) + compile_problems(root, name)
    return problems


DEFECTS = [
    Defect("include/hearth/planted.h", "hearth_status planted(void);\n", "not C17"),
    Defect("include/hearth/planted.h", "struct planted { int class; };\n", "not C++17"),
    Defect("include/hearth/planted.h", "int planted = 0;\n", "not C17"),  # no guard: defined twice
    Defect("include/hearth/status.h", "\nHEARTH_API int\nhearth_planted(\n    int a);\n",
           "hearth_planted has no comment"),
]

if __name__ == "__main__":
    run(check, DEFECTS)
