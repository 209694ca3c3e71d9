"""A place where requests wait until a test lets them go."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from types import TracebackType

__all__ = ["Gate", "outlasts"]


class Gate:
    """Requests that match wait here until `release`, which leaving a `with` block does too.

    Safe from any thread; only `wait_for` and `hold` block. With `answer_first` the answer is made
    on arrival and held back: it tells of the past when it comes. Without, it is made after the
    release.

    .. versionadded:: 0.1.0
    """

    def __init__(self, *, answer_first: bool = False) -> None:
        self.answer_first = answer_first
        self._changed = threading.Condition()
        # Guarded by _changed. A pipe, not an Event: a waiter watches its connection as well.
        self._reader, self._writer = os.pipe()
        self._waiting = 0
        self._released = False

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    @property
    def is_released(self) -> bool:
        """True once nobody waits here any more."""
        return self._released

    def release(self) -> None:
        """Let all go, for good; requests to come do not wait. Idempotent.

        .. versionadded:: 0.1.0
        """
        with self._changed:
            if self._released:
                return
            self._released = True
            os.close(self._writer)
            self._close_reader_if_unused_locked()
            self._changed.notify_all()

    def wait_for(self, n: int, timeout: float = 10.0) -> int:
        """Block until at least `n` requests wait here, and return how many do.

        Blocks up to `timeout` real seconds, then raises `TimeoutError`.

        .. versionadded:: 0.1.0
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting >= n, timeout):
                raise TimeoutError(f"{self._waiting} requests wait after {timeout} s, not {n}")
            return self._waiting

    def hold(self, connection: socket.socket) -> bool:
        """Block until the release; False if the client closes the connection before.

        .. versionadded:: 0.1.0
        """
        with self._changed:
            if self._released:
                return True
            self._waiting += 1
            self._changed.notify_all()
        try:
            return outlasts(connection, self._reader, None)
        finally:
            with self._changed:
                self._waiting -= 1
                self._close_reader_if_unused_locked()

    def _close_reader_if_unused_locked(self) -> None:
        if self._released and not self._waiting:
            os.close(self._reader)


def outlasts(connection: socket.socket, signal: int | None, seconds: float | None) -> bool:
    """Block until descriptor `signal` is readable or `seconds` (real ones) have passed.

    False if the other side closes `connection` before. None: there is no such end.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    if signal is not None:
        poller.register(signal, select.POLLIN)
    while True:
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0) * 1000
        ready = dict(poller.poll(left))
        if not ready or signal in ready:
            return True
        if _is_closed(connection):
            return False
        poller.unregister(connection)  # the next request is there already: the client stays


def _is_closed(connection: socket.socket) -> bool:
    try:
        # Not the TLS socket's own, which cannot peek.
        return not socket.socket.recv(connection, 1, socket.MSG_PEEK)
    except ConnectionError:
        return True
