"""logits, eval, bench and explain."""
import hashlib
import math
import os
import re
import resource
import struct
import unittest
import xml.dom.minidom
from pathlib import Path

import program
from program import MODEL, ProgramTest, main
from split_model import split_model

TEXT = ("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
        "it was the epoch of belief, it was the epoch of incredulity, it was the season of light.\n") * 3


class Logits(ProgramTest):
    def rows(self, *args, name="rows"):
        path = self.folder / name
        report = self.report("logits", "-m", MODEL, "-o", path, *args)
        data = path.read_bytes()
        self.assertEqual(report["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual(len(data), 4 * report["shape"][0] * report["shape"][1])
        return data, report

    def test_shape_and_largest(self):
        data, report = self.rows("-p", TEXT[:60])
        count, vocab = report["shape"]
        self.assertEqual(vocab, 4096)
        self.assertEqual(report["tokens"], self.report("tokenize", "-m", MODEL, "-p", TEXT[:60])["ids"])
        for i in range(count):
            row = struct.unpack_from(f"<{vocab}f", data, 4 * vocab * i)
            self.assertEqual(report["largest"][i], row.index(max(row)))

    def test_nothing_changes_a_bit(self):
        ids = ",".join(map(str, self.report("tokenize", "-m", MODEL, "-p", TEXT[:200])["ids"]))
        expected, _ = self.rows("--tokens", ids)
        for args in (["--cuts", "1"], ["--cuts", "7,20"], ["--cuts", "3,4,5,6,30"], ["--threads", "1"],
                     ["--beside", "1"], ["--beside", "3", "--cuts", "9"], ["--outputs", "1"], ["--rows", "5"],
                     ["--ctx", "200"], ["--cpu-mask", "ref"]):
            self.assertEqual(self.rows("--tokens", ids, *args)[0], expected, args)

    def test_marks_far_apart(self):
        """Coming back to the start parts from every block of the first way, which the last mark holds."""
        ids = ",".join(str(i * 7 % 4096) for i in range(200))
        expected, _ = self.rows("--tokens", ids)
        data, report = self.rows("--tokens", ids, "--marks", "0,70,200")
        self.assertEqual(data, expected)
        self.assertEqual([mark["rows_again"] for mark in report["marks"]], [200, 130, 0])
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,2,3", "--marks", "4", says="--marks")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,2,3", "--marks", "2,2", says="--marks")

    def test_the_next_token_is_the_largest(self):
        _, report = self.rows("-p", TEXT[:40])
        first = self.report("run", "-m", MODEL, "--raw", "-p", TEXT[:40], "-n", "1", "--temp", "0",
                            "--ignore-eos")["tokens"]
        self.assertEqual(report["largest"][-1:], first)

    def test_refusals(self):
        self.refuse(1, "logits", "-m", MODEL, "--tokens", "1,4096", says="4096")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,-2", says="-2")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "", says="no tokens")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,2,3", "--cuts", "4", says="--cuts")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,2,3", "--cuts", "0", says="--cuts")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,2,3", "--cuts", "2,2", says="--cuts")
        self.refuse(1, "logits", "-m", MODEL, "--tokens", "1,2,3", "--ctx", "2", says="3")
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1,2", "--beside", "1", "--outputs", "1", says="--outputs")
        self.refuse(1, "logits", "-m", MODEL, "--tokens", "1", "-o", self.folder / "no/such", says="No such file")
        self.refuse(1, "logits", "-m", MODEL, "--tokens", "1", "-o", "/dev/full", says="No space left")


