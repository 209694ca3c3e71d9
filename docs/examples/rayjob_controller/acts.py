"""What may block on a dashboard: submit and stop, in threads of their own, cluster by cluster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from jobinfo_cache import Cluster, WorkerPool

__all__ = ["Acts"]

Act = Callable[[], None]


class Acts:
    """Runs the acts of one cluster one after another, so that a dead dashboard holds one thread.

    An act is known by its name; while one of a name waits or runs, another is not taken.
    """

    def __init__(self, workers: int = 4) -> None:
        self._pool = WorkerPool(self._next, workers=workers, name="rayjob-acts")
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._waiting: dict[Cluster, deque[tuple[str, Act]]] = {}
        self._names: set[str] = set()

    def add(self, cluster: Cluster, name: str, act: Act) -> None:
        """Have the act done soon."""
        with self._lock:
            if name in self._names:
                return
            self._names.add(name)
            self._waiting.setdefault(cluster, deque()).append((name, act))
        self._pool.add(cluster)

    def is_pending(self, name: str) -> bool:
        """Whether an act of that name waits or runs."""
        with self._lock:
            return name in self._names

    def close(self, timeout: float) -> bool:
        """End; acts that wait are dropped."""
        return self._pool.close(timeout)

    def _next(self, cluster: Cluster) -> float | None:
        with self._lock:
            waiting = self._waiting.get(cluster)
            if not waiting:
                self._waiting.pop(cluster, None)
                return None
            name, act = waiting.popleft()
        try:
            act()
        finally:
            with self._lock:
                self._names.discard(name)
        return 0.0
