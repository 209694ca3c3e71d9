"""What a table of watched jobs holds: which rows, in which order, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobinfo_cache import JobSnapshot
from jobinfo_cache.commands.output import one_line
from jobinfo_cache.commands.watched import WatchedJob, reason

__all__ = ["Board", "Page", "Row", "span"]


@dataclass(frozen=True)
class Row:
    """One job, as texts that are safe to show. `is_failing`: the newest poll of it failed."""

    job_id: str
    status: str
    duration: str
    age: str
    failures: str
    message: str
    is_failing: bool


@dataclass(frozen=True)
class Page:
    """All that is shown at one moment, as texts that are safe to show.

    `health` is about the dashboard, `trouble` is its error or empty. `ended` is how many jobs
    have, `statuses` how many there are of each; `hidden` are those without a row.
    """

    url: str
    health: str
    trouble: str
    ended: int
    statuses: Mapping[str, int]
    rows: Sequence[Row]
    hidden: Mapping[str, int]


class Board:
    """The newest of each job of one dashboard. For one thread; moments are monotonic seconds."""

    def __init__(self, url: str, job_ids: Iterable[str]) -> None:
        self._url = url
        self._jobs = {job_id: WatchedJob(job_id, n) for n, job_id in enumerate(job_ids)}

    def see(self, snapshot: JobSnapshot, now: float) -> None:
        """Take what a job looks like now."""
        self._jobs[snapshot.job_id].see(snapshot, now)

    def page(self, rows: int, now: float) -> Page:
        """What to show now, with at most that many rows: first what did not succeed or fails."""
        jobs = sorted(self._jobs.values(), key=lambda job: job.order)
        live = [job for job in jobs if not job.has_ended]
        failing = [job for job in live if job.is_failing]
        is_away = bool(failing) and len(failing) == len(live)
        return Page(
            url=one_line(self._url),
            health=_health(live, failing, now),
            trouble=_trouble(failing),
            ended=len(jobs) - len(live),
            statuses=_counts(jobs),
            # What all of them fail of is said once, above.
            rows=[_row(job, now, with_error=not is_away) for job in jobs[:rows]],
            hidden=_counts(jobs[rows:]),
        )


def span(seconds: float | None) -> str:
    """A duration in its two greatest units; empty for None."""
    if seconds is None:
        return ""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if not minutes:
        return f"{whole}s"
    if not hours:
        return f"{minutes}m{whole % 60:02d}s"
    if not days:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d{hours % 24:02d}h"


def _counts(jobs: Iterable[WatchedJob]) -> dict[str, int]:
    """How many jobs there are of each status, the statuses in the order of the jobs."""
    return dict(Counter(job.status for job in jobs))


def _row(job: WatchedJob, now: float, *, with_error: bool) -> Row:
    return Row(
        job_id=one_line(job.job_id),
        status=job.status,
        duration=span(job.duration(now)),
        age="" if job.has_ended else span(job.age(now)),
        failures=str(job.failures or ""),
        message=job.message(with_error=with_error or job.has_ended),
        is_failing=job.is_failing,
    )


def _health(live: Sequence[WatchedJob], failing: Sequence[WatchedJob], now: float) -> str:
    """How the dashboard is, as far as its live jobs tell."""
    if not live:
        return "all jobs have ended"
    if failing and len(failing) < len(live):
        return f"in trouble with {len(failing)} of {len(live)} live jobs"
    if failing:
        since = now - min(job.failing_at for job in failing)
        retry = min(job.retry(now) for job in failing)
        return f"away for {span(since)}, asked again in {span(retry)}"
    ages = [age for job in live if (age := job.age(now)) is not None]
    return f"well, answered {span(min(ages))} ago" if ages else "not asked yet"


def _trouble(failing: Sequence[WatchedJob]) -> str:
    for job in failing:
        if job.snapshot is not None and job.snapshot.error is not None:
            return reason(job.snapshot.error)
    return ""