class Eval(ProgramTest):
    def test_perplexity_is_that_of_the_logits(self):
        ctx, file = 64, self.folder / "text"
        file.write_text(TEXT)
        report = self.report("eval", "-m", MODEL, "-f", file, "--ctx", ctx)
        ids = self.report("tokenize", "-m", MODEL, "--no-special", "-p", TEXT[:-1])["ids"]
        chunks = len(ids) // ctx
        self.assertEqual((report["tokens"], report["chunks"], report["ctx"]), (len(ids), chunks, ctx))
        bos = self.report("tokenize", "-m", MODEL, "-p", "")["ids"]
        total, scored = 0.0, 0
        for i in range(chunks):
            chunk = ids[i * ctx:(i + 1) * ctx]
            chunk[:len(bos)] = bos
            path = self.folder / "rows"
            self.report("logits", "-m", MODEL, "-o", path, "--tokens", ",".join(map(str, chunk)))
            data = path.read_bytes()
            for position in range(ctx // 2, ctx - 1):
                row = struct.unpack_from("<4096f", data, 4 * 4096 * position)
                top = max(row)
                total += math.log(math.fsum(math.exp(x - top) for x in row)) - (row[chunk[position + 1]] - top)
                scored += 1
        self.assertEqual(report["scored"], scored)
        self.assertAlmostEqual(report["mean_nll"], total / scored, places=9)
        self.assertAlmostEqual(report["perplexity"], math.exp(total / scored), places=5)
        one = self.report("eval", "-m", MODEL, "-p", TEXT, "--ctx", ctx, "--chunks", "1")
        self.assertEqual(one["chunks"], 1)
        self.assertIn(f"perplexity {report['perplexity']:.4f}",
                      self.succeed("eval", "-m", MODEL, "--ctx", ctx, stdin=TEXT.encode()).decode())

    def test_refusals(self):
        self.refuse(1, "eval", "-m", MODEL, "-p", "short", says="512")
        self.refuse(2, "eval", "-m", MODEL, "-p", TEXT, "--ctx", "3", says="3 tokens")
        self.refuse(1, "eval", "-m", MODEL, "-f", self.folder / "none", says="No such file")


class Bench(ProgramTest):
    def test_rows_and_picture(self):
        picture = self.folder / "a.svg"
        report = self.report("bench", "-m", MODEL, "--prompt", "4,8", "--gen", "2", "--depth", "0,5", "--reps", "2",
                             "--no-limits", "--svg", picture)
        self.assertNotIn("limits", report)
        tests = [(r["test"], r["tokens"], r["depth"]) for r in report["rows"]]
        self.assertEqual(tests, [("prefill", 4, 0), ("prefill", 8, 0), ("decode", 2, 0),
                                 ("prefill", 4, 5), ("prefill", 8, 5), ("decode", 2, 5)])
        for row in report["rows"]:
            self.assertEqual(len(row["samples"]), 2)
            self.assertTrue(0 < row["least"] <= row["tokens_per_s"] <= row["most"])
        self.assertEqual(report["prefill_tokens_per_s"], report["rows"][0]["tokens_per_s"])
        self.assertEqual(report["decode_tokens_per_s"], report["rows"][2]["tokens_per_s"])
        drawn = xml.dom.minidom.parse(str(picture))
        self.assertEqual(len([r for r in drawn.getElementsByTagName("rect") if r.getAttribute("class")]), 6)

    def test_one_kind_alone(self):
        report = self.report("bench", "-m", MODEL, "--prompt", "0", "--gen", "1", "--reps", "1", "--no-limits")
        self.assertNotIn("prefill_tokens_per_s", report)
        table = self.succeed("bench", "-m", MODEL, "--prompt", "2", "--gen", "0", "--reps", "1",
                             "--no-limits").decode()
        self.assertIn("prefill", table)
        self.assertNotIn("decode ", table)

    def test_refusals(self):
        self.refuse(2, "bench", "-m", MODEL, "--prompt", "x", says="--prompt")
        self.refuse(2, "bench", "-m", MODEL, "--gen", "-1", says="--gen")
        self.refuse(2, "bench", "-m", MODEL, "--prompt", "5000", says="4096")
        self.refuse(2, "bench", "-m", MODEL, "--prompt", "20", "--gen", "0", "--ctx", "8", says="20 tokens")
        self.refuse(2, "bench", "-m", MODEL, "--cold", "--prompt", "1,2", says="one prompt")
        self.refuse(2, "bench", "-m", MODEL, "--limits", "--no-limits", says="contradict")
        self.refuse(2, "bench", "-m", MODEL, "--batch", "0", says="--batch")
        self.refuse(2, "bench", "-m", MODEL, "--batch", "3", "--sessions", "2", says="2 sessions")
        self.refuse(2, "bench", "-m", MODEL, "--sweep", "4", "--rows", "3", says="4 rows")
        for text in ("", "0", "1-", "-1", "1,", "1 2", "x", "99999", "1-99999"):
            self.refuse(2, "bench", "-m", MODEL, "--sweep", text, says="--sweep")
        for text in ("3-1", "1,1", "1-4,4", "5,2"):
            self.refuse(2, "bench", "-m", MODEL, "--sweep", text, says="too late")
        # Before the model is opened, and so before its context is found to be too small.
        self.refuse(1, "bench", "-m", MODEL, "--prompt", "5000", "--svg", self.folder / "no/such.svg",
                    says="No such file")

    def test_limits(self):
        report = self.report("bench", "-m", MODEL, "--prompt", "4", "--gen", "2", "--reps", "1", "--threads", "2",
                             "--limits")
        limits = report["limits"]
        self.assertEqual([each["threads"] for each in limits["each"]], [1, 2])
        for rate in ("read_bytes_per_s", "int8_ops_per_s", "float_ops_per_s"):
            before, after = limits["before"][rate], limits["after"][rate]
            self.assertGreater(min(before, after, limits["each"][0][rate]), 0)
            self.assertAlmostEqual(limits["mean"][rate], (before + after) / 2, delta=1)
        prefill, decode = report["rows"]
        self.assertEqual(report["prefill_fraction_of_peak"], prefill["fraction_of_peak"])
        self.assertEqual(report["decode_fraction_of_read"], decode["fraction_of_read"])
        seconds = decode["tokens"] / decode["tokens_per_s"]
        rate = (decode["weight_bytes"] + decode["kv_bytes"]) / seconds
        self.assertAlmostEqual(decode["fraction_of_read"], rate / limits["mean"]["read_bytes_per_s"], delta=0.002)
        table = self.succeed("bench", "-m", MODEL, "--sweep", "1-3", "--reps", "1").decode()
        self.assertRegex(table, r"of read +of peak +of trend")

    def test_what_a_cache_holds_has_no_limit_of_reading(self):
        """Planted: a cache of any size; figures in its place."""
        args = ["bench", "-m", MODEL, "--prompt", "4,600", "--gen", "2", "--reps", "1", "--ops"]
        report = self.report(*args)
        cache = report["limits"]["mean"]["cache_bytes"]
        self.assertEqual([row["passes"] for row in report["rows"]], [1, 2, 2])
        for row in report["rows"]:
            read = (row["weight_bytes"] + row["kv_bytes"]) // row["passes"]
            self.assertEqual(row["read_cached"], read <= cache)
        cached = [row["read_cached"] for row in report["rows"]]
        table = self.succeed(*args).decode()
        shown = re.findall(r"^(?:prefill|decode)  +\d.*", table, re.M)
        self.assertEqual([line.split()[-2] == "cached" for line in shown], cached)
        self.assertEqual("cached: the last cache holds all that a pass reads" in table, any(cached))
        limits = report["limits"]["mean"]
        for row in report["rows"]:
            for kind in row["ops"]["kinds"]:
                if kind["what"] not in ("linear BF16", "logits BF16"):
                    continue
                least = kind["ops"] / limits["float_ops_per_s"]
                if not row["read_cached"]:
                    least = max(least, kind["bytes"] / limits["read_bytes_per_s"])
                fraction = least / (kind["ms"] / 1000 / report["threads"])
                rounding = 0.001 + 0.001 / kind["ms"] * fraction
                self.assertAlmostEqual(kind["fraction_of_limit"], fraction, delta=rounding)

    def test_more_threads_than_cores(self):
        cores = len(os.sched_getaffinity(0))
        args = ["bench", "-m", MODEL, "--prompt", "1", "--gen", "0", "--reps", "1"]
        self.assertRegex(self.succeed(*args, "--threads", cores + 1).decode(), f"{cores + 1} threads share \\d+ core")
        self.assertNotIn("threads share", self.succeed(*args, "--threads", "1").decode())

    def test_ops(self):
        report = self.report("bench", "-m", MODEL, "--prompt", "16", "--gen", "4", "--reps", "2", "--threads", "2",
                             "--no-limits", "--ops")
        for row in report["rows"]:
            kinds = {kind["what"]: kind for kind in row["ops"]["kinds"]}
            for what in ("attention", "rms_norm", "embed", "waiting"):
                self.assertIn(what, kinds)
            spent = sum(kind["ms"] for kind in kinds.values())
            self.assertAlmostEqual(row["ops"]["thread_ms"], 2 * row["ops"]["wall_ms"], delta=0.01)
            self.assertAlmostEqual(spent + row["ops"]["outside_ms"], row["ops"]["thread_ms"], delta=0.05)
            self.assertGreaterEqual(row["ops"]["outside_ms"], -0.05)
            linears = [kind for what, kind in kinds.items() if what.startswith(("linear", "logits"))]
            self.assertEqual(sum(kind["bytes"] for kind in linears), 2 * row["weight_bytes"])
            self.assertEqual(sum(kind["ops"] for kind in linears),
                             2 * (row["linear_int8_ops"] + row["linear_float_ops"]))
            self.assertEqual(kinds["attention"]["bytes"], 2 * row["kv_bytes"])
        table = self.succeed("bench", "-m", MODEL, "--prompt", "4", "--gen", "0", "--reps", "1", "--ops").decode()
        self.assertIn("threads x wall time", table)

    def test_batch(self):
        report = self.report("bench", "-m", MODEL, "--prompt", "0", "--gen", "3", "--depth", "0,70", "--batch", "2,5",
                             "--reps", "2", "--no-limits")
        rows = report["rows"]
        self.assertEqual([(r["sessions"], r["depth"]) for r in rows],
                         [(1, 0), (2, 0), (5, 0), (1, 70), (2, 70), (5, 70)])
        for row in rows:
            alone = rows[0 if row["depth"] == 0 else 3]
            self.assertEqual(row["weight_bytes"], alone["weight_bytes"])  # one pass for all sessions
            for cost in ("linear_int8_ops", "linear_float_ops", "attention_ops", "kv_bytes"):
                self.assertEqual(row[cost], row["sessions"] * alone[cost])
            self.assertAlmostEqual(row["tokens_per_s"], row["sessions"] * row["tokens_per_s_each"], delta=0.01)
        self.assertEqual(report["decode_tokens_per_s"], rows[0]["tokens_per_s"])

    def test_sweep(self):
        picture = self.folder / "sweep.svg"
        report = self.report("bench", "-m", MODEL, "--sweep", "1-5,8,520-522", "--reps", "2", "--no-limits", "--svg",
                             picture)
        self.assertEqual(report["rows"], [])
        points = report["sweep"]["points"]
        self.assertEqual([p["rows"] for p in points], [1, 2, 3, 4, 5, 8, 520, 521, 522])
        self.assertEqual(report["sweep"]["steps"], sum(p["step"] for p in points))
        self.assertEqual(report["counters"]["passes"], 1 + 2 * len(points))  # one to warm up, then one a point
        drawn = xml.dom.minidom.parse(str(picture)).getElementsByTagName("circle")
        self.assertEqual(len([c for c in drawn if c.getAttribute("class") == "point"]), len(points))
        both = self.succeed("bench", "-m", MODEL, "--sweep", "1", "--gen", "1", "--reps", "1", "--no-limits").decode()
        self.assertIn("decode", both)


class Cold(ProgramTest):
    """Figures vary; what they are made of does not."""

    def test_parts_add_up(self):
        self.parts_add_up(9)

    def test_a_prompt_as_short_as_the_few_rows(self):
        for prompt in (1, 5):
            self.parts_add_up(prompt)

    def parts_add_up(self, prompt):
        report = self.report("bench", "-m", MODEL, "--cold", "--prompt", prompt, "--reps", "1", "--idle", "5")
        self.assertEqual((report["prompt_tokens"], report["reps"]), (prompt, 1))
        self.assertEqual(set(report["first_calls"]), {"process_cached", "process_dropped", "shape", "idle"})
        for call in report["first_calls"].values():
            self.assertGreater(call["cold_ms"], 0)
            self.assertAlmostEqual(call["cold_ms"] - call["warm_ms"], call["cold_minus_warm_ms"], delta=0.002)
        for parts in report["first_token"].values():
            total = parts.pop("total_ms")
            self.assertAlmostEqual(sum(parts.values()), total, delta=0.005)
            self.assertTrue(all(part > 0 for part in parts.values()), parts)

    def test_all_files_of_a_split_set_are_dropped(self):
        whole = self.report("logits", "-m", MODEL, "-p", "hi", "-o", self.folder / "whole")
        files = split_model(Path(MODEL), self.folder)
        split = self.report("logits", "-m", files[0], "-p", "hi", "-o", self.folder / "split")
        self.assertEqual(split["sha256"], whole["sha256"])
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
        self.report("bench", "-m", files[0], "--cold", "--reps", "1", "--prompt", "5", "--idle", "1")
        read = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
        sizes = [file.stat().st_size for file in files]
        if read > 0:  # else the file system keeps its pages, or does not count
            self.assertGreater(read, 2 * sizes[0] + sizes[1])  # two of its starts are from files dropped

    def test_what_goes_wrong_in_a_start_is_said(self):
        result = program.hearth("bench", "-m", "/nowhere.gguf", "--cold", "--reps", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"/nowhere.gguf", result.stderr)
        self.refuse(2, "bench", "-m", MODEL, "--cold", "--prompt", "0", says="--cold")


class Explain(ProgramTest):
    ARGS = ["explain", "-m", MODEL, "--ctx", "100", "--memory", "1g"]

    def test_facts_and_plan(self):
        report, text = self.report(*self.ARGS), self.succeed(*self.ARGS).decode()
        for section in ("memory plan", "options in force", "program"):
            self.assertIn(f"\n\n{section}\n", text)
        self.assertEqual((report["architecture"], report["vocabulary"], report["context"]), ("llama", 4096, 100))
        plan = re.findall(r"^  (\S.*\S) +(\d+) bytes", text, re.M)
        self.assertEqual([(term["what"], term["bytes"]) for term in report["plan"]] + [("total", report["plan_bytes"])],
                         [(what, int(size)) for what, size in plan])
        self.assertEqual(sum(term["bytes"] for term in report["plan"]), report["plan_bytes"])
        self.assertEqual(report["allowed_bytes"], 1 << 30)
        self.assertEqual(report["plan"], self.report("explain", "-m", MODEL, "--ctx", "100", "--open")["plan"])

    def test_where_weights_are_placed(self):
        weights = self.report(*self.ARGS)["plan"][0]["bytes"]
        for args, words in ((["--load", "map"], "file pages"), (["--load", "read"], "copied to private memory")):
            placement = self.report(*self.ARGS, *args)["placement"]
            self.assertTrue(placement["weights"].startswith(words), placement)
            # Whole pages become resident, and rows are read of the rest.
            self.assertLess(abs(placement["resident_bytes"] + placement["row_bytes"] - weights), 1 << 16)
            self.assertIn(f"{placement['resident_bytes']} bytes of weights become resident",
                          self.succeed(*self.ARGS, *args).decode())

    def test_the_plan_alone(self):
        report = self.report(*self.ARGS, "--plan")
        self.assertEqual(list(report), ["model", "plan", "plan_bytes", "allowed_bytes"])
        whole = self.succeed(*self.ARGS).decode()
        plan = self.succeed(*self.ARGS, "--plan").decode()
        self.assertTrue(plan.startswith("memory plan\n  weights"))
        self.assertIn(f"\n\n{plan}\n", whole)
        self.refuse(2, *self.ARGS, "--plan", "--open", says="--plan")

    def shape(self, tensor):
        """As the text has it."""
        if "heads" in tensor:
            return f"[{tensor['heads']} heads, {tensor['dk']} + {tensor['dv']}]"
        return "[" + ", ".join(" ".join(map(str, d)) if isinstance(d, list) else str(d) for d in tensor["shape"]) + "]"

    def test_ops_are_those_of_the_text(self):
        """Op by op: sites, operands, shapes, places, kernels."""
        tiny = [f"tiny-{name}-bf16.gguf" for name in ("gemma2", "gpt2", "gptoss", "qwen2moe", "qwen3next")]
        for name in ("llama-mixed.gguf", "q35-q4_0.gguf", *tiny):
            model = Path(MODEL).parent / name
            ops = self.report("explain", "-m", model)["ops"]
            text = self.succeed("explain", "-m", model).decode().split("\nprogram\n")[1].splitlines()
            lines = [line for line in text if re.match(r" +\d+ ", line)]
            self.assertEqual(len(ops), len(lines))
            for op, line in zip(ops, lines):
                self.assertEqual(line.split()[1:3], [op["op"], op["site"]])
                for tensor in op.get("inputs", []) + op.get("weights", []) + [op[k] for k in ("state",) if k in op]:
                    dtype = f"{tensor['dtype']} " if "dtype" in tensor else ""
                    self.assertIn(f"{tensor['name']} {dtype}{self.shape(tensor)}", line)
                if "output" in op:
                    at = "@logits" if op["output"].get("logits") else f"@{op['output']['offset']}"
                    self.assertIn(f"-> {self.shape(op['output'])}  {at}", line)
                else:
                    self.assertNotIn("->", line)
                self.assertTrue(line.endswith(f"  <{op['kernel']}>"), line)
                for name in ("eps", "window", "scale"):
                    if name in op["parameters"] and f" {name} " in line:
                        self.assertIn(f" {name} {op['parameters'][name]:.7g}", line)

    def test_parameters(self):
        ops = {op["site"]: op for op in self.report("explain", "-m", MODEL)["ops"]}
        self.assertEqual(ops["blk.0.attention"]["parameters"], {"heads": 4, "kv_heads": 2, "scale": 0.125})
        self.assertEqual(ops["blk.0.attn_q_rope"]["parameters"], {"pairs": "norm", "head_dim": 64, "rotated": 64})
        self.assertEqual(ops["blk.0.ffn_glu"]["parameters"], {"activation": "silu"})
        self.assertEqual(ops["blk.0.attn_norm"]["parameters"], {"eps": 1e-06})


if __name__ == "__main__":
    main()
