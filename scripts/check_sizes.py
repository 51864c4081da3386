#!/usr/bin/env python3
"""Caps the size of files, functions and lines. There is no list of exceptions: split by concern instead.

usage: check_sizes.py [--self-test]
"""
import re

from checklib import Defect, code_only, files, run

FILE_LINES = 1500
FUNCTION_LINES = 100
COLUMNS = 120

SOURCES = (".c", ".h", ".py", ".sh", ".cmake", ".txt", ".in")


def functions(text):
    """(name, first line, number of lines) of each C function whose body ends with a brace in the first column."""
    lines = code_only(text).split("\n")
    head = ""
    start = opened = None
    for number, line in enumerate(lines, 1):
        if opened is None:
            if re.match(r"[A-Za-z_]", line):
                head, start = line, number
            elif head:
                head += " " + line.strip()
            if head.rstrip().endswith("{"):
                is_function = re.search(r"\)\s*(__attribute__\s*\(.*\)\s*)?\{$", head.rstrip()) and "=" not in head
                opened = re.findall(r"(\w+)\s*\(", head)[0] if is_function else ""
                head = ""
            elif head.rstrip().endswith((";", "}")):
                head = ""
        elif line.startswith("}"):
            if opened:
                yield opened, start, number - start + 1
            opened = None


def check(root):
    problems = []
    for path, name in files(root, *SOURCES):
        text = path.read_text()
        lines = text.split("\n")
        if len(lines) - 1 > FILE_LINES:
            problems.append(f"{name}:1: {len(lines) - 1} lines, {FILE_LINES} allowed")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                problems.append(f"{name}:{number}: {len(line)} columns, {COLUMNS} allowed")
        if path.suffix in (".c", ".h"):
            for function, first, length in functions(text):
                if length > FUNCTION_LINES:
                    problems.append(f"{name}:{first}: {function} has {length} lines, {FUNCTION_LINES} allowed")
    return problems


LONG_BODY = "    planted();\n" * FUNCTION_LINES

DEFECTS = [
    Defect("src/base/status.c", "int planted;\n" * FILE_LINES, "lines, 1500 allowed"),
    Defect("src/base/planted.h", "/* " + "x" * COLUMNS + " */\n", "columns"),
    Defect("scripts/planted.sh", "# " + "x" * COLUMNS + "\n", "columns"),
    Defect("src/base/status.c", "static int planted(int a,\n                   int b) {\n" + LONG_BODY + "}\n",
           "planted has"),
    Defect("src/base/planted.c", "const int table[] = {\n    1,\n};\nvoid after_table(void) {\n" + LONG_BODY + "}\n",
           "after_table has"),
]

if __name__ == "__main__":
    run(check, DEFECTS)
