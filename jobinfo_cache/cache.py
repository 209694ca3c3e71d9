"""The cache of one process: what a program makes, shares and closes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType

from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.clock import Clock, SystemClock
from jobinfo_cache.connections import own
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.engine import Engine
from jobinfo_cache.entry import ClusterState
from jobinfo_cache.job import check_job_id
from jobinfo_cache.model import Cluster, JobChange, Stats
from jobinfo_cache.settings import Settings

__all__ = ["JobInfoCache"]

_FAILURE_KINDS = ("not_found", "unavailable", "auth", "bad_response", "internal")


class JobInfoCache:
    """Follows jobs in the background, so that reading their status never waits.

    `on_change` is called from a worker thread with a `JobChange` when a job's status changes,
    when it starts to fail, and when it recovers: in order and one at a time for each job, never
    with a lock held. A slow callback delays its own cluster only; one that raises is logged and
    counted. It may call any method of the cache but a client's `wait`. `clock` is for tests.

    Threads start at the first read: at most `settings.workers` + 3. Only `close` waits. A context
    manager, which closes; safe from any thread. In the child of a fork the cache is empty and
    starts anew at its first read.

    .. versionadded:: 0.1.0
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        on_change: Callable[[JobChange], object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._engine = Engine(self.settings, clock or SystemClock(), on_change)
        # Threads hold the engine but never the cache: one that is forgotten ends them.
        weakref.finalize(self, self._engine.close, 0.0).atexit = False

    def client(self, dashboard: DashboardClient | str, cluster: Cluster) -> CachedDashboardClient:
        """A light view of one cluster; cheap to call in every reconcile. Never blocks.

        `dashboard` is a `DashboardClient`, or the URL to make one for with
        `settings.request_timeout`. For a cluster that is known already, an equal dashboard client
        changes nothing, and a different one serves all later requests about the cluster. The
        cache asks through one of its own that is equal to it; one of a subclass it uses as it is,
        and ends it with the cache.
        Raises `TypeError` if `cluster` is no `Cluster`, and `ValueError` for an impossible URL.

        .. versionadded:: 0.1.0
        """
        if not isinstance(cluster, Cluster):
            raise TypeError(f"cluster is {cluster!r}; it must be a Cluster(namespace, name, uid)")
        if isinstance(dashboard, str):
            dashboard = DashboardClient(dashboard, timeout=self.settings.request_timeout)
        state = self._engine.store.cluster(cluster)
        if state is None:
            state = self._engine.store.join_cluster(ClusterState(cluster, own(dashboard)))
        if state.dashboard != dashboard:
            self._engine.replace_dashboard(state, dashboard)
        return CachedDashboardClient(self, self._engine, state)

    def forget(self, namespace: str, name: str, job_id: str | None = None) -> None:
        """Drop the entries of a cluster, or of one job of it, whatever the cluster's uid.

        Never blocks. Usable when the cluster object is gone; does nothing once closed. Raises
        `InvalidJobId`.

        .. versionadded:: 0.1.0
        """
        if job_id is not None:
            job_id = check_job_id(job_id)
        for state in self._engine.store.clusters():
            if state.cluster[:2] == (namespace, name):
                self._engine.forget(state, job_id)

    def stats(self) -> Stats:
        """A snapshot of the counters and gauges; of a closed cache too.

        Never blocks; takes a few milliseconds with 10,000 entries.

        .. versionadded:: 0.1.0
        """
        engine = self._engine
        counts = dict(engine.store.counts)
        records = [entry.record for entry in engine.store.entries()]
        live = [record for record in records if not record.is_terminal]
        asked = [record.info_at for record in live if record.info is not None]
        pool = engine.pool.stats()
        reader = engine.reader
        return Stats(
            entries=len(records),
            live=len(live),
            placeholders=sum(record.info is None and record.error is None for record in live),
            workers=pool.workers,
            workers_busy=pool.busy,
            queued=pool.queued + engine.lanes.parked,
            delayed=pool.delayed,
            reads_hit=reader.hits.value(),
            reads_pending=reader.pending.value(),
            reads_stale=reader.stale.value(),
            reads_failed=reader.failed.value(),
            polls_ok=counts.get("polls_ok", 0),
            polls_failed={kind: counts.get(f"polls_failed_{kind}", 0) for kind in _FAILURE_KINDS},
            requests_single=counts.get("requests_single", 0),
            requests_list=counts.get("requests_list", 0),
            evicted=counts.get("evicted", 0),
            expired=counts.get("expired", 0),
            forgotten=counts.get("forgotten", 0),
            stale_replies_dropped=counts.get("stale_replies_dropped", 0),
            callbacks_failed=counts.get("callbacks_failed", 0),
            oldest_age=engine.clock.monotonic() - min(asked) if asked else None,
            capacity_exceeded=engine.store.capacity_exceeded(),
        )

    def close(self, timeout: float | None = None) -> bool:
        """Refuse new reads, end all polling and all threads; True if they ended in time.

        Waits for at most `timeout` seconds (None: `settings.close_timeout`; 0: not at all).
        Requests under way are cut off and their outcomes discarded. Idempotent; safe from any
        thread, from `on_change` (it does not wait for the thread it runs in), and from a signal
        handler (there it may return False because the interrupted call holds something up).
        Raises `ValueError` for a negative timeout.

        .. versionadded:: 0.1.0
        """
        timeout = self.settings.close_timeout if timeout is None else timeout
        if not timeout >= 0:
            raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds from 0")
        return self._engine.close(timeout)

    def __enter__(self) -> JobInfoCache:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
