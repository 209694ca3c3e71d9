"""Tests of the lock that is tried again instead of waited for."""

from __future__ import annotations

import threading

import pytest

from jobinfo_cache.try_lock import TryLock

TIMEOUT = 20.0  # seconds; only a failure uses it up


@pytest.fixture
def lock() -> TryLock:
    return TryLock()


class Taker(threading.Thread):
    """Takes the lock, says so, and gives it back when it is told to."""

    def __init__(self, lock: TryLock) -> None:
        super().__init__(daemon=True)
        self.has_it = threading.Event()
        self.release = threading.Event()
        self._lock = lock
        self.start()

    def run(self) -> None:
        with self._lock:
            self.has_it.set()
            assert self.release.wait(TIMEOUT)


def test_one_thread_at_a_time(lock: TryLock) -> None:
    """A second thread gets it when the first one has given it back, and not before."""
    first = Taker(lock)
    assert first.has_it.wait(TIMEOUT)
    second = Taker(lock)
    assert not second.has_it.is_set()
    first.release.set()
    assert second.has_it.wait(TIMEOUT)
    second.release.set()
    for taker in (first, second):
        taker.join(TIMEOUT)


def test_a_thread_may_take_it_again(lock: TryLock) -> None:
    """A signal handler that comes in while its thread has the lock gets it, and gives it back."""
    with lock:
        with lock:
            pass
        other = Taker(lock)
        assert not other.has_it.is_set()
    assert other.has_it.wait(TIMEOUT)
    other.release.set()
    other.join(TIMEOUT)


def test_an_error_gives_it_back(lock: TryLock) -> None:
    with pytest.raises(KeyError), lock:
        raise KeyError
    other = Taker(lock)
    assert other.has_it.wait(TIMEOUT)
    other.release.set()
    other.join(TIMEOUT)


def test_no_step_is_lost(lock: TryLock) -> None:
    """What four threads count under it is the sum of what each has counted."""
    counts = [0]

    def run() -> None:
        for _ in range(5000):
            with lock:
                counts.append(counts.pop() + 1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert counts == [20_000]
