"""tokenize and detokenize."""
import json
import random
import unittest

from program import MODEL, ProgramTest, main

TEXTS = [b"", b"a", b" a", b"a ", b"Hello, world.\n", b"two\n\nlines\r\n", b"\0", b"a\0b",
         "na\u00efve \u2014 \u65e5\u672c\u8a9e \U0001f642 \U0001f469\u200d\U0001f469\u200d\U0001f467".encode(),
         b"\xff\xfe\x80", b"cut \xf0\x9f\x99", b"tab\tand  spaces   ", bytes(range(256)), b"x" * 5000,
         b"1234567890" * 50]


class RoundTrips(ProgramTest):
    def ids(self, text, *args):
        return self.report("tokenize", "-m", MODEL, *args, stdin=text)["ids"]

    def text(self, ids, *args):
        return self.succeed("detokenize", "-m", MODEL, *args, stdin=json.dumps(ids).encode())

    def test_detokenize_undoes_tokenize(self):
        for text in TEXTS:
            self.assertEqual(self.text(self.ids(text)), text)
            self.assertEqual(self.text(self.ids(text, "--no-special", "--no-bos"), "--added"), text)

    def test_random_bytes(self):
        generator = random.Random(5)
        for _ in range(20):
            text = generator.randbytes(generator.randrange(200))
            self.assertEqual(self.text(self.ids(text)), text)

    def test_ways_in(self):
        text = "Once upon a time"
        file = self.folder / "text"
        file.write_text(text)
        expected = self.ids(text.encode())
        self.assertEqual(self.report("tokenize", "-m", MODEL, "-p", text)["ids"], expected)
        self.assertEqual(self.report("tokenize", "-m", MODEL, "-f", file)["ids"], expected)
        self.assertEqual(self.ids(text.encode(), "-f", "-"), expected)
        plain = self.succeed("tokenize", "-m", MODEL, "-p", text).decode()
        self.assertEqual(plain, ",".join(map(str, expected)) + "\n")
        for args, stdin in ((["--tokens", plain.strip()], b""), (map(str, expected), b""), ([], plain.encode())):
            self.assertEqual(self.succeed("detokenize", "-m", MODEL, *args, stdin=stdin).decode(), text)
        file.write_text(plain)
        self.assertEqual(self.succeed("detokenize", "-m", MODEL, "-f", file).decode(), text)
        self.assertEqual(self.report("detokenize", "-m", MODEL, "-f", file), {"text": text})

    def test_pieces_add_up(self):
        text = "Once upon a time, naïve"
        pieces = json.loads(self.succeed("tokenize", "-m", MODEL, "--no-bos", "--pieces", "-p", text))
        self.assertEqual([p["id"] for p in pieces], self.ids(text.encode(), "--no-bos"))
        joined = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes.fromhex(p["piece"]["hex"])
                          for p in pieces)
        self.assertEqual(joined.decode(), text)


class Refusals(ProgramTest):
    def test_ids(self):
        self.refuse(1, "detokenize", "-m", MODEL, "4096", says="4096")
        self.refuse(1, "detokenize", "-m", MODEL, "1", "2147483647", says="2147483647")
        for ids in ("-1", "2147483648", "1;2", "x", "1.5", "{}"):
            self.refuse(2, "detokenize", "-m", MODEL, "--tokens", ids, says=ids.split(";")[0])
        self.refuse(2, "detokenize", "-m", MODEL, "--tokens", "1", "2", says="two of them")
        for ids in ("0,,2", "0, ,2", ",1", "[,1]"):
            self.refuse(2, "detokenize", "-m", MODEL, "--tokens", ids, says="no number in front of a comma")
        for ids in ("0,", "[0, ]"):
            self.refuse(2, "detokenize", "-m", MODEL, "--tokens", ids, says="no number behind the last comma")
        for ids in ("[50, 51]", " 50 51 ", "50 , 51", "50,\n51"):
            self.assertEqual(self.succeed("detokenize", "-m", MODEL, "--tokens", ids),
                             self.succeed("detokenize", "-m", MODEL, "50", "51"))

    def test_files(self):
        self.refuse(1, "tokenize", "-m", MODEL, "-f", self.folder, says="directory")
        self.refuse(1, "tokenize", "-m", MODEL, "-f", self.folder / "none", says="No such file")
        self.refuse(1, "detokenize", "-m", MODEL, "-f", self.folder / "none", says="No such file")

    def test_pre_tokenizers(self):
        self.refuse(2, "tokenize", "-m", MODEL, "-p", "a", "--pre", "none-such", says="none-such")


if __name__ == "__main__":
    main()
