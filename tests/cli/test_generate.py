"""run: what it prints, when it ends, and that it says the same every time."""
import hashlib
import json
import unittest
import xml.etree.ElementTree

from program import MODEL, ProgramTest, hearth, main

PROMPT = "Once upon a time"
GREEDY = ["run", "-m", MODEL, "--temp", "0", "--ignore-eos"]


class Output(ProgramTest):
    def test_json_and_text_agree(self):
        report = self.report(*GREEDY, "-p", PROMPT, "-n", "24")
        self.assertEqual(self.succeed(*GREEDY, "-p", PROMPT, "-n", "24").decode(), report["text"])
        self.assertEqual(len(report["tokens"]), 24)
        self.assertEqual(report["generated_tokens"], 24)
        self.assertEqual(report["stop"], "length")
        self.assertEqual(report["prompt_tokens"],
                         len(self.report("tokenize", "-m", MODEL, "-p", PROMPT)["ids"]))
        self.assertEqual(report["context"], report["prompt_tokens"] + 24)
        self.assertEqual(report["counters"]["rows"], report["prompt_tokens"] + 23)
        for name in ("open_ms", "prompt_ms", "first_token_ms", "decode_ms"):
            self.assertGreater(report["timings"][name], 0)
        self.assertGreater(len(report["ledger"]), 3)

    def test_ways_in(self):
        expected = self.succeed(*GREEDY, "-p", PROMPT, "-n", "4")
        file = self.folder / "prompt"
        file.write_text(PROMPT)
        self.assertEqual(self.succeed(*GREEDY, "-n", "4", "-f", file), expected)
        self.assertEqual(self.succeed(*GREEDY, "-n", "4", stdin=PROMPT.encode()), expected)
        self.assertEqual(self.succeed(*GREEDY, "-n", "4", "-f", "-", stdin=PROMPT.encode()), expected)
        self.assertEqual(self.succeed(*GREEDY, "-n", "4", "--raw", "-p", PROMPT), expected)
        self.assertEqual(self.succeed("run", "-m", MODEL, "--greedy", "--ignore-eos", "-n", "4", "-p", PROMPT),
                         expected)

    def test_any_bytes_are_a_prompt(self):
        for prompt in (b"\0", b"a\0b", b"\xff\xfe", bytes(range(256)), "🙂".encode()[:3]):
            report = self.report(*GREEDY, "-n", "3", stdin=prompt)
            self.assertEqual(report["generated_tokens"], 3)

    def test_no_tokens_asked_for(self):
        self.assertEqual(self.succeed(*GREEDY, "-p", PROMPT, "-n", "0"), b"")
        report = self.report(*GREEDY, "-p", PROMPT, "-n", "0")
        self.assertEqual((report["text"], report["tokens"], report["stop"]), ("", [], "length"))

    def test_output_is_whole_characters(self):
        for seed in range(6):
            result = hearth("run", "-m", MODEL, "-p", "🙂 ", "-n", "40", "--temp", "50", "--top-k", "0", "--top-p", "1",
                            "--min-p", "0", "--seed", seed, "--ignore-eos")
            self.assertEqual(result.returncode, 0)
            result.stdout.decode()

    def test_the_ledger(self):
        picture = self.folder / "open.svg"
        result = hearth(*GREEDY, "-p", PROMPT, "-n", "1", "--ledger", "--svg", picture)
        self.assertEqual(result.returncode, 0)
        lines = result.stderr.decode().splitlines()
        rows = {line[:18].rstrip(): line[18:].split() for line in lines}
        self.assertEqual(rows["open"], "start ms end ms exposed bytes minor major outstanding".split())
        self.assertAlmostEqual(sum(float(row[2]) for name, row in rows.items() if name not in ("open", "total")),
                               float(rows["total"][0]), delta=0.1)
        self.assertGreater(int(rows["residency"][3]), 0)
        bars = xml.etree.ElementTree.parse(picture).getroot().findall(".//{*}rect[@class='exposed']")
        self.assertEqual(len(bars), len(rows) - 2)

    def test_what_opening_costs(self):
        report = self.report("explain", "-m", MODEL, "--open")
        names = [row["what"] for row in report["ledger"]]
        for name in ("map and directory", "program", "kernels and plan", "tokenizer", "arenas", "warm pass"):
            self.assertIn(name, names)
        self.assertAlmostEqual(sum(row["exposed_ms"] for row in report["ledger"]), report["open_total_ms"], delta=0.1)
        self.assertEqual([row["outstanding"] for row in report["ledger"] if row["what"] == "residency"], [0])
        self.assertIn("tokenizer", [term["what"] for term in report["plan"]])
        self.assertIn("residency", self.succeed("explain", "-m", MODEL, "--open").decode())
        self.refuse(2, "explain", "-m", MODEL, "--svg", self.folder / "open.svg", says="--open")
        result = hearth("explain", "-m", MODEL, "--open", "--svg", "/nowhere/open.svg")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot write /nowhere/open.svg", result.stderr)

    def test_verbose_says_where_it_ended(self):
        result = hearth(*GREEDY, "-p", PROMPT, "-n", "2", "-v", "--seed", "77")
        self.assertIn(b"stop: length; seed 77", result.stderr)
        self.assertEqual(result.stdout, self.succeed(*GREEDY, "-p", PROMPT, "-n", "2"))


