#!/usr/bin/env python3
"""Prefill and decode rates of hearth and of llama.cpp's llama-bench, interleaved: same file, same threads, one after
the other in each round, so that both meet the same weather. Prints medians and their ratio.

Models are names in the cache (scripts/fetch_models.sh fetches them) or paths of GGUF files; default: all in the cache.
The peer is the one that scripts/build_peer.sh built.

Weather: for each sample the share of the machine that other processes (and, on a virtual machine, its host) took
meanwhile is recorded; a sample with more than a tenth is marked. Medians are over all samples; rerun when many are
marked.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISTURBED = 0.10
TICKS = os.sysconf("SC_CLK_TCK")
MEASURES = ("prefill", "decode")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HEARTH_CACHE") or Path(base) / "hearth")


def peer_program():
    where = subprocess.run([ROOT / "scripts/build_peer.sh", "--where"], capture_output=True, text=True, check=False)
    if where.returncode:
        sys.exit("peer.py: the peer is not built; scripts/build_peer.sh builds it (about 15 minutes)")
    return Path(where.stdout.strip()) / "llama-bench"


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


def sample_ours(options, model):
    command = [options.hearth, "bench", "-m", model, "--prompt", str(options.prompt), "--gen", str(options.gen),
               "--threads", str(options.threads), "--json"]
    output, others = run(command)
    report = json.loads(output)
    return {"prefill": report["prefill_tokens_per_s"], "decode": report["decode_tokens_per_s"], "others": others}


def sample_theirs(options, model):
    command = [options.peer, "-m", model, "-p", str(options.prompt), "-n", str(options.gen),
               "-t", str(options.threads), "-r", "1", "-o", "json"]
    output, others = run(command)
    sample = {"others": others}
    for test in json.loads(output):
        sample["prefill" if test["n_prompt"] else "decode"] = test["avg_ts"]
    return sample


def measure(options, model):
    """Medians of both sides for one model, and how many samples were disturbed."""
    samples = {"hearth": [], "llama.cpp": []}
    for i in range(options.rounds):
        for side, take in (("hearth", sample_ours), ("llama.cpp", sample_theirs)):
            sample = take(options, model)
            samples[side].append(sample)
            mark = "  disturbed" if sample["others"] > DISTURBED else ""
            print(f"  round {i + 1} {side:10} prefill {sample['prefill']:8.1f}  decode {sample['decode']:7.2f}"
                  f"  others {sample['others']:4.0%}{mark}", file=sys.stderr)
    row = {"model": model.stem, "bytes": model.stat().st_size, "samples": samples}
    row["disturbed"] = sum(s["others"] > DISTURBED for side in samples.values() for s in side)
    for name in MEASURES:
        ours, theirs = (statistics.median(s[name] for s in samples[side]) for side in ("hearth", "llama.cpp"))
        row[name] = {"hearth": ours, "llama.cpp": theirs, "ratio": ours / theirs}
    return row


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


def table(report):
    lines = ["| model | | hearth | llama.cpp | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    for row in report["models"]:
        for name, count in (("prefill", report["prompt"]), ("decode", report["gen"])):
            value = row[name]
            lines.append(f"| {row['model']} | {name} {count} | {value['hearth']:.1f} | {value['llama.cpp']:.1f} "
                         f"| {value['ratio']:.2f} |")
    return "\n".join(lines)


def svg(report):
    """Ratios as bars: 1.0 is the peer."""
    bars = [(f"{row['model']} {name}", row[name]) for row in report["models"] for name in MEASURES]
    step, left, unit, top = 26, 260, 220, 56
    width = left + int(unit * max(2.0, *(value["ratio"] for _, value in bars))) + 190
    height = top + step * len(bars) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="13"><rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="12" y="22" font-size="15">Hearth against llama.cpp, tokens per second (1.0: the same)</text>',
           f'<text x="12" y="40" fill="#555">{report["cpu"]}, {report["threads"]} threads, {report["rounds"]} rounds, '
           f'commit {report["commit"]}</text>']
    for i, (label, value) in enumerate(bars):
        y = top + step * i
        color = "#c2571a" if label.endswith("decode") else "#e3a35b"
        out.append(f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{label}</text>'
                   f'<rect x="{left}" y="{y + 2}" width="{unit * value["ratio"]:.0f}" height="17" fill="{color}"/>'
                   f'<text x="{left + unit * value["ratio"] + 6:.0f}" y="{y + 15}">{value["ratio"]:.2f}'
                   f' ({value["hearth"]:.1f} : {value["llama.cpp"]:.1f})</text>')
    out.append(f'<line x1="{left + unit}" y1="{top - 6}" x2="{left + unit}" y2="{height - 24}" stroke="#333" '
               f'stroke-dasharray="4 3"/></svg>')
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--gen", type=int, default=128)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--hearth", default=ROOT / "build/release/hearth", help="the program to measure")
    parser.add_argument("--json", type=Path, help="write everything measured")
    parser.add_argument("--svg", type=Path, help="write a picture of the ratios")
    options = parser.parse_args()
    options.peer = peer_program()
    models = []
    for name in options.models:
        models.append(Path(name) if name.endswith(".gguf") else cache() / "models" / f"{name}.gguf")
    models = models or sorted((cache() / "models").glob("*.gguf"), key=lambda path: path.stat().st_size)
    if not models:
        sys.exit("peer.py: no model in the cache; scripts/fetch_models.sh fetches one")

    report = {"cpu": processor(), "threads": options.threads, "rounds": options.rounds, "prompt": options.prompt,
              "gen": options.gen, "commit": commit(), "load_before": os.getloadavg(), "models": []}
    for model in models:
        print(f"{model.stem}:", file=sys.stderr)
        report["models"].append(measure(options, model))
    report["load_after"] = os.getloadavg()

    disturbed = sum(row["disturbed"] for row in report["models"])
    print(f"{report['cpu']}, {options.threads} threads, {options.rounds} rounds, commit {report['commit']}")
    print(f"load average {report['load_before'][0]:.2f} before, {report['load_after'][0]:.2f} after; "
          f"{disturbed} of {2 * options.rounds * len(models)} samples disturbed by others")
    print(table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if options.svg:
        options.svg.write_text(svg(report))


if __name__ == "__main__":
    main()
