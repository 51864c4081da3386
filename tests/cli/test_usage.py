"""Verbs, flags, help and exit statuses."""
import os
import re
import unittest
from pathlib import Path

from program import MODEL, ProgramTest, environment, hearth, main

VERBS = ["run", "chat", "explain", "inspect", "tokenize", "detokenize", "template", "logits", "eval", "bench"]
WITH_ENGINE = ["run", "chat", "explain", "logits", "eval", "bench"]


class Help(ProgramTest):
    def test_usage(self):
        result = hearth()
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        for args in (["--help"], ["-h"], ["help"]):
            text = self.succeed(*args).decode()
            for verb in VERBS:
                self.assertIn(f"\n  {verb} ", text)

    def test_version(self):
        self.assertRegex(self.succeed("--version").decode(), r"^hearth \d+\.\d+\.\d+\n$")

    def test_every_verb_has_help(self):
        for verb in VERBS:
            text = self.succeed(verb, "--help").decode()
            self.assertIn(f"hearth {verb}", text)
            self.assertIn("--cache TEXT", text)
            self.assertEqual("--no-NAME" in text, verb in WITH_ENGINE)
            self.assertIn("--model", text)
            self.assertEqual(text, self.succeed("help", verb).decode())
            self.assertLess(max(map(len, text.splitlines())), 121)

    def test_help_lists_the_options_in_scope(self):
        for verb in WITH_ENGINE:
            self.assertIn("--cpu-mask auto|ref|avx2|avxvnni|avx512", self.succeed(verb, "--help").decode())
            self.assertRegex(self.succeed(verb, "--help").decode(), r"--sigbus +survive .* \(on\)\n")
        self.assertIn("--top-k N", self.succeed("run", "--help").decode())
        for verb in ("eval", "tokenize"):
            self.assertNotIn("--top-k", self.succeed(verb, "--help").decode())


    def test_help_shows_the_defaults_of_the_verb(self):
        shown = {"run": {"ctx": "the prompt and -n tokens", "outputs": "1", "mark-slots": "0", "early": "on"},
                 "chat": {"ctx": "the model's, at most 8192 and what fits", "outputs": "1", "mark-slots": "8",
                          "early": "on"},
                 "explain": {"ctx": "the model's, at most 8192 and what fits", "outputs": "16", "early": "off"},
                 "logits": {"ctx": "the prompt's tokens", "outputs": "the prompt's, at most 128"},
                 "eval": {"ctx": "512, at most the model's", "mark-slots": "0"},
                 "bench": {"rows": "512, or the longest pass of --sweep", "sessions": "1, or the most of --batch"}}
        for verb, options in shown.items():
            text = self.succeed(verb, "--help").decode()
            for name, default in options.items():
                found = re.search(rf"^ +--{name}[ \n].*\((.*)\)$", text, re.M)
                self.assertEqual(found and found[1], default, f"{verb} --{name}")

    def test_defaults_of_a_verb_are_in_force_and_can_be_set(self):
        def slots(*args, **changes):
            return self.report("run", "-m", MODEL, "-p", "a", "-n", "1", *args,
                               env=environment(**changes))["counters"]["marks_total"]
        self.assertEqual(slots(), 0)
        self.assertEqual(slots(HEARTH_MARK_SLOTS="2"), 2)
        self.assertEqual(slots("--mark-slots", "3", HEARTH_MARK_SLOTS="2"), 3)

    def test_what_is_not_for_users(self):
        """Bench starts itself with a flag that is neither listed nor suggested."""
        self.assertNotIn("cold-child", self.succeed("bench", "--help").decode())
        self.assertNotIn("cold-child", self.refuse(2, "bench", "-m", MODEL, "--cold-chidl", "1"))
        for args in (["--cold-child", "1"], ["--cold", "--cold-child", "1"],
                     ["--cold", "--cold-child", str(2**63 - 1)]):
            self.refuse(2, "bench", "-m", MODEL, *args, says="--cold-child is not for users: --cold starts it")
        self.refuse(2, "bench", "-m", MODEL, "--cold-child", "x", says="'x'")


