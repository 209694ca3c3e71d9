"""G03: a failed poll leaves an error mark that an equal status does not clear."""

from __future__ import annotations

from jobinfo_cache import DashboardUnavailable, JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


def test_an_equal_status_clears_the_error(clock: FakeClock) -> None:
    """After RUNNING, 503, RUNNING there is no error, and a newer fetch time."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        first = it.follow()
        it.dashboard.fault("503", times=1)
        it.intervals(1)
        failing = it.client.lookup("a")
        it.intervals(1)
        well, read = it.client.lookup("a"), it.read()

        assert isinstance(failing.error, DashboardUnavailable)
        assert failing.info == first
        assert (well.error, well.failures, well.failing_since) == (None, 0, None)
        assert isinstance(first, JobInfo)
        assert isinstance(read, JobInfo)
        assert (read.status, read.fetched_at > first.fetched_at) == ("RUNNING", True)
        kinds = [change.error and change.error.kind for change in it.changes]
        assert kinds == [None, "unavailable", None]
