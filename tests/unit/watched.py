"""A simulated dashboard whose list is followed by a cache."""

from __future__ import annotations

from typing import Any

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

JOBS = [f"job-{number:02}" for number in range(40)]
LIST = "/api/jobs/"
INTERVAL = 3.0


class Watched:
    """A simulated dashboard whose jobs are read through a cache, moved interval by interval."""

    def __init__(self, dashboard: SimulatedDashboard, clock: FakeClock, **settings: Any) -> None:
        self.dashboard = dashboard
        self.clock = clock
        self.cache = JobInfoCache(Settings(**{"jitter": 0.0, **settings}), clock=clock)
        self.client: CachedDashboardClient = self.cache.client(
            DashboardClient(dashboard.url, timeout=10.0), Cluster("ns", "one", "uid")
        )
        self._seen = 0

    def read_all(self) -> None:
        for job_id in JOBS:
            self.client.lookup(job_id)
        settle(self.cache)

    def begin(self) -> None:
        """First contact, and the delay after it that spreads clusters out."""
        self.read_all()
        self.advance(INTERVAL)
        self.new_paths()

    def advance(self, seconds: float) -> None:
        """Move in slots, as real time does, and settle after each."""
        for _ in range(round(seconds / 0.1)):
            self.clock.advance(0.1)
            settle(self.cache)

    def new_paths(self) -> list[str]:
        """What was asked for since this was last called."""
        paths = [request.path for request in self.dashboard.requests]
        seen, self._seen = self._seen, len(paths)
        return paths[seen:]

    def prefer(self, *, lists: bool) -> None:
        """Have the costs measured so far say so, far beyond what a few requests change."""
        costs = self.client._state.costs
        for _ in range(30):
            costs.took_single(10.0 if lists else 1e-4)
            costs.took_list(1e-4 if lists else 10.0)
