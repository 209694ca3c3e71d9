"""What the page and its JSON show of a cache, gathered so that no read waits for it.

Looking is no read: nothing is registered, stamped or handed out. The store's lock is held for
one copy of its list; the rest is done some jobs at a time, with a pause in between, because a
thread that computes without one makes all others wait for the interpreter's lock.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from jobinfo_cache.answers import printable
from jobinfo_cache.cache import JobInfoCache
from jobinfo_cache.entry import ClusterState, Entry, Record
from jobinfo_cache.errors import CacheClosed
from jobinfo_cache.job import JobInfo
from jobinfo_cache.model import JobSnapshot, Stats

__all__ = ["NO_ANSWER", "ClusterRow", "JobRow", "Overview", "gather", "pause", "slices"]

NO_ANSWER = "no answer yet"  # in the place of a status

_SLICE = 200  # jobs looked at between two pauses: about half a millisecond
_PAUSE = 0.001  # seconds; long enough for another thread to take the interpreter's lock
_MOST_STATUSES = 20  # Ray has five
_LONGEST = 1024  # characters of any one text; a job id has no more
# What people look for comes first; what is not here is live.
_FAILING, _LIVE = 0, 3
_RANKS = {"FAILED": 1, NO_ANSWER: 2, "STOPPED": 4, "SUCCEEDED": 5}

_T = TypeVar("_T")
_Ranked = tuple[int, str, str, str, str, Entry]


class ClusterRow(NamedTuple):
    """One cluster: how many jobs of it are held, and how its dashboard fares.

    `failing` is the kind of trouble that the dashboard is in, None if it is in none; `failures`
    are those in a row. `retry_after` is the seconds until it may be asked again, None for at once.
    """

    namespace: str
    name: str
    uid: str
    url: str
    jobs: int
    live: int
    reached: bool
    failing: str | None
    failures: int
    retry_after: float | None


class JobRow(NamedTuple):
    """One job. `status` is None before the first answer; `error` is the newest poll's, if any.

    Nothing here is the user's own text but names: no entrypoint, message, metadata or runtime_env,
    which may hold secrets.
    """

    namespace: str
    cluster: str
    uid: str
    job_id: str
    fresh: bool
    age: float | None
    fetched_at: datetime | None
    failures: int
    failing_since: datetime | None
    error_kind: str | None = None
    error: str | None = None
    submission_id: str | None = None
    status: str | None = None
    terminal: bool = False
    start_time: datetime | None = None
    end_time: datetime | None = None
    error_type: str | None = None
    driver_exit_code: int | None = None


@dataclass(frozen=True)
class Overview:
    """A cache at one moment, as far as `query` and `limit` let it be seen.

    `statuses` counts all jobs, by their 20 most frequent statuses; `jobs_found` and
    `clusters_found` are what matches the query, of which `jobs` and `clusters` hold at most
    `limit` each.
    """

    at: datetime
    is_closed: bool
    stats: Stats
    statuses: Mapping[str, int]
    query: str
    limit: int
    jobs: Sequence[JobRow]
    jobs_found: int
    clusters: Sequence[ClusterRow]
    clusters_found: int


@dataclass
class _Tally:
    """What is counted of a cluster's jobs."""

    jobs: int = 0
    live: int = 0
    found: int = 0


@dataclass
class _Survey:
    """What one look at all jobs brings."""

    words: Sequence[str]
    limit: int
    statuses: Counter[str] = field(default_factory=Counter)
    tallies: dict[ClusterState, _Tally] = field(default_factory=dict)
    first: list[_Ranked] = field(default_factory=list)
    found: int = 0

    def look_at(self, entries: Sequence[Entry]) -> None:
        """Count the jobs, and keep the first `limit` of those that match."""
        matching = [each for entry in entries if (each := self._note(entry)) is not None]
        self.found += len(matching)
        self.first = sorted(self.first + matching)[: self.limit]

    def _note(self, entry: Entry) -> _Ranked | None:
        record, state = entry.record, entry.state
        status = NO_ANSWER if record.info is None else record.info.status
        self.statuses[status] += 1
        tally = self.tallies.get(state)
        if tally is None:
            tally = self.tallies[state] = _Tally()
        tally.jobs += 1
        tally.live += not record.is_terminal
        if self.words and not _is_in(self.words, _job_text(entry, record, status)):
            return None
        tally.found += 1
        rank = _FAILING if record.error is not None else _RANKS.get(status, _LIVE)
        return rank, *state.cluster, entry.job_id, entry


