"""What a RayJob controller should do next: a pure function of what it knows.

The rules are those of the table in docs/reference/rayjob-verdicts.md, which the tests run
through. Nothing here blocks, does I/O or reads a clock; all is safe from any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from jobinfo_cache.errors import JobInfoCacheError, JobNotFound, TryAgain
from jobinfo_cache.job import JobInfo
from jobinfo_cache.model import JobSnapshot

__all__ = ["Action", "Limits", "Observation", "SubmissionMode", "Submitter", "Verdict", "decide"]

Answer = JobSnapshot | JobInfo | JobInfoCacheError


class SubmissionMode(str, Enum):
    """Who submits the job: `spec.submissionMode` of a RayJob.

    .. versionadded:: 0.1.0
    """

    K8S_JOB = "K8sJobMode"
    HTTP = "HTTPMode"
    SIDECAR = "SidecarMode"
    INTERACTIVE = "InteractiveMode"

    @property
    def has_submitter(self) -> bool:
        """True when a pod submits the job, whose end is another piece of evidence."""
        return self in (SubmissionMode.K8S_JOB, SubmissionMode.SIDECAR)


class Action(str, Enum):
    """What to do next. All but `WAIT` and `SUBMIT` are ends.

    .. versionadded:: 0.1.0
    """

    WAIT = "wait"
    SUBMIT = "submit"
    COMPLETE = "complete"
    APPLICATION_FAILED = "application failed"
    SUBMISSION_FAILED = "submission failed"
    STATUS_CHECK_FAILED = "status check failed"

    @property
    def is_end(self) -> bool:
        """True for what ends the RayJob, or this attempt at it."""
        return self not in (Action.WAIT, Action.SUBMIT)


@dataclass(frozen=True)
class Limits:
    """Durations in seconds.

    `clock_tolerance` is how far the clocks of this process and of Kubernetes may differ; one
    second is added to it, since Kubernetes writes whole seconds. `status_check_timeout` is how
    long the dashboard may stay silent, or not know a job that was there while its submitter
    works on. `submitter_timeout` is how long the submitter may outlive the job. `poll_interval`
    is the wait where the answer names none.

    .. versionadded:: 0.1.0
    """

    clock_tolerance: float = 1.0
    status_check_timeout: float = 300.0
    submitter_timeout: float = 30.0
    poll_interval: float = 3.0


@dataclass(frozen=True)
class Submitter:
    """The end of the submitter: when (aware datetime), and how.

    The time is by Kubernetes' clock. In HTTP mode it is by the controller's own, which submits
    the job itself: a controller that gives up submitting says so with `succeeded=False`.

    .. versionadded:: 0.1.0
    """

    finished_at: datetime
    succeeded: bool


@dataclass(frozen=True)
class Observation:
    """What a controller knows of a RayJob. All times are aware datetimes.

    `answer` is what `lookup` returned, or what `get_job_info` returned or raised. `seen` is True
    when the RayJob's status already names a status of the job. `submitted_at` is when this
    controller had submitted the job, by its own clock; `submitter` is None while it has not
    finished, and not looked at in the interactive mode. `unanswered_since` is when the first of
    the answers that did not count was seen (`Verdict.answered`), None if the last one did. Ask,
    and count from, when the cluster is ready: its start is no silence.

    .. versionadded:: 0.1.0
    """

    mode: SubmissionMode
    answer: Answer
    now: datetime
    seen: bool = False
    submitted_at: datetime | None = None
    submitter: Submitter | None = None
    unanswered_since: datetime | None = None


@dataclass(frozen=True)
class Verdict:
    """What to do, and why.

    `reason` is for `status.reason` of an end, "" otherwise; `message` is one line for people.
    `retry_after` is in how many seconds to look again (None for an end). `newer_than` is what to
    demand of the next read; an answer that is terminal has to be forgotten first, since the cache
    asks no more for what has ended. `answered` is False when the answer did not count: the
    controller notes when that began, and hands it in as `unanswered_since`.

    .. versionadded:: 0.1.0
    """

    action: Action
    message: str
    reason: str = ""
    retry_after: float | None = None
    newer_than: datetime | None = None
    answered: bool = True


def decide(observation: Observation, limits: Limits | None = None) -> Verdict:
    """The next act of a RayJob controller. Pure; raises `ValueError` for times without a zone.

    .. versionadded:: 0.1.0
    """
    limits = limits or Limits()
    _check_times(observation)
    info, error, retry_after = _newest(observation.answer)
    if retry_after is None:
        retry_after = limits.poll_interval
    fetched_at = error.fetched_at if isinstance(error, JobNotFound) else _fetched_at(info)
    if fetched_at is None or (error is not None and not isinstance(error, JobNotFound)):
        return _unanswered(observation, limits, retry_after, "the dashboard has not answered")
    if observation.submitted_at is not None and fetched_at < observation.submitted_at:
        return _unanswered(observation, limits, retry_after, _TOO_OLD, observation.submitted_at)
    if error is None and info is not None and info.status.is_terminal:
        return _ended(observation, limits, info, fetched_at, retry_after)
    newer_than = _needed(observation, limits)
    if newer_than is not None and fetched_at < newer_than:
        return _unanswered(observation, limits, retry_after, _TOO_OLD, newer_than)
    if error is None and info is not None:
        return Verdict(Action.WAIT, f"the job is {info.status}", retry_after=retry_after)
    return _missing(observation, limits, retry_after)


_TOO_OLD = "the answer is older than what has happened since"


def _ended(
    observation: Observation,
    limits: Limits,
    info: JobInfo,
    fetched_at: datetime,
    retry_after: float,
) -> Verdict:
    """The job has ended, which never changes: only its submitter is waited for."""
    if observation.mode.has_submitter and observation.submitter is None:
        left = _left(fetched_at, limits.submitter_timeout, observation.now)
        if left > 0:
            message = f"the job is {info.status}, its submitter has not finished"
            return Verdict(Action.WAIT, message, retry_after=min(left, retry_after))
    message = f"the job is {info.status}" + (f": {info.message}" if info.message else "")
    if info.status == "FAILED":
        return Verdict(Action.APPLICATION_FAILED, message, "AppFailed")
    return Verdict(Action.COMPLETE, message)


def _missing(observation: Observation, limits: Limits, retry_after: float) -> Verdict:
    """The dashboard, asked late enough, does not know the job."""
    mode, submitter = observation.mode, observation.submitter
    was_there = observation.seen or observation.submitted_at is not None
    if mode is SubmissionMode.INTERACTIVE or submitter is None:
        return _missing_so_far(observation, limits, retry_after, was_there)
    if submitter.succeeded or was_there:
        return _VANISHED
    message = "the submitter failed, and the dashboard does not know the job"
    return Verdict(Action.SUBMISSION_FAILED, message, "SubmissionFailed")


def _missing_so_far(
    observation: Observation, limits: Limits, retry_after: float, was_there: bool
) -> Verdict:
    """Nobody has said that no more will come."""
    if was_there and observation.mode.has_submitter:
        # A submitter that is started again, after its head for example, submits again.
        left = _silence_left(observation, limits)
        message = "the job has vanished, its submitter is at work"
        wait = Verdict(Action.WAIT, message, retry_after=min(left, retry_after), answered=False)
        return wait if left > 0 else _VANISHED
    if was_there:
        return _VANISHED
    if observation.mode is SubmissionMode.HTTP:
        return Verdict(Action.SUBMIT, "the dashboard does not know the job yet")
    return Verdict(Action.WAIT, "nobody has submitted the job yet", retry_after=retry_after)


_VANISHED = Verdict(
    Action.APPLICATION_FAILED,
    "the job was submitted, and the dashboard does not know it any more",
    "AppFailed",
)


def _unanswered(
    observation: Observation,
    limits: Limits,
    retry_after: float,
    message: str,
    newer_than: datetime | None = None,
) -> Verdict:
    """No answer that counts: wait for one, but not for ever."""
    left = _silence_left(observation, limits)
    if left <= 0:
        message = f"{message} for {limits.status_check_timeout:g} s"
        reason = "JobStatusCheckTimeoutExceeded"
        return Verdict(Action.STATUS_CHECK_FAILED, message, reason, answered=False)
    return Verdict(
        Action.WAIT,
        message,
        retry_after=min(left, retry_after),
        newer_than=newer_than or _needed(observation, limits),
        answered=False,
    )


def _needed(observation: Observation, limits: Limits) -> datetime | None:
    """What an answer must not be older than to be held against the submitter's end."""
    submitter = observation.submitter
    if submitter is None or observation.mode is SubmissionMode.INTERACTIVE:
        return observation.submitted_at
    if observation.mode is SubmissionMode.HTTP:
        return submitter.finished_at  # by our own clock
    # Kubernetes cuts off the fraction: the end may be a second later than it says.
    return submitter.finished_at + timedelta(seconds=1.0 + limits.clock_tolerance)


