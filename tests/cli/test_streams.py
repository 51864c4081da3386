"""Terminals, pipes, closed and full outputs, and Ctrl-C."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from program import MODEL, PROGRAM, TIMEOUT, ProgramTest, environment, hearth, main

LONG = ["run", "-m", MODEL, "--raw", "-p", "Once upon a time", "-n", "4000", "--temp", "0", "--ignore-eos"]
SHORT = ["run", "-m", MODEL, "--raw", "-p", "Once upon a time", "-n", "8", "--temp", "0", "--ignore-eos"]


def start(args, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([PROGRAM, *args], env=environment(), **more)


class Outputs(ProgramTest):
    def test_full_disk(self):
        for args in (SHORT, [*SHORT, "--json"], ["tokenize", "-m", MODEL, "-p", "a"], ["explain", "-m", MODEL],
                     ["--help"], ["run", "--help"], ["--version"], ["inspect", "-m", MODEL]):
            with open("/dev/full", "wb") as full:
                process = start(args, stdout=full, stderr=subprocess.PIPE)
                message = process.communicate(timeout=TIMEOUT)[1].decode()
            self.assertEqual(process.returncode, 1, args)
            self.assertIn("cannot write to standard output", message)
            if args == SHORT:
                self.assertIn("No space left on device", message)

    def test_closed_output(self):
        for args in (SHORT, ["explain", "-m", MODEL], ["--version"]):
            result = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, *args], env=environment(),
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
            self.assertEqual(result.returncode, 1, args)
            self.assertIn(b"cannot write to standard output", result.stderr)

    def test_a_closed_output_is_not_handed_to_a_file(self):
        rows = self.folder / "rows"
        subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", PROGRAM, "logits", "-m", MODEL, "--tokens", "1", "-o",
                        str(rows)], env=environment(), stdin=subprocess.DEVNULL, timeout=TIMEOUT, check=False)
        self.assertEqual(rows.stat().st_size, 4 * 4096)

    def test_closed_input(self):
        result = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", PROGRAM, "tokenize", "-m", MODEL], timeout=TIMEOUT,
                                env=environment(), capture_output=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot read standard input", result.stderr)

    def test_a_reader_that_goes_away(self):
        process = start(LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        message = process.stderr.read()
        self.assertEqual(process.wait(TIMEOUT), 1)
        self.assertEqual(message, b"")
        process.stderr.close()

    def test_a_reader_that_is_gone_already(self):
        # Written past hth_out, so that say.c has to find out why it failed; without that it complained.
        for args in (["explain", "-m", MODEL], ["explain", "-m", MODEL, "--json"], ["inspect", "-m", MODEL, "--json"]):
            reader, writer = os.pipe()
            os.close(reader)
            process = start(args, stdout=writer, stderr=subprocess.PIPE)
            os.close(writer)
            message = process.communicate(timeout=TIMEOUT)[1]
            self.assertEqual((process.returncode, message), (1, b""), args)

    def test_text_comes_as_it_is_made(self):
        process = start(LONG, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertTrue(os.read(process.stdout.fileno(), 100))
        self.assertIsNone(process.poll())
        process.kill()
        process.communicate(timeout=TIMEOUT)

    def test_quiet_without_a_terminal(self):
        self.assertNotEqual(self.succeed(*SHORT), b"")  # succeed() wants an empty standard error


class Interrupts(ProgramTest):
    def interrupt(self, args):
        process = start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = os.read(process.stdout.fileno(), 1) if "--json" not in args else b""
        if not first:
            time.sleep(2)
        process.send_signal(signal.SIGINT)
        text, message = process.communicate(timeout=TIMEOUT)
        return process.returncode, first + text, message.decode()

    def test_the_text_so_far_stands(self):
        status, text, message = self.interrupt([*LONG, "-v"])
        self.assertEqual(status, 0, message)
        self.assertIn("stop: interrupted", message)
        whole = hearth(*LONG[:6], "-n", "200", *LONG[8:]).stdout
        self.assertTrue(whole.startswith(text[:200].decode(errors="ignore").encode()))

    def test_twice_ends_at_once(self):
        process = start(LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.read(process.stdout.fileno(), 1)
        for _ in range(50):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
            if process.poll() is not None:
                break
        process.communicate(timeout=TIMEOUT)
        self.assertIn(process.returncode, (0, -signal.SIGINT))


class Terminals(ProgramTest):
    """With standard error on a terminal there is progress and a summary."""

    def on_terminal(self, args):
        master, slave = pty.openpty()
        process = start(args, stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        seen, deadline = b"", time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                data = os.read(master, 4096)
            except OSError:  # how a terminal says that nobody writes to it any more
                break
            if not data:
                break
            seen += data
        os.close(master)
        text = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(TIMEOUT), 0)
        return text, seen.decode()

    def test_run(self):
        text, seen = self.on_terminal(SHORT)
        self.assertEqual(text, self.succeed(*SHORT))
        self.assertIn("reading the prompt", seen)
        self.assertIn("stop: length", seen)
        self.assertEqual(seen.rsplit("\x1b[K", 1)[1].count("\n"), 1)  # the progress line is wiped before the summary

    def test_other_verbs(self):
        _, seen = self.on_terminal(["bench", "-m", MODEL, "--prompt", "4", "--gen", "2", "--reps", "2",
                                   "--no-limits"])
        self.assertIn("measurement 4 of 4", seen)
        _, seen = self.on_terminal(["eval", "-m", MODEL, "-p", "word " * 100, "--ctx", "32"])
        self.assertIn("chunk 1 of", seen)
        _, seen = self.on_terminal(["logits", "-m", MODEL, "--tokens", "1,2,3", "--cuts", "1"])
        self.assertIn("computing tokens: 3 of 3", seen)


if __name__ == "__main__":
    main()