class Refusals(ProgramTest):
    def test_files_without_an_end(self):
        """An endless file is refused before it fills the memory."""
        self.refuse(1, "template", "--file", "/dev/zero", "--input", "/dev/null", says="/dev/zero has more than")
        self.refuse(1, "template", "--input", "/dev/zero", says="/dev/zero has more than")

    def test_verbs(self):
        self.refuse(2, "rnu", says="did you mean 'run'?")
        self.refuse(2, "frobnicate", says="unknown verb")
        self.refuse(2, "", says="unknown verb")
        self.refuse(2, "serve", says="not there yet")
        self.refuse(2, "embed", says="embeddings are not supported")

    def test_unknown_flags(self):
        for verb in VERBS:
            self.refuse(2, verb, "-m", MODEL, "--frobnicate", says="--frobnicate")
        self.refuse(2, "run", "--tmep", "1", says="did you mean --temp?")
        self.refuse(2, "bench", "--promt", "1", says="did you mean --prompt?")
        self.refuse(2, "run", "--thread=1", says="did you mean --threads?")

    def test_options_without_effect(self):
        self.refuse(2, "tokenize", "--temp", "1", says="no effect in 'tokenize'")
        self.refuse(2, "eval", "--top-k=1", says="no effect in 'eval'")
        self.refuse(2, "detokenize", "--threads", "1", says="no effect in 'detokenize'")

    def test_flags_without_effect(self):
        for verb in ("chat", "explain", "inspect", "tokenize", "bench"):
            self.refuse(2, verb, "-m", MODEL, "-v", says="unknown flag -v")

    def test_what_hearth_cannot_do(self):
        for flag in ("--lora", "--mmproj", "--image", "--draft", "--n-gpu-layers", "--embedding"):
            message = self.refuse(2, "run", flag, "x")
            self.assertRegex(message, f"{flag}: .*not (supported|there yet)")
        for flag in ("--reuse",):
            self.refuse(2, "bench", flag, says=f"{flag}: not there yet")

    def test_values(self):
        self.refuse(2, "run", "-n", "-1", says="'-1' is not a whole number of at least 0")
        self.refuse(2, "run", "-n", "1e9", says="'1e9'")
        self.refuse(2, "run", "-n", "9223372036854775808", says="whole number")
        self.refuse(2, "run", "-n", says="needs a value")
        self.refuse(2, "run", "--temp", "hot", says="from 0 to 1000")
        self.refuse(2, "run", "--temp", "nan", says="from 0 to 1000")
        self.refuse(2, "run", "--top-p", "1.5", says="from 0 to 1")
        self.refuse(2, "run", "--top-k=-1", says="top-k")
        self.refuse(2, "run", "--kv", "f8", says="none of f16|f32")
        self.refuse(2, "run", "--cpu-mask", "mmx", says="none of auto|ref")
        self.refuse(2, "run", "--memory", "8x", says="bytes")
        self.refuse(2, "run", "--greedy=1", says="takes no value")
        self.refuse(2, "bench", "--reps", "0", says="from 1 to 1000")
        self.refuse(2, "run", "stray", says="'stray' is no flag; a text is given with -p")
        self.refuse(2, "chat", "stray", says="'stray' is no flag; 'hearth chat --help'")

    def test_lists_of_numbers(self):
        for text in ("1,,2", ",2", "2,", ","):
            for args in (["bench", "--prompt"], ["bench", "--gen"], ["bench", "--depth"], ["bench", "--batch"],
                         ["logits", "--tokens"], ["logits", "--tokens", "1,2", "--cuts"], ["detokenize", "--tokens"]):
                self.refuse(2, args[0], "-m", MODEL, *args[1:], text, says="comma")

    def test_sizes_beyond_reason(self):
        for name in ("--ctx", "--rows", "--sessions", "--outputs", "--mark-slots", "--threads", "--memory"):
            for value in ("9223372036854775808", "-1", "1e30"):
                self.refuse(2, "run", "-m", MODEL, "-p", "a", "-n", "1", name, value, says=value)
        for value in ("9223372036854775808", "-1", "1e30"):
            self.refuse(2, "run", "-m", MODEL, "-p", "a", "-n", value, says=value)
        # A count that no context holds is as much as there is room for.
        for value in ("2147483647", "9223372036854775807"):
            report = self.report("run", "-m", MODEL, "--raw", "-p", "a", "-n", value, "--ignore-eos", "--ctx", "64")
            self.assertEqual(report["stop"], "context")

    def test_texts_that_are_too_long(self):
        """It is the prompt that is told, not a --ctx that was not given."""
        file = self.folder / "text"
        file.write_text("a " * 5000)
        for verb in ("run", "logits"):
            message = self.refuse(1, verb, "-m", MODEL, "-f", file, says="but the model's context holds 4096")
            self.assertRegex(message, r"the prompt has \d+ tokens")
            self.refuse(1, verb, "-m", MODEL, "-p", "one two three four", "--ctx", "1",
                        says="tokens, but the context asked for holds 1")
        self.refuse(2, "bench", "-m", MODEL, "--prompt", "4000", "--depth", "1000",
                    says="a measurement needs 5000 tokens, but the model's context holds 4096")

    def test_pictures_that_cannot_be_written(self):
        """Before anything is computed."""
        file = self.folder / "no/such.svg"
        for args in (["run", "-p", "a"], ["explain", "--open"], ["bench", "--prompt", "4"]):
            self.refuse(1, *args, "-m", MODEL, "--svg", file, says="such.svg: No such file or directory")

    def test_combinations(self):
        self.refuse(2, "logits", "-m", MODEL, "--tokens", "1", "--beside", "2", "--sessions", "2", says="--sessions 2")
        self.refuse(2, "bench", "-m", MODEL, "--idle", "5", says="--idle has an effect only with --cold")
        for args in (["--gen", "1"], ["--depth", "1"], ["--svg", "x"], ["--ops"], ["--sweep", "1"], ["--limits"]):
            self.refuse(2, "bench", "-m", MODEL, "--cold", *args, says=f"{args[0]} has no effect with --cold")
        self.refuse(2, "run", "-m", MODEL, "-p", "a", "-f", "b", says="not from both")
        self.refuse(2, "logits", "-m", MODEL, "-p", "a", "--tokens", "1", says="not as both")
        self.refuse(2, "bench", "-m", MODEL, "--prompt", "0", "--gen", "0", says="nothing to measure")
        self.refuse(2, "run", "-m", MODEL, "-p", "a", "--logit-bias", "x", says="--logit-bias")
        self.refuse(2, "run", "-m", MODEL, "-p", "a", "--logit-bias", "1=nan", says="--logit-bias")


