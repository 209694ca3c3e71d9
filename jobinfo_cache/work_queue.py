"""Which keys wait for a worker, which wait for their time, and which are being handled.

A key is in at most one of three places:

    delayed ──its time comes──▶ waiting ──take──▶ running ──done──▶ delayed, waiting or gone

so it is never handled twice at a time. Adding a key that is running is remembered, and it is
handled once more afterwards. Of two due times the earlier one wins.
"""

from __future__ import annotations

import heapq
import itertools
import math
import queue
import threading
from collections.abc import Hashable

from jobinfo_cache.clock import ROUNDING

__all__ = ["WorkQueue"]

_NOW = -math.inf
_NEVER = math.inf


class WorkQueue:
    """A de-duplicating queue of keys with due times; all times are the caller's, in seconds.

    Safe from any thread, but not from a signal handler: the pool's own threads use it, and no
    caller of the pool does.
    """

    def __init__(self) -> None:
        self._line: queue.Queue[Hashable] = queue.Queue()
        self._lock = threading.Lock()
        # Guarded by _lock, which is never held while another one is taken:
        self._waiting: set[Hashable] = set()  # the line may hold forgotten keys as well
        self._due: dict[Hashable, float] = {}  # decides; the heap may hold outdated times
        self._heap: list[tuple[float, int, Hashable]] = []
        self._running: dict[Hashable, float] = {}  # when to handle the key once more
        self._forgotten: set[Hashable] = set()  # of those running
        self._closed = False
        self._numbers = itertools.count()

    def add(self, key: Hashable) -> None:
        """Have `key` handled as soon as a worker is free."""
        self.add_at(key, _NOW)

    def add_at(self, key: Hashable, due: float) -> None:
        """Have `key` handled when `due` has come, or earlier if that was asked before."""
        with self._lock:
            joins = self._place(key, due)
        if joins:
            self._line.put(key)

    def forget(self, key: Hashable) -> None:
        """Take `key` out; if it is running, it is not handled again unless added anew."""
        with self._lock:
            self._waiting.discard(key)
            self._due.pop(key, None)
            if key in self._running:
                self._running[key] = _NEVER
                self._forgotten.add(key)

    def take(self, nothing: Hashable = None) -> Hashable:
        """The next waiting key, now running, or `nothing`. Every key taken must be `done`."""
        while True:
            try:
                key = self._line.get_nowait()
            except queue.Empty:
                return nothing
            with self._lock:
                if key in self._waiting:
                    self._waiting.remove(key)
                    self._running[key] = _NEVER
                    return key

    def done(self, key: Hashable, due: float | None) -> bool:
        """`key` was handled; `due` is when it is to be handled again, None for not at all.

        False if it was forgotten meanwhile, and `due` counts for nothing.
        """
        with self._lock:
            again = self._running.pop(key, _NEVER)
            was_forgotten = key in self._forgotten
            if was_forgotten:
                self._forgotten.remove(key)
            elif due is not None:
                again = min(again, due)
            joins = self._place(key, again)
        if joins:
            self._line.put(key)
        return not was_forgotten

    def release(self, now: float) -> float | None:
        """Let the delayed keys whose time has come wait for a worker; returns the next due time."""
        released = []
        with self._lock:
            while self._heap and self._heap[0][0] <= now + ROUNDING:
                due, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == due:
                    del self._due[key]
                    self._waiting.add(key)
                    released.append(key)
            self._drop_outdated()
            next_due = self._heap[0][0] if self._heap else None
        for key in released:
            self._line.put(key)
        return next_due

    def close(self) -> None:
        """Drop all keys; none is taken in any more."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            self._due.clear()
            self._heap.clear()

    @property
    def waiting(self) -> int:
        """How many keys wait for a worker; informational only, like all counts here."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    @property
    def running(self) -> int:
        """How many keys are being handled."""
        return len(self._running)

    def _place(self, key: Hashable, due: float) -> bool:
        """Put the key where it belongs (_lock is held); True: its place is in the line."""
        if self._closed or due == _NEVER or key in self._waiting:
            return False
        if key in self._running:
            self._running[key] = min(self._running[key], due)
            return False
        if due == _NOW:
            self._due.pop(key, None)
            self._waiting.add(key)
            return True
        if due < self._due.get(key, _NEVER):
            self._due[key] = due
            heapq.heappush(self._heap, (due, next(self._numbers), key))
        return False

    def _drop_outdated(self) -> None:
        """Keep the heap no larger than a small multiple of its true content."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(due, next(self._numbers), key) for key, due in self._due.items()]
            heapq.heapify(self._heap)
