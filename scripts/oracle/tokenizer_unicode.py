#!/usr/bin/env python3
"""Writes src/text/unicode_table.c: the general category of every code point, as the regex engine inside the Hugging
Face `tokenizers` package sees it.

Pre-tokenizers are defined by what that engine does, so the table is taken from it, code point by code point, and
frozen in the source: ids do not change with the Unicode version of a system library. Run it again when the package
moves to a newer Unicode version.

    tokenizer_unicode.py > src/text/unicode_table.c
"""

import sys

import environment  # says what to run where the packages below are missing

from tokenizers import Regex, __version__, pre_tokenizers

CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
SURROGATES = range(0xD800, 0xE000)
BLOCK = 128
CHUNK = 4096


def members(pattern):
    """The code points that `pattern`, a class, matches."""
    split = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed")
    points = [c for c in range(0x110000) if c not in SURROGATES]
    found = []
    for start in range(0, len(points), CHUNK):
        part = points[start : start + CHUNK]
        kept = set()
        for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, part))):
            kept.update(range(begin, end))
        found += [c for i, c in enumerate(part) if i not in kept]
    return found


def rows(values, width):
    text = ""
    line = "   "
    for value in values:
        item = f" {value},"
        if len(line) + len(item) > width:
            text += line + "\n"
            line = "   "
        line += item
    return text + line + "\n"


def main():
    category = [0] * 0x110000
    for index, name in enumerate(CATEGORIES):
        for c in SURROGATES if name == "Cs" else members(rf"\p{{{name}}}"):
            category[c] = index
    blocks, stage1 = {}, []
    for start in range(0, len(category), BLOCK):
        stage1.append(blocks.setdefault(tuple(category[start : start + BLOCK]), len(blocks)))
    print("/* General categories in two stages; see unicode.h. Written by scripts/oracle/tokenizer_unicode.py from")
    print(f" * tokenizers {__version__}; not edited by hand. */")
    print('#include "text/unicode.h"\n')
    print("// clang-format off")
    print(f"const uint16_t hth_category_block[{len(stage1)}] = {{")
    print(rows(stage1, 118), end="")
    print("};\n")
    print(f"const char hth_category_table[{len(blocks)}][HTH_CATEGORY_BLOCK] = {{")
    for block in blocks:
        letters = "".join(chr(ord("0") + value) for value in block)
        print(f'    "{letters[:64]}"\n    "{letters[64:]}",')
    print("};")
    print("// clang-format on")


main()
