#!/usr/bin/env python3
"""Rates of hearth beside llama.cpp's, interleaved: same file, same threads, one after the other in each round, so that
both meet the same weather. Prints medians, their ratio, and hearth's fractions of the machine's limits, which are
measured in the same runs.

Sections (--sections, each with its own number of rounds where NAME:ROUNDS says so):
  models   prefill and decode of every model in the cache
  dtypes   the same of one model in every dtype (scripts/make_dtypes.sh)
  depth    prefill and decode after 4096 tokens
  batch    4 and 16 sessions that decode together, after a prompt of 16 tokens each
  rows     one pass of 2, 4, 8, 16 and 32 rows

Models are names in the cache (scripts/fetch_models.sh fetches them) or paths of GGUF files; given, they take the place
of every section's own. The peer is the one that scripts/build_peer.sh built; --peer names another folder of its tools,
and --with gives hearth options such as '--cpu-mask avx2'. What is measured is written to --json as it comes.

Weather: for each sample the share of the machine that other processes (and, on a virtual machine, its host) took
meanwhile is recorded; a sample with more than a tenth is marked. Medians are over all samples; rerun when many are
marked.
"""
import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import peer_report

ROOT = Path(__file__).resolve().parents[2]
DISTURBED = 0.10
TICKS = os.sysconf("SC_CLK_TCK")
PROMPT, GEN = 512, 128
DEPTH, DEPTH_GEN = 4096, 32
BATCHES, BATCH_PROMPT, BATCH_GEN = (4, 16), 16, 32
ROWS, ROWS_REPS = (2, 4, 8, 16, 32), 5
ONE_MODEL = "qwen2.5-coder-1.5b"


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HEARTH_CACHE") or Path(base) / "hearth")


def peer_folder():
    where = subprocess.run([ROOT / "scripts/build_peer.sh", "--where"], capture_output=True, text=True, check=False)
    if where.returncode:
        sys.exit("peer.py: the peer is not built; scripts/build_peer.sh builds it (about 15 minutes)")
    return Path(where.stdout.strip())


