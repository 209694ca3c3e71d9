"""G06: STOPPED is not taken for an end, and the job is polled until a timeout."""

from __future__ import annotations

import pytest

from jobinfo_cache import JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


@pytest.mark.parametrize("status", ["STOPPED", "SUCCEEDED", "FAILED"])
def test_every_end_is_the_end_of_polling(clock: FakeClock, status: str) -> None:
    """The end is shown as terminal, and no request follows it."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.dashboard.set_status("a", status)
        it.intervals(1)
        asked, end = it.asked(), it.read()
        for _ in range(5):
            it.intervals(1)
            it.read()

        assert isinstance(end, JobInfo)
        assert (end.status, end.status.is_terminal) == (status, True)
        assert it.asked() == asked
        assert it.cache.stats().delayed == 0
