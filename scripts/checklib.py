"""What the checks of scripts/check_*.py share: the files they look at, the two ways of running, planted defects.

A check is a function of a root folder that returns problems, each a line "file:line: text". Its script runs it on this
tree, or, with --self-test, plants defects into a copy of the tree one after another and demands that each is found:
a check that cannot turn red proves nothing.
"""
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".ci", "cmake", "docs", "include", "scripts", "src", "tests")
LEFT_OUT = ("tests/data",)  # bytes of other origin


class Defect(NamedTuple):
    path: str      # file to change, created when it is not there
    text: str      # appended to it
    expected: str  # a piece of the problem that must be reported


def files(root, *suffixes):
    """The tree's files with one of these suffixes (all when none is given), in a fixed order."""
    # In a linked worktree .git is a file, with a path of this machine.
    found = [path for path in root.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        found += (path for path in (root / folder).rglob("*") if path.is_file())
    for path in sorted(found):
        name = path.relative_to(root).as_posix()
        if "__pycache__" in name or any(name.startswith(left + "/") for left in LEFT_OUT):
            continue
        if not suffixes or path.suffix in suffixes:
            yield path, name


def blank(match):
    """Spaces in place of a match, so that lines and columns stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """C source with comments, strings and character constants blanked out."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S)


def comments_only(text):
    """The comments of C source, everything else blanked out."""
    out = re.sub(r"[^\n]", " ", text)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', text, flags=re.S):
        if match.group(0)[0] == "/":
            out = out[:match.start()] + match.group(0) + out[match.end():]
    return out


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def copy_tree(root, to):
    for path, name in files(root):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def self_test(check, defects):
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_tree(ROOT, copy)
        known = set(check(copy))
        for defect in defects:
            path = copy / defect.path
            before = path.read_bytes() if path.exists() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((before or b"") + defect.text.encode())
            found = [problem for problem in check(copy) if problem not in known]
            hit = any(defect.path in problem and defect.expected in problem for problem in found)
            print(f"{'found' if hit else 'MISSED'}: {defect.path}: {defect.text.strip()[:60]!r}")
            missed += not hit
            if before is None:
                path.unlink()
            else:
                path.write_bytes(before)
    return missed


def run(check, defects):
    """The main function of a check script."""
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test(check, defects) else 0)
    if sys.argv[1:]:
        sys.exit(f"usage: {Path(sys.argv[0]).name} [--self-test]")
    problems = check(ROOT)
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"{len(problems)} problems")
