#!/usr/bin/env python3
"""Shell scripts parse, stop at the first error and please shellcheck; Python scripts parse and need the standard
library alone (the oracles under scripts/oracle excepted: they run by hand, in an environment of their own).

usage: check_scripts.py [--self-test]     exit status 77: no shellcheck here
"""
import ast
import shutil
import subprocess
import sys

from checklib import Defect, files, run

OUR_MODULES_OF = ("scripts", "tests")


def shell_problems(path, name, text):
    shebang = text.split("\n", 1)[0]
    shell = "bash" if "bash" in shebang else "sh"
    problems = []
    wanted = "set -euo pipefail" if shell == "bash" else "set -eu"
    if wanted not in text.split("\n"):
        problems.append(f"{name}:1: no line '{wanted}'")
    result = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    if result.returncode:
        problems.append(f"{name}:1: {shell} -n: {result.stderr.strip()}")
    result = subprocess.run(["shellcheck", "--format=gcc", "-x", "-P", "SCRIPTDIR", str(path)], capture_output=True,
                            text=True, check=False)
    for line in result.stdout.splitlines():
        problems.append(line.replace(str(path), name, 1))
    return problems


def python_problems(name, text, ours):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [f"{name}:{error.lineno}: {error.msg}"]
    if name.startswith("scripts/oracle/"):
        return []
    problems = []
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules = [node.module]
        for module in modules:
            top = module.split(".")[0]
            if top not in sys.stdlib_module_names and top not in ours:
                problems.append(f"{name}:{node.lineno}: {top} is not in the standard library")
    return problems


def check(root):
    problems = []
    ours = {path.stem for path, name in files(root, ".py") if name.split("/")[0] in OUR_MODULES_OF}
    for path, name in files(root, ".sh", ".py", ""):
        if path.suffix == ".py":
            problems += python_problems(name, path.read_text(), ours)
        elif path.suffix == ".sh" or path.read_bytes()[:2] == b"#!":
            problems += shell_problems(path, name, path.read_text())
    return problems


HEAD = "#!/usr/bin/env bash\nset -euo pipefail\n"

DEFECTS = [
    Defect("scripts/planted.sh", "#!/usr/bin/env bash\necho\n", "no line"),
    Defect("scripts/planted.sh", HEAD + "if true; then\n", "bash -n"),
    Defect("scripts/planted.sh", HEAD + "cd $1\n", "SC2086"),
    Defect(".ci/planted", HEAD + "cd $1\n", "SC2086"),
    Defect("tests/install/planted.py", "def f(:\n", "invalid"),
    Defect("tests/install/planted.py", "import numpy\n", "numpy is not"),
]

if __name__ == "__main__":
    if not shutil.which("shellcheck"):
        print("skipped: no shellcheck (Debian: apt install shellcheck)", file=sys.stderr)
        sys.exit(77)
    run(check, DEFECTS)
