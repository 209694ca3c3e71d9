"""The keys that are pressed while a table is shown, and the terminal as it was before."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from typing import Any

__all__ = ["SUSPEND", "Keys"]

SUSPEND = "\x1a"  # Ctrl-Z


class Keys:
    """From `open` to `close` keys come one by one and are not shown. For one thread.

    Ctrl-C is a signal as ever; Ctrl-Z is a key, so that the table can be taken away first.
    Without a terminal at stdin no key is ever pressed.
    """

    def __init__(self) -> None:
        self._terminal: int | None = None
        self._before: list[Any] = []

    def open(self) -> None:
        """Change how the terminal reads."""
        if sys.stdin is None or not sys.stdin.isatty():
            return
        terminal = sys.stdin.fileno()
        self._before = termios.tcgetattr(terminal)
        self._terminal = terminal
        tty.setcbreak(terminal, termios.TCSANOW)
        mode = termios.tcgetattr(terminal)
        mode[6][termios.VSUSP] = bytes([os.fpathconf(terminal, "PC_VDISABLE")])
        termios.tcsetattr(terminal, termios.TCSANOW, mode)

    def close(self) -> None:
        """Make the terminal what it was before; also when `open` was cut short. Idempotent."""
        if self._terminal is not None:
            # Now, not when the output has drained: Ctrl-S may hold that up for ever.
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._before)
            self._terminal = None

    def pressed(self) -> str:
        """The keys since the last call; never waits."""
        if self._terminal is None or not select.select([self._terminal], [], [], 0)[0]:
            return ""
        return os.read(self._terminal, 1024).decode(errors="replace")
