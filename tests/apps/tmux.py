"""A shell in a real terminal, that of tmux, whose screen a test can look at."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apps import found
from tests.cli.programs import environment

LIMIT = 25.0  # seconds; only a failure uses them up
_LOOK = 0.05  # seconds; tmux has no event for what is on a screen
COMMAND = shlex.join([sys.executable, "-m", "jobinfo_cache"])


class Tmux:
    """One window of a tmux server of its own."""

    def __init__(self, program: str, socket: Path) -> None:
        self._program = program
        self._socket = socket

    def run(self, *arguments: str) -> str:
        """What a command of tmux prints."""
        command = [self._program, "-u", "-f", "/dev/null", "-S", str(self._socket), *arguments]
        environ = environment(LANG="C.UTF-8", NO_COLOR="", TERM="xterm-256color", PS1="$ ")
        done = subprocess.run(
            command, env=environ, stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True
        )
        return done.stdout

    def enter(self, text: str) -> None:
        """Type a line into the shell."""
        self.run("send-keys", "-l", text)
        self.press("Enter")

    def command(self, *arguments: str) -> None:
        """Have the shell run `jobinfo-cache`, and print its exit code after it."""
        self.enter(f"clear; {COMMAND} {shlex.join(arguments)}; echo code=$?")

    def press(self, key: str) -> None:
        """Press a key, by the name that tmux has for it."""
        self.run("send-keys", key)

    def resize(self, columns: int, lines: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(lines))

    def lines(self) -> list[str]:
        """What is on the screen, without the white space on the right."""
        return self.run("capture-pane", "-p").split("\n")[:-1]

    def wait_for(self, *texts: str) -> list[str]:
        """The screen, as soon as all of the texts are on it."""
        return self.wait_until(lambda lines: all(text in "\n".join(lines) for text in texts))

    def wait_until(self, is_so: Callable[[list[str]], bool]) -> list[str]:
        """The screen, as soon as it is so."""
        deadline = time.monotonic() + LIMIT
        while True:
            lines = self.lines()
            if is_so(lines):
                return lines
            assert time.monotonic() < deadline, "\n".join(lines)
            threading.Event().wait(_LOOK)


@contextmanager
def tmux(directory: Path, columns: int = 80, lines: int = 24) -> Iterator[Tmux]:
    """A shell on a terminal of that size; the server is ended at the end."""
    window = Tmux(found("tmux"), directory / "tmux")
    size = ("-x", str(columns), "-y", str(lines))
    window.run("new-session", "-d", *size, "bash", "--norc", "--noprofile")
    try:
        window.wait_until(lambda lines: lines[0] == "$")
        yield window
    finally:
        window.run("kill-server")