def machine_seconds():
    """(busy, stolen) seconds of all processors since boot."""
    fields = [int(n) / TICKS for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = fields
    return user + nice + system + irq + softirq, steal


def run(command):
    """Standard output of a command, and the share of the machine that others had while it ran."""
    usage, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    busy, stolen = machine_seconds()
    result = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode:
        sys.exit(f"peer.py: {' '.join(map(str, command))}: exit status {result.returncode}\n{result.stderr}")
    busy_after, stolen_after = machine_seconds()
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    own = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    others = max(0.0, busy_after - busy - own) + stolen_after - stolen
    return result.stdout, others / (wall * os.cpu_count())


def numbers(values):
    return ",".join(map(str, values))


# ---- Sections: what each side is asked for, and what it answers ----

def label(kind, tokens, depth=0, sessions=1):
    text = f"{kind} {tokens}"
    if sessions > 1:
        text += f", {sessions} sessions"
    return text + (f" at {depth}" if depth else "")


def bench_rows(report):
    """{label: {rate and fractions}} of hearth's rows of rates."""
    rows = {}
    for row in report["rows"]:
        rows[label(row["test"], row["tokens"], row["depth"], row["sessions"])] = {
            "rate": row["tokens_per_s"], "of_read": row["fraction_of_read"], "of_peak": row["fraction_of_peak"]}
    return rows


def sweep_rows(report):
    return {label("pass of", point["rows"]): {
        "rate": 1000 / point["ms_per_row"], "of_read": point["fraction_of_read"], "of_peak": point["fraction_of_peak"]}
        for point in report["sweep"]["points"]}


def llama_bench_rows(output, kind="prefill"):
    rows = {}
    for test in json.loads(output):
        name = kind if test["n_prompt"] else "decode"
        rows[label(name, test["n_prompt"] or test["n_gen"], test["n_depth"])] = {"rate": test["avg_ts"]}
    return rows


def batched_bench_rows(output):
    rows = {}
    for line in output.splitlines():
        if line.startswith("{"):
            test = json.loads(line)
            rows[label("decode", test["tg"], test["pp"], test["pl"])] = {"rate": test["speed_tg"]}
    return rows


class Rates:
    """Prefill and decode, at a depth or not."""
    def __init__(self, prompt, gen, depth=0):
        self.prompt, self.gen, self.depth = prompt, gen, depth

    def ours(self):
        return ["--prompt", self.prompt, "--gen", self.gen, "--depth", self.depth, "--reps", 1]

    def theirs(self):
        return "llama-bench", ["-p", self.prompt, "-n", self.gen, "-d", self.depth, "-r", 1, "-o", "json"]

    read_ours, read_theirs = staticmethod(bench_rows), staticmethod(llama_bench_rows)


class Batch:
    """Several sessions, a token of each in a pass. llama.cpp's own prompts are not shared, and neither are ours."""
    def ours(self):
        return ["--prompt", 0, "--gen", BATCH_GEN, "--depth", BATCH_PROMPT, "--batch", numbers(BATCHES), "--reps", 1]

    def theirs(self):
        context = max(BATCHES) * 64
        assert BATCH_PROMPT + BATCH_GEN <= 64
        return "llama-batched-bench", ["-npp", BATCH_PROMPT, "-ntg", BATCH_GEN, "-npl", numbers(BATCHES), "-c", context,
                                       "--output-format", "jsonl"]

    read_ours, read_theirs = staticmethod(bench_rows), staticmethod(batched_bench_rows)


class Rows:
    """One pass of few rows into an empty session."""
    def ours(self):
        return ["--sweep", numbers(ROWS), "--reps", ROWS_REPS]

    def theirs(self):
        return "llama-bench", ["-p", numbers(ROWS), "-n", 0, "-b", 512, "-ub", 512, "-r", ROWS_REPS, "-o", "json"]

    read_ours = staticmethod(sweep_rows)

    @staticmethod
    def read_theirs(output):
        return llama_bench_rows(output, "pass of")


SECTIONS = {"models": Rates(PROMPT, GEN), "dtypes": Rates(PROMPT, GEN), "depth": Rates(PROMPT, DEPTH_GEN, DEPTH),
            "batch": Batch(), "rows": Rows()}


# ---- Measuring ----

def sample_ours(options, section, model, threads):
    command = [options.hearth, "bench", "-m", model, "--threads", threads, *section.ours(),
               *shlex.split(options.extra), "--json"]
    output, others = run(list(map(str, command)))
    report = json.loads(output)
    return {"rows": section.read_ours(report), "limits": report["limits"]["mean"], "others": others}


def sample_theirs(options, section, model, threads):
    tool, arguments = section.theirs()
    command = [options.peer / tool, "-m", model, "-t", threads, *arguments]
    output, others = run(list(map(str, command)))
    return {"rows": section.read_theirs(output), "others": others}


def measure(options, name, rounds, model, threads):
    """Rows of medians of both sides for one model, with their samples."""
    samples = {"hearth": [], "llama.cpp": []}
    for i in range(rounds):
        for side, take in (("hearth", sample_ours), ("llama.cpp", sample_theirs)):
            start = time.monotonic()
            sample = take(options, SECTIONS[name], model, threads)
            samples[side].append(sample)
            mark = "  disturbed" if sample["others"] > DISTURBED else ""
            rates = "  ".join(f"{what} {row['rate']:.1f}" for what, row in sample["rows"].items())
            print(f"  round {i + 1} of {rounds} {side:10} {rates}  {time.monotonic() - start:.0f} s, "
                  f"others {sample['others']:.0%}{mark}", file=sys.stderr, flush=True)
    shared = [what for what in samples["hearth"][0]["rows"] if what in samples["llama.cpp"][0]["rows"]]
    if not shared:
        sys.exit(f"peer.py: {name}: the two sides measured nothing alike: {list(samples['hearth'][0]['rows'])}, "
                 f"{list(samples['llama.cpp'][0]['rows'])}")
    rows = []
    for what in shared:
        medians = {key: statistics.median(s["rows"][what][key] for s in samples["hearth"])
                   for key in ("rate", "of_read", "of_peak")}
        theirs = statistics.median(s["rows"][what]["rate"] for s in samples["llama.cpp"])
        rows.append({"section": name, "model": model.stem, "bytes": model.stat().st_size, "threads": threads,
                     "what": what, "hearth": medians["rate"], "llama.cpp": theirs, "ratio": medians["rate"] / theirs,
                     "of_read": medians["of_read"], "of_peak": medians["of_peak"]})
    return rows, samples


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def commit():
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "status", "--porcelain", "--", "src", "include", "cmake"], capture_output=True,
                             text=True, check=False)
    return (name.stdout.strip() or "unknown") + ("+changes" if changed.stdout.strip() else "")