async def gather(cache: JobInfoCache, *, query: str = "", limit: int) -> Overview:
    """Look at the cache: at most `limit` jobs and clusters in which all words of `query` occur.

    Jobs whose polls fail come first, then those that failed, live ones, and what has ended.
    """
    engine = cache._engine  # noqa: SLF001 - the library's own page
    survey = _Survey(query.casefold().split(), limit)
    for part in slices(engine.store.entries()):
        survey.look_at(part)
        await pause()
    jobs = []
    for chosen in slices(survey.first):
        jobs += [row for *_, entry in chosen if (row := _job_row(cache, entry)) is not None]
        await pause()
    clusters, clusters_found = await _clusters(cache, survey)
    return Overview(
        at=engine.clock.now(),
        is_closed=engine.store.is_closed,
        stats=cache.stats(),
        statuses={
            printable(status, _LONGEST): count
            for status, count in sorted(survey.statuses.most_common(_MOST_STATUSES))
        },
        query=query,
        limit=limit,
        jobs=jobs,
        jobs_found=survey.found,
        clusters=clusters,
        clusters_found=clusters_found,
    )


def slices(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """The items, some at a time, in their order; `pause` between any two of these."""
    return (items[start : start + _SLICE] for start in range(0, len(items), _SLICE))


async def pause() -> None:
    """Let other threads, and other visitors, have their turn."""
    await asyncio.sleep(_PAUSE)


async def _clusters(cache: JobInfoCache, survey: _Survey) -> tuple[list[ClusterRow], int]:
    """The first clusters that match or have a job that does, and how many there are."""
    engine = cache._engine  # noqa: SLF001
    first: list[ClusterRow] = []
    found = 0
    for part in slices(engine.store.clusters()):
        rows = [
            _cluster_row(state, tally, engine.clock.monotonic())
            for state in part
            if (tally := survey.tallies.get(state, _Tally())).found
            or _is_in(survey.words, _cluster_text(state))
        ]
        found += len(rows)
        first = sorted(first + rows, key=_cluster_order)[: survey.limit]
        await pause()
    return first, found


def _cluster_order(row: ClusterRow) -> tuple[bool, str, str, str]:
    return row.failing is None, row.namespace, row.name, row.uid


def _cluster_row(state: ClusterState, tally: _Tally, now: float) -> ClusterRow:
    delay = state.not_before - now
    return ClusterRow(
        *state.cluster,
        url=state.dashboard.url,
        jobs=tally.jobs,
        live=tally.live,
        reached=state.was_reached,
        failing=state.failing or None,
        failures=state.failures,
        retry_after=delay if delay > 0 else None,
    )


def _job_row(cache: JobInfoCache, entry: Entry) -> JobRow | None:
    """None if the job has left the cache meanwhile."""
    try:
        snapshot = cache._engine.reader.peek(entry.state, entry.job_id)  # noqa: SLF001
    except CacheClosed:
        return None
    return None if snapshot is None else _shown(snapshot)


def _shown(snapshot: JobSnapshot) -> JobRow:
    namespace, name, uid = snapshot.cluster
    row = JobRow(
        namespace=namespace,
        cluster=name,
        uid=uid,
        job_id=snapshot.job_id,
        fresh=snapshot.fresh,
        age=snapshot.age,
        fetched_at=snapshot.fetched_at,
        failures=snapshot.failures,
        failing_since=snapshot.failing_since,
    )
    if snapshot.error is not None:
        row = row._replace(error_kind=snapshot.error.kind, error=_line(str(snapshot.error)))
    return row if snapshot.info is None else _with_answer(row, snapshot.info)


def _with_answer(row: JobRow, info: JobInfo) -> JobRow:
    return row._replace(
        submission_id=_line(info.submission_id),
        status=_line(info.status),
        terminal=info.status.is_terminal,
        start_time=info.start_time,
        end_time=info.end_time,
        error_type=_line(info.error_type),
        driver_exit_code=info.driver_exit_code,
    )


def _line(text: str | None) -> str | None:
    """What a dashboard said, on one line and of a bounded length."""
    return None if text is None else printable(text, _LONGEST)


def _is_in(words: Sequence[str], text: str) -> bool:
    return all(word in text for word in words)


def _job_text(entry: Entry, record: Record, status: str) -> str:
    """What a search looks at."""
    info, error = record.info, record.error
    texts = [entry.job_id, *entry.state.cluster, status]
    if info is not None:
        texts += [info.submission_id or "", info.job_id or ""]
    if error is not None:
        texts += [error.kind, str(error)]
    return "\n".join(texts).casefold()


def _cluster_text(state: ClusterState) -> str:
    return "\n".join([*state.cluster, state.dashboard.url, state.failing]).casefold()
