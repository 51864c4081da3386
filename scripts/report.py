#!/usr/bin/env python3
"""Adds up test results for scripts/test.sh.

A results folder holds LEG.xml (CTest's --output-junit), LEG.json (CTest's --show-only=json-v1, for the labels) and
steps, lines of "passed NAME", "failed NAME" or "skipped NAME". The last line printed is the sum. The exit status is 1
when something failed, with CI=true also when a test was skipped that is not labelled optional, and always when nothing
ran.

usage: report.py FOLDER
"""
import json
import os
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def labels_of(path):
    labels = {}
    for test in json.loads(path.read_text())["tests"]:
        for entry in test.get("properties", []):
            if entry["name"] == "LABELS":
                labels[test["name"]] = entry["value"]
    return labels


def results_of_leg(path):
    """(name, "passed" | "failed" | "skipped", labels) of each test of one run of CTest."""
    labels = labels_of(path.with_suffix(".json"))
    for case in xml.parse(path).getroot().iter("testcase"):
        name, skipped = case.get("name"), case.find("skipped")
        if case.get("status") == "run":
            outcome = "passed"
        elif skipped is not None and "SKIP_RETURN_CODE" in skipped.get("message", ""):
            outcome = "skipped"
        else:
            outcome = "failed"
        yield name, outcome, labels.get(name, [])


def main(folder):
    demanded = os.environ.get("CI") == "true"
    count = {"passed": 0, "failed": 0, "skipped": 0}
    lines = []
    for path in sorted(folder.glob("*.xml")):
        for name, outcome, labels in results_of_leg(path):
            if outcome == "skipped" and demanded and "optional" not in labels:
                lines.append(f"failed: {path.stem}: {name}: skipped, and CI demands it")
                outcome = "failed"
            elif outcome != "passed":
                lines.append(f"{outcome}: {path.stem}: {name}")
            count[outcome] += 1
    steps = folder / "steps"
    for line in steps.read_text().splitlines() if steps.exists() else []:
        outcome, name = line.split(" ", 1)
        if outcome == "skipped" and demanded:
            outcome, name = "failed", f"{name}: skipped, and CI demands it"
        count[outcome] += 1
        if outcome != "passed":
            lines.append(f"{outcome}: {name}")
    for line in sorted(lines, reverse=True):
        print(line)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{skipped}")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
