"""Tests of the clocks: the machine's and the fake one."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from functools import partial

import pytest

from jobinfo_cache.clock import SystemClock
from jobinfo_cache.testing import FakeClock
from tests.support import START, TIMEOUT


class TestSystemClock:
    """The machine's time."""

    def test_now_is_aware_utc(self) -> None:
        """The time that people read knows its zone."""
        assert SystemClock().now().utcoffset() == timedelta(0)

    def test_monotonic_never_goes_back(self) -> None:
        """Two looks are in order."""
        clock = SystemClock()
        first = clock.monotonic()
        assert clock.monotonic() >= first

    def test_call_later(self) -> None:
        """A callback is called once, in a daemon thread of the given name."""
        seen: list[tuple[str, bool]] = []
        called = threading.Event()

        def callback() -> None:
            thread = threading.current_thread()
            seen.append((thread.name, thread.daemon))
            called.set()

        timer = SystemClock().call_later(0.0, callback, "jobinfo-test")
        assert called.wait(TIMEOUT)
        timer.join(TIMEOUT)

        assert seen == [("jobinfo-test", True)]

    def test_cancel(self) -> None:
        """A callback that was cancelled is not called, and its thread ends at once."""
        called: list[bool] = []
        timer = SystemClock().call_later(3600.0, lambda: called.append(True), "jobinfo-test")
        timer.cancel()
        timer.join(TIMEOUT)

        assert called == []

    def test_event(self) -> None:
        """Its events are those of `threading`."""
        event = SystemClock().event()
        assert not event.wait(0.0)
        event.set()
        assert event.wait(0.0)
        event.clear()
        assert not event.is_set()


class TestFakeClock:
    """Time that a test moves."""

    def test_stands_still(self, clock: FakeClock) -> None:
        """Time moves by `advance` only, on both scales alike."""
        assert (clock.monotonic(), clock.now()) == (1000.0, START)
        clock.advance(1.5)

        assert (clock.monotonic(), clock.now()) == (1001.5, START + timedelta(seconds=1.5))

    def test_jump_moves_the_wall_clock_only(self, clock: FakeClock) -> None:
        """A jump is what an administrator does to the wall clock."""
        clock.jump(-3600.0)
        assert (clock.monotonic(), clock.now()) == (1000.0, START - timedelta(hours=1))
        clock.advance(1.0)

        assert clock.now() == START + timedelta(seconds=1 - 3600)

    def test_callbacks_in_order_at_their_moments(self, clock: FakeClock) -> None:
        """What falls due is called back in its order, each when its time is now."""
        seen: list[tuple[str, float]] = []

        def note(name: str) -> None:
            seen.append((name, clock.monotonic()))

        for name, delay in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 4.0)):
            clock.call_later(delay, partial(note, name), "timer")
        clock.advance(3.0)

        assert seen == [("a", 1001.0), ("b", 1002.0), ("c", 1003.0)]
        assert [timer.due for timer in clock.pending()] == [1004.0]

    def test_callback_may_arm_another(self, clock: FakeClock) -> None:
        """What a callback arms is called in the same advance, if its time comes in it."""
        seen: list[float] = []

        def tick() -> None:
            seen.append(clock.monotonic())
            clock.call_later(1.0, tick, "timer")

        clock.call_later(1.0, tick, "timer")
        clock.advance(3.5)

        assert seen == [1001.0, 1002.0, 1003.0]
        assert len(clock.pending()) == 1

    def test_cancelled_is_not_called(self, clock: FakeClock) -> None:
        """A cancelled timer is not pending, and not called."""
        seen: list[bool] = []
        timer = clock.call_later(1.0, lambda: seen.append(True), "timer")
        timer.cancel()

        assert clock.pending() == []
        clock.advance(2.0)
        assert seen == []

    @pytest.mark.parametrize("seconds", [-0.1, math.nan])
    def test_time_does_not_go_back(self, clock: FakeClock, seconds: float) -> None:
        """Time moves forward only."""
        with pytest.raises(ValueError, match="forward only"):
            clock.advance(seconds)

    def test_event_waits_on_it(self, clock: FakeClock) -> None:
        """An event's wait times out when the clock says so, not before."""
        event = clock.event()
        outcome: list[bool] = []
        thread = threading.Thread(target=lambda: outcome.append(event.wait(5.0)))
        thread.start()
        assert event.wait_for_sleeper(TIMEOUT)
        clock.advance(4.9)
        assert event.wait_for_sleeper(TIMEOUT)
        assert outcome == []
        clock.advance(0.2)
        thread.join(TIMEOUT)

        assert outcome == [False]

    def test_event_that_is_set_ends_the_wait(self, clock: FakeClock) -> None:
        """Setting the event wakes who waits, with True."""
        event = clock.event()
        outcome: list[bool] = []
        thread = threading.Thread(target=lambda: outcome.append(event.wait()))
        thread.start()
        assert event.wait_for_sleeper(TIMEOUT)
        event.set()
        thread.join(TIMEOUT)

        assert outcome == [True]
        assert event.wait(0.0)
        event.clear()
        assert not event.is_set()
