"""Lessons 2.17, 6.12: the entry is stored, the poll is not queued, and the key is dead."""

from __future__ import annotations

import threading

import pytest

from jobinfo_cache import JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


def test_threads_that_cannot_start_leave_no_entry(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's error comes through unchanged, nothing is stored, and the next read works."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                it.client.get_job_info("a")
        assert it.cache.stats().entries == 0
        assert isinstance(it.follow(), JobInfo)


def test_a_poll_that_raises_is_an_error_and_not_the_end(clock: FakeClock) -> None:
    """What no one foresaw in a poll is told to the reader, and polling goes on."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.dashboard.fault("garbage", times=1)
        first = it.follow()
        it.intervals(2)

        assert isinstance(first, Exception)
        assert it.status() == "RUNNING"
