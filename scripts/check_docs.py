#!/usr/bin/env python3
"""Holds the documents to the tree: links and paths exist, and the tables say what the code says.

usage: check_docs.py [--self-test]
"""
import re

import check_includes
from checklib import Defect, files, line_of, run

# A path of this repository in backticks; a name with a placeholder in capitals is none.
PATH = re.compile(r"`((?:src|tests|scripts|docs|cmake|include|\.ci)/[a-z0-9_./*-]*)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def path_problems(root, path, name, text):
    for match in LINK.finditer(text):
        if not (path.parent / match.group(1)).exists():
            yield f"{name}:{line_of(text, match.start())}: link to {match.group(1)}, which is not there"
    for match in PATH.finditer(text):
        if not list(root.glob(match.group(1).rstrip("/"))):
            yield f"{name}:{line_of(text, match.start())}: {match.group(1)} is not there"


def rows(text, title):
    """Cells of the table whose head begins with a cell."""
    inside = False
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not inside and cells[0] == title:
            inside = True
        elif inside and not line.startswith("|"):
            return
        elif inside and not line.startswith("| ---"):
            yield cells


def include_table(text):
    """{folder: folders it may include} as docs/architecture.md has it."""
    part = text[text.rfind("## Who may include whom"):]
    table = {}
    for cells in rows(part, "folder"):
        folder, allowed = cells[0].strip("`"), cells[1].strip("`")
        if allowed == "all of the above":
            allowed = " ".join(table)
        table[folder] = set() if allowed == "–" else set(allowed.split())
    table.pop("tests", None)
    return table


def architecture_problems(root):
    name = "docs/architecture.md"
    table = include_table((root / name).read_text())
    allowed = {folder: set(below) for folder, below in check_includes.BELOW.items()}
    for folder in sorted(table.keys() | allowed.keys()):
        if table.get(folder) != allowed.get(folder):
            yield (f"{name}:1: the include table says {folder}: {table.get(folder)}; "
                   f"the check allows {allowed.get(folder)}")


def readme_problems(root):
    """The README's list of what is supported is the code's."""
    name, text = "README.md", (root / "README.md").read_text()
    dtypes = re.findall(r"X\((\w+), \d+, \d+, \d+, 1\)", (root / "src/base/dtype.h").read_text())
    recipes = re.findall(r'X\("([\w-]+)"', (root / "src/models/registry.c").read_text())
    for cells in rows(text, ""):
        if cells[0] == "dtypes":
            claimed, real, where = set(cells[1].split()), set(dtypes), "src/base/dtype.h"
        elif cells[0] == "architectures":
            claimed, real, where = set(re.findall(r"`([\w-]+)`", cells[1])), set(recipes), "src/models/registry.c"
        else:
            continue
        if claimed != real:
            yield f"{name}:1: {cells[0]}: differs from {where} in {sorted(claimed ^ real)}"


def check(root):
    problems = []
    for path, name in files(root, ".md"):
        problems += path_problems(root, path, name, path.read_text())
    return problems + list(architecture_problems(root)) + list(readme_problems(root))


DEFECTS = [
    Defect("docs/planted.md", "[x](absent.md)\n", "absent.md"),
    Defect("docs/planted.md", "see `src/base/absent.h`\n", "absent.h"),
    Defect("src/base/dtype.h", "/* X(Q9_9, 99, 32, 18, 1) */\n", "Q9_9"),
    Defect("src/models/registry.c", '/* X("planted", 0) */\n', "planted"),
    Defect("src/models/registry.c", '/* X("planted-too", 0) */\n', "planted-too"),
    Defect("docs/architecture.md", "## Who may include whom\n\n| folder | x |\n| --- | --- |\n| `base` | `gguf` | |\n",
           "the include table says base"),
]

if __name__ == "__main__":
    run(check, DEFECTS)