# ---- What to measure ----

def models_of(options, name):
    if options.models:
        return [Path(m) if m.endswith(".gguf") else cache() / "models" / f"{m}.gguf" for m in options.models]
    if name in ("models", "dtypes"):
        found = sorted((cache() / name).glob("*.gguf"), key=lambda path: (path.stat().st_size, path.name))
    else:
        found = [path for path in [cache() / "models" / f"{ONE_MODEL}.gguf"] if path.exists()]
    if not found:
        script = "make_dtypes.sh makes them" if name == "dtypes" else "fetch_models.sh fetches them"
        sys.exit(f"peer.py: {name}: no model in the cache; scripts/{script}")
    return found


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--sections", default="models", help=f"some of {', '.join(SECTIONS)}; NAME:ROUNDS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default=str(len(os.sched_getaffinity(0))), help="N,...: each number in turn")
    parser.add_argument("--hearth", default=ROOT / "build/release/hearth", help="the program to measure")
    parser.add_argument("--with", dest="extra", default="", metavar="OPTIONS", help="more options for hearth")
    parser.add_argument("--peer", type=Path, help="folder of llama.cpp's tools")
    parser.add_argument("--json", type=Path, help="write everything measured")
    parser.add_argument("--markdown", type=Path, help="write the table")
    parser.add_argument("--svg", type=Path, help="write a picture of the ratios")
    options = parser.parse_args()
    options.plan = []
    for part in options.sections.split(","):
        name, _, rounds = part.partition(":")
        if name not in SECTIONS or (rounds and not rounds.isdigit()):
            parser.error(f"--sections: {part!r} is none of {', '.join(SECTIONS)} (or NAME:ROUNDS)")
        options.plan.append((name, int(rounds or options.rounds)))
    options.thread_counts = [int(n) for n in options.threads.split(",")]
    options.peer = options.peer or peer_folder()
    return options


def main():
    options = parse()
    cases = [(name, rounds, model, threads) for name, rounds in options.plan for model in models_of(options, name)
             for threads in options.thread_counts]
    report = {"cpu": processor(), "commit": commit(), "with": options.extra, "load_before": os.getloadavg(),
              "rows": [], "samples": [], "disturbed": 0, "taken": 0}
    start = time.monotonic()
    for i, (name, rounds, model, threads) in enumerate(cases):
        print(f"{i + 1} of {len(cases)}: {name}, {model.stem}, {threads} threads, {time.monotonic() - start:.0f} s so "
              f"far", file=sys.stderr, flush=True)
        rows, samples = measure(options, name, rounds, model, threads)
        for row in rows:
            row["rounds"] = rounds
        report["rows"] += rows
        report["samples"].append({"section": name, "model": model.stem, "threads": threads, **samples})
        taken = [sample for side in samples.values() for sample in side]
        report["taken"] += len(taken)
        report["disturbed"] += sum(sample["others"] > DISTURBED for sample in taken)
        report["load_after"] = os.getloadavg()
        for path, text in ((options.json, json.dumps(report, indent=1) + "\n"),
                           (options.markdown, peer_report.markdown(report)), (options.svg, peer_report.svg(report))):
            if path:
                path.write_text(text)
    print(peer_report.markdown(report), end="")


if __name__ == "__main__":
    main()