def _newest(answer: Answer) -> tuple[JobInfo | None, JobInfoCacheError | None, float | None]:
    """The newest outcome in the answer (info or error), and in how many seconds to ask again."""
    if isinstance(answer, JobInfo):
        return answer, None, None
    if isinstance(answer, JobInfoCacheError):
        return None, answer, answer.retry_after if isinstance(answer, TryAgain) else None
    if answer.error is None and not answer.fresh:
        return None, None, answer.retry_after
    return answer.info, answer.error, answer.retry_after


def _fetched_at(info: JobInfo | None) -> datetime | None:
    return None if info is None else info.fetched_at


def _silence_left(observation: Observation, limits: Limits) -> float:
    """The seconds left in which answers need not count."""
    since = observation.unanswered_since or observation.now
    return _left(since, limits.status_check_timeout, observation.now)


def _left(since: datetime, limit: float, now: datetime) -> float:
    """The seconds left of `limit`, counted from `since`."""
    return limit - (now - since).total_seconds()


def _check_times(observation: Observation) -> None:
    submitter = observation.submitter
    times = {
        "now": observation.now,
        "submitted_at": observation.submitted_at,
        "unanswered_since": observation.unanswered_since,
        "submitter.finished_at": None if submitter is None else submitter.finished_at,
    }
    for name, moment in times.items():
        if moment is not None and moment.utcoffset() is None:
            raise ValueError(f"{name} is {moment!r}; it must be an aware datetime")
