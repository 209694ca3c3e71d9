"""The command line on a terminal of its own, a pseudo one, for tests of keys and tables."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cli.programs import LIMIT, environment

# The pseudo terminal becomes the one that sends Ctrl-C, and the program its foreground.
_LAUNCHER = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "jobinfo_cache", *sys.argv[1:]])
"""
_CAPABLE = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": ""}


class Terminal:
    """A program and the terminal that it has at all its streams."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int, its: int) -> None:
        self.process = process
        self._ours = ours
        self._its = its
        self.text = ""

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def mode(self) -> list[Any]:
        """How the terminal reads and writes."""
        return termios.tcgetattr(self._its)

    def read_until(self, text: str) -> None:
        """Blocks until the text has been written, after what was read before."""
        deadline = time.monotonic() + LIMIT
        already = len(self.text)
        while text not in self.text[already:]:
            assert self._read(deadline), f"{text!r} is not in …{self.text[-500:]!r}"

    def end(self) -> int:
        """The exit code; reads all that is written until then."""
        deadline = time.monotonic() + LIMIT
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it has not ended"
            self._read(time.monotonic() + 0.05)
        while self._read(time.monotonic()):
            pass
        return self.process.returncode

    def _read(self, deadline: float) -> bool:
        """Whether anything was written until then."""
        if not select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        self.text += os.read(self._ours, 65_536).decode(errors="replace")
        return True


@contextmanager
def terminal(*arguments: str, **variables: str) -> Iterator[Terminal]:
    """`python -m jobinfo_cache` on a terminal of 80 columns; killed at the end if it still runs."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        env=environment(**(_CAPABLE | variables)),
    )
    with process, contextlib.ExitStack() as stack:
        stack.callback(os.close, its)
        stack.callback(os.close, ours)
        stack.callback(process.kill)
        yield Terminal(process, ours, its)
