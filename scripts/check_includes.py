#!/usr/bin/env python3
"""Holds the include table: which folder may include which, and who may use which library.

usage: check_includes.py [--self-test]
"""
import re

from checklib import Defect, code_only, files, line_of, run

# folder of src/ -> other folders it may include. The same table stands, with reasons, in docs/architecture.md.
BELOW = {
    "base": (),
    "gguf": ("base",),
    "text": ("base", "gguf"),
    "program": ("base",),
    "models": ("base", "gguf", "program"),
    "backends": ("base", "program", "experts"),
    "experts": ("base",),
    "engine": ("base", "gguf", "text", "program", "models", "backends", "experts"),
    "server": ("base",),
    "cli": ("base", "server"),
}
# folder -> public headers it may include: those it implements, and those they need. None: all.
PUBLIC = {
    "base": {"status", "options"},
    "gguf": {"status", "file"},
    "text": {"status", "options", "tokenizer", "template", "output", "constraint"},
    "program": {"status"},
    "models": {"status"},
    "backends": {"status"},
    "experts": {"status"},
    "engine": None,
    "server": None,
    "cli": None,
}
# third-party header -> folders that may include it
LIBRARIES = {
    "pcre2.h": ("text",),
    "utf8proc.h": ("text",),
    "jansson.h": ("text", "server", "cli"),
    "microhttpd.h": ("server",),
    "liburing.h": ("base",),
    "histedit.h": ("cli",),
    "cmocka.h": ("tests",),
    "simde/": ("tests",),
    "sanitizer/asan_interface.h": ("base",),  # a compiler header: arenas mark their red zones
}
SYSTEM = set("""
    assert.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h setjmp.h signal.h stdalign.h stdarg.h
    stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h time.h
    dirent.h fcntl.h ftw.h poll.h pthread.h sched.h spawn.h strings.h termios.h unistd.h dlfcn.h elf.h getopt.h
    sys/auxv.h sys/ioctl.h sys/mman.h sys/random.h sys/resource.h sys/stat.h sys/statfs.h sys/syscall.h sys/sysinfo.h
    malloc.h wchar.h sys/time.h sys/types.h sys/uio.h sys/wait.h sys/vfs.h linux/futex.h linux/magic.h""".split())
# Instruction-set headers: kernels, the processor probe and the thread set-up (MXCSR) only.
MACHINE = {"immintrin.h", "x86intrin.h", "xmmintrin.h", "emmintrin.h", "nmmintrin.h", "cpuid.h", "arm_neon.h"}
MACHINE_FOLDERS = ("src/backends/cpu/x86/", "src/backends/cpu/arm/", "src/base/", "tests/kernels/", "tests/bench/")

# The one way into tests/: kernel tests compile the kernels against emulated intrinsics (HTH_EMULATED).
EMULATION = {("src/backends/cpu/x86/intrin.h", "kernels/emulated.h")}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def library_problem(folder, name, header):
    library = header if header in LIBRARIES else header.split("/")[0] + "/"
    if library in LIBRARIES:
        allowed = LIBRARIES[library]
        return None if folder in allowed else f"<{header}> belongs to {', '.join(allowed)}"
    if header in MACHINE:
        return None if name.startswith(MACHINE_FOLDERS) else f"<{header}> belongs to the kernels"
    if header in SYSTEM:
        return None
    return f"<{header}> is in no list of scripts/check_includes.py"


def public_problem(name, header):
    """An include written in a public header."""
    if header.startswith("hearth/"):
        return None
    if header in {"stddef.h", "stdint.h", "stdio.h"}:
        return None
    return f"a public header may not include {header}"


