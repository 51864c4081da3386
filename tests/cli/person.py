"""Someone at a terminal: the program on a pseudo-terminal."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from program import PROGRAM, TIMEOUT, environment


class Person:
    """Someone at a terminal."""

    def __init__(self, *args, env=None, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(PROGRAM, [PROGRAM, *map(str, args)], env or environment(TERM="xterm"))
        self.resize(columns)
        self.seen = b""

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def hold(self):
        """The terminal's other end, to be closed: while it is open, the modes stay what the program leaves them."""
        return os.open(os.readlink(f"/proc/{self.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def read(self):
        """More of what is shown; False at the end."""
        if not select.select([self.fd], [], [], 0.05)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # nobody writes to it any more
            return False
        self.seen += data
        return bool(data)

    def until(self, pattern, since=0):
        """Wait until what is shown, without escape sequences, matches."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            found = re.search(pattern, self.text()[since:], re.S)
            if found:
                return found
            if not self.read():
                break
        raise AssertionError(f"no {pattern!r} in {self.text()[since:]!r}")

    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen.decode(errors="replace")).replace("\r", "")

    def say(self, text, pattern):
        """Type a line and wait for what comes, and for the next prompt."""
        since = len(self.text())
        self.type(text + "\r")
        found = self.until(pattern + r".*\n> $", since)
        return found

    def messages(self):
        """The messages of the conversation, as /tokens shows them."""
        since = len(self.text())
        self.say("/tokens", r" of \d+ tokens")
        return re.findall(r"^ +\d+ \+ \d+ +(\w+) +(.*)$", self.text()[since:], re.M)

    def leave(self, how):
        self.type(how)
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
