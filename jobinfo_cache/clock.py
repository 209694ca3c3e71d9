"""Time as one small object, so that tests can hand in another one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Protocol

__all__ = ["ROUNDING", "Clock", "Event", "SystemClock", "Timer"]


#: Seconds; float arithmetic may put a due time this much after its own moment.
ROUNDING = 1e-6


class Timer(Protocol):
    """A callback that is armed."""

    def cancel(self) -> None:
        """The callback is not called any more, unless it has begun."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread that calls back, if there is one."""


class Event(Protocol):
    """The part of `threading.Event` that the library uses."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Clock(Protocol):
    """What the library asks of time. All durations are seconds. Safe from any thread.

    .. versionadded:: 0.1.0
    """

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back. All arithmetic is on this.

        .. versionadded:: 0.1.0
        """

    def now(self) -> datetime:
        """The aware UTC time that people read.

        .. versionadded:: 0.1.0
        """

    def call_later(self, delay: float, callback: Callable[[], None], name: str) -> Timer:
        """Call `callback` once, `delay` seconds from now, in a thread called `name`.

        .. versionadded:: 0.1.0
        """

    def event(self) -> Event:
        """An event whose `wait` measures its timeout on this clock.

        .. versionadded:: 0.1.0
        """


class SystemClock:
    """The machine's clocks and `threading`."""

    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def call_later(self, delay: float, callback: Callable[[], None], name: str) -> Timer:
        timer = threading.Timer(delay, callback)
        timer.daemon = True
        timer.name = name
        timer.start()
        return timer

    def event(self) -> Event:
        return threading.Event()
