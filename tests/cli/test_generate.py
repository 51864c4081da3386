"""run: what it prints, when it ends, and that it says the same every time."""
import hashlib
import json
import subprocess
import unittest
import xml.etree.ElementTree
from pathlib import Path

from program import MODEL, PROGRAM, TIMEOUT, ProgramTest, environment, hearth, main

PROMPT = "Once upon a time"
GREEDY = ["run", "-m", MODEL, "--raw", "--temp", "0", "--ignore-eos"]


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
        self.assertEqual(self.succeed(*GREEDY, "-n", "4", "-p", "-", stdin=PROMPT.encode()), expected)
        self.assertEqual(self.succeed("run", "-m", MODEL, "--raw", "--greedy", "--ignore-eos", "-n", "4", "-p", PROMPT),
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
            result = hearth("run", "-m", MODEL, "--raw", "-p", "🙂 ", "-n", "40", "--temp", "50", "--top-k", "0",
                            "--top-p", "1", "--min-p", "0", "--seed", seed, "--ignore-eos")
            self.assertEqual(result.returncode, 0)
            result.stdout.decode()

    def test_the_ledger(self):
        picture = self.folder / "open.svg"
        result = hearth(*GREEDY, "-p", PROMPT, "-n", "1", "--ledger", "--svg", picture)
        self.assertEqual(result.returncode, 0)
        lines = result.stderr.decode().splitlines()
        rows = {line[:14].rstrip(): line[14:].split() for line in lines}
        self.assertEqual(rows["open"], "start ms end ms exposed ms bytes minor major outstanding chosen".split())
        self.assertAlmostEqual(sum(float(row[2]) for name, row in rows.items() if name not in ("open", "total")),
                               float(rows["total"][0]), delta=0.1)
        self.assertGreater(int(rows["residency"][3]), 0)
        self.assertEqual(rows["placement"][7:9], ["file", "pages,"])
        bars = xml.etree.ElementTree.parse(picture).getroot().findall(".//{*}rect[@class='exposed']")
        self.assertEqual(len(bars), len(rows) - 2)

    def test_what_opening_costs(self):
        report = self.report("explain", "-m", MODEL, "--open")
        names = [row["what"] for row in report["ledger"]]
        for name in ("map", "directory", "weights bound", "program", "placement", "kernels", "plan", "tokenizer",
                     "arenas", "executables", "warm pass"):
            self.assertIn(name, names)
        self.assertTrue(all(row["how"] for row in report["ledger"] if row["what"] in ("placement", "residency")))
        self.assertAlmostEqual(sum(row["exposed_ms"] for row in report["ledger"]), report["open_total_ms"], delta=0.1)
        self.assertEqual([row["outstanding"] for row in report["ledger"] if row["what"] == "residency"], [0])
        self.assertIn("tokenizer", [term["what"] for term in report["plan"]])
        table, words = (self.succeed("explain", *args).decode() for args in (["-m", MODEL, "--open"], ["--help"]))
        self.assertIn("residency", table)
        for word in table.splitlines()[0].replace(" ms", "").split()[3:]:
            self.assertIn(word, words)
        self.refuse(2, "explain", "-m", MODEL, "--svg", self.folder / "open.svg", says="--open")
        result = hearth("explain", "-m", MODEL, "--open", "--svg", "/nowhere/open.svg")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot write /nowhere/open.svg", result.stderr)

    def test_verbose_says_where_it_ended(self):
        result = hearth(*GREEDY, "-p", PROMPT, "-n", "2", "-v", "--seed", "77")
        self.assertIn(b"stop: length; seed 77", result.stderr)
        self.assertEqual(result.stdout, self.succeed(*GREEDY, "-p", PROMPT, "-n", "2"))
        self.assertRegex(result.stderr, b"generated 2, [0-9.]+/s; stop")
        self.assertIn(b"generated 1; stop", hearth(*GREEDY, "-p", PROMPT, "-n", "1", "-v").stderr)

    def test_text_and_report_in_one_stream(self):
        text = self.succeed(*GREEDY, "-p", PROMPT, "-n", "2")
        for args, begins in ((["-v"], b"open "), (["--ledger"], b"open  "), ([], b"")):
            mixed = subprocess.run([PROGRAM, *map(str, GREEDY), "-p", PROMPT, "-n", "2", *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=environment(), timeout=TIMEOUT, check=True).stdout
            self.assertTrue(mixed.startswith(text + (b"\n" + begins if args else b"")), mixed)
            self.assertTrue(args or mixed == text)


class Templates(ProgramTest):
    """The model has a chat template, and remembers."""
    RUN = ["run", "-m", MODEL, "--temp", "0"]

    def test_the_prompt_is_a_message(self):
        for prompt, text in (("My code word is lamp. What is my code word?", "Your code word is lamp."),
                             ("My code word is river.", "I will remember river.")):
            report = self.report(*self.RUN, "-p", prompt)
            self.assertEqual((report["text"], report["stop"]), (text, "end"))
            self.assertEqual(self.succeed(*self.RUN, "-p", prompt).decode(), report["text"])
            request = json.dumps({"messages": [{"role": "user", "content": prompt}], "add_generation_prompt": True})
            ids = self.report("template", "-m", MODEL, stdin=request.encode())["ids"]
            self.assertEqual(report["prompt_tokens"], len(ids))
            text = self.succeed("template", "-m", MODEL, stdin=request.encode())
            self.assertEqual(self.report(*self.RUN, "--raw", stdin=text)["tokens"], report["tokens"])

    def test_the_last_newline_of_a_stream(self):
        given = ((["-p", "a"], b""), ([], b"a"), ([], b"a\n"), (["-p", "-"], b"a\n"), (["-p", "a\n"], b""),
                 ([], b"a\n\n"))
        counts = [self.report(*self.RUN, "-n", "1", *args, stdin=stdin)["prompt_tokens"] for args, stdin in given]
        self.assertEqual(counts[:4], counts[:1] * 4)
        self.assertEqual(counts[4], counts[5])
        self.assertGreater(counts[4], counts[0])

    def test_control_tokens_in_a_message_are_text(self):
        plain, spelled = (self.report(*self.RUN, "-n", "1", "-p", text)["prompt_tokens"]
                          for text in ("", "<|im_end|>"))
        self.assertGreater(spelled, plain + 1)

    def test_a_system_message(self):
        system = self.folder / "system"
        system.write_text("My code word is lamp.")
        expected = self.report(*self.RUN, "-p", "Hi", "--system", system.read_text())
        self.assertGreater(expected["prompt_tokens"], self.report(*self.RUN, "-p", "Hi")["prompt_tokens"])
        for given in (f"@{system}", system.read_text()):
            report = self.report(*self.RUN, "-p", "Hi", "--system", given)
            self.assertEqual(report["tokens"], expected["tokens"])
        at = self.report(*self.RUN, "-n", "1", "-p", "Hi", "--system", "@@")
        self.assertEqual(at["prompt_tokens"], self.report(*self.RUN, "-n", "1", "-p", "Hi", "--system", "x")
                         ["prompt_tokens"])

    def test_another_template(self):
        template = self.folder / "template"
        template.write_text("{{ messages[0].content }}")
        raw = self.report(*self.RUN, "--raw", "-n", "5", "-p", PROMPT)
        self.assertEqual(self.report(*self.RUN, "--template", template, "-n", "5", "-p", PROMPT)["tokens"],
                         raw["tokens"])
        template.write_text("{{ raise_exception('not today') }}")
        self.refuse(1, *self.RUN, "--template", template, "-p", "a", says="refuses this: not today")
        template.write_text("{% if %}")
        self.refuse(1, *self.RUN, "--template", template, "-p", "a", says=f"{template}: template, line 1")

    def test_a_model_without_a_template(self):
        base = self.folder / "base.gguf"
        base.write_bytes(Path(MODEL).read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_templato"))
        result = hearth("run", "-m", base, "--temp", "0", "-n", "5", "-p", PROMPT)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"no chat template", result.stderr)
        self.assertEqual(result.stdout, self.succeed(*self.RUN, "--raw", "-n", "5", "-p", PROMPT))
        self.refuse(1, "run", "-m", base, "-p", "a", "--system", "x", says="no chat template")

    def test_refusals(self):
        self.refuse(1, *self.RUN, stdin=b"\xff", says="not UTF-8")
        self.refuse(2, *self.RUN, "-p", "a", "--no-bos", says="only with --raw")
        self.refuse(2, *self.RUN, "-p", "a", "--raw", "--system", "x", says="no effect with --raw")
        self.refuse(1, *self.RUN, "-p", "a", "--system", "@/nowhere/file", says="/nowhere/file")


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
        self.refuse(2, *GREEDY, "-p", PROMPT, "--stop", "", says="stop string")

    def test_a_full_context(self):
        prompt = self.report("tokenize", "-m", MODEL, "-p", PROMPT)["ids"]
        report = self.report(*GREEDY, "-p", PROMPT, "-n", "50", "--ctx", len(prompt) + 4)
        self.assertEqual((report["stop"], report["generated_tokens"]), ("context", 5))

    def test_prompts_that_do_not_fit(self):
        message = self.refuse(1, *GREEDY, "-p", PROMPT * 10, "--ctx", "8", says="8")
        count = len(self.report("tokenize", "-m", MODEL, "-p", PROMPT * 10)["ids"])
        self.assertIn(str(count), message)
        count = len(self.report("tokenize", "-m", MODEL, stdin=b"word " * 6000)["ids"])
        for more in ((), ("--ctx", "5000"), ("--ctx", "50000")):
            message = self.refuse(1, *GREEDY, *more, stdin=b"word " * 6000, says="the model's context holds 4096")
            self.assertIn(str(count), message)

    def test_huge_counts_are_the_models_context(self):
        for count in (2**31 - 1, 2**63 - 1):
            report = self.report("run", "-m", MODEL, "--raw", "-p", PROMPT, "-n", count, "--temp", "0", "--stop", "e")
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
        return self.report("run", "-m", MODEL, "--raw", "-p", PROMPT, "-n", "12", "--ignore-eos", *args)

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
