"""A controller's own queue of work: which key is next, and when."""

from __future__ import annotations

import heapq
import queue
import time
from typing import Generic, TypeVar

__all__ = ["Agenda"]

_K = TypeVar("_K")


class Agenda(Generic[_K]):
    """Keys and the moments at which they are due; of two moments of a key the earlier one wins.

    `put` is for any thread and never blocks; all else is for the one thread that does the work.
    Durations are seconds.
    """

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[_K] = queue.SimpleQueue()
        self._due: dict[_K, float] = {}
        self._heap: list[tuple[float, int, _K]] = []
        self._number = 0  # keys need not be comparable

    def put(self, key: _K) -> None:
        """The key is due now."""
        self._inbox.put(key)

    def add_after(self, key: _K, delay: float) -> None:
        """The key is due in `delay` seconds."""
        due = time.monotonic() + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._number += 1
            heapq.heappush(self._heap, (due, self._number, key))

    def take(self, deadline: float) -> _K | None:
        """Wait for the next key that is due; None when it is `deadline` (monotonic) before."""
        while True:
            self._receive()
            if self._heap and self._heap[0][0] <= time.monotonic():
                due, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == due:  # else an earlier moment took its place
                    del self._due[key]
                    return key
                continue
            if time.monotonic() >= deadline:
                return None
            until = min(self._heap[0][0], deadline) if self._heap else deadline
            self._receive(until - time.monotonic())

    def _receive(self, timeout: float = 0.0) -> None:
        """What was put, without a wait; or else the first that is put within `timeout`."""
        try:
            key = self._inbox.get(timeout=min(max(timeout, 0.0), _LONGEST))
        except queue.Empty:
            return
        self.add_after(key, 0.0)


_LONGEST = 86_400.0  # seconds; the system refuses to wait for ever under this name
