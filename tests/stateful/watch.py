"""What the contract allows readers, callbacks and dashboards to see: the checks of the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

from jobinfo_cache import (
    Cluster,
    DashboardError,
    JobChange,
    JobInfo,
    JobSnapshot,
    Settings,
    TryAgain,
)
from jobinfo_cache.entry import Entry
from jobinfo_cache.testing import FakeClock
from tests.stateful.steps import request_of, requests_in
from tests.stateful.world import Request, World

Key = tuple[Cluster, str]
TOLERANCE = 1e-6  # seconds; of float arithmetic


class Watch:
    """Remembers what was shown and done, and says whether what comes next may be."""

    def __init__(
        self, worlds: Mapping[Cluster, World], clock: FakeClock, settings: Settings
    ) -> None:
        self._worlds = worlds
        self._clock = clock
        self._settings = settings
        self._shown: dict[Key, int] = {}  # the newest version that a reader saw
        self._terminal: dict[Key, int] = {}  # the version that may not change any more
        self._told: dict[Key, int] = {}  # the request whose failure was raised last
        # Outcomes of requests before that number are outdated, except those in the set:
        self._barriers: dict[Key, tuple[int, set[int]]] = {}
        self._strangers: dict[Key, str] = {}  # by which id; see `written`
        self._asked: dict[Key, float] = {}
        # Brought forward, until a request is sent at that instant or later:
        self._may_be_early: dict[Key, float] = {}
        self._may_spread: set[Key] = set()  # one delay is drawn from the whole interval
        self._said: dict[Key, tuple[str | None, str | None]] = {}  # by `on_change`
        self.problems: list[str] = []  # found in threads that survive an AssertionError
        self.is_closed = False

    # What happens

    def removed(self, key: Key) -> None:
        """The entry is gone: what is read next is a new story."""
        for memory in (self._terminal, self._told, self._said, self._asked):
            memory.pop(key, None)

    def written(self, key: Key, entry: Entry | None, by: str) -> None:
        """A forget, stop, delete or submit by the id `by` has returned, and left this entry.

        When that is the job's other id, and no answer has told the cache so, it cannot know that
        what it holds, or a failure (which has no ids), is about the same job.
        """
        number = next(self._worlds[key[0]].numbers)
        info = None if entry is None else entry.record.info
        is_known = by == key[1] or (info is not None and by in (info.submission_id, info.job_id))
        if not is_known and self._is_outdated(key, entry):
            self.may_be_early(key)
            return  # an earlier call, that the cache could tell, has outdated it: it stays so
        self._strangers.pop(key, None)
        if not is_known:
            self._strangers[key] = by
        self._barriers[key] = number, set() if entry is None else requests_in(entry.record)
        if is_known and entry is not None and entry.record.error is not None:
            self._told[key] = request_of(entry.record.error)  # older than the call: not told
        self.may_be_early(key)

    def _is_outdated(self, key: Key, entry: Entry | None) -> bool:
        if entry is None or not requests_in(entry.record) or key in self._strangers:
            return False
        return max(requests_in(entry.record)) < self._barriers.get(key, (0, set()))[0]

    def may_be_early(self, key: Key, wanted: float = -math.inf) -> None:
        """Polls may come before their time, until one is sent at the instant `wanted` or later."""
        self._may_be_early[key] = max(wanted, self._may_be_early.get(key, -math.inf))

    def contacted(self, key: Key) -> None:
        """The job's dashboard was reached for the first time, or again."""
        self._may_spread.add(key)

    def asked(self, key: Key, request: Request) -> None:
        """A single request was sent."""
        since = request.sent - self._asked.get(key, -math.inf)
        least = self._settings.poll_interval * (1 - self._settings.jitter)
        if since < least - TOLERANCE and key not in self._may_be_early:
            assert key in self._may_spread, f"{key} is asked again after {since} s"
            self._may_spread.discard(key)
        self._asked[key] = request.sent
        if request.sent >= self._may_be_early.get(key, math.inf):
            del self._may_be_early[key]

    def changed(self, change: JobChange) -> None:
        """`on_change` was called; called from a worker."""
        try:
            self._check_change(change)
        except AssertionError as problem:
            self.problems.append(f"{problem}: {change}")

    def _check_change(self, change: JobChange) -> None:
        key = change.cluster, change.job_id
        assert not self.is_closed, "on_change after close"
        before = self._said.get(key, (None, None))
        assert change.old is None or change.old.status == before[0], f"old is not {before}"
        self._said[key] = _standing(change.new, change.error)
        assert self._said[key] != before, f"said twice: {before}"

    # What is shown

    def check_snapshot(self, key: Key, shown: JobSnapshot, entry: Entry | None) -> None:
        """What `lookup` and `peek` show is true of a moment after it was asked for."""
        assert (shown.retry_after is None) == self._is_terminal(shown.info)
        assert shown.retry_after is None or 0 < shown.retry_after < math.inf
        assert (shown.failures > 0) == (shown.failing_since is not None)
        assert shown.failures > 0 or shown.error is None
        assert not (shown.fresh and shown.error is not None)
        if shown.info is not None:
            self.check_info(key, shown.info, fresh=shown.fresh)
            assert shown.age is not None
            sent = self._request(key, shown.info).sent
            assert abs(shown.age - (self._clock.monotonic() - sent)) < TOLERANCE
            assert shown.age >= 0
        if shown.error is not None:
            self._check_error(key, shown.error, shown.info)
        if entry is not None and requests_in(entry.record) and not entry.record.superseded:
            standing = _standing(entry.record.info, entry.record.error)
            assert self._said.get(key) == standing, f"on_change said {self._said.get(key)}"

    def check_info(self, key: Key, info: JobInfo, *, fresh: bool) -> None:
        """The job's own state, as it was when the request was sent or later; never an older one."""
        request, version = self._request(key, info), _metadata(info)["version"]
        world = self._worlds[key[0]]
        job = world.history[version]
        assert key[1] in (job.submission_id, job.driver_id), f"{key} shows {job}"
        assert info.status == job.status
        assert info.fetched_at == request.sent_at <= self._clock.now()
        assert world.ended.get(version, math.inf) > request.number, "older than it says"
        assert version >= self._shown.get(key, 0), "an older state than the one shown before"
        assert self._terminal.get(key, version) == version, "a terminal status has changed"
        self._shown[key] = version
        if info.status.is_terminal:
            self._terminal[key] = version
        barrier, known = self._barriers.get(key, (0, set()))
        # One under the job's other id may be about a job that was submitted since, which is true,
        # or come from before that id was there, so that nothing tells whose it is.
        by = self._strangers.get(key)
        is_new_job = by is not None and version > barrier
        names_it = by is None or by in (info.submission_id, info.job_id)
        if request.number < barrier and names_it and not is_new_job:
            assert request.number in known, "a late reply was stored"
            may_be_fresh = info.status.is_terminal or key in self._strangers
            assert may_be_fresh or not fresh, "an outdated answer is shown as fresh"

    def check_read(
        self,
        key: Key,
        entry: Entry | None,
        outcome: JobInfo | Exception,
        max_age: float | None,
        newer_than: datetime | None,
    ) -> None:
        """`get_job_info` did what rules 1 to 3 of the contract say about what the entry held."""
        oldest = self.oldest(max_age, newer_than)
        if isinstance(outcome, TryAgain):
            assert 0 < outcome.retry_after < math.inf
            assert outcome.last_info is (None if entry is None else entry.record.info)
            if entry is not None:
                self.may_be_early(key, oldest)
        elif isinstance(outcome, DashboardError):
            assert entry is not None
            number = self._check_error(key, outcome, outcome.last_info)
            assert self._told.get(key) != number, "a failure was raised twice"
        else:
            assert isinstance(outcome, JobInfo), outcome
            self.check_info(key, outcome, fresh=True)
        expected = self._expected(key, entry, oldest)
        if expected is not None:
            assert _kind(outcome) == expected, f"{_kind(outcome)} instead of {expected}"
        if isinstance(outcome, DashboardError):
            self._told[key] = request_of(outcome)

    def oldest(self, max_age: float | None, newer_than: datetime | None) -> float:
        """The earliest instant of a request whose answer such a read may return."""
        now = self._clock.monotonic()
        max_age = self._settings.max_age if max_age is None else max_age
        oldest = -math.inf if max_age is None else now - max_age
        if newer_than is not None:
            oldest = max(oldest, now - (self._clock.now() - newer_than).total_seconds())
        return oldest

    def _expected(self, key: Key, entry: Entry | None, oldest: float) -> str | None:
        """What a read must do; None on a knife's edge of float arithmetic."""
        if entry is None or not requests_in(entry.record):
            return "pending"
        info, error = entry.record.info, entry.record.error
        number = max(requests_in(entry.record))
        sent = self._worlds[key[0]].requests[number].sent
        if abs(sent - oldest) < TOLERANCE:
            return None
        if error is not None and self._told.get(key) == number:
            return "pending"
        if error is not None:
            return "raise" if sent >= oldest else "stale"
        if self._is_terminal(info):
            return "return"
        return "return" if sent >= oldest and not self._is_outdated(key, entry) else "stale"

    def _check_error(self, key: Key, error: DashboardError, info: JobInfo | None) -> int:
        number = request_of(error)
        request = self._worlds[key[0]].requests[number]
        assert error.fetched_at == request.sent_at <= self._clock.now()
        barrier, known = self._barriers.get(key, (0, set()))
        is_late = number < barrier and number not in known and key not in self._strangers
        assert not is_late, "a late failure was stored"
        assert error.last_info is info
        return number

    def _request(self, key: Key, info: JobInfo) -> Request:
        return self._worlds[key[0]].requests[_metadata(info)["request"]]

    @staticmethod
    def _is_terminal(info: JobInfo | None) -> bool:
        return info is not None and info.status.is_terminal

    def check_problems(self, keys: Sequence[Key]) -> None:
        """Nothing went wrong in a callback, or about a job that nobody knows."""
        assert not self.problems, self.problems
        assert set(self._said) <= set(keys), "on_change about no entry"


def _metadata(info: JobInfo) -> dict[str, int]:
    assert info.metadata is not None
    return info.metadata


def _standing(info: JobInfo | None, error: DashboardError | None) -> tuple[str | None, str | None]:
    return None if info is None else str(info.status), None if error is None else error.kind


def _kind(outcome: JobInfo | Exception) -> str:
    if isinstance(outcome, TryAgain):
        return outcome.reason
    return "raise" if isinstance(outcome, Exception) else "return"
