#!/usr/bin/env python3
"""Holds `hearth template` against transformers' rendering, byte for byte, for any chat templates and every kind of
request of template_requests.py.

usage: check_templates.py [--hearth PROGRAM] [--verbose] PATH...
PATH is a template (.jinja), a GGUF file (its own template), or a folder of either.

Where the template raises, Hearth has to say its words; where rendering fails otherwise, Hearth has to fail too. What
transformers cannot do and Hearth can (a filter's result as JSON) is counted, and listed with --verbose.
Needs the Python packages transformers and jinja2, and gguf for GGUF files. Exit status 1 when anything differs.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import environment  # says what to run where the packages below are missing

import template_oracle
from template_requests import requests


def templates(path):
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            if inner.suffix in (".jinja", ".gguf"):
                yield from templates(inner)
    elif path.suffix == ".gguf":
        import gguf

        reader = gguf.GGUFReader(path)
        for key, field in reader.fields.items():
            if key.startswith("tokenizer.chat_template") and key != "tokenizer.chat_templates":
                yield f"{path.name}:{key}", field.contents()
    else:
        yield path.name, path.read_bytes().decode()


def hearth(program, template, request):
    command = [program, "template", "--file", template, "--input", request, "--now", template_oracle.NOW]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    error = done.stderr.decode().strip().removeprefix("hearth template: ")
    return (done.stdout.decode(), None) if done.returncode == 0 else (None, error)


def first_difference(ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    return f"at {at}: {ours[max(0, at - 30):at + 30]!r}, not {theirs[max(0, at - 30):at + 30]!r}"


def compare(ours, error, compiled, request):
    """'same', 'more' (only Hearth can) or a text that says what differs."""
    try:
        theirs = template_oracle.render(compiled, request)
    except template_oracle.Refusal as refusal:
        words = "".join(c if c >= " " else "?" for c in str(refusal))
        if error is None:
            return f"no refusal; the template's is {words!r}"
        return "same" if error == words[:len(error)] and len(error) >= min(len(words), 400) else \
            f"{error!r} in place of the template's {words!r}"
    except template_oracle.Failure as failure:
        return "same" if error is not None else f"+{failure}"
    if error is not None:
        return f"fails: {error}"
    return "same" if ours == theirs else first_difference(ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hearth", default="build/release/hearth")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("paths", nargs="+", type=Path)
    args = parser.parse_args()
    counts = {"same": 0, "more": 0, "differ": 0}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, request in requests():
            file = Path(folder) / f"{name}.json"
            file.write_text(json.dumps(request))
            files.append((name, request, file))
        for name, text in (found for path in args.paths for found in templates(path)):
            file = Path(folder) / "template.jinja"
            file.write_bytes(text.encode())
            compiled = template_oracle.compile_template(text)
            problems = 0
            for kind, request, request_file in files:
                ours, error = hearth(args.hearth, file, request_file)
                verdict = compare(ours, error, compiled, request)
                key = verdict if verdict == "same" else "more" if verdict.startswith("+") else "differ"
                counts[key] += 1
                problems += key == "differ"
                if key == "differ" or (key == "more" and args.verbose):
                    print(f"{name} {kind}: {verdict}")
            print(f"{name}: {'differs' if problems else 'equal'}", flush=True)
    print(f"{counts['same']} equal, {counts['more']} that only Hearth renders, {counts['differ']} differ")
    return 1 if counts["differ"] or not counts["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
