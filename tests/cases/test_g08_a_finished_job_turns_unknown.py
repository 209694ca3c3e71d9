"""G08: the end was seen; the head restarts empty, and "not found" takes its place."""

from __future__ import annotations

import pytest

from jobinfo_cache import JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED"])
def test_an_end_that_was_seen_stays(clock: FakeClock, status: str) -> None:
    """After the restart every read gives the same end, its message included."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.dashboard.set_status("a", status, message="out of memory")
        it.intervals(1)
        it.dashboard.restart()
        for _ in range(5):
            it.intervals(1)
            end = it.read()
            assert isinstance(end, JobInfo)
            assert (end.status, end.message) == (status, "out of memory")
