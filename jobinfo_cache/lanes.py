"""Bounds on how many workers the dashboards in doubt may hold at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jobinfo_cache.entry import ClusterState
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.model import Cluster

__all__ = ["Lane", "Lanes"]

#: Seconds; a dashboard whose requests take longer, on average, counts as being in trouble.
SLOW = 0.5


class Lane:
    """At most `limit` clusters at a time; the others park, and are resumed one by one.

    Safe from any thread; nothing blocks.
    """

    def __init__(self, limit: int, resume: Callable[[Cluster], None]) -> None:
        self._limit = limit
        self._resume = resume
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Set the state of an empty lane; a fork's child begins so."""
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._inside: set[Cluster] = set()  # those resumed, and not yet come, included
        self._parked: dict[Cluster, None] = {}  # in the order of their coming

    @property
    def parked(self) -> int:
        """How many clusters wait for a place."""
        return len(self._parked)

    def enter(self, cluster: Cluster) -> bool:
        """Take a place, to be given back by `leave`; False if the cluster parks instead."""
        with self._lock:
            if cluster in self._inside:
                return True
            if len(self._inside) >= self._limit:
                self._parked[cluster] = None
                return False
            self._parked.pop(cluster, None)
            self._inside.add(cluster)
            return True

    def leave(self, cluster: Cluster) -> None:
        """Give back the cluster's place, if it has one, and resume one that is parked."""
        if cluster not in self._inside and cluster not in self._parked:
            return  # the common case, without the lock
        resumed = None
        with self._lock:
            self._parked.pop(cluster, None)
            self._inside.discard(cluster)
            if self._parked and len(self._inside) < self._limit:
                resumed = next(iter(self._parked))
                del self._parked[resumed]
                self._inside.add(resumed)
        if resumed is not None:
            self._resume(resumed)


class Lanes:
    """Two lanes, of half the workers each: one for trouble, one for first contacts.

    So a thousand dead dashboards leave workers for one that is well, and those that fail again
    and again do not keep new ones from their first try.
    """

    def __init__(self, workers: int, resume: Callable[[Cluster], None]) -> None:
        half = max(1, workers // 2)
        self._trouble = Lane(half, resume)
        self._first_contact = Lane(half, resume)

    @property
    def parked(self) -> int:
        """How many clusters wait for a place in their lane."""
        return self._trouble.parked + self._first_contact.parked

    def enter(self, state: ClusterState) -> bool:
        """Take a place in the lane that the cluster needs; False if it parks there instead.

        Its worker then leaves it: it is resumed when there is a place.
        """
        lane = self._lane(state)
        for other in (self._trouble, self._first_contact):
            if other is not lane:
                other.leave(state.cluster)
        return lane is None or lane.enter(state.cluster)

    def leave(self, cluster: Cluster) -> None:
        """Give back the place that the cluster has, if any."""
        self._trouble.leave(cluster)
        self._first_contact.leave(cluster)

    def _lane(self, state: ClusterState) -> Lane | None:
        if state.failures or state.cut_short or state.latency > SLOW:
            return self._trouble
        return None if state.was_reached else self._first_contact
