#!/usr/bin/env python3
"""Writes the tokenizer vectors of tests/data/tokenizer with the packages that define what is right: `tokenizers` for
byte-level BPE and for merges over characters, `sentencepiece` for merges by score.

    tokenizer_vectors.py --tool TEXT_TOOL --json TOKENIZER_JSON GGUF --corpus TEXT [--out tests/data/tokenizer]

The GGUF file is one made from TOKENIZER_JSON; its vocabulary is copied. The other two vocabularies are trained here on
the corpus, any few hundred kilobytes of text.
"""

import argparse
import io
import json
import os
import random
import subprocess

import environment  # says what to run where the packages below are missing

import sentencepiece
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from tokenizer_text import RUNS, document

EDGES = [
    "",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    " \n",
    "\n ",
    "\t",
    " \t\n\r\n ",
    "a",
    " a",
    "  a",
    "a ",
    "a  ",
    "a  b",
    "a\n\nb",
    "a \n b",
    "Hello world",
    " Hello, y'all! How are you?",
    "I'VE we'LL it's 's 'S '\u017f '\u017fx 'st ''s",
    "don't DON'T don\u2019t",
    "1",
    "12",
    "123",
    "1234",
    "12345",
    "1234567",
    "x1234567y",
    "1,234,567.89",
    "\u0661\u0662\u0663\u0664",
    "\u00bd\u00b2\u2167",
    "1\u00bd2\u00b2",
    "4\u00b2 12345\u00b9",
    "1234 12345_ 123456\u2460",
    "!!!",
    " !!!\n\n",
    "!\n",
    "!/\n",
    "a/b",
    "...\r\n\r\nx",
    "\r\n",
    "\r",
    "\u00a0",
    "\u3000x",
    "\u0085",
    "x\u2028y",
    "A\u0301",
    "e\u0301\u0323x",
    "\u0301",
    " \u0301a",
    "\u1100\u1161\u11a8",
    "\uac00\u11a8",
    "\u212b \u2126 \uf900",
    "\u4e2d\u6587",
    "\u6211\u60f3\u5728apple\u5de5\u4f5c",
    "\u3053\u3093\u306b\u3061\u306f",
    "\uff01\uff1f",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f44d\U0001f3fd",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U00020000\U0002f800",
    "\x00",
    "\x00\x01\x7f",
    "\ufffd",
    "\U0010ffff",
    "CamelCaseWORDSandMore",
    "\u01c5\u02b0\u4e2dA\u0300b",
    "<sentinel:12><sentinel:x>IMGIMGABCDZ",
    "<|im_start|>user\nhi<|im_end|>",
    "<s> hello",
    "<s>hello",
    "</s>  x",
    "\u2581x \u2581",
    "a" * 200,
    " " * 600 + "x",
    "\n" * 70,
    "7" * 50,
    "\u4e2d" * 40,
]


def texts(count, seed):
    rng = random.Random(seed)
    return EDGES + [piece * 33 for piece in RUNS] + [document(rng, rng.randrange(5, 160)) for _ in range(count)]


def write_vectors(path, sections, note):
    """sections: (header, texts, lists of numbers)."""
    with open(path, "w") as file:
        file.write(f"# {note}\n# Written by scripts/oracle/tokenizer_vectors.py. Texts are in hexadecimal.\n")
        for header, strings, numbers in sections:
            file.write(header + "\n")
            for text, row in zip(strings, numbers):
                file.write(text.encode().hex() + ":" + "".join(f" {n}" for n in row) + "\n")


def writer(path, model, **keys):
    out = GGUFWriter(path, "llama")
    out.add_tokenizer_model(model)
    for key, value in keys.items():
        key = "tokenizer.ggml." + key
        if isinstance(value, list):
            out.add_array(key, value)
        elif isinstance(value, bool):
            out.add_bool(key, value)
        elif isinstance(value, int):
            out.add_uint32(key, value)
        else:
            out.add_string(key, value)
    return out


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.close()


def pieces(tool, out):
    """Sizes of pieces; pre-tokenizers with the same steps share a section."""
    strings = texts(120, 7)
    groups = {}
    for line in subprocess.run([tool, "patterns"], check=True, capture_output=True, text=True).stdout.splitlines():
        name, _, *steps = line.split("\t")
        if r"(?=(\d{3})+(?!\d))" not in steps:  # empty matches: the package does not cut there
            groups.setdefault(tuple(steps), []).append(name)
    sections = []
    for steps, names in groups.items():
        splitter = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(step), "isolated") for step in steps])
        rows = [[len(p.encode()) for p, _ in splitter.pre_tokenize_str(text)] for text in strings]
        sections.append(("pre " + " ".join(names), strings, rows))
    # The texts are the same everywhere and stand in the first section only.
    with open(os.path.join(out, "pieces.vectors"), "w") as file:
        file.write(
            "# Sizes in bytes of the pieces that each pre-tokenizer cuts a text into.\n"
            "# Written by scripts/oracle/tokenizer_vectors.py: texts in hexadecimal, then a line a text each.\n"
        )
        for text in strings:
            file.write("text " + text.encode().hex() + "\n")
        for header, _, rows in sections:
            file.write(header + "\n")
            for row in rows:
                file.write(" ".join(map(str, row)) + "\n")


