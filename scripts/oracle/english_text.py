#!/usr/bin/env python3
"""Assembles the English text that perplexity and divergence are measured on: <cache>/text/english.txt, about 128 KB.

It alternates pieces of four public-domain works (prose, verse, a play, minutes of a technical workshop), so that any
prefix of it is mixed. They are the test data in the source package of Brotli, which pip downloads.

usage: english_text.py     prints the path; does nothing more when the text is there and right
"""
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fetch_models import cache_dir  # noqa: E402

PACKAGE = "brotli==1.2.1"
WORKS = ["alice29.txt", "lcet10.txt", "plrabn12.txt", "asyoulik.txt"]
ROUNDS, PIECE, SKIP = 4, 8192, 4096  # SKIP leaves title pages out
SHA256 = "467101dff3b9f1b9593406bc276347a7593de943f382284ebd6344690e647be3"


def download():
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-binary", "brotli", "--dest", scratch, PACKAGE], check=True, stdin=subprocess.DEVNULL)
        with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
            members = {Path(m.name).name: m for m in archive.getmembers() if "/testdata/" in m.name}
            return [archive.extractfile(members[work]).read() for work in WORKS]


def pieces(work):
    """Consecutive pieces of whole lines, with Unix line ends."""
    work = work.replace(b"\r\n", b"\n").rstrip(b"\x1a")
    start = work.index(b"\n", SKIP) + 1
    for _ in range(ROUNDS):
        end = work.index(b"\n", start + PIECE) + 1
        yield work[start:end]
        start = end


def ensure():
    path = cache_dir() / "text" / "english.txt"
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256:
        return path
    text = b"".join(piece for one_round in zip(*map(pieces, download())) for piece in one_round)
    if hashlib.sha256(text).hexdigest() != SHA256:
        raise SystemExit(f"english_text: {PACKAGE} gave another text: SHA-256 {hashlib.sha256(text).hexdigest()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_bytes(text)
    os.replace(scratch, path)
    return path


if __name__ == "__main__":
    print(ensure())
