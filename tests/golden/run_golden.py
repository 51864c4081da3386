#!/usr/bin/env python3
"""Compares `hearth logits` with the goldens: with an independent oracle's logits, within the tolerance that each golden
states, and bit for bit with the rows that Hearth itself computed when they were recorded.

usage: run_golden.py HEARTH DATA [--real] [--only TEXT] [--option WORD ...] [--record]
DATA holds golden/NAME.json (written by scripts/oracle/make_goldens.py), golden/NAME.hashes.json (written by --record,
once the values agree) and models/FILE.gguf. --real runs those in golden/real instead, of the models that
scripts/fetch_models.sh has put into the cache, and skips the others.
--option passes one more word to hearth: hashes must be the same for every number of threads and every instruction set.
Needs nothing but Python. Exit status: 0 all passed, 1 some failed, 77 nothing could be run.
"""
import argparse
import array
import base64
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
HASH_DIGITS = 16


def unpack(code, text):
    values = array.array(code)
    values.frombytes(base64.b64decode(text))
    if sys.byteorder == "big":
        values.byteswap()
    return values


class Golden:
    """One golden file. `top` are the `top_count` largest logits of each position with their ids, best first; `rows` are
    (position, stride, values): every stride-th logit of a row."""

    def __init__(self, path):
        content = json.loads(path.read_text())
        self.name = path.stem
        self.hashes_path = path.with_suffix(".hashes.json")
        self.model = content["model"]
        self.tokens = content["tokens"]
        self.n_vocab = content["n_vocab"]
        self.limit = content["limit"]
        self.max_abs = content["max_abs"]
        self.top_count = content["top_count"]
        self.ids = unpack("I", content["top_ids"])
        self.logits = unpack("f", content["top_logits"])
        self.rows = [(row["position"], row["stride"], unpack("f", row["logits"])) for row in content["rows"]]

    def compare(self, rows):
        """The worst |difference| / max |logit|, and where it is."""
        worst, where = 0.0, "nowhere"

        def note(difference, what):
            nonlocal worst, where
            if not difference <= worst:  # a NaN counts as worst
                worst, where = difference, what

        for position in range(len(self.tokens)):
            row = rows[position * self.n_vocab:(position + 1) * self.n_vocab]
            first = position * self.top_count
            for token, logit in zip(self.ids[first:first + self.top_count], self.logits[first:first + self.top_count]):
                note(abs(row[token] - logit), f"position {position}, token {token}")
                row[token] = -math.inf
            # What is not among the largest must stay below them.
            note(max(row) - self.logits[first + self.top_count - 1], f"position {position}, tokens outside the top")
        for position, stride, logits in self.rows:
            row = rows[position * self.n_vocab:(position + 1) * self.n_vocab:stride]
            for i, logit in enumerate(logits):
                note(abs(row[i] - logit), f"position {position}, token {i * stride}")
        return worst / self.max_abs, where


def hearth_logits(hearth, model, tokens, options):
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "logits")
        command = [hearth, "logits", "-m", str(model), "--tokens", ",".join(map(str, tokens)), "--kv", "f32", *options,
                   "--out", out]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()
            raise RuntimeError(f"hearth logits: exit status {done.returncode}: {message}")
        return Path(out).read_bytes()


def row_hashes(data, row_bytes):
    return [hashlib.sha256(data[i:i + row_bytes]).hexdigest()[:HASH_DIGITS] for i in range(0, len(data), row_bytes)]


def check(golden, model, args):
    """Raises RuntimeError where the program is wrong; returns a line to print."""
    data = hearth_logits(args.hearth, model, golden.tokens, args.option)
    row_bytes = golden.n_vocab * 4
    if len(data) != row_bytes * len(golden.tokens):
        raise RuntimeError(f"{len(data)} bytes, expected {len(golden.tokens)} rows of {row_bytes}")
    rows = array.array("f", data)
    if sys.byteorder == "big":
        rows.byteswap()
    worst, where = golden.compare(rows)
    if not worst <= golden.limit:
        raise RuntimeError(f"{worst:.2e} of max |logit| at {where}, {golden.limit:g} allowed")
    hashes = row_hashes(data, row_bytes)
    if args.record:
        record = {"model": golden.model, "kv": "f32", "sha256": hashes}
        golden.hashes_path.write_text(json.dumps(record, indent=0) + "\n")
        return f"{worst:.2e}, hashes recorded"
    if not golden.hashes_path.is_file():
        return f"{worst:.2e}, no hashes recorded"
    expected = json.loads(golden.hashes_path.read_text())["sha256"]
    wrong = [i for i, pair in enumerate(zip(hashes, expected)) if pair[0] != pair[1]]
    if wrong:
        raise RuntimeError(f"values agree ({worst:.2e}), but the bits of {len(wrong)} rows differ from the recorded "
                           f"ones, first at position {wrong[0]}")
    return f"{worst:.2e}, same bits"


def cached_models():
    cache = os.environ.get("HEARTH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache or Path(base) / "hearth") / "models"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hearth")
    parser.add_argument("data", type=Path)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--only", default="", help="goldens whose name contains this")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    folder = args.data / "golden" / ("real" if args.real else "")
    models = cached_models() if args.real else args.data / "models"
    paths = sorted(p for p in folder.glob("*.json") if args.only in p.stem and not p.stem.endswith(".hashes"))
    passed = failed = skipped = 0
    for path in paths:
        golden = Golden(path)
        model = models / golden.model
        if args.real and not model.is_file():
            skipped += 1
            print(f"skip {golden.name}: no {golden.model} in the cache", file=sys.stderr, flush=True)
            continue
        try:
            print(f"ok   {golden.name}: {check(golden, model, args)}", flush=True)
            passed += 1
        except (RuntimeError, OSError) as error:
            print(f"FAIL {golden.name}: {error}", flush=True)
            failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0 if passed else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
