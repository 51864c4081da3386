#!/usr/bin/env python3
"""Refuses calls that the project does without, and library code that prints, exits or reads the environment.

usage: check_banned.py [--self-test]
"""
import re

from checklib import Defect, code_only, files, line_of, run

# function -> why not
EVERYWHERE = {
    "strcpy": "unbounded", "strcat": "unbounded", "sprintf": "unbounded; snprintf",
    "vsprintf": "unbounded; vsnprintf",
    "gets": "unbounded", "strncpy": "may leave no terminator", "strncat": "odd bound; snprintf",
    "atoi": "no errors; strtol", "atol": "no errors; strtol", "atoll": "no errors; strtoll",
    "atof": "no errors; strtod",
    "strtok": "hidden state", "system": "runs a shell", "popen": "runs a shell", "alloca": "unbounded stack",
    "tmpnam": "race", "mktemp": "race", "rand": "not reproducible across systems", "srand": "hidden state",
    "setlocale": "changes how every number is read and written",
}
LIBRARY = {
    "printf": "library code never prints", "puts": "library code never prints", "putchar": "library code never prints",
    "perror": "library code never prints", "vprintf": "library code never prints",
    "exit": "library code never exits", "_exit": "library code never exits", "_Exit": "library code never exits",
    "abort": "library code never exits; assert for our own faults", "quick_exit": "library code never exits",
}
THREADS = "src/base/thread.c"  # starts all threads of the library, and blocks signals in them
PROGRAM = ("cli", "server")  # folders of src/ that are not the library


def pattern_of(names):
    # A call or the function's address; `x.exit` and `->exit` are members.
    return re.compile(r"(?<![\w.>])(" + "|".join(map(re.escape, names)) + r")\s*(?=\()")


EVERYWHERE_PATTERN = pattern_of(EVERYWHERE)
LIBRARY_PATTERN = pattern_of(LIBRARY)
THREAD_PATTERN = pattern_of(["pthread_create"])
STREAM_PATTERN = re.compile(r"\b(stdout|stderr)\b")
ENVIRONMENT_PATTERN = re.compile(r"\b(getenv|secure_getenv|setenv|putenv|environ)\b")


def check(root):
    problems = []
    for path, name in files(root, ".c", ".h", ".inc"):
        parts = name.split("/")
        if parts[0] not in ("src", "tests", "include"):
            continue
        text = code_only(path.read_text())

        def report(match, why, name=name, text=text):
            problems.append(f"{name}:{line_of(text, match.start())}: {match.group(1)}: {why}")

        for match in EVERYWHERE_PATTERN.finditer(text):
            report(match, EVERYWHERE[match.group(1)])
        if parts[0] == "src" and parts[1] not in PROGRAM:
            for match in LIBRARY_PATTERN.finditer(text):
                report(match, LIBRARY[match.group(1)])
            for match in STREAM_PATTERN.finditer(text):
                report(match, "library code never prints")
            for match in THREAD_PATTERN.finditer(text) if name != THREADS else ():
                report(match, f"{THREADS} alone starts threads: hth_thread_start")
        if parts[0] == "src" and name != "src/base/options.c":
            for match in ENVIRONMENT_PATTERN.finditer(text):
                report(match, "src/base/options.c alone reads the environment")
    return problems


DEFECTS = [
    Defect("src/base/planted.c", "void f(char *a) { strcpy(a, a); }\n", "strcpy"),
    Defect("src/cli/planted.c", "int f(char *a) { return atoi(a); }\n", "atoi"),
    Defect("tests/unit/planted.c", "void f(char *a) { sprintf (a, a); }\n", "sprintf"),
    Defect("src/engine/planted.c", "void f(void) { exit(1); }\n", "never exits"),
    Defect("src/engine/planted.c", 'void f(void) { fprintf(stderr, "x"); }\n', "never prints"),
    Defect("src/models/planted.c", 'void f(void) { printf("x"); }\n', "never prints"),
    Defect("src/engine/planted.c", "int f(void) { return pthread_create(0, 0, 0, 0); }\n", "alone starts threads"),
    Defect("src/cli/planted.c", 'char *f(void) { return getenv("X"); }\n', "environment"),
]

if __name__ == "__main__":
    run(check, DEFECTS)
