"""G01: a cluster and its job are made again under the same names, and the old end is shown."""

from __future__ import annotations

from jobinfo_cache import Cluster, JobInfo, TryAgain
from jobinfo_cache.testing import FakeClock, settle
from tests.cases.support import INTERVAL, case


def test_a_new_uid_never_gets_the_old_end(clock: FakeClock) -> None:
    """The first read of the new incarnation is pending, and a request is sent for it."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="SUCCEEDED")
        old = it.follow()
        it.dashboard.restart()
        it.dashboard.add_job("a", status="PENDING")
        asked = it.asked()
        it.client = it.client_of(Cluster("ns", "one", "u2"))
        first = it.read()
        settle(it.cache)

        assert isinstance(old, JobInfo)
        assert old.status == "SUCCEEDED"
        assert isinstance(first, TryAgain)
        assert it.asked() == asked + 1
        assert it.status() == "PENDING"


def test_without_a_uid_a_live_job_is_seen_to_be_lost(clock: FakeClock) -> None:
    """With no uid to tell them apart, the restart is said in the error of a job that was known."""
    with case(clock) as it:
        it.client = it.client_of(Cluster("ns", "two"))
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.dashboard.restart()
        clock.advance(INTERVAL)
        settle(it.cache)

        assert "restarted" in str(it.read())
