"""Tests of the worker pool: with threads, ordered by events, on a fake clock where time matters."""

from __future__ import annotations

import logging
import math
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest

from jobinfo_cache import WorkerPool, dispatcher
from jobinfo_cache.testing import FakeClock
from tests.support import TIMEOUT

Handler = Callable[[Any], float | None]
MakePool = Callable[..., WorkerPool]


@pytest.fixture
def make_pool(clock: FakeClock) -> Iterator[MakePool]:
    """Makes pools on the fake clock, and closes them."""
    pools = []

    def make(handler: Handler, **options: Any) -> WorkerPool:
        pool = WorkerPool(handler, **{"clock": clock, **options})
        pools.append(pool)
        return pool

    yield make
    for pool in pools:
        assert pool.close(TIMEOUT)


class Recorder:
    """A handler that notes its keys, answers from a script, and can be held back."""

    def __init__(self, *delays: float | BaseException | None) -> None:
        self.keys: list[Hashable] = []
        self.entered: queue.SimpleQueue[Hashable] = queue.SimpleQueue()
        self.gate = threading.Event()
        self.gate.set()
        self._delays = list(delays)

    def __call__(self, key: Hashable) -> float | None:
        self.keys.append(key)
        self.entered.put(key)
        assert self.gate.wait(TIMEOUT)
        outcome = self._delays.pop(0) if self._delays else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def hold(self) -> None:
        """Keep what comes from now on inside until `gate` is set."""
        self.gate.clear()


def settle(pool: WorkerPool) -> None:
    assert pool.wait_idle(TIMEOUT)


Names = Callable[[], list[str]]


@pytest.fixture
def names() -> Names:
    """The names of the library's threads that the test has started."""
    before = set(threading.enumerate())
    return lambda: sorted(
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith("jobinfo") and thread not in before
    )


class TestHandling:
    """Keys are handled by the workers."""

    def test_each_key_once(self, make_pool: MakePool) -> None:
        """What was added is handled, once."""
        handler = Recorder()
        pool = make_pool(handler, workers=3)
        for key in range(50):
            pool.add(key)
        settle(pool)

        assert sorted(handler.keys, key=str) == sorted(range(50), key=str)
        stats = pool.stats()
        assert (stats.handled, stats.failed, stats.busy, stats.queued) == (50, 0, 0, 0)

    @pytest.mark.parametrize("key", [0, "", None, (), False], ids=repr)
    def test_any_hashable_is_a_key(self, make_pool: MakePool, key: Hashable) -> None:
        """A key that is false, or None, is handled like any other."""
        handler = Recorder()
        pool = make_pool(handler)
        pool.add(key)
        settle(pool)

        assert handler.keys == [key]
        assert pool.stats().busy == 0

    def test_what_is_no_key_is_refused(self, make_pool: MakePool) -> None:
        """A key that cannot be hashed is a TypeError to its caller, and the pool goes on."""
        handler = Recorder()
        pool = make_pool(handler)
        pool.add("a")
        settle(pool)
        unhashable: Any = []
        with pytest.raises(TypeError):
            pool.add(unhashable)
        with pytest.raises(TypeError):
            pool.add_after(unhashable, 1.0)
        with pytest.raises(TypeError):
            pool.forget(unhashable)
        pool.add("b")
        settle(pool)

        assert handler.keys == ["a", "b"]

    def test_delay_of_the_handler(self, make_pool: MakePool, clock: FakeClock) -> None:
        """The handler's delay is when the key comes again; None is not at all."""
        handler = Recorder(3.0, None)
        pool = make_pool(handler)
        pool.add("a")
        settle(pool)
        clock.advance(2.98)
        settle(pool)
        assert handler.keys == ["a"]
        clock.advance(0.03)
        settle(pool)
        assert handler.keys == ["a", "a"]
        clock.advance(100.0)
        settle(pool)

        assert handler.keys == ["a", "a"]
        assert clock.pending() == []

    def test_added_while_handled(self, make_pool: MakePool) -> None:
        """A key that is added while it is handled comes once more, and never twice at a time."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler, workers=4)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)
        for _ in range(3):
            pool.add("a")
        pool.add("b")
        assert handler.entered.get(timeout=TIMEOUT) == "b"
        assert handler.keys == ["a", "b"]
        assert pool.stats().busy == 2
        handler.gate.set()
        settle(pool)

        assert handler.keys == ["a", "b", "a"]

    def test_never_two_at_a_time(self, make_pool: MakePool) -> None:
        """However many workers and adds there are, one key is in one thread."""
        inside: set[Hashable] = set()
        twice: list[Hashable] = []

        def handle(key: Hashable) -> None:
            if key in inside:
                twice.append(key)
            inside.add(key)
            for _ in range(50):
                pass
            inside.discard(key)

        pool = make_pool(handle, workers=8)

        def add_many() -> None:
            for number in range(300):
                pool.add(number % 5)

        threads = [threading.Thread(target=add_many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        settle(pool)

        assert twice == []

    def test_waiting_keys_are_counted(self, make_pool: MakePool) -> None:
        """With all workers busy the others are queued; those with a time are delayed."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler, workers=2)
        for key in "abcd":
            pool.add(key)
        pool.add_after("e", 5.0)
        for _ in range(2):
            handler.entered.get(timeout=TIMEOUT)
        _obeyed(pool)

        stats = pool.stats()
        assert (stats.workers, stats.busy, stats.queued, stats.delayed) == (2, 2, 2, 1)
        handler.gate.set()