def byte_level(json_path, gguf_path, out):
    fields = GGUFReader(gguf_path).fields
    target = GGUFWriter(os.path.join(out, "bpe.gguf"), "llama")
    for key, field in fields.items():
        if not key.startswith("tokenizer.ggml."):
            continue
        kinds = field.types
        if kinds[0] == GGUFValueType.ARRAY:
            strings = kinds[-1] == GGUFValueType.STRING
            values = [bytes(field.parts[i]) if strings else field.parts[i][0].item() for i in field.data]
            target.add_array(key, values)
        else:
            target.add_key_value(key, field.contents(), kinds[0])
    finish(target)
    tokenizer = Tokenizer.from_file(json_path)
    strings = texts(150, 8)
    plain = [tokenizer.encode(text).ids for text in strings]
    tokenizer.encode_special_tokens = True
    no_special = [tokenizer.encode(text).ids for text in strings]
    tokenizer.encode_special_tokens = False
    tokenizer.normalizer = normalizers.NFC()
    nfc = [tokenizer.encode(text).ids for text in strings]
    write_vectors(
        os.path.join(out, "bpe.vectors"),
        [
            ("nfc=0 special=1", strings, plain),
            ("nfc=0 special=0", strings, no_special),
            ("nfc=1 special=1", strings, nfc),
        ],
        "Ids of bpe.gguf.",
    )


def merges_by_score(corpus, out):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus.splitlines()),
        model_writer=model,
        vocab_size=1000,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.99,
        allow_whitespace_only_pieces=True,
        minloglevel=2,
    )
    spm = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    size = spm.get_piece_size()
    kind = [2 if spm.is_unknown(i) else 3 if spm.is_control(i) else 6 if spm.is_byte(i) else 1 for i in range(size)]
    finish(
        writer(
            os.path.join(out, "spm.gguf"),
            "llama",
            tokens=[spm.id_to_piece(i) for i in range(size)],
            scores=[spm.get_score(i) for i in range(size)],
            token_type=kind,
            bos_token_id=spm.bos_id(),
            eos_token_id=spm.eos_id(),
            unknown_token_id=spm.unk_id(),
        )
    )
    strings = [text for text in texts(150, 9) if text and "\0" not in text]
    write_vectors(
        os.path.join(out, "spm.vectors"),
        [("special=0", strings, [spm.encode(text) for text in strings])],
        "Ids of spm.gguf.",
    )


def merges_over_characters(corpus, out):
    names = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\n", "\n\n", "\n\n\n"]
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "\u2581")
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex("\n+"), "removed"), pre_tokenizers.Split("\u2581", "merged_with_next")]
    )
    trained.train_from_iterator(corpus.splitlines(), trainers.BpeTrainer(vocab_size=700, show_progress=False))
    learnt = json.loads(trained.to_str())["model"]
    tokens = names + [t for t, _ in sorted(learnt["vocab"].items(), key=lambda item: item[1]) if t not in names]
    merges = [tuple(m) for m in learnt["merges"]] + [("\n", "\n"), ("\n\n", "\n")]
    for n in (2, 4, 8):  # runs of spaces
        tokens.append("\u2581" * n)
        merges.append(("\u2581" * (n // 2),) * 2)
    tokenizer = Tokenizer(
        models.BPE(
            {t: i for i, t in enumerate(tokens)}, merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("\n+"), "isolated")
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in names[:4]])
    kinds = [3, 3, 3, 2] + [6] * 256 + [1] * (len(tokens) - 260)
    finish(
        writer(
            os.path.join(out, "raw.gguf"),
            "gemma4",
            tokens=tokens,
            token_type=kinds,
            merges=[" ".join(m) for m in merges],
            scores=[-1000.0] * len(tokens),
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=2,
            unknown_token_id=3,
            add_bos_token=True,
            add_space_prefix=False,
        )
    )
    strings = texts(150, 10)
    write_vectors(
        os.path.join(out, "raw.vectors"),
        [("special=1", strings, [tokenizer.encode(text).ids for text in strings])],
        "Ids of raw.gguf.",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--json", nargs=2, required=True, metavar=("TOKENIZER_JSON", "GGUF"))
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", default="tests/data/tokenizer")
    args = parser.parse_args()
    corpus = open(args.corpus, encoding="utf-8").read()
    pieces(args.tool, args.out)
    byte_level(*args.json, args.out)
    merges_by_score(corpus, args.out)
    merges_over_characters(corpus, args.out)


main()
