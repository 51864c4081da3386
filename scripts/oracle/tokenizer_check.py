#!/usr/bin/env python3
"""Holds Hearth's tokenizer against the Hugging Face `tokenizers` package, id for id, on megabytes of difficult text,
and against the ids recorded with the vocabularies of the llama-cpp-python source package.

    tokenizer_check.py [--tool build/release/tests/text_tool] [--size BYTES] [--seed N]
                       [--json TOKENIZER_JSON GGUF]... [--gguf GGUF]... [--recorded FOLDER] [--pieces]

--json      a model's own tokenizer.json and a GGUF file made from it
--gguf      a GGUF file; the reference is put together from its vocabulary and the known parts of the model's tokenizer
--recorded  the folder with ggml-vocab-*.gguf, .inp and .out
--pieces    every pre-tokenizer's pieces against the same expressions in the package's regex engine

Needs the Python packages tokenizers, transformers and gguf. Exit status 1 when anything differs.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

import environment  # says what to run where the packages below are missing

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tokenizer_text import documents

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
IGNORE_MERGES, ADD_BOS, NO_BOS, NFC, RAW = 1, 2, 4, 8, 16
DIGIT_EXPRESSION = r"(?=(\d{3})+(?!\d))"


# ---- Hearth ----


class Tool:
    def __init__(self, path):
        self.path = path
        self.rows = {}
        for line in subprocess.run(
            [path, "patterns"], check=True, capture_output=True, text=True
        ).stdout.splitlines():
            name, flags, *steps = line.split("\t")
            self.rows[name] = (int(flags), steps)

    def run(self, verb, first, texts, *options):
        """Records (lists of numbers) for texts given as bytes, and what the tool reports."""
        with tempfile.TemporaryDirectory() as folder:
            source, result = os.path.join(folder, "in"), os.path.join(folder, "out")
            with open(source, "wb") as file:
                for text in texts:
                    file.write(struct.pack("<I", len(text)) + text)
            done = subprocess.run(
                [self.path, verb, first, source, result, *options], capture_output=True, text=True
            )
            if done.returncode != 0:
                raise SystemExit(f"{first}: {done.stderr.strip()}")
            data = open(result, "rb").read()
        records, at = [], 0
        while at < len(data):
            (count,) = struct.unpack_from("<I", data, at)
            records.append(list(struct.unpack_from(f"<{count}i", data, at + 4)))
            at += 4 + 4 * count
        return records, json.loads(done.stdout) if done.stdout else None


# ---- references ----


class Vocabulary:
    """What a GGUF file says of its tokenizer."""

    def __init__(self, path):
        from gguf import GGUFReader

        fields = GGUFReader(path).fields

        def value(key, default=None):
            field = fields.get("tokenizer.ggml." + key)
            if field is None:
                return default
            if field.types[0].name != "ARRAY":
                return field.contents()
            if field.types[-1].name == "STRING":
                return [bytes(field.parts[i]).decode("utf-8", "replace") for i in field.data]
            return [field.parts[i][0].item() for i in field.data]

        self.model = value("model")
        self.pre = value("pre", "default")
        self.tokens = value("tokens")
        self.types = value("token_type") or [NORMAL] * len(self.tokens)
        self.merges = value("merges")
        self.scores = value("scores")


def with_added(tokenizer, vocab):
    """Special tokens as the model's tokenizer has them: matched in the raw text."""
    for token, kind in zip(vocab.tokens, vocab.types):
        if kind in (CONTROL, UNKNOWN):
            tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
        elif kind == USER:
            tokenizer.add_tokens([AddedToken(token, special=False, normalized=False)])
    return tokenizer


def splits(steps):
    return [pre_tokenizers.Split(Regex(step), "isolated") for step in steps]


def byte_level(vocab, flags, steps):
    merges = [tuple(merge.split(" ", 1)) for merge in vocab.merges]
    ids = {token: i for i, token in enumerate(vocab.tokens) if vocab.types[i] != UNUSED}
    tokenizer = Tokenizer(models.BPE(ids, merges, ignore_merges=bool(flags & IGNORE_MERGES)))
    if flags & NFC:
        tokenizer.normalizer = normalizers.NFC()
    if vocab.pre in ("smollm", "starcoder", "refact", "command-r"):
        # As these models' files put it: no expression of ours in it.
        parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    elif vocab.pre in ("gpt-2", "mpt", "olmo", "phi-2"):
        parts = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    else:
        parts = splits(steps) + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    tokenizer.decoder = decoders.ByteLevel()
    return with_added(tokenizer, vocab)


