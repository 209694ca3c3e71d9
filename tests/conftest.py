"""What holds for every test: no thread or timer left behind, no sleeping."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from jobinfo_cache.testing import FakeClock

# A shell gives its background jobs a Ctrl-C that is ignored, and so would the programs under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

GRACE = 5.0  # seconds that a thread may take to end after its test; only a leak uses them up


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that two processes end at about the same time."""
    items.sort(key=lambda item: "stateful" not in item.path.parts)


@pytest.fixture
def clock() -> FakeClock:
    """Time that stands still until the test moves it."""
    return FakeClock()


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    """Fail a test that leaves a thread of the library, or an armed timer, behind."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + GRACE
    new = [thread for thread in threading.enumerate() if thread not in before]
    left = [thread.name for thread in new if _is_left(thread, deadline)]
    if left:
        pytest.fail(f"the test left threads or timers behind: {', '.join(left)}")


def _is_left(thread: threading.Thread, deadline: float) -> bool:
    if isinstance(thread, threading.Timer):
        # Not by its thread: that of a cancelled timer lives a moment longer.
        return not thread.finished.wait(max(0.0, deadline - time.monotonic()))
    if not thread.name.startswith("jobinfo"):
        return False
    thread.join(max(0.0, deadline - time.monotonic()))
    return thread.is_alive()


@pytest.fixture(autouse=True)
def _no_sleep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse `time.sleep`, except in tests of a real Ray; fail the test that called it."""
    if request.node.get_closest_marker("ray"):
        yield
        return
    sleepers: list[str] = []
    real_sleep = time.sleep

    def refuse(seconds: float) -> None:
        caller = sys._getframe(1)
        if caller.f_globals.get("__name__") == "subprocess":
            # How the standard library waits for a process.
            return real_sleep(seconds)
        sleepers.append(f"{caller.f_code.co_filename}:{caller.f_lineno}")
        raise RuntimeError("time.sleep is refused in tests: use a FakeClock or an event")

    monkeypatch.setattr(time, "sleep", refuse)
    yield
    # Said here too, because the sleeper may have caught the error.
    if sleepers:
        pytest.fail(f"time.sleep was called at {', '.join(sleepers)}")
