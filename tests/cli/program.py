"""Running the program under test: a small frame for the tests beside this file."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ.get("PROGRAM_UNDER_TEST", "build/release/hearth")
MODEL = os.environ.get("MODEL_UNDER_TEST", "tests/data/models/llama-bf16.gguf")
TIMEOUT = 240  # seconds; sanitized builds on a busy machine are slow


def environment(**changes):
    """The environment without the user's own settings of the program."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    clean.update(changes)
    return clean


def hearth(*args, stdin=b"", env=None, **more):
    """Run the program; bytes in, bytes out."""
    command = [PROGRAM, *(os.fspath(a) if isinstance(a, Path) else str(a) if not isinstance(a, bytes) else a
                          for a in args)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT,
                          env=environment() if env is None else env, check=False, **more)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def succeed(self, *args, **more):
        """Standard output of a run that has to succeed and to say nothing on standard error."""
        result = hearth(*args, **more)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        self.assertEqual(result.stderr, b"")
        return result.stdout

    def report(self, *args, **more):
        return json.loads(self.succeed(*args, "--json", **more))

    def refuse(self, status, *args, says="", **more):
        """A run that has to fail: the exit status, nothing on standard output, one line on standard error."""
        result = hearth(*args, **more)
        message = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, status, f"{args}: {message}")
        self.assertEqual(result.stdout, b"")
        self.assertEqual(message.count("\n"), 1, message)
        self.assertTrue(message.startswith("hearth"), message)
        self.assertIn(says, message)
        return message


def main():
    if not Path(PROGRAM).exists():
        sys.exit(f"no program at {PROGRAM}")
    unittest.main(verbosity=1)