class Models(ProgramTest):
    GIVEN = [["run", "-p", "a"], ["chat"], ["explain"], ["inspect"], ["tokenize", "-p", "a"], ["detokenize", "1"],
             ["logits", "--tokens", "1"], ["eval", "-p", "a"], ["bench", "--prompt", "1", "--gen", "1"]]

    def test_paths_that_are_no_models(self):
        empty, text = self.folder / "empty", self.folder / "text"
        empty.write_bytes(b"")
        text.write_text("This is no model. " * 100)
        for args in self.GIVEN:
            self.refuse(1, *args, "-m", self.folder, says="directory")
            self.refuse(1, *args, "-m", self.folder / "none.gguf", says="none.gguf")
            self.refuse(1, *args, "-m", empty, says="empty")
            self.refuse(1, *args, "-m", text)
            self.refuse(1, *args, "-m", "/dev/null")
            self.refuse(1, *args, "-m", "")

    def test_cut_files(self):
        data = Path(MODEL).read_bytes()
        for size in (4, 100, 20000, len(data) - 1):
            cut = self.folder / f"cut{size}.gguf"
            cut.write_bytes(data[:size])
            self.refuse(1, "run", "-m", cut, "-p", "a")

    def test_no_permission(self):
        locked = self.folder / "locked.gguf"
        locked.write_bytes(Path(MODEL).read_bytes())
        locked.chmod(0)
        self.folder.chmod(0o755)
        more = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        try:
            hearth("--version", **more)
        except PermissionError:
            self.skipTest("another user may not run the program here")
        for args in self.GIVEN:
            self.refuse(1, *args, "-m", locked, says="ermission denied", **more)

    def test_the_default_model(self):
        cache = self.folder / "cache"
        message = self.refuse(1, "run", "-p", "a", env=environment(HEARTH_CACHE=str(cache)))
        self.assertIn(f"{cache}/models/smollm2.gguf", message)
        self.assertIn("scripts/demo.sh", message)
        self.assertIn("-m FILE", message)
        for name, folder in (("HEARTH_CACHE", cache), ("XDG_CACHE_HOME", self.folder / "xdg/hearth"),
                             ("HOME", self.folder / "home/.cache/hearth")):
            (folder / "models").mkdir(parents=True)
            (folder / "models/smollm2.gguf").symlink_to(Path(MODEL).resolve())
            value = {"HEARTH_CACHE": folder, "XDG_CACHE_HOME": folder.parent, "HOME": folder.parent.parent}[name]
            env = environment(**{name: str(value)})
            if name == "HOME":
                env.pop("XDG_CACHE_HOME", None)
            self.assertIn(b"4096", self.succeed("explain", env=env))

    def test_no_memory(self):
        self.refuse(1, "run", "-m", MODEL, "-p", "a", "--memory", "1m", says="option memory")


