#!/usr/bin/env python3
"""Holds Hearth's output parsers to chat templates as they are published: each template renders an assistant's message
with reasoning, text and tool calls, and what the parser makes of the rendered text must be that message.

    output_check.py --templates FOLDER [--tool build/release/tests/text_tool] [--verbose] [NAME...]

FOLDER holds *.jinja files, such as vendor/llama.cpp/models/templates of the llama-cpp-python source package. The format
is the one that Hearth detects. Templates that show no calls, or refuse them, are counted. Needs the Python package
jinja2. Exit status 1 when anything differs.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import environment  # says what to run where the packages below are missing

import jinja2
import jinja2.sandbox

TOOLS = [{"type": "function", "function": {"name": name, "description": "A tool", "parameters": {
    "type": "object", "required": list(types), "properties": {
        key: {"type": kind, "description": key} for key, kind in types.items()}}}}
    for name, types in {
        "get_weather": {"city": "string", "days": "integer", "metric": "boolean"},
        "write_file": {"path": "string", "content": "string"},
        "search": {"query": "string", "filter": "object", "tags": "array"}}.items()]
CALLS = [
    [("get_weather", {"city": "Zürich", "days": 3, "metric": True})],
    [("write_file", {"path": "a.md", "content": "# A\n\n```xml\n<tool_call>{\"x\": \"}\"}</tool_call>\n```\n1 < 2"})],
    [("search", {"query": "12", "filter": {"from": 1.5, "who": {"name": "x"}}, "tags": ["a", "b c"]}),
     ("get_weather", {"city": "Paris", "days": -1, "metric": False})],
]
TEXTS = [("", ""), ("", "Let me look."), ("I need\na tool.", ""), ("I need a tool.", "Let me look.")]
# What ends a turn, and is the end of a generation.
ENDS = re.compile(r"(\s|<\|im_end\|>|</s>|<\|eot_id\|>|<\|eom_id\|>|<turn\|>|<\|tool_response>|<\|end_of_text\|>"
                  r"|<\|end_of_turn\|>|<seed:eos>|\[e~\[|<｜end▁of▁sentence｜>|<\|END_OF_TURN_TOKEN\|>|<SPECIAL_12>"
                  r"|<\|assistant_end\|>|<\|user\|>|<\|observation\|>|<\|return\|>|<sep>|<\|role_end\|>|<\|end\|>"
                  r"|<\|message_sep\|>|<end_of_sentence>|<\|START_OF_TURN_TOKEN\|>|<\|CHATBOT_TOKEN\|>"
                  r"|<｜hy_eos:opensource｜>)+$")


def environment():
    env = jinja2.sandbox.SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                              extensions=["jinja2.ext.loopcontrols"])

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def refuse(message):
        raise jinja2.TemplateError(message)

    env.filters["tojson"] = to_json
    env.globals.update(raise_exception=refuse, strftime_now=lambda form: "2026-01-01")
    return env


def render(template, messages, prompt):
    return template.render(messages=messages, tools=TOOLS, add_generation_prompt=prompt, bos_token="", eos_token="",
                           enable_thinking=True, thinking=True, builtin_tools=[], date_string="1 Jan 2026")


def answer_of(template, reasoning, text, calls):
    """The prompt, and the assistant's message after it."""
    user = [{"role": "user", "content": "Hello?"}]
    assistant = {"role": "assistant", "content": text, "tool_calls": [
        {"id": f"call{i:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)]}
    if reasoning:
        assistant.update(reasoning_content=reasoning, reasoning=reasoning)
        if not text:
            assistant["thinking"] = reasoning
    prompt = render(template, user, True)
    whole = render(template, user + [assistant], False)
    common = os.path.commonprefix([prompt, whole])
    if len(common) < len(prompt):  # the prompt goes on differently; do not end inside a marker
        common = common[:max(common.rfind("<", len(common) - 12), 0)] or common if "<" in common[-12:] else common
    return common, ENDS.sub("", whole[len(common):])


def same(a, b):
    if type(a) in (int, float) and type(b) in (int, float):
        return a == b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def parse(tool, path, prompt, answer, folder):
    files = {"tools.json": json.dumps(TOOLS), "prompt": prompt}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    run = subprocess.run([tool, "output", f"auto:{path}", os.path.join(folder, "tools.json"),
                          os.path.join(folder, "prompt")], input=answer.encode(), capture_output=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"{path}: {run.stderr.decode()}")
    return run.stdout.decode().splitlines()


def problem(form, lines, reasoning, text, calls):
    found = [re.match(r"call (\S+) (.*?)(?: id=\S+)?$", line).groups() for line in lines if line.startswith("call ")]
    if [name for name, _ in found] != [name for name, _ in calls]:
        return "calls"
    for (_, got), (_, wanted) in zip(found, calls):
        if not same(json.loads(got), wanted):
            return f"arguments {got}"
    shown = {kind: "".join(json.loads(line[len(kind) + 1:]) for line in lines if line.startswith(kind + " "))
             for kind in ("content", "reasoning")}
    if form == "harmony" and not shown["content"]:
        shown = {"content": text, "reasoning": reasoning}  # the template shows text before a call as analysis
    if any(line.startswith(("broken", "withdrawn")) for line in lines) or shown["content"] != text:
        return "content"
    return "reasoning" if shown["reasoning"] not in ("", reasoning) else None


def check(tool, path, folder, verbose):
    """How many answers agreed, and what was wrong with the others."""
    with open(path, encoding="utf-8") as file:
        template = environment().from_string(file.read())
    agreed, wrong, refused = 0, [], 0
    form = "?"
    for calls in CALLS:
        for reasoning, text in TEXTS:
            try:
                prompt, answer = answer_of(template, reasoning, text, calls)
            except (jinja2.TemplateError, TypeError, jinja2.exceptions.SecurityError):
                refused += 1
                continue
            if calls[0][0] not in answer or (text and text not in answer):
                refused += 1
                continue
            form, *lines = parse(tool, path, prompt, answer, folder)
            what = problem(form, lines, reasoning, text, calls)
            if what is None:
                agreed += 1
            else:
                wrong.append(what)
                if verbose:
                    print(f"--- {what}\n{prompt[-60:]!r}\n{answer!r}\n" + "\n".join(lines))
    return form, agreed, wrong, refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", required=True)
    parser.add_argument("--tool", default="build/release/tests/text_tool")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    total, bad = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(arguments.templates)):
            if not name.endswith(".jinja") or (arguments.names and name[:-6] not in arguments.names):
                continue
            path = os.path.join(arguments.templates, name)
            try:
                form, agreed, wrong, refused = check(arguments.tool, path, folder, arguments.verbose)
            except jinja2.TemplateError as error:
                print(f"{name:60} {error}")
                continue
            total += agreed
            bad += len(wrong)
            print(f"{name:60} {form:14} {agreed:3} agree, {len(wrong):3} differ, {refused:3} without a call"
                  + (f": {sorted(set(wrong))[0][:60]}" if wrong else ""))
    print(f"{total} answers agree, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
