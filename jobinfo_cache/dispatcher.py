"""The one thread that owns a pool's work queue, its timer and its executor.

Others only put messages into its inbox, which never blocks, not even in a signal handler. The
executor gets one short task for each key that waits, at most `workers` at a time, so that an
interpreter that ends without `close` waits for the running ones only.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from typing import Any, NamedTuple

from jobinfo_cache.clock import ROUNDING, Clock, Timer
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.work_queue import WorkQueue

__all__ = ["Dispatcher", "join_thread"]

log = get_logger(__name__)

_SLOTS_PER_SECOND = 100  # due times are rounded up to 10 ms, so that one timer serves many keys
_LONGEST = 365 * 86_400.0  # seconds; no timer is armed for longer, many systems cannot
_NOTHING = object()
_THREAD_RETRY = 1.0  # seconds until a thread that the system refused is asked for again


class _Kind(Enum):
    ADD = auto()
    FORGET = auto()
    TICK = auto()  # the timer of slot `due` has fired
    DONE = auto()  # a task has ended
    RETRY = auto()  # the system refused a thread a while ago
    SYNC = auto()  # `key` is an event to be set when nothing is waiting or running
    CLOSE = auto()


class _Message(NamedTuple):
    kind: _Kind
    key: Any = None
    due: float = -math.inf


class Dispatcher:
    """Hands keys that are due to worker threads, which call `handle(key)`.

    `handle` returns when the key is due again, None for not at all, and never raises. `forgotten`
    is called for each key that is forgotten, and `on_close` at the end, both in this thread.
    """

    def __init__(
        self,
        handle: Callable[[Any], float | None],
        forgotten: Callable[[Hashable], object],
        on_close: Callable[[], None] | None,
        *,
        workers: int,
        name: str,
        clock: Clock,
    ) -> None:
        self._handle = handle
        self._forgotten = forgotten
        self._on_close = on_close
        self._workers = workers
        self._name = name
        self._clock = clock
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self.queue = WorkQueue()
        self.worker_threads: set[threading.Thread] = set()
        self._start_lock = threading.RLock()  # guards thread
        self.thread: threading.Thread | None = None
        # The dispatcher's own:
        self._executor = ThreadPoolExecutor(
            workers, thread_name_prefix=f"{name}-worker", initializer=self._register_worker
        )
        self._timer: Timer | None = None
        self._armed = math.inf  # the slot of _timer
        self._outstanding = 0  # tasks
        self._was_refused = False  # a thread, by the system
        self._syncs: list[threading.Event] = []

    # Any thread

    def start(self) -> None:
        """Start the thread if it does not run; raises what the system says if it cannot."""
        with self._start_lock:
            if self.thread is not None:
                return
            thread = threading.Thread(
                target=self._run, name=f"{self._name}-dispatcher", daemon=True
            )
            # Assigned first: a signal handler may come in here while the thread starts.
            self.thread = thread
            try:
                thread.start()
            except BaseException:
                self.thread = None
                raise

    def add(self, key: Hashable, due: float = -math.inf) -> None:
        """Have `key` handled when `due` has come; the earlier of two due times wins."""
        self._inbox.put(_Message(_Kind.ADD, key, due))

    def forget(self, key: Hashable) -> None:
        """Have `key` taken out, after what was added before."""
        self._inbox.put(_Message(_Kind.FORGET, key))

    def sync(self, idle: threading.Event) -> None:
        """Have `idle` set as soon as no key is waiting or running, or at the end."""
        self._inbox.put(_Message(_Kind.SYNC, idle))

    def close(self) -> None:
        """Have the thread, and all that it owns, end; also when it is only about to start."""
        self._inbox.put(_Message(_Kind.CLOSE))

    # The dispatcher's thread

    def _run(self) -> None:
        is_open = True
        while is_open:
            messages = self._next_messages()
            for message in messages:
                is_open = message.kind is not _Kind.CLOSE
                if not is_open:
                    break
                self._obey(message)
            self._arm(self.queue.release(self._clock.monotonic()))
            is_open = self._submit(retry=messages[0].kind is _Kind.RETRY) and is_open
            self._tell_idle()
        self._end()

    def _next_messages(self) -> list[_Message]:
        """Wait for a message; returns it and those that are there already, which may be many."""
        try:
            first = self._inbox.get(timeout=_THREAD_RETRY if self._was_refused else None)
        except queue.Empty:
            return [_Message(_Kind.RETRY)]
        return [first, *(self._inbox.get_nowait() for _ in range(self._inbox.qsize()))]

    def _obey(self, message: _Message) -> None:
        if message.kind is _Kind.ADD:
            self.queue.add_at(message.key, message.due)
        elif message.kind is _Kind.FORGET:
            self.queue.forget(message.key)
            self._forgotten(message.key)
        elif message.kind is _Kind.DONE:
            self._outstanding -= 1
        elif message.kind is _Kind.SYNC:
            self._syncs.append(message.key)
        elif message.kind is _Kind.RETRY:
            self._was_refused = False
        elif message.due == self._armed:
            self._disarm()

    def _arm(self, due: float | None) -> None:
        """Have the timer fire when `due` has come."""
        if due is None:
            return
        slot = math.ceil((due - ROUNDING) * _SLOTS_PER_SECOND) / _SLOTS_PER_SECOND
        if slot >= self._armed:
            return
        self._disarm()
        message = _Message(_Kind.TICK, due=slot)
        delay = min(max(slot - self._clock.monotonic(), 0.0), _LONGEST)
        inbox = self._inbox
        try:
            self._timer = self._clock.call_later(
                delay, lambda: inbox.put(message), f"{self._name}-timer"
            )
        except RuntimeError as error:  # no more threads
            self._refused(error)
        else:
            self._armed = slot

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join(_THREAD_RETRY)  # it has only to notice
        self._timer = None
        self._armed = math.inf

    def _submit(self, *, retry: bool = False) -> bool:
        """Give the executor a task for each key that waits; False if the interpreter ends.

        A task whose thread the system refuses stays with the executor: another thread takes it,
        or the one that a task more is started for, with `retry`, if there is no other.
        """
        while (retry and not self.worker_threads) or (
            self._outstanding < self._workers
            and self.queue.waiting > self._outstanding - self.queue.running
        ):
            retry = False
            self._outstanding += 1
            try:
                self._executor.submit(self._work)
            except RuntimeError as error:
                if "shutdown" in str(error):
                    return False
                self._refused(error)
        return True

    def _refused(self, error: RuntimeError) -> None:
        if "shutdown" not in str(error):  # else the interpreter ends, and nobody is to be told
            log.warning("no thread could be started", error=str(error))
        self._was_refused = True

    def _tell_idle(self) -> None:
        if self._syncs and not self.queue.waiting and not self._outstanding:
            for event in self._syncs:
                event.set()
            self._syncs.clear()

    def _end(self) -> None:
        self.queue.close()
        self._disarm()
        self._executor.shutdown(wait=False, cancel_futures=True)
        try:
            if self._on_close is not None:
                self._on_close()
        except Exception as fault:  # the threads end all the same
            log.warning("closing raised", exc_info=fault)
        for event in self._syncs:
            event.set()
        self._executor.shutdown(wait=True)

    # The workers' threads

    def _register_worker(self) -> None:
        self.worker_threads.add(threading.current_thread())

    def _work(self) -> None:
        key = self.queue.take(_NOTHING)
        if key is not _NOTHING and not self.queue.done(key, self._handle(key)):
            self._forgotten(key)
        self._inbox.put(_Message(_Kind.DONE))


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
