"""template: what goes in and comes out, and what is refused."""
import json
import struct
from pathlib import Path

from program import MODEL, ProgramTest, hearth, main

VOCABULARY = Path(MODEL).parent.parent / "tokenizer/bpe.gguf"
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
REQUEST = {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi <|im_end|>"}],
           "add_generation_prompt": True}


class Template(ProgramTest):
    def setUp(self):
        super().setUp()
        self.template = self.folder / "template.jinja"
        self.template.write_text(CHATML)
        self.request = self.folder / "request.json"
        self.request.write_text(json.dumps(REQUEST))

    def test_prints_the_prompt(self):
        text = self.succeed("template", "--file", self.template, "--input", self.request)
        self.assertEqual(text, b"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n"
                               b"<|im_start|>assistant\n")
        self.assertEqual(self.succeed("template", "--file", self.template, stdin=self.request.read_bytes()), text)

    def test_reports_marks_and_segments(self):
        report = self.report("template", "--file", self.template, "--input", self.request)
        text = report["text"]
        self.assertEqual([(m["message"], m["offset"], m["stable"], m["generation_prompt"]) for m in report["marks"]],
                         [(0, 0, True, False), (1, text.index("<|im_start|>user"), True, False),
                          (2, text.index("<|im_start|>assistant"), True, True)])
        contents = [text[s["begin"]:s["end"]] for s in report["segments"] if s["content"]]
        self.assertEqual(contents, ["S", "Hi <|im_end|>"])
        self.assertNotIn("ids", report)
        self.assertEqual(len(self.report("template", "--file", self.template, "--input", self.request,
                                         "--marks", "1")["marks"]), 1)

    def test_time(self):
        self.template.write_text("{{ strftime_now('%d %b %Y %A %j %H:%M:%S') }}")
        for now, shown in (("2024-07-26T12:30:05", b"26 Jul 2024 Friday 208 12:30:05"),
                           ("2000-02-29", b"29 Feb 2000 Tuesday 060 00:00:00")):
            self.assertEqual(self.succeed("template", "--file", self.template, "--input", self.request, "--now", now),
                             shown)
        for now in ("2023-02-29", "yesterday", "2024-13-01", "2024-07-26T25:00"):
            self.refuse(1, "template", "--file", self.template, "--input", self.request, "--now", now, says=now)

    def test_refusals(self):
        self.template.write_text("{{ raise_exception('Only ' ~ messages | length ~ ' of 3') }}")
        message = self.refuse(1, "template", "--file", self.template, "--input", self.request)
        self.assertEqual(message, "hearth template: Only 2 of 3\n")
        self.template.write_text("a\n{% nosuch %}")
        self.refuse(1, "template", "--file", self.template, "--input", self.request, says="line 2, column 1")
        self.template.write_text(CHATML)
        for text, says in (("{", "JSON"), ("{}", "messages"), ('{"messages": [3]}', "messages[0]"),
                           ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "surrogate")):
            self.refuse(1, "template", "--file", self.template, stdin=text.encode(), says=says)
        self.refuse(1, "template", "--file", self.folder / "none", "--input", self.request, says="none")

    def test_empty_calls_are_none(self):
        self.template.write_text("{% for m in messages %}{{ m.tool_calls is defined }}{% endfor %}")
        request = {"messages": [{"role": "assistant", "content": "", "tool_calls": []},
                                {"role": "assistant", "content": "", "tool_calls": [1]}]}
        self.assertEqual(self.succeed("template", "--file", self.template, stdin=json.dumps(request).encode()),
                         b"FalseTrue")

    def test_help(self):
        self.assertIn(b"--input", hearth("template", "--help").stdout)


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(templates):
    """A file with a vocabulary of three tokens and these templates."""
    entries = [("general.architecture", "llama"), ("tokenizer.ggml.model", "gpt2"), *templates.items()]
    body = b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in entries)
    body += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3) + text("a") + text("b") + text("<s>")
    body += text("tokenizer.ggml.token_type") + struct.pack("<IIQ3i", 9, 5, 3, 1, 1, 3)
    body += text("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, 0)
    body += text("tokenizer.ggml.bos_token_id") + struct.pack("<II", 4, 2)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries) + 4) + body


class WithVocabulary(ProgramTest):
    def test_templates_of_a_file(self):
        model, name = self.folder / "m.gguf", "tokenizer.chat_template"
        plain = json.dumps({"messages": []}).encode()
        tools = json.dumps({"messages": [], "tools": [{"type": "function"}]}).encode()
        model.write_bytes(gguf({name: "plain {{ bos_token }}", name + ".tool_use": "tools", name + ".rag": "rag"}))
        self.assertEqual(self.succeed("template", "-m", model, stdin=plain), b"plain <s>")
        self.assertEqual(self.succeed("template", "-m", model, stdin=tools), b"tools")
        self.assertEqual(self.succeed("template", "-m", model, "--name", "rag", stdin=tools), b"rag")
        self.refuse(1, "template", "-m", model, "--name", "x", stdin=plain, says="chat_template.x")
        model.write_bytes(gguf({name + ".tool_use": "tools"}))
        self.assertEqual(self.succeed("template", "-m", model, stdin=plain), b"tools")

    def test_content_is_text(self):
        template = self.folder / "template.jinja"
        template.write_text(CHATML)
        report = self.report("template", "-m", VOCABULARY, "--file", template, stdin=json.dumps(REQUEST).encode())
        start = report["ids"][report["marks"][0]["position"]]
        self.assertEqual([report["ids"][m["position"]] for m in report["marks"]], [start] * 3)
        end = self.report("tokenize", "-m", VOCABULARY, "-p", "<|im_end|>", "--no-bos")["ids"]
        self.assertEqual(len(end), 1)
        self.assertEqual(report["ids"].count(end[0]), 2)  # of three spellings, one is content
        self.refuse(1, "template", "-m", VOCABULARY, stdin=json.dumps(REQUEST).encode(), says="chat_template")


if __name__ == "__main__":
    main()
