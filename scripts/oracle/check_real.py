#!/usr/bin/env python3
"""Holds Hearth and llama.cpp against transformers on real models: mean KL divergence and top-1 agreement with the
float32 model of the dequantized weights, and perplexity, on the same English text in chunks of 512 tokens.

usage: check_real.py [NAME ...] [--hearth PROGRAM] [--bytes N] [--threads N] [--option WORD ...]
NAME as in fetch_models.sh (default: all that are in the cache). Limits: KL at most 1.05 x llama.cpp's, top token at
most 0.3 points less often the same, perplexity within 0.3 %. Rounding activations to int8 is noise: the standard error
of its share in the perplexity is printed, and only a text that makes it small against 0.3 % can judge.
What transformers and llama.cpp compute is kept in <cache>/oracle (some GB); without Hearth's program only that part
runs.
"""
import argparse
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import environment  # says what to run where the packages below are missing

import numpy as np

import common
import english_text
import gguf_hf
import kld
from fetch_models import MODELS, cache_dir

ROOT = Path(__file__).resolve().parent.parent.parent
CTX = 512
KL_FACTOR, TOP_POINTS, PERPLEXITY_SHARE = 1.05, 0.3, 0.003


def peer_tool(name):
    script = ROOT / "scripts/build_peer.sh"
    found = subprocess.run([str(script), "--where"], capture_output=True, text=True)
    if found.returncode != 0:
        raise SystemExit(f"check_real: llama.cpp's tools are not built: run {script}")
    return str(Path(found.stdout.strip()) / name)


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name}: exit status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done


def text_prefix(size):
    """The first `size` bytes of the text, to the end of a line, as a file of its own."""
    whole = english_text.ensure().read_bytes()
    path = cache_dir() / "text" / f"english-{size}.txt"
    path.write_bytes(whole if size >= len(whole) else whole[:whole.rindex(b"\n", 0, size) + 1])
    return path


def tokenize(model, text):
    output = run([peer_tool("llama-tokenize"), "-m", model, "-f", text, "--ids", "--no-parse-special",
                  "--log-disable"]).stdout
    return json.loads(output[output.rindex("["):output.rindex("]") + 1])


def with_bos(tokens, bos):
    return list(map(int, tokens)) if bos is None else [bos, *map(int, tokens[1:])]


def bos_of(file):
    """The id that starts each chunk, or None. Without the key a SentencePiece vocabulary has it and others have not."""
    add = file.meta("tokenizer.ggml.add_bos_token", file.meta("tokenizer.ggml.model") == "llama")
    return int(file.meta("tokenizer.ggml.bos_token_id", 1)) if add else None


def make_reference(path, model, text):
    file = gguf_hf.Gguf(model)
    bos = bos_of(file)
    tokens = tokenize(model, text)
    hf = gguf_hf.load_gguf(model)
    scratch = path.with_suffix(".part")
    writer = kld.Writer(scratch, CTX, hf.config.vocab_size, tokens)
    chunks = len(tokens) // CTX
    for i in range(chunks):
        print(f"\r{path.name}: chunk {i + 1}/{chunks}", end="", file=sys.stderr, flush=True)
        rows = gguf_hf.logits(hf, with_bos(tokens[i * CTX:(i + 1) * CTX], bos))
        writer.add(rows[kld.scored(CTX)])
    print(file=sys.stderr)
    writer.close()
    scratch.rename(path)


def measure_peer(model, reference, threads):
    done = run([peer_tool("llama-perplexity"), "-m", model, "-c", CTX, "-t", threads, "--kl-divergence",
                "--kl-divergence-base", reference])
    output = done.stdout + done.stderr

    def number(pattern):
        return float(re.search(pattern + r"\s*:\s*([-\d.]+)", output).group(1))

    return {"kl": number("Mean +KLD"), "top": number("Same top p"), "ppl": number(r"Mean PPL\(Q\)"),
            "reference_ppl": number(r"Mean PPL\(base\)")}