class Ends(ProgramTest):
    def test_stop_strings_across_tokens(self):
        report = self.report(*GREEDY, "-p", PROMPT, "-n", "32")
        text = report["text"]
        for start, size in ((5, 1), (8, 4), (3, 9), (0, 3)):
            stop = text[start:start + size]
            cut = self.report(*GREEDY, "-p", PROMPT, "-n", "32", "--stop", "never this", "--stop", stop)
            self.assertEqual(cut["text"], text[:text.index(stop)])
            self.assertEqual(cut["stop"], "stop_string")
            shown = self.succeed(*GREEDY, "-p", PROMPT, "-n", "32", "--stop", stop).decode()
            self.assertEqual(shown, cut["text"])

    def test_a_stop_string_that_never_comes_loses_nothing(self):
        text = self.succeed(*GREEDY, "-p", PROMPT, "-n", "16").decode()
        for stop in (text[-3:] + "x", text[-1:] + "\x01", text + text):
            self.assertEqual(self.succeed(*GREEDY, "-p", PROMPT, "-n", "16", "--stop", stop).decode(), text)
        self.refuse(1, *GREEDY, "-p", PROMPT, "--stop", "", says="stop string")

    def test_a_full_context(self):
        prompt = self.report("tokenize", "-m", MODEL, "-p", PROMPT)["ids"]
        report = self.report(*GREEDY, "-p", PROMPT, "-n", "50", "--ctx", len(prompt) + 4)
        self.assertEqual((report["stop"], report["generated_tokens"]), ("context", 5))

    def test_prompts_that_do_not_fit(self):
        message = self.refuse(1, *GREEDY, "-p", PROMPT * 10, "--ctx", "8", says="8")
        count = len(self.report("tokenize", "-m", MODEL, "-p", PROMPT * 10)["ids"])
        self.assertIn(str(count), message)
        message = self.refuse(1, *GREEDY, stdin=b"word " * 6000, says="4096")
        self.assertIn(str(len(self.report("tokenize", "-m", MODEL, stdin=b"word " * 6000)["ids"])), message)

    def test_huge_counts_are_the_models_context(self):
        for count in (2**31 - 1, 2**63 - 1):
            report = self.report("run", "-m", MODEL, "-p", PROMPT, "-n", count, "--temp", "0", "--stop", "e")
            self.assertEqual(report["context"], 4096)

    def test_an_empty_prompt(self):
        ids = self.report("tokenize", "-m", MODEL, "-p", "")["ids"]
        if ids:
            self.assertEqual(self.report(*GREEDY, "-p", "", "-n", "2")["prompt_tokens"], len(ids))
        else:
            self.refuse(1, *GREEDY, "-p", "", says="no tokens")
        self.refuse(1, *GREEDY, "-p", "", "--no-bos", says="no tokens")


class Sampling(ProgramTest):
    def sampled(self, *args):
        return self.report("run", "-m", MODEL, "-p", PROMPT, "-n", "12", "--ignore-eos", *args)

    def test_greedy_ten_times(self):
        hashes = {hashlib.sha256(self.succeed(*GREEDY, "-p", PROMPT, "-n", "16")).hexdigest() for _ in range(10)}
        self.assertEqual(len(hashes), 1)
        for threads in (1, 3):
            text = self.succeed(*GREEDY, "-p", PROMPT, "-n", "16", "--threads", threads)
            self.assertEqual({hashlib.sha256(text).hexdigest()}, hashes)

    def test_seeds(self):
        a, b, c = (self.sampled("--temp", "1.5", "--seed", seed)["tokens"] for seed in (1, 1, 2))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        fresh = self.sampled("--temp", "1.5")
        self.assertEqual(self.sampled("--temp", "1.5", "--seed", fresh["seed"])["tokens"], fresh["tokens"])

    def test_top_k_0_is_off(self):
        tokens = self.sampled("--top-k", "0", "--temp", "5", "--min-p", "0", "--seed", "3")["tokens"]
        self.assertGreater(len(set(tokens)), 1)
        greedy = self.report(*GREEDY, "-p", PROMPT, "-n", "12")["tokens"]
        self.assertNotEqual(tokens, greedy)
        self.assertEqual(self.sampled("--top-k", "1", "--temp", "5")["tokens"], greedy)

    def test_logit_bias(self):
        first = self.sampled("--temp", "0")["tokens"][0]
        self.assertNotIn(first, self.sampled("--temp", "0", "--logit-bias", f"{first}=-inf")["tokens"])
        forced = self.sampled("--temp", "0", "--logit-bias", "300=1e6")["tokens"]
        self.assertEqual(set(forced), {300})
        self.refuse(1, *GREEDY, "-p", PROMPT, "--logit-bias", "4096=1", says="4096")

    def test_penalties_see_the_prompt(self):
        token = self.report(*GREEDY, "-p", PROMPT, "-n", "1")["tokens"][0]
        text = self.report("detokenize", "-m", MODEL, token)["text"]
        prompt = PROMPT + text
        again = self.report(*GREEDY, "-p", prompt, "-n", "1")["tokens"][0]
        kept = self.report(*GREEDY, "-p", prompt, "-n", "1", "--presence-penalty", "100", "--penalty-window", "0")
        self.assertEqual(kept["tokens"][0], again)
        seen = set(self.report("tokenize", "-m", MODEL, "-p", prompt)["ids"])
        chosen = self.report(*GREEDY, "-p", prompt, "-n", "8", "--presence-penalty", "100", "--penalty-window", "-1")
        self.assertFalse(seen & set(chosen["tokens"]))
        self.assertEqual(len(set(chosen["tokens"])), 8)


if __name__ == "__main__":
    main()
