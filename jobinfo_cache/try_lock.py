"""A lock that threads try again and again instead of standing in a line for it."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["TryLock"]

_PAUSE = 1e-4  # seconds; a guess: far longer than the lock is held, far shorter than a request


class TryLock:
    """A reentrant lock, as a context manager, for what takes microseconds.

    A thread that waits for one of `threading`'s locks is given it before it is given the
    interpreter, and then waits for that with the lock in its hand, while all others queue up
    behind it: a convoy, in which each step costs a change of threads. Here whoever gets the lock
    is running. Measured, on two cores: 10,000 first reads beside eight busy workers took 0.2 to
    0.4 s, and 0.2 to 1.7 s with an RLock.

    It gives no turns, so it must be free for most of the time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._acquire, self._release = self._lock.acquire, self._lock.release

    def __enter__(self) -> None:
        while not self._acquire(False):
            threading.Event().wait(_PAUSE)  # not `time.sleep`, which programs and tests replace

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._release()
