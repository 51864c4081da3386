#!/usr/bin/env python3
"""Records what transformers makes of templates, for the tests: of the small ones in tests/data/templates/snippets.json,
each of which is there for a rule of the language, and of those in tests/golden/templates.

usage: template_vectors.py
Writes tests/data/templates: the outputs in snippets.json (so a new row may have any), requests.json, and NAME.json
for each NAME.jinja. An output that is null is a failure; {"refused": words} is the template's own. Needs the Python
packages transformers and jinja2.
"""
import json
from pathlib import Path

import environment  # says what to run where the packages below are missing

import template_oracle
from template_requests import requests

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "tests/data/templates"
FEW = """one-prompt system-prompt turns many empty-prompt blanks-prompt unicode-prompt null names-prompt parts-prompt
    thought-prompt thought-last thought-tags-prompt off-prompt effort-prompt kept-prompt system-late two-users developer
    tools-system-prompt tool-call tool-result-prompt tool-two-prompt tool-text-prompt tool-null-prompt
    tool-text-arguments tool-thought-prompt tool-thought-open-prompt tool-parts-prompt""".split()


def outcome(text, request):
    try:
        return template_oracle.render(template_oracle.compile_template(text), request)
    except template_oracle.Refusal as refusal:
        return {"refused": str(refusal)}
    except Exception:  # in the template's own text, or in rendering it
        return None


def write(name, value):
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in value) if isinstance(value, list) else \
        ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
    brackets = "[]" if isinstance(value, list) else "{}"
    (OUT / name).write_text(f"{brackets[0]}\n{rows}\n{brackets[1]}\n")


def main():
    chosen = {name: request for name, request in requests() if name in FEW}
    assert set(FEW) == set(chosen)
    first, *rows = json.loads((OUT / "snippets.json").read_text())
    recorded = [{"template": row["template"], "output": outcome(row["template"], first["variables"])} for row in rows]
    write("snippets.json", [first, *recorded])
    write("requests.json", chosen)
    for path in sorted((ROOT / "tests/golden/templates").glob("*.jinja")):
        text = path.read_bytes().decode()
        write(path.stem + ".json", {name: outcome(text, request) for name, request in chosen.items()})


if __name__ == "__main__":
    main()
