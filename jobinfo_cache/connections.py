"""Bounds how many dashboards have a connection kept open."""

from __future__ import annotations

import threading
import weakref

from jobinfo_cache.entry import ClusterState
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.model import Cluster

__all__ = ["Connections", "close_connections"]

log = get_logger(__name__)

#: Kept connections, one a dashboard; a guess at what a process can spare: half of the usual
#: limit of 1,024 open files.
MOST_KEPT = 512


class Connections:
    """Which dashboards were used most recently; the connections of the others are closed.

    Safe from any thread.
    """

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Set the state without connections; a fork's child begins so."""
        self._lock = threading.RLock()  # a signal handler that closes may come in here
        # Guarded by _lock; least recently used first:
        self._used: dict[Cluster, weakref.ref[ClusterState]] = {}

    def used(self, state: ClusterState) -> None:
        """The cluster's dashboard was asked, and may keep a connection now."""
        surplus = None
        with self._lock:
            self._used.pop(state.cluster, None)
            self._used[state.cluster] = weakref.ref(state)
            if len(self._used) > self._most_kept:
                surplus = self._used.pop(next(iter(self._used)))()
        if surplus is not None:
            close_connections(surplus)

    def close(self, state: ClusterState) -> None:
        """Close what the cluster's dashboard keeps open."""
        with self._lock:
            self._used.pop(state.cluster, None)
        close_connections(state)


def close_connections(state: ClusterState) -> None:
    """Close what the cluster's dashboard keeps open; its client reconnects when it is used."""
    close = getattr(state.dashboard, "close", None)  # a user's own fake may have none
    try:
        if close is not None:
            close()
    except Exception as fault:
        log.warning("closing a connection raised", cluster=str(state.cluster), exc_info=fault)
