"""What a read returns: the rules of freshness, and when to ask again."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from jobinfo_cache.clock import Clock
from jobinfo_cache.entry import NOTHING, ClusterState, Entry, Record
from jobinfo_cache.errors import CacheClosed, TryAgain
from jobinfo_cache.instrumentation import Counter
from jobinfo_cache.job import JobInfo, check_job_id
from jobinfo_cache.model import JobSnapshot
from jobinfo_cache.pool import WorkerPool
from jobinfo_cache.settings import Settings
from jobinfo_cache.store import Store

__all__ = ["Reader"]

_SOONEST = 0.05  # seconds; asking again sooner makes no sense while a request is under way
_ROUNDING = 2e-6  # seconds; a datetime is as coarse as that
_SLOT = 0.01  # seconds; the pool rounds due times up to this


class Reader:
    """Reads of a cache's store. Safe from any thread; never waits, and never does I/O.

    `start` starts the cache's threads if they do not run.
    """

    def __init__(
        self,
        store: Store,
        pool: WorkerPool,
        clock: Clock,
        settings: Settings,
        start: Callable[[], None],
    ) -> None:
        self._store = store
        self._pool = pool
        self._clock = clock
        self._settings = settings
        self.start = start
        self.hits = Counter()
        self.pending = Counter()
        self.stale = Counter()
        self.failed = Counter()

    def get(
        self,
        state: ClusterState,
        job_id: str,
        max_age: float | None,
        newer_than: datetime | None,
    ) -> JobInfo:
        """`CachedDashboardClient.get_job_info`, but for the hits that need no rule."""
        oldest = max(self._default_oldest(max_age), self._demanded(max_age, newer_than))
        entry = self._entry(state, job_id)
        if entry is None:
            raise self._no_room(state, job_id)
        record = entry.record
        if record.error is not None:
            return self._failed(entry, record, oldest)
        if record is NOTHING:
            raise self._try_again(entry, "pending")
        if not _is_fresh(record, oldest):
            self._ask(entry, oldest)
            raise self._try_again(entry, "stale")
        assert record.info is not None
        self.hits.increment()
        entry.read_outcome = record.outcome
        return record.info

    def lookup(
        self,
        state: ClusterState,
        job_id: str,
        max_age: float | None,
        newer_than: datetime | None,
    ) -> JobSnapshot:
        """`CachedDashboardClient.lookup`."""
        demanded = self._demanded(max_age, newer_than)
        oldest = max(self._default_oldest(max_age), demanded)
        entry = self._entry(state, job_id)
        if entry is None:
            self.pending.increment()
            return _empty_snapshot(state, job_id, self._settings.poll_interval)
        record = entry.record
        if record is NOTHING:
            self.pending.increment()
            return self._snapshot(entry, record, oldest, demanded)
        if not _is_fresh(record, oldest) and record.error_at < oldest:
            self.stale.increment()
            self._ask(entry, oldest)
        else:
            self.hits.increment()
        entry.read_outcome = record.outcome
        return self._snapshot(entry, record, oldest, demanded)

    def peek(self, state: ClusterState, job_id: str) -> JobSnapshot | None:
        """`CachedDashboardClient.peek`."""
        job_id = check_job_id(job_id)
        if self._store.is_closed:
            raise CacheClosed("the cache is closed")
        entry = state.entries.get(job_id)
        if entry is None:
            return None
        return self._snapshot(entry, entry.record, self._default_oldest(None), -math.inf)

    def _entry(self, state: ClusterState, job_id: str) -> Entry | None:
        """The job's entry, stamped as read; a placeholder if it is new, None without room."""
        job_id = check_job_id(job_id)
        if self._store.is_closed:
            raise CacheClosed("the cache is closed")
        entry = state.entries.get(job_id)
        if entry is None:
            return self._new_entry(state, job_id)
        entry.read_at = self._clock.monotonic()
        entry.read_again = True
        if entry.is_placeholder:
            self._assert_poll(entry)
        return entry

    def _new_entry(self, state: ClusterState, job_id: str) -> Entry | None:
        self.start()
        for cluster in self._store.add(state, job_id):
            self._pool.add(cluster)
        return state.entries.get(job_id)

    def _failed(self, entry: Entry, record: Record, oldest: float) -> JobInfo:
        """The newest outcome is a failure: raise it, to one reader, unless it is too old."""
        if record.error_at < oldest:
            self._ask(entry, oldest)
            raise self._try_again(entry, "pending" if entry.told is record else "stale")
        if not self._store.tell_failure(entry, record):
            raise self._try_again(entry, "pending")
        entry.read_outcome = record.outcome
        self.failed.increment()
        assert record.error is not None
        raise record.error.fresh(record.info)

    def _ask(self, entry: Entry, oldest: float) -> None:
        """Have a poll sent at `oldest` or later; it costs nothing if one is on its way."""
        delay = self._store.bring_forward(entry, oldest)
        if delay is not None and delay > 0:
            self._pool.add_after(entry.state.cluster, delay)
        elif delay is not None:
            self._pool.add(entry.state.cluster)

    def _assert_poll(self, entry: Entry) -> None:
        """Say again that a placeholder is due, in case that the read before was interrupted."""
        is_due = max(entry.due_at, entry.state.not_before) <= self._clock.monotonic()
        if is_due and not entry.in_flight:
            self._pool.add(entry.state.cluster)

    def _try_again(self, entry: Entry, reason: Literal["pending", "stale"]) -> TryAgain:
        (self.pending if reason == "pending" else self.stale).increment()
        delay = self._retry_after(entry)
        what = "no new answer yet" if reason == "pending" else "the answer is too old"
        return TryAgain(
            f"job {entry.job_id!r} of cluster {entry.state.cluster}: {what};"
            f" try again in {delay:.2f} s",
            reason=reason,
            retry_after=delay,
            last_info=entry.record.info,
        )

    def _no_room(self, state: ClusterState, job_id: str) -> TryAgain:
        self.pending.increment()
        delay = self._settings.poll_interval
        return TryAgain(
            f"job {job_id!r} of cluster {state.cluster}: the cache is full;"
            f" try again in {delay:.2f} s",
            reason="pending",
            retry_after=delay,
        )

    def _retry_after(self, entry: Entry) -> float:
        """Seconds until the next answer is expected: when it is due, and the time it takes."""
        now = self._clock.monotonic()
        state = entry.state
        if entry.in_flight:
            sent_at = entry.asked_at
        else:
            sent_at = max(entry.due_at, state.not_before, now) + _SLOT
        return max(sent_at + state.latency - now, _SOONEST)

    def _snapshot(
        self, entry: Entry, record: Record, oldest: float, demanded: float
    ) -> JobSnapshot:
        info, error = record.info, record.error
        shown = record.error_at >= demanded and not record.superseded
        age = None if info is None else max(self._clock.monotonic() - record.info_at, 0.0)
        return JobSnapshot(
            job_id=entry.job_id,
            cluster=entry.state.cluster,
            info=info,
            error=error.fresh(info) if error is not None and shown else None,
            fresh=_is_fresh(record, oldest),
            fetched_at=None if info is None else info.fetched_at,
            age=age,
            failures=record.failures,
            failing_since=record.failing_since,
            retry_after=None if record.is_terminal else self._retry_after(entry),
        )

    def _default_oldest(self, max_age: float | None) -> float:
        """The bound of the settings, on the monotonic clock, where a read names none."""
        if max_age is not None or self._settings.max_age is None:
            return -math.inf
        return self._clock.monotonic() - self._settings.max_age

    def _demanded(self, max_age: float | None, newer_than: datetime | None) -> float:
        """The bound that a read names itself, on the monotonic clock."""
        demanded = -math.inf
        if max_age is not None:
            if not isinstance(max_age, (int, float)) or not max_age >= 0:
                raise ValueError(f"max_age is {max_age!r}; it must be seconds from 0, or None")
            demanded = self._clock.monotonic() - max_age
        if newer_than is not None:
            if not isinstance(newer_than, datetime) or newer_than.utcoffset() is None:
                raise ValueError(f"newer_than is {newer_than!r}; it must be an aware datetime")
            # In this order, as the poller takes them in the other: so an answer counts as newer
            # than its own `fetched_at`.
            instant = self._clock.monotonic()
            since = (self._clock.now() - newer_than).total_seconds()
            demanded = max(demanded, instant - since)
        return demanded


def _is_fresh(record: Record, oldest: float) -> bool:
    if record.info is None or record.error is not None or record.superseded:
        return False
    return record.is_terminal or record.info_at >= oldest - _ROUNDING


def _empty_snapshot(state: ClusterState, job_id: str, retry_after: float) -> JobSnapshot:
    return JobSnapshot(
        job_id=job_id,
        cluster=state.cluster,
        info=None,
        error=None,
        fresh=False,
        fetched_at=None,
        age=None,
        failures=0,
        failing_since=None,
        retry_after=retry_after,
    )
