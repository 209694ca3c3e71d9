"""The dashboard clients of a cache, and the bound on the connections that they keep open."""

from __future__ import annotations

import threading
from collections.abc import Collection

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.entry import ClusterState
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.listing import Listing
from jobinfo_cache.model import Cluster

__all__ = ["Connections", "abort_requests", "own", "with_timeout"]

log = get_logger(__name__)

#: Kept connections, one a dashboard; a guess at what a process can spare: half of the usual
#: limit of 1,024 open files.
MOST_KEPT = 512

_LIST_JOBS = DashboardClient.list_jobs


class Connections:
    """The dashboards that may keep a connection open: those used most recently.

    Safe from any thread. A client whose connection was closed opens another when it is used.
    """

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Set the state without connections; a fork's child begins so."""
        self._lock = threading.RLock()  # a signal handler that closes may come in here
        # Guarded by _lock; least recently used first:
        self._used: dict[Cluster, DashboardClient] = {}

    def used(self, state: ClusterState) -> None:
        """The cluster's dashboard is asked, and may keep a connection."""
        surplus = None
        with self._lock:
            self._used.pop(state.cluster, None)
            self._used[state.cluster] = state.dashboard
            if len(self._used) > self._most_kept:
                surplus = self._used.pop(next(iter(self._used)))
        if surplus is not None:
            _close(surplus)

    def close(self, cluster: Cluster) -> None:
        """Close what is kept open for the cluster."""
        with self._lock:
            dashboard = self._used.pop(cluster, None)
        if dashboard is not None:
            _close(dashboard)

    def close_all_but(self, needed: Collection[Cluster]) -> None:
        """Close what is kept open for other clusters than those."""
        for cluster in list(self._used):
            if cluster not in needed:
                self.close(cluster)


def own(dashboard: DashboardClient) -> DashboardClient:
    """The client for one cache, whose end cuts off no request of anybody else.

    One of a subclass is used as it is: what its owner changes in it later shall have an effect.
    """
    return dashboard.separate() if type(dashboard) is DashboardClient else dashboard


def with_timeout(dashboard: DashboardClient, timeout: float) -> DashboardClient:
    """The client with a sooner deadline, if it has deadlines."""
    # A user's own fake may lack it, and a mock says of itself that it has everything.
    has_it = hasattr(type(dashboard), "with_timeout")
    return dashboard.with_timeout(timeout) if has_it else dashboard


def listing(dashboard: DashboardClient) -> Listing:
    """Ask for the list of all jobs, by whatever `list_jobs` the client has."""
    if getattr(dashboard.list_jobs, "__func__", None) is _LIST_JOBS:
        return dashboard._listing()  # noqa: SLF001 - the library's own
    jobs = dashboard.list_jobs()
    return Listing(None, lambda: jobs)


def abort_requests(dashboard: DashboardClient) -> None:
    """Cut off the requests that are under way, and all later ones."""
    _call(dashboard, "abort")


def _close(dashboard: DashboardClient) -> None:
    _call(dashboard, "close")


def _call(dashboard: DashboardClient, name: str) -> None:
    method = getattr(dashboard, name, None)  # a user's own fake may lack it, or do anything
    try:
        if method is not None:
            method()
    except Exception as fault:
        log.warning(f"{name} of a dashboard client raised", exc_info=fault)
