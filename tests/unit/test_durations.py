"""Tests of the histogram of request durations."""

from __future__ import annotations

import threading

import pytest

from jobinfo_cache.durations import BOUNDS, Durations


def test_nothing_is_counted_at_first() -> None:
    """Before the first request all is 0."""
    assert Durations().totals() == ([0] * (len(BOUNDS) + 1), 0.0)


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (0.001, 0), (0.0011, 1), (2.0, 10), (2.001, 11), (10.0, 12), (10.1, 13)],
)
def test_bucket(seconds: float, bucket: int) -> None:
    """A request is counted in the first bucket whose bound it does not exceed."""
    durations = Durations()
    durations.record(seconds)

    counts, total = durations.totals()
    assert total == seconds
    assert [number for number, count in enumerate(counts) if count] == [bucket]


def test_loses_no_step() -> None:
    """Threads that count at once lose nothing, as each has a sheet of its own."""
    durations = Durations()
    barrier = threading.Barrier(4, timeout=10.0)

    def count() -> None:
        barrier.wait()
        for _ in range(2000):
            durations.record(0.25)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)

    counts, total = durations.totals()
    assert (sum(counts), counts[BOUNDS.index(0.25)], total) == (8000, 8000, 2000.0)
    assert len(durations._sheets) == 4


def test_figures_never_fall_while_a_thread_counts() -> None:
    """Each look finds at least what the one before found."""
    durations = Durations()
    stop = threading.Event()

    def count() -> None:
        while not stop.is_set():
            durations.record(0.003)

    thread = threading.Thread(target=count)
    thread.start()
    looks = [durations.totals() for _ in range(300)]
    stop.set()
    thread.join(10.0)

    assert [sum(counts) for counts, _ in looks] == sorted(sum(counts) for counts, _ in looks)
    assert [total for _, total in looks] == sorted(total for _, total in looks)


def test_threads_that_end_leave_their_sheets() -> None:
    """What a thread has counted stays, and memory does not grow with the threads there were."""
    durations = Durations()
    for _ in range(50):
        thread = threading.Thread(target=durations.record, args=(1.0,))
        thread.start()
        thread.join(10.0)

    assert durations.totals()[1] == 50.0
    assert len(durations._sheets) < 50
