"""The entries of all jobs: bounded, in the order of their reads, changed under one lock.

Under the lock there is memory only: no I/O, no logging, no callback, no other lock.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from typing import Literal

from jobinfo_cache.clock import Clock
from jobinfo_cache.entry import NOTHING, ClusterState, Entry, Record
from jobinfo_cache.errors import CacheClosed
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.model import Cluster
from jobinfo_cache.read_order import ReadOrder, may_go
from jobinfo_cache.settings import Settings
from jobinfo_cache.try_lock import TryLock
from jobinfo_cache.waiting_list import WaitingList

__all__ = ["Store"]

Cause = Literal["evicted", "expired", "forgotten"]

_SLICE = 100  # entries that one hold of the lock expires
_MOST_TURNS = 16  # jobs that wait, to be looked at in one read, so that no read takes long
_MOST_WAITING = 20_000  # a guess: with as many places, more than one process can poll
_PATIENCE = 10  # poll intervals; a guess: who was told to come back in one is gone after so many


class Store:
    """All entries of a cache, and the clusters that they belong to.

    Safe from any thread; nothing here blocks but on the lock, which is held for microseconds.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._patience = min(_PATIENCE * settings.poll_interval, settings.expiry)
        self.is_closed = False
        self.counts: Counter[str] = Counter()  # changed under the lock
        self._clusters: weakref.WeakValueDictionary[Cluster, ClusterState]
        self._clusters = weakref.WeakValueDictionary()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Set the state of a store without entries; a fork's child begins so."""
        # The lock guards the order and all that entries and clusters hold.
        self.lock = TryLock()
        self._order = ReadOrder(self._settings.cache_size)
        self._waiting = WaitingList(_MOST_WAITING)
        self._exceeded_at = -math.inf
        self._exceeded_untold = False
        states = self.clusters()
        self._clusters = weakref.WeakValueDictionary({state.cluster: state for state in states})
        for state in states:
            state.start_over()

    # Clusters

    def clusters(self) -> list[ClusterState]:
        """All clusters of which a client or an entry exists."""
        return [state for ref in self._clusters.valuerefs() if (state := ref()) is not None]

    def cluster(self, cluster: Cluster) -> ClusterState | None:
        """The state of a cluster, or None if nobody knows it any more."""
        return self._clusters.get(cluster)

    def join_cluster(self, new: ClusterState) -> ClusterState:
        """The state kept for a cluster: the one there was, or else `new`."""
        with self.lock:
            return self._clusters.setdefault(new.cluster, new)

    # Reads

    def add(self, state: ClusterState, job_id: str) -> set[Cluster]:
        """Make a placeholder for the job; returns the clusters that are to be visited.

        If there is no room, or others wait for it, the job has to wait for its turn: some later
        read, of whatever job, gives it its place. Raises `CacheClosed`.
        """
        now = self._clock.monotonic()
        with self.lock:
            if self.is_closed:
                raise CacheClosed("the cache is closed")
            if job_id in state.entries:
                return set()
            self._waiting.join((state.cluster, job_id), now)
            if not self._order.free and (victim := self._order.victim(now - self._patience)):
                self._evict(victim, now)
            visit = self._place_waiting(now)
            if self._order.free and job_id not in state.entries:
                self._waiting.leave((state.cluster, job_id))
                self._place(state, job_id, now)
            if job_id in state.entries or self._exceed(now):
                visit.add(state.cluster)
            return visit

    def tell_failure(self, entry: Entry, record: Record) -> bool:
        """True for one caller per failure: the one that is to raise it."""
        with self.lock:
            if entry.told is record:
                return False
            entry.told = record
            return True

    def bring_forward(self, entry: Entry, oldest: float) -> float | None:
        """Have a poll sent at `oldest` or later; returns in how many seconds it is due.

        None: one that will do is already on its way or due. Never shortens a backoff.
        """
        now = self._clock.monotonic()
        with self.lock:
            if self.is_closed or (entry.in_flight and entry.asked_at >= oldest):
                return None
            instant = max(oldest, now)
            if entry.in_flight:
                entry.wanted_at = max(entry.wanted_at, instant)
                return None
            due = max(instant, entry.not_before)
            if due >= entry.due_at:
                return None
            entry.due_at = entry.joins_at = due
            return max(due, entry.state.not_before) - now

    def _place_waiting(self, now: float) -> set[Cluster]:
        """Give free places to the jobs that have waited longest (lock held)."""
        visit = set()
        for _ in range(min(len(self._waiting), _MOST_TURNS)):
            if self._order.free == 0:
                break
            (cluster, job_id), read_at = self._waiting.pop()
            state = self._clusters.get(cluster)
            if state is None or read_at <= now - self._patience:
                continue  # nobody has a client of the cluster any more, or reads the job
            self._place(state, job_id, now).read_at = read_at
            visit.add(cluster)
        return visit

    def _place(self, state: ClusterState, job_id: str, now: float) -> Entry:
        """Store a new entry (lock held; there is room).

        While there are too many jobs it waits for its cluster's next round, or until an interval
        after the last one, so that coming and going costs no request.
        """
        entry = Entry(state, job_id, now)
        if self._is_exceeded(now):
            next_round = min(state.next_due, state.asked_at + self._settings.poll_interval)
            entry.due_at = max(now, next_round)
        # In this order: an entry that an interrupt leaves out of `entries` expires.
        self._order.put(entry)
        state.entries[job_id] = entry
        return entry

    # Polls

    def give_way(self, due: list[Entry]) -> list[Entry]:
        """Evict, of jobs that are due, as many as others wait for a place; returns the rest.

        A read can only evict what was handed out and not polled since, and there may be no such
        entry whenever a certain job is read: before a poll, each entry that is read at all is one.
        """
        if not self._waiting:
            return due
        return [entry for entry in due if not self._gives_way(entry)]  # there may be thousands

    def _gives_way(self, entry: Entry) -> bool:
        now = self._clock.monotonic()
        with self.lock:
            if len(self._waiting) <= self._order.free or not may_go(entry, now - self._patience):
                return False
            self._evict(entry, now)
            return True

    # Removals

    def written(self, state: ClusterState, job_id: str) -> None:
        """Note that a job was stopped, deleted, … by that id: a reply under way is outdated.

        Ray knows a submission with a driver by two ids, and which ones a reply has is not known
        before it comes.
        """
        with self.lock:
            if state.is_asking:
                state.written.add(job_id)

    def forget(self, entry: Entry) -> bool:
        """Remove the entry, if it is there; a reply to a request sent before finds it gone."""
        with self.lock:
            return self._remove(entry, "forgotten")

    def stop_waiting(self, state: ClusterState, job_id: str | None) -> None:
        """Have the job not wait for a place any more; None: no job of the cluster."""
        with self.lock:
            if job_id is None:
                self._waiting.leave_all(state.cluster)
            else:
                self._waiting.leave((state.cluster, job_id))

    def supersede(self, entry: Entry) -> bool:
        """Replace the entry of a live job by a new one that asks at once and keeps the info.

        False if the job has ended or the entry is gone.
        """
        now = self._clock.monotonic()
        with self.lock:
            if self.is_closed or not entry.is_current or not entry.is_live:
                return False
            new = Entry(entry.state, entry.job_id, now)
            new.record = NOTHING if entry.is_placeholder else entry.record.supersede()
            new.told = new.record  # a failure from before is not told any more
            new.read_again = entry.read_again
            new.read_at = entry.read_at
            entry.state.entries[entry.job_id] = new
            self._order.put(new)
            return True

    def expire(self) -> list[Entry]:
        """Remove what nobody has read for `expiry`, some at a time; returns what was removed."""
        now = self._clock.monotonic()
        deadline = now - self._settings.expiry
        with self.lock:
            self._waiting.drop_unread(now - self._patience)
            entries = self._order.entries()
        expired = [entry for entry in entries if _is_unread_since(entry, deadline)]
        removed = []
        for start in range(0, len(expired), _SLICE):
            with self.lock:
                for entry in expired[start : start + _SLICE]:
                    if _is_unread_since(entry, deadline) and self._remove(entry, "expired"):
                        removed.append(entry)
        return removed

    def close(self) -> None:
        """Drop all entries, for good; nothing is stored any more."""
        self.is_closed = True
        with self.lock:
            self._order.clear()
            self._waiting.clear()
            for state in self.clusters():
                state.entries.clear()

    def _evict(self, entry: Entry, now: float) -> None:
        if entry.is_live:
            self._exceed(now)
        self._remove(entry, "evicted")

    def _remove(self, entry: Entry, cause: Cause) -> bool:
        """Take the entry out (lock held); False if it was gone."""
        self._order.discard(entry)
        if not entry.is_current:
            return False
        entry.state.entries.pop(entry.job_id, None)
        self.counts[cause] += 1
        return True

    # Figures, and capacity

    def count(self, name: str) -> None:
        """Raise a counter by one."""
        with self.lock:
            self.counts[name] += 1

    def capacity_exceeded(self) -> bool:
        """True while a live entry was evicted or a job refused within the last `expiry`."""
        return self._is_exceeded(self._clock.monotonic())

    def take_excess_news(self) -> bool:
        """True once each time that the capacity begins to be exceeded."""
        if not self._exceeded_untold:
            return False
        with self.lock:
            news, self._exceeded_untold = self._exceeded_untold, False
            return news

    def entries(self) -> list[Entry]:
        """All entries, for statistics."""
        with self.lock:
            return self._order.entries()

    def _exceed(self, now: float) -> bool:
        """Note that there are too many jobs (lock held); True if a worker has to say so."""
        self._exceeded_untold = self._exceeded_untold or not self._is_exceeded(now)
        self._exceeded_at = now
        return self._exceeded_untold

    def _is_exceeded(self, now: float) -> bool:
        return now - self._exceeded_at < self._settings.expiry


def _is_unread_since(entry: Entry, deadline: float) -> bool:
    return max(entry.read_at, entry.terminal_at) <= deadline
