#!/usr/bin/env python3
"""Passes when a test finds the defect that was planted in it: it must fail, and not for want of something.

usage: run_mutant.py PROGRAM [ARGUMENT ...]
"""
import re
import subprocess
import sys

SECONDS = 240


def main():
    try:
        done = subprocess.run(sys.argv[1:], capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"the mutant was still running after {SECONDS} s: a defect should fail a test, not hang it")
    output = done.stdout + done.stderr
    if done.returncode == 0:
        raise SystemExit("the defect was not found: every test passed\n" + output[-2000:])
    if done.returncode == 77 or not re.search(r"\bFAIL(ED)?\b|Assertion", output):
        raise SystemExit(f"exit status {done.returncode}, and no test says why\n" + output[-2000:])
    print("found: " + next(line for line in output.splitlines() if re.search(r"\bFAIL(ED)?\b|Assertion", line)))


if __name__ == "__main__":
    main()
