"""chat: in a pipe, and on a pseudo-terminal as a person meets it."""
import json
import os
import re
import signal
import subprocess
import tempfile
import termios
import time
import unittest
from pathlib import Path

from person import Person
from program import MODEL, PROGRAM, TIMEOUT, ProgramTest, environment, hearth, main

HYBRID = Path(MODEL).parent / "q35-q4_0.gguf"  # with recurrent state: it goes back only to marks
CHAT = ["chat", "-m", MODEL, "--temp", "0"]
HOT = ["--temp", "8", "--top-k", "0", "--top-p", "1", "--min-p", "0"]
REMEMBER, QUESTION, ANSWER = "My code word is lamp.", "What is my code word?", "Your code word is lamp."


def lines(*messages):
    return "".join(m + "\n" for m in messages).encode()


class Pipe(ProgramTest):
    def answers(self, *messages, model=MODEL, args=()):
        text = self.succeed("chat", "-m", model, "--temp", "0", "--json", *args, stdin=lines(*messages))
        return [json.loads(line) for line in text.splitlines()]

    def test_a_line_in_an_answer_out(self):
        text = self.succeed(*CHAT, stdin=lines(REMEMBER, "", "My name is Ada.", QUESTION)).decode()
        self.assertEqual(text, f"I will remember lamp.\nHello Ada!\n{ANSWER}\n")
        self.assertEqual([a["content"] for a in self.answers(REMEMBER, "My name is Ada.", QUESTION)],
                         text.splitlines())
        self.assertEqual(self.succeed(*CHAT, stdin=b""), b"")
        self.assertEqual(self.succeed(*CHAT, stdin=lines(REMEMBER).replace(b"\n", b"\r\n")),
                         b"I will remember lamp.\n")
        self.assertEqual(self.succeed(*CHAT, stdin=REMEMBER.encode()), b"I will remember lamp.\n")

    def test_the_first_answer_is_that_of_run(self):
        for args in (["--temp", "0"], ["--seed", "5", "--temp", "2"]):
            run = self.report("run", "-m", MODEL, *args, "-p", "Hello", "-n", "40")
            text = self.succeed("chat", "-m", MODEL, *args, "-n", "40", "--json", stdin=lines("Hello"))
            self.assertEqual(json.loads(text)["content"], run["text"])

    def test_a_turn_computes_only_what_is_new(self):
        for model in (MODEL, HYBRID):
            done = 0  # tokens that the session holds
            for a in self.answers(REMEMBER, "Hello", "My name is Ada.", QUESTION, model=model):
                self.assertEqual(a["kept"], done, model)
                self.assertEqual(a["computed"], a["prompt_tokens"] - done)
                done = a["prompt_tokens"] + a["generated_tokens"]
            self.assertEqual(a["content"], ANSWER)

    def test_tokens_of_an_answer_are_kept_as_they_were_written(self):
        """A hot model writes tokens that its text would not become again."""
        for model in (MODEL, HYBRID):
            text = self.succeed("chat", "-m", model, *HOT, "-n", "30", "--seed", "3", "--json",
                                stdin=lines("Hello", "Hello", "Hello"))
            done = 0
            for a in map(json.loads, text.splitlines()):
                self.assertEqual((a["kept"], a["computed"] + a["kept"]), (done, a["prompt_tokens"]))
                # the last token of an answer cut short was not computed
                done = a["prompt_tokens"] + a["generated_tokens"] - (a["stop"] == "length")

    def test_going_back(self):
        ways = ((), ("/retry",), ("/undo", QUESTION), ("/back 2", REMEMBER, QUESTION))
        for model in (MODEL, HYBRID):
            first, retried, undone, again = (self.answers("Hello", REMEMBER, QUESTION, *way, model=model)[-1]
                                             for way in ways)
            for a in (first, retried, undone, again):
                self.assertEqual((a["content"], a["prompt_tokens"]), (ANSWER, first["prompt_tokens"]))
            self.assertEqual((retried["computed"], undone["computed"]), (1, 1))
            self.assertEqual(again["computed"], first["computed"])
            forgotten, fresh = (self.answers(*said, model=model)[-1] for said in ((REMEMBER, "/undo", QUESTION),
                                                                                  (QUESTION,)))
            self.assertNotEqual(forgotten["content"], ANSWER)
            self.assertEqual((forgotten["content"], forgotten["prompt_tokens"]),
                             (fresh["content"], fresh["prompt_tokens"]))

    def test_reset_keeps_the_system_message(self):
        for model in (MODEL, HYBRID):
            one = self.answers("Hello", model=model, args=("--system", REMEMBER))
            two = self.answers("My name is Ada.", "/reset", "Hello", model=model, args=("--system", REMEMBER))
            self.assertEqual(one[0]["content"], two[1]["content"])
            self.assertEqual(one[0]["prompt_tokens"], two[1]["prompt_tokens"])
            self.assertGreater(two[1]["kept"], 10)  # where the first user's message began

    def test_which_marks_stay(self):
        """Of many turns those remain that going back far needs; a model with recurrent state shows it."""
        turns = [REMEMBER, "Hello", "My name is Ada.", "Hello", "Hello", "Hello"]
        args = ("--system", "My name is Ada.")
        for model in (MODEL, HYBRID):
            reset = self.answers(*turns, "/reset", "Hello", model=model, args=args)
            self.assertGreaterEqual(reset[-1]["kept"], 10)  # the system message
            back = self.answers(*turns, "/back 3", QUESTION, model=model, args=args)
            self.assertEqual(back[-1]["content"], ANSWER)
            self.assertGreaterEqual(back[-1]["kept"], back[2]["prompt_tokens"])

    def test_ctrl_c_ends_the_chat_with_what_was_said(self):
        command = [PROGRAM, *CHAT, "--ignore-eos"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment())
        process.stdin.write(lines("Hello", "Hello"))
        process.stdin.flush()
        first = os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGINT)
        text, message = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, message), (0, b""))
        self.assertTrue((first + text).startswith(b"Hello"))
        self.assertTrue(text.endswith(b"\n"))

    def test_any_number_of_slots_will_do(self):
        expected = [a["content"] for a in self.answers(REMEMBER, "Hello", "My name is Ada.", QUESTION, "/back 3",
                                                       QUESTION, model=HYBRID)]
        for slots in (0, 1, 2, 3, 5, 20, 400):
            found = self.answers(REMEMBER, "Hello", "My name is Ada.", QUESTION, "/back 3", QUESTION, model=HYBRID,
                                 args=("--mark-slots", slots))
            self.assertEqual([a["content"] for a in found], expected)
            self.assertTrue(all(a["marks"] <= slots for a in found))
        self.assertEqual(found[-1]["computed"], found[0]["prompt_tokens"])

    def test_a_retry_draws_again(self):
        text, same = (self.succeed("chat", "-m", MODEL, *HOT, "--seed", "1", "-n", "8", "--json",
                                   stdin=lines("Hello", *["/retry"] * 4)).decode().splitlines() for _ in range(2))
        self.assertEqual([json.loads(a)["content"] for a in text], [json.loads(a)["content"] for a in same])
        self.assertEqual(len({json.loads(a)["content"] for a in text}), 5)

    def test_messages_of_several_lines(self):
        template = self.folder / "template"
        template.write_text("{% for m in messages %}{{ m.role ~ m.content | tojson }}{% endfor %}")
        def tokens(text):
            result = hearth(*CHAT, "-n", "1", "--template", template, stdin=text + b"\n/tokens\n")
            self.assertEqual(result.returncode, 0, result.stderr)
            return int(re.search(rb"last prompt +(\d+)", result.stderr + hearth(
                *CHAT, "-n", "1", "--template", template, stdin=text + b"\n/stats\n").stderr).group(1))
        plain = tokens(b'"""\na\n/b\n"""')
        self.assertEqual(tokens(b"a\\\n/b"), plain)
        self.assertEqual(tokens(b'"""a\n/b"""'), plain)
        self.assertEqual(tokens(b'""" \na\n/b\n""" '), plain)
        self.assertNotEqual(tokens(b'"""\na\n\n/b\n"""'), plain)
        self.assertEqual(tokens(b"//b"), tokens(b'"""/b"""'))
        self.refuse(1, *CHAT, stdin=b'"""\nno end\n', says="has no end")

    def test_system_messages(self):
        told = self.answers("Hello", args=("--system", REMEMBER))[0]
        file = self.folder / "system"
        file.write_text(REMEMBER + "\n")
        for messages in (("/system " + REMEMBER, "Hello"), (f"/system @{file}", "Hello"),
                         ("/system x", "Hello", "/system " + REMEMBER, "/retry")):
            self.assertEqual(self.answers(*messages)[-1]["prompt_tokens"], told["prompt_tokens"])
        self.assertEqual(self.answers('/system ""', "Hello", args=("--system", REMEMBER))[0]["prompt_tokens"],
                         self.answers("Hello")[0]["prompt_tokens"])

    def test_a_constraint(self):
        schema = self.folder / "schema"
        schema.write_text('{"type": "object", "properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0}}, '
                          '"required": ["a"], "additionalProperties": false}')
        found = self.answers("Hello", "Hello", args=("--json-schema", schema))
        for a in found:
            self.assertIn(json.loads(a["content"])["a"], range(10))

    def test_a_full_context(self):
        answers = self.answers("Hello", args=("--ctx", "10", "--ignore-eos"))
        self.assertEqual((answers[0]["stop"], answers[0]["prompt_tokens"] + answers[0]["generated_tokens"]),
                         ("context", 11))
        result = hearth(*CHAT, "--ctx", "10", "--ignore-eos", stdin=lines("Hello"))
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"context of 10 tokens is full: /undo", result.stderr)
        result = hearth(*CHAT, "--ctx", "30", stdin=lines("Hello", "word " * 40, "Hello"))
        self.assertEqual((result.returncode, result.stdout.count(b"\n")), (1, 1))
        self.assertRegex(result.stderr.decode(), r"has \d+ tokens, but the context holds 30: /undo or /reset")

    def test_reasoning_and_calls(self):
        """What a model writes is forced by a grammar; the template strips thoughts from old answers."""
        template, grammar = self.folder / "template", self.folder / "grammar"
        template.write_text("{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}"
                            "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>"
                            "{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
                            "{# <tool_call> reasoning_content <think> #}")
        call = '<tool_call>\\n{\\"name\\": \\"f\\", \\"arguments\\": {\\"x\\": 1}}\\n</tool_call>'
        grammar.write_text(f'root ::= "<think>\\nhm\\n</think>\\n\\nyes" ("" | "{call}")')
        args = ("--template", template, "--grammar", grammar)
        for model in (MODEL, HYBRID):
            found = self.answers("Hello", "Hello", "Hello", model=model, args=args)
            for i, a in enumerate(found):
                self.assertEqual((a["content"], a["reasoning"]), ("yes", "hm"))
                if i > 0:  # all but the last token of the prompt before, behind which the thoughts stood
                    self.assertGreaterEqual(a["kept"], found[i - 1]["prompt_tokens"] - 1)
        grammar.write_text(f'root ::= "<think>\\nhm\\n</think>\\n\\nyes{call}"')
        found = self.answers("Hello", "Hello", args=args)
        self.assertEqual([a["tool_calls"] for a in found], [[{"name": "f", "arguments": {"x": 1}}]] * 2)
        self.assertEqual(self.succeed(*CHAT, *args, stdin=lines("Hello")), b'yes\n[call] f {"x": 1}\n')

    def prompt_tokens(self, template, request):
        """How many tokens a request's prompt has."""
        file = self.folder / "request"
        file.write_text(json.dumps(request))
        return len(self.report("template", "-m", MODEL, "--file", template, "--input", file)["ids"])

    def test_tools(self):
        """The template shows the tools, calls are answered with /tool, and the next turn holds both."""
        template, grammar, file = self.folder / "template", self.folder / "grammar", self.folder / "tools"
        template.write_text("{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
                            "{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}{% if m.name %}"
                            "{{ m.name + m.tool_call_id }}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>"
                            "{{ c.function | tojson }}{{ c.id }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
                            "<|im_start|>assistant\n")
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {
            "type": "integer"}}}}}]
        file.write_text(json.dumps(tools))
        one, two = ('<tool_call>{\\"name\\": \\"%s\\", \\"arguments\\": {\\"x\\": 1}}</tool_call>' % name
                    for name in "fg")
        grammar.write_text(f'root ::= "{one}{two}"')
        args = ("--template", template, "--grammar", grammar, "--tools", file)
        calls = [{"name": name, "arguments": {"x": 1}} for name in "fg"]
        result = self.folder / "result"
        result.write_text("two\n")
        for model in (MODEL, HYBRID):
            found = self.answers("Hello", "/tool 1", f"/tool @{result}", "/retry", model=model, args=args)
            self.assertEqual([a["tool_calls"] for a in found], [calls] * 3)
            asked = [{"role": "user", "content": "Hello"}]
            told = [{"role": "assistant", "content": "", "tool_calls": [
                {"id": f"call{i:05}", "function": call} for i, call in enumerate(calls)]}] + [
                {"role": "tool", "content": text, "name": name, "tool_call_id": f"call{i:05}"}
                for i, (text, name) in enumerate((("1", "f"), ("two", "g")))]
            first, second, again = (a["prompt_tokens"] for a in found)
            self.assertEqual(first, self.prompt_tokens(template, {"messages": asked, "tools": tools}))
            self.assertEqual(second, self.prompt_tokens(template, {"messages": asked + told, "tools": tools}))
            self.assertEqual((again, found[2]["computed"]), (second, 1))
        text = self.succeed(*CHAT, *args, stdin=lines("Hello")).decode()
        self.assertEqual(text, '[call] f {"x": 1}\n[call] g {"x": 1}\n')
        self.refuse(1, *CHAT, stdin=lines("/tool 1"), says="no call waits")
        self.assertIn(b"no call waits", hearth(*CHAT, *args, stdin=lines("Hello", "/undo", "/tool 1")).stderr)
        for text, says in (("{}", "not a JSON array"), ("[", "ends too early"), ("", "ends too early")):
            file.write_text(text)
            self.refuse(2, *CHAT, *args, stdin=b"", says=f"{file}: tools: ")
        file.write_text("[]")
        template.write_text("{{ messages[0].content }}")
        self.refuse(2, *CHAT, *args, stdin=b"", says="shows the model no tools")
        self.refuse(1, *CHAT, "--tools", "/nowhere/x", stdin=b"", says="/nowhere/x")

    def test_template_arguments(self):
        template = self.folder / "template"
        template.write_text("{% if thinking is sameas false %}{{ 'no ' * 5 }}{% endif %}{{ effort | default('') }}"
                            "{{ messages[-1].content }}{{ list | default([]) | length * 'a ' }}")
        def tokens(*args):
            both = [json.loads(self.succeed("chat", "-m", MODEL, "--json", "-n", "1", "--template", template, *args,
                                            stdin=lines("Hello")))["prompt_tokens"],
                    self.report("run", "-m", MODEL, "-n", "1", "--template", template, *args, "-p", "Hello")[
                        "prompt_tokens"]]
            self.assertEqual(both[0], both[1])
            return both[0]
        plain = tokens()
        self.assertEqual(tokens("--template-arg", "thinking=true"), plain)
        self.assertEqual(tokens("--template-arg", "thinking=False"), plain)  # a text
        self.assertGreater(tokens("--template-arg", "thinking=false"), plain)
        self.assertGreater(tokens("--template-arg", "effort=high = 1", "--template-arg", "thinking=true"), plain)
        self.assertEqual(tokens("--template-arg", 'list=["x", "y"]'), tokens("--template-arg", "effort=a a "))
        for given, says in (("thinking", "NAME=VALUE"), ("=x", "NAME=VALUE"), ("thinkin=1", "no variable 'thinkin'"),
                            ("messages=[]", "by the conversation"), ("tools=[]", "by the conversation")):
            for verb in (("chat", "-m", MODEL), ("run", "-m", MODEL, "-p", "Hello")):
                self.refuse(2, *verb, "--template", template, "--template-arg", given, says=says)
        self.refuse(2, "run", "-m", MODEL, "-p", "Hello", "--raw", "--template-arg", "a=b", says="no effect with --raw")
        bare = Path(MODEL).parent / "tiny-llama-bf16.gguf"
        self.refuse(1, "run", "-m", bare, "-p", "Hello", "--template-arg", "a=b")

    def test_refusals(self):
        self.refuse(1, *CHAT, stdin=lines("/udno"), says="did you mean /undo?")
        self.refuse(1, *CHAT, stdin=lines("/frobnicate"), says="/help lists them")
        self.refuse(1, *CHAT, stdin=lines("/undo"), says="there is no turn to go back")
        self.refuse(1, *CHAT, stdin=lines("/back 2"), says="there is no turn to go back")
        self.refuse(1, *CHAT, stdin=lines("/retry"), says="no answer")
        self.refuse(1, *CHAT, stdin=lines("/back x"), says="'x'")
        self.refuse(1, *CHAT, stdin=lines("/reset now"), says="takes nothing")
        self.refuse(1, *CHAT, stdin=lines("/edit"), says="needs a terminal")
        self.refuse(1, *CHAT, stdin=lines("/system @/nowhere/x"), says="/nowhere/x")
        self.refuse(1, *CHAT, stdin=b"a\xff\n", says="not UTF-8")
        system = self.folder / "system"
        system.write_bytes(b"\xff")
        self.refuse(1, *CHAT, "--system", f"@{system}", says=f"{system} is not UTF-8")
        self.refuse(1, *CHAT, stdin=lines(f"/system @{system}"), says=f"{system} is not UTF-8")
        self.refuse(2, *CHAT, "--stop", "", says="stop string")
        self.refuse(2, *CHAT, "--history", "x", says="terminal")
        self.refuse(1, *CHAT, "--logit-bias", "5000=1", says="5000")
        self.refuse(1, "chat", "-m", Path(MODEL).parent / "tiny-llama-bf16.gguf")
        template = self.folder / "template"
        template.write_text("{{ raise_exception('not today') }}")
        self.refuse(1, *CHAT, "--template", template, stdin=lines("a"), says="not today")
        template.write_text("")
        self.refuse(1, *CHAT, "--template", template, stdin=lines("a"), says="the prompt has no tokens")

    def test_an_input_that_cannot_be_read(self):
        folder = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        result = subprocess.run([PROGRAM, *map(str, CHAT)], stdin=folder, capture_output=True, timeout=TIMEOUT,
                                env=environment(), check=False)
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn(b"cannot read standard input: Is a directory", result.stderr)

    def test_an_input_without_an_end(self):
        """A line, or a message of many lines, is refused before it fills the memory."""
        with open("/dev/zero", "rb") as zeros:
            result = subprocess.run([PROGRAM, *map(str, CHAT)], stdin=zeros, capture_output=True, timeout=TIMEOUT,
                                    env=environment(), check=False)
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn(b"a line of standard input has more than 67108864 bytes", result.stderr)
        half = b"a" * (33 << 20) + b"\\\n"
        self.refuse(1, *CHAT, stdin=half + half, says="the message has more than 67108864 bytes")
        self.refuse(1, *CHAT, stdin=b'"""\n' + half + half, says="the message has more than 67108864 bytes")

    def test_help(self):
        result = hearth(*CHAT, stdin=lines("/help", "/quit", "never seen"))
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        for command in ("system", "retry", "edit", "undo", "back", "stats", "tokens", "reset", "tool", "help", "quit"):
            self.assertIn(f"/{command}", result.stderr.decode())