def _obeyed(pool: WorkerPool) -> None:
    """Return when the dispatcher has dealt with all that it was told so far."""
    inbox = pool._dispatcher._inbox
    deadline = threading.Event()
    for _ in range(1000):
        if inbox.empty():
            return
        deadline.wait(0.001)
    raise TimeoutError("the dispatcher is stuck")


class TestDelays:
    """Keys with a due time, and the timer."""

    def test_add_after(self, make_pool: MakePool, clock: FakeClock) -> None:
        """Delayed keys come when their time has come, in that order."""
        handler = Recorder()
        pool = make_pool(handler, workers=1)
        pool.add_after("b", 2.0)
        pool.add_after("a", 1.0)
        settle(pool)
        assert handler.keys == []
        clock.advance(1.0)
        settle(pool)
        assert handler.keys == ["a"]
        clock.advance(1.0)
        settle(pool)

        assert handler.keys == ["a", "b"]

    @pytest.mark.parametrize("delays", [(5.0, 2.0), (2.0, 5.0)])
    def test_earlier_due_wins(
        self, make_pool: MakePool, clock: FakeClock, delays: tuple[float, float]
    ) -> None:
        """Of two due times of a key the earlier one wins, whichever came first."""
        handler = Recorder()
        pool = make_pool(handler)
        for delay in delays:
            pool.add_after("a", delay)
        settle(pool)
        clock.advance(2.0)
        settle(pool)
        assert handler.keys == ["a"]
        clock.advance(10.0)
        settle(pool)

        assert handler.keys == ["a"]

    def test_add_after_while_handled(self, make_pool: MakePool, clock: FakeClock) -> None:
        """A due time given while the key is handled counts if the handler's is later."""
        handler = Recorder(9.0)
        handler.hold()
        pool = make_pool(handler)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)
        pool.add_after("a", 2.0)
        _obeyed(pool)
        handler.gate.set()
        settle(pool)
        clock.advance(2.0)
        settle(pool)

        assert handler.keys == ["a", "a"]

    def test_zero_is_soon(self, make_pool: MakePool) -> None:
        """A delay of 0 needs no time to pass."""
        handler = Recorder(0.0, None)
        pool = make_pool(handler)
        pool.add_after("a", 0.0)
        settle(pool)

        assert handler.keys == ["a", "a"]

    @pytest.mark.parametrize("delay", [-0.001, -math.inf, math.nan], ids=str)
    def test_impossible_delay_is_refused(
        self, names: Names, make_pool: MakePool, delay: float
    ) -> None:
        """A negative or nan delay is a ValueError that shows it, and starts nothing."""
        pool = make_pool(Recorder())
        with pytest.raises(ValueError, match="delay is"):
            pool.add_after("a", delay)
        assert names() == []

    def test_one_timer(self, make_pool: MakePool, clock: FakeClock) -> None:
        """However many keys are delayed, at most one timer is armed, for the earliest."""
        pool = make_pool(Recorder())
        for number in range(100):
            pool.add_after(number, 100.0 - number)
            settle(pool)
            assert len(clock.pending()) == 1

        [timer] = clock.pending()
        assert timer.due == pytest.approx(1001.0)
        assert timer.name == "jobinfo-timer"

    def test_never_early(self, make_pool: MakePool, clock: FakeClock) -> None:
        """A key is handled at its time or up to 10 ms later, never before."""
        handled: dict[float, float] = {}

        def handle(key: float) -> None:
            handled[key] = clock.monotonic()

        pool = make_pool(handle)
        delays = [0.0011 * number for number in range(1, 60)]
        for delay in delays:
            pool.add_after(delay, delay)
        settle(pool)
        for _ in range(100):
            clock.advance(0.001)
            settle(pool)

        assert sorted(handled) == delays
        late = [at - 1000.0 - delay for delay, at in handled.items()]
        assert min(late) >= -1e-6
        assert max(late) <= 0.0101

    def test_very_long_delay_harms_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A delay beyond what the system's timers can do raises in no thread."""
        faults: list[object] = []
        monkeypatch.setattr(threading, "excepthook", faults.append)
        handler = Recorder()
        pool = WorkerPool(handler)
        pool.add_after("a", 1e12)
        settle(pool)
        pool.add("b")
        settle(pool)
        timer = pool._dispatcher._timer
        ended = isinstance(timer, threading.Timer) and not timer.is_alive()

        assert pool.close(TIMEOUT)
        assert handler.keys == ["b"]
        assert faults == []
        assert not ended


