"""G11: a dashboard that accepts and never answers must not hold up any reader."""

from __future__ import annotations

import threading

from jobinfo_cache import (
    Cluster,
    DashboardClient,
    DashboardUnavailable,
    JobInfoCache,
    Settings,
    TryAgain,
)
from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

READS = 1000


def outcomes(client: CachedDashboardClient, count: int) -> list[str]:
    """What so many reads raise."""
    raised = []
    for _ in range(count):
        try:
            client.get_job_info("a")
        except (TryAgain, DashboardUnavailable) as error:
            raised.append(type(error).__name__)
    return raised


def test_thousand_reads_while_the_one_request_hangs(clock: FakeClock) -> None:
    """All reads return while the request is held; there is one, and no thread for a read."""
    settings = Settings(poll_interval=0.2, jitter=0.0, workers=4)
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(settings, clock=clock) as cache,
        dashboard.gate() as gate,
    ):
        dashboard.add_job("a", status="RUNNING")
        client = cache.client(
            DashboardClient(dashboard.url, timeout=20.0), Cluster("ns", "one", "uid")
        )
        client._state.cut_short = True  # so that the first request has its full deadline
        assert outcomes(client, 1) == ["TryAgain"]
        gate.wait_for(1)
        threads = threading.active_count()

        # The request is held by a gate that opens later: reads that waited for it would hang.
        for _ in range(10):
            assert outcomes(client, READS // 10) == ["TryAgain"] * (READS // 10)
            clock.advance(0.2)
        assert threading.active_count() == threads
        assert gate.wait_for(1) == 1
        assert len(dashboard.requests) == 1
        assert cache.stats().workers_busy == 1

        gate.release()
        settle(cache)
        assert client.get_job_info("a").status == "RUNNING"


def test_deadline_becomes_one_failure(clock: FakeClock) -> None:
    """The request's deadline ends it: one reader gets the failure, all others "try again"."""
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        dashboard.fault("hang")
        client = cache.client(
            DashboardClient(dashboard.url, timeout=0.2), Cluster("ns", "one", "uid")
        )
        outcomes(client, 1)
        settle(cache)
        assert outcomes(client, 10) == ["DashboardUnavailable"] + ["TryAgain"] * 9
        # The first try, which is cut short and no outcome, and the one with its full deadline.
        assert len(dashboard.requests) <= 2
        assert client.lookup("a").failures == 1
