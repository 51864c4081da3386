"""Text that makes tokenizers stumble: scripts, code, emoji sequences, marks in and out of order, control characters,
long runs. Always valid Unicode. The same seed gives the same text."""

import random
import unicodedata

WORDS = {
    "latin": "the of and Hello WORLD tokenizer naïve façade Straße œuvre İstanbul ﬁne "
    "don't we'll I'VE it'ſ ſ'S rock'n'roll",
    "vietnamese": "Cửa Việt không được những người Nguyễn ngoằn ngoèo",
    "cyrillic": "нещо на Български Ёлка ёж й Й съешь ещё этих мягких французских булок",
    "greek": "Ὀδυσσεύς ἄνδρα μοι ἔννεπε ΜΟΥΣΑ Ά ΐ ΰ",
    "arabic": "السَّلَامُ عَلَيْكُمْ كتاب ١٢٣ ۴۵۶",
    "hebrew": "שָׁלוֹם עוֹלָם ספר",
    "devanagari": "नमस्ते दुनिया क़ ख़ ग़ १२३ क्षत्रिय",
    "bengali": "বাংলা ভাষা কো কৌ ড় ঢ়",
    "tamil": "தமிழ் கொ கௌ",
    "thai": "สวัสดีชาวโลก ๑๒๓ ภาษาไทย",
    "khmer": "កាន់តែពិសេសអាចខលចេញ",
    "myanmar": "မင်္ဂလာပါ ၁၂၃",
    "tibetan": "བོད་སྐད ༢༠",
    "georgian": "გამარჯობა ᲒᲐᲛᲐᲠᲯᲝᲑᲐ",
    "hangul": "안녕하세요 세계 한국어 ㄱㄴㄷ",
    "kana": "こんにちは カタカナ ガギグ ﾊﾟｶﾞ ー々〆",
    "han": "我想在apple工作1314151天～ 中文字符 漢字 豈更車 𠀀𠮷𪚥",
    "punctuation": "… — – “quoted” ‘single’ «guillemets» ¿qué? ¡no! 、。，！？（）【】《》 § ¶ † ‡ ‰ ′ ″ ※",
    "symbols": "€ £ ¥ ₿ © ® ™ ° ± × ÷ ≠ ≤ ≥ ∞ ∑ √ ∫ → ⇒ ⟶ ∀x∈ℝ Å Å Ω Ω ﬃ ㎏ ½ ² ⅷ ① ⑩",
    "emoji": "😀 👍🏽 👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 🇩🇪🇯🇵 😶\u200d🌫️ ❤️ ✅ 🧑🏿\u200d🚀 #️⃣ 🫠",
}
CODE = [
    "for (int i = 0; i < n; ++i) {\n\tx[i] += y[i] * 0x1F;\n}\n",
    "def f(self, *args, **kw):\n    return {k: v for k, v in kw.items() if v is not None}\n\n\n",
    "<div class=\"a b\">&nbsp;<a href='https://x.org/?q=1&r=%20'>t</a></div>\r\n",
    "SELECT * FROM t WHERE a >= 10.5e-3 AND b LIKE '%x_%';  -- c\n",
    "\\begin{align} \\frac{a}{b} &= \\sum_{i=1}^{n} x_i^2 \\\\ \\end{align}\n",
    "#include <stdio.h>\n#define MAX(a,b) ((a)>(b)?(a):(b))\n/* x */\n",
    "$ ls -la ~/.config | grep -v '^d' && echo \"$HOME\" > /dev/null 2>&1\n",
    '{"a": [1, 2.0, null, true], "b": "\\u00e9\\n"}\n',
]
SPACES = [
    " ",
    "  ",
    "   ",
    "    ",
    "\t",
    "\t\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    " \n",
    "\n ",
    "  \n  ",
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u2028",
    "\u2029",
    "\u0085",
    "\v",
    "\f",
    " \t \n\r\n ",
    "\n" * 5,
    " " * 17,
    "\t" * 9,
]
RUNS = [
    "a",
    " ",
    "\n",
    "0",
    "中",
    "A",
    "!",
    "=",
    "-",
    "\t",
    "é",
    "e\u0301",
    "\u0301",
    "가",
    "👍",
    "．",
    "_",
    "\r\n",
    "ab",
    " x",
    "9,",
    "\u1100",
    "\u200d",
    "\u00a0",
]


