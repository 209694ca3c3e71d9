"""Watched jobs as a table that fills the terminal, with rich (extra `rich`)."""

from __future__ import annotations

import os
import signal
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from jobinfo_cache import JobSnapshot
from jobinfo_cache.commands.board import Board
from jobinfo_cache.commands.drawing import LINES_AROUND, draw
from jobinfo_cache.commands.keys import SUSPEND, Keys

__all__ = ["Screen"]

_FRAME = 0.5  # seconds from one drawing to the next
_GLANCE = 0.1  # seconds from one look for keys to the next
_HINT = Text("q quits", style="dim")


class Screen:
    """Draws the board twice a second, from `open` to `close`. For one thread, the main one.

    The key q ends the program as Ctrl-C does. `close` makes the terminal what it was, and leaves
    the last page there.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._keys = Keys()
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self.is_cut = False
        self.next_tick = 0.0
        self._next_frame = 0.0

    def open(self) -> None:
        """Take the terminal."""
        self._keys.open()
        # On the terminal's other page: what was there before is not touched, and a change of
        # its size leaves no mess.
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._live.start()
        self._next_frame = 0.0

    def close(self) -> None:
        """Give the terminal back; also when `open` was cut short. Idempotent."""
        self._keys.close()
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
            self._console.print(self._drawing())

    def see(self, snapshot: JobSnapshot) -> None:
        """Take what a job looks like now."""
        self._board.see(snapshot, time.monotonic())

    def tick(self) -> None:
        """Draw if it is time to, and obey a key; raises `KeyboardInterrupt` for q."""
        now = time.monotonic()
        if now < self.next_tick or self._live is None:
            return
        if now >= self._next_frame:
            self._live.update(Group(self._drawing(), _HINT), refresh=True)
            self._next_frame = now + _FRAME
        pressed = self._keys.pressed()
        if "q" in pressed:
            raise KeyboardInterrupt
        if SUSPEND in pressed:
            self._suspend()
        self.next_tick = now + _GLANCE

    def _drawing(self) -> RenderableType:
        width, height = self._console.size
        return draw(self._board.page(max(0, height - LINES_AROUND), time.monotonic()), width)

    def _suspend(self) -> None:
        self.close()
        os.kill(0, signal.SIGTSTP)  # as the terminal does it; goes on here in the foreground
        self.open()
