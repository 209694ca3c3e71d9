"""A pool of workers that handle keys, now or later, each key by one worker at a time.

One dispatcher thread owns the work queue, the timer and the executor. Callers only put messages
into its inbox, which never blocks, not even in a signal handler. The executor gets one short
task for each key that waits, at most `workers` at a time, so that an interpreter that ends
without `close` waits for the running ones only.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from jobinfo_cache.backoff import backoff
from jobinfo_cache.clock import Clock, SystemClock, Timer
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.work_queue import WorkQueue

__all__ = ["PoolStats", "WorkerPool"]

log = get_logger(__name__)

_SLOTS_PER_SECOND = 100  # due times are rounded up to 10 ms, so that one timer serves many keys
_RETRY_BASE = 1.0  # seconds; a guess: a handler that raises is a bug, and seldom passes at once
_RETRY_CAP = 60.0  # seconds
_THREAD_RETRY = 1.0  # seconds until a thread that the system refused is asked for again
_JOIN_SLICE = 0.05  # seconds; how soon `close` notices that another worker is closing too


class _Kind(Enum):
    ADD = auto()
    FORGET = auto()
    TICK = auto()  # the timer of slot `due` has fired
    DONE = auto()  # a task has ended
    SYNC = auto()  # `key` is an event to be set when nothing is waiting or running
    CLOSE = auto()


class _Message(NamedTuple):
    kind: _Kind
    key: Any = None
    due: float = -math.inf


@dataclass(frozen=True)
class PoolStats:
    """Gauges and counters of a pool: `busy` workers, keys `queued` and `delayed`, `failed`
    handlings, of all `handled` ones."""

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

    Threads start at the first `add`. All methods are safe from any thread, and but for `close`
    never block. `close` it when it is no longer needed. After a fork the child's pool is empty.
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
        self.start_empty()
        renew_after_fork(self)

    def start_empty(self) -> None:
        """Set the state of a pool without threads; not for users: a fork's child begins so."""
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._start_lock = threading.RLock()  # guards _dispatcher
        self._dispatcher: threading.Thread | None = None
        self._queue = WorkQueue()
        self._failures: dict[Hashable, int] = {}
        self._worker_threads: set[threading.Thread] = set()
        self._closers: set[threading.Thread] = set()  # those of _worker_threads inside `close`
        # The dispatcher's own:
        self._executor: ThreadPoolExecutor | None = None
        self._timer: Timer | None = None
        self._armed = math.inf  # the slot of _timer
        self._outstanding = 0  # tasks
        self._syncs: list[threading.Event] = []
        self._handled = 0
        self._failed = 0

    def start(self) -> None:
        """Start the dispatcher if it does not run; raises what the system says if it cannot."""
        with self._start_lock:
            if self._dispatcher is not None or self._closed:
                return
            dispatcher = threading.Thread(
                target=self._dispatch, name=f"{self._name}-dispatcher", daemon=True
            )
            # Assigned first: a signal handler may come in here while the thread starts.
            self._dispatcher = dispatcher
            try:
                dispatcher.start()
            except BaseException:
                self._dispatcher = None
                raise

    @property
    def is_running(self) -> bool:
        """True from `start` on, until the pool is closed."""
        return self._dispatcher is not None and not self._closed

    def add(self, key: Hashable) -> None:
        """Have `key` handled soon; once more afterwards if it is being handled now."""
        self._send(_Message(_Kind.ADD, key))

    def add_after(self, key: Hashable, delay: float) -> None:
        """Have `key` handled in `delay` seconds; of two due times the earlier one wins.

        Raises `ValueError` if `delay` is negative or nan.
        """
        self._send(_Message(_Kind.ADD, key, self._clock.monotonic() + _checked(delay)))

    def forget(self, key: Hashable) -> None:
        """Take `key` out. If it is being handled, that goes on, but it is not requeued."""
        if self._dispatcher is not None:
            self._send(_Message(_Kind.FORGET, key))

    def stats(self) -> PoolStats:
        """What the pool is doing; a snapshot, out of date when it is read."""
        return PoolStats(
            workers=self._workers,
            busy=self._queue.running,
            queued=self._queue.waiting,
            delayed=self._queue.delayed,
            handled=self._handled,
            failed=self._failed,
        )

    def close(self, timeout: float | None = None) -> bool:
        """Drop all keys and end all threads; True if they ended within `timeout` seconds.

        None waits without a bound for running handlers, 0 not at all. Idempotent. In a handler
        it does not wait for the thread it runs in. In a signal handler it may return False
        because the interrupted call holds something up; the threads end after that call.
        """
        self._closed = True
        self._inbox.put(_Message(_Kind.CLOSE))  # also for a dispatcher that is about to start
        dispatcher = self._dispatcher
        if dispatcher is None:
            return True
        current = threading.current_thread()
        if current not in self._worker_threads:
            return join_thread(dispatcher, timeout)
        self._closers.add(current)
        try:
            return self._join_other_workers(timeout)
        finally:
            self._closers.discard(current)

    def wait_idle(self, timeout: float) -> bool:
        """Block until no key is queued or being handled; False after `timeout` real seconds."""
        if self._dispatcher is None:
            return True
        idle = threading.Event()
        self._inbox.put(_Message(_Kind.SYNC, idle))
        return idle.wait(timeout)

    def _send(self, message: _Message) -> None:
        if not self._closed:
            if self._dispatcher is None:
                self.start()
            self._inbox.put(message)

    # The dispatcher's thread

    def _dispatch(self) -> None:
        self._executor = ThreadPoolExecutor(
            self._workers,
            thread_name_prefix=f"{self._name}-worker",
            initializer=self._register_worker,
        )
        unarmed = False
        while True:
            try:
                message = self._inbox.get(timeout=_THREAD_RETRY if unarmed else None)
            except queue.Empty:
                message = _Message(_Kind.TICK)
            if message.kind is _Kind.CLOSE:
                break
            self._handle_message(message)
            unarmed = not self._arm(self._queue.release(self._clock.monotonic()))
            if not self._submit():
                break
            self._tell_idle()
        self._end()

    def _handle_message(self, message: _Message) -> None:
        if message.kind is _Kind.ADD:
            self._queue.add_at(message.key, message.due)
        elif message.kind is _Kind.FORGET:
            self._queue.forget(message.key)
            self._failures.pop(message.key, None)
        elif message.kind is _Kind.DONE:
            self._outstanding -= 1
        elif message.kind is _Kind.SYNC:
            self._syncs.append(message.key)
        elif message.due == self._armed:
            self._disarm()

    def _arm(self, due: float | None) -> bool:
        """Have the timer fire when `due` has come; False if the system refused its thread."""
        if due is None:
            return True
        slot = math.ceil((due - 1e-6) * _SLOTS_PER_SECOND) / _SLOTS_PER_SECOND
        if slot >= self._armed:
            return True
        self._disarm()
        message = _Message(_Kind.TICK, due=slot)
        delay = max(slot - self._clock.monotonic(), 0.0)
        inbox = self._inbox
        try:
            self._timer = self._clock.call_later(
                delay, lambda: inbox.put(message), f"{self._name}-timer"
            )
        except RuntimeError:  # no more threads
            return False
        self._armed = slot
        return True

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join(_THREAD_RETRY)  # it has only to notice
        self._timer = None
        self._armed = math.inf

    def _submit(self) -> bool:
        """Give the executor a task for each key that waits; False if the interpreter ends."""
        assert self._executor is not None
        while (
            self._outstanding < self._workers
            and self._queue.waiting > self._outstanding - self._queue.running
        ):
            self._outstanding += 1
            try:
                self._executor.submit(self._work)
            except RuntimeError as error:
                if "shutdown" in str(error):
                    return False
                # The system refused a thread; the task is taken by another one, or by the next.
                log.warning("no thread could be started", error=str(error))
        return True

    def _tell_idle(self) -> None:
        if self._syncs and not self._queue.waiting and not self._outstanding:
            for event in self._syncs:
                event.set()
            self._syncs.clear()

    def _end(self) -> None:
        assert self._executor is not None
        self._queue.close()
        self._disarm()
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._on_close is not None:
            self._on_close()
        for event in self._syncs:
            event.set()
        self._executor.shutdown(wait=True)

    # The workers' threads

    def _register_worker(self) -> None:
        self._worker_threads.add(threading.current_thread())

    def _work(self) -> None:
        key = self._queue.take()
        if key is not None:
            self._queue.done(key, self._handle(key))
        self._inbox.put(_Message(_Kind.DONE))

    def _handle(self, key: Hashable) -> float | None:
        """Call the handler; returns when the key is due again, and never raises."""
        self._handled += 1
        try:
            delay = self._handler(key)
            due = None if delay is None else self._clock.monotonic() + _checked(delay)
        except BaseException as error:  # a worker outlives whatever its handler raises
            self._failed += 1
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            log.warning("a handler raised", key=key, failures=failures, exc_info=error)
            delay = backoff(failures, base=_RETRY_BASE, cap=_RETRY_CAP)
            return self._clock.monotonic() + delay
        self._failures.pop(key, None)
        return due

    def _join_other_workers(self, timeout: float | None) -> bool:
        """Wait for all workers but those that are closing the pool themselves."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        for thread in list(self._worker_threads):
            while thread not in self._closers and thread.is_alive():
                if time.monotonic() >= deadline:
                    return False
                join_thread(thread, min(deadline - time.monotonic(), _JOIN_SLICE))
        return True


def _checked(delay: float) -> float:
    if not delay >= 0:
        raise ValueError(f"delay is {delay!r}; it must be a number of seconds from 0")
    return delay


def join_thread(thread: threading.Thread, timeout: float | None) -> bool:
    """Wait for the thread's end for at most `timeout` seconds; True if it has ended.

    False at once for a thread that has not begun, whose start a signal handler interrupts, and
    for the calling thread itself.
    """
    try:
        thread.join(timeout)
    except RuntimeError:
        return False
    return not thread.is_alive()
