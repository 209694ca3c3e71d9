"""Many clusters of one cache, polled without a thread: the pool is a loop on the fake clock."""

from __future__ import annotations

from typing import Any

from jobinfo_cache import Cluster, JobInfoCache, Settings
from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.testing import FakeClock
from tests.support import RecordingPool, ScriptedDashboard

__all__ = ["Rounds"]


class Rounds:
    """A cache whose rounds are made, each at its moment, by `run_for`. Jitter and lists are off
    unless the settings say otherwise."""

    def __init__(self, clock: FakeClock, **settings: Any) -> None:
        self.clock = clock
        self.cache = JobInfoCache(
            Settings(**{"jitter": 0.0, "batching": False, **settings}), clock=clock
        )
        self.engine = self.cache._engine
        self._pool = RecordingPool(clock)
        self.engine.pool = self.engine.reader._pool = self._pool
        self.engine.reader.start = lambda: None
        self._due: dict[Cluster, float] = {}

    def cluster(
        self, name: str, *outcomes: str | BaseException
    ) -> tuple[CachedDashboardClient, ScriptedDashboard]:
        """A client of a new cluster, and its dashboard."""
        dashboard = ScriptedDashboard(self.clock, *outcomes)
        return self.cache.client(dashboard.client, Cluster("ns", name, "uid")), dashboard

    def run_for(self, seconds: float) -> None:
        """Make all rounds that fall due within so much time."""
        ends = self.clock.monotonic() + seconds
        while True:
            self._take_added()
            cluster = min(self._due, key=self._due.__getitem__, default=None)
            if cluster is None or self._due[cluster] > ends:
                break
            self.clock.advance(max(self._due.pop(cluster) - self.clock.monotonic(), 0.0))
            delay = self.engine.poller.poll_cluster(cluster)
            if delay is not None:
                self._put(cluster, delay)
        self.clock.advance(max(ends - self.clock.monotonic(), 0.0))

    def _take_added(self) -> None:
        for key, delay in self._pool.take():
            assert isinstance(key, Cluster)
            self._put(key, delay)

    def _put(self, cluster: Cluster, delay: float) -> None:
        due = self.clock.monotonic() + delay
        self._due[cluster] = min(self._due.get(cluster, due), due)
