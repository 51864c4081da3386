#!/usr/bin/env python3
"""Looks at every file as text: encoding, blanks, invisible characters, paths of one machine, comments that go stale.

usage: check_text.py [--self-test]
"""
import re

from checklib import Defect, comments_only, files, line_of, run

BINARY = (".gguf", ".png", ".bin", ".gz")

# Zero-width and direction characters, which make code read differently from what it is.
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\u00a0\u00ad]")
# A file must be right on every machine.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:root|home|Users|work|mnt|media)/\w")
OUTSIDE = re.compile(r"\.\./shared\b")
# Comments say what is true now; plans and history live in the issue tracker and in git.
STALE = re.compile(r"\b(TODO|FIXME|XXX|HACK|issue #?\d+|20[0-9]{2}-[01][0-9]-[0-3][0-9])\b")


def check(root):
    problems = []
    for path, name in files(root):
        if path.suffix in BINARY:
            continue
        data = path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            problems.append(f"{name}:1: not UTF-8 at byte {error.start}")
            continue
        if text and not text.endswith("\n"):
            problems.append(f"{name}:{line_of(text, len(text))}: no newline at the end")
        if text.endswith("\n\n"):
            problems.append(f"{name}:{line_of(text, len(text))}: blank line at the end")
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                problems.append(f"{name}:{number}: trailing blanks")
            if "\t" in line:
                problems.append(f"{name}:{number}: tab")
        for pattern, what in ((INVISIBLE, "invisible character"), (MACHINE_PATH, "path of one machine"),
                              (OUTSIDE, "path outside the repository")):
            for match in pattern.finditer(text):
                problems.append(f"{name}:{line_of(text, match.start())}: {what} {match.group(0)!a}")
        if path.suffix in (".c", ".h"):
            for match in STALE.finditer(comments_only(text)):
                problems.append(f"{name}:{line_of(text, match.start())}: comment with {match.group(0)}")
    return problems


DEFECTS = [
    Defect("src/base/planted.c", "int a;  \n", "trailing blanks"),
    Defect("src/base/planted.c", "\tint a;\n", "tab"),
    Defect("src/base/planted.c", "int a;", "no newline"),
    Defect("docs/planted.md", "x\n\n", "blank line at the end"),
    Defect("docs/planted.md", "a\u202eb\n", "invisible"),
    Defect("scripts/planted.sh", "cat /" + "home/someone/x\n", "path of one machine"),
    Defect("scripts/planted.sh", "cat ." + "./shared/x\n", "outside"),
    Defect("src/base/planted.c", "/* TO" + "DO: later */\n", "comment with"),
    Defect("src/base/planted.h", "/* as of 2020-" + "01-01 */\n", "comment with"),
]

if __name__ == "__main__":
    run(check, DEFECTS)
