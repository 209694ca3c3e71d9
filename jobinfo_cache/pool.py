"""A pool of workers that handle keys, now or later, each key by one worker at a time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from jobinfo_cache.backoff import backoff
from jobinfo_cache.clock import Clock, SystemClock
from jobinfo_cache.dispatcher import Dispatcher, join_thread
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.instrumentation import Counter, get_logger

__all__ = ["PoolStats", "WorkerPool"]

log = get_logger(__name__)

_RETRY_BASE = 1.0  # seconds; a guess: a handler that raises is a bug, and seldom passes at once
_RETRY_CAP = 60.0  # seconds
_JOIN_SLICE = 0.05  # seconds; how soon `close` notices that another worker is closing too


@dataclass(frozen=True)
class PoolStats:
    """What a pool is doing, and has done.

    `busy` of the `workers` are handling a key; keys are `queued` for a worker and `delayed`
    until their time. Of all `handled` keys the handler `failed` for some.

    .. versionadded:: 0.1.0
    """

    workers: int
    busy: int
    queued: int
    delayed: int
    handled: int
    failed: int


class WorkerPool:
    """Threads that call `handler(key)` for the keys that were added.

    `handler` returns the delay in seconds after which the key is handled again, or None for done.
    It is never called for one key by two threads at a time. If it raises (a delay that is
    negative or nan counts as raising), that is logged and counted, and the key is retried after
    1, 2, 4, … at most 60 s. `on_close` is called once when a running pool closes, in the
    dispatcher's thread: to make running handlers return soon.

    Threads start at the first `add`. All methods are safe from any thread; but for `close` and
    `wait_idle` they never block. `close` it when it is no longer needed. After a fork the child's
    pool is empty.

    .. versionadded:: 0.1.0
    """

    def __init__(
        self,
        handler: Callable[[Any], float | None],
        *,
        workers: int = 8,
        name: str = "jobinfo",
        clock: Clock | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
            raise ValueError(f"workers is {workers!r}; it must be a whole number of at least 1")
        self._handler = handler
        self._workers = workers
        self._name = name
        self._clock = clock or SystemClock()
        self._on_close = on_close
        self._closed = False
        self._handled = Counter()
        self._failed = Counter()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Set the state of a pool without threads; not for users: a fork's child begins so."""
        self._failures: dict[Hashable, int] = {}  # in a row, of keys that are retried
        self._closers: set[threading.Thread] = set()  # workers that are inside `close`
        self._dispatcher = Dispatcher(
            self._handle,
            lambda key: self._failures.pop(key, None),
            self._on_close,
            workers=self._workers,
            name=self._name,
            clock=self._clock,
        )

    @property
    def is_started(self) -> bool:
        """True from the first `add` on."""
        return self._dispatcher.thread is not None

    @property
    def is_running(self) -> bool:
        """True from the first `add` on, until the pool is closed."""
        return self.is_started and not self._closed

    def start(self) -> None:
        """Start the threads if they do not run; raises what the system says if it cannot.

        .. versionadded:: 0.1.0
        """
        if not self._closed:
            self._dispatcher.start()

    def add(self, key: Hashable) -> None:
        """Have `key` handled soon; once more afterwards if it is being handled now.

        Raises `TypeError` if it cannot be hashed, and what the system says if the first thread
        cannot be started.

        .. versionadded:: 0.1.0
        """
        self._add(key, -math.inf)

    def add_after(self, key: Hashable, delay: float) -> None:
        """Have `key` handled in `delay` seconds; of two due times the earlier one wins.

        Raises `ValueError` if `delay` is negative or nan.

        .. versionadded:: 0.1.0
        """
        self._add(key, self._clock.monotonic() + _checked(delay))

    def forget(self, key: Hashable) -> None:
        """Take `key` out. If it is being handled, that goes on, but it is not requeued.

        .. versionadded:: 0.1.0
        """
        hash(key)
        if self.is_running:
            self._dispatcher.forget(key)

    def stats(self) -> PoolStats:
        """What the pool is doing; a snapshot, out of date when it is read.

        .. versionadded:: 0.1.0
        """
        queue = self._dispatcher.queue
        return PoolStats(
            workers=self._workers,
            busy=queue.running,
            queued=queue.waiting,
            delayed=queue.delayed,
            handled=self._handled.value(),
            failed=self._failed.value(),
        )

    def close(self, timeout: float | None = None) -> bool:
        """Drop all keys and end all threads; True if they ended within `timeout` seconds.

        None waits without a bound for running handlers, 0 not at all. Idempotent. In a handler
        it does not wait for the thread it runs in. In a signal handler it may return False
        because the interrupted call holds something up; the threads end after that call.

        .. versionadded:: 0.1.0
        """
        self._closed = True
        self._dispatcher.close()
        thread = self._dispatcher.thread
        if thread is None:
            return True
        current = threading.current_thread()
        if current not in self._dispatcher.worker_threads:
            return join_thread(thread, timeout)
        self._closers.add(current)
        try:
            return self._join_other_workers(timeout)
        finally:
            self._closers.discard(current)

    def wait_idle(self, timeout: float) -> bool:
        """Block until no key is queued or being handled; False after `timeout` real seconds.

        .. versionadded:: 0.1.0
        """
        thread = self._dispatcher.thread
        if thread is None:
            return True
        if self._closed:
            return join_thread(thread, timeout)
        idle = threading.Event()
        self._dispatcher.sync(idle)
        return idle.wait(timeout) or not thread.is_alive()

    def _add(self, key: Hashable, due: float) -> None:
        hash(key)  # here, and not in a thread that it would end
        if not self._closed:
            self._dispatcher.start()
            self._dispatcher.add(key, due)

    def _handle(self, key: Hashable) -> float | None:
        """Call the handler; returns when the key is due again, and never raises."""
        self._handled.increment()
        try:
            delay = self._handler(key)
            due = None if delay is None else self._clock.monotonic() + _checked(delay)
        except BaseException as fault:  # a worker outlives whatever its handler raises
            self._failed.increment()
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            log.warning("a handler raised", key=key, failures=failures, exc_info=fault)
            return self._clock.monotonic() + backoff(failures, base=_RETRY_BASE, cap=_RETRY_CAP)
        self._failures.pop(key, None)
        return due

    def _join_other_workers(self, timeout: float | None) -> bool:
        """Wait for all workers but those that are closing the pool themselves."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        for thread in list(self._dispatcher.worker_threads):
            while thread not in self._closers and thread.is_alive():
                if time.monotonic() >= deadline:
                    return False
                join_thread(thread, min(deadline - time.monotonic(), _JOIN_SLICE))
        return True


def _checked(delay: float) -> float:
    if not delay >= 0:
        raise ValueError(f"delay is {delay!r}; it must be a number of seconds from 0")
    return delay
