"""G09: the first look comes before the job is there, and that is final."""

from __future__ import annotations

from jobinfo_cache import JobInfo, JobNotFound
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


def test_not_found_is_told_and_polling_goes_on(clock: FakeClock) -> None:
    """After three 404s the job is seen, with no action of the reader."""
    with case(clock) as it:
        it.read()
        it.intervals(3)
        missing, told = it.client.lookup("a"), it.read()
        it.dashboard.add_job("a", status="PENDING")
        it.intervals(4)
        pending = it.read()
        it.dashboard.set_status("a", "RUNNING")
        it.intervals(1)

        assert isinstance(missing.error, JobNotFound)
        assert missing.retry_after is not None
        assert isinstance(told, JobNotFound)
        assert isinstance(pending, JobInfo)
        assert pending.status == "PENDING"
        assert it.status() == "RUNNING"
