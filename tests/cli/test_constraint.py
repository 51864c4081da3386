"""run --grammar and --json-schema: the output keeps to them, or the run says why it ended before."""
import json
import re
import time

from program import MODEL, ProgramTest, main

RUN = ["run", "-m", MODEL, "--raw", "-p", "Once upon a time"]


class Constraint(ProgramTest):
    def file(self, text, name="constraint"):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_a_grammar_is_kept_to(self):
        grammar = self.file('root ::= "<" ("yes" | "no") ">" [0-9]{2,4} "!"\n')
        seen = set()
        for seed in range(8):
            report = self.report(*RUN, "--grammar", grammar, "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p",
                                 "0", "--seed", seed)
            self.assertRegex(report["text"], r"\A<(yes|no)>[0-9]{2,4}!\Z")
            self.assertEqual(report["stop"], "end")
            self.assertGreater(report["constraint"]["states"], 5)
            seen.add(report["text"])
        self.assertGreater(len(seen), 4)
        plain = self.succeed(*RUN, "--grammar-file", grammar, "--greedy").decode()
        self.assertRegex(plain, r"\A<(yes|no)>[0-9]{2,4}!\Z")

    def test_a_schema_is_kept_to(self):
        schema = self.file(json.dumps({
            "type": "object", "additionalProperties": False, "required": ["name", "age", "kind"],
            "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 1,
                           "maximum": 99}, "tags": {"type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 2},
                           "kind": {"enum": [None, "a"]}}}))
        for seed in range(8):
            report = self.report(*RUN, "--json-schema", schema, "--temp", "3", "--seed", seed)
            self.assertEqual(report["stop"], "end")
            value = json.loads(report["text"])
            self.assertEqual([k for k in value if k != "tags"], ["name", "age", "kind"])
            self.assertLessEqual(len(value["name"]), 8)
            self.assertIn(value["age"], range(1, 100))
            self.assertIn(value["kind"], (None, "a"))
            self.assertTrue(set(value.get("tags", [])) <= {"x", "y"} and len(value.get("tags", [])) <= 2)

    def test_only_the_end_may_follow(self):
        grammar = self.file('root ::= "{" "}"')
        for flags in ([], ["--ignore-eos"]):
            report = self.report(*RUN, "--grammar", grammar, *flags)
            self.assertEqual((report["text"], report["stop"]), ("{}", "end"))
        report = self.report(*RUN, "--grammar", self.file('root ::= ""'))
        self.assertEqual((report["text"], report["tokens"], report["stop"]), ("", [], "end"))

    def test_other_ends_are_named(self):
        grammar = self.file('root ::= "ab"{40}')
        report = self.report(*RUN, "--grammar", grammar, "-n", "3")
        self.assertEqual(report["stop"], "length")
        self.assertTrue(("ab" * 40).startswith(report["text"]))
        report = self.report(*RUN, "--grammar", grammar, "--stop", "ba")
        self.assertEqual((report["text"], report["stop"]), ("a", "stop_string"))

    def test_greedy_repeats_itself(self):
        grammar = self.file('root ::= [a-z ]{1,30} "."')
        texts = {self.succeed(*RUN, "--grammar", grammar, "--greedy", "--threads", n) for n in (1, 2)}
        self.assertEqual(len(texts), 1)
        self.assertTrue(re.fullmatch(rb"[a-z ]{1,30}\.", texts.pop()))

    def test_refusals(self):
        for text, says in (("root ::= (", "line 1, column 10: the group has no end"),
                           ("a ::= \"b\"\n", "the rule root is missing"), ("", "the rule root is missing"),
                           ("root ::= \"a\"\n  | \"b\"", "line 2, column 3"),
                           ("root ::= root", "left-recursive"), ("root ::= (\"a\"*)*", "can be empty"),
                           ("root ::= " + "(" * 60000, "nested more than"),
                           ("root ::= \"a\"{0,1000000000}", "too large")):
            start = time.monotonic()
            self.refuse(2, *RUN, "--grammar", self.file(text), says=says)
            self.assertLess(time.monotonic() - start, 60)
        for text, says in (("{", "no JSON"), ("", "no JSON"), ('{"type":"objekt"}', "#: \"type\""),
                           ('{"properties":{"a":{"not":{}}}}', "#/properties/a: the keyword \"not\""),
                           ("[" * 60000, "no JSON")):
            self.refuse(2, *RUN, "--json-schema", self.file(text), says=says)

    def test_usage(self):
        grammar = self.file('root ::= "a"')
        self.refuse(2, *RUN, "--grammar", grammar, "--json-schema", grammar, says="not from both")
        self.refuse(1, *RUN, "--grammar", self.folder / "missing", says="missing")
        self.refuse(2, *RUN, "--grammar", says="needs a value")


if __name__ == "__main__":
    main()
