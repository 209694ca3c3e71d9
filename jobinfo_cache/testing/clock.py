"""Time that stands still until a test moves it."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

__all__ = ["FakeClock", "FakeEvent", "FakeTimer"]


class FakeClock:
    """A clock for tests: pass it as `clock=` and move it with `advance`.

    Safe from any thread; only `advance` may block, for its callbacks. All durations are seconds.
    `monotonic()` starts at 1,000, `now()` at 2026-01-01 00:00 UTC.

    .. versionadded:: 0.1.0
    """

    def __init__(self) -> None:
        self._moved = threading.Condition(threading.RLock())
        # Guarded by _moved:
        self._monotonic = 1000.0
        self._now = datetime(2026, 1, 1, tzinfo=timezone.utc)
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._numbers = itertools.count()

    def monotonic(self) -> float:
        """The seconds that all arithmetic is on.

        .. versionadded:: 0.1.0
        """
        return self._monotonic

    def now(self) -> datetime:
        """The aware UTC time that people read.

        .. versionadded:: 0.1.0
        """
        return self._now

    def call_later(self, delay: float, callback: Callable[[], None], name: str) -> FakeTimer:
        """Arm `callback`; `advance` calls it, in its own thread, when its time has come.

        .. versionadded:: 0.1.0
        """
        with self._moved:
            timer = FakeTimer(self._monotonic + max(delay, 0.0), callback, name)
            heapq.heappush(self._timers, (timer.due, next(self._numbers), timer))
            return timer

    def event(self) -> FakeEvent:
        """An event whose `wait` times out when the clock has been moved so far.

        .. versionadded:: 0.1.0
        """
        return FakeEvent(self, self._moved)

    def advance(self, seconds: float) -> None:
        """Move time forward, calling back what falls due on the way, each at its own moment.

        Returns when all callbacks have returned. What they set going in other threads may still
        be under way: `settle` waits for that. Raises `ValueError` for a negative number.

        .. versionadded:: 0.1.0
        """
        if not seconds >= 0:
            raise ValueError(f"seconds is {seconds!r}; time moves forward only")
        with self._moved:
            target = self._monotonic + seconds
        while timer := self._next_timer(target):
            timer.callback()
        self._move_to(target)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP does.

        .. versionadded:: 0.1.0
        """
        with self._moved:
            self._now += timedelta(seconds=seconds)

    def pending(self) -> list[FakeTimer]:
        """The armed timers, earliest first.

        .. versionadded:: 0.1.0
        """
        with self._moved:
            return [timer for _, _, timer in sorted(self._timers) if not timer.cancelled]

    def _next_timer(self, target: float) -> FakeTimer | None:
        """Step to the earliest timer due by `target`, and take it."""
        with self._moved:
            while self._timers and self._timers[0][0] <= target:
                due, _, timer = heapq.heappop(self._timers)
                if not timer.cancelled:
                    self._move_to(due)
                    return timer
        return None

    def _move_to(self, moment: float) -> None:
        with self._moved:
            step = moment - self._monotonic
            if step > 0:
                self._monotonic = moment
                self._now += timedelta(seconds=step)
            self._moved.notify_all()


class FakeTimer:
    """A callback armed on a `FakeClock`, due at `due` on its monotonic scale."""

    def __init__(self, due: float, callback: Callable[[], None], name: str) -> None:
        self.due = due
        self.callback = callback
        self.name = name
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def join(self, timeout: float | None = None) -> None:
        """Nothing to wait for: there is no thread."""


class FakeEvent:
    """An event whose `wait` times out when its `FakeClock` says so."""

    def __init__(self, clock: FakeClock, moved: threading.Condition) -> None:
        self._clock = clock
        self._moved = moved  # the clock's
        self._is_set = False
        self._deadlines: list[float] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._moved:
            self._is_set = True
            self._moved.notify_all()

    def clear(self) -> None:
        with self._moved:
            self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        with self._moved:
            until = float("inf") if timeout is None else self._clock.monotonic() + timeout
            self._deadlines.append(until)
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._is_set or self._clock.monotonic() >= until)
            self._deadlines.remove(until)
            return self._is_set

    def wait_for_sleeper(self, timeout: float) -> bool:
        """Wait, in real seconds, until a thread waits here for a moment still to come."""
        with self._moved:
            return self._moved.wait_for(
                lambda: (
                    self._is_set
                    or any(until > self._clock.monotonic() for until in self._deadlines)
                ),
                timeout,
            )
