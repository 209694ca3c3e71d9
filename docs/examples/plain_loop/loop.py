"""A controller loop with the standard library only: a queue of keys, and times to look again.

Run it: `python loop.py` follows six jobs on two simulated dashboards to their ends.
"""

from __future__ import annotations

import heapq
import queue
import time
from typing import NamedTuple

from jobinfo_cache import Cluster, JobChange, JobInfoCache, Settings
from jobinfo_cache.testing import SimulatedDashboard


class Key(NamedTuple):
    """One job, everywhere."""

    cluster: Cluster
    job_id: str


class Loop:
    """Reconciles keys in one thread: when something changed, and when their time has come."""

    def __init__(self, settings: Settings) -> None:
        self.cache = JobInfoCache(settings, on_change=self._wake)
        self.urls: dict[Cluster, str] = {}
        self.ended: dict[str, str] = {}
        self._inbox: queue.SimpleQueue[Key] = queue.SimpleQueue()
        self._due: list[tuple[float, Key]] = []
        self._times: dict[Key, float] = {}  # of a key's times in `_due` only this one counts

    def add(self, key: Key) -> None:
        """Look at the job soon; from any thread."""
        self._inbox.put(key)

    def run(self, until_ended: int) -> None:
        """Work until so many jobs have ended."""
        while len(self.ended) < until_ended:
            key = self._next()
            self._look_again(key, self.reconcile(key))

    def reconcile(self, key: Key) -> float | None:
        """Look at one job; returns in how many seconds to look again. Never waits."""
        snapshot = self.cache.client(self.urls[key.cluster], key.cluster).lookup(key.job_id)
        if snapshot.info is not None and snapshot.info.status.is_terminal:
            self.ended[key.job_id] = str(snapshot.info.status)
        return snapshot.retry_after

    def _wake(self, change: JobChange) -> None:
        self.add(Key(change.cluster, change.job_id))

    def _look_again(self, key: Key, retry_after: float | None) -> None:
        self._times.pop(key, None)  # without this each change would add one more series of looks
        if retry_after is not None:
            due = self._times[key] = time.monotonic() + retry_after
            heapq.heappush(self._due, (due, key))

    def _next(self) -> Key:
        while True:
            wait = self._due[0][0] - time.monotonic() if self._due else None
            try:
                return self._inbox.get(timeout=None if wait is None else max(wait, 0.0))
            except queue.Empty:
                due, key = heapq.heappop(self._due)
                if self._times.get(key) == due:
                    return key


def main() -> None:
    loop = Loop(Settings(poll_interval=0.3))
    with SimulatedDashboard() as first, SimulatedDashboard() as second, loop.cache:
        for number, dashboard in enumerate((first, second)):
            cluster = Cluster("default", f"cluster-{number}", f"uid-{number}")
            loop.urls[cluster] = dashboard.url
            for outcome in ("SUCCEEDED", "FAILED", "STOPPED"):
                job_id = f"{cluster.name}-{outcome.lower()}"
                dashboard.add_job(job_id, pending=0.1, running=0.4, outcome=outcome)
                loop.add(Key(cluster, job_id))
        loop.run(until_ended=6)
    for job_id, status in sorted(loop.ended.items()):
        print(job_id, status)


if __name__ == "__main__":
    main()
