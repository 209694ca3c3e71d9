"""One watched job, as a table needs it: its status, how long it has run, how old that is."""

from __future__ import annotations

from jobinfo_cache import DashboardError, JobNotFound, JobSnapshot
from jobinfo_cache.commands.output import one_line

__all__ = ["WatchedJob", "reason"]

_NOT_KNOWN = "-"
_NOT_FOUND = "NOT FOUND"
_LONGEST_STATUS = 14
_RANKS = {"RUNNING": 2, "SUCCEEDED": 4}  # the lower, the nearer to the top; all else is 3


class WatchedJob:
    """The newest snapshot of a job, None before the first. For one thread.

    Moments are those of the monotonic clock, in seconds. `failing_at` is when its polls began to
    fail, and means nothing unless `is_failing`.
    """

    def __init__(self, job_id: str, number: int) -> None:
        self.job_id = job_id
        self._number = number
        self.snapshot: JobSnapshot | None = None
        self.status = _NOT_KNOWN
        self.failing_at = 0.0
        self._looked_at = 0.0
        self._changed_at = 0.0

    def see(self, snapshot: JobSnapshot, now: float) -> None:
        """Take what the job looks like now."""
        was_failing = self.is_failing
        self.snapshot = snapshot
        self._looked_at = now
        if self.is_failing and not was_failing:
            self.failing_at = now
        status = _status(snapshot)
        if status != self.status:
            self.status, self._changed_at = status, now

    @property
    def is_failing(self) -> bool:
        """The newest poll told nothing about the job."""
        error = None if self.snapshot is None else self.snapshot.error
        return error is not None and not isinstance(error, JobNotFound)

    @property
    def has_ended(self) -> bool:
        if self.snapshot is None:
            return False
        info = self.snapshot.info
        return self.status == _NOT_FOUND or (info is not None and info.status.is_terminal)

    @property
    def order(self) -> tuple[int, float, int]:
        """What did not succeed, what fails, what runs, what waits, what succeeded; newest first."""
        if self.has_ended and self.status != "SUCCEEDED":
            rank = 0
        elif self.is_failing:
            rank = 1
        else:
            rank = _RANKS.get(self.status, 3)
        return rank, -self._changed_at, self._number

    @property
    def failures(self) -> int:
        """How many polls in a row have failed."""
        return 0 if self.snapshot is None else self.snapshot.failures

    def age(self, now: float) -> float | None:
        """How old the last good answer is."""
        if self.snapshot is None or self.snapshot.age is None:
            return None
        return self.snapshot.age + now - self._looked_at

    def duration(self, now: float) -> float | None:
        """How long it ran, or has run so far: by the dashboard's clock, and then by ours."""
        info = None if self.snapshot is None else self.snapshot.info
        if info is None or info.start_time is None:
            return None
        if not info.status.is_terminal:
            return (info.fetched_at - info.start_time).total_seconds() + (self.age(now) or 0.0)
        if info.end_time is None:
            return None
        return (info.end_time - info.start_time).total_seconds()

    def retry(self, now: float) -> float:
        """Seconds until it is looked at again."""
        if self.snapshot is None or self.snapshot.retry_after is None:
            return 0.0
        return self.snapshot.retry_after + self._looked_at - now

    def message(self, *, with_error: bool) -> str:
        """What Ray says about it, or why it cannot be asked; safe to show."""
        if self.snapshot is None:
            return ""
        info, error = self.snapshot.info, self.snapshot.error
        if error is not None and with_error:
            text = f"{error.kind}: {reason(error)}"
        else:
            text = "" if info is None else info.message or ""
        return one_line(" ".join(text.split()))


def reason(error: DashboardError) -> str:
    """What went wrong, without what was asked; safe to show."""
    _, _, without_url = str(error).partition(f" {error.url}: ")
    return one_line(without_url or str(error))


def _status(snapshot: JobSnapshot) -> str:
    if isinstance(snapshot.error, JobNotFound):
        return _NOT_FOUND
    if snapshot.info is None:
        return _NOT_KNOWN
    return one_line(str(snapshot.info.status), _LONGEST_STATUS)
