"""What polls do to the entries: which are due, what is sent, and what comes back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from jobinfo_cache.clock import Clock
from jobinfo_cache.entry import ClusterState, Entry, Record
from jobinfo_cache.errors import DashboardError
from jobinfo_cache.job import JobInfo
from jobinfo_cache.model import JobChange
from jobinfo_cache.schedule import Schedule
from jobinfo_cache.settings import Settings
from jobinfo_cache.store import Store

if TYPE_CHECKING:
    from jobinfo_cache.dashboard import DashboardClient

__all__ = ["Outcomes"]


class Outcomes:
    """Changes a store's entries for the poller, under the store's lock. Safe from any thread."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._schedule = Schedule(settings)
        self._max_age = math.inf if settings.max_age is None else settings.max_age

    def due(self, state: ClusterState) -> list[Entry]:
        """The jobs of the cluster to ask about now, longest due first.

        If other jobs wait for a place, some that are due give way to them.
        """
        with self._store.lock:
            due = self._schedule.due(state, self._clock.monotonic())
        return self._store.give_way(due)

    def next_delay(self, state: ClusterState) -> float | None:
        """Seconds until the cluster's next round; None when it has no live job."""
        with self._store.lock:
            return self._schedule.next_delay(state, self._clock.monotonic())

    def begin(self, entries: Sequence[Entry]) -> list[Entry]:
        """Note that a request about these jobs of one cluster is sent now.

        Returns those that are still there to be asked about; none once closed. `end` it when all
        that it brought is stored.
        """
        now = self._clock.monotonic()
        asked: list[Entry] = []
        for entry in entries:  # one by one: there may be thousands
            with self._store.lock:
                if self._store.is_closed or not entry.is_current:
                    continue
                if not asked:
                    self._begin(entry.state, now)
                entry.in_flight = True
                entry.asked_at = now
                asked.append(entry)
        return asked

    def _begin(self, state: ClusterState, now: float) -> None:
        state.is_asking = True
        state.written.clear()
        # One object for all the jobs that the request is about: memory that reads find at hand.
        state.asked_at = now
        state.fresh_until = now + self._max_age

    def arrived(self, state: ClusterState) -> bool:
        """Note that the newest request was answered; True if that ends the backoff."""
        with self._store.lock:
            now = self._clock.monotonic()
            self._schedule.measured(state, now - state.asked_at)
            return self._schedule.contact(state, now)

    def end(self, state: ClusterState) -> None:
        """Note that all is stored that the cluster's newest request has brought."""
        with self._store.lock:
            state.is_asking = False

    def missed(self, entry: Entry) -> None:
        """Note that a list lacked the job: a hint, to be confirmed by a request of its own."""
        with self._store.lock:
            entry.in_flight = False
            entry.is_missing = True

    def drop(self, entries: Sequence[Entry]) -> None:
        """Drop what a request to an address that is out of date has brought; all stay due."""
        with self._store.lock:
            entries[0].state.is_asking = False
            for entry in entries:
                entry.in_flight = False
                self._count("stale_replies_dropped")

    def cut_short(self, entry: Entry) -> None:
        """Note that a first request was ended early: no outcome, it is sent again."""
        with self._store.lock:
            entry.in_flight = False
            entry.state.is_asking = False
            entry.state.cut_short = True

    def answer(
        self, entry: Entry, info: JobInfo, sent: datetime, listed: bytes | None = None
    ) -> JobChange | None:
        """Store the reply to the request that was begun; returns the change that it makes.

        `sent` is when that was, for people; `listed` is the digest of the list that it came in.
        """
        with self._store.lock:
            self._count("polls_ok")
            info = info.stamped(sent, entry.record.info)
            record = entry.record.after_answer(info, entry.asked_at, listed)
            fresh_until = math.inf if record.is_terminal else entry.state.fresh_until
            return self._finish(entry, record, fresh_until)

    def fail(self, entry: Entry, error: DashboardError) -> JobChange | None:
        """Store the failure of the request that was begun, if it is about this job only."""
        with self._store.lock:
            self._count(f"polls_failed_{error.kind}")
            return self._finish(entry, entry.record.after_failure(error, entry.asked_at))

    def outage(
        self, asked: Entry, due: Sequence[Entry], error: DashboardError
    ) -> list[JobChange | None]:
        """Store a failure of the dashboard itself, for all jobs that were `due`.

        The dashboard's backoff begins, and the jobs stay due. Returns a change, or None, each.
        """
        with self._store.lock:
            self._count(f"polls_failed_{error.kind}")
            self._schedule.back_off(asked.state, error, self._clock.monotonic())
        changes = []
        for entry in due:  # one by one: there may be thousands
            with self._store.lock:
                record = entry.record.after_failure(error, asked.asked_at)
                changes.append(self._finish(entry, record))
        return changes

    def reached(self, state: ClusterState) -> bool:
        """Note that the dashboard has answered a direct request; True if that ends its backoff."""
        with self._store.lock:
            return self._schedule.contact(state, self._clock.monotonic())

    def _finish(
        self, entry: Entry, record: Record, fresh_until: float = -math.inf
    ) -> JobChange | None:
        """Replace the record of an entry that is still there (lock held).

        One that is outdated is dropped, and leaves the job due.
        """
        state = entry.state
        was_in_flight, entry.in_flight = entry.in_flight, False
        entry.is_missing = False
        if self._store.is_closed:
            return None
        if not entry.is_current or _is_outdated(record, state.written):
            self._store.counts["stale_replies_dropped"] += was_in_flight
            return None
        change = entry.record.change_to(record, entry)
        entry.hold(record, fresh_until)
        self._schedule.after_poll(entry, self._clock.monotonic())
        return change

    def replace_dashboard(self, state: ClusterState, dashboard: DashboardClient) -> None:
        """Have later polls of the cluster use another client."""
        with self._store.lock:
            moved = state.dashboard.url != dashboard.url
            state.replace_dashboard(dashboard)
            self._schedule.replaced(state, moved=moved)

    def _count(self, name: str) -> None:
        """Raise a counter of outcomes (lock held); what comes after `close` is discarded."""
        if not self._store.is_closed:
            self._store.counts[name] += 1


def _is_outdated(record: Record, written: set[str]) -> bool:
    """True if one of the ids that the reply gives the job was stopped, deleted, … meanwhile."""
    info = record.info
    if not written or record.error is not None or info is None:
        return False
    return info.submission_id in written or info.job_id in written