class Settings(ProgramTest):
    def in_force(self, *args, env=None):
        options = self.report("explain", "-m", MODEL, *args, env=env)["options"]
        return {name: option["value"] for name, option in options.items()}

    def test_order(self):
        config = self.folder / "config"
        config.write_text("# settings\nctx = 100\nrows = 100\nkv = f32\n")
        found = self.in_force("--config", config, "--ctx", "300", env=environment(HEARTH_ROWS="200", HEARTH_CTX="200"))
        self.assertEqual((found["ctx"], found["rows"], found["kv"]), (300, 200, "f32"))

    def test_sigbus_is_on_unless_turned_off(self):
        self.assertIs(self.in_force()["sigbus"], True)
        self.assertIs(self.in_force("--no-sigbus")["sigbus"], False)
        self.assertIs(self.in_force("--sigbus=off")["sigbus"], False)

    def test_what_was_chosen_is_shown(self):
        args = ["explain", "-m", MODEL, "--cpu-mask", "ref"]
        report = self.report(*args, "--threads", "1")
        self.assertEqual(report["options"]["threads"], {"value": 1, "option": 1})
        report = self.report(*args)
        options = report["options"]
        self.assertGreaterEqual(report["threads"], 1)
        self.assertEqual(options["threads"], {"value": report["threads"], "option": 0})
        self.assertEqual(options["ctx"], {"value": 4096, "option": 0})
        self.assertEqual(options["memory"], {"value": report["allowed_bytes"], "option": 0})
        self.assertEqual(options["pre"], {"value": report["tokenizer"]["pre"], "option": ""})
        self.assertEqual(options["nfc"], {"value": "on", "option": "auto"})
        self.assertEqual(options["cpu-mask"], {"value": "ref", "option": "ref"})
        text = self.succeed(*args).decode()
        self.assertRegex(text, rf"\n  threads +{report['threads']}  \(chosen; option: 0\)\n")
        self.assertRegex(text, r"\n  cpu-mask +ref\n")

    def test_bad_settings(self):
        self.refuse(2, "explain", "-m", MODEL, env=environment(HEARTH_TREADS="1"), says="did you mean 'threads'?")
        self.refuse(2, "explain", "-m", MODEL, env=environment(HEARTH_KV="f8"), says="HEARTH_KV")
        config = self.folder / "config"
        config.write_text("kv = f32\nkvv = f32\n")
        self.refuse(2, "explain", "-m", MODEL, "--config", config, says="line 2")
        self.refuse(1, "explain", "-m", MODEL, "--config", self.folder / "none", says="none")

    def test_context_beyond_the_models(self):
        message = self.refuse(2, "explain", "-m", MODEL, "--ctx", "5000", says="5000")
        self.assertIn("4096", message)


if __name__ == "__main__":
    main()
