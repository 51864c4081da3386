#!/usr/bin/env python3
"""Plants one defect: writes SOURCE to OUT with the only occurrence of FROM replaced by TO.

usage: mutate.py SOURCE OUT FROM TO
Blanks count as one blank each way, so that a change of layout does not lose the place. It fails when FROM is not there
exactly once: then the code has moved on, and the mutant has to follow it.
"""
import re
import sys
from pathlib import Path


def main():
    source, out, old, new = sys.argv[1:]
    text = Path(source).read_text(encoding="utf-8")
    pattern = r"\s+".join(re.escape(word) for word in old.split())
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise SystemExit(f"mutate: {source}: {old!r} is there {len(found)} times, wanted once")
    at = found[0]
    line = text.count("\n", 0, at.start()) + 1
    lines = at.group().count("\n") - new.count("\n")
    Path(out).write_text(f'#line 1 "{source}"\n' + text[:at.start()] + new + "\n" * max(0, lines) + text[at.end():],
                         encoding="utf-8")
    print(f"{source}:{line}: {old!r} became {new!r}")


if __name__ == "__main__":
    main()
