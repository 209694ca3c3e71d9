"""A cache on a simulated dashboard and a fake clock, for the reports that became cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobinfo_cache import (
    CachedDashboardClient,
    Cluster,
    DashboardError,
    JobChange,
    JobInfo,
    JobInfoCache,
    Settings,
    TryAgain,
)
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

CLUSTER = Cluster("ns", "one", "u1")
INTERVAL = 3.0  # seconds


class Case:
    """Reads of one job, with all that is due done before each of them."""

    def __init__(self, dashboard: SimulatedDashboard, clock: FakeClock, **settings: Any) -> None:
        self.dashboard = dashboard
        self.clock = clock
        self.changes: list[JobChange] = []
        self.cache = JobInfoCache(
            Settings(**{"jitter": 0.0, "request_timeout": 10.0, **settings}),
            clock=clock,
            on_change=self.changes.append,
        )
        self.client = self.client_of(CLUSTER)

    def client_of(self, cluster: Cluster) -> CachedDashboardClient:
        return self.cache.client(self.dashboard.url, cluster)

    def read(self, job_id: str = "a", **demands: Any) -> JobInfo | TryAgain | DashboardError:
        """What `get_job_info` returns or raises."""
        try:
            return self.client.get_job_info(job_id, **demands)
        except (TryAgain, DashboardError) as error:
            return error

    def follow(self, job_id: str = "a") -> JobInfo | TryAgain | DashboardError:
        """The first read registers the job; what the next one gets."""
        self.read(job_id)
        settle(self.cache)
        return self.read(job_id)

    def intervals(self, number: float) -> None:
        """Let that many intervals pass."""
        for _ in range(int(number)):
            self.clock.advance(INTERVAL)
            settle(self.cache)

    def asked(self, job_id: str = "a") -> int:
        """How many requests for the job, or for all, the dashboard has had."""
        paths = (f"/api/jobs/{job_id}", "/api/jobs/")
        return sum(each.method == "GET" and each.path in paths for each in self.dashboard.requests)

    def status(self, job_id: str = "a") -> str:
        """The status that is shown, whatever else is wrong."""
        snapshot = self.client.lookup(job_id)
        assert snapshot.info is not None
        return str(snapshot.info.status)


@contextmanager
def case(clock: FakeClock, **settings: Any) -> Iterator[Case]:
    """A case with a dashboard of its own, closed at the end."""
    with SimulatedDashboard(clock=clock) as dashboard:
        made = Case(dashboard, clock, **settings)
        try:
            yield made
        finally:
            assert made.cache.close(10.0)
