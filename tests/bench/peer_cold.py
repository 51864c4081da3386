#!/usr/bin/env python3
"""From process start to the first token, hearth beside llama.cpp: same file, same prompt of some 26 tokens, same
threads, one after the other in each round. Prints medians of the wall time and of the peak resident memory of a run
that generates one token, and hearth's share of the peer's. The file is in the page cache; with --dropped, each run is
preceded by dropping it from there.

Models are names in the cache (scripts/fetch_models.sh fetches them) or paths of GGUF files. The peer is the one that
scripts/build_peer.sh built; --peer names another folder of its tools.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import peer

PROMPT = ("The quick brown fox jumps over the lazy dog and then runs into the forest where it meets a bear who asks "
          "for honey")
MODELS = ("smollm2", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")


def commands(args, model):
    hearth = [args.hearth, "run", "-m", model, "--raw", "-p", PROMPT, "-n", "1", "--greedy", "-t", args.threads]
    other = [args.peer / "llama-completion", "-m", model, "-p", PROMPT, "-n", "1", "-t", args.threads, "-no-cnv",
             "--temp", "0"]
    return {"hearth": list(map(str, hearth)), "llama.cpp": list(map(str, other))}


def drop(model):
    with open(model, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(command):
    """(seconds, processor seconds, MiB) of a process from its start to its end."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"peer_cold.py: {' '.join(command)}: exit status {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(args, model):
    samples = {"hearth": [], "llama.cpp": []}
    for side, command in commands(args, model).items():
        timed(command)  # the file is in the page cache from here on, and so is the program
    for _ in range(args.rounds):
        for side, command in commands(args, model).items():
            if args.dropped:
                drop(model)
            samples[side].append(timed(command))
    return {side: [statistics.median(values) for values in zip(*runs)] for side, runs in samples.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--hearth", type=Path, default=peer.ROOT / "build/release/hearth")
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--threads", default=str(min(os.cpu_count(), 8)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dropped", action="store_true", help="drop the file from the page cache before each run")
    parser.add_argument("--json", type=Path, help="write what is measured to this file, too")
    args = parser.parse_args()
    args.peer = args.peer or peer.peer_folder()
    results = {}
    print(f"{'model':24} {'hearth s':>9} {'peer s':>9} {'share':>7} {'cpu s':>8} {'peer cpu':>9} {'MiB':>7} "
          f"{'peer MiB':>9}")
    for name in args.models:
        path = Path(name) if "/" in name or name.endswith(".gguf") else peer.cache() / "models" / f"{name}.gguf"
        ours, theirs = (result := measure(args, path))["hearth"], result["llama.cpp"]
        results[name] = result
        print(f"{name[-24:]:24} {ours[0]:9.3f} {theirs[0]:9.3f} {ours[0] / theirs[0]:7.3f} {ours[1]:8.3f} "
              f"{theirs[1]:9.3f} {ours[2]:7.0f} {theirs[2]:9.0f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"dropped": args.dropped, "median_seconds_cpu_mib": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