def code_point(rng):
    while True:
        c = rng.choice(
            (
                rng.randrange(0x250),
                rng.randrange(0x3000),
                rng.randrange(0x10000),
                rng.randrange(0x20000),
                rng.randrange(0x110000),
            )
        )
        if not 0xD800 <= c <= 0xDFFF:
            return chr(c)


def marks(rng):
    """A base and combining marks of mixed classes, out of order."""
    pool = [
        0x300,
        0x301,
        0x302,
        0x308,
        0x30A,
        0x323,
        0x327,
        0x328,
        0x334,
        0x345,
        0x5B0,
        0x5BC,
        0x64B,
        0x651,
        0x93C,
        0x94D,
        0xE38,
        0xE48,
        0xF71,
        0xF72,
        0x3099,
        0x309A,
        0x20D0,
        0x1DC0,
        0x1AB0,
        0x1ABF,
        0x8D3,
        0x1E8D0,
    ]
    base = rng.choice("aeiouAEIOUsdçñåカハकড한ὰ\u0f40")
    return base + "".join(chr(rng.choice(pool)) for _ in range(rng.randrange(1, 7)))


def digits(rng):
    kind = rng.randrange(5)
    number = "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 14)))
    if kind == 0:
        return f"{int(number):,}"
    if kind == 1:
        return number + "." + number[:3]
    if kind == 2:
        return "".join(chr(rng.choice((0x660, 0x966, 0xFF10, 0x1D7CE)) + int(d)) for d in number)
    if kind == 3:
        return number + rng.choice(("½", "²", "ⅷ", "①", "km", "%", "e10", "\u0301"))
    return number


def token(rng, specials):
    kind = rng.random()
    if kind < 0.55:
        return rng.choice(WORDS[rng.choice(tuple(WORDS))].split(" "))
    if kind < 0.63:
        return rng.choice(CODE)
    if kind < 0.72:
        return digits(rng)
    if kind < 0.76:
        return marks(rng)
    if kind < 0.80:
        return "".join(code_point(rng) for _ in range(rng.randrange(1, 8)))
    if kind < 0.83:
        return "".join(chr(rng.randrange(0x20)) for _ in range(rng.randrange(1, 4))) + rng.choice(
            ("", "\x7f", "\x80", "\x9f")
        )
    if kind < 0.87:
        return "".join(rng.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") for _ in range(rng.randrange(1, 9)))
    if kind < 0.90:
        return unicodedata.normalize("NFD", rng.choice(WORDS[rng.choice(tuple(WORDS))].split(" ")))
    if kind < 0.94:
        word = rng.choice(("he", "THEY", "Don", "x", "été", "我", "5", "")) + rng.choice(("'", "’", "''"))
        return word + rng.choice(("s", "t", "re", "ve", "m", "ll", "d", "S", "LL", "Re", "ſ", "x", "st", ""))
    if kind < 0.97:
        return rng.choice(RUNS) * rng.randrange(2, 60)
    if specials and kind < 0.985:
        return rng.choice(specials)
    return rng.choice(
        (
            "\u200b",
            "\u200d",
            "\ufeff",
            "\u00ad",
            "\ufffd",
            "\U000e0001",
            "\ufdd0",
            "\uffff",
            "\x00",
            "\u0378",
            "\U0010ffff",
        )
    )


def document(rng, size, specials=()):
    """About `size` bytes of mixed text."""
    parts = []
    total = 0
    while total < size:
        part = token(rng, specials)
        if rng.random() < 0.7:
            part += rng.choice(SPACES) if rng.random() < 0.3 else " "
        parts.append(part)
        total += len(part.encode())
    return "".join(parts)


def documents(seed, total, specials=(), run=100_000):
    """Documents of many sizes, `total` bytes in all, then one a long run of each kind."""
    rng = random.Random(seed)
    made = 0
    while made < total:
        text = document(rng, rng.choice((1, 10, 100, 1000, 10_000, 50_000)), specials)
        made += len(text.encode())
        yield text
    for piece in RUNS:
        yield piece * (run // len(piece))
