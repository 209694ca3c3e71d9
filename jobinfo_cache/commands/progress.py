"""How far a run is, for whoever waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from jobinfo_cache.commands.output import Output

__all__ = ["Progress"]

_PATIENCE = 1.0  # seconds without a word
_LINE_INTERVAL = 5.0  # seconds between two lines
_STATUS_INTERVAL = 0.2  # seconds between two texts in the same place


class Progress:
    """While it is entered: on a terminal one line that changes, elsewhere a line now and then.

    Nothing for the first second. A context manager, for one thread; `clock` counts in seconds.
    """

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._began = 0.0
        self._next = 0.0

    def __enter__(self) -> Progress:
        self._began = self._clock()
        self._next = self._began + _PATIENCE
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._output.status("")

    def show(self, text: str) -> None:
        """Say how far it is, if that is due; to be called as often as you like."""
        now = self._clock()
        if now < self._next:
            return
        line = f"{now - self._began:.0f} s: {text}"
        if self._output.can_write_over:
            self._output.status(line)
            self._next = now + _STATUS_INTERVAL
        else:
            self._output.note(line)
            self._next = now + _LINE_INTERVAL