class TestForget:
    """Keys that are taken out."""

    def test_queued(self, make_pool: MakePool) -> None:
        """A key that is forgotten while it waits for a worker is not handled."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler, workers=1)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)
        pool.add("b")
        pool.add("c")
        pool.forget("b")
        _obeyed(pool)
        handler.gate.set()
        settle(pool)

        assert handler.keys == ["a", "c"]

    def test_delayed(self, make_pool: MakePool, clock: FakeClock) -> None:
        """A key that is forgotten while it is delayed never comes."""
        handler = Recorder()
        pool = make_pool(handler)
        pool.add_after("a", 1.0)
        pool.forget("a")
        settle(pool)
        clock.advance(2.0)
        settle(pool)

        assert handler.keys == []

    @pytest.mark.parametrize("outcome", [1.0, ValueError("odd")], ids=["delay", "failure"])
    def test_running(
        self, make_pool: MakePool, clock: FakeClock, outcome: float | BaseException
    ) -> None:
        """A key that is forgotten while it is handled is not requeued."""
        handler = Recorder(outcome)
        handler.hold()
        pool = make_pool(handler)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)
        pool.forget("a")
        _obeyed(pool)
        handler.gate.set()
        settle(pool)
        clock.advance(100.0)
        settle(pool)

        assert handler.keys == ["a"]

    def test_forgotten_key_begins_its_backoff_anew(
        self, make_pool: MakePool, clock: FakeClock
    ) -> None:
        """Failures of a key that was forgotten while it failed are forgotten as well."""
        handler = Recorder(ValueError("1"), ValueError("2"))
        handler.hold()
        pool = make_pool(handler)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)
        pool.forget("a")
        _obeyed(pool)
        handler.gate.set()
        settle(pool)
        pool.add("a")
        settle(pool)
        clock.advance(1.01)
        settle(pool)

        assert handler.keys == ["a", "a", "a"]

    def test_before_any_add(self, names: Names, make_pool: MakePool) -> None:
        """Forgetting what was never added starts no thread."""
        pool = make_pool(Recorder())
        pool.forget("a")

        assert names() == []


class TestFailure:
    """A handler that raises."""

    @pytest.mark.parametrize(
        "outcome",
        [ValueError("odd"), SystemExit(3), KeyboardInterrupt(), -1.0, math.nan],
        ids=["error", "exit", "interrupt", "negative", "nan"],
    )
    def test_is_logged_counted_and_retried(
        self,
        names: Names,
        make_pool: MakePool,
        clock: FakeClock,
        caplog: pytest.LogCaptureFixture,
        outcome: float | BaseException,
    ) -> None:
        """Whatever is raised, or returned as a delay that is none: the key is tried again."""
        handler = Recorder(outcome, None)
        pool = make_pool(handler, workers=1)
        pool.add("a")
        settle(pool)
        pool.add("b")
        settle(pool)
        assert handler.keys == ["a", "b"]
        clock.advance(1.01)
        settle(pool)

        assert handler.keys == ["a", "b", "a"]
        assert pool.stats().failed == 1
        [record] = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert record.exc_info
        assert names() == ["jobinfo-dispatcher", "jobinfo-worker_0"]

    def test_delay_of_a_wrong_type_is_one(
        self, make_pool: MakePool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A delay that is no number counts as raising."""
        pool = make_pool(lambda key: "soon")
        pool.add("a")
        settle(pool)

        assert pool.stats().failed == 1
        assert pool.stats().delayed == 1

    def test_backoff_doubles_up_to_a_minute(
        self, make_pool: MakePool, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The key is retried after 1, 2, 4, … at most 60 s; a success begins that anew."""
        handler = Recorder(*[ValueError("odd")] * 8, 5.0, ValueError("odd"), None)
        pool = make_pool(handler)
        pool.add("a")
        settle(pool)
        waits = []
        for _ in range(10):
            [timer] = clock.pending()
            waits.append(round(timer.due - clock.monotonic()))
            clock.advance(timer.due - clock.monotonic())
            settle(pool)

        assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 5, 1]


class TestThreads:
    """Which threads there are."""

    def test_none_before_the_first_add(self, names: Names, make_pool: MakePool) -> None:
        """A pool that was made, looked at and closed has started nothing."""
        pool = make_pool(Recorder())
        pool.stats()
        assert not pool.is_running
        settle(pool)

        assert names() == []

    def test_names(self, names: Names, make_pool: MakePool, clock: FakeClock) -> None:
        """Threads are named for the pool."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler, workers=2, name="jobinfo-test")
        for key in "abc":
            pool.add(key)
        for _ in range(2):
            handler.entered.get(timeout=TIMEOUT)

        assert names() == [
            "jobinfo-test-dispatcher",
            "jobinfo-test-worker_0",
            "jobinfo-test-worker_1",
        ]
        handler.gate.set()

    def test_refused_dispatcher_is_an_error_unchanged(
        self, make_pool: MakePool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the first thread cannot be started, add says so; a later one tries again."""
        start = threading.Thread.start
        fault = RuntimeError("can't start new thread")

        def refuse(thread: threading.Thread) -> None:
            raise fault

        handler = Recorder()
        pool = make_pool(handler)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            with pytest.raises(RuntimeError) as raised:
                pool.add("a")
            assert raised.value is fault
        assert not pool.is_running
        monkeypatch.setattr(threading.Thread, "start", start)
        pool.add("b")
        settle(pool)

        assert handler.keys == ["b"]

    def test_refused_worker_is_asked_for_again(
        self,
        make_pool: MakePool,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A key whose worker could not be started is handled after the next add, of any key."""
        start = threading.Thread.start
        refused = threading.Event()

        def refuse_once(thread: threading.Thread) -> None:
            if "worker" in thread.name and not refused.is_set():
                refused.set()
                raise RuntimeError("can't start new thread")
            start(thread)

        handler = Recorder()
        pool = make_pool(handler)
        monkeypatch.setattr(threading.Thread, "start", refuse_once)
        pool.add("a")
        assert refused.wait(TIMEOUT)
        _obeyed(pool)
        pool.add("a")

        assert handler.entered.get(timeout=TIMEOUT) == "a"

    def test_refused_timer_is_asked_for_again(
        self, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
    ) -> None:
        """A timer that could not be started delays its keys, and loses none."""
        monkeypatch.setattr(dispatcher, "_THREAD_RETRY", 0.01)
        armed = threading.Event()
        refusals = [True, True]
        call_later = clock.call_later

        def refuse_twice(delay: float, callback: Callable[[], None], name: str) -> Any:
            if refusals:
                refusals.pop()
                raise RuntimeError("can't start new thread")
            timer = call_later(delay, callback, name)
            armed.set()
            return timer

        monkeypatch.setattr(clock, "call_later", refuse_twice)
        handler = Recorder()
        pool = WorkerPool(handler, clock=clock)
        pool.add_after("a", 1.0)
        assert armed.wait(TIMEOUT)
        clock.advance(1.0)
        settle(pool)

        assert handler.keys == ["a"]
        assert pool.close(TIMEOUT)

    @pytest.mark.parametrize("workers", [0, -1, 1.5, True, "8", None], ids=repr)
    def test_impossible_number_is_refused(self, workers: Any) -> None:
        """A number of workers that cannot be is a ValueError that shows it."""
        with pytest.raises(ValueError, match="workers is"):
            WorkerPool(lambda key: None, workers=workers)


class TestClose:
    """The end."""

    def test_nothing_is_left(self, names: Names, make_pool: MakePool, clock: FakeClock) -> None:
        """Close drops all keys and ends all threads and the timer, and says True."""
        handler = Recorder(5.0)
        pool = make_pool(handler, workers=2)
        pool.add("a")
        pool.add_after("b", 5.0)
        settle(pool)

        assert pool.close(TIMEOUT)
        assert names() == []
        assert clock.pending() == []
        clock.advance(10.0)
        assert handler.keys == ["a"]
        stats = pool.stats()
        assert (stats.busy, stats.queued, stats.delayed) == (0, 0, 0)

    def test_adding_does_nothing_afterwards(self, names: Names, make_pool: MakePool) -> None:
        """After close, add, add_after and forget do nothing, and start nothing."""
        handler = Recorder()
        for is_used in (False, True):
            pool = make_pool(handler)
            if is_used:
                pool.add("a")
                settle(pool)
            assert pool.close(TIMEOUT)
            pool.add("b")
            pool.add_after("c", 0.0)
            pool.forget("b")
            assert pool.wait_idle(TIMEOUT)

        assert handler.keys == ["a"]
        assert names() == []

    def test_twice(self, make_pool: MakePool) -> None:
        """Closing again is True again."""
        pool = make_pool(Recorder())
        pool.add("a")

        assert pool.close(TIMEOUT)
        assert pool.close(0.0)
        assert pool.close()

    def test_from_two_threads(self, make_pool: MakePool) -> None:
        """Two threads that close at once both return when all has ended."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)
        outcomes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        closers = [
            threading.Thread(target=lambda: outcomes.put(pool.close(TIMEOUT))) for _ in range(2)
        ]
        for closer in closers:
            closer.start()
        handler.gate.set()

        assert [outcomes.get(timeout=TIMEOUT) for _ in closers] == [True, True]
        for closer in closers:
            closer.join(TIMEOUT)

    def test_does_not_wait_for_a_stuck_handler(self, make_pool: MakePool) -> None:
        """A handler that does not return makes close False, in time; later it is True."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)

        assert not pool.close(0.0)
        assert not pool.close(0.01)
        handler.gate.set()
        assert pool.close(TIMEOUT)

    def test_queued_keys_are_dropped(self, make_pool: MakePool) -> None:
        """What waits for a worker when the pool is closed is not handled."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler, workers=1)
        for key in "abc":
            pool.add(key)
        handler.entered.get(timeout=TIMEOUT)
        pool.close(0.0)
        handler.gate.set()

        assert pool.close(TIMEOUT)
        assert handler.keys == ["a"]

    def test_from_a_handler(self, names: Names, make_pool: MakePool) -> None:
        """A handler may close the pool: that does not wait for its own thread."""
        outcomes: queue.SimpleQueue[bool] = queue.SimpleQueue()

        def handle(key: Hashable) -> None:
            outcomes.put(pool.close(TIMEOUT))

        pool = make_pool(handle, workers=2)
        pool.add("a")

        assert outcomes.get(timeout=TIMEOUT)
        assert pool.close(TIMEOUT)
        assert names() == []

    def test_from_two_handlers(self, make_pool: MakePool) -> None:
        """Two handlers that close the pool at once do not wait for each other."""
        outcomes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        both = threading.Barrier(2, timeout=TIMEOUT)

        def handle(key: Hashable) -> None:
            both.wait()
            outcomes.put(pool.close(TIMEOUT))

        pool = make_pool(handle, workers=2)
        pool.add("a")
        pool.add("b")

        assert [outcomes.get(timeout=TIMEOUT) for _ in "ab"] == [True, True]

    def test_from_a_handler_waits_for_the_others(self, make_pool: MakePool) -> None:
        """A handler that closes the pool is told False while another one is stuck."""
        outcomes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        inside, gate = threading.Event(), threading.Event()

        def handle(key: str) -> None:
            if key == "stuck":
                inside.set()
                gate.wait(TIMEOUT)
                return
            assert inside.wait(TIMEOUT)
            outcomes.put(pool.close(0.02))

        pool = make_pool(handle, workers=2)
        pool.add("stuck")
        pool.add("a")

        assert not outcomes.get(timeout=TIMEOUT)
        gate.set()

    def test_on_close_is_called_once(self, make_pool: MakePool) -> None:
        """`on_close` is called while handlers still run, so that it can make them return."""
        handler = Recorder()
        handler.hold()
        calls: list[str] = []

        def release() -> None:
            calls.append(threading.current_thread().name)
            handler.gate.set()

        pool = make_pool(handler, on_close=release)
        pool.add("a")
        handler.entered.get(timeout=TIMEOUT)

        assert pool.close(TIMEOUT)
        assert pool.close(TIMEOUT)
        assert calls == ["jobinfo-dispatcher"]


class TestProcess:
    """The end, and the double, of the process."""

    def test_exit_without_close(self) -> None:
        """A program that forgets close ends by itself, with its exit code and a silent stderr."""
        program = """
            import sys, threading
            from jobinfo_cache import WorkerPool
            begun = threading.Event()
            def handle(key):
                begun.set()
                return 0.0 if key % 2 else 5.0
            pool = WorkerPool(handle)
            for key in range(1000):
                pool.add(key)
            pool.add_after("late", 3600.0)
            assert begun.wait(10)
            sys.exit(7)
        """
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
            capture_output=True,
            timeout=20.0,
            check=False,
        )

        assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"", b"")

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_fork(self, make_pool: MakePool) -> None:
        """The child of a fork has an empty pool that starts its own threads; a closed one stays."""
        handler = Recorder()
        handler.hold()
        pool = make_pool(handler, workers=1)
        closed = make_pool(handler)
        closed.add("x")
        closed.close(0.0)
        pool.add("a")
        pool.add("b")
        assert {handler.entered.get(timeout=TIMEOUT) for _ in "xa"} >= {"a"}

        assert _in_child(lambda: _serves(pool, closed, handler)) == 0
        handler.gate.set()

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_fork_of_a_pool_whose_locks_are_held(self, make_pool: MakePool) -> None:
        """The child does not inherit a lock that a thread of the parent held at the fork."""
        pool = make_pool(Recorder())
        pool.add("a")
        settle(pool)
        counters = (pool._handled, pool._failed)

        def look() -> bool:
            pool.stats()
            return True

        for counter in counters:
            counter._lock.acquire()
        try:
            assert _in_child(look) == 0
        finally:
            for counter in counters:
                counter._lock.release()


def _serves(pool: WorkerPool, closed: WorkerPool, handler: Recorder) -> bool:
    """In the child: the pool is empty, handles what is added, and closes."""
    handler.gate = threading.Event()
    handler.gate.set()
    handler.keys.clear()
    stats = pool.stats()
    closed.add("y")
    pool.add("c")
    return (
        (stats.busy, stats.queued) == (0, 0)
        and pool.wait_idle(TIMEOUT)
        and handler.keys == ["c"]
        and pool.close(TIMEOUT)
        and closed.close(TIMEOUT)
    )


def _in_child(check: Callable[[], bool]) -> int:
    """The exit code of a forked child: 0 if the check is true there; killed if it hangs."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(8)
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
