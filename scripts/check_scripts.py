#!/usr/bin/env python3
"""Shell scripts parse, stop at the first error and please shellcheck; Python scripts parse and need the standard
library alone (the oracles under scripts/oracle excepted: they run by hand, in an environment of their own, and import
environment.py first, which says so where it is missing).

usage: check_scripts.py [--self-test]     exit status 77: no shellcheck here
"""
import ast
import itertools
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


def imports(tree):
    """(line, top-level module) of each import, from the top."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name.split(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append((node.lineno, node.module.split(".")[0]))
    return sorted(found)


def is_foreign(module, ours, seen):
    """Whether it is a package, or one of our modules that imports one."""
    if module in sys.stdlib_module_names or module in seen:
        return False
    seen.add(module)
    return module not in ours or any(is_foreign(inner, ours, seen) for inner in ours[module])


def python_problems(name, text, ours):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [f"{name}:{error.lineno}: {error.msg}"]
    if not name.startswith("scripts/oracle/"):
        return [f"{name}:{line}: {module} is not in the standard library" for line, module in imports(tree)
                if module not in sys.stdlib_module_names and module not in ours]
    if not text.startswith("#!"):
        return []
    before = itertools.takewhile(lambda found: found[1] != "environment", imports(tree))
    return [f"{name}:{line}: {module} needs packages, and environment.py is not imported before it"
            for line, module in before if is_foreign(module, ours, set())]


def our_modules(root):
    """Module -> what it imports; of one that does not parse, nothing."""
    ours = {}
    for path, name in files(root, ".py"):
        if name.split("/")[0] not in OUR_MODULES_OF:
            continue
        try:
            ours[path.stem] = [module for _, module in imports(ast.parse(path.read_text()))]
        except SyntaxError:
            ours[path.stem] = []
    return ours


def check(root):
    problems = []
    ours = our_modules(root)
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
    Defect("scripts/oracle/planted.py", "#!/usr/bin/env python3\nimport numpy\n", "environment.py is not"),
    Defect("scripts/oracle/planted.py", "#!/usr/bin/env python3\nimport kld\nimport environment\n", "kld needs"),
]

if __name__ == "__main__":
    if not shutil.which("shellcheck"):
        print("skipped: no shellcheck (Debian: apt install shellcheck)", file=sys.stderr)
        sys.exit(77)
    run(check, DEFECTS)