def sentencepiece(vocab):
    """Gemma 2 and 3: merges in the order of scores, as the model's converter lists them. User-defined tokens, runs of
    spaces among them, are found first, as sentencepiece does; transformers' own reader of GGUF files builds a unigram
    model instead, which these vocabularies are not."""
    ids = {token: i for i, token in enumerate(vocab.tokens) if vocab.types[i] != UNUSED}
    mergeable = {token for token, i in ids.items() if vocab.types[i] in (NORMAL, USER)}
    merges = []
    for token in mergeable:
        if vocab.types[ids[token]] == NORMAL:
            splits_of = ((token[:i], token[i:]) for i in range(1, len(token)))
            merges += [
                (-vocab.scores[ids[token]], ids[a], ids[b], a, b)
                for a, b in splits_of
                if a in mergeable and b in mergeable
            ]
    merges.sort()
    tokenizer = Tokenizer(
        models.BPE(ids, [m[3:] for m in merges], byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    )
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return with_added(tokenizer, vocab)


def gemma4(vocab):
    ids = {t: i for i, t in enumerate(vocab.tokens)}
    merges = [tuple(merge.split(" ", 1)) for merge in vocab.merges]
    tokenizer = Tokenizer(models.BPE(ids, merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("\n+"), "isolated")
    return with_added(tokenizer, vocab)


def reference(vocab, rows):
    if vocab.model == "llama":
        return sentencepiece(vocab)
    if vocab.model == "gemma4":
        return gemma4(vocab)
    return byte_level(vocab, *rows[vocab.pre])


# ---- comparisons ----


def difference(text, ours, theirs, tokenizer):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    ours, theirs = ours[max(at - 3, 0) : at + 6], theirs[max(at - 3, 0) : at + 6]
    name = tokenizer.id_to_token
    return (
        f"    at id {at} of {len(text)} bytes: ours {[name(i) for i in ours]} {ours}\n"
        f"    theirs {[name(i) for i in theirs]} {theirs}"
    )


def compare(tool, name, gguf, tokenizer, args, options=()):
    specials = [t.content for t in tokenizer.get_added_tokens_decoder().values()][:300]
    texts = list(documents(args.seed, args.size, specials))
    data = [text.encode() for text in texts]
    failed = 0
    for special in (True, False):
        ours, report = tool.run("ids", gguf, data, *options, *(["special"] if special else []))
        tokenizer.encode_special_tokens = not special
        theirs, seconds = [], 0.0
        for text in texts:
            start = time.process_time()
            encoding = tokenizer.encode(text, add_special_tokens=False)
            seconds += time.process_time() - start
            theirs.append(encoding.ids)
        wrong = [i for i in range(len(texts)) if ours[i] != theirs[i]]
        size = sum(map(len, data))
        print(
            f"{name}{'' if special else ' (no special)'}: {len(texts)} documents, {size} bytes, "
            f"{sum(map(len, theirs))} ids, {len(wrong)} documents differ; open {report['open_ms']:.1f} ms, "
            f"encode {size / report['encode_s'] / 1e6:.1f} MB/s against {size / seconds / 1e6:.2f}: "
            f"{seconds / report['encode_s']:.1f} times",
            flush=True,
        )
        for i in wrong[: args.show]:
            print(difference(data[i], ours[i], theirs[i], tokenizer))
        failed += len(wrong)
    return failed


def check_recorded(tool, folder):
    """Exactly the vocabularies with recorded ids that are of a supported kind."""
    failed = passed = 0
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        if not file.endswith(".gguf") or not os.path.exists(path + ".inp"):
            continue
        texts = open(path + ".inp", "rb").read().split(b"\n__ggml_vocab_test__\n")
        wanted = [[int(i) for i in line.split()] for line in open(path + ".out")]
        texts = texts[: len(wanted)]  # a separator at the end begins no text
        if Vocabulary(path).model == "bert":
            done = subprocess.run([tool.path, "ids", path, os.devnull, os.devnull], capture_output=True, text=True)
            print(f"{file}: refused: {done.stderr.strip()}")
            failed += "bert" not in done.stderr
            continue
        ours, _ = tool.run("ids", path, texts, "nfc=0")
        wrong = [i for i, text in enumerate(texts) if i >= len(wanted) or ours[i] != wanted[i]]
        print(f"{file}: {len(texts)} recorded texts, {len(wrong)} differ")
        for i in wrong[:3]:
            print(f"    {texts[i]!r}: ours {ours[i]} recorded {wanted[i] if i < len(wanted) else None}")
        failed += len(wrong)
        passed += not wrong
    print(f"{passed} vocabularies equal")
    return failed


def check_pieces(tool, args):
    failed = 0
    texts = list(documents(args.seed, args.size // 4, run=20_000))
    for name, (_, steps) in tool.rows.items():
        if DIGIT_EXPRESSION in steps:
            continue  # matches nothing at all places: the package's splitter does not cut at empty matches
        ours, _ = tool.run("pieces", name, [text.encode() for text in texts])
        reference_splits = pre_tokenizers.Sequence(splits(steps))
        wrong = 0
        for text, sizes in zip(texts, ours):
            theirs = [len(piece.encode()) for piece, _ in reference_splits.pre_tokenize_str(text)]
            if theirs != sizes:
                if wrong == 0:
                    at = next(i for i, (a, b) in enumerate(zip(sizes + [0], theirs + [0])) if a != b)
                    print(
                        f"    {name}: at piece {at}: ours {sizes[at:at + 5]} theirs {theirs[at:at + 5]}: "
                        f"{text.encode()[sum(theirs[:at]):][:60]!r}"
                    )
                wrong += 1
        print(f"pieces of {name}: {len(texts)} documents, {wrong} differ", flush=True)
        failed += wrong
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/release/tests/text_tool")
    parser.add_argument("--size", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--json", nargs=2, action="append", default=[], metavar=("TOKENIZER_JSON", "GGUF"))
    parser.add_argument("--gguf", action="append", default=[])
    parser.add_argument("--recorded")
    parser.add_argument("--pieces", action="store_true")
    args = parser.parse_args()
    tool = Tool(args.tool)
    failed = 0
    if args.recorded:
        failed += check_recorded(tool, args.recorded)
    for path, gguf in args.json:
        tokenizer = Tokenizer.from_file(path)
        has_nfc = "NFC" in json.dumps(json.load(open(path))["normalizer"])
        failed += compare(tool, path, gguf, tokenizer, args, [f"nfc={int(has_nfc)}"])
    for gguf in args.gguf:
        failed += compare(tool, os.path.basename(gguf), gguf, reference(Vocabulary(gguf), tool.rows), args)
    if args.pieces:
        failed += check_pieces(tool, args)
    sys.exit(1 if failed else 0)


main()