class Terminal(unittest.TestCase):
    def test_a_tool_is_answered(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "tools").write_text("[]")
            (folder / "grammar").write_text('root ::= "<tool_call>{\\"name\\": \\"f\\"}</tool_call>"')
            (folder / "template").write_text("{{ tools }}{% for m in messages %}<|im_start|>{{ m.role + m.content }}"
                                             "{% endfor %}<|im_start|>{# <tool_call></tool_call> #}")
            p = self.person("--template", folder / "template", "--grammar", folder / "grammar",
                            "--tools", folder / "tools")
            p.say("Hello", r"\[call\] f \{\}\n\(/tool TEXT, or /tool @FILE, gives the result of f;")
            p.say("/tool 1", r"\[call\] f \{\}\n\(/tool TEXT")
            self.assertEqual([role for role, _ in p.messages()], ["user", "assistant", "tool", "assistant"])
            p.say("/undo", "")
            p.say("/tool 1", "no call waits")
            self.assertEqual(p.leave("\x04"), 0)

    def person(self, *args, **more):
        person = Person(*CHAT, *args, **more)
        self.addCleanup(os.close, person.fd)
        person.until(r"/help lists commands.*> $")
        return person

    def test_talking(self):
        p = self.person()
        p.say(REMEMBER, "I will remember lamp.")
        p.say(QUESTION, ANSWER)
        p.say("/stats", r"last prompt +\d+ tokens: \d+ kept, \d+ computed")
        p.say("/undo", "")
        self.assertEqual(p.messages(), [("user", REMEMBER), ("assistant", "I will remember lamp.")])
        p.say("/nudo", r"did you mean /undo\?")
        p.say("/reset", "")
        p.say("/tokens", "0 of 4096 tokens")
        self.assertEqual(p.leave("\x04"), 0)

    def test_editing_keys(self):
        p = self.person()
        # left twice, insert; home, insert; end; backspace; delete a word; home, delete
        p.say("Hllo\x1b[D\x1b[D\x1b[De\x1b[H\x1b[F!!\x7f", r".")
        p.say("xMy name is Ada.\x01\x04", "Hello Ada")
        p.say("one two\x17three", ".")
        p.say("caf\u00e9 \u65e5\u672c\x7f \U0001f642z\x7f", ".")
        users = [text for role, text in p.messages() if role == "user"]
        self.assertEqual(users, ["Hello!", "My name is Ada.", "one three", "caf\u00e9 \u65e5 \U0001f642"])
        self.assertEqual(p.leave("\x04"), 0)

    def test_history(self):
        p = self.person()
        p.say(REMEMBER, "lamp")
        p.say("My name is Ada.", "Ada")
        p.say("\x1b[A\x1b[A", "I will remember lamp")
        p.say("\x1bOA\x1b[B\x1b[A\x7f!", ".")
        self.assertEqual([text for role, text in p.messages() if role == "user"],
                         [REMEMBER, "My name is Ada.", REMEMBER, REMEMBER[:-1] + "!"])
        self.assertEqual(p.leave("/quit\r"), 0)


    def test_a_history_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "history"
            p = self.person("--history", file)
            p.say(REMEMBER, "lamp")
            p.say("caf\u00e9", ".")
            self.assertEqual(p.leave("\x04"), 0)
            p = self.person("--history", file)
            p.say("\x1b[A\x1b[A", "I will remember lamp")
            p.say("\x1b[A\x1b[A!", ".")
            self.assertEqual(p.messages()[2], ("user", "caf\u00e9!"))
            self.assertEqual(p.leave("\x04"), 0)

    def test_ctrl_c_stops_an_answer(self):
        p = self.person("--ignore-eos")
        since = len(p.text())
        p.type("Hello\r")
        p.until("Hello! How can I help you today.*\n.*", since)
        p.type("\x03")
        p.until(r"\(stopped\)\n> $", since)
        said = p.messages()
        self.assertEqual([role for role, _ in said], ["user", "assistant"])
        self.assertTrue(said[1][1].startswith("Hello! How can I help you today"), said)
        # What was said stays in the session: the next turn computes only its own rows.
        since = len(p.text())
        p.type("Hello\r")
        p.until(r"\w+.*\n.*\w", since)
        p.type("\x03")
        p.until(r"\(stopped\)\n> $", since)
        kept = p.say("/stats", r"last prompt +(\d+) tokens: (\d+) kept, (\d+) computed")
        self.assertLess(int(kept[3]), 20)
        self.assertEqual(int(kept[2]) + int(kept[3]), int(kept[1]))
        self.assertEqual(p.leave("\x04"), 0)

    def test_ctrl_c_before_an_answer(self):
        p = self.person("--rows", "1")
        since = len(p.text())
        p.type("word " * 700 + "\r")
        p.until(r"reading the prompt: \d", since)
        p.type("\x03")
        p.until(r"not answered: /edit.*\n> $", since)
        p.say("/tokens", "0 of 4096")
        since = len(p.text())
        p.type("/edit\r")
        p.until(r"word $", since)
        p.type("\x15")
        self.assertEqual(p.leave("\x04"), 0)

    def test_ctrl_c_in_a_line(self):
        p = self.person()
        since = len(p.text())
        p.type("never sent")
        p.until("never sent$", since)  # the system throws away with Ctrl-C what nobody has read
        p.type("\x03")
        p.until(r"\n> $", since)
        p.type('"""never\r')
        p.until(r"\n\. $", since)
        p.type("sent")
        p.until("sent$", since)
        p.type("\x03")
        p.until(r"sent\n> $", since)
        p.say(REMEMBER, "lamp")
        since = len(p.text())
        p.type("\x03")
        p.until(r"Ctrl-C again leaves.*\n> $", since)
        p.say(QUESTION, ANSWER)  # so that the next is the first again
        since = len(p.text())
        p.type("\x03")
        p.until(r"Ctrl-C again leaves.*\n> $", since)
        self.assertEqual([text for role, text in p.messages() if role == "user"], [REMEMBER, QUESTION])
        p.type("\x03")
        p.until(r"Ctrl-C again leaves.*Ctrl-C again leaves.*Ctrl-C again leaves.*\n> $")
        self.assertEqual(p.leave("\x03"), 0)

    def test_edit(self):
        p = self.person()
        p.say("My code word is river.", "river")
        since = len(p.text())
        p.type("/edit\r")
        p.until(r"> My code word is river\.$", since)
        p.say("\x7f" * 6 + "lamp.", "I will remember lamp")
        self.assertEqual(p.messages()[0], ("user", REMEMBER))
        p.say('"""two\rlines"""', ".")
        since = len(p.text())
        p.type("/edit\r")
        p.until(r"two\n *lines$", since)
        p.say("!", ".")
        self.assertEqual(p.messages()[2], ("user", "two lines!"))
        self.assertEqual(p.leave("\x04"), 0)

    def test_pasting(self):
        p = self.person()
        p.say("\x1b[200~My name\ris Ada\t\x07\x1b[31m.\x1b[201~", ".")
        self.assertEqual(p.messages()[0], ("user", "My name is Ada [31m."))
        p.say('"""My name\ris Ada."""', ".")
        self.assertEqual(p.messages()[2], ("user", "My name is Ada."))
        p.say("My name\\\ris Ada.", ".")
        self.assertEqual(p.messages()[4], ("user", "My name is Ada."))
        self.assertEqual(p.leave("\x04"), 0)

    def test_another_size(self):
        p = self.person(columns=30)
        p.type("My code word")
        p.until("My code word$")
        p.resize(20)
        time.sleep(0.05)
        p.say(" is lamp, is lamp, is lamp, is lamp.\x01\x05", "lamp")
        p.resize(100)
        p.say("x" * 250 + "\x7f" * 250 + REMEMBER, "I will remember lamp")
        self.assertEqual([text for role, text in p.messages() if role == "user"],
                         ["My code word is lamp, is lamp, is lamp, is lamp.", REMEMBER])
        self.assertEqual(p.leave("\x04"), 0)

    def test_typing_ahead(self):
        p = self.person("--ignore-eos", "-n", "400")
        since = len(p.text())
        p.type("Hello\r")
        p.until("help", since)
        p.type("ahead\x7f\x7f")  # neither shown in the answer nor lost
        p.until(r"stopped after 400 tokens\)\n> ahe", since)
        self.assertEqual(p.text().count("ahe"), 1)
        p.say("!", ".")
        self.assertEqual(p.messages()[2], ("user", "ahe!"))
        self.assertEqual(p.leave("\x04"), 0)

    def test_reasoning_and_harm(self):
        with tempfile.TemporaryDirectory() as folder:
            grammar = Path(folder) / "grammar"
            grammar.write_text('root ::= "<think>\\nhm\\n</think>\\n\\nyes\\x1b[31m\\tno"')
            p = self.person("--grammar", grammar)
            p.say("Hello", "yes")
            self.assertIn(b"\x1b[2mhm\x1b[0m\r\n\r\nyes\xef\xbf\xbd[31m\tno\r\n", p.seen)
            self.assertEqual(p.leave("\x04"), 0)
            for changes in ({"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}):
                p = self.person("--grammar", grammar, env=environment(**changes))
                p.say("Hello", "yes")
                self.assertIn("[reasoning]\nhm\n[end of reasoning]\nyes", p.text())
                self.assertNotIn(b"\x1b[2m", p.seen)
                self.assertEqual(p.leave("\x04"), 0)

    def test_a_full_context(self):
        p = self.person("--ctx", "40")
        p.say(REMEMBER, "lamp")
        p.say("word " * 40, r"has \d+ tokens, but the context holds 40: /undo or /reset.*not answered")
        p.say("/undo", "")
        p.say(REMEMBER, "I will remember lamp")
        self.assertEqual(len(p.messages()), 2)
        self.assertEqual(p.leave("\x04"), 0)

    def modes_after(self, end):
        """The terminal's modes when the program is gone; `end` ends it and says how it has to have ended."""
        p = self.person()
        held = p.hold()
        self.assertFalse(termios.tcgetattr(held)[3] & termios.ECHO)
        status = end(p)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(p.pid, 0)[1]), status)
        modes = termios.tcgetattr(held)[3]
        os.close(held)
        while p.read():
            pass
        self.assertTrue(p.seen.decode().rstrip().endswith("\x1b[?2004l"), p.seen[-40:])
        return modes & (termios.ECHO | termios.ICANON)

    def test_the_terminal_is_given_back(self):
        """Planted: nothing at the end, no handler of SIGTERM."""
        def leave(p):
            p.type("\x04")
            return 0
        self.assertEqual(self.modes_after(leave), termios.ECHO | termios.ICANON)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            def kill(p, number=number):
                os.kill(p.pid, number)
                return -number
            self.assertEqual(self.modes_after(kill), termios.ECHO | termios.ICANON, number)

    def test_a_signal_in_an_answer(self):
        p = self.person("--ignore-eos")
        held = p.hold()
        p.type("Hello\r")
        p.until(r"> Hello\n\w")
        os.kill(p.pid, signal.SIGTERM)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(p.pid, 0)[1]), -signal.SIGTERM)
        self.assertTrue(termios.tcgetattr(held)[3] & termios.ECHO)
        os.close(held)


if __name__ == "__main__":
    main()
