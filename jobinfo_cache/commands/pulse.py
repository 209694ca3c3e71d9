"""How long reads take, and how much of that the machine took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

__all__ = ["FIRST_LIMIT", "LIMIT", "Meter", "Pulse", "Reading"]

LIMIT = 0.05  # seconds; a read that takes longer has waited for something
#: Seconds for the one read that starts the threads: the system took up to 0.3 for that when busy.
FIRST_LIMIT = 1.0

_BEAT = 0.005  # seconds
_STALL = 0.015  # seconds between two beats that are worth a note
_T = TypeVar("_T")


class Pulse:
    """A thread that wants nothing but to run every 5 ms, and notes when it could not.

    A read that waits (for an answer, for a lock) lets this thread run on time. When this thread
    too stands still, the machine or the interpreter had no time for either: that part of a read's
    duration is not the read's own. A context manager; `stalled` is for after its end.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._stalls: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._beat, name="smoke-pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def stalled(self, began: float, ended: float) -> float:
        """The seconds between two moments (of `perf_counter`) in which it could not run."""
        return sum(
            max(0.0, min(ended, end) - max(began, start)) for start, end in list(self._stalls)
        )

    def _beat(self) -> None:
        last = time.perf_counter()
        while not self._stop.is_set():
            self._stop.wait(_BEAT)
            now = time.perf_counter()
            if now - last > _STALL:
                self._stalls.append((last + _BEAT, now))
            last = now


@dataclass(frozen=True)
class Reading:
    """One read: when it began and ended (`perf_counter`), and the CPU time it used (seconds)."""

    began: float
    ended: float
    cpu: float

    @property
    def wall(self) -> float:
        return self.ended - self.began


class Meter:
    """Times reads, for one thread. `reads` is how many there were.

    The `first` one starts the threads of the cache, and is kept apart. Of the others `slowest`
    is the slowest, and `late` are those over the limit.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.first: Reading | None = None
        self.slowest: Reading | None = None
        self.late: list[Reading] = []

    def time(self, read: Callable[[], _T]) -> _T:
        """Call `read`, and note how long it took, whatever it raises."""
        cpu = time.thread_time()
        began = time.perf_counter()
        try:
            return read()
        finally:
            ended = time.perf_counter()
            self._note(Reading(began, ended, time.thread_time() - cpu))

    def _note(self, reading: Reading) -> None:
        self.reads += 1
        if self.first is None:
            self.first = reading
            return
        if self.slowest is None or reading.wall > self.slowest.wall:
            self.slowest = reading
        if reading.wall > LIMIT:
            self.late.append(reading)
