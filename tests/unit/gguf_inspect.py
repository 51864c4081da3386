#!/usr/bin/env python3
"""Runs `hearth inspect` as a user does: what it prints, that its JSON is JSON and complete, that nothing in a file
reaches a terminal as a control, and its exit statuses.

usage: gguf_inspect.py PROGRAM
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unicodedata

TYPES = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
         "f32": (6, "f"), "bool": (7, "?"), "string": (8, None), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}
ARRAY = 9


def string(data):
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return string(value) if kind == "string" else struct.pack("<" + TYPES[kind][1], value)


def entry(key, kind, value):
    """A metadata record; a list makes an array."""
    if isinstance(value, list):
        head = struct.pack("<IIQ", ARRAY, TYPES[kind][0], len(value))
        return string(key) + head + b"".join(scalar(kind, item) for item in value)
    return string(key) + struct.pack("<I", TYPES[kind][0]) + scalar(kind, value)


def gguf(entries, tensors):
    """tensors: (name, shape, dtype id, bytes)."""
    image = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entry(*e) for e in entries)
    data = b""
    for name, shape, dtype, size in tensors:
        image += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, dtype, len(data))
        data += bytes((size + 31) // 32 * 32)
    return image + bytes(-len(image) % 32) + data


SCALARS = [("u8", 200), ("i8", -3), ("u16", 65535), ("i16", -3), ("u32", 4000000000), ("i32", -3), ("f32", 0.5),
           ("bool", True), ("u64", 2**64 - 1), ("i64", -2**63), ("f64", 5e-324)]
PLAIN = gguf([(b"general.architecture", "string", b"sample")]
             + [(f"sample.{kind}".encode(), kind, value) for kind, value in SCALARS]
             + [(b"sample.strings", "string", [b"a", b"", b"\xff\xfe", "ħ".encode()]),
                (b"sample.none", "string", []), (b"sample.many", "i32", list(range(-50, 50))),
                (b"sample.text", "string", b"x" * 1000)],
             [(b"scalar", [], 0, 4), (b"cube", [256, 1, 2], 14, 420), (b"odd", [256], 19, 50)])
CONTROLS = b"\x1b]0;title\x07 \xc2\x9b2J \xe2\x80\xae \"\\ \xff"
HOSTILE = gguf([(b"\x1b[31mred", "string", CONTROLS),
                (b"floats", "f32", [float("nan"), float("inf"), float("-inf"), 0.1]),
                (b"nul", "string", b"a\0b")],
               [(b"\x9bH\r\n", [32], 0, 128)])


class Checks:
    def __init__(self, program, folder):
        self.program, self.folder, self.failures = program, folder, 0

    def check(self, holds, what):
        if not holds:
            self.failures += 1
            print(f"FAILED: {what}")

    def run(self, *args, status=0):
        done = subprocess.run([self.program, "inspect", *args], capture_output=True, check=False, timeout=60)
        self.check(done.returncode == status, f"{args}: status {done.returncode}, want {status}: {done.stderr}")
        for stream in (done.stdout, done.stderr):
            text = stream.decode(errors="replace")
            unsafe = ("Cc", "Cf", "Zl", "Zp", "Co", "Cs")
            controls = [c for c in text if c != "\n" and unicodedata.category(c) in unsafe]
            self.check(not controls and "\ufffd" not in text, f"{args}: controls {controls} in {text[:200]!r}")
        self.check(status == 0 or (not done.stdout and done.stderr), f"{args}: only an error goes to standard error")
        return done.stdout.decode(errors="replace")

    def text(self, plain, hostile):
        output = self.run(plain)
        for words in ("GGUF version 3, alignment 32", "metadata: 16\n", 'string   "sample"\n', "u32      4000000000\n",
                      "u64      18446744073709551615\n", "i64      -9223372036854775808\n", "f64      4.94066e-324\n",
                      'string] ["a", "", "\\xff\\xfe", "ħ"]\n', "[string] []\n", "-43, ...] (100)\n",
                      'xxx..." (1000 bytes)\n', "tensors: 3\n", "dtypes: 3\n", "not supported"):
            self.check(words in output, f"{words!r} is not in {output}")
        self.check(output == self.run("-m", plain) == self.run("--", plain), "-m FILE, FILE and -- FILE are the same")
        output = self.run(hostile)
        for words in ("\\u{1b}[31mred", '\\u{9b}2J \\u{202e} \\"\\\\ \\xff"', "nan, inf, -inf, 0.1]", "\\x9bH"):
            self.check(words in output, f"{words!r} is not in {output}")

    def json(self, plain, hostile):
        report = json.loads(self.run(plain, "--json"))
        values = {item["key"]: item for item in report["metadata"]}
        for kind, value in SCALARS:
            item = values[f"sample.{kind}"]
            self.check(item == {"key": f"sample.{kind}", "type": kind, "value": value}, f"{kind}: {item}")
        strings = values["sample.strings"]
        self.check(strings["type"] == "array" and strings["element"] == "string", f"{strings}")
        self.check(strings["value"] == ["a", "", {"hex": "fffe"}, "ħ"], f"{strings}")
        self.check(values["sample.many"]["value"] == list(range(-50, 50)), "long arrays are whole")
        self.check(values["sample.text"]["value"] == "x" * 1000, "long strings are whole")
        cube = report["tensors"][1]
        self.check(cube["shape"] == [256, 1, 2] and cube["dtype"] == "Q6_K" and cube["bytes"] == 420, f"{cube}")
        self.check([t["supported"] for t in report["tensors"]] == [True, True, False], "IQ1_S is not supported")
        self.check(sum(d["bytes"] for d in report["dtypes"]) == 474, f"{report['dtypes']}")
        report = json.loads(self.run("--json", hostile))
        values = [item["value"] for item in report["metadata"]]
        self.check(values[0] == {"hex": CONTROLS.hex()}, f"{values[0]}")
        self.check(values[1] == ["NaN", "Infinity", "-Infinity", 0.1], f"{values[1]}")
        self.check(values[2] == "a\0b", f"{values[2]!r}")
        self.check(report["tensors"][0]["name"] == {"hex": "9b480d0a"}, f"{report['tensors']}")

    def statuses(self, plain):
        self.check("usage: hearth inspect" in self.run("--help"), "--help")
        self.run(str(self.folder / "absent\x1b[2J"), status=1)
        self.run(str(self.folder), "--json", status=1)
        self.run("--no-such-flag", plain, status=2)
        self.run(plain, plain, status=2)
        self.run("-m", status=2)
        whole = pathlib.Path(plain).read_bytes()
        cut = self.folder / "cut.gguf"
        for size in range(0, min(len(whole), 8192), 64):
            cut.write_bytes(whole[:size])
            self.run(str(cut), status=1)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plain, hostile = folder / "plain.gguf", folder / "hostile.gguf"
        plain.write_bytes(PLAIN)
        hostile.write_bytes(HOSTILE)
        checks = Checks(sys.argv[1], folder)
        checks.text(str(plain), str(hostile))
        checks.json(str(plain), str(hostile))
        checks.statuses(str(plain))
    print(f"{checks.failures} failures")
    sys.exit(1 if checks.failures else 0)


if __name__ == "__main__":
    main()
