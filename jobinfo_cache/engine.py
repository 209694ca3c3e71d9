"""The parts of a cache, wired together: all that its threads hold.

The user holds the `JobInfoCache`, which no thread does; so a cache that is forgotten can be
collected, and its engine is closed then.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from jobinfo_cache.cleanup import Cleanup
from jobinfo_cache.clock import Clock
from jobinfo_cache.connections import Connections, abort_requests, own
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.entry import ClusterState, Entry
from jobinfo_cache.job import JobInfo
from jobinfo_cache.lanes import Lanes
from jobinfo_cache.model import Cluster, JobChange
from jobinfo_cache.notifier import Notifier
from jobinfo_cache.outcomes import Outcomes
from jobinfo_cache.poller import Poller
from jobinfo_cache.pool import WorkerPool
from jobinfo_cache.reader import Reader
from jobinfo_cache.settings import Settings
from jobinfo_cache.store import Store

__all__ = ["Engine"]


class Engine:
    """Store, reader, poller, pool and cleanup of one cache. Safe from any thread."""

    def __init__(
        self, settings: Settings, clock: Clock, on_change: Callable[[JobChange], object] | None
    ) -> None:
        self.clock = clock
        self.store = Store(settings, clock)
        self.outcomes = Outcomes(self.store, clock, settings)
        self.notifier = Notifier(self.store, on_change)
        self.connections = Connections()
        self.cleanup = Cleanup(self.store, clock, self.connections, settings.sweep_interval)
        self.lanes = Lanes(settings.workers, self._resume)
        self.poller = Poller(
            self.store,
            self.outcomes,
            clock,
            notifier=self.notifier,
            lanes=self.lanes,
            connections=self.connections,
            batching=settings.batching,
        )
        self.pool = WorkerPool(
            self.poller.poll_cluster,
            workers=settings.workers,
            clock=clock,
            on_close=self._release,
        )
        self.reader = Reader(self.store, self.pool, clock, settings, self.start)

    def start(self) -> None:
        """Start the threads, if they do not run and the cache is not closed."""
        self.pool.start()
        self.cleanup.start()

    def forget(self, state: ClusterState, job_id: str | None, *, aliases: bool = False) -> None:
        """Remove the entry of that id; None: all of the cluster; `aliases`: the job's other id's.

        A reply that is under way is dropped when it comes.
        """
        if job_id is not None:
            self.store.written(state, job_id)
        self.store.stop_waiting(state, job_id)
        for entry in _entries_of(state, job_id, aliases=aliases):
            if self.store.forget(entry):
                state.tell_waiters(entry.job_id)
        self._visit(state)  # it may have a connection to close

    def supersede(self, state: ClusterState, job_id: str) -> None:
        """Ask about a live job anew, at once, and take what is known for stale."""
        self.store.written(state, job_id)
        for entry in _entries_of(state, job_id, aliases=True):
            self.store.supersede(entry)
        self._visit(state)

    def reached(self, state: ClusterState) -> None:
        """The dashboard has answered a direct request, which ends its backoff."""
        if state.failures and self.outcomes.reached(state):
            self._visit(state)

    def replace_dashboard(self, state: ClusterState, dashboard: DashboardClient) -> None:
        """Have all later requests about the cluster use another client."""
        self.connections.close(state.cluster)  # a request under way is not cut off
        self.outcomes.replace_dashboard(state, own(dashboard))
        self._visit(state)

    def close(self, timeout: float) -> bool:
        """`JobInfoCache.close`. A signal handler may call it: it takes no lock."""
        deadline = time.monotonic() + timeout
        self.store.is_closed = True
        for state in self.store.clusters():
            state.entries.clear()  # so that hits, which look there only, see that it is closed
        if not self.pool.is_started:
            self._release()  # which the pool calls otherwise
        ended = self.pool.close(timeout)
        return self.cleanup.join(max(deadline - time.monotonic(), 0.0)) and ended

    def _resume(self, cluster: Cluster) -> None:
        self.pool.add(cluster)

    def _visit(self, state: ClusterState) -> None:
        """Have a worker look after the cluster soon."""
        if self.pool.is_running:
            self.pool.add(state.cluster)

    def _release(self) -> None:
        """Let everything end that the closing pool does not know of (dispatcher's thread)."""
        self.cleanup.shutdown.set()
        self.store.close()
        self.connections.close_all_but(())
        for state in self.store.clusters():
            for dashboard in state.dashboards():
                abort_requests(dashboard)
            for job_id in list(state.waiters):
                state.tell_waiters(job_id)


def _entries_of(state: ClusterState, job_id: str | None, *, aliases: bool) -> list[Entry]:
    """The entries of a job, which Ray may know by two ids, or all of the cluster for None."""
    entries = list(state.entries.values())
    if job_id is None:
        return entries
    if not aliases:
        return [entry for entry in entries if entry.job_id == job_id]
    return [entry for entry in entries if job_id in (entry.job_id, *_ids(entry.record.info))]


def _ids(info: JobInfo | None) -> tuple[str | None, ...]:
    return () if info is None else (info.submission_id, info.job_id)