def measure_hearth(args, model, reference, text):
    base = kld.Reader(reference)
    bos = bos_of(gguf_hf.Gguf(model))
    parts = []
    for i in range(base.n_chunk):
        print(f"\rhearth: chunk {i + 1}/{base.n_chunk}", end="", file=sys.stderr, flush=True)
        rows = common.hearth_logits(args.hearth, model, with_bos(base.tokens[i], bos), *args.option)
        parts.append(base.compare(i, rows[kld.scored(CTX)]))
    print(file=sys.stderr)
    divergence, same, nll = (np.concatenate(column) for column in zip(*parts))
    report = json.loads(run([args.hearth, "eval", "-m", model, "-f", text, "--ctx", CTX, "--json",
                             *args.option]).stdout)
    return {"kl": divergence.mean(), "top": 100 * same.mean(), "ppl": report["perplexity"],
            "ppl of its logits": math.exp(nll.mean()), "noise": nll_noise(base, nll)}


def nll_noise(base, nll):
    """Standard error of the mean difference between our and the reference's negative log-likelihood. The reference's is
    bounded below in the file: where it is at the bound, the difference says nothing."""
    reference = np.concatenate([base.nll(i) for i in range(base.n_chunk)])
    difference = (nll - reference)[reference < 16]
    return difference.std() / math.sqrt(len(difference))


def cached(path, make):
    if not path.is_file():
        path.write_text(json.dumps(make()) + "\n")
    return json.loads(path.read_text())


def verdicts(ours, peer):
    yield "KL", ours["kl"] / peer["kl"], f"<= {KL_FACTOR} x", ours["kl"] <= KL_FACTOR * peer["kl"]
    yield "top", ours["top"] - peer["top"], f">= -{TOP_POINTS} points", ours["top"] >= peer["top"] - TOP_POINTS
    share = ours["ppl"] / peer["ppl"] - 1
    yield "perplexity", 100 * share, f"within {100 * PERPLEXITY_SHARE} %", abs(share) <= PERPLEXITY_SHARE
    share = ours["ppl of its logits"] / ours["ppl"] - 1
    yield "eval against logits", 100 * share, "within 0.02 %", abs(share) <= 0.0002


def line(who, measured):
    return (f"  {who:10} KL {measured['kl']:.6f}  same top {measured['top']:.3f} %  "
            f"perplexity {measured['ppl']:.4f}")


def check(name, args, text):
    model = cache_dir() / "models" / f"{name}.gguf"
    store = cache_dir() / "oracle"
    store.mkdir(parents=True, exist_ok=True)
    reference = store / f"{name}-{args.bytes}.kld"
    if not reference.is_file():
        make_reference(reference, model, text)
    peer = cached(reference.with_suffix(".peer.json"), lambda: measure_peer(model, reference, args.threads))
    print(f"{name}: transformers perplexity {peer['reference_ppl']:.4f}")
    print(line("llama.cpp", peer), flush=True)
    if not args.hearth.is_file():
        print(f"  hearth     not measured: no {args.hearth.name} at the place given")
        return True
    ours = measure_hearth(args, model, reference, text)
    print(line("hearth", ours) + f"  noise of its logarithm {100 * ours['noise']:.3f} %")
    good = True
    for what, value, limit, ok in verdicts(ours, peer):
        print(f"    {what:20} {value:+8.3f}  {limit:16} {'ok' if ok else 'FAILED'}", flush=True)
        good &= ok
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(MODELS))
    parser.add_argument("--hearth", type=Path, default=ROOT / "build/release/hearth")
    parser.add_argument("--bytes", type=int, default=32768, help="how much of the text (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp (default: %(default)s)")
    parser.add_argument("--option", action="append", default=[], help="one more word for hearth")
    args = parser.parse_args()
    names = args.names or [name for name in MODELS if (cache_dir() / "models" / f"{name}.gguf").is_file()]
    text = text_prefix(args.bytes)
    failed = [name for name in names if not check(name, args, text)]
    if failed:
        print(f"failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