def source_problem(folder, name, header):
    """A quoted include written under src/."""
    if header.startswith("hearth/"):
        allowed = PUBLIC[folder]
        noun = header[len("hearth/"):-len(".h")]
        return None if allowed is None or noun in allowed else f"{folder} may not include {header}"
    if (name, header) in EMULATION:
        return None
    other = header.split("/")[0]
    if "/" not in header or other not in BELOW:
        return f'"{header}": name it from src/, as in "base/status.h"'
    if other != folder and other not in BELOW[folder]:
        return f"{folder} may not include {other} ({header})"
    # Only open.c and the registries name concrete backends; a backend's own files know themselves.
    backend = re.match(r"backends/([a-z0-9_]+)/", header)
    if backend and not name.startswith(f"src/backends/{backend.group(1)}/") \
            and name not in ("src/backends/registry.c", "src/engine/open.c"):
        return f"only src/backends/registry.c and src/engine/open.c name a backend ({header})"
    return None


def naming_problems(root):
    """Recipes and backends are reached through their registries: no other file names one."""
    problems = []
    for path, name in files(root, ".c", ".h"):
        if not name.startswith("src/") or name in ("src/models/registry.c", "src/models/recipes.h"):
            continue
        text = code_only(path.read_text())
        for match in re.finditer(r"\bhth_recipe_(?!find\b|names\b)(\w+)", text):
            if name != f"src/models/{match.group(1)}.c":
                problems.append(f"{name}:{line_of(text, match.start())}: only src/models/registry.c names a recipe "
                                f"({match.group(0)})")
        for match in re.finditer(r"\bhth_backend_(cpu|cuda|metal)\b", text):
            if name not in ("src/backends/registry.c", "src/engine/open.c") and \
                    not name.startswith(f"src/backends/{match.group(1)}/"):
                problems.append(f"{name}:{line_of(text, match.start())}: only src/backends/registry.c and "
                                f"src/engine/open.c name a backend ({match.group(0)})")
    return problems


def check(root):
    problems = []
    for path, name in files(root, ".c", ".h", ".cpp", ".inc"):
        top, folder = name.split("/")[0], name.split("/")[1]
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            quoted, header = match.group(1) == '"', match.group(2)
            if header.endswith((".c", ".cpp")):
                problem = f"{header}: a source file is never included"
            elif top == "include":
                problem = public_problem(name, header)
            elif top == "src":
                problem = source_problem(folder, name, header) if quoted else library_problem(folder, name, header)
            elif top == "tests":
                problem = None if quoted or header.startswith("hearth/") else library_problem("tests", name, header)
            else:
                problem = "no C file belongs here"
            if problem:
                problems.append(f"{name}:{line_of(text, match.start())}: {problem}")
    return problems + naming_problems(root)


DEFECTS = [
    Defect("src/base/status.c", '#include "gguf/gguf.h"\n', "base may not include gguf"),
    Defect("src/program/planted.c", '#include "models/models.h"\n', "program may not include models"),
    Defect("src/models/planted.c", '#include "backends/backend.h"\n', "models may not include backends"),
    Defect("src/cli/planted.c", '  #  include "engine/session.h"\n', "cli may not include engine"),
    Defect("src/engine/planted.c", '#include "backends/cpu/kernels.h"\n', "name a backend"),
    Defect("src/models/qwen2.c", "static void *planted = hth_recipe_llama;\n", "names a recipe"),
    Defect("src/engine/session.c", "static const void *planted = &hth_backend_cpu;\n", "name a backend"),
    Defect("src/gguf/planted.c", "#include <jansson.h>\n", "belongs to text"),
    Defect("src/program/planted.h", '#include "hearth/engine.h"\n', "may not include hearth/engine.h"),
    Defect("src/text/planted.c", "#include <immintrin.h>\n", "belongs to the kernels"),
    Defect("src/base/planted.c", "#include <curl/curl.h>\n", "in no list"),
    Defect("src/text/planted.c", '#include "tokenizer.h"\n', "name it from src/"),
    Defect("tests/unit/planted.c", '#include "base/status.c"\n', "never included"),
    Defect("include/hearth/planted.h", '#include "base/status.h"\n', "public header"),
]

if __name__ == "__main__":
    run(check, DEFECTS)
